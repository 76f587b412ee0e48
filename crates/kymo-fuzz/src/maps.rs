//! Exports of LTTng's maps, and alignment files.

use std::collections::BTreeSet;
use std::path::Path;

use kymo::open::Corrections;
use kymo_io::Bytes;
use kymo_maps::MapExport;
use kymo_model::{Cursor, Event, Nothing, Recording};

/// An export: each counter is walked over once, has room in the bytes, and faults lie within them. The same bytes as an
/// alignment file, which is read again as it was written.
pub(crate) fn maps(data: &[u8]) {
    let _ = kymo_maps::is_export(data);
    let export = MapExport::new(Path::new("/nonexistent"), &Bytes::from(data.to_vec()));
    assert!(export.counters() <= data.len() as u64 / 4);
    let mut count = 0;
    for number in 0..export.chunk_count(0) {
        let chunk = export.chunk(0, number).expect("a chunk");
        let mut cursor = export.cursor(&chunk);
        let mut numbers = BTreeSet::new();
        while let Ok(Some(event)) = cursor.next_event() {
            event.visit(&mut Nothing).expect("it is in memory");
            assert!(numbers.insert(event.number()));
            assert!(event.begin_bit() / 8 <= data.len() as u64 * 3);
            count += 1;
        }
    }
    assert_eq!(count, export.counters());
    assert!(export.faults().len() <= 100);
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(corrections) = Corrections::parse(text)
        && let Ok(written) = corrections.text()
    {
        let read = Corrections::parse(&written).expect("it is what was written");
        assert_eq!(read.paths.len(), corrections.paths.len());
    }
}
