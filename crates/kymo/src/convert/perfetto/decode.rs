//! Traces as text, for tests.

use std::collections::BTreeMap;

use kymo_perfetto::proto::{Field, Fields, Wire};

/// The fields of a message.
fn fields(bytes: &[u8]) -> Vec<Field<'_>> {
    Fields::new(bytes).map(Result::unwrap).collect()
}

/// Fields of a message by their numbers; numbers that come again are an error of the test.
struct Message<'a>(Vec<Field<'a>>);

impl<'a> Message<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self(fields(bytes))
    }

    fn all(&self, number: u32) -> impl Iterator<Item = &Wire<'a>> {
        let fields = self.0.iter();
        fields
            .filter(move |field| field.number == number)
            .map(|field| &field.wire)
    }

    fn one(&self, number: u32) -> Option<&Wire<'a>> {
        let mut all = self.all(number);
        let one = all.next();
        assert!(all.next().is_none(), "field {number} twice");
        one
    }

    fn uint(&self, number: u32) -> Option<u64> {
        self.one(number).map(|wire| match wire {
            Wire::Varint(value) | Wire::Fixed64(value) => *value,
            _ => panic!("field {number} is not a number"),
        })
    }

    fn messages(&self, number: u32) -> impl Iterator<Item = Message<'a>> {
        self.all(number).map(move |wire| match wire {
            Wire::Bytes(bytes) => Message::new(bytes),
            _ => panic!("field {number} is not a message"),
        })
    }

    fn text(&self, number: u32) -> Option<String> {
        self.one(number).map(|wire| match wire {
            Wire::Bytes(bytes) => String::from_utf8(bytes.to_vec()).expect("UTF-8"),
            _ => panic!("field {number} is not a text"),
        })
    }
}

/// A trace as text: a line for each track and event, in the order of the packets.
pub(in crate::convert) fn text(trace: &[u8]) -> String {
    let mut names: BTreeMap<(u32, u64), String> = BTreeMap::new();
    let mut tracks: BTreeMap<u64, String> = BTreeMap::new();
    let mut text = String::new();
    for (number, field) in fields(trace).into_iter().enumerate() {
        let (1, Wire::Bytes(packet)) = (field.number, field.wire) else {
            panic!("field {} in a trace", field.number);
        };
        let packet = Message::new(packet);
        assert_eq!(packet.uint(10), Some(1), "sequence");
        let flags = if number == 0 { 1 } else { 2 };
        assert_eq!(packet.uint(13), Some(flags), "flags");
        assert_eq!(packet.uint(87), (number == 0).then_some(1));
        for interned in packet.messages(12) {
            for kind in [2, 3] {
                for name in interned.messages(kind) {
                    let iid = name.uint(1).unwrap();
                    let before = names.insert((kind, iid), name.text(2).unwrap());
                    assert!(iid > 0 && before.is_none(), "iid {iid}");
                }
            }
        }
        for track in packet.messages(60) {
            let mut line = format!("track {}", track.text(2).unwrap());
            if let Some(parent) = track.uint(5) {
                line += &format!(" in {}", tracks[&parent]);
            }
            for (number, name) in [(11, "ordering"), (12, "rank"), (15, "merge")] {
                if let Some(value) = track.uint(number) {
                    line += &format!(" {name}={value}");
                }
            }
            if track.messages(8).next().is_some() {
                line += " counter";
            }
            let name = track.text(2).unwrap();
            assert!(tracks.insert(track.uint(1).unwrap(), name).is_none());
            text += &format!("{line}\n");
        }
        for event in packet.messages(11) {
            let kind = ["", "begin", "end", "instant", "counter"][event.uint(9).unwrap() as usize];
            let track = &tracks[&event.uint(11).unwrap()];
            let mut line = format!("{} {kind} {track}", packet.uint(8).unwrap());
            if let Some(iid) = event.uint(10) {
                line += &format!(" {}", names[&(2, iid)]);
            }
            if let Some(value) = event.uint(30) {
                line += &format!(" = {}", value as i64);
            }
            if let Some(bits) = event.uint(44) {
                line += &format!(" = {:?}", f64::from_bits(bits));
            }
            for annotation in event.messages(4) {
                line += &format!(" {}", annotation_text(&annotation, &names));
            }
            for flow in event.all(47) {
                let Wire::Fixed64(flow) = flow else {
                    panic!("a flow that is {flow:?}");
                };
                line += &format!(" flow {flow:x}");
            }
            text += &format!("{line}\n");
        }
    }
    text
}

fn annotation_text(annotation: &Message<'_>, names: &BTreeMap<(u32, u64), String>) -> String {
    let name = annotation
        .uint(1)
        .map_or(String::new(), |iid| format!("{}=", names[&(3, iid)]));
    let mut values: Vec<String> = Vec::new();
    values.extend(annotation.uint(2).map(|value| (value != 0).to_string()));
    values.extend(annotation.uint(3).map(|value| value.to_string()));
    values.extend(annotation.uint(4).map(|value| (value as i64).to_string()));
    values.extend(
        annotation
            .uint(5)
            .map(|bits| format!("{:?}", f64::from_bits(bits))),
    );
    values.extend(annotation.text(6).map(|text| format!("{text:?}")));
    for (number, open, close) in [(11, '{', '}'), (12, '[', ']')] {
        let parts: Vec<_> = annotation.messages(number).collect();
        if !parts.is_empty() {
            let parts: Vec<_> = parts
                .iter()
                .map(|part| annotation_text(part, names))
                .collect();
            values.push(format!("{open}{}{close}", parts.join(" ")));
        }
    }
    assert!(values.len() <= 1, "{values:?}");
    format!("{name}{}", values.first().map_or("-", String::as_str))
}
