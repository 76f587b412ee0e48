//! `kymo serve` and rrdcached: the same lines, the same answers; and rrdtool as a client of both.

use std::path::Path;

use super::Counts;
use crate::Outcome;
use crate::daemons::{Client, Daemon};
use crate::process::{command, hear, require};

/// When the databases begin.
const BEGIN: u64 = 1_500_000_000;

/// Asks both daemons, and runs rrdtool's commands with both.
pub(super) fn run(kymo: &Path) -> Outcome<Counts> {
    require("rrdcached", "rrdcached")?;
    require("rrdtool", "rrdtool")?;
    let folder = tempfile::tempdir()?;
    let at = |name: &str| -> Outcome<_> {
        let path = folder.path().join(name);
        std::fs::create_dir(&path)?;
        Ok(path)
    };
    let ours = Daemon::kymo(kymo, &at("kymo")?, true)?;
    let theirs = Daemon::rrdcached(&at("rrdcached")?, true)?;
    let mut counts = Counts::default();
    talk(&ours, &theirs, &mut counts)?;
    rrdtool(&ours, &theirs, &mut counts)?;
    ours.end()?;
    theirs.end()?;
    Ok(counts)
}

/// Asks both line by line. Where kymo means to answer otherwise (docs/serve.md has the table), nothing
/// is asked.
fn talk(ours: &Daemon, theirs: &Daemon, counts: &mut Counts) -> Outcome {
    let (mut our, mut their) = (ours.client()?, theirs.client()?);
    for line in lines() {
        let answer = |client: &mut Client, daemon: &Daemon| -> Outcome<Vec<u8>> {
            Ok(masked(&line, &client.ask(&line)?, daemon))
        };
        let (our, their) = (answer(&mut our, ours)?, answer(&mut their, theirs)?);
        let what = match line.len() {
            0..=100 => line.escape_debug().to_string(),
            length => format!("{}... ({length} bytes)", line[..60].escape_debug()),
        };
        counts.equal(&what, &our, &their);
    }
    Ok(())
}

/// An answer without what differs from run to run.
fn masked(line: &str, answer: &[u8], daemon: &Daemon) -> Vec<u8> {
    if line.starts_with("FETCHBIN") && !answer.starts_with(b"-1") {
        return answer.to_vec();
    }
    let base = daemon.base.display().to_string();
    let text = String::from_utf8_lossy(answer).replace(&base, "BASE");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for line in &mut lines {
        // Any row may be the first.
        if let Some(begin) = line.find(".cur_row 1 ") {
            line.truncate(begin + ".cur_row 1 ".len());
        }
    }
    // rrdcached has these since 1.8 and 1.9.
    let before = lines.len();
    lines.retain(|line| !line.starts_with("TUNE ") && !line.starts_with("DUMP "));
    let now = lines.len();
    if before > now
        && let Some(first) = lines.first_mut()
    {
        *first = first.replace(&(before - 1).to_string(), &(now - 1).to_string());
    }
    if line.starts_with("LIST") && !lines.is_empty() {
        // rrdcached has no order.
        lines[1..].sort();
    }
    if line == "STATS" {
        for line in &mut lines[1..] {
            let end = line.find(": ").map_or(line.len(), |colon| colon + 2);
            line.truncate(end);
        }
    }
    lines.join("\n").into_bytes()
}

