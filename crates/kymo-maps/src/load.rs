//! From the tables of an export to counters.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use kymo_model::{FaultCode, FaultReport};

use crate::statements::{Cell, Insert, Statement, Statements};

/// Faults that are listed; of more, only their number is known.
const MOST_FAULTS: usize = 100;

/// What several counters have in common: their channel and group.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    pub(crate) channel: String,
    /// `kernel` or `user`.
    pub(crate) domain: String,
    /// `kernel-global`, `user-per-user`, `user-per-process` or `shared`.
    pub(crate) kind: String,
    /// The user or process.
    pub(crate) owner: Option<i64>,
    pub(crate) owner_name: Option<String>,
}

/// A counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) group: Arc<Group>,
    pub(crate) key: Arc<str>,
    /// The CPU; `None` of one that all share.
    pub(crate) cpu: Option<i64>,
    pub(crate) value: i64,
    pub(crate) has_overflowed: bool,
    /// Where it is in the file, in bytes.
    pub(crate) offset: usize,
}

impl Counter {
    /// The name that distinguishes it from all others of the file.
    pub(crate) fn name(&self) -> String {
        let mut name = self.group.channel.clone();
        if let Some(owner) = self.group.owner {
            name.push_str(&format!("/{owner}"));
        }
        if self.group.kind == "shared" {
            name.push_str("/shared");
        }
        name.push('/');
        name.push_str(&self.key);
        if let Some(cpu) = self.cpu {
            name.push_str(&format!("/cpu {cpu}"));
        }
        name
    }

    fn order(&self) -> (&Group, &str, Option<i64>) {
        (&self.group, &self.key, self.cpu)
    }
}

/// What an export has.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// By channel, owner, key and CPU.
    pub(crate) counters: Vec<Counter>,
    pub(crate) faults: Vec<FaultReport>,
}

/// The columns of a table, in the order in which they are created.
fn columns(table: &str) -> &'static [&'static str] {
    match table {
        "channels" => &["id", "name", "type"],
        "groups" => &[
            "id",
            "channel_id",
            "type",
            "owner_id",
            "owner_name",
            "value_type",
        ],
        "keys" => &["id", "name"],
        "entries" => &["group_id", "part_id", "key_id", "value", "has_overflow"],
        _ => &[],
    }
}

/// A row by the names of its columns.
struct Row<'i, 's>(&'i Insert<'s>);

