//! What a journal has.

use crc32c::crc32c;

use super::{FORGET, HEAD, MAGIC, UPDATE};
use crate::store::{Record, first_record};

/// What a journal says of a path.
#[derive(Debug)]
pub enum Entry<'a> {
    /// An update that was accepted.
    Update(&'a [u8], Record<'a>),
    /// Nothing before this matters.
    Forget(&'a [u8]),
}

/// Passes the entries of a file to `each`, in their order. A damaged group is skipped, if its end is known.
///
/// # Errors
///
/// Where there is first something else: the offset, what was found there and what was expected. At the end of
/// the last file that is a group that was never acknowledged.
pub fn replay(bytes: &[u8], mut each: impl FnMut(Entry<'_>)) -> Result<(), String> {
    let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
        // The program was killed before it had written this.
        return match MAGIC.starts_with(bytes) {
            true => Ok(()),
            false => Err("offset 0: found no journal, expected `KYMOJRN1`".into()),
        };
    };
    let mut reported = Ok(());
    while !rest.is_empty() {
        let offset = bytes.len() - rest.len();
        let damaged = |problem| Err(format!("offset {offset}: {problem}"));
        let Some((body, sum, after)) = group(rest) else {
            let found = format!("found {} bytes, expected a whole group", rest.len());
            return reported.and(damaged(found));
        };
        if body.is_empty() {
            // No program writes such a group: a machine that stopped has left zeros, and the checksum matches.
            reported = reported.and(damaged(
                "found a group of no bytes, expected an entry".into(),
            ));
            rest = after;
            continue;
        }
        let found = crc32c(body);
        reported = reported.and(match found == sum {
            true => entries(body, bytes.len() - after.len(), &mut each),
            false => damaged(format!("found checksum {found:08x}, expected {sum:08x}")),
        });
        rest = after;
    }
    reported
}

/// Passes the entries of a group, which ends at an offset, to `each`.
fn entries(mut body: &[u8], end: usize, each: &mut impl FnMut(Entry<'_>)) -> Result<(), String> {
    while !body.is_empty() {
        let place = end - body.len();
        let (entry, after) = entry(body)
            .ok_or_else(|| format!("offset {place}: expected an update, or what is forgotten"))?;
        each(entry);
        body = after;
    }
    Ok(())
}

/// What the first group has, the checksum that it states, and what follows it. `None` where it is cut off.
fn group(bytes: &[u8]) -> Option<(&[u8], u32, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u32::from(*byte))
    };
    let (length, sum) = (number(&head[..4]), number(&head[4..]));
    let (body, after) = rest.split_at_checked(length as usize)?;
    Some((body, sum, after))
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
