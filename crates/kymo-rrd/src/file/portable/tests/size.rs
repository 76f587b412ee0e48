//! How large files are.

use crate::file::portable::{self, Options};
use crate::model::{
    Archive, ArchiveKind, ArchiveState, Consolidation, DataSource, Database, Reading, Scratch,
    SourceKind, SourceState, State,
};
use crate::{Time, Value};

/// A database as people make them.
fn ordinary(sources: usize, rows: &[u64]) -> Database {
    let source = |number| DataSource {
        name: format!("source{number}").as_str().into(),
        kind: SourceKind::Measured {
            reading: Reading::Counter,
            heartbeat: 600,
            min: Value::ZERO,
            max: Value::UNKNOWN,
        },
    };
    let archive = |(place, &rows): (usize, &u64)| Archive {
        kind: ArchiveKind::Consolidated {
            function: Consolidation::ALL[place % 4],
            xff: Value::from(0.5),
        },
        rows,
        points_per_row: 1 + 5 * place as u64,
    };
    Database {
        version: 3,
        step: 300,
        sources: (0..sources).map(source).collect(),
        archives: rows.iter().enumerate().map(archive).collect(),
        state: State {
            last_update: Time::from_seconds(1_000_000_000),
            stray_micros: None,
            sources: vec![
                SourceState {
                    last_reading: "U".into(),
                    unknown_seconds: 0,
                    value: Value::UNKNOWN,
                };
                sources
            ],
            archives: vec![
                ArchiveState {
                    current_row: 0,
                    scratch: vec![Scratch::default(); sources],
                };
                rows.len()
            ],
        },
    }
}

/// The size of the file that an x86_64 machine makes: its head, definitions of data sources and
/// archives, time, preparations, row pointers, values.
fn native_size(sources: usize, rows: &[u64]) -> u64 {
    let sources = sources as u64;
    let archives = rows.len() as u64;
    let definitions = 128 + 120 * sources + 120 * archives;
    let state = 16 + 112 * sources + 80 * archives * sources + 8 * archives;
    definitions + state + rows.iter().sum::<u64>() * 8 * sources
}

#[test]
fn ordinary_files_are_within_2_percent_of_native_ones() {
    for sources in [1, 2, 3, 5, 10, 20] {
        for rows in [
            // As MRTG, Cacti, collectd and Munin make them; and small ones.
            &[600, 700, 775, 797][..],
            &[500, 600, 700, 775, 797, 500, 600, 700],
            &[1200, 1235, 1180, 1186, 1200, 1235, 1180, 1186, 1196],
            &[576, 432, 540, 450, 576, 432, 540, 450],
            &[2016, 1488, 366],
            &[300; 4],
            &[200; 6],
            &[200; 8],
            &[100; 4],
            &[100],
            &[100_000],
        ] {
            let database = ordinary(sources, rows);
            let file = portable::create(&database, None, &Options::default(), Vec::new());
            let size = file.unwrap().into_storage().len() as u64;
            let native = native_size(sources, rows);
            assert!(
                size * 100 <= native * 102,
                "{sources} data sources, rows {rows:?}: {size} bytes, native {native}"
            );
        }
    }
}

#[test]
fn sizes_are_those_of_the_document() {
    for (sources, rows) in [(1, &[600, 700, 775, 797][..]), (10, &[1000; 8])] {
        let database = ordinary(sources, rows);
        let file = portable::create(&database, None, &Options::default(), Vec::new());
        let size = file.unwrap().into_storage().len() as u64;
        let (sources, archives) = (sources as u64, rows.len() as u64);
        let values = 8 * rows.iter().sum::<u64>() * sources;
        let state = 160 * sources + 152 * archives + 80 * archives * sources;
        assert_eq!(size, 160 + state + values);
    }
}
