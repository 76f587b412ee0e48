//! `kymo print --debug-info` beside babeltrace2's and beside addr2line, on programs in C, C++ and Rust that LTTng records now.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Counts;
use crate::Outcome;
use crate::process::{command, hear, require};

/// What is built and recorded, and the script that does so.
const SOURCES: [(&str, &str); 9] = [
    ("tp.h", include_str!("symbols/tp.h")),
    ("tp.c", include_str!("symbols/tp.c")),
    ("main.c", include_str!("symbols/main.c")),
    ("shared.c", include_str!("symbols/shared.c")),
    ("plugin.c", include_str!("symbols/plugin.c")),
    ("cxx.cpp", include_str!("symbols/cxx.cpp")),
    ("calls.c", include_str!("symbols/calls.c")),
    ("rusty.rs", include_str!("symbols/rusty.rs")),
    ("record.sh", include_str!("symbols/record.sh")),
];

/// `bin`, `func` and `src`.
type Info = [String; 3];

/// Compares, and prints a line for each comparison.
pub(super) fn run(kymo: &Path) -> Outcome<Counts> {
    require("babeltrace2", "babeltrace2")?;
    require("lttng", "lttng-tools")?;
    require("lttng-sessiond", "lttng-tools")?;
    require("addr2line", "binutils")?;
    let folder = tempfile::tempdir()?;
    let work = folder.path().canonicalize()?;
    let sources = work.join("sources");
    std::fs::create_dir(&sources)?;
    for (name, content) in SOURCES {
        std::fs::write(sources.join(name), content)?;
    }
    let said = hear(
        command("bash")
            .arg(sources.join("record.sh"))
            .args([&sources, &work]),
    )?;
    if said.code != Some(0) {
        return Err(format!("cannot record programs: {}", said.err.trim()).into());
    }
    let mut counts = Counts::default();
    let at = |name: &str| work.join(name).display().to_string();
    let root = |name: &str| format!("--debug-info-target-prefix={}", at(name));
    let ways: [(&str, Vec<String>); 5] = [
        ("debug information in the files", Vec::new()),
        ("whole paths", vec!["--debug-info-full-path".to_owned()]),
        ("symbol tables", vec![root("tables")]),
        (
            "build IDs",
            vec![root("tables"), format!("--debug-info-dir={}", at("debug"))],
        ),
        ("debug links", vec![root("linked")]),
    ];
    let mut found = BTreeMap::new();
    for (what, options) in ways {
        let compared = beside_babeltrace(kymo, &work.join("trace"), &options);
        if let Ok((_, ours)) = &compared {
            found.insert(what, ours.clone());
        }
        counts.lines(what, compared.map(|(lines, _)| lines));
    }
    // What is in separate files is the same.
    let in_files = found.get("debug information in the files");
    for what in ["build IDs", "debug links"] {
        let is_same = |ours: &Vec<Option<Info>>| {
            let pairs = in_files.into_iter().flatten().zip(ours);
            let mut of_programs = pairs.filter(|(info, _)| is_of_program(info.as_ref()));
            of_programs.all(|(whole, separate)| whole == separate)
        };
        let same = found.get(what).is_some_and(is_same);
        counts.holds(&format!("the same by {what} as in the files"), same);
    }
    let infos = in_files.into_iter().flatten().flatten();
    let infos: BTreeSet<&Info> = infos.filter(|info| is_of_program(Some(info))).collect();
    counts.lines("beside addr2line", beside_addr2line(&work, &infos));
    Ok(counts)
}

/// Whether it is of a program or library that has separate debug information here.
fn is_of_program(info: Option<&Info>) -> bool {
    let files = [
        "pie",
        "fixed",
        "calls",
        "rusty",
        "libshared.so",
        "libplugin.so",
    ];
    info.is_some_and(|[bin, ..]| {
        let file = bin.split(['+', '@']).next().unwrap_or_default();
        files.contains(&file)
    })
}

