//! Threads that update the same databases through the library, each with a file of its own.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use kymo_io::{Locking, Shared};
use kymo_machine::Machine;
use kymo_rrd::engine::{Definition, Measurement, Rrd, Sample, Smoothing, UpdateError, create};
use kymo_rrd::file::convert::{Target, convert};
use kymo_rrd::{Source, Time, file::portable};

const START: i64 = 1_000_000_000;
const THREADS: usize = 24;
const TIMES: i64 = 40;

fn file(native: bool) -> Vec<u8> {
    let texts = [
        "DS:level:GAUGE:20:0:U",
        "RRA:AVERAGE:0.5:1:6",
        "RRA:MAX:0.5:3:40",
    ];
    let start = Time::from_seconds(START);
    let definition = Definition::parse(start, 10, &texts, &Smoothing::default()).unwrap();
    let database = create(&definition, |_, rows| rows - 1).unwrap();
    let options = portable::Options::default();
    let file = portable::create(&database, None, &options, Vec::new()).unwrap();
    let file = file.into_storage();
    if !native {
        return file;
    }
    let source = Source::open(&file, None).unwrap();
    convert(&source, Target::Native(Machine::native()))
        .unwrap()
        .bytes
}

/// Updates with readings that depend on the time alone, so that it does not matter whose update is taken.
fn update(rrd: &mut Rrd<impl kymo_io::Storage>, number: i64) -> Result<(), UpdateError> {
    rrd.update(&Sample {
        time: Time::from_seconds(START + 10 * number),
        values: &[Measurement::Float((number * number) as f64)],
    })
}

/// Writes all times to all files, and counts how many were taken.
fn write(paths: &[&Path], taken: &AtomicUsize) {
    let open = |path: &&Path| Rrd::open(Shared::open_locked(path, Locking::Wait).unwrap()).unwrap();
    let mut files: Vec<_> = paths.iter().map(open).collect();
    for rrd in &mut files {
        rrd.storage_mut().unlock().unwrap();
    }
    for number in 1..=TIMES {
        for (rrd, path) in files.iter_mut().zip(paths) {
            assert!(rrd.storage_mut().lock_at(path, Locking::Wait).unwrap());
            rrd.refresh().unwrap();
            match update(rrd, number) {
                Ok(()) => taken.fetch_add(1, Ordering::Relaxed),
                Err(UpdateError::Past { .. }) => 0,
                Err(error) => panic!("{error}"),
            };
            rrd.storage_mut().unlock().unwrap();
        }
    }
}

#[test]
fn nothing_is_lost_that_was_taken() {
    for native in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let paths = [0, 1, 2].map(|number| folder.path().join(number.to_string()));
        for path in &paths {
            std::fs::write(path, file(native)).unwrap();
        }
        let paths = paths.each_ref().map(|path| path.as_path());
        let taken = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                // Some threads write one file, others all of them.
                let mine = if thread % 2 == 0 {
                    &paths[..1]
                } else {
                    &paths[..]
                };
                let taken = &taken;
                scope.spawn(move || write(mine, taken));
            }
        });
        // The times of a thread rise, but another may have been ahead: then none of its updates is accepted.
        let taken = taken.into_inner();
        assert!((paths.len()..=paths.len() * TIMES as usize).contains(&taken));
        for path in paths {
            let bytes = std::fs::read(path).unwrap();
            let source = Source::open(&bytes, None).unwrap();
            let last = source.database.state.last_update;
            assert_eq!(last, Time::from_seconds(START + 10 * TIMES));
            assert_eq!(
                source.database.state.sources[0].last_reading.to_str(),
                Some("1600")
            );
        }
    }
}

/// One writer after the other leaves what a single one does.
#[test]
fn writers_take_turns() {
    for native in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, file(native)).unwrap();
        let turn = std::sync::Mutex::new(1);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let mut rrd = Rrd::open(Shared::open_locked(&path, Locking::Wait).unwrap());
                    let rrd = rrd.as_mut().unwrap();
                    rrd.storage_mut().unlock().unwrap();
                    loop {
                        let mut turn = turn.lock().unwrap();
                        if *turn > TIMES {
                            return;
                        }
                        // Only one thread is here, though others may just open the file; it must be seen
                        // as the last one left it.
                        assert!(rrd.storage_mut().lock_at(&path, Locking::Wait).unwrap());
                        rrd.refresh().unwrap();
                        update(rrd, *turn).unwrap();
                        rrd.storage_mut().unlock().unwrap();
                        *turn += 1;
                    }
                });
            }
        });
        let mut alone = Rrd::open(file(native)).unwrap();
        for number in 1..=TIMES {
            update(&mut alone, number).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), alone.into_storage());
    }
}
