//! Copying CPEL files, with all in them that nobody knows.

use std::io::{self, Write};

use kymo_machine::ByteOrder;

use crate::file::{File, Header, SECTION_HEAD_SIZE, Section, TABLE_NAME_SIZE, kind};
use crate::write::section;

/// Writes the sections of a file in their order, with all numbers in a byte order.
///
/// In the order that the file has, a whole file is copied byte for byte. In the other one, the
/// numbers of known sections change; what is in unknown sections nobody can tell, and it is
/// copied as it is. Of a damaged file what is there is written, and the copy has no damage of
/// its sections: they are as many and as long as it says.
///
/// # Errors
///
/// Those of the output.
pub fn rewrite(file: &File<'_>, order: ByteOrder, out: &mut impl Write) -> io::Result<()> {
    let header = Header {
        order,
        // There are no more than the header of the file says.
        sections: file.sections.len() as u16,
        ..file.header
    };
    out.write_all(&header.to_bytes())?;
    for one in &file.sections {
        let data = file.data(one);
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
