use proptest::prelude::*;

use super::*;

/// The tables as LTTng 2.16 creates them, without what is checked.
const TABLES: &str = "CREATE TABLE channels (id INTEGER PRIMARY KEY, name TEXT, type TEXT);
CREATE TABLE groups (id INTEGER, channel_id INTEGER, type TEXT, owner_id INTEGER, owner_name TEXT, value_type TEXT);
CREATE TABLE keys (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE entries (group_id INTEGER, part_id INTEGER, key_id INTEGER, value INTEGER, has_overflow INTEGER);
CREATE VIEW vmap AS SELECT 1;
BEGIN;
";

fn export(rows: &str) -> MapExport {
    let text = format!("{TABLES}{rows}");
    assert!(is_export(text.as_bytes()));
    MapExport::new(Path::new("maps.sql"), &Bytes::from(text.into_bytes()))
}

#[test]
fn counters_have_their_channels_groups_and_keys() {
    // In any order, with and without columns.
    let export = export(
        "INSERT INTO entries (group_id, part_id, key_id, value, has_overflow) VALUES (2, NULL, 1, -7, 1);
        INSERT INTO entries VALUES(1,1,1,5,0),(1,0,1,4,0);
        INSERT INTO keys (id, name) VALUES (1, 'it''s');
        INSERT INTO groups (id, channel_id, type, owner_id, owner_name, value_type) VALUES
            (1, 9, 'user-per-user', 1000, 'alice', 'signed-int-32');
        INSERT INTO groups VALUES (2, 9, 'shared', NULL, NULL, 'signed-int-32');
        INSERT INTO channels (id, name, type) VALUES (9, 'c', 'user');
        COMMIT;",
    );
    assert!(export.faults.is_empty(), "{:?}", export.faults);
    let names: Vec<_> = export
        .counters
        .iter()
        .map(|counter| (counter.name(), counter.value))
        .collect();
    assert_eq!(
        names,
        [
            ("c/shared/it's".to_owned(), -7),
            ("c/1000/it's/cpu 0".to_owned(), 4),
            ("c/1000/it's/cpu 1".to_owned(), 5),
        ]
    );
    assert_eq!(export.notes().len(), 2);
}

#[test]
fn damage_is_reported_and_the_rest_is_read() {
    let export = export(
        "INSERT INTO channels (id, name, type) VALUES (1, 'c', 'kernel');
        INSERT INTO groups VALUES (1, 1, 'kernel-global', NULL, NULL, 'signed-int-64');
        INSERT INTO keys VALUES (1, 'read');
        INSERT INTO entries VALUES (1, 0, 1, 3, 0);
        INSERT INTO entries VALUES (1, 0, 2, 3, 0);
        INSERT INTO entries VALUES (1, 0, 1, 'x', 0);
        INSERT INTO entries VALU",
    );
    assert_eq!(export.counters(), 1);
    assert_eq!(export.counters[0].name(), "c/read/cpu 0");
    assert_eq!(export.faults.len(), 4, "{:?}", export.faults);
}

proptest! {
    #[test]
    fn any_text_is_withstood(rows in "(INSERT INTO (keys|entries|groups|channels) VALUES|[(),;' 0-9]|\\PC|NULL|COMMIT;){0,60}") {
        let export = export(&rows);
        for number in 0..export.chunk_count(0) {
            let chunk = export.chunk(0, number).unwrap();
            let mut cursor = export.cursor(&chunk);
            while let Some(event) = cursor.next_event().unwrap() {
                event.visit(&mut kymo_model::Nothing).unwrap();
            }
        }
    }
}
