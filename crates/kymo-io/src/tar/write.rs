//! Directories as tar archives.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use super::header::BLOCK;

/// The longest name that fits into a header; longer ones stand before it, as GNU tar writes them.
const SHORT_NAME: usize = 100;

/// The largest file of which the size fits into a header.
const MOST_SIZE: u64 = (1 << 33) - 1;

/// Writes a directory with all files in it, recursively, as a tar archive in which it is called `name`. Owners and times are
/// left out, and the files are in the order of their names, so that the same files make the same archive.
///
/// # Errors
///
/// Those of reading and writing; `InvalidData` if a file is larger than 8 GiB, or its size changes meanwhile.
pub fn write_directory(directory: &Path, name: &str, out: &mut dyn Write) -> io::Result<()> {
    write_below(directory, name.as_bytes(), out)?;
    out.write_all(&[0; 2 * BLOCK])
}

fn write_below(directory: &Path, name: &[u8], out: &mut dyn Write) -> io::Result<()> {
    put_header(&[name, b"/"].concat(), b'5', 0, out)?;
    let entries = std::fs::read_dir(directory)?;
    let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let own = [name, b"/", entry.file_name().as_encoded_bytes()].concat();
        // Links and what is not a file have no place in an archive of what was written.
        let kind = entry.file_type()?;
        if kind.is_dir() {
            write_below(&entry.path(), &own, out)?;
        } else if kind.is_file() {
            let mut file = File::open(entry.path())?;
            let size = file.metadata()?.len();
            put_header(&own, b'0', size, out)?;
            if io::copy(&mut (&mut file).take(size), out)? != size {
                return Err(invalid("a file has become shorter while it was read"));
            }
            put_padding(size, out)?;
        }
    }
    Ok(())
}

fn invalid(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

fn put_padding(size: u64, out: &mut dyn Write) -> io::Result<()> {
    let rest = (size % BLOCK as u64) as usize;
    out.write_all(&[0; BLOCK][..(BLOCK - rest) % BLOCK])
}

fn put_header(name: &[u8], kind: u8, size: u64, out: &mut dyn Write) -> io::Result<()> {
    if name.len() > SHORT_NAME {
        let long = [name, b"\0"].concat();
        put_header(b"././@LongLink", b'L', long.len() as u64, out)?;
        out.write_all(&long)?;
        put_padding(long.len() as u64, out)?;
    }
    if size > MOST_SIZE {
        return Err(invalid("a file is larger than 8 GiB"));
    }
    let mut block = [0; BLOCK];
    let short = &name[..name.len().min(SHORT_NAME)];
    block[..short.len()].copy_from_slice(short);
    let mode: &[u8] = if kind == b'5' { b"0000755" } else { b"0000644" };
    block[100..107].copy_from_slice(mode);
    for field in [108, 116] {
        block[field..field + 7].copy_from_slice(b"0000000");
    }
    block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    block[136..147].copy_from_slice(b"00000000000");
    block[156] = kind;
    block[257..265].copy_from_slice(b"ustar\x0000");
    // The checksum is that of a header in which it is blank.
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    out.write_all(&block)
}
