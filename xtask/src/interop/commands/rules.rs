//! Where kymo answers otherwise than rrdtool, and why that is better.

use super::scenario::{Line, Step};
use super::side::{Answer, End};

/// A difference that is wanted.
struct Rule {
    /// What the command line is like: `*` stands for any text. Empty for all.
    line: &'static str,
    /// What rrdtool says: `0` or the error.
    theirs: &'static str,
    /// What kymo says.
    ours: &'static str,
    why: &'static str,
}

/// All rules. Digits stand for themselves, `*` for any text.
const RULES: &[Rule] = &[
    Rule {
        line: "*fetch *",
        theirs: "*",
        ours: "resolution: value is too large",
        why: "a number that does not fit 64 bits is told of",
    },
    Rule {
        line: "*fetch *",
        theirs: "0",
        ours: "resolution: value is too large",
        why: "a number that does not fit 64 bits is told of",
    },
    Rule {
        line: "*",
        theirs: "usage rrdtool *",
        ours: "Usage: rrdtool *",
        why: "all commands tell their usage in one way",
    },
    Rule {
        line: "*flushcached*",
        theirs: "Daemon address * unknown. *",
        ours: "no daemon is known: *",
        why: "there is no address `(null)`",
    },
    Rule {
        line: "*",
        theirs: "mmaping file '*': *",
        ours: "opening '*': is a directory",
        why: "the reason is told",
    },
    Rule {
        line: "*dump *",
        theirs: "0",
        ours: "writing '*': *",
        why: "a dump that cannot be written is a failure",
    },
    Rule {
        line: "*resize *",
        theirs: "opening '*': Permission denied",
        ours: "creating 'resize.rrd': Permission denied",
        why: "the file itself need not be written",
    },
    Rule {
        line: "*resize *",
        theirs: "opening '*': Permission denied",
        ours: "0",
        why: "the file itself need not be written",
    },
    Rule {
        line: "*tune *",
        theirs: "0",
        ours: "data source '*' is needed to compute '*'",
        why: "its expression would refer to another data source",
    },
    Rule {
        line: "*tune *",
        theirs: "0",
        ours: "Duplicate DS name: *",
        why: "two data sources of one name cannot be told apart",
    },
    Rule {
        line: "*tune *",
        theirs: "0",
        ours: "DELRRA requires a non-negative, integer argument",
        why: "what is no number is not taken for 0",
    },
    Rule {
        line: "*tune *",
        theirs: "*",
        ours: "Unable to parse parameter in set_*",
        why: "what is no number is refused, whether there is a place for it or not",
    },
    Rule {
        line: "*tune *",
        theirs: "0",
        ours: "Unable to parse parameter in set_*",
        why: "what is no number is refused, whether there is a place for it or not",
    },
    Rule {
        line: "*tune *",
        theirs: "0",
        ours: "`archive that archive * depends on`: *",
        why: "predictions need their seasons",
    },
    Rule {
        line: "*create *",
        theirs: "error checking for source RRD *",
        ours: "*",
        why: "a line is read as a whole before anything is done",
    },
    Rule {
        line: "*restore *",
        theirs: "Could not create xml reader for: *",
        ours: "'*': File exists; -f overwrites it",
        why: "it is looked first whether there is a place for the database",
    },
    Rule {
        line: "*restore *",
        theirs: "error reading/parsing XML: *",
        ours: "opening '*': is a directory",
        why: "the reason is told",
    },
    Rule {
        line: "*dump *",
        theirs: "0",
        ours: "opening '*': No such file or directory",
        why: "a dump of nothing is a failure",
    },
    Rule {
        line: "*create *",
        theirs: "0",
        ours: "creating '*': Operation not permitted",
        why: "the file of another user is not given to this one",
    },
    Rule {
        line: "*create *",
        theirs: "*",
        ours: "need name of an rrd file to create",
        why: "a line is read as a whole before anything is done",
    },
    Rule {
        line: "*tune *",
        theirs: "*",
        ours: "missing file name",
        why: "a line is read as a whole before anything is done",
    },
    Rule {
        line: "*tune *",
        theirs: "Holt-Winters parameter must be between 0 and 1",
        ours: "Unable to parse Holt-Winters parameter",
        why: "a number followed by something else is none",
    },
    Rule {
        line: "*dump *",
        theirs: "0",
        ours: "opening '*': Permission denied",
        why: "a dump of nothing is a failure",
    },
    Rule {
        line: "*tune *",
        theirs: "Failed to parse RRA# command: *",
        ours: "Failed to parse RRA# command",
        why: "it is the same in fewer words",
    },
    Rule {
        line: "*create *",
        theirs: "step size: *",
        ours: "start time: *",
        why: "of two things that are wrong, another is told",
    },
    Rule {
        line: "*resize *",
        theirs: "wrong number of parameters",
        ours: "*",
        why: "options end where they are said to end",
    },
    Rule {
        line: "*tune *",
        theirs: "0",
        ours: "you must define at least one Round Robin Archive",
        why: "a database without archives is none",
    },
    Rule {
        line: "*tune *",
        theirs: "0",
        ours: "you must define at least one Data Source",
        why: "a database without data sources is none",
    },
    Rule {
        line: "*restore *",
        theirs: "*parser error*",
        ours: "opening '*': is a directory",
        why: "the reason is told",
    },
    Rule {
        line: "*restore *",
        theirs: "Could not create xml reader for:*",
        ours: "'*': File exists; -f overwrites it",
        why: "it is looked first whether there is a place for the database",
    },
    Rule {
        line: "*resize *",
        theirs: "I can only GROW or SHRINK",
        ours: "wrong number of parameters",
        why: "options end where they are said to end",
    },
    Rule {
        line: "*create *",
        theirs: "0",
        ours: "`archive that archive * depends on`: *",
        why: "predictions need their seasons",
    },
    Rule {
        line: "*",
        theirs: "could not lock RRD",
        ours: "the RRD does not contain an RRA matching the chosen CF",
        why: "who reads needs no lock",
    },
    Rule {
        line: "*",
        theirs: "0",
        ours: "'*': `archive that archive * depends on` at offset *",
        why: "what rrdtool makes of predictions without seasons is damaged",
    },
    Rule {
        line: "*resize *",
        theirs: "could not lock RRD",
        ours: "0",
        why: "who reads needs no lock",
    },
    Rule {
        line: "*create *",
        theirs: "the first entry to the RRD should be after 1980",
        ours: "0",
        why: "`epoch` is 1970",
    },
    Rule {
        line: "*xport *",
        theirs: "SANITY CHECK: 18446744073709551* rows cannot be reduced by *",
        ours: "*",
        why: "a time without rows has less than none in rrdtool's count",
    },
    Rule {
        line: "*xport *",
        theirs: "*",
        ours: "found step '*', expected a number of seconds",
        why: "what is no number is refused",
    },
    Rule {
        line: "*restore *",
        theirs: "creating '*': Permission denied",
        ours: "'*': Permission denied",
        why: "it is the same in other words",
    },
    Rule {
        line: "*resize *",
        theirs: "*",
        ours: "opening '*",
        why: "the file is looked at first",
    },
    Rule {
        line: "*xport *",
        theirs: "*",
        ours: "opening '*': No such file or directory",
        why: "all files are opened before the first is read",
    },
    Rule {
        line: "*xport *",
        theirs: "SANITY CHECK: 18446744073709551* rows cannot be reduced by *",
        ours: "0",
        why: "a time without rows has less than none in rrdtool's count",
    },
    Rule {
        line: "*",
        theirs: "*",
        ours: "'*': `*` at offset *",
        why: "what is wrong with a file is told with its place",
    },
    Rule {
        line: "*restore *",
        theirs: "error reading/parsing XML: *",
        ours: "'*': line *, column *",
        why: "what is wrong with a document is told with its place",
    },
    Rule {
        line: "*resize *",
        theirs: "Do not know how to handle RRD version 0005",
        ours: "0",
        why: "files of version 0005 can be resized",
    },
    Rule {
        line: "*restore *",
        theirs: "*parser error*",
        ours: "'*': line *, column *",
        why: "what is wrong with a document is told with its place",
    },
    Rule {
        line: "*restore *",
        theirs: "0",
        ours: "'*': line *, column *",
        why: "a document without data sources or archives is no database",
    },
    Rule {
        line: "*restore *",
        theirs: "creating '*': File exists",
        ours: "'*': File exists; -f overwrites it",
        why: "the way out is told",
    },
    Rule {
        line: "*restore *",
        theirs: "creating '*': Permission denied",
        ours: "'*': Operation not permitted",
        why: "the file of another user is not given to this one",
    },
    Rule {
        line: "*restore *",
        theirs: "Could not create xml reader for: *",
        ours: "opening '*",
        why: "the reason is told",
    },
    Rule {
        line: "*create *",
        theirs: "Cannot create temporary file",
        ours: "creating '*",
        why: "the reason is told",
    },
    Rule {
        line: "*tune *",
        theirs: "invalid arguments for data source type",
        ours: "unknown data acquisition function '*'",
        why: "what is unknown is told",
    },
    Rule {
        line: "*",
        theirs: "*",
        ours: "invalid option*",
        why: "a line is read as a whole before anything is done",
    },
    Rule {
        line: "*",
        theirs: "*",
        ours: "option requires *argument*",
        why: "a line is read as a whole before anything is done",
    },
    Rule {
        line: "*create *",
        theirs: "Cannot open template RRD *",
        ours: "opening '*",
        why: "the reason is told",
    },
    Rule {
        line: "*",
        theirs: "*",
        ours: "Unable to connect to rrdcached*",
        why: "the daemon is asked before the file is opened",
    },
];

