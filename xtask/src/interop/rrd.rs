//! `kymo rrd` beside the installed rrdtool: on files that rrdtool makes now, and on those of other
//! machines, converted to this one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use kymo_machine::Machine;

use crate::Outcome;
use crate::process::{Said, command, hear, require, root};

/// When the databases begin.
const BEGIN: u64 = 1_700_000_000;

/// The databases that are made: name, step, updates, what `rrdtool create` is given.
const DATABASES: &[(&str, u64, u64, &[&str])] = &[
    (
        "usual",
        300,
        400,
        &[
            "DS:gauge:GAUGE:600:U:U",
            "DS:limited:GAUGE:600:-40:40",
            "RRA:AVERAGE:0.5:1:100",
            "RRA:AVERAGE:0.5:7:40",
            "RRA:MIN:0.3:5:20",
            "RRA:MAX:0.3:5:20",
            "RRA:LAST:0:12:10",
        ],
    ),
    (
        "computed",
        60,
        150,
        &[
            "DS:a:GAUGE:120:U:U",
            "DS:b:DERIVE:120:U:U",
            "DS:c:COMPUTE:a,-3,*,b,ADDNAN,32767,MIN",
            "DS:d:COMPUTE:a,b,GT,INF,UNKN,IF",
            "RRA:AVERAGE:0.5:1:90",
            "RRA:MAX:0.9:10:12",
        ],
    ),
    (
        "floating",
        10,
        200,
        &[
            "DS:count:DCOUNTER:30:U:U",
            "DS:change:DDERIVE:30:U:U",
            "RRA:AVERAGE:0.5:1:150",
        ],
    ),
    (
        "seasons",
        300,
        300,
        &[
            "DS:v:GAUGE:600:U:U",
            "DS:w:GAUGE:600:0:U",
            "RRA:AVERAGE:0.5:1:200",
            "RRA:HWPREDICT:200:0.1:0.0035:48",
        ],
    ),
    (
        "multiplied",
        300,
        200,
        &[
            "DS:v:GAUGE:600:U:U",
            "DS:w:GAUGE:600:U:U",
            "RRA:AVERAGE:0.5:1:90",
            "RRA:MHWPREDICT:90:0.2:0.01:24:3",
            "RRA:SEASONAL:24:0.2:2:smoothing-window=0.3",
            "RRA:DEVSEASONAL:24:0.2:2:smoothing-window=0.2",
            "RRA:DEVPREDICT:90:4",
            "RRA:FAILURES:24:5:8:4",
        ],
    ),
    (
        "fresh",
        300,
        0,
        &["DS:x:GAUGE:600:0:1", "RRA:AVERAGE:0.5:1:10"],
    ),
];

/// Compares, and prints a line for each comparison.
pub(super) fn run(kymo: &Path, databases: &Path) -> Outcome<super::Counts> {
    require("rrdtool", "rrdtool")?;
    let folder = tempfile::tempdir()?;
    let mut peer = Peer {
        kymo,
        folder: folder.path(),
        counts: super::Counts::default(),
    };
    for (name, step, updates, definitions) in DATABASES {
        let file = peer.make(name, *step, *updates, definitions)?;
        peer.compare(name, &file)?;
    }
    let mut files = Vec::new();
    for machine in super::entries(&databases.join("arch"))? {
        files.extend(super::entries(&machine)?);
    }
    files.retain(|path| path.extension().is_some_and(|name| name == "rrd"));
    if files.is_empty() {
        let place = databases.join("arch");
        return Err(format!("no databases at {}", place.display()).into());
    }
    for file in files {
        peer.convert(&file, databases)?;
    }
    Ok(peer.counts)
}

struct Peer<'a> {
    kymo: &'a Path,
    folder: &'a Path,
    counts: super::Counts,
}

