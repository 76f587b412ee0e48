//! rrdtool's command lines: thousands of them are made up and given to rrdtool and to kymo, each in
//! a folder of its own with the same files. They must answer the same and leave the same files.

mod compare;
mod make;
mod rules;
mod scenario;
mod side;
mod writers;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kymo_rrd::Source;
use nix::fcntl::{FcntlArg, fcntl};

pub(crate) use self::compare::rotated;
use self::compare::{Likeness, files};
use self::rules::Rules;
use self::scenario::{By, Line, Scenario, Step};
use self::side::{Answer, End, Side};
use super::Counts;
use super::engine::Random;
use crate::Outcome;
use crate::args::Args;
use crate::process::{build_kymo, require};

/// How often a difference may be looked at again to find the fewest steps that show it.
const TRIES: usize = 300;

/// Command lines that take longer than this are reported: there should be none.
const LONG: Duration = Duration::from_secs(5);

/// What the run is given.
pub(super) struct Options {
    /// The program that is tested instead of kymo, such as another rrdtool.
    pub(super) ours: Option<PathBuf>,
    /// The program that is right.
    theirs: PathBuf,
    rounds: u64,
    seed: u64,
    /// Only scenarios of this kind.
    kind: Option<String>,
    /// How often a program is killed while it updates.
    pub(super) kills: u64,
}

impl Options {
    pub(super) fn take(args: &mut Args, seed: u64) -> Outcome<Self> {
        Ok(Self {
            ours: args.value("--ours")?,
            theirs: args.value("--theirs")?.unwrap_or("rrdtool".into()),
            kind: args.value("--kind")?,
            kills: args.value("--kills")?.unwrap_or(20),
            rounds: args.value("--scenarios")?.unwrap_or(40),
            seed,
        })
    }
}

/// Compares in a number of rounds, each with a scenario of each kind.
pub(super) fn run(options: &Options) -> Outcome<Counts> {
    require("rrdtool", "rrdtool")?;
    let folder = tempfile::tempdir()?;
    allow(folder.path(), 0o755)?;
    let mut pair = Pair::new(options, folder.path())?;
    let mut counts = Counts::default();
    let mut failures: BTreeMap<String, u64> = BTreeMap::new();
    let kinds: Vec<_> = make::KINDS
        .iter()
        .enumerate()
        .filter(|(_, (name, _))| options.kind.as_deref().is_none_or(|kind| kind == *name))
        .collect();
    if kinds.is_empty() && options.kind.as_deref() != Some("writers") {
        return Err("no scenarios of that kind".into());
    }
    for round in 0..options.rounds {
        for (number, (name, make)) in &kinds {
            let seed = (options.seed << 32).wrapping_add(round) ^ ((*number as u64) << 56);
            let scenario = make(&mut Random(seed));
            let Some(found) = pair.play(&scenario)? else {
                counts.passed += 1;
                continue;
            };
            counts.failed += 1;
            let times = failures.entry(found.sort.clone()).or_default();
            *times += 1;
            if *times > 1 {
                continue;
            }
            let (scenario, found) = pair.least(scenario, found)?;
            println!("FAILED  {name}, round {round} of seed {}", options.seed);
            println!("    in {}", scenario.zone);
            for step in &scenario.steps {
                println!("    {step}");
            }
            println!("{}", found.why);
        }
    }
    for (sort, times) in &failures {
        println!("{times:>6} times: {sort}");
    }
    println!("{} command lines, seed {}", pair.lines, options.seed);
    pair.rules.report();
    if options.kind.as_deref().is_none_or(|kind| kind == "writers") && pair.kymo {
        let kymo = folder.path().join("rrdtool");
        let folder = folder.path().join("writers");
        fs::create_dir(&folder)?;
        counts.add(writers::run(&kymo, &folder, options.kills, options.seed)?);
    }
    Ok(counts)
}

/// Changes permissions.
fn allow(path: &Path, mode: u32) -> Outcome {
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}

