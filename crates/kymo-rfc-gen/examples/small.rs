//! Writes the small trace to the directory that is named: `examples/rfc-small` is made so.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let dir = std::env::args_os()
        .nth(1)
        .map_or_else(PathBuf::new, PathBuf::from);
    kymo_rfc_gen::write(&kymo_rfc_gen::Trace::small(), &dir)?;
    Ok(())
}
