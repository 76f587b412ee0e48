//! What the engine refuses, and what it leaves then.

use kymo_machine::Machine;
use kymo_rrd::engine::{
    Definition, Measurement, Rrd, Sample, Smoothing, TemplateError, UpdateError, UpdateOptions,
    Wanted, create, fetch,
};
use kymo_rrd::file::native::write;
use kymo_rrd::{Database, Source, Time, file::portable};

const START: i64 = 1_000_000_000;

fn database(start: i64) -> Database {
    let texts = [
        "DS:level:GAUGE:20:U:U",
        "DS:count:COUNTER:20:U:U",
        "DS:twice:COMPUTE:level,2,*",
        "RRA:AVERAGE:0.5:1:6",
        "RRA:MAX:0.5:3:4",
    ];
    let start = Time::from_seconds(start);
    let definition = Definition::parse(start, 10, &texts, &Smoothing::default()).unwrap();
    create(&definition, |_, rows| rows - 1).unwrap()
}

fn portable_file(start: i64) -> Vec<u8> {
    let options = portable::Options::default();
    let file = portable::create(&database(start), None, &options, Vec::new());
    file.unwrap().into_storage()
}

fn native_file(start: i64, machine: &str) -> Vec<u8> {
    let portable = portable_file(start);
    let view = portable::read(&portable).unwrap();
    let machine = Machine::find(machine).unwrap();
    write(view.database(), &view.rows().unwrap(), machine).unwrap()
}

fn texts<'a>(texts: &[&'a str]) -> Vec<Measurement<'a>> {
    let bytes = texts.iter().map(|text| text.as_bytes());
    bytes.map(Measurement::Text).collect()
}

fn take(rrd: &mut Rrd<Vec<u8>>, after: i64, readings: &[&str]) -> Result<(), UpdateError> {
    rrd.update(&Sample {
        time: Time::from_seconds(START + after),
        values: &texts(readings),
    })
}

#[test]
fn what_is_refused_changes_nothing_in_a_portable_file() {
    let mut rrd = Rrd::open(portable_file(START)).unwrap();
    take(&mut rrd, 15, &["1", "5"]).unwrap();
    let before = rrd.into_storage();
    let mut rrd = Rrd::open(before.clone()).unwrap();
    assert!(matches!(
        take(&mut rrd, 15, &["2", "6"]),
        Err(UpdateError::Past { .. })
    ));
    assert!(matches!(
        take(&mut rrd, 20, &["2"]),
        Err(UpdateError::Count {
            found: 1,
            expected: 2
        })
    ));
    assert!(matches!(
        take(&mut rrd, 20, &["2", "x"]),
        Err(UpdateError::Reading { source: 1, .. })
    ));
    // Beyond what any file says of itself, and of what opening takes for a time.
    for time in [1 << 34, 1 << 50] {
        assert!(matches!(
            take(&mut rrd, time, &["2", "6"]),
            Err(UpdateError::OutOfRange { .. })
        ));
    }
    // A time that the nearest microsecond makes too late is not reported as if it were early enough.
    let late = Time::from_cdtime(u64::MAX);
    let values = texts(&["2", "6"]);
    let refused = rrd.update(&Sample {
        time: late,
        values: &values,
    });
    assert_eq!(
        refused.unwrap_err().to_string(),
        "found a time 17179869184 s after 1970, expected 0 to less than 2^34"
    );
    assert!(rrd.into_storage() == before);
}

#[test]
fn what_is_refused_leaves_readings_in_a_native_file_as_with_rrdtool() {
    let mut rrd = Rrd::open(native_file(START, "sparc32")).unwrap();
    take(&mut rrd, 15, &["1", "5"]).unwrap();
    take(&mut rrd, 20, &["2", "x"]).unwrap_err();
    let file = rrd.into_storage();
    let state = Source::open(&file, None).unwrap().database.state;
    let readings: Vec<_> = state
        .sources
        .iter()
        .map(|s| s.last_reading.to_string())
        .collect();
    assert_eq!(readings, ["2", "5", "U"]);
    assert_eq!(state.last_update, Time::from_seconds(START + 15));
}

#[test]
fn times_after_2038_are_refused_where_they_have_32_bits() {
    let start = i64::from(i32::MAX) - 5;
    for (machine, taken) in [("i386", false), ("armhf-time64", true), ("amd64", true)] {
        let file = native_file(start, machine);
        let mut rrd = Rrd::open(file.clone()).unwrap();
        for after in [0, 10, 20] {
            let outcome = take(&mut rrd, start - START + 11 + after, &["1", "5"]);
            assert_eq!(outcome.is_ok(), taken, "{machine}");
        }
        let same = rrd.into_storage() == file;
        assert_eq!(same, !taken);
    }
}

