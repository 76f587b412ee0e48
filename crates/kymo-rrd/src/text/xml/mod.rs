//! RRDs as XML: what rrdtool's `dump` writes and its `restore` reads.
//!
//! [`dump`] writes by default what rrdtool writes, byte for byte, which loses digits, parts of
//! a second and all that rrdtool's own file has beside the values. Exactly written
//! ([`Numbers::Exact`]), a dump holds everything, and rrdtool still reads it: what its form has
//! no element for stands in processing instructions named `kymo`, which it skips. The first of
//! them, `<?kymo exact?>`, also says that numbers are to be read correctly rounded, which those
//! of rrdtool are not.
//!
//! | instruction | in | holds |
//! |---|---|---|
//! | `exact` | before `<rrd>` | that the dump is exact |
//! | `version="N"` | `<rrd>` | the version of the file, where it is below 3 |
//! | `stray-micros="N"` | `<rrd>` | [`State::stray_micros`](crate::model::State::stray_micros) |
//! | `name="H"`, `last-reading="H"` | `<ds>` | bytes of a text that XML would change, in hexadecimal |
//! | `program="N,..."` | `<ds>` | the nodes of a `COMPUTE` program whose text means another program |
//! | `current-row="N"` | `<rra>` | the place of the row that was written last |
//! | `period="X"` | `<params>` | the length of a season, of predictions |
//! | `smoothing-window="X"` | `<params>` | that, in versions that do not use it |
//! | `slot-N="H"` | `<ds>` of `<cdp_prep>` | bits of a slot of the preparation area, in hexadecimal |

mod decode;
mod dump;
mod found;
mod plain;
mod pull;
mod restore;
mod stamp;

pub(crate) use dump::history;
pub use dump::{DumpOptions, Header, Numbers, dump};
pub use restore::{RestoreError, RestoreOptions, Restored, restore};
pub use stamp::{LocalTime, Utc, Zone};

/// The name of the instructions that hold what rrdtool's form has no element for.
const INSTRUCTION: &str = "kymo";
