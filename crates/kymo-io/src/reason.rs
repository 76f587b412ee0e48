//! The messages of the operating system.

use std::io;

/// The message of the operating system, without the number that Rust puts behind it.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match (error.raw_os_error(), text.rfind(" (os error ")) {
        (Some(_), Some(end)) => text[..end].to_owned(),
        _ => text,
    }
}
