//! How numbers, strings and times become text.
//!
//! Everything is written into a [`Line`]: a buffer that takes short pieces fast, since a
//! recording is shown as hundreds of millions of them.
//!
//! * integers: [`Line::decimal`], [`Line::signed`], [`Line::padded`], [`Line::grouped`],
//!   [`Line::hexadecimal`], [`Line::octal`], [`Line::binary`];
//! * floating point numbers: [`Line::general`] as C's `%g`, [`Line::fixed`] as `%f`,
//!   [`Line::scientific`] as `%e`, [`Line::rrdtool`] as rrdtool prints it,
//!   [`Line::shortest`] as few digits as read back the same;
//! * text: [`Line::c_string`] as a C string literal, [`Line::json_string`] as JSON.
//!
//! Errors in small languages are drawn by [`diagnostic`]; [`json`] reads and writes JSON.
//!
//! ```
//! use kymo_text::Line;
//!
//! let mut line = Line::new();
//! line.push(b"answer = ");
//! line.decimal(42);
//! line.push(b", half = ");
//! line.general(0.5);
//! assert_eq!(line.as_bytes(), b"answer = 42, half = 0.5");
//! ```

pub mod base64;
mod binary128;
pub mod diagnostic;
mod escape;
mod exact;
mod float;
mod integer;
pub mod json;
mod line;
mod nearest;
mod room;
mod scientific;

pub use binary128::Binary128;
pub use escape::{is_invisible, markup, visible};
pub use line::{Line, Stamp};
pub use nearest::nearest;
pub use room::Room;

/// A number and what it counts, which is in the plural unless there is one.
///
/// ```
/// assert_eq!(kymo_text::counted(1, "update"), "1 update");
/// assert_eq!(kymo_text::counted(68, "update"), "68 updates");
/// ```
pub fn counted(count: u64, one: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {one}{plural}")
}
