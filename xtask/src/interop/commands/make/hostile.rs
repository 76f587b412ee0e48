//! Lines and files with which something is wrong.

use super::updates::fill;
use super::{By, Layout, Line, Random, Scenario, Step, queries, scenario};

const COMMANDS: [&str; 14] = [
    "create",
    "update",
    "updatev",
    "fetch",
    "first",
    "last",
    "lastupdate",
    "info",
    "dump",
    "tune",
    "resize",
    "xport",
    "restore",
    "flushcached",
];

/// Words that mean something somewhere.
const WORDS: [&str; 46] = [
    "a.rrd",
    "a.rrd",
    "a.rrd",
    "nope.rrd",
    "folder",
    "text",
    "-s",
    "-e",
    "-r",
    "-t",
    "-a",
    "-h",
    "-x",
    "-z",
    "-q",
    "--start",
    "--foo",
    "--step",
    "--daemon",
    "--",
    "-",
    "0",
    "1",
    "-1",
    "N:1",
    "AVERAGE",
    "1500000000",
    "1500000300:1",
    "1500000600:U",
    "1500000900:1:2",
    "x0:100",
    "DS:x:GAUGE:600:U:U",
    "RRA:AVERAGE:0.5:1:5",
    "DEF:a=a.rrd:x0:AVERAGE",
    "XPORT:a",
    "CDEF:b=a,1,+",
    "GROW",
    "b.rrd",
    "",
    "1500000000.5:1",
    "@1",
    "N",
    ":",
    "-Fn",
    "--no-overwrite",
    "--json",
];

/// Words put together in any way, on a database that is good.
pub(super) fn lines(random: &mut Random) -> Scenario {
    let mut steps: Vec<Step> = vec![
        Line::new(
            "create a.rrd --start 1500000000 --step 300 DS:x0:GAUGE:600:U:U RRA:AVERAGE:0.5:1:5",
        )
        .into(),
        Step::Folder("folder"),
        Step::File("text", b"this is no database\n".to_vec()),
    ];
    for _ in 0..25 {
        let command = match random.below(30) {
            0 => random.one(&["foo", "Update", "updat"]),
            _ => random.one(&COMMANDS),
        };
        let mut line = Line::of(vec![command.to_owned()]);
        // What cannot be dumped, rrdtool makes of the file it should be dumped to.
        let most = if command == "dump" { 2 } else { 6 };
        for _ in 0..random.below(most) {
            line.words.push(random.one(&WORDS).to_owned());
        }
        let now = line
            .words
            .iter()
            .any(|word| word.starts_with('N') || word.starts_with("-1"));
        // It reads its standard input, which is the pipe.
        if line.words.iter().any(|word| word == "-") {
            line = line.by(By::Process);
        }
        // Without a time, it is now that counts.
        let now = now || ["fetch", "xport", "create", "update", "updatev"].contains(&command);
        steps.push(if now { line.by_clock() } else { line }.into());
    }
    scenario(random, steps)
}

/// Files that are none, or damaged.
pub(super) fn broken_files(random: &mut Random) -> Scenario {
    let mut layout = Layout::make(random, "f.rrd", false);
    let mut steps: Vec<Step> = vec![layout.create(random).into()];
    steps.extend(fill(random, &mut layout));
    match random.below(7) {
        0 => steps.push(Step::Cut("f.rrd", random.below(130))),
        1 => steps.push(Step::Cut("f.rrd", 130 + random.below(800))),
        2 => steps.push(Step::File("f.rrd", Vec::new())),
        3 => steps.push(Step::File(
            "f.rrd",
            b"RRD\x000003\0 and what comes then".to_vec(),
        )),
        4 => steps.push(Step::File(
            "f.rrd",
            b"<?xml version=\"1.0\"?>\n<rrd></rrd>\n".to_vec(),
        )),
        5 => steps.push(Step::Lock("f.rrd")),
        _ => {
            steps.push(Step::Folder("g.rrd"));
            layout.file = "g.rrd";
        }
    }
    for _ in 0..10 {
        let line = match random.below(10) {
            0..3 => queries::look(random, &layout),
            3..6 => layout.update(random),
            6 => Line::new(format!("tune {} -h x0:100", layout.file)),
            7 => Line::new(format!("resize {} 0 GROW 1", layout.file)),
            8 => Line::new(format!("restore {} back.rrd", layout.file)),
            _ => Line::new(format!(
                "xport -s {} -e start+100s DEF:a={}:x0:AVERAGE XPORT:a",
                layout.start, layout.file
            )),
        };
        steps.push(line.into());
    }
    scenario(random, steps)
}