#[test]
fn samples_before_a_refused_one_are_taken() {
    let mut rrd = Rrd::open(portable_file(START)).unwrap();
    let values = texts(&["3", "7"]);
    let sample = |after| Sample {
        time: Time::from_seconds(START + after),
        values: &values,
    };
    let samples = [sample(15), sample(25), sample(20), sample(30)];
    let options = UpdateOptions::default();
    let (place, error) = rrd.update_all(&samples, &options).unwrap_err();
    assert!(place == 2 && matches!(error, UpdateError::Past { .. }));
    let last = |rrd: &Rrd<_>| rrd.last_update().seconds() - START;
    assert_eq!(last(&rrd), 25);
    let options = UpdateOptions {
        skip_past: true,
        ..options
    };
    assert_eq!(rrd.update_all(&samples, &options).unwrap(), 1);
    assert_eq!(last(&rrd), 30);
}

#[test]
fn templates_name_what_is_measured() {
    let mut rrd = Rrd::open(portable_file(START)).unwrap();
    let template = rrd.template(&["count"]).unwrap();
    let sample = Sample {
        time: Time::from_seconds(START + 15),
        values: &texts(&["9"]),
    };
    let options = UpdateOptions {
        template: Some(&template),
        ..UpdateOptions::default()
    };
    rrd.update_all(&[sample], &options).unwrap();
    let readings = |rrd: &mut Rrd<Vec<u8>>| {
        let sources = rrd.database().state.sources.iter();
        let readings = sources.map(|source| source.last_reading.to_string());
        readings.collect::<Vec<_>>()
    };
    assert_eq!(readings(&mut rrd), ["U", "9", "U"]);
    let unknown = TemplateError::Unknown("none".to_owned());
    assert_eq!(rrd.template(&["none"]), Err(unknown));

    // As with rrdtool, names may be specified twice, and readings of what is computed only kept.
    let template = rrd.template(&["twice", "level", "level"]).unwrap();
    let sample = Sample {
        time: Time::from_seconds(START + 16),
        values: &texts(&["5", "6", "7"]),
    };
    let options = UpdateOptions {
        template: Some(&template),
        ..options
    };
    rrd.update_all(&[sample], &options).unwrap();
    assert_eq!(readings(&mut rrd), ["7", "U", "5"]);
}

#[test]
fn the_archive_that_reaches_back_is_fetched() {
    let mut rrd = Rrd::open(portable_file(START)).unwrap();
    for after in (10..=100).step_by(10) {
        take(&mut rrd, after, &["4", &after.to_string()]).unwrap();
    }
    let file = rrd.into_storage();
    let source = Source::open(&file, None).unwrap();
    let rows = |function, start: i64, end: i64| -> Vec<(i64, Option<f64>)> {
        let wanted = Wanted {
            function,
            start: START + start,
            end: START + end,
            step: 1,
        };
        let fetched = fetch(&source.database, &source.rows, &wanted).unwrap();
        let rows = fetched.iter();
        rows.map(|(time, row)| {
            let value = row.and_then(|row| row.value(2)?.get());
            (time - START, value)
        })
        .collect()
    };
    let twice = Some(8.0);
    assert_eq!(
        rows("AVERAGE", 75, 95),
        [(80, twice), (90, twice), (100, twice)]
    );
    assert_eq!(rows("MAX", 85, 85), [(90, twice)]);
    // The rows of three points end at multiples of 30.
    assert_eq!(rows("MAX", 10, 50), [(20, twice), (50, twice), (80, twice)]);
    assert_eq!(rows("AVERAGE", 200, 210), [(210, None), (220, None)]);
    let wanted = Wanted {
        function: "MIN",
        start: 5,
        end: 4,
        step: 1,
    };
    assert!(fetch(&source.database, &source.rows, &wanted).is_none());
}

/// Seasons are smoothed after the last sample of a call, which may end no step itself: what this
/// changes is in the file too.
#[test]
fn smoothing_reaches_the_file_after_a_sample_within_a_step() {
    let definition = Definition::parse(
        Time::from_seconds(START),
        10,
        &["DS:x:GAUGE:20:U:U", "RRA:HWPREDICT:60:0.1:0.01:50"],
        &Smoothing::default(),
    );
    let database = create(&definition.unwrap(), |_, rows| rows - 1).unwrap();
    let options = portable::Options::default();
    let portable = portable::create(&database, None, &options, Vec::new());
    let portable = portable.unwrap().into_storage();
    let view = portable::read(&portable).unwrap();
    let machine = Machine::find("amd64").unwrap();
    let native = write(view.database(), &view.rows().unwrap(), machine).unwrap();

    let readings: Vec<String> = (0..320)
        .map(|number: i64| (number * number % 97).to_string())
        .collect();
    let values: Vec<_> = readings.iter().map(|text| texts(&[text])).collect();
    let mut file = native;
    // Pairs of which the second is 3 seconds later, and ends nothing.
    for (pair, values) in values.chunks(2).enumerate() {
        let time = START + 10 * (pair as i64 + 1);
        let samples = [(time, &values[0]), (time + 3, &values[1])].map(|(time, values)| Sample {
            time: Time::from_seconds(time),
            values,
        });
        let mut rrd = Rrd::open(file).unwrap();
        rrd.update_all(&samples, &UpdateOptions::default()).unwrap();
        let held = rrd.database().clone();
        file = rrd.into_storage();
        assert_eq!(Source::open(&file, None).unwrap().database, held);
    }
}