/// Two programs that do the same.
struct Pair {
    theirs: Side,
    ours: Side,
    /// Whether ours is kymo, for which one can specify where archives begin.
    kymo: bool,
    rules: Rules,
    lines: u64,
}

/// Where the two differ.
struct Found {
    /// The step at which they do.
    step: usize,
    /// A short text for all differences that are likely the same.
    sort: String,
    /// What was found, at length.
    why: String,
}

impl Pair {
    fn new(options: &Options, folder: &Path) -> Outcome<Self> {
        let folder = folder.canonicalize()?;
        let place = |name: &str| -> Outcome<PathBuf> {
            let place = folder.join(name);
            fs::create_dir(&place)?;
            Ok(place)
        };
        let program = match &options.ours {
            Some(program) => program.clone(),
            None => {
                let link = folder.join("rrdtool");
                // A copy that the user `nobody` may run, wherever the repository is.
                fs::copy(build_kymo(false)?, &link)?;
                link
            }
        };
        Ok(Self {
            // Names of equal length, because some messages have limited room.
            theirs: Side::new(&options.theirs, place("theirs")?),
            ours: Side::new(&program, place("kymo's")?),
            kymo: options.ours.is_none(),
            rules: Rules::default(),
            lines: 0,
        })
    }

    /// Does everything in both folders; what differs first, if anything does.
    fn play(&mut self, scenario: &Scenario) -> Outcome<Option<Found>> {
        let mut locks = Vec::new();
        for side in [&mut self.theirs, &mut self.ours] {
            allow(side.folder(), 0o777)?;
            side.clear()?;
            side.set_zone(scenario.zone);
        }
        for (number, step) in scenario.steps.iter().enumerate() {
            let found = match step {
                Step::Line(line) => self.line(line)?,
                Step::Script(lines) => {
                    let (theirs, ours) = (self.theirs.script(lines)?, self.ours.script(lines)?);
                    match self.same(step, &theirs, &ours) {
                        None => self.same_files(step, Likeness::Bytes)?,
                        found => found,
                    }
                }
                other => {
                    for side in [&self.theirs, &self.ours] {
                        locks.extend(prepare(side.folder(), other)?);
                    }
                    None
                }
            };
            if let Some((sort, why)) = found {
                return Ok(Some(Found {
                    step: number,
                    sort,
                    why,
                }));
            }
        }
        Ok(None)
    }