/// Files and folders that may not be written.
pub(super) fn permissions(random: &mut Random) -> Scenario {
    let mut layout = Layout::make(random, "p.rrd", false);
    let mut steps: Vec<Step> = vec![layout.create(random).into()];
    steps.extend(fill(random, &mut layout));
    steps.push(Line::new("dump p.rrd p.xml").into());
    steps.push(Step::Folder("closed"));
    steps.push(Step::Mode("closed", random.one(&[0o000, 0o555])));
    if random.chance(50) {
        steps.push(Step::Mode("p.rrd", random.one(&[0o444, 0o000])));
    }
    if random.chance(50) {
        steps.push(Step::Mode("", 0o555));
    }
    for _ in 0..5 {
        let line = match random.below(9) {
            0..2 => layout.update(random),
            2 => queries::look(random, &layout),
            3 => layout.create(random),
            4 => Line::new(
                "create closed/x.rrd --start 1500000000 DS:x:GAUGE:600:U:U RRA:LAST:0.5:1:5",
            ),
            5 => Line::new(
                "create nowhere/x.rrd --start 1500000000 DS:x:GAUGE:600:U:U RRA:LAST:0.5:1:5",
            ),
            6 => Line::new("tune p.rrd -i x0:3"),
            7 => Line::new(random.one(&[
                "tune p.rrd RRA#0:+1",
                "resize p.rrd 0 GROW 1",
                "tune p.rrd DS:n:GAUGE:600:U:U",
            ])),
            _ => Line::new(random.one(&[
                "restore p.xml n.rrd",
                "dump p.rrd closed/p.xml",
                "restore -f p.xml p.rrd",
                "info closed/p.rrd",
            ])),
        };
        steps.push(line.by(By::Nobody).into());
    }
    Scenario { zone: "UTC", steps }
}

/// What a pipe takes besides commands, and how it divides lines into words.
pub(super) fn scripts(random: &mut Random) -> Scenario {
    let mut layout = Layout::make(random, "s.rrd", false);
    let mut steps: Vec<Step> = vec![layout.create(random).into()];
    for _ in 0..5 {
        let mut script = String::new();
        for _ in 0..random.below(12) {
            let update = layout.update(random).quoted();
            let some = random.one(&[
                "pwd",
                "ls",
                "mkdir d",
                "cd d",
                "cd d/..",
                "mkdir d",
                "cd nowhere",
                "mkdir",
                "cd",
                "ls x",
                "pwd x",
                "",
                "   ",
                "last s.rrd",
                "last \"s.rrd\"",
                "last 's.rrd'",
                "last 's.rrd",
                "last s\\.rrd",
                "last\ts.rrd",
                "foo",
                "# nothing",
                "-",
                "last ../s.rrd",
                "lastupdate s.rrd",
                "mkdir a b",
                "LAST s.rrd",
                "last  's.rrd'  ",
                "last \"\"",
                "rrdtool last s.rrd",
                "help",
                "--version",
                "-v",
                "last '' s.rrd",
                "update 's.rrd' \"",
                "first s.rrd",
                "quit x",
                "cd ''",
            ]);
            script += match random.chance(30) {
                true => &update,
                false => some,
            };
            script.push('\n');
        }
        match random.below(4) {
            0 => script += "quit\nlast s.rrd\n",
            1 => script += "last s.rrd",
            _ => {}
        }
        steps.push(Step::Script(script));
        steps.push(Line::new("dump s.rrd").into());
    }
    scenario(random, steps)
}
