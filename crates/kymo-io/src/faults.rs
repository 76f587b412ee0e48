//! A file that fails, for tests: what is left of it when a program or a machine stops.

use std::io;

use crate::{ReadAt, Storage};

/// Something that was done to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Bytes were written at an offset.
    Write(u64, Vec<u8>),
    /// The length was set.
    SetLength(u64),
    /// Everything before reached the disk.
    Sync,
}

/// A file in memory that records what is done to it, and can be made to be full.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    before: Vec<u8>,
    now: Vec<u8>,
    operations: Vec<Operation>,
    room: Option<u64>,
    syncs_fail: bool,
}

impl Recorder {
    /// A file of this content, which is on the disk.
    pub fn new(content: Vec<u8>) -> Self {
        Self {
            now: content.clone(),
            before: content,
            operations: Vec::new(),
            room: None,
            syncs_fail: false,
        }
    }

    /// What was done.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The content as programs see it.
    pub fn content(&self) -> &[u8] {
        &self.now
    }

    /// Sets the number of bytes that can still be written; the write that needs more writes what it
    /// can and fails, all after it fail. `None`: no limit.
    pub fn set_room(&mut self, bytes: Option<u64>) {
        self.room = bytes;
    }

    /// Whether syncs fail from now on.
    pub fn set_syncs_fail(&mut self, fail: bool) {
        self.syncs_fail = fail;
    }

    /// Number of bytes that were written.
    pub fn written(&self) -> u64 {
        self.operations
            .iter()
            .map(|operation| match operation {
                Operation::Write(_, bytes) => bytes.len() as u64,
                _ => 0,
            })
            .sum()
    }

    /// The content after a program stopped when it had written `bytes` bytes.
    pub fn cut(&self, mut bytes: u64) -> Vec<u8> {
        let mut content = self.before.clone();
        for operation in &self.operations {
            match operation {
                Operation::Write(offset, data) => {
                    let part = data.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
                    put(&mut content, *offset, &data[..part]);
                    bytes -= part as u64;
                    if part < data.len() {
                        break;
                    }
                }
                Operation::SetLength(length) => content.resize(size(*length), 0),
                Operation::Sync => {}
            }
        }
        content
    }

    /// The content after the machine stopped when a number of operations had been done. Of what was
    /// written since the last sync, cut into pieces at multiples of `piece` bytes (512: sectors,
    /// 1: bytes), any may be missing, and they arrive in any order. `choose` decides: it gives
    /// a number below that which it is given.
    pub fn power_loss(
        &self,
        operations: usize,
        piece: u64,
        mut choose: impl FnMut(usize) -> usize,
    ) -> Vec<u8> {
        let done = &self.operations[..operations.min(self.operations.len())];
        let synced = done
            .iter()
            .rposition(|operation| *operation == Operation::Sync)
            .map_or(0, |last| last + 1);
        let mut content = self.before.clone();
        let mut pieces = Vec::new();
        for (index, operation) in done.iter().enumerate() {
            match operation {
                Operation::Write(offset, bytes) if index < synced => {
                    put(&mut content, *offset, bytes);
                }
                Operation::Write(offset, bytes) => {
                    let mut at = 0;
                    while at < bytes.len() {
                        let begin = offset + at as u64;
                        let length = (piece - begin % piece).min((bytes.len() - at) as u64);
                        let end = at + length as usize;
                        pieces.push((begin, &bytes[at..end]));
                        at = end;
                    }
                }
                Operation::SetLength(length) => content.resize(size(*length), 0),
                Operation::Sync => {}
            }
        }
        // How likely a piece is to arrive differs, so that almost all and almost none occur.
        let chance = choose(9);
        for last in (0..pieces.len()).rev() {
            let (offset, bytes) = pieces.swap_remove(choose(last + 1));
            if choose(8) < chance {
                put(&mut content, offset, bytes);
            }
        }
        content
    }

    /// How much of a write there is room for.
    fn take_room(&mut self, bytes: u64) -> u64 {
        let Some(room) = &mut self.room else {
            return bytes;
        };
        let taken = bytes.min(*room);
        *room -= taken;
        taken
    }
}

fn size(length: u64) -> usize {
    usize::try_from(length).expect("a test's file fits into memory")
}

fn put(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    content
        .write_at(offset, bytes)
        .expect("a test's file fits into memory");
}

impl ReadAt for Recorder {
    fn length(&self) -> io::Result<u64> {
        self.now.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.now.read_at(offset, buffer)
    }
}

impl Storage for Recorder {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let part = size(self.take_room(bytes.len() as u64));
        self.now.write_at(offset, &bytes[..part])?;
        self.operations
            .push(Operation::Write(offset, bytes[..part].to_vec()));
        if part < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.now.set_length(length)?;
        self.operations.push(Operation::SetLength(length));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.syncs_fail {
            return Err(io::Error::other("the disk fails"));
        }
        self.operations.push(Operation::Sync);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn recorded() -> Recorder {
        let mut file = Recorder::new(b"......".to_vec());
        file.write_at(0, b"ab").unwrap();
        file.sync().unwrap();
        file.write_at(1, b"BCD").unwrap();
        file.write_at(5, b"x").unwrap();
        file
    }

    #[test]
    fn a_program_stops_at_any_byte() {
        let file = recorded();
        let contents: Vec<_> = (0..=file.written()).map(|bytes| file.cut(bytes)).collect();
        let expected = [
            "......", "a.....", "ab....", "aB....", "aBC...", "aBCD..", "aBCD.x",
        ];
        assert_eq!(
            contents,
            expected.map(|content| content.as_bytes().to_vec())
        );
        assert_eq!(file.content(), b"aBCD.x");
    }

    #[test]
    fn a_machine_stops_with_any_part_of_what_was_not_synced() {
        let file = recorded();
        let losses = |operations, piece| {
            let mut state = 1_u64;
            (0..4000)
                .map(|_| {
                    file.power_loss(operations, piece, |below| {
                        state = state.wrapping_mul(6_364_136_223_846_793_005) + 1;
                        ((state >> 33) % below as u64) as usize
                    })
                })
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(losses(2, 1).len(), 1, "all of it is synced");
        assert_eq!(losses(1, 1).len(), 4, "each byte or not");
        assert_eq!(losses(4, 1).len(), 16);
        // Pieces at 2: "B", "CD", "x".
        assert_eq!(losses(4, 2).len(), 8);
        assert_eq!(losses(4, 512).len(), 4);
    }

    #[test]
    fn a_full_disk_takes_what_fits() {
        let mut file = Recorder::new(Vec::new());
        file.set_room(Some(3));
        file.write_at(0, b"ab").unwrap();
        let error = file.write_at(2, b"cd").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(file.write_at(0, b"x").is_err());
        assert_eq!(file.content(), b"abc");
        file.set_room(None);
        file.set_syncs_fail(true);
        assert!(file.sync().is_err());
        assert!(!file.operations().contains(&Operation::Sync));
        file.write_at(3, b"d").unwrap();
        assert_eq!(file.cut(file.written()), b"abcd");
    }
}
