//! Databases, rows and updates that are made up by chance.

use kymo_io::Storage;

use crate::file::portable::{self, File, Update};
use crate::model::rows::{FloatOrder, Grid};
use crate::model::{
    Archive, ArchiveKind, ArchiveLink, ArchiveState, Consolidation, DataSource, Database, Reading,
    Scratch, Slot, SourceKind, SourceState, State,
};
use crate::rpn::{Node, Operator, Program};
use crate::{Rows, Text, Time, Value};

/// A source of chance that a seed decides.
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number (splitmix64).
    pub(super) fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below another one.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.any() % end as u64) as usize
    }

    pub(super) fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub(super) fn value(&mut self) -> Value {
        match self.below(8) {
            0 => Value::UNKNOWN,
            1 => Value::from(-0.0),
            2 => Value::from(f64::INFINITY),
            // Bits of any NaN among them.
            3 => Value::from_bits(self.any()),
            _ => Value::from(self.below(10_000) as f64 / 8.0),
        }
    }

    pub(super) fn values(&mut self, count: usize) -> Vec<Value> {
        (0..count).map(|_| self.value()).collect()
    }

    fn text(&mut self, longest: usize) -> Text {
        let length = self.below(longest + 1);
        let bytes: Vec<_> = (0..length).map(|_| 1 + (self.any() % 255) as u8).collect();
        Text::new(&bytes)
    }

    fn time(&mut self) -> Time {
        match self.below(3) {
            0 => Time::from_cdtime(self.any()),
            _ => Time::from_seconds(self.below(2_000_000_000) as i64),
        }
    }
}

fn link(chance: &mut Chance) -> ArchiveLink {
    ArchiveLink([-1, i32::MAX.into(), 0, chance.any() as i64][chance.below(4)])
}

fn archive_kind(chance: &mut Chance) -> ArchiveKind {
    match chance.below(9) {
        0..=3 => ArchiveKind::Consolidated {
            function: Consolidation::ALL[chance.below(4)],
            xff: chance.value(),
        },
        4 => ArchiveKind::HwPredict {
            multiplicative: chance.one_in(2),
            alpha: chance.value(),
            beta: chance.value(),
            period: chance.value(),
            seasonal: link(chance),
        },
        5 | 6 => ArchiveKind::Seasonal {
            deviation: chance.one_in(2),
            gamma: chance.value(),
            smoothing_window: chance.value(),
            smooth_row: chance.any(),
            predictions: link(chance),
        },
        7 => ArchiveKind::DevPredict {
            deviations: link(chance),
        },
        _ => ArchiveKind::Failures {
            delta_positive: chance.value(),
            delta_negative: chance.value(),
            window: chance.any(),
            threshold: chance.any(),
            deviations: link(chance),
        },
    }
}

fn source(chance: &mut Chance, sources: usize) -> DataSource {
    let kind = if chance.one_in(4) {
        let node = |chance: &mut Chance| match chance.below(4) {
            0 => Node::Number(chance.value()),
            1 => Node::Variable(chance.below(sources) as u32),
            2 => Node::PreviousOf(chance.below(sources) as u32),
            _ => Node::Operator(Operator::ALL[chance.below(Operator::ALL.len())]),
        };
        let nodes = (0..chance.below(40)).map(|_| node(chance)).collect();
        SourceKind::Compute(Program { nodes })
    } else {
        SourceKind::Measured {
            reading: Reading::ALL[chance.below(6)],
            heartbeat: chance.any(),
            min: chance.value(),
            max: chance.value(),
        }
    };
    DataSource {
        name: chance.text(30),
        kind,
    }
}

/// The slots that a kind uses, by chance; sometimes one that it does not.
fn scratch(chance: &mut Chance, kind: &ArchiveKind, strays: bool) -> Scratch {
    let mut scratch = Scratch::default();
    for slot in 0..Scratch::SLOTS {
        scratch.0[slot] = match kind.slot(slot) {
            Slot::Value => chance.value().to_bits(),
            Slot::Counter | Slot::History => chance.any(),
            Slot::Unused if strays && chance.one_in(20) => chance.any(),
            Slot::Unused => 0,
        };
    }
    scratch
}