/// Commands that change nothing. rrdtool refuses to read a file that another process writes.
const READING: [&str; 7] = [
    "dump",
    "fetch",
    "first",
    "info",
    "last",
    "lastupdate",
    "xport",
];

/// What usage texts begin with: they are each program's own.
const USAGE: &str = "RRDtool 1.";

/// How often each difference was met, with an example.
#[derive(Default)]
pub(super) struct Rules {
    met: Vec<(u64, String)>,
    usage: u64,
    /// Errors for which kymo reports more details.
    more: u64,
    /// Files that were read while they were locked.
    unlocked: u64,
    /// Lines over which rrdtool ended by a signal.
    broken: Vec<String>,
}

impl Rules {
    /// Whether a difference is wanted.
    pub(super) fn allow(&mut self, step: &Step, theirs: &Answer, ours: &Answer) -> bool {
        let asked = theirs.out.starts_with(USAGE) || theirs.error.starts_with("unknown function");
        if asked && ours.out.contains("Usage: ") {
            self.usage += 1;
            return true;
        }
        // What rrdtool breaks on, nothing but an answer is expected for.
        if theirs.end == End::Broken {
            return ours.end != End::Broken;
        }
        if theirs.end == ours.end && theirs.out == ours.out && reports_more(theirs, ours) {
            self.more += 1;
            return true;
        }
        // Who reads needs no lock.
        if theirs.error == "could not lock RRD" && READING.contains(&line(step)) {
            self.unlocked += 1;
            return true;
        }
        self.met.resize(RULES.len(), (0, String::new()));
        let (theirs, ours) = (said(theirs), said(ours));
        let line = step.to_string();
        for (rule, (times, example)) in RULES.iter().zip(&mut self.met) {
            if (rule.line.is_empty() || matches(rule.line, &line))
                && said_so(rule.theirs, theirs)
                && said_so(rule.ours, ours)
            {
                if *times == 0 {
                    *example = format!("{line}\n        {theirs}\n        {ours}");
                }
                *times += 1;
                return true;
            }
        }
        false
    }

