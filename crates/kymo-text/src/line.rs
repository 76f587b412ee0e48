//! A buffer for text that is made of many short pieces.

/// Text in the making.
///
/// The bytes behind the text are initialised, so that a short piece is copied as a block
/// of fixed size, which costs no call, and only the length determines how much of it counts.
#[derive(Clone, Debug)]
pub struct Line {
    bytes: Vec<u8>,
    len: usize,
    /// Where what is bounded begins, and where it has to end.
    begin: usize,
    end: usize,
    is_cut: bool,
}

impl Default for Line {
    fn default() -> Self {
        Self::new()
    }
}

impl Line {
    /// An empty line.
    pub const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            len: 0,
            begin: 0,
            end: usize::MAX,
            is_cut: false,
        }
    }

    /// Bounds what is appended from here on, roughly: of more than `most` bytes the first ones
    /// are dropped, so that memory is bounded too, and [`Line::is_cut`] reports it.
    #[inline]
    pub fn bound(&mut self, most: usize) {
        self.begin = self.len;
        self.end = self.len.saturating_add(most);
        self.is_cut = false;
    }

    /// How much may still be appended before something is dropped.
    pub const fn left(&self) -> usize {
        self.end.saturating_sub(self.len)
    }

    /// Whether something was dropped since [`Line::bound`].
    #[inline]
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Drops what was appended since [`Line::bound`].
    #[cold]
    pub fn cut(&mut self) {
        self.len = self.begin.min(self.len);
        self.is_cut = true;
    }

    /// Makes the line empty. Its memory is kept.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Makes the line as long as it was before: see [`Line::len`].
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Number of bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Number of bytes there is memory for.
    pub const fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the text is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The text.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Appends bytes as they are.
    #[inline]
    pub fn push(&mut self, text: &[u8]) {
        if self.len + text.len() > self.bytes.len() {
            self.grow(text.len());
        }
        let end = self.len + text.len();
        self.bytes[self.len..end].copy_from_slice(text);
        self.len = end;
    }

    /// Appends one byte.
    #[inline]
    pub fn push_byte(&mut self, byte: u8) {
        self.window::<1>()[0] = byte;
        self.len += 1;
    }

    /// Writes over bytes that were appended before. Where they were dropped meanwhile, nothing is
    /// written.
    #[inline]
    pub fn overwrite(&mut self, at: usize, bytes: &[u8]) {
        let end = at.saturating_add(bytes.len());
        if end <= self.len {
            self.bytes[at..end].copy_from_slice(bytes);
        }
    }

    /// Appends a prepared piece.
    #[inline(always)]
    pub fn stamp(&mut self, stamp: &Stamp) {
        if let Some(long) = &stamp.long {
            return self.push_long(long);
        }
        *self.window() = stamp.short;
        self.len += usize::from(stamp.len);
    }

    /// Long pieces are rare: apart, they do not make the usual way longer.
    #[cold]
    fn push_long(&mut self, long: &[u8]) {
        self.push(long);
    }

    /// The next `N` bytes after the text. What is written there becomes text when
    /// [`Line::advance`] says so.
    #[inline]
    pub(crate) fn window<const N: usize>(&mut self) -> &mut [u8; N] {
        if self.len + N > self.bytes.len() {
            self.grow(N);
        }
        self.bytes[self.len..]
            .first_chunk_mut()
            .expect("grown to have room")
    }

    /// Makes the next `count` bytes text.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        debug_assert!(self.len + count <= self.bytes.len());
        self.len += count;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, more: usize) {
        if self.len + more > self.end {
            self.cut();
        }
        let needed = self.len + more;
        let size = needed.max((self.bytes.len() * 2).min(self.end)).max(256);
        if needed > self.bytes.len() {
            self.bytes.resize(size, 0);
        }
    }
}

impl std::fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

/// A piece of text that is appended again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// A text of up to this length is copied as one block.
    short: [u8; Self::SHORT],
    len: u8,
    /// Any other text.
    #[expect(
        clippy::box_collection,
        reason = "a pointer of one word keeps stamps, which are read all the time, small"
    )]
    long: Option<Box<Vec<u8>>>,
}

impl Stamp {
    pub(crate) const SHORT: usize = 31;

    /// Prepares a text.
    pub fn new(text: &[u8]) -> Self {
        let mut stamp = Self::default();
        match stamp.short.get_mut(..text.len()) {
            Some(short) => {
                short.copy_from_slice(text);
                stamp.len = text.len() as u8;
            }
            None => stamp.long = Some(Box::new(text.to_vec())),
        }
        stamp
    }

    /// Whether the text is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0 && self.long.is_none()
    }

    /// Whether it is copied as one block and owns no other memory.
    #[inline]
    pub const fn is_short(&self) -> bool {
        self.long.is_none()
    }

    /// A short text: a block and how much of it counts.
    #[inline(always)]
    pub(crate) fn short(&self) -> Option<(&[u8; Self::SHORT], usize)> {
        let short = (&self.short, usize::from(self.len));
        self.long.is_none().then_some(short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_length_follow_each_other() {
        let mut line = Line::new();
        let mut expected = Vec::new();
        for len in [0, 1, 31, 32, 33, 300, 5] {
            let text: Vec<u8> = (0..len).map(|i| b'a' + (i % 26) as u8).collect();
            line.stamp(&Stamp::new(&text));
            line.push(&text);
            line.push_byte(b';');
            expected.extend_from_slice(&text);
            expected.extend_from_slice(&text);
            expected.push(b';');
        }
        assert_eq!(line.as_bytes(), expected);
        line.overwrite(1, b"xy");
        line.overwrite(expected.len() - 1, b"no room");
        expected[1..3].copy_from_slice(b"xy");
        assert_eq!(line.as_bytes(), expected);
        line.truncate(3);
        assert_eq!(line.len(), 3);
        line.clear();
        assert!(line.is_empty());
    }

    #[test]
    fn what_is_bounded_does_not_take_more_memory() {
        let mut line = Line::new();
        line.push(b"before");
        line.bound(5000);
        for _ in 0..100 {
            line.push(&[b'x'; 40]);
        }
        assert!(!line.is_cut());
        assert!(line.left() <= 1000);
        for _ in 0..10_000 {
            line.push(&[b'x'; 40]);
            line.push_byte(b'y');
        }
        assert!(line.is_cut());
        assert!(line.capacity() < 6000);
        line.truncate(6);
        assert_eq!(line.as_bytes(), b"before");
    }
}