/// Any database that a portable file holds: small, of all kinds.
pub(super) fn database(chance: &mut Chance) -> Database {
    let sources = 1 + chance.below(3);
    let archives = 1 + chance.below(4);
    let sources: Vec<_> = (0..sources).map(|_| source(chance, sources)).collect();
    let archives: Vec<_> = (0..archives)
        .map(|_| Archive {
            kind: archive_kind(chance),
            rows: 1 + chance.below(7) as u64,
            points_per_row: 1 + chance.below(9) as u64,
        })
        .collect();
    let state = State {
        last_update: chance.time(),
        stray_micros: chance.one_in(8).then(|| chance.any() as i64),
        sources: sources
            .iter()
            .map(|_| SourceState {
                last_reading: chance.text(45),
                unknown_seconds: chance.any(),
                value: chance.value(),
            })
            .collect(),
        archives: archives
            .iter()
            .map(|archive| ArchiveState {
                current_row: chance.below(archive.rows as usize) as u64,
                scratch: sources
                    .iter()
                    .map(|_| scratch(chance, &archive.kind, true))
                    .collect(),
            })
            .collect(),
    };
    Database {
        version: 1 + chance.below(5) as u8,
        step: 1 + chance.any() / 2,
        sources,
        archives,
        state,
    }
}

/// The values of all archives, each row by row as they lie in the file.
pub(super) type Values = Vec<Vec<Value>>;

pub(super) fn values(chance: &mut Chance, database: &Database) -> Values {
    let sources = database.sources.len();
    let archives = database.archives.iter();
    archives
        .map(|archive| chance.values(archive.rows as usize * sources))
        .collect()
}

/// The bytes and places of values in some order, every unknown one with another NaN, as files of
/// other machines have them.
pub(super) fn foreign(
    chance: &mut Chance,
    database: &Database,
    values: &Values,
    order: FloatOrder,
) -> (Vec<u8>, Vec<Grid>) {
    let mut bytes = vec![0; chance.below(9)];
    let mut grids = Vec::new();
    for (index, values) in values.iter().enumerate() {
        let (rows, current) = (
            database.archives[index].rows,
            database.state.archives[index].current_row,
        );
        let offset = bytes.len() as u64;
        grids.push(Grid::dense(offset, rows, current, database.sources.len()).unwrap());
        for value in values {
            let bits = if value.is_unknown() {
                0x7ff0_0000_0000_0001 | chance.any()
            } else {
                value.to_bits()
            };
            // A NaN of any sign and payload; not every bit pattern above is one.
            let bits = if Value::from_bits(bits) == *value {
                bits
            } else {
                value.to_bits()
            };
            bytes.extend(match order {
                FloatOrder::Little => bits.to_le_bytes(),
                FloatOrder::Big => bits.to_be_bytes(),
                FloatOrder::SwappedWords => bits.rotate_left(32).to_le_bytes(),
            });
        }
    }
    (bytes, grids)
}

/// All that a file holds: what must be as before or after an update.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Picture {
    pub(super) database: Database,
    pub(super) values: Values,
}

impl Picture {
    /// What the bytes of a file hold.
    pub(super) fn of(bytes: &[u8]) -> Result<Self, portable::Error> {
        let view = portable::read(bytes)?;
        let database = view.database().clone();
        let rows = view.rows()?;
        let values = physical(&database, &rows);
        Ok(Self { database, values })
    }

    /// What a file holds.
    pub(super) fn of_file<S: Storage>(file: &File<S>) -> Self {
        let database = file.database().clone();
        let archives = 0..database.archives.len();
        let values = archives.map(|archive| file.values(archive).unwrap().unwrap());
        Self {
            values: values.collect(),
            database,
        }
    }
}

