//! All targets in one program, which `KYMO_FUZZ_TARGET` chooses from: linked once, where each of them would be linked
//! with all of kymo. libFuzzer's own search is quicker in the programs of `fuzz_targets`, whose branches are fewer.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

/// What makes a function of a target that would be a program.
mod function {
    macro_rules! fuzz_target {
        (|$data:ident: &[u8]| $body:expr) => {
            pub(super) fn target($data: &[u8]) {
                $body
            }
        };
    }
    pub(crate) use fuzz_target;
}

/// A check of any bytes.
type Target = fn(&[u8]);

// A module of each target, and TARGETS: their names and functions.
include!(concat!(env!("OUT_DIR"), "/targets.rs"));

static CHOSEN: OnceLock<Target> = OnceLock::new();

/// The target that the environment names.
fn chosen() -> Target {
    let name = std::env::var("KYMO_FUZZ_TARGET").unwrap_or_default();
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    let Some(&(_, target)) = found else {
        panic!("KYMO_FUZZ_TARGET is `{name}`, which is not a target in fuzz_targets");
    };
    target
}

fuzz_target!(
    init: {
        CHOSEN.get_or_init(chosen);
    },
    |data: &[u8]| CHOSEN.get_or_init(chosen)(data)
);
