//! Writes a trace of two kinds of events, and reads it back.
//!
//!     cargo run -p kymo-ctf --example write -- /tmp/trace

use kymo_ctf::metadata;
use kymo_ctf::trace::{Options, Trace};
use kymo_ctf::write::{StreamOptions, Token, TraceOptions, TraceWriter};
use kymo_model::{Cursor, Event, Recording};

/// What the trace says of itself.
const METADATA: &str = r#"/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { integer { size = 32; } magic; integer { size = 32; } stream_id; }; };
clock { name = mono; freq = 1000000000; };
typealias integer { size = 64; map = clock.mono.value; } := time;
typealias integer { size = 32; } := u32;
stream {
    id = 0;
    packet.context := struct { u32 packet_size; u32 content_size; time timestamp_begin; time timestamp_end; u32 cpu_id; };
    event.header := struct { integer { size = 16; } id; time timestamp; };
};
event { name = open; id = 0; stream_id = 0; fields := struct { string path; integer { size = 3; signed = true; } result; }; };
event { name = read; id = 1; stream_id = 0; fields := struct { u32 _len; integer { size = 8; base = 16; } data[_len]; }; };
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("where to write?")?;
    let class = metadata::parse(METADATA.as_bytes(), "metadata")?.class;

    let mut trace = TraceWriter::create(path.as_ref(), &class, TraceOptions::default())?;
    let (open, read) = (trace.event("open")?, trace.event("read")?);
    let mut stream = trace.stream(0, "cpu_0", StreamOptions::default())?;
    stream.packet_members().set("cpu_id", Token::Uint(0));
    stream.event(open, 1_000, |fields| {
        fields.text("/etc/hosts").sint(-2);
    })?;
    for n in 0..5 {
        // The length of the array is filled in.
        stream.event(read, 2_000 + n, |fields| {
            fields.fill().array(n, |fields, at| fields.uint(at));
        })?;
    }
    stream.finish()?.flush()?;

    let trace = Trace::open(&[path.into()], &Options::default())?;
    for chunk in trace.chunks(0) {
        let mut events = trace.cursor(&chunk);
        while let Ok(Some(event)) = events.next_event() {
            println!("{:?} {:?}", event.ticks(), event.class().name);
        }
    }
    Ok(())
}
