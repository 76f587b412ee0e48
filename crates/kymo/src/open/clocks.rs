//! Whether traces of one clock agree on where its zero lies.

use std::collections::BTreeMap;

use kymo_ctf::class::EnvironmentValue;
use kymo_model::Recording;
use kymo_time::Clock;

use crate::AnyRecording;

/// Offsets that differ by no more than this, in nanoseconds, are the same: tracers measure them.
const SAME: i128 = 1_000_000;

/// The clock of a host that several traces count by.
type Known<'t> = (&'t str, &'t str, u64);

/// Warns where traces of one clock, which have its identifier and are of one host, say that its zero lies at different
/// times. LTTng measures that once for each domain and session: if the time of the host was set, or slewed, in between,
/// the same instant has different times in the traces of a session.
pub fn clocks_apart(recordings: &[AnyRecording]) -> Vec<String> {
    let mut clocks: BTreeMap<Known<'_>, Vec<(i128, &AnyRecording)>> = BTreeMap::new();
    for recording in recordings {
        let Some(trace) = recording.as_ctf() else {
            continue;
        };
        let host = match trace.class().environment("hostname") {
            Some(EnvironmentValue::Text(host)) => host,
            _ => continue,
        };
        for clock in &trace.class().clocks {
            if let Some(uid) = &clock.uid {
                let known = (host.as_str(), uid.as_str(), clock.frequency);
                let traces = clocks.entry(known).or_default();
                traces.push((zero(clock), recording));
            }
        }
    }
    let warning = |((host, ..), traces): (Known<'_>, Vec<(i128, &AnyRecording)>)| {
        let (first, last) = (
            traces.iter().min_by_key(|(zero, _)| *zero)?,
            traces.iter().max_by_key(|(zero, _)| *zero)?,
        );
        let apart = last.0 - first.0;
        (apart > SAME).then(|| {
            let path = last.1.path().display();
            format!(
                "traces of `{host}` place the zero of one clock {:.6} s apart (`{}` and `{path}`): the host's time was \
                 changed between them; `--offset '{path}=-{apart}ns'` puts them on one line",
                apart as f64 / 1e9,
                first.1.path().display(),
            )
        })
    };
    clocks.into_iter().filter_map(warning).collect()
}

/// When a clock shows zero, in nanoseconds.
fn zero(clock: &Clock) -> i128 {
    let cycles = i128::from(clock.offset_cycles) * 1_000_000_000;
    i128::from(clock.offset_seconds) * 1_000_000_000 + cycles / i128::from(clock.frequency.max(1))
}
