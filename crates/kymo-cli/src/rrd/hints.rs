//! What to do about the messages of rrdtool's commands.
//!
//! The messages are rrdtool's own, which scripts compare. Below them, `kymo rrd` prints a hint.

use std::io::ErrorKind;
use std::path::Path;

use kymo::explain;
use kymo_rrd::recording::Recording;
use kymo_text::nearest;

const TYPES: [&str; 7] = [
    "GAUGE", "COUNTER", "DERIVE", "DCOUNTER", "DDERIVE", "ABSOLUTE", "COMPUTE",
];
const FUNCTIONS: [&str; 9] = [
    "AVERAGE",
    "MIN",
    "MAX",
    "LAST",
    "HWPREDICT",
    "MHWPREDICT",
    "SEASONAL",
    "DEVPREDICT",
    "DEVSEASONAL",
];

/// What to do about a message of a command line.
pub(super) fn hint(words: &[&[u8]], message: &str) -> Option<String> {
    let text = |word: &&[u8]| std::str::from_utf8(word).ok().map(str::to_string);
    let words: Vec<String> = words.iter().filter_map(text).collect();
    let file = words.iter().skip(1).find(|word| Path::new(word).is_file());
    if let Some(rest) = message.strip_prefix("opening '") {
        let (path, reason) = rest.split_once("': ")?;
        let path = Path::new(path);
        return match reason {
            "is a directory" => Some(format!(
                "this command takes one file; `kymo rrd check {0}` and `kymo info {0}` search directories",
                path.display()
            )),
            _ if !path.exists() => explain::reading(path, &ErrorKind::NotFound.into()).hint,
            _ => None,
        };
    }
    if let Some(rest) = ["writing '", "creating '"]
        .iter()
        .find_map(|verb| message.strip_prefix(verb))
    {
        let path = Path::new(rest.split_once("': ")?.0);
        return explain::writing(path, &ErrorKind::NotFound.into())
            .hint
            .filter(|_| path.parent().is_some_and(|parent| !parent.exists()));
    }
    if let Some((file, problem)) = message
        .strip_prefix('\'')
        .and_then(|it| it.split_once("': "))
        && problem.contains("at offset ")
    {
        // Of an empty file the message says it all.
        return match problem.contains("expected \"RRD\\x00\"") {
            true if problem.contains("found an empty file") => None,
            true => Some(format!(
                "it is not a round-robin database: `kymo info {file}` shows what it is"
            )),
            false => Some(explain::damaged_database(Path::new(file))),
        };
    }
    if words.first().is_some_and(|command| command == "restore") && is_database(file?) {
        return Some(format!(
            "`{}` is a database already: `restore` takes the XML that `dump` writes",
            file?
        ));
    }
    if message.contains("unparsable time") {
        return Some(
            "a time is a number of seconds since 1970, `now`, `end-1day`, `-6h`, `10:00` or `20261128 10:00`"
                .to_string(),
        );
    }
    if message.starts_with("Unable to connect to rrdcached") {
        return Some(
            "the address of the daemon is that of `--daemon`, or of RRDCACHED_ADDRESS in the environment: \
             check that it runs and listens there"
                .to_string(),
        );
    }
    if message == "Not enough arguments" && words.first().is_some_and(|it| it.starts_with("update"))
    {
        return Some(
            "an update is written FILE TIME:VALUE[:VALUE]..., such as load.rrd N:1.5".to_string(),
        );
    }
    if message == "missing filename" || message.starts_with("can't make a graph without contents") {
        return Some(
            "a graph has a file and what is drawn: `kymo rrd graph day.png DEF:a=load.rrd:load:AVERAGE LINE:a`".to_string(),
        );
    }
    if message == "can't make an xport without contents" {
        return Some(
            "a table has series: `kymo rrd xport DEF:a=load.rrd:load:AVERAGE XPORT:a`".to_string(),
        );
    }
    if message == "no such RRA in this RRD" {
        return Some(format!(
            "archives are numbered from 0: `kymo rrd info {}` lists them as rra[0], rra[1]...",
            file?
        ));
    }
    if let Some(rest) = message.strip_prefix("unknown data source name '") {
        return sources_hint(file?, Some(rest.trim_end_matches('\'')));
    }
    if let Some(rest) = message.strip_prefix("invalid DS type specified (") {
        return Some(one_of(rest.trim_end_matches(')'), &TYPES, "types"));
    }
    if let Some(name) = message.strip_prefix("Unrecognized consolidation function ") {
        return Some(one_of(name, &FUNCTIONS, "functions"));
    }
    if let Some(rest) = message.strip_prefix("unknown consolidation function '") {
        return Some(one_of(rest.trim_end_matches('\''), &FUNCTIONS, "functions"));
    }
    if message.starts_with("failed to parse data source")
        || message.starts_with("you must define at least one Data Source")
    {
        return Some(
            "a data source is written DS:NAME:TYPE:HEARTBEAT:MIN:MAX, such as DS:load:GAUGE:600:0:U".to_string(),
        );
    }
    if message.starts_with("you must define at least one Round Robin Archive") {
        return Some(
            "an archive is written RRA:FUNCTION:XFF:STEPS:ROWS, such as RRA:AVERAGE:0.5:5m:1w"
                .to_string(),
        );
    }
    if message.contains("illegal attempt to update using time") {
        return Some(
            "values must be newer than the last update; `--skip-past-updates` ignores those that are not".to_string(),
        );
    }
    if let Some(rest) = message.strip_prefix("unknown DS name '") {
        return sources_hint(file?, Some(rest.trim_end_matches('\'')));
    }
    if let Some(rest) = message.strip_prefix("No DS called '") {
        let (name, file) = rest.split_once("' in '")?;
        return sources_hint(file.trim_end_matches('\''), Some(name));
    }
    if message.contains("found extra data on update argument")
        || message.contains("data source readings (got")
    {
        let order = sources_hint(file?, None)?;
        return Some(format!(
            "write a value for each data source; {order}; `-t NAME:NAME` chooses some of several"
        ));
    }
    if message.contains("expected timestamp not found") {
        return Some("values are written TIME:VALUE[:VALUE]..., such as N:1.5".to_string());
    }
    if message.starts_with("start (") && message.contains("should be less than end") {
        return Some(
            "`-s` is the begin and `-e` the end; by default they are `end-1day` and now"
                .to_string(),
        );
    }
    if message.contains("is not a vname nor a number") {
        return Some(
            "a name is defined before it is drawn, such as DEF:a=load.rrd:load:AVERAGE".to_string(),
        );
    }
    None
}

