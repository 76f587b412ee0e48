//! Local time.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kymo_rrd::text::xml::{LocalTime, Zone};

/// Files of zones have some kilobytes.
const MAX_ZONE: u64 = 1 << 20;

/// The zone that the environment names: that of `TZ`, or else of the system. It is looked up when
/// it is needed, since most commands do without.
#[derive(Clone, Debug, Default)]
pub struct LocalZone {
    zone: OnceLock<TimeZone>,
    /// Whether `TZ` is reread each time.
    anew: bool,
}

impl LocalZone {
    /// The zone that the environment names.
    pub const fn new() -> Self {
        Self {
            zone: OnceLock::new(),
            anew: false,
        }
    }

    /// The zone that the environment names now. [`LocalZone::new`] may take one that was looked up some
    /// minutes ago.
    pub const fn of_environment() -> Self {
        Self {
            zone: OnceLock::new(),
            anew: true,
        }
    }

    /// The zone of a rule as POSIX has them, such as `CET-1CEST,M3.5.0,M10.5.0/3`; `None` where the
    /// text is none.
    pub fn posix(rule: &str) -> Option<Self> {
        TimeZone::posix(rule).ok().map(Self::from)
    }

    /// The zone that a value of the variable `TZ` names: one of the system's, or a rule as POSIX has them.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.strip_prefix(':').unwrap_or(name);
        match name {
            "" => Some(Self::utc()),
            name => TimeZone::get(name)
                .ok()
                .map(Self::from)
                .or_else(|| Self::posix(name)),
        }
    }

    fn zone(&self) -> &TimeZone {
        self.zone.get_or_init(|| {
            let named = || self.anew.then(named).flatten();
            let zone = zone_of_file().or_else(named);
            zone.unwrap_or_else(TimeZone::system)
        })
    }

    /// A copy that need not be looked up.
    pub(crate) fn known(&self) -> Self {
        self.zone();
        self.clone()
    }

    /// A time as local time; the nearest one that calendars know.
    pub(crate) fn zoned(&self, seconds: i64) -> jiff::Zoned {
        timestamp(seconds).to_zoned(self.zone().clone())
    }

    /// Universal time.
    pub(crate) fn utc() -> Self {
        Self::from(TimeZone::UTC)
    }

    /// Universal time, which the C library's `gmtime` calls GMT.
    pub(crate) fn gmt() -> Self {
        Self::posix("GMT0").unwrap_or_else(Self::utc)
    }

    /// Seconds that local time is ahead of UTC at a time, and whether it is summer time.
    pub(crate) fn offset(&self, seconds: i64) -> (i64, bool) {
        let info = self.zone().to_offset_info(timestamp(seconds));
        (info.offset().seconds().into(), info.dst().is_dst())
    }
}

/// The zone, from its file alone: to look it up by its name takes a walk over all files of zones. `None` where it is
/// not that simple.
fn zone_of_file() -> Option<TimeZone> {
    if !cfg!(unix) {
        return None;
    }
    let name = std::env::var_os("TZ");
    let (name, path) = match &name {
        None => ("Local", PathBuf::from("/etc/localtime")),
        Some(name) => {
            let name = name.to_str()?.trim_start_matches(':');
            let is_plain = |part: &str| !matches!(part, "" | "." | "..");
            if !name.split('/').all(is_plain) {
                return None;
            }
            (name, Path::new("/usr/share/zoneinfo").join(name))
        }
    };
    let file = std::fs::File::open(path).ok()?;
    let mut data = Vec::new();
    file.take(MAX_ZONE).read_to_end(&mut data).ok()?;
    TimeZone::tzif(name, &data).ok()
}

impl From<TimeZone> for LocalZone {
    fn from(zone: TimeZone) -> Self {
        Self {
            zone: OnceLock::from(zone),
            anew: false,
        }
    }
}

/// The zone that `TZ` names: one of the database, or a rule. `None` if it is unset or a path.
fn named() -> Option<TimeZone> {
    let name = std::env::var("TZ").ok()?;
    match name.strip_prefix(':').unwrap_or(&name) {
        "" => Some(TimeZone::UTC),
        name => TimeZone::get(name).or_else(|_| TimeZone::posix(name)).ok(),
    }
}

/// A time in the range of time zones: outside of it, the first or last rule applies.
fn timestamp(seconds: i64) -> Timestamp {
    let (least, most) = (Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    Timestamp::from_second(seconds.clamp(least, most)).unwrap_or_default()
}

impl Zone for LocalZone {
    fn at(&self, seconds: i64) -> LocalTime {
        let zone = self.zone();
        let time = timestamp(seconds);
        let info = zone.to_offset_info(time);
        let name = match zone.is_unknown() {
            true => "UTC",
            false => info.abbreviation(),
        };
        let next = zone.following(time).next();
        LocalTime {
            offset: info.offset().seconds(),
            name: name.to_owned(),
            until: next.map_or(i64::MAX, |next| next.timestamp().as_second()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summer_time_begins_and_ends() {
        let zone = LocalZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let winter = zone.at(1_700_000_000);
        assert_eq!((winter.offset, &*winter.name), (3600, "CET"));
        // 2024-03-31T01:00:00Z
        assert_eq!(winter.until, 1_711_846_800);
        let summer = zone.at(winter.until);
        assert_eq!((summer.offset, &*summer.name), (7200, "CEST"));
        for seconds in [i64::MIN, i64::MAX] {
            zone.at(seconds);
        }
    }

    #[test]
    fn zones_may_stay() {
        let utc = LocalZone::from(TimeZone::UTC).at(0);
        assert_eq!((utc.offset, &*utc.name, utc.until), (0, "UTC", i64::MAX));
        assert_eq!(LocalZone::from(TimeZone::unknown()).at(0).name, "UTC");
    }
}