impl Peer<'_> {
    /// Makes a database with rrdtool.
    fn make(&self, name: &str, step: u64, updates: u64, definitions: &[&str]) -> Outcome<PathBuf> {
        let file = self.folder.join(format!("{name}.rrd"));
        let mut create = command("rrdtool");
        create.arg("create").arg(&file);
        create.args(["--start", &BEGIN.to_string(), "--step", &step.to_string()]);
        good(hear(create.args(definitions))?, "rrdtool create")?;
        let sources = definitions
            .iter()
            .filter(|definition| definition.starts_with("DS:") && !definition.contains("COMPUTE"))
            .count() as u64;
        let values = |number: u64| -> String {
            let value = |source: u64| match (number * 7 + source * 3) % 23 {
                0 => ":U".to_owned(),
                // Whole numbers, which every kind of data source takes.
                n if definitions[source as usize].contains("DERIVE:") => format!(":{}", n * number),
                n => {
                    let wave = (number as f64 / 8.0).sin() * 40.0;
                    format!(":{:.3}", wave + n as f64 / 7.0 + source as f64)
                }
            };
            (0..sources).map(value).collect()
        };
        let updates: Vec<String> = (1..=updates)
            // Now and then an update is late, or not at all on the second.
            .filter(|number| number % 31 != 0)
            .map(|number| {
                let late = number * step + number % 4 * step / 5;
                format!(
                    "{}.{:06}{}",
                    BEGIN + late,
                    number * 1_234 % 1_000_000,
                    values(number)
                )
            })
            .collect();
        for some in updates.chunks(50) {
            let mut update = command("rrdtool");
            update.arg("update").arg(&file).args(some);
            good(hear(&mut update)?, "rrdtool update")?;
        }
        Ok(file)
    }

    /// All comparisons on a file that rrdtool of this machine reads.
    fn compare(&mut self, name: &str, file: &Path) -> Outcome {
        for options in [&[][..], &["-h", "xsd"], &["-h", "none"], &["-n"]] {
            let theirs = self.rrdtool("dump", options, &[file])?;
            let ours = self.kymo("dump", options, &[file])?;
            self.counts.equal(
                &format!("{name}: dump {}", options.join(" ")),
                &ours,
                &theirs,
            );
        }
        let theirs = self.rrdtool("info", &[], &[file])?;
        let ours = self.kymo("info", &[], &[file])?;
        self.counts.equal(&format!("{name}: info"), &ours, &theirs);
        for zone in ["Europe/Berlin", "America/St_Johns", "Asia/Kathmandu"] {
            let dump = |mut command: std::process::Command| {
                let said = hear(command.env("TZ", zone).arg("dump").arg(file))?;
                good(said, "dump")
            };
            let theirs = dump(command("rrdtool"))?;
            let mut ours = command(self.kymo);
            ours.arg("rrd");
            let ours = dump(ours)?;
            let shown = format!("{name}: dump in {zone}");
            self.counts.equal(&shown, &ours, &theirs);
        }

        // Restoring both ways.
        let dump = self.folder.join("dump.xml");
        std::fs::write(&dump, self.rrdtool("dump", &[], &[file])?)?;
        let (theirs, ours) = (self.folder.join("theirs.rrd"), self.folder.join("ours.rrd"));
        for options in [&["-f"][..], &["-f", "-r"]] {
            // What rrdtool takes for the bounds of computed values are not bounds.
            if options.len() > 1 && name == "computed" {
                continue;
            }
            self.rrdtool("restore", options, &[&dump, &theirs])?;
            self.kymo("restore", options, &[&dump, &ours])?;
            let shown = format!("{name}: restore {}", options.join(" "));
            let (ours, theirs) = (
                self.rrdtool("dump", &[], &[&ours])?,
                self.rrdtool("dump", &[], &[&theirs])?,
            );
            self.counts.equal(&shown, &ours, &theirs);
        }

        // An exact dump brings the file back, and rrdtool reads it nearly so.
        let exact = self.folder.join("exact.xml");
        std::fs::write(&exact, self.kymo("dump", &["--exact"], &[file])?)?;
        self.kymo("restore", &["-f"], &[&exact, &ours])?;
        let shown = format!("{name}: exact dump and restore");
        self.counts
            .equal(&shown, &std::fs::read(&ours)?, &std::fs::read(file)?);
        self.rrdtool("restore", &["-f"], &[&exact, &theirs])?;
        let (found, expected) = (
            self.rrdtool("dump", &[], &[&theirs])?,
            self.rrdtool("dump", &[], &[file])?,
        );
        let shown = format!("{name}: exact dump, restored by rrdtool");
        self.counts.holds(&shown, nearly(&found, &expected));

        // To the portable form and back.
        let portable = self.folder.join("portable.rrd");
        self.convert_to("portable", file, &portable)?;
        self.convert_to(Machine::native().name(), &portable, &ours)?;
        let shown = format!("{name}: portable and back");
        self.counts
            .equal(&shown, &std::fs::read(&ours)?, &std::fs::read(file)?);
        Ok(())
    }

    /// A file of another machine is dumped by rrdtool once it is converted, as kymo dumps it
    /// before.
    fn convert(&mut self, file: &Path, databases: &Path) -> Outcome {
        let converted = self.folder.join("converted.rrd");
        self.convert_to(Machine::native().name(), file, &converted)?;
        let theirs = self.rrdtool("dump", &[], &[&converted])?;
        let ours = self.kymo("dump", &[], &[file])?;
        let name = file.strip_prefix(databases).unwrap_or(file).display();
        self.counts
            .equal(&format!("{name}: converted"), &ours, &theirs);
        Ok(())
    }

    fn convert_to(&self, machine: &str, from: &Path, to: &Path) -> Outcome {
        let mut convert = command(self.kymo);
        convert.args(["rrd", "convert", "--no-sync", "--to", machine, "-o"]);
        good(hear(convert.arg(to).arg(from))?, "kymo rrd convert").map(drop)
    }

    fn rrdtool(&self, what: &str, options: &[&str], files: &[&Path]) -> Outcome<Vec<u8>> {
        let mut rrdtool = command("rrdtool");
        rrdtool.arg(what).args(options).args(files);
        good(hear(&mut rrdtool)?, "rrdtool")
    }

    fn kymo(&self, what: &str, options: &[&str], files: &[&Path]) -> Outcome<Vec<u8>> {
        let mut kymo = command(self.kymo);
        kymo.args(["rrd", what]).args(options);
        good(hear(kymo.args(files.iter().map(OsStr::new)))?, "kymo rrd")
    }
}

/// What a program wrote, unless it failed.
fn good(said: Said, program: &str) -> Outcome<Vec<u8>> {
    match said.code {
        Some(0) => Ok(said.out),
        _ => Err(format!("{program} failed: {}", said.err.trim()).into()),
    }
}

/// Whether two dumps are the same but for the last digits of numbers.
fn nearly(found: &[u8], expected: &[u8]) -> bool {
    let words = |text: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(text)
            .split(|c: char| c.is_whitespace() || c == '<' || c == '>')
            .map(str::to_owned)
            .collect()
    };
    let (found, expected) = (words(found), words(expected));
    let alike = |(found, expected): (&String, &String)| {
        let numbers = (found.parse::<f64>(), expected.parse::<f64>());
        match numbers {
            _ if found == expected => true,
            (Ok(found), Ok(expected)) => (found - expected).abs() <= expected.abs() * 1e-9,
            _ => false,
        }
    };
    found.len() == expected.len() && found.iter().zip(&expected).all(alike)
}

/// Where the databases of other machines are.
pub(super) fn databases() -> PathBuf {
    root().join("../shared/data/rrd")
}
