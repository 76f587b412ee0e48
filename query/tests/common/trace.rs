//! Traces of any size.

use std::path::Path;

const METADATA: &str = "/* CTF 1.8 */
    typealias integer { size = 32; align = 8; signed = false; } := u32;
    typealias integer { size = 64; align = 8; signed = false; } := u64;
    trace { major = 1; minor = 8; byte_order = le; };
    clock { name = c; freq = 1000000000; };
    typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := tick;
    stream {
        packet.context := struct {
            u64 content_size; u64 packet_size; tick timestamp_begin; tick timestamp_end; u32 number;
        };
        event.header := struct { tick timestamp; };
    };
    event { name = beat; fields := struct { u32 value; }; };
";

const PACKETS: u64 = 4;
/// Writes a trace that begins at a time: two streams of four packets, with a number of events of `beat` each.
pub(crate) fn write(directory: &Path, begin: u64, events: u64) {
    std::fs::create_dir_all(directory).unwrap();
    std::fs::write(directory.join("metadata"), METADATA).unwrap();
    for stream in 0..2u64 {
        let mut bytes = Vec::new();
        for packet in 0..PACKETS {
            let first = begin + packet * events;
            let size = (4 * 8 + 4 + events * 12) * 8;
            for number in [size, size, first, first + events - 1] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.extend((packet as u32).to_le_bytes());
            for time in first..first + events {
                bytes.extend(time.to_le_bytes());
                bytes.extend((stream as u32).to_le_bytes());
            }
        }
        std::fs::write(directory.join(format!("stream{stream}")), bytes).unwrap();
    }
}