/// The values as they lie in a file, of rows that count from the oldest.
pub(super) fn physical(database: &Database, rows: &Rows<'_>) -> Values {
    let sources = database.sources.len();
    let archives = database.archives.iter().zip(&database.state.archives);
    archives
        .enumerate()
        .map(|(index, (archive, state))| {
            let mut values = vec![Value::ZERO; archive.rows as usize * sources];
            for (age, row) in rows.iter(index).enumerate() {
                let row_number = (state.current_row as usize + 1 + age) % archive.rows as usize;
                for (source, value) in row.values().enumerate() {
                    values[row_number * sources + source] = value;
                }
            }
            values
        })
        .collect()
}

/// A file that was made up, and what it holds.
pub(super) fn file(chance: &mut Chance) -> (Vec<u8>, Picture) {
    let database = database(chance);
    let values = values(chance, &database);
    let (bytes, grids) = foreign(chance, &database, &values, FloatOrder::Big);
    let rows = Rows::new(&bytes, FloatOrder::Big, database.sources.len(), grids).unwrap();
    let options = portable::Options {
        reading_size: 56,
        journal_size: [0, 2000][chance.below(2)],
        ..Default::default()
    };
    let file = portable::create(&database, Some(&rows), &options, Vec::new()).unwrap();
    (file.into_storage(), Picture { database, values })
}

/// Changes anything that an update can change: state, rows (more than there are, too), whole
/// archives. Does the same to the picture. The journal may not have room for it.
pub(super) fn change<S: Storage>(
    chance: &mut Chance,
    update: &mut Update<'_, S>,
    picture: &mut Picture,
) {
    change_state(chance, update, picture);
    let sources = picture.database.sources.len();
    for archive in 0..picture.database.archives.len() {
        let kind = &picture.database.archives[archive].kind;
        let seasonal = matches!(kind, ArchiveKind::Seasonal { .. });
        for _ in 0..chance.below(4) {
            let rows = picture.database.archives[archive].rows as usize;
            let state = &mut picture.database.state.archives[archive];
            match chance.below(6) {
                0 if seasonal => {
                    let values = chance.values(rows * sources);
                    update.rewrite(archive, values.clone()).unwrap();
                    picture.values[archive] = values;
                }
                1 => {
                    let row = chance.below(rows) as u64;
                    state.current_row = row;
                    update.state_mut().archives[archive].current_row = row;
                }
                action => {
                    let values = match action {
                        2 => scratch_values(state, Scratch::PRIMARY),
                        3 => scratch_values(state, Scratch::SECONDARY),
                        _ => chance.values(sources),
                    };
                    let count = chance.below(if action == 2 { 20 } else { 3 });
                    update.write_rows(archive, count as u64, &values).unwrap();
                    for _ in 0..count {
                        let row = (state.current_row as usize + 1) % rows;
                        state.current_row = row as u64;
                        let begin = row * sources;
                        picture.values[archive][begin..begin + sources].copy_from_slice(&values);
                    }
                }
            }
        }
    }
}

fn scratch_values(state: &ArchiveState, slot: usize) -> Vec<Value> {
    let scratch = state.scratch.iter();
    scratch.map(|scratch| scratch.value(slot)).collect()
}

fn change_state<S: Storage>(
    chance: &mut Chance,
    update: &mut Update<'_, S>,
    picture: &mut Picture,
) {
    let state = &mut picture.database.state;
    state.last_update = chance.time();
    if chance.one_in(4) {
        state.stray_micros = None;
    }
    for source in &mut state.sources {
        if chance.one_in(2) {
            source.last_reading = chance.text(56);
            source.unknown_seconds = chance.any();
            source.value = chance.value();
        }
    }
    for (archive, state) in picture.database.archives.iter().zip(&mut state.archives) {
        for own in &mut state.scratch {
            let new = scratch(chance, &archive.kind, false);
            for slot in 0..Scratch::SLOTS {
                if archive.kind.slot(slot) != Slot::Unused {
                    own.0[slot] = new.0[slot];
                }
            }
        }
    }
    *update.state_mut() = state.clone();
}
