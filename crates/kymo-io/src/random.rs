//! Bytes that cannot be guessed.

use std::io;

/// Random bytes, as the operating system makes them for keys.
///
/// # Errors
///
/// Where it has none.
#[cfg(unix)]
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    use std::io::Read;

    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Random bytes, as the operating system makes them for keys.
///
/// # Errors
///
/// Always: it is not known where this system has them.
#[cfg(not(unix))]
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