/// What is asked.
fn lines() -> Vec<String> {
    let time = |seconds: u64| BEGIN + seconds;
    let create = format!(
        "CREATE a.rrd -b {BEGIN} -s 10 DS:a:GAUGE:20:U:U DS:b:COUNTER:20:0:U \
         RRA:AVERAGE:0.5:1:10 RRA:MAX:0.5:2:5"
    );
    let mut lines: Vec<String> = [
        "HELP",
        "help",
        "HELP FOO",
        "HELP HELP",
        "HELP WROTE",
        "PING",
        "ping x",
        "PING ",
        "FOO",
        "",
        " ",
        " PING",
        "PING\r",
        "PING\\ x",
        "WROTE a.rrd",
        "QUEUE",
        "STATS",
    ]
    .map(str::to_owned)
    .into();
    lines.push(create.clone());
    lines.extend(
        [
            "CREATE a.rrd -O DS:a:GAUGE:20:U:U RRA:AVERAGE:0.5:1:10",
            "CREATE",
            "CREATE b.rrd",
            "CREATE b.rrd -b",
            "CREATE b.rrd -b 1 DS:a:GAUGE:20:U:U RRA:AVERAGE:0.5:1:10",
            "CREATE b.rrd DS:a:GAUGE:20:U:U",
            "CREATE b.rrd RRA:AVERAGE:0.5:1:10",
            "CREATE b.rrd DS:a:GAUG:20:U:U RRA:AVERAGE:0.5:1:10",
            "CREATE b.rrd FOO",
            "CREATE b.rrd -x a.rrd",
            "CREATE ../b.rrd DS:a:GAUGE:20:U:U RRA:AVERAGE:0.5:1:10",
            "CREATE /b.rrd DS:a:GAUGE:20:U:U RRA:AVERAGE:0.5:1:10",
            "CREATE sub/dir/b.rrd -b 1499999990 DS:a:GAUGE:20:U:U RRA:AVERAGE:0.5:1:10",
            "CREATE t.rrd -b 1499999990 -t a.rrd",
            "CREATE s.rrd -b 1499999990 -s 0 DS:a:GAUGE:600:U:U RRA:AVERAGE:0.5:1:10",
            "INFO a.rrd",
            "INFO s.rrd",
            "INFO t.rrd",
            "INFO",
            "INFO c.rrd",
            "INFO ../x",
            "FIRST a.rrd 1",
            "FIRST a.rrd 2",
            "FIRST a.rrd -1",
            "FIRST a.rrd",
            "FIRST",
            "LAST a.rrd",
            "LAST a.rrd x",
            "LAST",
            "LAST c.rrd",
            "LAST /etc/passwd",
            "UPDATE",
            "UPDATE a.rrd",
            "UPDATE c.rrd 1:2",
            "UPDATE ../c.rrd 1:2",
            "UPDATE sub/../a.rrd 1:2",
            "UPDATE /etc/passwd 1:2",
            "UPDATE sub 1:2",
            "UPDATE a\\ b.rrd 1:2",
            "UPDATE a.rrd 1:2",
            "UPDATE a.rrd -10:1:2",
            "UPDATE a.rrd N:1:2",
            "UPDATE a.rrd x:1:2",
            "UPDATE a.rrd nan:1:2",
            "UPDATE a.rrd inf:1:2",
            "UPDATE a.rrd 0x10:1:2",
            "UPDATE a.rrd 1600000000",
            "UPDATE a.rrd 1600000000@1:2",
            "UPDATE\ta.rrd 1:2",
        ]
        .map(str::to_owned),
    );
    for readings in [
        format!("{}:1:2", time(10)),
        format!("{}:1:2 {}:2:3", time(20), time(30)),
        format!("{}:1:2", time(30)),
        format!("{}:1:2", time(5)),
        format!("{}.5:3:4", time(60)),
        format!("{}.25:3:4", time(60)),
        format!("{}.75:U:4", time(60)),
        format!(" {}:1:2", time(70)),
        format!("{}:1:2 ", time(71)),
        format!("{}:1:2 {}x:1:2 {}:1:2", time(72), time(73), time(74)),
        format!("{}:1\\:2", time(75)),
        format!("{}:1:2\\", time(76)),
    ] {
        lines.push(format!("UPDATE a.rrd {readings}"));
    }
    let fetch = |rest: &str| format!("FETCH a.rrd {rest}");
    let span = format!("{BEGIN} {}", time(80));
    lines.extend([
        "PENDING a.rrd".into(),
        "LAST a.rrd".into(),
        "PENDING a.rrd x".into(),
        "PENDING  a.rrd".into(),
        "PENDING sub/dir/b.rrd".into(),
        "PENDING c.rrd".into(),
        "PENDING ../c.rrd".into(),
        "PENDING".into(),
        "SUSPEND a.rrd".into(),
        "SUSPEND a.rrd".into(),
        "FLUSH a.rrd".into(),
        "PENDING a.rrd".into(),
        "RESUME a.rrd".into(),
        "RESUME a.rrd".into(),
        "SUSPENDALL".into(),
        "SUSPENDALL x".into(),
        "RESUMEALL".into(),
        "RESUMEALL".into(),
        "FLUSH a.rrd".into(),
        "FLUSH a.rrd x".into(),
        "FLUSH c.rrd".into(),
        "FLUSH sub/dir/b.rrd".into(),
        "FLUSH sub".into(),
        "FLUSH ../x".into(),
        "FLUSH".into(),
        "FLUSHALL".into(),
        "FLUSHALL x".into(),
        "PENDING a.rrd".into(),
        "INFO a.rrd".into(),
        fetch(&format!("AVERAGE {span}")),
        fetch(&format!("AVERAGE {span} a")),
        fetch(&format!("AVERAGE {span} b a")),
        fetch(&format!("MAX {span}")),
        fetch(&format!("MIN {span}")),
        fetch(&format!("LAST {} {}", time(5), time(15))),
        fetch(&format!("HWPREDICT {span}")),
        fetch(&format!("FOO {span}")),
        fetch(&format!("average {span}")),
        fetch("AVERAGE x"),
        fetch(&format!("AVERAGE {BEGIN} x")),
        "FETCH a.rrd".into(),
        "FETCH".into(),
        "FETCH c.rrd AVERAGE".into(),
        "FETCH ../x AVERAGE".into(),
        format!("FETCHBIN a.rrd AVERAGE {span}"),
        format!("FETCHBIN a.rrd AVERAGE {span} b"),
        "FETCHBIN a.rrd".into(),
        "FETCHBIN c.rrd AVERAGE".into(),
        "LIST /".into(),
        "LIST RECURSIVE /".into(),
        "LIST /sub".into(),
        "LIST /sub/dir".into(),
        "LIST /a.rrd".into(),
        "LIST /none".into(),
        "LIST /sub/..".into(),
        "LIST".into(),
        "LIST RECURSIVE".into(),
        "LIST sub".into(),
        ".".into(),
        format!(
            "BATCH\nUPDATE a.rrd {0}:1:2\nUPDATE a.rrd {0}:1:2\nFOO\n\nPENDING a.rrd\nPING\nFLUSH a.rrd\n\
             HELP\nBATCH\nSTATS\nFLUSHALL\nFORGET nono.rrd\nFLUSH nono.rrd\nUPDATE nono.rrd 1:2\nUPDATE\n\
             SUSPEND a.rrd\nSUSPEND a.rrd\nRESUME a.rrd\nSUSPENDALL\nRESUMEALL\nFIRST a.rrd 0\nLAST a.rrd\n\
             FETCHBIN a.rrd AVERAGE\nWROTE x\nINFO a.rrd\nLIST /\nQUEUE\nCREATE z.rrd\n.",
            time(90)
        ),
        "BATCH x\n.".into(),
        "BATCH\n. x".into(),
        "FORGET a.rrd".into(),
        "FORGET a.rrd".into(),
        "FORGET c.rrd".into(),
        "FORGET ../x".into(),
        "FORGET".into(),
        format!("UPDATE a.rrd {}:1:2", time(80)),
        format!("UPDATE a.rrd {}:1:{}", time(100), "1".repeat(3000)),
        "STATS".into(),
    ]);
    lines
}

