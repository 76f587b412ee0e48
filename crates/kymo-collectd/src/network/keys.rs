//! Users and their passwords.

use std::collections::HashMap;
use std::fmt;

use aes::Aes256;
use hmac::{Hmac, KeyInit, Mac};
use ofb::Ofb;
use ofb::cipher::{KeyIvInit, StreamCipher};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{CHECKSUM, IV};

/// Passwords by user, from a file of lines `USER: PASSWORD`.
#[derive(Clone, Default)]
pub struct Keys(HashMap<String, Key>);

/// What is wrong in a file of passwords.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: &'static str,
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for KeysError {}

/// Without the passwords.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}

impl Keys {
    /// Reads the lines of a file: a user, a colon, and the password, of which blanks before it are
    /// dropped, those behind it not. Lines that begin with `#` are comments.
    ///
    /// # Errors
    ///
    /// The first line that is written otherwise; it does not hold what is in it.
    pub fn parse(text: &[u8]) -> Result<Self, KeysError> {
        let mut keys = Self::default();
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let error = |message| KeysError {
                line: number + 1,
                message,
            };
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let line = line.trim_ascii_start();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let colon = line.iter().position(|byte| *byte == b':');
            let colon = colon.ok_or_else(|| error("expected `USER: PASSWORD`"))?;
            let (user, password) = line.split_at(colon);
            let user = std::str::from_utf8(user.trim_ascii())
                .map_err(|_| error("the user is not UTF-8"))?;
            if user.is_empty() {
                return Err(error("the user is missing"));
            }
            let blanks = |byte: &&u8| matches!(byte, b' ' | b'\t');
            let password = &password[1..];
            let password = &password[password.iter().take_while(blanks).count()..];
            if password.is_empty() {
                return Err(error("the password is missing"));
            }
            keys.add(user, password);
        }
        Ok(keys)
    }

    /// Adds a user, or gives one another password.
    pub fn add(&mut self, user: &str, password: &[u8]) {
        self.0.insert(user.to_string(), Key::new(password));
    }

    pub(super) fn get(&self, user: &[u8]) -> Option<&Key> {
        self.0.get(std::str::from_utf8(user).ok()?)
    }
}

/// What is made of a password, once.
#[derive(Clone)]
pub(super) struct Key {
    mac: Hmac<Sha256>,
    cipher: [u8; 32],
}

impl Key {
    pub(super) fn new(password: &[u8]) -> Self {
        Self {
            mac: Hmac::new_from_slice(password).expect("passwords of any length are keys"),
            cipher: Sha256::digest(password).into(),
        }
    }

    /// The signature of some bytes.
    pub(super) fn sign(&self, bytes: &[u8]) -> [u8; 32] {
        let mut mac = self.mac.clone();
        mac.update(bytes);
        mac.finalize().into_bytes().into()
    }

    /// Whether this is their signature; the time it takes does not reveal where it differs.
    pub(super) fn verify(&self, bytes: &[u8], signature: &[u8]) -> bool {
        let mut mac = self.mac.clone();
        mac.update(bytes);
        mac.verify_slice(signature).is_ok()
    }

    /// Encrypts a payload with its checksum before it.
    pub(super) fn encrypt(&self, iv: &[u8; IV], payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(CHECKSUM + payload.len());
        bytes.extend_from_slice(&Sha1::digest(payload));
        bytes.extend_from_slice(payload);
        self.apply(iv, &mut bytes);
        bytes
    }

    /// The payload of encrypted bytes, with its checksum still before it; `None` where that is
    /// wrong.
    pub(super) fn decrypt(&self, iv: &[u8; IV], bytes: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = bytes.to_vec();
        self.apply(iv, &mut bytes);
        let (checksum, payload) = bytes.split_first_chunk::<CHECKSUM>()?;
        let is_right: bool = Sha1::digest(payload).as_slice().ct_eq(checksum).into();
        is_right.then_some(bytes)
    }

    fn apply(&self, iv: &[u8; IV], bytes: &mut [u8]) {
        Ofb::<Aes256>::new(&self.cipher.into(), &(*iv).into()).apply_keystream(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_passwords() {
        let text = b"# alice: no\n\nalice: s3cret pass\r\n  bob :\thunter2  \ncarol:a:b\n";
        let keys = Keys::parse(text).unwrap();
        assert_eq!(keys.0.len(), 3);
        for (user, password) in [
            ("alice", "s3cret pass"),
            ("bob", "hunter2  "),
            ("carol", "a:b"),
        ] {
            let key = keys.get(user.as_bytes()).unwrap();
            assert_eq!(key.sign(b"x"), Key::new(password.as_bytes()).sign(b"x"));
        }
        assert!(keys.get(b"dave").is_none());
        assert!(keys.get(b"\xff").is_none());
        assert_eq!(format!("{keys:?}"), "Keys(3)");
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_line() {
        for (text, message) in [
            (&b"a: b\nsecret"[..], "line 2: expected `USER: PASSWORD`"),
            (b"\n: x", "line 2: the user is missing"),
            (b"a:  ", "line 1: the password is missing"),
            (b"\xff: x", "line 1: the user is not UTF-8"),
        ] {
            assert_eq!(Keys::parse(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn known_answers() {
        // HMAC of RFC 4231 section 4.3.
        let signature = Key::new(b"Jefe").sign(b"what do ya want for nothing?");
        assert_eq!(signature[..4], [0x5b, 0xdc, 0xc1, 0x46]);
        assert!(Key::new(b"Jefe").verify(b"what do ya want for nothing?", &signature));
        assert!(!Key::new(b"jefe").verify(b"what do ya want for nothing?", &signature));
        assert!(!Key::new(b"Jefe").verify(b"what do ya want for nothing?", &signature[..31]));
        let key = Key::new(b"hunter2");
        let hidden = key.encrypt(&[7; IV], b"payload");
        assert_eq!(
            key.decrypt(&[7; IV], &hidden).unwrap()[CHECKSUM..],
            *b"payload"
        );
        assert_eq!(key.decrypt(&[8; IV], &hidden), None);
        assert_eq!(Key::new(b"hunter3").decrypt(&[7; IV], &hidden), None);
        assert_eq!(key.decrypt(&[7; IV], &hidden[..19]), None);
    }
}
