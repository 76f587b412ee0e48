//! The members of a tar archive: v7, ustar, pax, and what GNU tar adds.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::ReadAt;

/// Headers and contents are padded to this number of bytes.
pub(super) const BLOCK: usize = 512;

/// Extended headers and long names are not larger.
const MOST_EXTENDED: u64 = 1 << 20;

/// The longest name of a member.
const MOST_NAME: usize = 4096;

/// A header, of which the checksum is right.
pub(super) struct Header<'a>(&'a [u8; BLOCK]);

impl<'a> Header<'a> {
    pub(super) fn new(block: &'a [u8; BLOCK]) -> Option<Self> {
        // The checksum is that of a header in which it is blank.
        let blank = 148..156;
        let sum = |signed: bool| -> i64 {
            let value = |byte: u8| match signed {
                true => i64::from(byte as i8),
                false => i64::from(byte),
            };
            let others = (0..BLOCK).filter(|at| !blank.contains(at));
            others.map(|at| value(block[at])).sum::<i64>() + 8 * i64::from(b' ')
        };
        let reported = i64::try_from(octal(&block[blank.clone()])?).ok()?;
        // Some old programs added signed bytes.
        (reported == sum(false) || reported == sum(true)).then_some(Self(block))
    }

    fn kind(&self) -> u8 {
        self.0[156]
    }

    fn size(&self) -> Option<u64> {
        number(&self.0[124..136])
    }

    fn link(&self) -> &'a [u8] {
        text(&self.0[157..257])
    }

    /// The name; in ustar it has a beginning elsewhere, in GNU tar's form other things are there.
    fn name(&self) -> Vec<u8> {
        let name = text(&self.0[..100]);
        let prefix = match &self.0[257..263] {
            b"ustar\0" => text(&self.0[345..500]),
            _ => b"",
        };
        match prefix {
            b"" => name.to_vec(),
            prefix => [prefix, b"/", name].concat(),
        }
    }
}

/// What is before the first zero.
fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0);
    &field[..end.unwrap_or(field.len())]
}

/// An octal number, with spaces or zeros around it.
fn octal(field: &[u8]) -> Option<u64> {
    let digits = text(field).trim_ascii();
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = char::from(*digit).to_digit(8)?;
        number.checked_mul(8)?.checked_add(u64::from(digit))
    })
}

/// An octal number, or one of GNU tar's binary ones, which begin with the highest bit.
fn number(field: &[u8]) -> Option<u64> {
    match field.split_first()? {
        (0x80, rest) => rest.iter().try_fold(0_u64, |number, byte| {
            number.checked_mul(256)?.checked_add(u64::from(*byte))
        }),
        (first, _) if first & 0x80 != 0 => None,
        _ => octal(field),
    }
}

#[cfg(unix)]
fn name_of(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn name_of(bytes: Vec<u8>) -> PathBuf {
    OsString::from(String::from_utf8_lossy(&bytes).into_owned()).into()
}

/// A member of an archive.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// Where its content begins.
    pub(super) offset: u64,
    /// Bytes of its content, as it says.
    length: u64,
    /// Bytes of its content that there are.
    pub(super) present: u64,
}

impl Member {
    /// Bytes that are missing, since the archive is cut off.
    pub(super) fn lost(&self) -> Option<u64> {
        Some(self.length - self.present).filter(|lost| *lost > 0)
    }
}

#[derive(Debug)]
pub(super) enum Kind {
    File,
    Directory,
    SymbolicLink(PathBuf),
    HardLink(PathBuf),
    /// A device or a pipe.
    Other,
    /// Why it cannot be read.
    Unsupported(&'static str),
}

/// What an extended header says of the next member.
#[derive(Default)]
struct Extended {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    is_sparse: bool,
}

impl Extended {
    /// Reads records of pax: `LENGTH KEY=VALUE\n`.
    fn read(&mut self, mut records: &[u8]) -> Option<()> {
        while !text(records).is_empty() {
            let space = records.iter().position(|byte| *byte == b' ')?;
            let length = std::str::from_utf8(&records[..space]).ok()?.parse().ok()?;
            let record = records.get(..length)?.get(space + 1..)?;
            let record = record.strip_suffix(b"\n")?;
            let equals = record.iter().position(|byte| *byte == b'=')?;
            let (key, value) = (&record[..equals], record[equals + 1..].to_vec());
            match key {
                b"path" => self.name = Some(value),
                b"linkpath" => self.link = Some(value),
                b"size" => self.size = Some(std::str::from_utf8(&value).ok()?.parse().ok()?),
                key if key.starts_with(b"GNU.sparse.") => self.is_sparse = true,
                _ => {}
            }
            records = &records[length..];
        }
        Some(())
    }
}

/// Reads the members of an archive, one after the other.
pub(super) struct Members<'a> {
    source: &'a dyn ReadAt,
    at: u64,
    pub(super) damage: Option<String>,
}