    /// Notes a line that is too much for rrdtool.
    pub(super) fn broken(&mut self, line: &Line, answer: &Answer) {
        let line = Step::Line(line.clone());
        self.broken.push(format!("{line}: {}", answer.error));
    }

    /// Prints what was met.
    pub(super) fn report(&self) {
        println!(
            "{} usage texts, {} errors told at more length",
            self.usage, self.more
        );
        if let Some(first) = self.broken.first() {
            println!(
                "rrdtool broke {} times, first over {first}",
                self.broken.len()
            );
        }
        for (rule, (times, example)) in RULES.iter().zip(&self.met) {
            if *times > 0 {
                println!("{times:>6} times other, since {}:\n    {example}", rule.why);
            }
        }
    }
}

/// Whether kymo's error is rrdtool's, and what there is to say besides.
fn reports_more(theirs: &Answer, ours: &Answer) -> bool {
    if theirs.end == End::Code(0) {
        return ours.error.starts_with("WARNING: ");
    }
    let error = theirs.error.as_str();
    !error.is_empty()
        && ours
            .error
            .strip_prefix(error)
            .is_some_and(|more| more.starts_with([':', ';']))
}

/// What is said, in one text.
fn said(answer: &Answer) -> &str {
    match answer.end {
        End::Code(0) => "0",
        _ => &answer.error,
    }
}

/// The command of a step.
fn line(step: &Step) -> &str {
    match step {
        Step::Line(line) => line.command(),
        _ => "",
    }
}

/// Whether this was said; success does not match any error.
fn said_so(pattern: &str, said: &str) -> bool {
    match said {
        "0" => pattern == "0",
        error => matches(pattern, error),
    }
}

/// Whether a text is like a pattern, in which `*` is any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(rest) = text.strip_prefix(head) else {
        return false;
    };
    let mut begins = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    begins.any(|at| matches(tail, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_are_any_text() {
        assert!(matches("a*c", "abbc") && matches("*", "") && matches("a**", "ab"));
        assert!(!matches("a*c", "abcd") && !matches("", "a") && !matches("b*", "ab"));
    }
}
