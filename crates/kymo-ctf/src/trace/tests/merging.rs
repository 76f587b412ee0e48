//! Several files of a stream, several directories of a trace.

use super::*;

#[test]
fn rotated_files_are_one_stream_in_time_order() {
    let (late, early) = (
        Packet::new(1, 50, 60, &[(55, 3)]),
        Packet::new(1, 10, 20, &[(15, 1)]),
    );
    let middle = Packet::new(1, 30, 40, &[(35, 2)]);
    let other = Packet::new(2, 0, 90, &[(1, 9)]);
    let trace = usual(&[
        ("chan_0_0", late.bytes()),
        ("chan_0_1", bytes_of(&[early, middle])),
        ("chan_1_0", other.bytes()),
    ]);
    assert_eq!(trace.faults(), []);
    // The name is that of the file that begins first.
    let streams: Vec<_> = trace.streams().iter().map(|s| (s.id, &*s.name)).collect();
    assert_eq!(
        streams,
        [(Some(1), "/trace/chan_0_1"), (Some(2), "/trace/chan_1_0")]
    );
    assert_eq!(events(&trace, 0), [(15, 1), (35, 2), (55, 3)]);
    let numbers: Vec<_> = trace
        .chunks(0)
        .map(|chunk| (chunk.stream, chunk.number))
        .collect();
    assert_eq!(numbers, [(0, 0), (0, 1), (0, 2)]);
    assert_eq!(trace.chunk(1, 0).unwrap().stream, 1);
}

#[test]
fn directories_are_one_trace_with_the_largest_metadata() {
    let more = format!(
        "{USUAL} event {{ id = 7; stream_id = 3; name = \"more\"; fields := struct {{ u8 x; }}; }};"
    );
    let shared = Packet::new(0, 10, 20, &[(15, 1)]);
    let mut later = Packet::new(0, 30, 40, &[(35, 2)]).bytes();
    later[HEAD_BYTES] = 7;
    let trace = trace(vec![
        directory(
            "/session/b",
            &more,
            &[("file", [shared.bytes(), later].concat())],
        ),
        directory("/session/a", USUAL, &[("file", shared.bytes())]),
        directory("/session/a", USUAL, &[("file", shared.bytes())]),
    ]);
    assert_eq!(trace.path(), std::path::Path::new("/session"));
    assert_eq!(trace.event_classes().len(), 3);
    assert_eq!(trace.streams().len(), 1);
    assert_eq!(&*trace.streams()[0].name, "/session/a/file");
    // The packet that both have comes once: overlapping snapshots have many such.
    assert_eq!(events(&trace, 0), [(15, 1), (35, 2)]);
}

#[test]
fn without_times_files_are_streams() {
    let metadata = "
        trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u8 stream_instance_id; }; };
        stream { event.header := struct { u8 id; }; };
        event { id = 0; fields := struct { u8 x; }; };
    ";
    let trace = trace(vec![directory(
        "/t",
        metadata,
        &[("a", vec![4, 0, 1]), ("b", vec![4, 0, 2])],
    )]);
    assert_eq!(trace.streams().len(), 2);
    assert_eq!(events(&trace, 1), [(u64::MAX, 2)]);
}

#[test]
fn a_trace_is_called_after_its_host_and_place() {
    let host = format!("{USUAL} env {{ hostname = \"vm\"; }};");
    let name = |metadata: &str, place: Option<&str>| {
        let mut trace = one_file(metadata, vec![]);
        if let Some(place) = place {
            trace.set_place(place);
        }
        trace.name().map(str::to_string)
    };
    assert_eq!(name(&host, None).as_deref(), Some("vm"));
    assert_eq!(
        name(&host, Some("ust/64-bit")).as_deref(),
        Some("vm/ust/64-bit")
    );
    assert_eq!(name(USUAL, Some("ust")).as_deref(), Some("ust"));
    assert_eq!(name(USUAL, None), None);
    let trace = one_file(USUAL, vec![]);
    assert_eq!(trace.uid(), Some("01010101-0101-0101-0101-010101010101"));
    assert!(trace.metadata_text().contains("trace {"));
}

#[test]
fn no_directory_is_an_error() {
    let error = Trace::new(vec![], &Options::default()).unwrap_err();
    assert!(error.to_string().contains("no directory"));
    let error = Trace::open(&["/nowhere/at/all".into()], &Options::default()).unwrap_err();
    assert!(error.to_string().contains("/nowhere/at/all"));
}
