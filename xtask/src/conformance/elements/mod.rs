//! The element listing of yactfr's tests: every part of a data stream in the order of
//! decoding, with the offset in bits at which it lies.
//!
//! | line | part |
//! |---|---|
//! | `P {`, `PC {`, `ER {` | a packet, its content, an event |
//! | `SC:n {`, `ST {` | scope number n, a structure |
//! | `SLA {`, `DLA {` | an array of a static length, of a dynamic one |
//! | `NTS {`, `SLS {`, `DLS {`, `RD:n:…` | texts: ended by a zero, of a static length, of a dynamic one; their n bytes |
//! | `SLB {`, `DLB {` | BLOBs of a static length, of a dynamic one; their media type and bytes |
//! | `VU:s {`, `VS:s {` | a variant and the unsigned or signed number that selects |
//! | `OB {`, `OU {`, `OS {` | an optional, whether it is enabled, and its integer selector, where it has one |
//! | `FLUI`, `FLSI`, `FLFPN` | an integer, a signed one, a floating point number |
//! | `VLUI`, `VLSI` | an integer and a signed one of a variable length |
//! | `FLB`, `FLBA`, `FLBM` | a truth value, bits, bits and the names of those that are set |
//! | `PMN`, `MSU`, `DCV` | what a number means: magic, UUID, the clock after it |
//! | `DSI`, `PI`, `ERI` | what is known now: the stream, the packet, the event |
//!
//! The name of a structure's member follows the first word of its line. A last line that
//! has no such word says where decoding stopped, and why.

mod scribe;

use std::collections::BTreeSet;
use std::path::Path;

use kymo_ctf::class::{EventRecordClass, StreamClass, TraceClass};
use kymo_ctf::decode::{Decoder, PacketHead};
use kymo_ctf::metadata;
use kymo_model::{Cursor, Event, Fault, FaultCode, Scope};
use kymo_time::Ticks;

use self::scribe::{Fields, Scribe};
use super::contents::decode;
use super::{Setting, Verdict, cases, difference};
use crate::Outcome;

/// Runs the cases of yactfr's `iter-data/FOLDER`.
///
/// Of a last line that names a fault only the offset counts; that the reader reports the
/// same fault is looked at too.
pub(super) fn run(setting: &Setting, folder: &str) -> Outcome<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for case in cases(
        &setting.traces,
        &format!("yactfr/iter-data/{folder}/"),
        ".expect",
    )? {
        let expected = std::fs::read_to_string(setting.traces.join(format!("{case}.expect")))?;
        let trace = setting.traces.join(&case);
        let result = list(&trace)
            .map_err(|error| error.to_string())
            .and_then(|(found, fault)| {
                difference(
                    without_reason(&expected).trim_end(),
                    without_reason(&found).trim_end(),
                )?;
                reader_agrees(&trace, fault)
            });
        verdicts.push(Verdict::new(case, result));
    }
    Ok(verdicts)
}

/// All elements of the data stream of a trace.
pub(super) fn listing(trace: &Path) -> Outcome<String> {
    Ok(list(trace)?.0)
}

fn list(trace: &Path) -> Outcome<(String, Option<FaultCode>)> {
    let bytes = std::fs::read(trace.join("metadata"))?;
    let class = metadata::parse(&bytes, "metadata")?.class;
    let data = std::fs::read(trace.join("stream"))?;
    let mut printer = Lister {
        class: &class,
        out: String::new(),
        base: 0,
    };
    let fault = printer.stream(&data).err();
    Ok((printer.out, fault))
}

/// The reader must find what the listing stops at.
fn reader_agrees(trace: &Path, fault: Option<FaultCode>) -> Result<(), String> {
    let found: BTreeSet<&str> = decode(trace)?
        .faults
        .iter()
        .filter(|report| !report.code.is_warning())
        .map(|report| report.code.as_str())
        .collect();
    match fault {
        None if found.is_empty() => Ok(()),
        // Metadata without a stream class describes no packet, for a reader; here it may.
        None if found
            .iter()
            .eq([FaultCode::UnknownStreamClass.as_str()].iter()) =>
        {
            Ok(())
        }
        Some(code) if found.contains(code.as_str()) => Ok(()),
        // Where a packet has no size, the end of its content is the end of the file.
        Some(FaultCode::BeyondContent) if found.contains(FaultCode::Truncated.as_str()) => Ok(()),
        fault => Err(format!("the reader finds {found:?} instead of {fault:?}")),
    }
}

