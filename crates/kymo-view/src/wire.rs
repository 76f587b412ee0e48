//! The binary form of tiles, which the page reads (`web/wire.js`).
//!
//! ```text
//! head     "KYT1"  generation u32  shift u32  spans u32  tracks u32  begin i64       28 bytes, little-endian
//! track    number u32  flags u8  phase varint  bins varint, then each bin:
//!            varint  spans since the bin before << 2 | has values << 1 | is single
//!            varint  rows (if not single)
//!            u8      the lowest of its event classes: 63 for 63 and above
//!            varint  nanoseconds since its span begins (if single and shift > 0)
//!            varint  known values, then min, max, mean f64 (if it has values)
//!            f64     its value instead (if it is single, too)
//! ```
//!
//! Flags of a track: bit 0 is set if it is an estimate. The spans are 2^shift nanoseconds long. Those of a track begin
//! its phase (less than a span) later than multiples of that: they lie on the grid of its recording's clock.

use kymo::timeline::Grid;

use crate::scene::TrackBins;

/// Spans of a tile.
pub const TILE: u64 = 512;

/// Appends a number of 7 bits a byte, the lowest first (LEB128).
pub fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the head of an answer.
pub fn put_head(generation: u64, grid: &Grid, tracks: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(b"KYT1");
    out.extend_from_slice(&(generation as u32).to_le_bytes());
    out.extend_from_slice(&grid.span().trailing_zeros().to_le_bytes());
    out.extend_from_slice(&(grid.spans() as u32).to_le_bytes());
    out.extend_from_slice(&(tracks as u32).to_le_bytes());
    out.extend_from_slice(&grid.begin().to_le_bytes());
}

/// Appends the bins of a track. One that begins before the grid belongs to the tile before.
pub(crate) fn put_track(track: &TrackBins, grid: &Grid, out: &mut Vec<u8>) {
    let span = grid.span() as i64;
    let ahead = track.begin.saturating_sub(grid.begin());
    let (moved, phase) = (ahead.div_euclid(span), ahead.rem_euclid(span));
    let bins = track.bins.iter().filter_map(|(position, bin)| {
        let position = position.checked_add_signed(moved)?;
        Some((position, bin))
    });
    let bins: Vec<_> = bins.collect();
    out.extend_from_slice(&track.track.to_le_bytes());
    out.push(u8::from(track.is_estimate));
    put_varint(phase as u64, out);
    put_varint(bins.len() as u64, out);
    let mut next = 0;
    for (position, bin) in bins {
        let is_single = bin.count == 1;
        let flags = u64::from(bin.values.is_some()) << 1 | u64::from(is_single);
        put_varint(position.saturating_sub(next) << 2 | flags, out);
        next = position;
        if !is_single {
            put_varint(bin.count, out);
        }
        out.push(bin.classes.trailing_zeros().min(63) as u8);
        if is_single && grid.span() > 1 {
            put_varint(
                bin.first.wrapping_sub(track.begin) as u64 & (grid.span() - 1),
                out,
            );
        }
        if let Some(values) = &bin.values {
            let mean = values.sum / values.count.max(1) as f64;
            let sent: &[f64] = match is_single {
                true => &[values.last],
                false => {
                    put_varint(values.count, out);
                    &[values.min, values.max, mean]
                }
            };
            for value in sent {
                out.extend_from_slice(&value.to_le_bytes());
            }
        }
    }
}
