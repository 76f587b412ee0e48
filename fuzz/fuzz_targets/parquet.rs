//! `kymo_fuzz::parquet` on inputs that libFuzzer makes up.
#![no_main]

use std::sync::Once;

static HOOK: Once = Once::new();

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // libFuzzer's hook ends the process where a library gives up, which kymo takes for damage; what nobody catches still
    // ends it.
    HOOK.call_once(|| std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))));
    kymo_fuzz::parquet(data);
});
