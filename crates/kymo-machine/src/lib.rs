//! How machines write numbers: byte orders, integers, floating point numbers and their NaNs,
//! the layout of C structs, bit fields. No input or output, and nothing depends on the machine
//! that runs this.
//!
//! * [`Machine`]: what is known of a machine, by name;
//! * [`integer`]: integers of 1 to 8 bytes;
//! * [`float`]: doubles as each machine stores them, one or millions;
//! * [`Number`]: doubles as people write them and C reads them;
//! * [`layout`]: where the members of C structs are;
//! * [`bits`]: bit fields of any size at any bit.
//!
//! ```
//! use kymo_machine::Machine;
//! use kymo_machine::layout::{CType, Layout, Struct};
//!
//! let description = Struct::new("head")
//!     .member("version", CType::array(CType::Char, 5))
//!     .member("cookie", CType::Double)
//!     .member("count", CType::ULONG);
//! let sparc = Machine::find("sparc").unwrap();
//! let layout = Layout::of(&description, sparc).unwrap();
//! assert_eq!(layout.members[1].offset, 8);
//! assert_eq!((layout.size, layout.align), (24, 8));
//! assert_eq!(sparc.double_to_bytes(1.0f64.to_bits()), [0x3f, 0xf0, 0, 0, 0, 0, 0, 0]);
//! ```

pub mod bits;
pub mod float;
pub mod integer;
pub mod layout;
mod machine;
mod strtod;

pub use integer::Width;
pub use machine::{FloatOrder, Machine};
pub use strtod::{NotANumber, Number};

/// The order in which the bytes of a number follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first; also the order of network protocols.
    Big,
}
