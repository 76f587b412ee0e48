//! All formats, from a trace to the text.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use kymo_model::FaultReport;
use tempfile::TempDir;

use super::{
    Palette, Sink, Times, WallOptions, csv::Csv, details::Details, details::DetailsOptions,
    json::Json, pretty,
};
use crate::pipeline::{self, Everything, Output};
use crate::{AnyRecording, open};

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; } := u8;
typealias integer { size = 32; } := u32;
typealias integer { size = 64; map = clock.mono.value; } := time;
trace {
    major = 1; minor = 8; byte_order = le; uuid = "2a6422d0-6cee-11e0-8c08-cb07d7b3a564";
    packet.header := struct { u32 magic; u8 stream_id; };
};
env { hostname = "box"; vpid = 7; note = ""; };
clock { name = mono; freq = 1000000000; offset_s = 1; description = "since boot"; };
stream {
    id = 2;
    packet.context := struct {
        time timestamp_begin; time timestamp_end; u32 content_size; u32 packet_size;
        u32 events_discarded; u8 cpu_id;
    };
    event.header := struct { u8 id; time timestamp; };
    event.context := struct { u8 id; };
};
event {
    id = 0; stream_id = 2; name = "one"; loglevel = 13;
    fields := struct {
        u8 id; enum : u8 { A, B, AB = 0 ... 1 } tag; string text; u8 len; u8 list[len];
    };
};
event { id = 1; stream_id = 2; name = "two"; fields := struct {}; };
"#;

/// A packet of events, each with the time before its bytes.
fn packet(begin: u64, end: u64, discarded: u32, events: &[(u64, &[u8])]) -> Vec<u8> {
    let mut bytes = 0xc1fc_1fc1u32.to_le_bytes().to_vec();
    bytes.push(2);
    bytes.extend(begin.to_le_bytes());
    bytes.extend(end.to_le_bytes());
    let sizes = bytes.len();
    bytes.extend([0; 8]);
    bytes.extend(discarded.to_le_bytes());
    bytes.push(5);
    for (time, rest) in events {
        bytes.push(rest[0]);
        bytes.extend(time.to_le_bytes());
        bytes.extend(&rest[1..]);
    }
    let bits = (bytes.len() as u32 * 8).to_le_bytes();
    bytes[sizes..sizes + 4].copy_from_slice(&bits);
    bytes[sizes + 4..sizes + 8].copy_from_slice(&bits);
    bytes
}

fn trace() -> (TempDir, Vec<AnyRecording>) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("metadata"), METADATA).unwrap();
    let mut stream = packet(
        100,
        200,
        0,
        &[(110, b"\0\x09\x01\0hi, \"you\"\0\x02\x07\x08")],
    );
    stream.extend(packet(
        300,
        400,
        3,
        &[(310, b"\x01\x04"), (320, b"\0\x03\x02\x09\0\0")],
    ));
    std::fs::write(dir.path().join("stream"), stream).unwrap();
    opened(dir)
}

fn opened(dir: TempDir) -> (TempDir, Vec<AnyRecording>) {
    let opened = open::open(&[PathBuf::from(dir.path())], &open::Options::default());
    assert!(opened.errors.is_empty(), "{:?}", opened.errors);
    (dir, opened.recordings)
}

/// A trace of RFC v1.1: an event in each of two packets, three events and a packet lost between.
fn rfc() -> (TempDir, Vec<AnyRecording>) {
    const METADATA: &str = "trace { major = 1; minor = 1; }
        section { name = irq; event { header_type = type1; context { event_size = true; } } }
        event { name = entry; id = 40; section = irq; fields = type { parent = struct; fields = {
            { type { parent = sequence; length_type = uint8_t; elem_type = uint8_t; }, list } }; }; }";
    let packet = |count: u32, begin: u64, discarded: u32| {
        let mut bytes: Vec<u8> = [0xc1fc_1fc1u32, 7, 69, 72, 0, count]
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        bytes.extend(begin.to_le_bytes());
        bytes.extend((begin + 50).to_le_bytes());
        bytes.extend(discarded.to_le_bytes());
        bytes.extend([32, 0, 0, 0]);
        bytes.extend(31u32.to_le_bytes());
        bytes.extend(40u32.to_le_bytes());
        bytes.extend((begin + 10).to_le_bytes());
        bytes.extend([3, 0, 2, 8, 9, 0, 0, 0]);
        bytes
    };
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("metadata"), METADATA).unwrap();
    let packets = [packet(0, 100, 0), packet(2, 200, 3)].concat();
    std::fs::write(dir.path().join("irq_3"), packets).unwrap();
    opened(dir)
}

