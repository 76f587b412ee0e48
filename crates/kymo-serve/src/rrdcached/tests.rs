//! What clients are answered.

use std::io::{self, Cursor, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::{Client, CommandSet, Rrdcached};
use crate::journal;
use crate::store::{Options, Store, Timing};

/// A client that has sent all it will send, and keeps what it is answered.
struct Talk {
    sent: Cursor<Vec<u8>>,
    answered: Vec<u8>,
}

impl Read for Talk {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.sent.read(buffer)
    }
}

impl Write for Talk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.answered.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Daemon {
    directory: tempfile::TempDir,
    shared: Rrdcached,
}

impl Daemon {
    fn new() -> Self {
        Self::with_journal_of(1 << 20)
    }

    fn with_journal_of(most_bytes: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let hour = Duration::from_secs(3600);
        let options = Options {
            timing: Timing {
                write_timeout: hour,
                jitter: Duration::ZERO,
                flush_interval: hour,
            },
            writers: 1,
            open_files: 8,
            most_pending: 1 << 20,
            journal: Some(journal::Options {
                most_bytes,
                ..journal::Options::new(directory.path().join("journal"))
            }),
            ..Options::new(directory.path().join("data"), Arc::new(|_, _| {}))
        };
        let shared = Rrdcached::new(Store::open(options).unwrap());
        Self { directory, shared }
    }

    /// What lines are answered; `BASE` stands for the directory.
    fn ask(&self, lines: &str) -> String {
        let talk = Talk {
            sent: Cursor::new(format!("{lines}\n").into_bytes()),
            answered: Vec::new(),
        };
        let mut client = Client::new(&self.shared, talk, String::new());
        client.serve().unwrap();
        let text = String::from_utf8_lossy(&client.stream.answered).into_owned();
        let base = self.shared.store.options().base.display().to_string();
        text.replace(&base, "BASE")
    }

