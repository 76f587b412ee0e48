//! librrd's C interface on kymo: `librrd.so.8`, with the functions that Debian's library exports.
//!
//! Programs that are linked to librrd run on it unchanged. `include/` has the headers for new ones.
//! What the functions do is in `kymo-rrdtool` and `kymo-rrd`; here is how C calls it:
//!
//! * `boundary`: strings, lists and memory of C; failures and panics become error messages;
//! * `context`: the error message of a thread; `variadic`: functions with variable arguments;
//! * `session`: what a call works in;
//! * `commands`: functions that take a command line; `reentrant`: those ending in `_r`;
//! * `answers`: results as C has them; `facts`: lists of keys and values;
//! * `client`: functions beginning with `rrdc_`; `callback`: rows that the program has itself;
//! * `times`, `numbers`, `pointers`: helpers; `raw`: files as C structs.
//!
//! Memory that callers free comes from `malloc`. No panic crosses the boundary.

#![allow(
    unsafe_code,
    reason = "callers are C: they pass pointers and own memory"
)]
#![allow(
    clippy::unnecessary_cast,
    reason = "`long` and `time_t` have 32 bits on some machines"
)]

mod answers;
mod boundary;
mod callback;
mod client;
mod commands;
mod context;
mod facts;
mod numbers;
mod pointers;
mod raw;
mod reentrant;
mod session;
mod times;
mod variadic;