/// A listing whose last line, if it names a fault, is only the offset.
fn without_reason(listing: &str) -> String {
    let (before, last) = match listing.trim_end().rfind('\n') {
        Some(at) => listing.trim_end().split_at(at + 1),
        None => ("", listing.trim_end()),
    };
    if last.ends_with('}') || last.is_empty() {
        return listing.to_string();
    }
    let offset = last.split_whitespace().next().unwrap_or_default();
    format!("{before}{offset:>6}\n")
}

/// Lists the elements of one data stream.
struct Lister<'a> {
    class: &'a TraceClass,
    out: String,
    /// Where the packet begins, in bits.
    base: u64,
}

impl Lister<'_> {
    fn stream(&mut self, data: &[u8]) -> Result<(), FaultCode> {
        let mut rest = data;
        while !rest.is_empty() {
            let size = self.packet(rest)?;
            self.base += size as u64 * 8;
            rest = rest.get(size..).unwrap_or_default();
        }
        Ok(())
    }

    /// Lists one packet and gives its size in bytes.
    fn packet(&mut self, data: &[u8]) -> Result<usize, FaultCode> {
        self.line(0, 0, "P {");
        self.line(0, 1, "PC {");
        let (class, known) = self.class_with_stream(data);
        let decoder = Decoder::new(&class).map_err(|_| FaultCode::PacketSize)?;
        let of_packet = known.unwrap_or(class.streams.len() - 1);
        let stream = &class.streams[of_packet];
        let no_stream = self.class.streams.is_empty();
        let schema = decoder.packet_schema(of_packet);
        let fields = Fields::new(
            schema,
            &[
                (Scope::PacketHeader, class.packet_header.as_ref()),
                (Scope::PacketContext, stream.packet_context.as_ref()),
            ],
        );
        let mut scribe = Scribe::new(&mut *self, &fields, data, Ticks(0));
        if known.is_some() || no_stream {
            scribe.stream_line = Some(if no_stream { None } else { Some(stream.id) });
        }
        let visited = decoder.visit_packet(data, &mut scribe);
        if let Some((bit, code)) = scribe.stopped {
            return Err(self.stop(bit, code));
        }
        let head = match visited {
            Ok(head) => head,
            Err(fault) => {
                let bit = scribe.fault(fault, data.len() as u64 * 8, false);
                return Err(self.stop(bit, fault.code));
            }
        };
        if known.is_none() && !no_stream {
            return Err(self.stop(head.events_bit, FaultCode::UnknownStreamClass));
        }
        scribe.stream_info(head.events_bit);
        let clock = scribe.clock;
        if no_stream {
            self.line(head.events_bit, 1, "}");
            self.line(head.events_bit, 0, "}");
            return Ok((head.events_bit / 8) as usize);
        }
        self.line(head.events_bit, 2, &packet_info(&head));

        let all = data.len() as u64 * 8;
        let total = head.total_bits.or(head.content_bits).unwrap_or(all);
        let content = head.content_bits.unwrap_or(total);
        self.events(&class, of_packet, &head, data, content, clock)?;
        self.line(content, 1, "}");
        self.line(total, 0, "}");
        Ok((total / 8) as usize)
    }

    fn events(
        &mut self,
        class: &TraceClass,
        of_packet: usize,
        head: &PacketHead,
        data: &[u8],
        content: u64,
        clock: Ticks,
    ) -> Result<(), FaultCode> {
        let decoder = Decoder::new(class).map_err(|_| FaultCode::PacketSize)?;
        let stream = &class.streams[of_packet];
        let available = data.len() as u64 * 8;
        let end = content.min(available);
        let by_content = head.total_bits.or(head.content_bits).is_some() && content <= available;
        let mut cursor = decoder.cursor(data, head, content, clock.0);
        let mut clock = clock;
        loop {
            let event = match cursor.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(()),
                Err(fault) if fault.code == FaultCode::UnknownEventClass => {
                    let class = with_event(class, of_packet, fault.found);
                    return self.unknown_event(&class, of_packet, head, data, content, fault);
                }
                Err(fault) => {
                    let bit = if fault.bit < end && !by_content {
                        end
                    } else {
                        fault.bit
                    };
                    return Err(self.stop(bit, fault.code));
                }
            };
            let schema = &event.class().schema;
            let record = stream
                .events
                .iter()
                .find(|record| record.id == event.class().id);
            let fields = Fields::new(
                schema,
                &[
                    (Scope::EventHeader, stream.event_header.as_ref()),
                    (Scope::CommonContext, stream.common_context.as_ref()),
                    (
                        Scope::SpecificContext,
                        record.and_then(|r| r.specific_context.as_ref()),
                    ),
                    (Scope::Payload, record.and_then(|r| r.payload.as_ref())),
                ],
            );
            let mut scribe = Scribe::new(&mut *self, &fields, data, clock);
            scribe.at = event.begin_bit();
            scribe.first.push("ER {".to_string());
            if let Err(fault) = event.visit_header(&mut scribe) {
                return Err(self.stop(fault.bit, fault.code));
            }
            clock = scribe.clock;
            let mut info = format!("ERI:T{}", event.class().id);
            if let Some(name) = &event.class().name {
                info += &format!(":#{name}");
            }
            if event.ticks().is_some_and(|ticks| ticks != clock.0) {
                info += &format!(", but the cursor's clock is at {:?}", event.ticks());
            }
            if schema.root(Scope::EventHeader).is_some() {
                scribe.note(&info);
            } else {
                scribe.first.push(info);
            }
            if let Err(fault) = event.visit(&mut scribe) {
                let bit = scribe.fault(fault, end, by_content);
                return Err(self.stop(bit, fault.code));
            }
            scribe.begin();
            scribe.close();
        }
    }

    /// Lists the header of an event whose class is unknown, with a class made up for it.
    fn unknown_event(
        &mut self,
        class: &TraceClass,
        of_packet: usize,
        head: &PacketHead,
        data: &[u8],
        content: u64,
        fault: Fault,
    ) -> Result<(), FaultCode> {
        let decoder = Decoder::new(class).map_err(|_| FaultCode::PacketSize)?;
        let stream = &class.streams[of_packet];
        let mut cursor = decoder.cursor(data, head, content, 0);
        while let Ok(Some(event)) = cursor.next_event() {
            if event.begin_bit() < fault.bit {
                continue;
            }
            let fields = Fields::new(
                &event.class().schema,
                &[(Scope::EventHeader, stream.event_header.as_ref())],
            );
            let mut scribe = Scribe::new(&mut *self, &fields, data, Ticks(0));
            scribe.first.push("ER {".to_string());
            if event.visit_header(&mut scribe).is_ok() {
                let bit = scribe.at;
                return Err(self.stop(bit, FaultCode::UnknownEventClass));
            }
        }
        Err(self.stop(fault.bit, fault.code))
    }

    /// The class model with the stream class of a packet, made up where it has none such,
    /// and its position where it has it.
    fn class_with_stream(&self, data: &[u8]) -> (TraceClass, Option<usize>) {
        let mut class = self.class.clone();
        let id = match Decoder::new(self.class).map(|decoder| decoder.packet_head(data)) {
            Ok(Ok(head)) => return (class, Some(head.stream_class)),
            Ok(Err(fault)) if fault.code == FaultCode::UnknownStreamClass => fault.found,
            _ => 0,
        };
        if let Some(position) = class.streams.iter().position(|stream| stream.id == id) {
            return (class, Some(position));
        }
        class.streams.push(StreamClass {
            id,
            namespace: None,
            name: None,
            uid: None,
            clock: None,
            packet_context: None,
            event_header: None,
            common_context: None,
            events: Vec::new(),
            attributes: Vec::new(),
        });
        (class, None)
    }

    fn line(&mut self, bit: u64, level: usize, text: &str) {
        self.out += &format!("{:>6} {}{text}\n", self.base + bit, "  ".repeat(level));
    }

    fn stop(&mut self, bit: u64, code: FaultCode) -> FaultCode {
        self.line(bit, 0, code.as_str());
        code
    }
}

fn with_event(class: &TraceClass, stream: usize, id: u64) -> TraceClass {
    let mut class = class.clone();
    class.streams[stream].events.push(EventRecordClass {
        id,
        namespace: None,
        name: None,
        uid: None,
        log_level: None,
        emf_uri: None,
        specific_context: None,
        payload: None,
        attributes: Vec::new(),
    });
    class
}

fn packet_info(head: &PacketHead) -> String {
    let mut info = "PI".to_string();
    let parts = [
        ('T', head.total_bits),
        ('C', head.content_bits.or(head.total_bits)),
        ('E', head.end.map(|(ticks, _)| ticks)),
        ('S', head.sequence.map(|(number, _)| number)),
        ('D', head.discarded.map(|(count, _)| count)),
    ];
    for (letter, value) in parts {
        if let Some(value) = value {
            info += &format!(":{letter}{value}");
        }
    }
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_fault_only_the_offset_counts() {
        assert_eq!(
            without_reason("     0 P {\n     8 Cannot read\n"),
            "     0 P {\n     8\n"
        );
        let whole = "     0 P {\n     0 }\n";
        assert_eq!(without_reason(whole), whole);
    }
}
