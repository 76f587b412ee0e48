//! `kymo_fuzz::metric_messages` on inputs that libFuzzer makes up.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kymo_fuzz::metric_messages(data));
