//! Databases that are made up.

use kymo_machine::FloatOrder;
use kymo_rrd::model::rows::Grid;
use kymo_rrd::model::*;
use kymo_rrd::rpn::{Node, Operator, Program};
use kymo_rrd::{Database, Rows, Text, Time, Value};
use proptest::prelude::*;

/// A database and its values, in the order of its files.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) database: Database,
    values: Vec<u8>,
    by_source: Vec<u8>,
}

impl Made {
    fn new(database: Database, values: Vec<u64>) -> Self {
        let bytes = |values: &[u64]| values.iter().flat_map(|v| v.to_le_bytes()).collect();
        // All values of a data source together, with the values of the archives exchanged.
        let sources = database.sources.len();
        let mut by_source = Vec::new();
        let mut begin = 0;
        for archive in &database.archives {
            let end = begin + archive.rows as usize * sources;
            for source in 0..sources {
                by_source.extend(values[begin..end].iter().skip(source).step_by(sources));
            }
            begin = end;
        }
        Self {
            values: bytes(&values),
            by_source: bytes(&by_source),
            database,
        }
    }

    /// A database with values by the place of their row, of which the newest is also what
    /// the last update has prepared.
    pub(crate) fn filled(mut database: Database, value: impl Fn(usize) -> f64) -> Self {
        let sources = database.sources.len();
        let mut values = Vec::new();
        for (archive, state) in database.archives.iter().zip(&mut database.state.archives) {
            for row in 0..archive.rows as usize {
                values.extend(vec![value(row).to_bits(); sources]);
            }
            let newest = value(state.current_row as usize);
            for scratch in &mut state.scratch {
                scratch.set_value(Scratch::PRIMARY, Value::from(newest));
                scratch.set_value(Scratch::SECONDARY, Value::from(newest));
            }
        }
        Self::new(database, values)
    }

    fn grids(&self, grid: impl Fn(u64, u64, u64) -> Grid) -> Vec<Grid> {
        let mut offset = 0;
        let archives = self.database.archives.iter();
        archives
            .zip(&self.database.state.archives)
            .map(|(archive, state)| {
                let grid = grid(offset, archive.rows, state.current_row);
                offset += archive.rows * self.database.sources.len() as u64 * 8;
                grid
            })
            .collect()
    }

    /// The values as they lie in native files.
    pub(crate) fn rows(&self) -> Rows<'_> {
        let sources = self.database.sources.len();
        let grids = self
            .grids(|offset, rows, current| Grid::dense(offset, rows, current, sources).unwrap());
        Rows::new(&self.values, FloatOrder::Little, sources, grids).unwrap()
    }

    /// The same, lying otherwise.
    pub(crate) fn rows_by_source(&self) -> Rows<'_> {
        let sources = self.database.sources.len();
        let grids = self.grids(|offset, rows, current| Grid {
            row_stride: 8,
            source_stride: 8 * rows,
            ..Grid::dense(offset, rows, current, sources).unwrap()
        });
        Rows::new(&self.by_source, FloatOrder::Little, sources, grids).unwrap()
    }
}

/// Any bits: numbers, infinities, NaNs of all machines.
fn bits() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => any::<u64>(),
        1 => Just(0xfff8_0000_0000_0000),
        1 => Just(0x7ff7_ffff_ffff_ffff),
        1 => Just(f64::NEG_INFINITY.to_bits()),
        1 => Just((-0.0f64).to_bits()),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    bits().prop_map(Value::from_bits)
}

fn part() -> impl Strategy<Value = Value> {
    (0.0..=1.0f64).prop_map(Value::from)
}

fn count() -> impl Strategy<Value = u64> {
    any::<u32>().prop_map(u64::from)
}

fn reading() -> impl Strategy<Value = Reading> {
    prop::sample::select(&Reading::ALL)
}

fn program(own: usize) -> impl Strategy<Value = Program> {
    let simple = [
        Operator::Add,
        Operator::Limit,
        Operator::IsUnknown,
        Operator::Round,
    ];
    let node = prop_oneof![
        any::<i16>().prop_map(|number| Node::Number(Value::from(f64::from(number)))),
        (0..own as u32).prop_map(Node::Variable),
        (0..own as u32).prop_map(Node::PreviousOf),
        prop::sample::select(simple.to_vec()).prop_map(Node::Operator),
    ];
    prop::collection::vec(node, 1..=19).prop_map(|nodes| Program { nodes })
}

fn source(index: usize) -> impl Strategy<Value = DataSource> {
    let limits = prop_oneof![
        Just((Value::UNKNOWN, Value::UNKNOWN)),
        (-1e9..0.0, 1.0..1e300).prop_map(|(low, high)| (Value::from(low), Value::from(high))),
    ];
    let measured = (reading(), 1..=u64::from(u32::MAX), limits).prop_map(
        |(reading, heartbeat, (min, max))| SourceKind::Measured {
            reading,
            heartbeat,
            min,
            max,
        },
    );
    let kind = if index == 0 {
        measured.boxed()
    } else {
        prop_oneof![measured, program(index).prop_map(SourceKind::Compute)].boxed()
    };
    ("[a-zA-Z0-9_-]{1,17}", kind).prop_map(move |(name, kind)| DataSource {
        name: Text::from(format!("{name}{index}").as_str()),
        kind,
    })
}