/// Whether a file is a database, as its first bytes say.
fn is_database(file: &str) -> bool {
    let mut begin = [0; 4];
    let read =
        std::fs::File::open(file).and_then(|mut it| std::io::Read::read_exact(&mut it, &mut begin));
    read.is_ok() && &begin == b"RRD\0"
}

/// What may have been meant, and all there is.
fn one_of(wrong: &str, known: &[&str], what: &str) -> String {
    let begins = |name: &&str| wrong.get(..2).is_some_and(|begin| name.starts_with(begin));
    let meant =
        nearest(wrong, known.iter().copied()).or_else(|| known.iter().copied().find(begins));
    let meant = meant.map_or(String::new(), |meant| format!("did you mean `{meant}`? "));
    format!("{meant}the {what} are {}", known.join(", "))
}

/// The data sources of a database.
fn sources_hint(file: &str, wrong: Option<&str>) -> Option<String> {
    /// More are not listed.
    const SHOWN: usize = 20;
    let database = Recording::open(Path::new(file), None).ok()?;
    let sources = &database.database().sources;
    let names: Vec<String> = sources
        .iter()
        .map(|source| source.name.to_string())
        .collect();
    let meant = wrong
        .and_then(|wrong| nearest(wrong, names.iter().map(String::as_str)))
        .map_or(String::new(), |meant| format!("did you mean `{meant}`? "));
    let more = if names.len() > SHOWN { ", ..." } else { "" };
    let listed: Vec<_> = names
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{name}`"))
        .collect();
    Some(format!(
        "{meant}the data sources of `{file}` are, in order: {}{more}",
        listed.join(", ")
    ))
}
