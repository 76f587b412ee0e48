//! `kymo_fuzz::collectd_files` on inputs that libFuzzer makes up.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kymo_fuzz::collectd_files(data));
