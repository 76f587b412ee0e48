//! Portable files: what is in them, what they survive, what they refuse.

mod bytes;
mod crash;
mod hostile;
mod made_up;
mod size;
mod updates;

use proptest::test_runner::Config;

/// How many cases are tried: fewer on big-endian machines, which are emulated and some fifty
/// times slower. What depends on the byte order shows in a few.
fn cases(cases: u32) -> Config {
    Config::with_cases(if cfg!(target_endian = "big") {
        cases.div_ceil(20)
    } else {
        cases
    })
}
