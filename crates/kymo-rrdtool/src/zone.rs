//! Local time for dumps.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kymo_rrd::xml::{LocalTime, Zone};

/// The zone that the environment names.
#[derive(Clone, Debug)]
pub struct LocalZone(TimeZone);

impl LocalZone {
    /// The zone of `TZ`, or else of the system.
    pub fn new() -> Self {
        Self(TimeZone::system())
    }
}

impl Default for LocalZone {
    fn default() -> Self {
        Self::new()
    }
}

impl Zone for LocalZone {
    fn at(&self, seconds: i64) -> LocalTime {
        // Beyond the years that the zone knows, its first or last rule goes on.
        let (least, most) = (Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
        let time = Timestamp::from_second(seconds.clamp(least, most)).unwrap_or_default();
        let info = self.0.to_offset_info(time);
        let name = match self.0.is_unknown() {
            true => "UTC",
            false => info.abbreviation(),
        };
        let next = self.0.following(time).next();
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
        let zone = LocalZone(TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap());
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
        let utc = LocalZone(TimeZone::UTC).at(0);
        assert_eq!((utc.offset, &*utc.name, utc.until), (0, "UTC", i64::MAX));
        assert_eq!(LocalZone(TimeZone::unknown()).at(0).name, "UTC");
    }
}