/// The kinds of the archives: all kinds with links have what they link to.
fn kinds() -> impl Strategy<Value = Vec<ArchiveKind>> {
    let consolidated = (prop::sample::select(&Consolidation::ALL), part())
        .prop_map(|(function, xff)| ArchiveKind::Consolidated { function, xff });
    let season = (
        any::<bool>(),
        [part(), part(), part(), part()],
        value(),
        value(),
        1..=28u64,
    )
        .prop_map(
            |(multiplicative, [alpha, beta, gamma, part], above, below, window)| {
                let seasonal = |deviation| ArchiveKind::Seasonal {
                    deviation,
                    gamma,
                    smoothing_window: part,
                    smooth_row: 0,
                    predictions: ArchiveLink(0),
                };
                vec![
                    ArchiveKind::HwPredict {
                        multiplicative,
                        alpha,
                        beta,
                        period: Value::from(12.0),
                        seasonal: ArchiveLink(1),
                    },
                    seasonal(false),
                    seasonal(true),
                    ArchiveKind::DevPredict {
                        deviations: ArchiveLink(2),
                    },
                    ArchiveKind::Failures {
                        delta_positive: above,
                        delta_negative: below,
                        window,
                        threshold: 1,
                        deviations: ArchiveLink(2),
                    },
                ]
            },
        );
    let plain = prop::collection::vec(consolidated, 1..4);
    (prop::option::of(season), plain)
        .prop_map(|(season, plain)| [season.unwrap_or_default(), plain].concat())
}

fn scratch(kind: ArchiveKind, points: u64) -> impl Strategy<Value = Scratch> {
    (
        prop::array::uniform10(bits()),
        prop::array::uniform10(count()),
        0..=points,
    )
        .prop_map(move |(bits, counts, unknown)| {
            let mut scratch = Scratch(bits);
            for slot in 0..Scratch::SLOTS {
                match kind.slot(slot) {
                    Slot::Value => scratch.set_value(slot, Value::from_bits(bits[slot])),
                    Slot::Counter if slot == Scratch::UNKNOWN_POINTS => scratch.0[slot] = unknown,
                    Slot::Counter => scratch.0[slot] = counts[slot],
                    Slot::History | Slot::Unused => {}
                }
            }
            scratch
        })
}

fn archive(kind: ArchiveKind, sources: usize) -> impl Strategy<Value = (Archive, ArchiveState)> {
    (1..12u64, 1..100_000u64, any::<prop::sample::Index>()).prop_flat_map(
        move |(rows, points_per_row, current)| {
            let archive = Archive {
                kind: kind.clone(),
                rows,
                points_per_row,
            };
            let scratch = scratch(kind.clone(), points_per_row);
            prop::collection::vec(scratch, sources).prop_map(move |scratch| {
                let state = ArchiveState {
                    current_row: current.index(rows as usize) as u64,
                    scratch,
                };
                (archive.clone(), state)
            })
        },
    )
}

fn last_update(version: u8) -> impl Strategy<Value = Time> {
    (0..=i64::from(i32::MAX), 0..1_000_000u32).prop_map(move |(seconds, micros)| {
        let micros = if version < 3 { 0 } else { micros };
        Time::from_micros(seconds, micros).unwrap()
    })
}

/// A database as programs write them, with any values.
pub(crate) fn made() -> impl Strategy<Value = Made> {
    (1..4usize, kinds(), 1..=5u8, 1..100_000u64).prop_flat_map(|(sources, kinds, version, step)| {
        let definitions: Vec<_> = (0..sources).map(|index| source(index).boxed()).collect();
        let archives: Vec<_> = kinds
            .into_iter()
            .map(|kind| archive(kind, sources).boxed())
            .collect();
        let states = prop::collection::vec(("[0-9.]{1,29}|U", 0..=step, value()), sources);
        (definitions, archives, states, last_update(version)).prop_flat_map(
            move |(definitions, archives, states, last_update)| {
                let (archives, archive_states): (Vec<_>, Vec<_>) = archives.into_iter().unzip();
                let sources_states = states
                    .into_iter()
                    .map(|(reading, unknown_seconds, value)| SourceState {
                        last_reading: Text::from(reading.as_str()),
                        unknown_seconds,
                        value,
                    })
                    .collect();
                let rows: u64 = archives.iter().map(|archive| archive.rows).sum();
                let database = Database {
                    version,
                    step,
                    sources: definitions,
                    archives,
                    state: State {
                        last_update,
                        stray_micros: None,
                        sources: sources_states,
                        archives: archive_states,
                    },
                };
                prop::collection::vec(bits(), rows as usize * sources)
                    .prop_map(move |values| Made::new(database.clone(), values))
            },
        )
    })
}

/// A database of one data source and two archives.
pub(crate) fn example() -> Made {
    let archive = |function, rows| Archive {
        kind: ArchiveKind::Consolidated {
            function,
            xff: Value::from(0.5),
        },
        rows,
        points_per_row: 1,
    };
    let state = |current_row| ArchiveState {
        current_row,
        scratch: vec![Scratch::default()],
    };
    let database = Database {
        version: 3,
        step: 300,
        sources: vec![DataSource {
            name: Text::from("load"),
            kind: SourceKind::Measured {
                reading: Reading::Gauge,
                heartbeat: 600,
                min: Value::from(0.0),
                max: Value::UNKNOWN,
            },
        }],
        archives: vec![
            archive(Consolidation::Average, 10),
            archive(Consolidation::Max, 7),
        ],
        state: State {
            last_update: Time::from_micros(1_700_000_000, 250_000).unwrap(),
            stray_micros: None,
            sources: vec![SourceState {
                last_reading: Text::from("17"),
                unknown_seconds: 0,
                value: Value::from(340.0),
            }],
            archives: vec![state(3), state(6)],
        },
    };
    Made::filled(database, |row| 10.0 + row as f64)
}
