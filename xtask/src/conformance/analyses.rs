//! Figures of analyses, beside those that VPP's own programs print of the same logs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use kymo::analysis::{
    EventPattern, Options, Profile, ProfileQuery, Sort, States, StatesQuery, TrackBy,
};
use kymo::filter::FieldNames;
use kymo::pipeline::Everything;

use super::contents::open;
use super::{Setting, Verdict, cases, difference};
use crate::Outcome;

/// Microseconds of nanoseconds.
fn micros(nanos: f64) -> f64 {
    nanos / 1e3
}

/// For each text whose name ends with `suffix`, compares what `figures` makes of the log of that
/// name, and of its twin of the other byte order where there is one.
fn each(
    setting: &Setting,
    suffix: &str,
    expected: fn(&str) -> String,
    figures: fn(&Path) -> Outcome<String>,
) -> Outcome<Vec<Verdict>> {
    let logs: PathBuf = setting.traces.with_file_name("cpel");
    let names = cases(&logs, "", suffix)?;
    if names.is_empty() {
        return Err(format!("no texts `*{suffix}` at {}", logs.display()).into());
    }
    let mut verdicts = Vec::new();
    for name in names {
        let text = std::fs::read_to_string(logs.join(format!("{name}{suffix}")))?;
        let expected = expected(&text);
        for twin in [name.clone(), format!("{name}_le")] {
            let log = logs.join(format!("{twin}.cpel"));
            if twin != name && !log.exists() {
                continue;
            }
            let found = figures(&log)?;
            let result = difference(&expected, &found);
            verdicts.push(Verdict::new(format!("cpel/{twin}"), result));
        }
    }
    Ok(verdicts)
}

/// Time in states, as cpelstate prints it.
pub(super) fn states(setting: &Setting) -> Outcome<Vec<Verdict>> {
    each(setting, ".cpelstate.txt", str::to_string, |log| {
        let query = StatesQuery {
            state: EventPattern::new("1"),
            per: None,
            tracks: TrackBy::default(),
            filter: None,
            sort: Sort::Time,
        };
        let states = States::new(&open(log)?, &Everything, &query, &Options::default())?;
        let names = states.tracks.iter().map(|track| track.track.name.len());
        let width = names.max().unwrap_or(0);
        let mut text = String::from("Results sorted by max time in state.\n");
        writeln!(
            text,
            "{:width$}   Mean(us)     Stdev(us)   Total(us)      N",
            "ProcThread"
        )?;
        for track in &states.tracks {
            let times = &track.times;
            writeln!(
                text,
                "{:width$} {:10.3} +- {:10.3}{:12.3}{:8}",
                track.track.name,
                micros(times.mean().unwrap_or(0.0)),
                micros(times.deviation().unwrap_or(0.0)),
                micros(times.total() as f64),
                times.count()
            )?;
        }
        let (total, count) = (states.total(), states.count());
        writeln!(
            text,
            "\nNote: the following statistics exclude kernel-thread activity.\n\
             Total runtime: {:10.3} (us), Total state switches: {count}\n\
             Average time in state: {:10.3} (us)",
            micros(total as f64),
            micros(states.mean().unwrap_or(0.0))
        )?;
        Ok(text)
    })
}

/// Profiles with drift, as cpelinreg prints them. Keys with the same time come in any order there.
pub(super) fn profiles(setting: &Setting) -> Outcome<Vec<Verdict>> {
    /// The lines before the keys, without the path of the file, and the sorted lines of keys.
    fn sorted(text: &str) -> String {
        let (head, keys) = text.split_once("Key\n").unwrap_or((text, ""));
        let mut keys: Vec<&str> = keys.lines().collect();
        keys.sort_unstable();
        let head: Vec<&str> = head.lines().skip(1).collect();
        format!("{}Key\n{}\n", head.join("\n"), keys.join("\n"))
    }
    each(setting, ".cpelinreg.txt", sorted, |log| {
        let query = ProfileQuery {
            events: Some((EventPattern::new("3"), EventPattern::new("4"))),
            key: Some(FieldNames::parse("text")?),
            tracks: TrackBy::default(),
            running: true,
            call_graph: false,
        };
        let options = Options {
            resolution: 1_000,
            ..Options::default()
        };
        let profile = Profile::new(&open(log)?, &Everything, &query, &options)?;
        let (count, own) = (profile.count(), profile.own());
        let span = micros(profile.span as f64);
        let mut text = String::from("the path\n");
        writeln!(
            text,
            "entry_event 3, exit_event 4\n\
             {count} instances of state, {:.2} microseconds average\n\
             Total instrumented runtime: {:.2} microseconds\n\
             Total runtime: {span:.0} microseconds\n\
             Instrumented code accounts for {:.2}% of total time.\n\n\
             NInst       Offset       Slope    T(Ninst)    Key",
            micros(own as f64) / count as f64,
            micros(own as f64),
            100.0 * micros(own as f64) / span
        )?;
        for key in &profile.keys {
            let drift = key.own.drift();
            let drift = |value: fn(kymo::analysis::Drift) -> f64| micros(drift.map_or(0.0, value));
            let (offset, slope) = (drift(|drift| drift.offset), drift(|drift| drift.slope));
            let count = key.own.count();
            let total = count as f64 * (offset + slope * ((count as f64 - 1.0) / 2.0));
            writeln!(
                text,
                "{count:6} {offset:11.2} {slope:11.2} {total:11.2} {} ",
                key.key
            )?;
        }
        Ok(sorted(&text))
    })
}