#[derive(Default)]
struct Collected {
    text: Vec<u8>,
    warnings: Vec<u8>,
}

impl Output for Collected {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        self.text.extend_from_slice(text);
        Ok(())
    }

    fn warning(&mut self, lines: &[u8]) -> io::Result<()> {
        self.warnings.extend_from_slice(lines);
        Ok(())
    }

    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        panic!("{fault}");
    }
}

/// Text and warnings, with the path of the trace as `DIR`.
fn show<A: Sink>(make: impl FnOnce(&[AnyRecording]) -> A) -> (String, String) {
    show_of(trace(), make)
}

fn show_of<A: Sink>(
    (dir, recordings): (TempDir, Vec<AnyRecording>),
    make: impl FnOnce(&[AnyRecording]) -> A,
) -> (String, String) {
    let mut collected = Collected::default();
    let mut sink = make(&recordings);
    let options = pipeline::Options::default();
    let select = Everything;
    pipeline::run(&recordings, &select, &options, &mut sink, &mut collected).unwrap();
    let path = dir.path().to_str().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap().replace(path, "DIR");
    (text(collected.text), text(collected.warnings))
}

const WARNING: &str = "WARNING: Tracer discarded 3 events between [00:00:01.000000200] and \
    [00:00:01.000000400] in trace \"box\" (UID: 2a6422d0-6cee-11e0-8c08-cb07d7b3a564) \
    within stream \"DIR/stream\" (stream class ID: 2, stream ID: 0).\n";

const WALL: WallOptions = WallOptions {
    gmt: true,
    date: false,
    seconds: false,
};

#[test]
fn pretty_text() {
    let options = pretty::Options {
        wall: WALL,
        ..pretty::Options::default()
    };
    let (text, warnings) = show(|_| pretty::Pretty::new(options));
    let expected = r#"[00:00:01.000000110] (+?.?????????) box:(7) one: { cpu_id = 5 }, { id = 9 }, { id = 1, tag = ( { "A", "AB" } : container = 0 ), text = "hi, \"you\"", len = 2, list = [ [0] = 7, [1] = 8 ] }
[00:00:01.000000310] (+0.000000200) box:(7) two: { cpu_id = 5 }, { id = 4 }, { }
[00:00:01.000000320] (+0.000000010) box:(7) one: { cpu_id = 5 }, { id = 3 }, { id = 2, tag = ( <unknown> : container = 9 ), text = "", len = 0, list = [ ] }
"#;
    assert_eq!(text, expected);
    assert_eq!(warnings, WARNING);
}

#[test]
fn json_lines() {
    let (text, warnings) = show(|_| Json::new(WALL));
    let expected = r#"{"timestamp":1000000110,"recording":"DIR","kind":"event","schema":1,"trace":"box","stream_class":2,"stream":0,"event":"one","event_class":0,"packet_context":{"cpu_id":5},"common_context":{"id":9},"payload":{"id":1,"tag":{"value":0,"labels":["A","AB"]},"text":"hi, \"you\"","len":2,"list":[7,8]}}
{"timestamp":1000000310,"recording":"DIR","kind":"event","schema":1,"trace":"box","stream_class":2,"stream":0,"event":"two","event_class":1,"packet_context":{"cpu_id":5},"common_context":{"id":4},"payload":{}}
{"timestamp":1000000320,"recording":"DIR","kind":"event","schema":1,"trace":"box","stream_class":2,"stream":0,"event":"one","event_class":0,"packet_context":{"cpu_id":5},"common_context":{"id":3},"payload":{"id":2,"tag":{"value":9,"labels":[]},"text":"","len":0,"list":[]}}
"#;
    assert_eq!(text, expected);
    assert_eq!(warnings, WARNING);
}

#[test]
fn csv_fields() {
    let (text, _) = show(|_| Csv::new(Times::Iso, WALL));
    let mut lines = text.lines();
    let header = "timestamp,recording,kind,name,schema,fields";
    assert_eq!(lines.next(), Some(header));
    let first = r#"1970-01-01T00:00:01.000000110Z,DIR,event,one,csv-1,"{""trace"":""box"",""stream_class"":2,""stream"":0,""event"":""one"",""event_class"":0,""packet_context"":{""cpu_id"":5},""common_context"":{""id"":9},""payload"":{""id"":1,""tag"":{""value"":0,""labels"":[""A"",""AB""]},""text"":""hi, \""you\"""",""len"":2,""list"":[7,8]}}""#;
    assert_eq!(lines.next(), Some(first));
    assert_eq!(lines.count(), 2);
}

