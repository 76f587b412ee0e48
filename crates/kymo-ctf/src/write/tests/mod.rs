//! What is written is what a reader gets back.

mod headers;
mod misuse;
mod packets;
mod values;

use std::sync::Arc;

use kymo_model::{Cursor, Event, Fault};

use super::{Encoder, Token, Values};
use crate::class::TraceClass;
use crate::decode::Decoder;
use crate::metadata;

/// Everything there is in a stream of packets: of each event its class, ticks, and values.
type Read = Vec<(usize, Option<u64>, Vec<Token>)>;

/// The class model of TSDL, after the declarations that all tests use.
fn tsdl(text: &str) -> TraceClass {
    let text = format!(
        "/* CTF 1.8 */ typealias integer {{ size = 8; }} := u8; typealias integer {{ size = 16; }} := u16;
         typealias integer {{ size = 32; }} := u32; typealias integer {{ size = 64; }} := u64; {text}"
    );
    parsed(&text)
}

fn parsed(text: &str) -> TraceClass {
    metadata::parse(text.as_bytes(), "metadata").unwrap().class
}

fn encoder(class: &TraceClass) -> Arc<Encoder> {
    Encoder::new(class).unwrap()
}

/// Decodes consecutive packets of stream class 0, whose clock continues from one to the
/// next.
fn read(decoder: &Decoder, mut bytes: &[u8]) -> Result<Read, Fault> {
    let mut events = Read::new();
    let mut clock = 0;
    while !bytes.is_empty() {
        let head = decoder.packet_head(bytes)?;
        let available = bytes.len() as u64 * 8;
        let total = head.total_bits.or(head.content_bits).unwrap_or(available);
        let total = total.next_multiple_of(8).min(available);
        let content = head.content_bits.unwrap_or(total);
        if let Some((ticks, bits)) = head.begin {
            clock = kymo_time::Ticks(clock).advance(ticks, bits).0;
        }
        let (packet, rest) = bytes.split_at((total / 8) as usize);
        let mut cursor = decoder.cursor(packet, &head, content, clock);
        while let Some(event) = cursor.next_event()? {
            let mut values = Values::default();
            event.visit(&mut values)?;
            let tokens = values.tokens().iter().map(|(_, token)| token.clone());
            events.push((event.class_index(), event.ticks(), tokens.collect()));
        }
        bytes = rest;
    }
    Ok(events)
}
