//! Makes a module of each target of `fuzz_targets`, and their list, for the program that has all of them.

use std::fmt::Write;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=fuzz_targets");
    let mut paths = Vec::new();
    for entry in std::fs::read_dir("fuzz_targets")? {
        paths.push(entry?.path());
    }
    paths.sort();
    let mut modules = String::new();
    let mut list = String::new();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        writeln!(
            modules,
            "mod {name} {{\n    use crate::function as libfuzzer_sys;"
        )?;
        let text = std::fs::read_to_string(&path)?;
        // What speaks of a whole program is none of a module's.
        for line in text
            .lines()
            .filter(|line| !line.starts_with("//!") && !line.starts_with("#!["))
        {
            writeln!(modules, "    {line}")?;
        }
        modules.push_str("}\n");
        writeln!(list, "    ({name:?}, {name}::target),")?;
    }
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(
        Path::new(&out).join("targets.rs"),
        format!("{modules}\nconst TARGETS: &[(&str, Target)] = &[\n{list}];\n"),
    )?;
    Ok(())
}