#[test]
fn csv_columns() {
    let (text, _) = show(|recordings| Csv::of_classes(Times::Number, WALL, recordings, |_| true));
    let expected = r#"timestamp,recording,kind,name,schema,cpu_id,common_context.id,payload.id,tag,text,len,list
1000000110,DIR,event,one,csv-1,5,9,1,0,"hi, ""you""",2,"[7,8]"
1000000310,DIR,event,two,csv-1,5,4,,,,,
1000000320,DIR,event,one,csv-1,5,3,2,9,,0,[]
"#;
    assert_eq!(text, expected);
}

#[test]
fn details_in_colors() {
    let options = DetailsOptions {
        colors: Some(Palette::new(true)),
        ..DetailsOptions::default()
    };
    let (text, _) = show(|_| Details::new(options));
    let mut plain = String::new();
    for (number, part) in text.split('\x1b').enumerate() {
        let part = match number {
            0 => part,
            _ => part.split_once('m').expect("the end of a colour").1,
        };
        plain += part;
    }
    let (expected, _) = show(|_| Details::new(DetailsOptions::default()));
    assert_eq!(plain, expected);
    // As babeltrace2 2.0.4 has them.
    for line in [
        "\x1b[1m\x1b[1m\x1b[33mTrace class\x1b[0m:",
        "    \x1b[35mSupports packets\x1b[0m: \x1b[1m\x1b[1m\x1b[32mYes\x1b[0m",
        "    \x1b[35mSupports discarded packets\x1b[0m: \x1b[1m\x1b[1m\x1b[31mNo\x1b[0m",
        "      \x1b[36mcpu_id\x1b[0m: \x1b[34mUnsigned integer\x1b[0m (\x1b[1m8-bit\x1b[0m, Base \x1b[1m10\x1b[0m)",
        "    \x1b[1m\x1b[1m\x1b[33mEvent class\x1b[0m `\x1b[32mone\x1b[0m` (ID \x1b[1m0\x1b[0m):",
        "[\x1b[1m\x1b[1m\x1b[34mUnknown\x1b[0m]",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}");
    }
}

#[test]
fn details() {
    let (text, _) = show(|_| Details::new(DetailsOptions::default()));
    let expected = "Trace class:
  Stream class (ID 2):
    Supports packets: Yes
    Packets have beginning default clock snapshot: Yes
    Packets have end default clock snapshot: Yes
    Supports discarded events: Yes
    Discarded events have default clock snapshots: Yes
    Supports discarded packets: No
    Default clock class:
      Name: mono
      Description: since boot
      Frequency (Hz): 1,000,000,000
      Precision (cycles): 0
      Offset from origin (s): 1
      Offset from origin (cycles): 0
    Packet context field class: Structure (1 member):
      cpu_id: Unsigned integer (8-bit, Base 10)
    Event common context field class: Structure (1 member):
      id: Unsigned integer (8-bit, Base 10)
    Event class `one` (ID 0):
      Log level: Debug (line)
      Payload field class: Structure (5 members):
        id: Unsigned integer (8-bit, Base 10)
        tag: Unsigned enumeration (8-bit, Base 10, 3 mappings):
          A: [0]
          AB: [0, 1]
          B: [1]
        text: String
        len: Unsigned integer (8-bit, Base 10)
        list: Dynamic array (with length field) (Length field location [Event payload: len]):
          Element: Unsigned integer (8-bit, Base 10)
    Event class `two` (ID 1):
      Payload field class: Structure (0 members)

[Unknown]
{Trace 0, Stream class ID 2, Stream ID 0}
Stream beginning:
  Name: DIR/stream
  Trace `box` (UID `2a6422d0-6cee-11e0-8c08-cb07d7b3a564`):
    Environment (3 entries):
      hostname: box
      note:
      vpid: 7
    Stream (ID 0, Class ID 2)

[100 cycles, 1,000,000,100 ns from origin]
{Trace 0, Stream class ID 2, Stream ID 0}
Packet beginning:
  Context:
    cpu_id: 5

[110 cycles, 1,000,000,110 ns from origin]
{Trace 0, Stream class ID 2, Stream ID 0}
Event `one` (Class ID 0):
  Common context:
    id: 9
  Payload:
    id: 1
    tag: 0
    text: hi, \"you\"
    len: 2
    list: Length 2:
      [0]: 7
      [1]: 8

[200 cycles, 1,000,000,200 ns from origin]
{Trace 0, Stream class ID 2, Stream ID 0}
Packet end

[200 cycles, 1,000,000,200 ns from origin]
[400 cycles, 1,000,000,400 ns from origin]
{Trace 0, Stream class ID 2, Stream ID 0}
Discarded events (3 events)

[300 cycles, 1,000,000,300 ns from origin]
{Trace 0, Stream class ID 2, Stream ID 0}
Packet beginning:
  Context:
    cpu_id: 5

[310 cycles, 1,000,000,310 ns from origin]
{Trace 0, Stream class ID 2, Stream ID 0}
Event `two` (Class ID 1):
  Common context:
    id: 4
  Payload: Empty

[320 cycles, 1,000,000,320 ns from origin]
{Trace 0, Stream class ID 2, Stream ID 0}
Event `one` (Class ID 0):
  Common context:
    id: 3
  Payload:
    id: 2
    tag: 9
    text: \n    len: 0
    list: Empty

[400 cycles, 1,000,000,400 ns from origin]
{Trace 0, Stream class ID 2, Stream ID 0}
Packet end

[Unknown]
{Trace 0, Stream class ID 2, Stream ID 0}
Stream end
";
    assert_eq!(text, expected);
}