    /// Gives a command line to both.
    fn line(&mut self, line: &Line) -> Outcome<Option<(String, String)>> {
        let step = Step::Line(line.clone());
        for attempt in 1.. {
            self.lines += 1;
            let theirs = answer(&mut self.theirs, line)?;
            if theirs.end == End::Broken {
                self.rules.broken(line, &theirs);
            }
            let own_line = self.with_first_rows(line)?;
            let before = match line.command() {
                "tune" => Some(self.ours.files()?),
                _ => None,
            };
            let ours = answer(&mut self.ours, &own_line)?;
            let likeness = match line.command() {
                _ if line.clock => Likeness::Moment,
                "create" if line.words.iter().any(|word| word == "-r") => Likeness::Nearly,
                "create" if self.kymo => Likeness::Bytes,
                "tune" if line.words.iter().any(|word| word.starts_with("RRA:")) => Likeness::Added,
                "tune" if line.words.iter().any(|word| word.starts_with("RRA#")) => Likeness::Grown,
                "create" | "restore" | "tune" => Likeness::Rotated,
                _ => Likeness::Bytes,
            };
            let found = match self.same(&step, &theirs, &ours) {
                // What rrdtool refuses in the middle, kymo does not begin.
                None if ours.end == End::Code(1) && before.is_some() => {
                    match before == Some(self.ours.files()?) {
                        true => self.take_over()?,
                        false => Some((
                            "tune: refused, and yet something is changed".to_owned(),
                            ours.error.clone(),
                        )),
                    }
                }
                None if theirs.end == ours.end => self.same_files(&step, likeness)?,
                // One of them has done it, the other has not, and that is wanted.
                None => self.take_over()?,
                found => found,
            };
            // The clock may have gone on between the two.
            if found.is_none() || !line.clock || attempt == 3 {
                return Ok(found);
            }
            // The second of C's time() begins some milliseconds late: with the next tick of the
            // kernel, not with the clock.
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(None)
    }

    /// The line with what makes archives begin where they do on the other side.
    fn with_first_rows(&self, line: &Line) -> Outcome<Line> {
        let plain = Ok(line.clone());
        if !self.kymo || line.command() != "create" {
            return plain;
        }
        let Some(bytes) = line
            .words
            .iter()
            .find(|word| word.ends_with(".rrd"))
            .and_then(|name| fs::read(self.theirs.folder().join(name)).ok())
        else {
            return plain;
        };
        let Ok(source) = Source::open(&bytes, None) else {
            return plain;
        };
        let states = source.database.state.archives.iter();
        let rows: Vec<String> = states.map(|state| state.current_row.to_string()).collect();
        let mut line = line.clone();
        line.words
            .insert(1, format!("--first-row={}", rows.join(",")));
        Ok(line)
    }

    fn same(&mut self, step: &Step, theirs: &Answer, ours: &Answer) -> Option<(String, String)> {
        if theirs == ours || self.rules.allow(step, theirs, ours) {
            return None;
        }
        let sort = format!("{}: {} / {}", command(step), brief(theirs), brief(ours));
        let why = format!(
            "theirs: {}\nkymo's: {}",
            shown(theirs, ours),
            shown(ours, theirs)
        );
        Some((sort, why))
    }

    /// Compares all files, and takes theirs over where they need not be the same.
    fn same_files(&mut self, step: &Step, likeness: Likeness) -> Outcome<Option<(String, String)>> {
        let (theirs, ours) = (self.theirs.files()?, self.ours.files()?);
        let (their_names, our_names): (Vec<_>, Vec<_>) =
            (theirs.keys().collect(), ours.keys().collect());
        if their_names != our_names {
            let why = format!("files {our_names:?} and not {their_names:?}");
            return Ok(Some((format!("{}: other files", command(step)), why)));
        }
        for (name, theirs) in &theirs {
            let ours = &ours[name];
            if let Err(why) = files(theirs, ours, likeness) {
                let sort = format!("{}: file: {}", command(step), without_digits(&why));
                return Ok(Some((sort, format!("{name}: {why}"))));
            }
            if theirs != ours {
                fs::write(self.ours.folder().join(name), theirs)?;
            }
        }
        Ok(None)
    }

    /// Takes all files over from the other side.
    fn take_over(&mut self) -> Outcome<Option<(String, String)>> {
        let (theirs, ours) = (self.theirs.files()?, self.ours.files()?);
        for name in ours.keys().filter(|name| !theirs.contains_key(*name)) {
            fs::remove_file(self.ours.folder().join(name))?;
        }
        for (name, bytes) in theirs {
            let path = self.ours.folder().join(&name);
            fs::write(&path, bytes)?;
            let like = fs::metadata(self.theirs.folder().join(&name))?;
            fs::set_permissions(&path, like.permissions())?;
            std::os::unix::fs::chown(&path, Some(like.uid()), Some(like.gid()))?;
        }
        Ok(None)
    }

    /// The fewest steps that show a difference of the same sort.
    fn least(&mut self, mut scenario: Scenario, mut found: Found) -> Outcome<(Scenario, Found)> {
        scenario.steps.truncate(found.step + 1);
        let mut tries = TRIES;
        let mut step = found.step;
        // From the end, so that what remains keeps its place.
        while step > 0 && tries > 0 {
            step -= 1;
            tries -= 1;
            let mut less = scenario.clone();
            less.steps.remove(step);
            self.shrunk(less, &mut scenario, &mut found)?;
        }
        for step in (0..scenario.steps.len()).rev() {
            let words = match &scenario.steps[step] {
                Step::Line(line) => line.words.len(),
                _ => continue,
            };
            for word in (1..words).rev() {
                if tries == 0 {
                    break;
                }
                tries -= 1;
                let mut less = scenario.clone();
                if let Step::Line(line) = &mut less.steps[step] {
                    line.words.remove(word);
                }
                self.shrunk(less, &mut scenario, &mut found)?;
            }
        }
        Ok((scenario, found))
    }

    /// Takes a shorter scenario if it still shows the difference.
    fn shrunk(&mut self, less: Scenario, best: &mut Scenario, found: &mut Found) -> Outcome {
        if let Some(again) = self.play(&less)?
            && again.step + 1 == less.steps.len()
            && again.sort == found.sort
        {
            *best = less;
            *found = again;
        }
        Ok(())
    }
}

fn answer(side: &mut Side, line: &Line) -> Outcome<Answer> {
    let begin = Instant::now();
    let answer = match line.by {
        By::Pipe if line.fits_pipe() => side.piped(&line.quoted()),
        By::Pipe | By::Process => side.process(&line.words, false),
        By::Nobody => side.process(&line.words, true),
    }?;
    let taken = begin.elapsed();
    if taken > LONG {
        eprintln!(
            "{taken:.1?} in {}: {}",
            side.folder().display(),
            line.quoted()
        );
    }
    Ok(answer)
}

/// Does in a folder what no program does, as far as its files were made; a lock that has to be kept
/// is handed back.
fn prepare(folder: &Path, step: &Step) -> Outcome<Option<fs::File>> {
    match step {
        Step::Line(_) | Step::Script(_) => {}
        Step::File(name, bytes) => fs::write(folder.join(name), bytes)?,
        Step::Cut(name, length) => {
            let file = fs::OpenOptions::new().write(true).open(folder.join(name));
            if let Ok(file) = file {
                file.set_len(*length)?;
            }
        }
        Step::Folder(name) => fs::create_dir(folder.join(name))?,
        Step::Mode(name, mode) => {
            let path = folder.join(name);
            if path.exists() {
                allow(&path, *mode)?;
            }
        }
        Step::Lock(name) => {
            let Ok(file) = fs::OpenOptions::new().write(true).open(folder.join(name)) else {
                return Ok(None);
            };
            let whole = nix::libc::flock {
                l_type: nix::libc::F_WRLCK as i16,
                l_whence: nix::libc::SEEK_SET as i16,
                l_start: 0,
                l_len: 0,
                l_pid: 0,
            };
            // Of the file and not of this process, which reads it now and then.
            fcntl(&file, FcntlArg::F_OFD_SETLK(&whole))?;
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// The command of a step, for a person.
fn command(step: &Step) -> &str {
    match step {
        Step::Line(line) => line.command(),
        _ => "script",
    }
}

/// An answer in few words, the same for all that are likely the same.
fn brief(answer: &Answer) -> String {
    match answer.end {
        End::Code(0) => "good".to_owned(),
        _ => without_digits(answer.error.lines().next().unwrap_or_default()),
    }
}

fn without_digits(text: &str) -> String {
    let mut brief = String::new();
    for c in text.chars().take(120) {
        match c {
            '0'..='9' if brief.ends_with('#') => {}
            '0'..='9' => brief.push('#'),
            c => brief.push(c),
        }
    }
    brief
}

/// An answer, from the first line on in which it differs from another.
fn shown(answer: &Answer, other: &Answer) -> String {
    let lines = answer.out.lines().zip(other.out.lines());
    let same = lines.take_while(|(one, other)| one == other).count();
    let some: Vec<&str> = answer.out.lines().skip(same).take(6).collect();
    let code = match answer.end {
        End::Code(code) => format!("exit code {code}"),
        End::Broken => "broken".to_owned(),
    };
    format!(
        "{code}, {:?} after {same} lines that are the same, error {:?}",
        some.join("\n"),
        answer.error
    )
}
