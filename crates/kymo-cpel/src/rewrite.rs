//! Copies CPEL files, including unknown sections.

use std::io::{self, Write};

use kymo_machine::ByteOrder;

use crate::entries::{ENTRY_SIZE, Entry};
use crate::file::{File, Header, SECTION_HEAD_SIZE, Section, TABLE_NAME_SIZE, kind};
use crate::u32_bytes;
use crate::write::section;

/// Writes the sections of a file in their order, with all numbers in a byte order.
///
/// In the order that the file has, a whole file is copied byte for byte. In the other one, the
/// numbers of known sections change; the layout of unknown sections is not known, so their content is
/// copied as it is. Of a damaged file what is there is written, and the copy has no damage of
/// its sections: they are as many and as long as it says.
///
/// # Errors
///
/// Those of the output.
pub fn rewrite(file: &File<'_>, order: ByteOrder, out: &mut impl Write) -> io::Result<()> {
    rewrite_events(file, order, |_| None, out)
}

/// The events that a section gets in place of its own.
pub struct NewEvents<'a> {
    /// The clock field.
    pub clock: u32,
    /// The number of events.
    pub count: usize,
    /// The events, of which there are as many.
    pub entries: Box<dyn Iterator<Item = Entry> + 'a>,
}

/// Writes a file as [`rewrite`] does, but for the events of those sections of which `events` has
/// others; it is asked by their positions among all sections. Such sections keep their string tables.
///
/// # Errors
///
/// Those of the output; that a section has more events than fit.
pub fn rewrite_events<'a>(
    file: &File<'_>,
    order: ByteOrder,
    mut events: impl FnMut(usize) -> Option<NewEvents<'a>>,
    out: &mut impl Write,
) -> io::Result<()> {
    let header = Header {
        order,
        // There are at most as many as the header of the file says.
        sections: file.sections.len() as u16,
        ..file.header
    };
    out.write_all(&header.to_bytes())?;
    for (position, one) in file.sections.iter().enumerate() {
        let data = file.data(one);
        let has_head = one.kind == kind::EVENTS && data.len() >= TABLE_NAME_SIZE + 8;
        if has_head && let Some(events) = events(position) {
            let length = TABLE_NAME_SIZE + 8 + events.count * ENTRY_SIZE;
            section(out, order, one.kind, length)?;
            out.write_all(&data[..TABLE_NAME_SIZE])?;
            out.write_all(&u32_bytes(events.count as u32, order))?;
            out.write_all(&u32_bytes(events.clock, order))?;
            for entry in events.entries.take(events.count) {
                out.write_all(&entry.to_bytes(order))?;
            }
            continue;
        }
        section(out, order, one.kind, data.len())?;
        if order == file.header.order || !has_numbers(one) {
            out.write_all(data)?;
        } else {
            let (name, numbers) = data.split_at(TABLE_NAME_SIZE.min(data.len()));
            out.write_all(name)?;
            let (words, rest) = numbers.as_chunks::<4>();
            for &[a, b, c, d] in words {
                out.write_all(&[d, c, b, a])?;
            }
            out.write_all(rest)?;
        }
    }
    Ok(())
}

/// Whether a section is, after the name of a string table, a row of numbers of 32 bits.
fn has_numbers(section: &Section) -> bool {
    kind::name(section.kind).is_some() && section.kind != kind::STRINGS
}

/// How many bytes [`rewrite`] writes.
pub fn size(file: &File<'_>) -> u64 {
    let sections = file.sections.iter();
    let sections = sections.map(|section| SECTION_HEAD_SIZE + section.data.len());
    sections.fold(crate::file::HEADER_SIZE as u64, |sum, size| {
        sum + size as u64
    })
}