impl Row<'_, '_> {
    fn cell(&self, name: &str) -> Option<&Cell<'_>> {
        let position = match self.0.columns.is_empty() {
            true => columns(self.0.table)
                .iter()
                .position(|column| *column == name)?,
            false => self.0.columns.iter().position(|column| *column == name)?,
        };
        self.0.cells.get(position)
    }

    fn integer(&self, name: &str) -> Option<i64> {
        match self.cell(name)? {
            Cell::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// A number, or none; `None` where it is neither.
    fn optional(&self, name: &str) -> Option<Option<i64>> {
        match self.cell(name)? {
            Cell::Integer(number) => Some(Some(*number)),
            Cell::Null => Some(None),
            Cell::Text(_) => None,
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        match self.cell(name)? {
            Cell::Text(text) => Some(text.to_string()),
            _ => None,
        }
    }
}

/// A row of `groups`.
struct GroupRow {
    channel: i64,
    kind: String,
    owner: Option<i64>,
    owner_name: Option<String>,
}

/// A row of `entries`.
struct EntryRow {
    offset: usize,
    group: i64,
    key: i64,
    cpu: Option<i64>,
    value: i64,
    has_overflowed: bool,
}

#[derive(Default)]
struct Tables {
    channels: HashMap<i64, (String, String)>,
    groups: HashMap<i64, GroupRow>,
    keys: HashMap<i64, Arc<str>>,
    entries: Vec<EntryRow>,
}

impl Tables {
    /// Adds a row; `None` where it is not one of its table.
    fn add(&mut self, insert: &Insert<'_>, offset: usize) -> Option<()> {
        let row = Row(insert);
        match insert.table {
            "channels" => {
                let channel = (row.text("name")?, row.text("type")?);
                self.channels.insert(row.integer("id")?, channel);
            }
            "groups" => {
                let group = GroupRow {
                    channel: row.integer("channel_id")?,
                    kind: row.text("type")?,
                    owner: row.optional("owner_id")?,
                    owner_name: row.text("owner_name"),
                };
                self.groups.insert(row.integer("id")?, group);
            }
            "keys" => {
                let name = row.text("name")?.into();
                self.keys.insert(row.integer("id")?, name);
            }
            "entries" => self.entries.push(EntryRow {
                offset,
                group: row.integer("group_id")?,
                key: row.integer("key_id")?,
                cpu: row.optional("part_id")?,
                value: row.integer("value")?,
                has_overflowed: row.integer("has_overflow")? != 0,
            }),
            // Another table of a database that the export was read into.
            _ => {}
        }
        Some(())
    }
}

/// Writes an export without the rows of `entries` that are not to stay, by where their statements begin. A statement
/// goes with the white space behind it.
pub(crate) fn cut(
    bytes: &[u8],
    stays: impl Fn(usize) -> bool,
    out: &mut impl Write,
) -> io::Result<()> {
    // Places in other text would not be those in the file.
    let text = std::str::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the export is not UTF-8"))?;
    let mut begins = Statements::new(text).peekable();
    let mut written = 0;
    while let Some((begin, statement)) = begins.next() {
        let is_counter = |row: &Insert<'_>| row.table == "entries";
        let goes = match &statement {
            Statement::Insert(rows) => rows.iter().any(is_counter) && !stays(begin),
            _ => false,
        };
        if goes {
            out.write_all(&bytes[written..begin])?;
            written = begins.peek().map_or(bytes.len(), |(next, _)| *next);
        }
    }
    out.write_all(&bytes[written..])
}

/// Reads an export.
pub(crate) fn load(path: &Path, bytes: &[u8]) -> Loaded {
    let text = String::from_utf8_lossy(bytes);
    let mut loaded = Loaded::default();
    let mut more = 0_u64;
    let file = Arc::new(path.to_path_buf());
    let mut fault = |code, offset: usize, message: String| {
        if loaded.faults.len() >= MOST_FAULTS {
            more += 1;
            return;
        }
        loaded.faults.push(FaultReport::new(
            code,
            Arc::clone(&file),
            offset as u64,
            message,
        ));
    };
    let mut tables = Tables::default();
    let mut is_committed = false;
    for (offset, statement) in Statements::new(&text) {
        match statement {
            Statement::Insert(rows) => {
                for row in &rows {
                    if tables.add(row, offset).is_none() {
                        let message = format!(
                            "expected a row of `{}` as `lttng export-maps` writes it; it is left out",
                            row.table
                        );
                        fault(FaultCode::Statement, offset, message);
                    }
                }
            }
            Statement::Commit => is_committed = true,
            Statement::Other => {}
            Statement::Wrong => fault(
                FaultCode::Statement,
                offset,
                "expected `INSERT INTO table (columns) VALUES (values);`; it is left out"
                    .to_owned(),
            ),
        }
    }
    if !is_committed {
        let message = "the export ends without `COMMIT`: counters may be missing".to_owned();
        fault(FaultCode::Truncated, bytes.len(), message);
    }
    let mut groups: HashMap<i64, Arc<Group>> = HashMap::new();
    for (id, row) in tables.groups {
        if let Some((channel, domain)) = tables.channels.get(&row.channel) {
            let group = Group {
                channel: channel.clone(),
                domain: domain.clone(),
                kind: row.kind,
                owner: row.owner,
                owner_name: row.owner_name,
            };
            groups.insert(id, Arc::new(group));
        }
    }
    let mut counters = Vec::with_capacity(tables.entries.len());
    for entry in tables.entries {
        match (groups.get(&entry.group), tables.keys.get(&entry.key)) {
            (Some(group), Some(key)) => counters.push(Counter {
                group: Arc::clone(group),
                key: Arc::clone(key),
                cpu: entry.cpu,
                value: entry.value,
                has_overflowed: entry.has_overflowed,
                offset: entry.offset,
            }),
            _ => fault(
                FaultCode::Statement,
                entry.offset,
                format!(
                    "a counter of group {} and key {}, which the export does not have; it is left out",
                    entry.group, entry.key
                ),
            ),
        }
    }
    counters.sort_by(|a, b| a.order().cmp(&b.order()));
    loaded.counters = counters;
    if let Some(last) = loaded.faults.last_mut().filter(|_| more > 0) {
        last.message
            .push_str(&format!("; {more} more faults are not listed"));
    }
    loaded
}