    /// Asks line by line.
    fn expect(&self, talk: &[(&str, &str)]) {
        for (line, answer) in talk {
            assert_eq!(self.ask(line), format!("{answer}\n"), "{line}");
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.shared.store.close();
        assert!(self.directory.path().exists());
    }
}

const CREATE: &str = "CREATE a.rrd -b 1000000000 -s 10 DS:a:GAUGE:20:U:U DS:b:GAUGE:20:0:U \
    RRA:AVERAGE:0.5:1:10 RRA:MAX:0.5:2:5";

#[test]
fn updates() {
    let daemon = Daemon::new();
    daemon.expect(&[
        (CREATE, "0 RRD created OK"),
        (
            "UPDATE a.rrd 1000000010:1:2",
            "0 errors, enqueued 1 value(s).",
        ),
        (
            "update a.rrd 1000000020:1:2 1000000030.5:2:3",
            "0 errors, enqueued 2 value(s).",
        ),
        (
            "UPDATE a.rrd 1000000030.25:1:2",
            "-1 illegal attempt to update using time 1000000030.250000 when last update time is \
             1000000030.500000 (minimum one second step)",
        ),
        // What comes before one that is refused is taken.
        (
            "UPDATE a.rrd 1000000040:3:4 N:3:4",
            "-1 Cannot find timestamp in 'N:3:4'!",
        ),
        (
            "UPDATE a.rrd 1000000050:1:2 ",
            "-1 Cannot find timestamp in ''!",
        ),
        ("UPDATE a.rrd", "-1 No values updated."),
        (
            "UPDATE",
            "-1 Usage: UPDATE <filename> <values> [<values> ...]",
        ),
        ("UPDATE c.rrd 1:2", "-1 No such file: BASE/c.rrd"),
        ("UPDATE ../c.rrd 1:2", "-1 BASE/../c.rrd: Permission denied"),
        (
            "UPDATE /etc/passwd 1:2",
            "-1 /etc/passwd: Permission denied",
        ),
        ("UPDATE a\\ b.rrd 1:2", "-1 No such file: BASE/a b.rrd"),
        (
            "PENDING a.rrd",
            "5 updates pending\n1000000010:1:2\n1000000020:1:2\n1000000030.5:2:3\n1000000040:3:4\n\
             1000000050:1:2",
        ),
        ("PENDING c.rrd", "0 updates pending"),
        ("PENDING", "-1 Usage: PENDING <filename>"),
        ("LAST a.rrd", "0 1000000050"),
        ("FLUSH a.rrd", "0 Successfully flushed BASE/a.rrd."),
        ("FLUSH a.rrd", "0 Successfully flushed BASE/a.rrd."),
        ("FLUSH c.rrd", "-1 No such file: BASE/c.rrd."),
        ("LAST a.rrd", "0 1000000050"),
        ("FIRST a.rrd 0", "0 999999960"),
        ("FIRST a.rrd", "-1 Usage: FIRST <filename> <rra index>"),
        ("FIRST a.rrd 2", "-1 RRD Error: invalid rraindex number"),
        ("FIRST a.rrd -1", "-1 Invalid index specified (-1)"),
        (
            "CREATE m.rrd DS:a:GAUGE:20:U:U RRA:AVERAGE:0.5:1:2000000000",
            "-1 RRD Error: 2000000000 values are more than the 33554432 that are made here",
        ),
        ("FORGET a.rrd", "0 Gone!"),
        ("FORGET a.rrd", "-1 No such file or directory"),
        ("QUEUE", "0 in queue."),
    ]);
}

#[test]
fn suspended_databases_keep_their_updates() {
    let daemon = Daemon::new();
    daemon.expect(&[
        (CREATE, "0 RRD created OK"),
        ("SUSPEND a.rrd", "-1 BASE/a.rrd - No such file or directory"),
        (
            "UPDATE a.rrd 1000000010:1:2",
            "0 errors, enqueued 1 value(s).",
        ),
        ("SUSPEND a.rrd", "0 BASE/a.rrd suspended"),
        ("SUSPEND a.rrd", "0 BASE/a.rrd already suspended"),
        ("FLUSH a.rrd", "0 Successfully flushed BASE/a.rrd."),
        ("PENDING a.rrd", "1 updates pending\n1000000010:1:2"),
        ("RESUME a.rrd", "0 BASE/a.rrd resumed"),
        ("RESUME a.rrd", "0 BASE/a.rrd not suspended"),
        ("SUSPENDALL", "0 1 rrds suspend"),
        ("SUSPENDALL", "0 0 rrds suspend"),
        ("RESUMEALL", "0 1 rrds resumed"),
        ("FLUSH a.rrd", "0 Successfully flushed BASE/a.rrd."),
        ("PENDING a.rrd", "0 updates pending"),
    ]);
}

#[test]
fn batches_report_what_is_wrong_at_the_end() {
    let daemon = Daemon::new();
    let lines = format!(
        "{CREATE}\nBATCH\nUPDATE a.rrd 1000000090:1:2\nUPDATE a.rrd 1000000090:1:2\nFOO\n\
         PING\nFLUSH a.rrd\nBATCH\nFORGET nono.rrd\nUPDATE\n.\n.\nPING\nBATCH\n. x\nQUIT\nPING"
    );
    let expected = "0 RRD created OK\n\
        0 Go ahead.  End with dot '.' on its own line.\n\
        6 errors\n\
        2 illegal attempt to update using time 1000000090.000000 when last update time is \
        1000000090.000000 (minimum one second step)\n\
        3 Unknown command: FOO\n\
        4 Can't use 'PING' here.\n\
        6 Can't use 'BATCH' here.\n\
        7 No such file or directory\n\
        8 Usage: UPDATE <filename> <values> [<values> ...]\n\
        -1 Can't use '.' here.\n\
        0 PONG\n\
        0 Go ahead.  End with dot '.' on its own line.\n\
        0 errors\n";
    assert_eq!(daemon.ask(&lines), expected);
}

#[test]
fn rows() {
    let daemon = Daemon::new();
    let head = "FlushVersion: 1\nStart: 1000000000\nEnd: 1000000030\nStep: 10";
    daemon.expect(&[
        (CREATE, "0 RRD created OK"),
        (
            "UPDATE a.rrd 1000000010:1:3.3 1000000020:2:1e10",
            "0 errors, enqueued 2 value(s).",
        ),
        (
            "FETCH a.rrd AVERAGE 1000000000 1000000020",
            &format!(
                "9 Success\n{head}\nDSCount: 2\nDSName: a b\n\
                 1000000010: 1.00000000000000000e+00 3.29999999999999982e+00\n\
                 1000000020: 2.00000000000000000e+00 1.00000000000000000e+10\n\
                 1000000030: -nan -nan"
            ),
        ),
        (
            "FETCH a.rrd AVERAGE 1000000000 1000000020 b a",
            &format!(
                "9 Success\n{head}\nDSCount: 2\nDSName: b a\n\
                 1000000010: 3.29999999999999982e+00 1.00000000000000000e+00\n\
                 1000000020: 1.00000000000000000e+10 2.00000000000000000e+00\n\
                 1000000030: -nan -nan"
            ),
        ),
        (
            "FETCH a.rrd AVERAGE 1000000000 1000000020 b b",
            "-1 field b already used",
        ),
        (
            "FETCH a.rrd AVERAGE 1000000000 1000000020 c",
            "-1 field c not found in BASE/a.rrd",
        ),
        (
            "FETCH a.rrd",
            "-1 Usage: FETCH <file> <CF> [<start> [<end>] [<column>...]]",
        ),
        (
            "FETCH a.rrd FOO",
            "-1 rrd_fetch_r failed: unknown consolidation function 'FOO'",
        ),
        (
            "FETCH a.rrd HWPREDICT",
            "-1 rrd_fetch_r failed: the RRD does not contain an RRA matching the chosen CF",
        ),
        (
            "FETCH a.rrd AVERAGE x",
            "-1 Cannot parse start time `x': Only simple integers are allowed.",
        ),
        (
            "FETCH a.rrd AVERAGE 20 10",
            "-1 rrd_fetch_r failed: the end (10) is before the start (20)",
        ),
        (
            "FETCH a.rrd AVERAGE 10 167772300",
            "-1 rrd_fetch_r failed: found 16777230 rows, expected at most 16777216",
        ),
        (
            "FETCHBIN a.rrd AVERAGE 10 100000000 a b a",
            "-1 too many fields given - duplicates!",
        ),
        (
            "FETCH c.rrd AVERAGE",
            "-1 rrd_fetch_r failed: opening 'BASE/c.rrd': No such file or directory",
        ),
    ]);
    let binary = daemon.ask("FETCHBIN a.rrd AVERAGE 1000000000 1000000020 a\nPING");
    assert!(binary.starts_with(&format!(
        "6 Success\n{head}\nDSCount: 1\nDSName-a: BinaryData 3 8 LITTLE\n"
    )));
    assert!(binary.ends_with("\n0 PONG\n"));
}

#[test]
fn definitions() {
    let daemon = Daemon::new();
    daemon.expect(&[
        (CREATE, "0 RRD created OK"),
        (
            "CREATE a.rrd -O DS:a:GAUGE:20:U:U RRA:AVERAGE:0.5:1:10",
            "-1 RRD Error: creating 'BASE/a.rrd': File exists",
        ),
        (
            "CREATE",
            "-1 Usage: CREATE <filename> [-b start] [-s step] [-O] <DS definitions> <RRA definitions>",
        ),
        ("CREATE b.rrd", "-1 RRD Error: you must define at least one Round Robin Archive"),
        (
            "CREATE b.rrd -b 1 DS:a:GAUGE:20:U:U RRA:AVERAGE:0.5:1:10",
            "-1 The first entry must be after 1980.",
        ),
        (
            "CREATE b.rrd DS:a:GAUG:20:U:U RRA:AVERAGE:0.5:1:10",
            "-1 RRD Error: invalid DS type specified (GAUG)",
        ),
        ("CREATE sub/b.rrd -t a.rrd", "0 RRD created OK"),
        ("LIST /", "2 RRDs\na.rrd\nsub"),
        ("LIST RECURSIVE /", "2 RRDs\na.rrd\nsub/b.rrd"),
        ("LIST /sub/b.rrd", "1 RRDs\nb.rrd"),
        ("LIST /none", "-1 List BASE/none: No such file or directory"),
        ("LIST /sub/..", "-1 List BASE/sub/..: Permission denied"),
        ("LIST sub", "-1 Usage: LIST [RECURSIVE] /[<path>]"),
        ("LIST", "-1 Usage: LIST [RECURSIVE] /[<path>]"),
        ("INFO c.rrd", "-1 RRD Error: opening 'BASE/c.rrd': No such file or directory"),
    ]);
    let info = daemon.ask("INFO a.rrd");
    let begin = "39 Info for BASE/a.rrd follows\nfilename 2 BASE/a.rrd\nrrd_version 2 0003\nstep 1 10\n\
        last_update 1 1000000000\n";
    assert!(info.starts_with(begin), "{info}");
    assert!(info.contains("\nds[b].min 0 0.0000000000e+00\n"), "{info}");
    assert!(info.contains("\nds[a].max 0 NaN\n"), "{info}");
    // librrd sends a step of 0 if none was specified: that means 300, as in rrdtool.
    let plain = "CREATE plain.rrd -b 1000000000 -s 0 DS:a:GAUGE:600:U:U RRA:AVERAGE:0.5:1:10";
    daemon.expect(&[(plain, "0 RRD created OK")]);
    let info = daemon.ask("INFO plain.rrd");
    assert!(info.contains("\nstep 1 300\n"), "{info}");
    // A new database does not receive the updates meant for the previous one.
    daemon.expect(&[
        (
            "UPDATE a.rrd 1000000010:1:2",
            "0 errors, enqueued 1 value(s).",
        ),
        (CREATE, "0 RRD created OK"),
        ("PENDING a.rrd", "0 updates pending"),
    ]);
}

#[test]
fn databases_are_changed_and_dumped() {
    let daemon = Daemon::new();
    let taken = "0 errors, enqueued 1 value(s).";
    daemon.expect(&[
        (CREATE, "0 RRD created OK"),
        ("UPDATE a.rrd 1000000010:1:2", taken),
        // Options may stand anywhere; the file is the first operand, however it is called there.
        ("TUNE a.rrd 4 tune -h a:70 elsewhere.rrd", "0 Success"),
        ("UPDATE a.rrd 1000000070:3:4", taken),
        ("TUNE a.rrd 3 tune a.rrd DS:c:GAUGE:20:U:U", "0 Success"),
        ("UPDATE a.rrd 1000000080:5:6:7", taken),
        ("FLUSH a.rrd", "0 Successfully flushed BASE/a.rrd."),
        ("TUNE a.rrd 2 tune a.rrd", "0 Success"),
        (
            "TUNE a.rrd 4 tune a.rrd --heartbeat x:5",
            "-1 Got error unknown data source name 'x'",
        ),
        (
            "TUNE a.rrd 3 tune a.rrd",
            "-1 found 2 arguments, expected 3",
        ),
        ("TUNE a.rrd 0", "-1 Invalid argument count specified: 0"),
        (
            "TUNE a.rrd x tune a.rrd",
            "-1 Invalid argument count specified: x",
        ),
        (
            "TUNE ../a.rrd 2 tune a.rrd",
            "-1 BASE/../a.rrd: Permission denied",
        ),
        (
            "TUNE a.rrd 3 tune a.rrd RRA#0:+99999999",
            "-1 Got error 300000042 values are more than the 33554432 that are made here",
        ),
        (
            "TUNE a.rrd",
            "-1 Usage: TUNE <filename> <count> tune [<option> ...] <filename> [<operand> ...]",
        ),
        (
            "TUNE a.rrd 3 tune a.rrd --wait",
            "-1 Usage: TUNE <filename> <count> tune [<option> ...] <filename> [<operand> ...]",
        ),
        ("DUMP", "-1 Usage: DUMP <filename>"),
        (
            "DUMP b.rrd\nPING",
            "-1 BASE/b.rrd: failed to stat: No such file or directory\n0 PONG",
        ),
    ]);
    // The connection ends behind it.
    let dump = daemon.ask("DUMP a.rrd\nPING");
    assert!(dump.starts_with("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!DOCTYPE"));
    assert!(dump.ends_with("\n</rrd>\n"), "{dump}");
    for part in [
        "<lastupdate>1000000080</lastupdate>",
        "<minimal_heartbeat>70</minimal_heartbeat>",
        "<name> c </name>",
        // The longer heartbeat counts for what came after it.
        "<v>3.0000000000e+00</v>",
        "<last_ds>7</last_ds>",
    ] {
        assert!(dump.contains(part), "{part}: {dump}");
    }
}

#[test]
fn what_is_pending_while_a_database_changes_is_written() {
    let daemon = Daemon::new();
    let store = &daemon.shared.store;
    daemon.ask(CREATE);
    let path = store.path(b"a.rrd");
    daemon.ask(
        "SUSPEND a.rrd\nUPDATE a.rrd 1000000010:1:2\nSUSPEND a.rrd\nUPDATE a.rrd 1000000020:1:2",
    );
    // Nothing is flushed of a database that is suspended.
    let changed = daemon.ask("TUNE a.rrd 4 tune a.rrd -h a:70");
    assert_eq!(changed, "0 Success\n");
    let pending = store.known(&path).map(|database| database.pending_count());
    assert_eq!(pending, Some(2));
    daemon.ask("RESUME a.rrd\nFLUSH a.rrd");
    let info = daemon.ask("INFO a.rrd");
    assert!(info.contains("\nlast_update 1 1000000020\n"), "{info}");
    assert!(info.contains("\nds[a].minimal_heartbeat 1 70\n"), "{info}");
}

/// A client may name a database in several ways, and another client may have it forgotten meanwhile.
#[test]
fn databases_are_those_of_their_words() {
    let daemon = Daemon::new();
    let taken = "0 errors, enqueued 1 value(s).";
    daemon.ask(CREATE);
    let lines = [
        "UPDATE a.rrd 1000000010:1:2",
        "UPDATE ./a.rrd 1000000020:1:2",
        "FORGET a.rrd",
        // The file has nothing of it: this time is after the last one.
        "UPDATE a.rrd 1000000005:1:2",
        "UPDATE .//a.rrd 1000000006:1:2",
        "UPDATE ./a.rrd 1000000007:1:2",
    ];
    let answers = daemon.ask(&lines.join("\n"));
    let answers: Vec<&str> = answers.lines().collect();
    assert_eq!(answers, [taken, taken, "0 Gone!", taken, taken, taken]);
    assert_eq!(daemon.shared.store.count(), 1);
    std::fs::remove_file(daemon.directory.path().join("data/a.rrd")).unwrap();
    let gone = daemon.ask("UPDATE a.rrd 1000000050:1:2\nFORGET a.rrd\nUPDATE a.rrd 1000000060:1:2");
    assert_eq!(
        gone,
        format!("{taken}\n0 Gone!\n-1 No such file: BASE/a.rrd\n")
    );
}

/// A few words of clients that read nothing do not fill the memory.
#[test]
fn what_a_client_asks_for_is_bounded() {
    let daemon = Daemon::new();
    let huge = CREATE.replace("RRA:MAX:0.5:2:5", "RRA:MAX:0.5:2:16777217");
    let answer = daemon.ask(&huge);
    assert!(answer.starts_with("-1 RRD Error: "), "{answer}");
    assert!(
        answer.contains(" values are more than the 33554432 "),
        "{answer}"
    );
    daemon.expect(&[("LIST /", "0 RRDs"), (CREATE, "0 RRD created OK")]);
    let updates: Vec<_> = (1..10_000)
        .map(|second| format!("{}:1:2", 1_000_000_000 + second))
        .collect();
    for some in updates.chunks(1000) {
        let taken = format!("0 errors, enqueued {} value(s).\n", some.len());
        assert_eq!(
            daemon.ask(&format!("UPDATE a.rrd {}", some.join(" "))),
            taken
        );
    }
    let pending = |daemon: &Daemon| daemon.ask("PENDING a.rrd");
    assert!(pending(&daemon).starts_with("9999 updates pending\n"));
    // As if others had not read theirs.
    let answers = &daemon.shared.answers;
    answers.fetch_add(super::MOST_ANSWERS, Relaxed);
    let refused = "-1 too many long answers wait to be read by clients; try again later\n";
    assert_eq!(pending(&daemon), refused);
    answers.fetch_sub(super::MOST_ANSWERS, Relaxed);
    assert!(pending(&daemon).starts_with("9999 updates pending\n"));
    assert_eq!(answers.load(Relaxed), 0);
}

/// Updates are counted by command and by value, as rrdcached does.
#[test]
fn statistics_are_those_of_rrdcached() {
    let daemon = Daemon::new();
    daemon.ask(CREATE);
    daemon.ask("UPDATE a.rrd 1000000010:1:2 1000000020:1:2\nUPDATE a.rrd 1000000030:1:2\nUPDATE a.rrd 5:1:2");
    daemon.ask("FLUSH a.rrd\nFLUSH none.rrd");
    let answer = daemon.ask("STATS");
    for line in [
        "UpdatesReceived: 3",
        "FlushesReceived: 2",
        "UpdatesWritten: 1",
        "DataSetsWritten: 3",
        "TreeNodesNumber: 1",
    ] {
        assert!(
            answer.lines().any(|found| found == line),
            "{line}\n{answer}"
        );
    }
    let errors = daemon.shared.counters.sum(|it| it.errors.load(Relaxed));
    assert_eq!(errors, 2);
}

/// What cannot be written to the journal is not acknowledged, and only that is reported.
#[test]
fn a_journal_that_is_full() {
    let daemon = Daemon::with_journal_of(0);
    let problem = "the journal cannot be written: the journal is too long";
    let refused = format!("-1 RRD Error: creating 'BASE/a.rrd': {problem}");
    // Nothing is made then.
    daemon.expect(&[(CREATE, &refused), ("LIST /", "0 RRDs")]);
    let other = Daemon::new();
    other.expect(&[(CREATE, "0 RRD created OK")]);
    let path = |daemon: &Daemon| daemon.directory.path().join("data/a.rrd");
    std::fs::copy(path(&other), path(&daemon)).unwrap();
    let lines = "PING\nUPDATE a.rrd 1000000010:1:2\nPING\nUPDATE a.rrd x\n\
        UPDATE a.rrd 1000000020:1:2\nBATCH\nUPDATE a.rrd 1000000030:1:2\nFOO\n.\nPING";
    let expected = format!(
        "0 PONG\n-1 {problem}\n0 PONG\n-1 Cannot find timestamp in 'x'!\n-1 {problem}\n\
         0 Go ahead.  End with dot '.' on its own line.\n\
         2 errors\n2 Unknown command: FOO\n1 {problem}\n0 PONG\n"
    );
    assert_eq!(daemon.ask(lines), expected);
    // That of the creation among them.
    let errors = daemon.shared.counters.sum(|it| it.errors.load(Relaxed));
    assert_eq!(errors, 6);
}

#[test]
fn hostile_lines() {
    let daemon = Daemon::new();
    let long = "x".repeat(1 << 17);
    let answers = daemon.ask(&format!("{long}\nUPDATE {long}\nPING\0\n\n\\\nPING\r"));
    assert_eq!(
        answers,
        "-1 the line has 65536 bytes or more\n-1 the line has 65536 bytes or more\n\
         -1 Unknown command: PING\0\n-1 Unknown command: \n-1 Unknown command: \n0 PONG\n"
    );
    let errors = daemon.ask(&format!("BATCH\n{}.", "FOO\n".repeat(100_000)));
    let lines: Vec<_> = errors.lines().collect();
    let reported = lines[1].strip_suffix(" errors").unwrap().parse();
    assert_eq!(reported, Ok(lines.len() - 2));
    assert!(errors.len() < 2 << 20 && errors.ends_with("more errors are not listed\n"));
}

#[test]
fn help() {
    let daemon = Daemon::new();
    let overview = daemon.ask("HELP");
    assert!(overview.starts_with(
        "24 Command overview\nUPDATE <filename> <values> [<values> ...]\nFLUSH <filename>\n"
    ));
    assert_eq!(daemon.ask("HELP FOO"), overview);
    for command in super::commands::COMMANDS {
        let reported = daemon.ask(&format!("help {}", command.name));
        let (first, rest) = reported.split_once('\n').unwrap();
        let count: usize = first.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(rest.lines().count(), count, "{reported}");
        assert!(
            rest.starts_with(&format!("Usage: {}\n", command.usage())),
            "{reported}"
        );
    }
}

#[test]
fn sockets_allow_some_commands_only() {
    let daemon = Daemon::new();
    let talk = |commands: &[&str], text: &str| {
        let mut talk = Talk {
            sent: Cursor::new(text.as_bytes().to_vec()),
            answered: Vec::new(),
        };
        let mut client = Client::new(&daemon.shared, &mut talk, String::new());
        client.allowed = commands
            .iter()
            .filter_map(|name| CommandSet::from_name(name))
            .collect();
        client.serve().unwrap();
        drop(client);
        String::from_utf8(talk.answered).unwrap()
    };
    // As rrdcached answers with -P FLUSH,PENDING.
    let answered = talk(
        &["flush", "PENDING"],
        "PING\nUPDATE x.rrd 1:2\nBATCH\nSTATS\npending x.rrd\nfoo\nHELP FLUSHALL\nQUIT\nPING\n",
    );
    let lines: Vec<_> = answered.lines().collect();
    let denied = "-1 Permission denied.";
    assert_eq!(lines[..4], [denied; 4]);
    assert_eq!(
        lines[4..6],
        ["0 updates pending", "-1 Unknown command: foo"]
    );
    assert!(lines[6].ends_with("Help for FLUSHALL"), "{answered}");
    assert!(!answered.contains("PONG"));
    let answered = talk(&["read"], "PING\nFORGET a\nSUSPENDALL\nCREATE a\nLIST /\n");
    let lines: Vec<_> = answered.lines().collect();
    assert_eq!(lines[..4], ["0 PONG", denied, denied, denied]);
    let answered = talk(&["batch", "update"], "BATCH\nFORGET x\n.\nPING\n");
    assert!(answered.contains("1 Permission denied.\n"), "{answered}");
    assert_eq!(CommandSet::from_name("none"), None);
}