/// The debug information of a line, and the line without it.
fn parts(line: &str) -> (Option<Info>, String) {
    let Some((before, rest)) = line.split_once("debug_info = { ") else {
        return (None, line.to_owned());
    };
    let Some((info, after)) = rest.split_once(" }") else {
        return (None, line.to_owned());
    };
    let texts: Vec<String> = info
        .split("\", ")
        .filter_map(|part| Some(part.split_once(" = \"")?.1.trim_end_matches('"').to_owned()))
        .collect();
    (texts.try_into().ok(), format!("{before}{after}"))
}

/// What both print: the same but for what babeltrace2 does not know, and for names of tables, which it does not demangle.
/// The number of lines, and the information of each.
fn beside_babeltrace(
    kymo: &Path,
    trace: &Path,
    options: &[String],
) -> Outcome<(usize, Vec<Option<Info>>)> {
    let options = [
        &["--debug-info".to_owned(), "--clock-seconds".to_owned()],
        options,
    ]
    .concat();
    let ours = hear(command(kymo).arg("print").args(&options).arg(trace))?;
    let theirs = hear(command("babeltrace2").args(&options).arg(trace))?;
    if (ours.code, theirs.code) != (Some(0), Some(0)) {
        return Err(format!("{}{}", ours.err, theirs.err).into());
    }
    let ours = String::from_utf8_lossy(&ours.out).into_owned();
    let theirs = String::from_utf8_lossy(&theirs.out).into_owned();
    if ours.lines().count() != theirs.lines().count() {
        return Err("they print different numbers of lines".into());
    }
    let (mut lines, mut known, mut infos) = (0, 0, Vec::new());
    for (our, their) in ours.lines().zip(theirs.lines()) {
        let ((our_info, our_rest), (their_info, their_rest)) = (parts(our), parts(their));
        let agree = match (&our_info, &their_info) {
            (Some(info), Some(their)) => info.iter().zip(their).all(|(our, their)| {
                known += usize::from(!their.is_empty());
                // babeltrace2 does not read parts in other files, where calls that are inlined are.
                let is_split = info[0]
                    .split('/')
                    .next_back()
                    .is_some_and(|file| file.starts_with("split"));
                their.is_empty() || our == their || their.starts_with("_Z") || is_split
            }),
            (None, None) => true,
            _ => false,
        };
        if !agree || our_rest != their_rest {
            return Err(format!("kymo: {our}\npeer: {their}").into());
        }
        lines += 1;
        infos.push(our_info);
    }
    match known > 50 {
        true => Ok((lines, infos)),
        false => Err("babeltrace2 knows nearly nothing".into()),
    }
}

/// Function, file and line of places in programs, as addr2line says: the outermost of functions that are inlined, of Rust
/// the line of the innermost.
fn beside_addr2line(work: &Path, infos: &BTreeSet<&Info>) -> Outcome<usize> {
    for [bin, func, src] in infos {
        let (file, address) = bin.split_once(['+', '@']).ok_or("no place in a file")?;
        let path: PathBuf = work.join(file);
        let said = hear(command("addr2line").arg("-Cfise").arg(&path).arg(address))?;
        let text = String::from_utf8_lossy(&said.out).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let [.., name, last] = lines[..] else {
            return Err(format!("addr2line says `{text}`").into());
        };
        let place = match file == "rusty" {
            true => lines[1],
            false => last,
        };
        let place = place.split(" (discriminator").next().unwrap_or_default();
        let name_in_source = name.split('(').next().unwrap_or_default();
        let our_name = func.rsplit_once('+').map_or(&**func, |(name, _)| name);
        let is_same = our_name == name || our_name == name_in_source || {
            let last = name_in_source.rsplit("::").next();
            last == Some(our_name)
        };
        // binutils 2.40 mixes up files that DWARF 5 numbers; babeltrace2 has shown whether they are right.
        let line = |place: &str| place.rsplit(':').next().map(str::to_owned);
        let is_place = line(src) == line(place) || (src.is_empty() && place.starts_with("??"));
        if !is_same || !is_place {
            return Err(format!("{bin}: kymo {func} {src}, addr2line {name} {place}").into());
        }
    }
    match infos.len() > 10 {
        true => Ok(infos.len()),
        false => Err("there are nearly no places".into()),
    }
}
