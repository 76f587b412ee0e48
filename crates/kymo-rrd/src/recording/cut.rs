//! A part of a database, in the form of its file.

use std::io::{self, Write};

use super::{CHUNK, Recording};
use crate::Value;
use crate::file::Form;

impl Recording {
    /// Whether [`write_cut`](Self::write_cut) can write it: not of XML, whose values have no places of their own.
    pub fn can_be_cut(&self) -> bool {
        !matches!(self.contents.form, Form::Xml)
    }

    /// Writes the file again, in which the values of all rows are unknown that are not to stay: `stays` gets the
    /// archive, the chunk, and the number of a row in it. Everything else is as it was, byte for byte.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn write_cut(
        &self,
        stays: impl Fn(usize, usize, u64) -> bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let contents = &self.contents;
        let unknown = match &contents.form {
            Form::Native(found) => found.machine.file_nan(),
            _ => Value::UNKNOWN.to_bits(),
        };
        let unknown = contents.order.write(unknown);
        let mut bytes = contents.bytes.to_vec();
        for (archive, grid) in contents.grids.iter().enumerate() {
            let vanished = self.vanished(archive);
            for row in 0..grid.rows {
                let number = vanished + row;
                if stays(archive, (number / CHUNK) as usize, number % CHUNK) {
                    continue;
                }
                // All places were found to lie within the file when it was opened.
                let place = (grid.oldest + row) % grid.places;
                let begin = grid.offset + place * grid.row_stride;
                for source in 0..contents.database.sources.len() as u64 {
                    let at = (begin + source * grid.source_stride) as usize;
                    if let Some(value) = bytes.get_mut(at..at + unknown.len()) {
                        value.copy_from_slice(&unknown);
                    }
                }
            }
        }
        out.write_all(&bytes)
    }
}
