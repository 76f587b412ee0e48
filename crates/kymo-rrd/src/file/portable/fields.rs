//! Fields of a file, one after the other.

use super::Error;
use crate::Value;

/// Reads fields, and knows where in the file they are.
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    offset: u64,
}

impl<'a> Fields<'a> {
    /// The fields in `bytes`, which begin at an offset of the file.
    pub(super) fn new(bytes: &'a [u8], offset: u64) -> Self {
        Self { bytes, offset }
    }

    /// Where the next field begins.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len()
    }

    /// Takes the next `size` bytes.
    pub(super) fn take(&mut self, size: usize) -> Result<&'a [u8], Error> {
        let Some((bytes, rest)) = self.bytes.split_at_checked(size) else {
            return Err(Error::wrong(
                "end of what belongs together",
                self.offset,
                format!("{} bytes", self.bytes.len()),
                format!("{size}"),
            ));
        };
        self.bytes = rest;
        self.offset += size as u64;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Error> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, Error> {
        self.array().map(i64::from_le_bytes)
    }

    pub(super) fn value(&mut self) -> Result<Value, Error> {
        self.u64().map(Value::from_bits)
    }
}

/// Writes fields.
pub(super) trait PutFields {
    fn put_u8(&mut self, number: u8);
    fn put_u16(&mut self, number: u16);
    fn put_u32(&mut self, number: u32);
    fn put_u64(&mut self, number: u64);
    fn put_i64(&mut self, number: i64);
    fn put_value(&mut self, value: Value);
    /// Bytes, and zeros up to a size.
    fn put_padded(&mut self, bytes: &[u8], size: usize);
}

impl PutFields for Vec<u8> {
    fn put_u8(&mut self, number: u8) {
        self.push(number);
    }

    fn put_u16(&mut self, number: u16) {
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn put_u32(&mut self, number: u32) {
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn put_u64(&mut self, number: u64) {
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn put_i64(&mut self, number: i64) {
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn put_value(&mut self, value: Value) {
        self.put_u64(value.to_bits());
    }

    fn put_padded(&mut self, bytes: &[u8], size: usize) {
        let end = self.len() + size;
        self.extend_from_slice(bytes);
        self.resize(end, 0);
    }
}