impl<'a> Members<'a> {
    pub(super) fn new(source: &'a dyn ReadAt) -> Self {
        Self {
            source,
            at: 0,
            damage: None,
        }
    }

    /// The next member; the archive ends with a block of zeros, or where its file does.
    pub(super) fn next(&mut self) -> io::Result<Option<Member>> {
        let end = self.source.length()?;
        let mut extended = Extended::default();
        loop {
            let begin = self.at;
            let left = end.saturating_sub(begin);
            if left == 0 {
                return Ok(None);
            }
            let mut block = [0; BLOCK];
            if left < BLOCK as u64 {
                return Ok(self.stop("the archive is cut off within the header", begin));
            }
            self.source.read_at(begin, &mut block)?;
            if block.iter().all(|byte| *byte == 0) {
                return Ok(None);
            }
            let header = Header::new(&block);
            let Some((header, size)) =
                header.and_then(|header| header.size().map(|size| (header, size)))
            else {
                return Ok(self.stop("the archive is damaged: a header is missing", begin));
            };
            let offset = begin + BLOCK as u64;
            let kind = header.kind();
            if matches!(kind, b'L' | b'K' | b'x' | b'g' | b'X') {
                if !self.skip(offset, size) || self.at > end || size > MOST_EXTENDED {
                    return Ok(self.stop(
                        "the archive is damaged: an extended header is missing",
                        begin,
                    ));
                }
                if kind == b'g' {
                    // It has no names, and sizes of all members are none.
                    continue;
                }
                let content = self.source.read_range(offset..offset + size)?;
                match kind {
                    b'L' => extended.name = Some(text(&content).to_vec()),
                    b'K' => extended.link = Some(text(&content).to_vec()),
                    _ if extended.read(&content).is_none() => {
                        return Ok(self.stop(
                            "the archive is damaged: the extended header is wrong",
                            begin,
                        ));
                    }
                    _ => {}
                }
                continue;
            }
            let length = extended.size.unwrap_or(size);
            let name = extended.name.take().unwrap_or_else(|| header.name());
            let link = extended
                .link
                .take()
                .unwrap_or_else(|| header.link().to_vec());
            // Old archives mark directories by their names.
            let is_directory = name.ends_with(b"/");
            let is_long = name.len() > MOST_NAME || link.len() > MOST_NAME;
            let kind = match kind {
                _ if is_long => Kind::Unsupported("its name is too long"),
                b'S' => {
                    Kind::Unsupported("sparse files are not supported; extract the archive first")
                }
                _ if extended.is_sparse => {
                    Kind::Unsupported("sparse files are not supported; extract the archive first")
                }
                b'M' => Kind::Unsupported("it began in another volume of the archive"),
                b'1' => Kind::HardLink(name_of(link)),
                b'2' => Kind::SymbolicLink(name_of(link)),
                b'5' | b'D' => Kind::Directory,
                b'3' | b'4' | b'6' => Kind::Other,
                // The name of a volume.
                b'V' => {
                    self.at = offset;
                    extended = Extended::default();
                    continue;
                }
                _ if is_directory => Kind::Directory,
                _ => Kind::File,
            };
            // Some programs record the size of a link's target.
            let length = match kind {
                Kind::File | Kind::Unsupported(_) => length,
                Kind::Directory if header.kind() == b'D' => length,
                _ => 0,
            };
            // The map of a sparse file goes on in blocks of its own.
            let mut offset = offset;
            let mut goes_on = header.kind() == b'S' && block[482] != 0;
            while goes_on && offset < end {
                let mut map = [0; BLOCK];
                if self.source.read_at(offset, &mut map).is_err() {
                    break;
                }
                offset += BLOCK as u64;
                goes_on = map[504] != 0;
            }
            if !self.skip(offset, length) {
                return Ok(self.stop(
                    "the archive is damaged: there is a member of impossible size",
                    begin,
                ));
            }
            return Ok(Some(Member {
                path: name_of(name[..name.len().min(MOST_NAME)].to_vec()),
                kind,
                offset: offset.min(end),
                length,
                present: length.min(end.saturating_sub(offset)),
            }));
        }
    }

    /// Goes behind content. `false` if nothing can be there.
    fn skip(&mut self, offset: u64, length: u64) -> bool {
        let block = BLOCK as u64;
        let next = length.checked_next_multiple_of(block);
        match next.and_then(|length| offset.checked_add(length)) {
            Some(next) => {
                self.at = next;
                true
            }
            None => false,
        }
    }

    /// Ends the archive before its time.
    fn stop(&mut self, why: &str, at: u64) -> Option<Member> {
        self.damage = Some(format!("{why} at byte {at}; members after it are not read"));
        self.at = u64::MAX;
        None
    }
}
