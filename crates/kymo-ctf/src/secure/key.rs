//! Keys, and the files that they are kept in.

use std::fmt;

use zeroize::Zeroizing;

use super::packet::Cipher;

/// A key of AES: 128, 192 or 256 bits. Its memory is overwritten when it is dropped, and so is what ciphers make
/// of it.
#[derive(Clone)]
pub struct Key {
    bytes: Zeroizing<Vec<u8>>,
    cipher: Cipher,
}

impl Key {
    /// A key of 16, 24 or 32 bytes; `None` of any other number.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let cipher = Cipher::new(bytes)?;
        let bytes = Zeroizing::new(bytes.to_vec());
        Some(Self { bytes, cipher })
    }

    /// Reads what a key file holds: 16, 24 or 32 bytes that are the key, or twice as many
    /// hexadecimal digits and the end of their line.
    ///
    /// 32 bytes are always a 256-bit key, even if all bytes are digits.
    ///
    /// # Errors
    ///
    /// If it holds something else.
    pub fn parse(file: &[u8]) -> Result<Self, KeyError> {
        let key = Self::new(file).or_else(|| Self::new(&of_digits(file)?));
        key.ok_or(KeyError { length: file.len() })
    }

    /// Its bytes: 16, 24 or 32.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn cipher(&self) -> &Cipher {
        &self.cipher
    }
}

/// The bytes that a line of hexadecimal digits stands for.
fn of_digits(line: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let digits = line.strip_suffix(b"\n").unwrap_or(line);
    let digits = digits.strip_suffix(b"\r").unwrap_or(digits);
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| match *pair {
        [high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
        _ => None,
    };
    // As large as it becomes: a vector that grows leaves parts of the key behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(digits.len().div_ceil(2)));
    for digits in digits.chunks(2) {
        bytes.push(pair(digits)?);
    }
    Some(bytes)
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Key {}

impl fmt::Debug for Key {
    /// Its size only: what is shown for debugging is kept in places where keys must not be.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} bits)", self.bytes.len() * 8)
    }
}

/// A file that holds no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyError {
    length: usize,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "found {} bytes that are not a key, expected 16, 24 or 32 bytes, or twice as many hexadecimal digits in a line",
            self.length
        )
    }
}

impl std::error::Error for KeyError {}
