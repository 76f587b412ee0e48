//! Many databases in one table: how many there are of each kind.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use super::database::DatabaseInfo;
use super::text::{Style, Table};

/// Ages of databases: the time since their last update, in seconds, and how it is called.
const AGES: [(i64, &str); 6] = [
    (3600, "in the last hour"),
    (86_400, "in the last day"),
    (7 * 86_400, "in the last week"),
    (30 * 86_400, "in the last 30 days"),
    (365 * 86_400, "in the last year"),
    (i64::MAX, "more than a year ago"),
];

/// How many databases there are by machine, step, age and number of data sources, and how many could not be opened.
pub(super) fn summary(databases: &[&DatabaseInfo], damaged: usize, style: &Style) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    let mut table = Table::default();
    let bytes: u64 = databases.iter().map(|database| database.bytes).sum();
    let sources: usize = databases
        .iter()
        .map(|database| database.sources.len())
        .sum();
    let line = |key: &str, value: String| [key.to_string(), value];
    table.row(line("databases", style.count(databases.len() as u64)));
    table.row(line("bytes", style.count(bytes)));
    table.row(line("data sources", style.count(sources as u64)));
    table.row(line("not readable", style.count(damaged as u64)));
    let mut text = table.align(&[false, true]);
    let machine = |database: &DatabaseInfo| match &database.detection {
        Some(found) => found.machine.name().to_string(),
        None => database.version.to_string(),
    };
    let step =
        |database: &DatabaseInfo| (database.step, format!("{} s", style.count(database.step)));
    let age = |database: &DatabaseInfo| {
        let seconds = now.saturating_sub(database.last_update.0);
        let at = AGES
            .iter()
            .position(|(most, _)| seconds <= *most)
            .unwrap_or(AGES.len() - 1);
        (at, AGES[at].1.to_string())
    };
    text += &counts(
        "machine",
        databases,
        |database| (0, machine(database)),
        style,
    );
    text += &counts("step", databases, step, style);
    text += &counts("last update", databases, age, style);
    text
}

/// A table of how many databases there are of each kind, in the order of the kinds.
fn counts<K: Ord>(
    what: &str,
    databases: &[&DatabaseInfo],
    kind: impl Fn(&DatabaseInfo) -> (K, String),
    style: &Style,
) -> String {
    let mut by_kind: BTreeMap<(K, String), u64> = BTreeMap::new();
    for database in databases {
        *by_kind.entry(kind(database)).or_default() += 1;
    }
    let mut table = Table::default();
    table.header(&["databases", "%", what]);
    for ((_, name), count) in by_kind {
        let share = 100.0 * count as f64 / databases.len().max(1) as f64;
        table.row([style.count(count), format!("{share:.1}"), name]);
    }
    format!("\n{}", table.fit(&[true, true, false], style))
}
