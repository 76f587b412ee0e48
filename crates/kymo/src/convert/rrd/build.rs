//! From counts to the bytes of a file, through the engine.
//!
//! The engine gets an update for each step that has events, and one for each gap between them, whose
//! rows it writes at once: so the time it takes follows the events.

use std::collections::HashSet;

use kymo_rrd::engine::{Definition, Measurement, Rrd, Sample, Smoothing, create};
use kymo_rrd::file::convert::convert;
use kymo_rrd::model::{Database, SourceKind};
use kymo_rrd::{Source, Time, file::portable};
use kymo_text::Line;

use super::cells::Cells;
use super::{Function, Made, MakeError, RrdOptions};

/// The longest name of a data source.
const LONGEST_NAME: usize = 19;

/// Makes a file; `names` are what the data sources stand for.
pub(super) fn build(
    options: &RrdOptions,
    names: &[String],
    cells: &mut Cells,
) -> Result<Made, MakeError> {
    let (met, last) = cells.span().ok_or(MakeError::Nothing)?;
    if let Some((rows, sources)) = cells.too_large() {
        return Err(MakeError::Values { rows, sources });
    }
    let (rows, _) = cells.size();
    let first = met.max((last + 1).saturating_sub(rows));
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|&a, &b| names[a].cmp(&names[b]));
    let sources = source_names(order.iter().map(|&source| names[source].as_str()));

    let step = options.step;
    let seconds = |step_number: u64| {
        let seconds = step_number.checked_mul(u64::from(step));
        let seconds = seconds.and_then(|seconds| i64::try_from(seconds).ok());
        seconds
            .map(Time::from_seconds)
            .ok_or_else(|| MakeError::File("the times are too late for a database".into()))
    };
    let function = options.value.as_ref().map(|(_, function)| *function);
    let archive = function.unwrap_or(Function::Average).name();
    let mut texts: Vec<String> = sources
        .iter()
        .map(|(name, _)| format!("DS:{name}:GAUGE:{step}:U:U"))
        .collect();
    texts.push(format!("RRA:{archive}:0.5:1:{rows}"));
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let file = |error: &dyn std::fmt::Display| MakeError::File(error.to_string());
    let smoothing = Smoothing::default();
    let definition = Definition::parse(seconds(first)?, step.into(), &texts, &smoothing);
    let database = create(&definition.map_err(|error| file(&error))?, |_, _| 0);
    let mut database = database.map_err(|error| file(&error))?;
    // A gap is one update, which has to count whatever its length.
    set_heartbeat(&mut database, u64::from(step).saturating_mul(rows));
    let made = portable::create(&database, None, &portable::Options::default(), Vec::new());
    let made = made.map_err(|error| file(&error))?.into_storage();
    let mut rrd = Rrd::open(made).map_err(|error| file(&error))?;

    // The place of each data source in the file.
    let mut places = vec![0; order.len()];
    for (place, &source) in order.iter().enumerate() {
        places[source] = place;
    }
    let mut readings = vec![Line::new(); names.len()];
    let mut next = first;
    for number in cells.steps_from(first) {
        for reading in &mut readings {
            reading.clear();
            reading.push(if function.is_none() { b"0" } else { b"U" });
        }
        if number > next {
            update(&mut rrd, seconds(number)?, &readings)?;
        }
        next = number + 1;
        for (source, result) in cells.of_step(number) {
            let reading = &mut readings[places[source as usize]];
            // The sum of an average can be too large for a number.
            if result.is_finite() {
                reading.clear();
                reading.shortest(result, 64);
            }
        }
        update(&mut rrd, seconds(next)?, &readings)?;
    }
    let bytes = rrd.into_storage();
    let mut source = Source::open(&bytes, None).map_err(|error| file(&error))?;
    set_heartbeat(&mut source.database, step.into());
    let bytes = convert(&source, options.target)
        .map_err(|error| file(&error))?
        .bytes;
    Ok(Made { bytes, sources })
}

fn update(rrd: &mut Rrd<Vec<u8>>, time: Time, readings: &[Line]) -> Result<(), MakeError> {
    let values: Vec<_> = readings
        .iter()
        .map(|reading| Measurement::Text(reading.as_bytes()))
        .collect();
    let sample = Sample {
        time,
        values: &values,
    };
    rrd.update(&sample)
        .map_err(|error| MakeError::File(error.to_string()))
}

/// Sets the seconds without a reading after which values are unknown.
fn set_heartbeat(database: &mut Database, seconds: u64) {
    for source in &mut database.sources {
        if let SourceKind::Measured { heartbeat, .. } = &mut source.kind {
            *heartbeat = seconds;
        }
    }
}

/// Names of data sources: each with what it stands for.
fn source_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    let mut known = HashSet::new();
    let allowed = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
        _ => '_',
    };
    names
        .map(|name| {
            let plain: String = name.chars().map(allowed).take(LONGEST_NAME).collect();
            let mut source = if plain.is_empty() {
                "_".to_string()
            } else {
                plain.clone()
            };
            for number in 2.. {
                if known.insert(source.clone()) {
                    break;
                }
                let end = format!("_{number}");
                let room = LONGEST_NAME - end.len();
                source = plain.chars().take(room).chain(end.chars()).collect();
            }
            (source, name.to_string())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_allowed_and_differ() {
        let names = [
            "a",
            "lttng_ust_statedump:start",
            "lttng_ust_statedump:end",
            "lttng_ust_statedump:end2",
            "",
            "\u{e9} x",
            "a_2",
            "a",
        ];
        let found: Vec<_> = source_names(names.into_iter()).into_iter().collect();
        let found: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "a",
            "lttng_ust_statedump",
            "lttng_ust_statedu_2",
            "lttng_ust_statedu_3",
            "_",
            "__x",
            "a_2",
            "a_3",
        ];
        assert_eq!(found, expected);
    }
}
