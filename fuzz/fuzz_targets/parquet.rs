//! `kymo_fuzz::parquet` on inputs that libFuzzer makes up.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kymo_fuzz::parquet(data));