#[test]
fn what_packet_headers_of_rfc_v1_1_report_is_shown_as_that_of_contexts_is() {
    let options = pretty::Options {
        wall: WALL,
        ..pretty::Options::default()
    };
    let (text, warnings) = show_of(rfc(), |_| pretty::Pretty::new(options));
    let expected = "\
[00:00:00.000000110] (+?.?????????) entry: { payload_size = 3 }, { list = [ [0] = 8, [1] = 9 ] }
[00:00:00.000000210] (+0.000000100) entry: { payload_size = 3 }, { list = [ [0] = 8, [1] = 9 ] }
";
    assert_eq!(text, expected);
    let warning = |what| {
        format!(
            "WARNING: Tracer discarded {what} between [00:00:00.000000150] and [00:00:00.000000200] \
             in trace \"\" (no UID) within stream \"DIR/irq_3\" (stream class ID: 0, stream ID: 3).\n"
        )
    };
    assert_eq!(warnings, warning("3 events") + &warning("1 packet"));

    let (text, _) = show_of(rfc(), |_| Json::new(WALL));
    let first = r#"{"timestamp":110,"recording":"DIR","kind":"event","schema":1,"trace":null,"stream_class":0,"stream":3,"event":"entry","event_class":40,"common_context":{"payload_size":3},"payload":{"list":[8,9]}}"#;
    assert_eq!(text.lines().next(), Some(first));

    let (text, _) = show_of(rfc(), |recordings| {
        Csv::of_classes(Times::Number, WALL, recordings, |_| true)
    });
    let first = "110,DIR,event,entry,csv-1,3,\"[8,9]\"";
    assert_eq!(text.lines().nth(1), Some(first));

    let (text, _) = show_of(rfc(), |_| Details::new(DetailsOptions::default()));
    let class = "Trace class:
  Stream class `irq` (ID 0):
    Supports packets: Yes
    Packets have beginning default clock snapshot: Yes
    Packets have end default clock snapshot: Yes
    Supports discarded events: Yes
    Discarded events have default clock snapshots: Yes
    Supports discarded packets: Yes
    Discarded packets have default clock snapshots: Yes
    Default clock class:
      Name: default
      Frequency (Hz): 1,000,000,000
      Precision (cycles): 0
      Offset from origin (s): 0
      Offset from origin (cycles): 0
    Event common context field class: Structure (1 member):
      payload_size: Unsigned integer (16-bit, Base 10)
    Event class `entry` (ID 40):
      Payload field class: Structure (1 member):
        list: Dynamic array (no length field):
          Element: Unsigned integer (8-bit, Base 10)
";
    assert!(text.starts_with(class), "{text}");
    let packet = "[100 cycles, 100 ns from origin]
{Trace 0, Stream class ID 0, Stream ID 3}
Packet beginning

[110 cycles, 110 ns from origin]
{Trace 0, Stream class ID 0, Stream ID 3}
Event `entry` (Class ID 40):
  Common context:
    payload_size: 3
  Payload:
    list: Length 2:
      [0]: 8
      [1]: 9

[150 cycles, 150 ns from origin]
{Trace 0, Stream class ID 0, Stream ID 3}
Packet end

[150 cycles, 150 ns from origin]
[200 cycles, 200 ns from origin]
{Trace 0, Stream class ID 0, Stream ID 3}
Discarded events (3 events)
";
    assert!(text.contains(packet), "{text}");
}
