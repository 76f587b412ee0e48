//! What a damaged trace should say: times and counters of packets that contradict their events or
//! neighbours, events out of the order of time, index files that are missing.
//!
//! A [`Mender`] goes through the packets of a stream and decides what their heads should be; an
//! [`Order`] only finds the events that are out of order. Neither changes the trace: who writes it
//! again must query them.

mod index;
mod mend;
mod order;
mod section;
mod sift;

pub use self::index::{Indexes, indexes, packet_info};
pub use self::mend::{Mended, Mender, Times};
pub use self::order::{Judged, Order};
pub use self::sift::Sifted;
