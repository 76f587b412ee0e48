//! What a journal has.

use super::{CRC, FORGET, HEAD, MAGIC, UPDATE};
use crate::store::{Record, first_record};

/// What a journal says of a path.
#[derive(Debug)]
pub(crate) enum Entry<'a> {
    /// An update that was accepted.
    Update(&'a [u8], Record<'a>),
    /// Nothing before this matters.
    Forget(&'a [u8]),
}

/// Tells the entries of a file, in their order.
///
/// # Errors
///
/// Where there is something else: the offset, what was found there and what was expected. All before it was
/// told. At the end of the last file that is a group that was never acknowledged.
pub(crate) fn replay(bytes: &[u8], mut each: impl FnMut(Entry<'_>)) -> Result<(), String> {
    let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
        // The program was killed before it had written this.
        return match MAGIC.starts_with(bytes) {
            true => Ok(()),
            false => Err("offset 0: found no journal, expected `KYMOJRN1`".into()),
        };
    };
    while !rest.is_empty() {
        let offset = bytes.len() - rest.len();
        let (body, after) = group(rest).map_err(|problem| format!("offset {offset}: {problem}"))?;
        let mut entries = body;
        while !entries.is_empty() {
            let place = bytes.len() - after.len() - entries.len();
            let (entry, after) = entry(entries).ok_or_else(|| {
                format!("offset {place}: expected an update, or what is forgotten")
            })?;
            each(entry);
            entries = after;
        }
        rest = after;
    }
    Ok(())
}

/// The first group, and what follows it.
fn group(bytes: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let cut_off = || format!("found {} bytes, expected a whole group", bytes.len());
    let (head, rest) = bytes.split_first_chunk::<HEAD>().ok_or_else(cut_off)?;
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u32::from(*byte))
    };
    let (length, sum) = (number(&head[..4]), number(&head[4..]));
    let (body, after) = rest.split_at_checked(length as usize).ok_or_else(cut_off)?;
    let found = CRC.checksum(body);
    match found == sum {
        true => Ok((body, after)),
        false => Err(format!("found checksum {found:08x}, expected {sum:08x}")),
    }
}

/// The first entry, and what follows it.
fn entry(bytes: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let (&kind, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (path, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
    match kind {
        UPDATE => {
            let (record, rest) = first_record(rest)?;
            Some((Entry::Update(path, record), rest))
        }
        FORGET => Some((Entry::Forget(path), rest)),
        _ => None,
    }
}