/// Runs rrdtool's commands with both daemons.
fn rrdtool(ours: &Daemon, theirs: &Daemon, counts: &mut Counts) -> Outcome {
    let begin = BEGIN.to_string();
    let end = (BEGIN + 60).to_string();
    let readings: Vec<String> = (1..6)
        .map(|step| format!("{}:{step}:{}", BEGIN + 10 * step, step * 100))
        .collect();
    let definitions = [
        "DS:x:GAUGE:20:U:U",
        "DS:y:COUNTER:20:U:U",
        "RRA:AVERAGE:0.5:1:20",
    ];
    let mut commands: Vec<Vec<&str>> = vec![
        [
            &["create", "FILE", "-b", &begin, "-s", "10"],
            &definitions[..],
        ]
        .concat(),
        [&["create", "FILE", "-O"], &definitions[..]].concat(),
        [&["create", "FILE.plain", "-b", &begin], &definitions[..]].concat(),
        vec!["info", "FILE.plain"],
        vec!["list", "/"],
        vec!["list", "-r", "/"],
        vec!["last", "FILE"],
        vec!["first", "FILE"],
        vec!["info", "FILE"],
    ];
    commands.extend(
        readings
            .iter()
            .map(|reading| vec!["update", "FILE", reading]),
    );
    commands.extend([
        vec!["update", "FILE", &readings[0]],
        vec!["update", "NONE", &readings[0]],
        vec!["last", "FILE"],
        vec!["flushcached", "FILE"],
        vec!["flushcached", "NONE"],
        vec!["last", "FILE"],
        vec!["lastupdate", "FILE"],
        vec!["fetch", "FILE", "AVERAGE", "-s", &begin, "-e", &end],
        vec!["info", "FILE"],
        vec![
            "xport",
            "-s",
            &begin,
            "-e",
            &end,
            "DEF:x=FILE:x:AVERAGE",
            "XPORT:x:x",
        ],
    ]);
    for words in commands {
        let said = |daemon: &Daemon| -> Outcome<Vec<u8>> {
            let base = daemon.base.display().to_string();
            let file = |word: &str| {
                word.replace("FILE", &format!("{base}/deep/er/client.rrd"))
                    .replace("NONE", &format!("{base}/none.rrd"))
            };
            let mut rrdtool = command("rrdtool");
            rrdtool.args(words.iter().map(|word| file(word)));
            rrdtool.env(
                "RRDCACHED_ADDRESS",
                format!("unix:{}", daemon.socket.display()),
            );
            let said = hear(&mut rrdtool)?;
            let text = format!(
                "{:?}\n{}{}",
                said.code,
                String::from_utf8_lossy(&said.out),
                said.err
            );
            let text = text
                .replace(&daemon.socket.display().to_string(), "SOCKET")
                .replace(&base, "BASE");
            // rrdtool prints a part of the path, too.
            let part = daemon.base.parent().and_then(Path::file_name);
            let part = format!("{}/base", part.unwrap_or_default().display());
            let text = text.replace(&part, "BASE");
            let lines = text.lines().map(|line| match line.find(".cur_row = ") {
                Some(begin) => &line[..begin],
                None => line,
            });
            let mut lines: Vec<_> = lines.collect();
            if words[0] == "list" {
                lines[1..].sort_unstable();
            }
            Ok(lines.join("\n").into_bytes())
        };
        let (our, their) = (said(ours)?, said(theirs)?);
        counts.equal(&format!("rrdtool {}", words.join(" ")), &our, &their);
    }
    Ok(())
}
