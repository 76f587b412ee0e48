//! The conformance run: every case of every corpus, against what is known to be right.
//!
//! A corpus is a row of [`CORPORA`]; it gives a [`Verdict`] for each of its cases. The
//! numbers that were reached are recorded in `conformance/expected.tsv`, cases that fail
//! for a known reason in `conformance/exceptions.tsv`: a number that falls, a failure
//! without a reason and a reason without a failure all fail the run.

mod analyses;
mod collectd;
mod contents;
mod dialects;
mod elements;
mod fields;
pub(crate) mod graphs;
mod logs;
mod pairs;
mod random;
mod record;
mod rrd;
mod rrd_lines;
mod rrd_updates;
mod text;
mod tree;
mod written;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::args::Args;
use crate::{Outcome, process};
use record::{Exceptions, Numbers};

pub(crate) use contents::{open, times};
pub(crate) use text::with_sorted_labels;

/// What the corpora are run with.
struct Setting {
    /// The folder of the traces (`ctf`).
    traces: PathBuf,
    /// The program.
    kymo: PathBuf,
}

/// How one case ended.
struct Verdict {
    /// Its path below the folder of the traces.
    case: String,
    /// Why it failed; `None` when it passed.
    failure: Option<String>,
}

impl Verdict {
    fn new(case: impl Into<String>, result: Result<(), String>) -> Self {
        Self {
            case: case.into(),
            failure: result.err(),
        }
    }
}

/// Cases of one origin.
struct Corpus {
    name: &'static str,
    run: fn(&Setting) -> Outcome<Vec<Verdict>>,
}

/// All corpora, in the order in which they are run.
const CORPORA: &[Corpus] = &[
    Corpus {
        name: "ctf1-own-text",
        run: |setting| text::run(setting, "own"),
    },
    Corpus {
        name: "ctf1-own-values",
        run: random::run,
    },
    Corpus {
        name: "ctf1-babeltrace-text",
        run: |setting| text::run(setting, "babeltrace/common-data/ctf-traces/1"),
    },
    Corpus {
        name: "ctf1-babeltrace-whole",
        run: |setting| text::whole_traces(setting, 1),
    },
    Corpus {
        name: "ctf1-babeltrace-fields",
        run: |setting| fields::run(setting, "babeltrace/field-traces/ctf-1.8-"),
    },
    Corpus {
        name: "ctf1-fields-text",
        run: |setting| text::run(setting, "babeltrace/field-traces/ctf-1.8-"),
    },
    Corpus {
        name: "ctf1-barectf-text",
        run: |setting| text::run(setting, "barectf/traces"),
    },
    Corpus {
        name: "ctf1-yactfr-elements",
        run: |setting| elements::run(setting, "ctf-1"),
    },
    Corpus {
        name: "ctf1-yactfr-text",
        run: |setting| text::run(setting, "yactfr/iter-data/ctf-1"),
    },
    Corpus {
        name: "ctf2-babeltrace-text",
        run: |setting| text::run(setting, "babeltrace/common-data/ctf-traces/2"),
    },
    Corpus {
        name: "ctf2-babeltrace-whole",
        run: |setting| text::whole_traces(setting, 2),
    },
    Corpus {
        name: "ctf2-babeltrace-fields",
        run: |setting| fields::run(setting, "babeltrace/field-traces/ctf-2-"),
    },
    Corpus {
        name: "ctf2-fields-text",
        run: |setting| text::run(setting, "babeltrace/field-traces/ctf-2-"),
    },
    Corpus {
        name: "ctf2-yactfr-elements",
        run: |setting| elements::run(setting, "ctf-2"),
    },
    Corpus {
        name: "ctf2-yactfr-text",
        run: |setting| text::run(setting, "yactfr/iter-data/ctf-2"),
    },
    Corpus {
        name: "ctf2-pairs",
        run: pairs::run,
    },
    Corpus {
        name: "ctf2-twins",
        run: pairs::twins,
    },
    Corpus {
        name: "metadata-to-ctf1.8",
        run: dialects::to_ctf_1_8,
    },
    Corpus {
        name: "metadata-to-ctf2",
        run: dialects::to_ctf_2,
    },
    Corpus {
        name: "metadata-to-rfc",
        run: dialects::to_rfc,
    },
    Corpus {
        name: "ctf-written-1.8",
        run: written::ctf18,
    },
    Corpus {
        name: "ctf-written-2",
        run: written::ctf2,
    },
    Corpus {
        name: "ctf-written-rfc",
        run: written::rfc,
    },
    Corpus {
        name: "ctf-written-packed",
        run: written::packed,
    },
    Corpus {
        name: "ctf-written-packets",
        run: written::packets,
    },
    Corpus {
        name: "rrd-machines",
        run: rrd::machines,
    },
    Corpus {
        name: "rrd-conversions",
        run: rrd::conversions,
    },
    Corpus {
        name: "rrd-found",
        run: rrd::found,
    },
    Corpus {
        name: "rrd-replay",
        run: rrd_updates::replay,
    },
    Corpus {
        name: "rrd-commands",
        run: rrd_updates::commands,
    },
    Corpus {
        name: "rrd-lines-created",
        run: rrd_lines::created,
    },
    Corpus {
        name: "rrd-lines-updated",
        run: rrd_lines::updated,
    },
    Corpus {
        name: "rrd-graph-facts",
        run: graphs::facts,
    },
    Corpus {
        name: "rrd-graph-shapes",
        run: graphs::shapes,
    },
    Corpus {
        name: "rrd-graph-pixels",
        run: graphs::pixels,
    },
    Corpus {
        name: "cpel-dump",
        run: logs::dumps,
    },
    Corpus {
        name: "cpel-copies",
        run: logs::copies,
    },
    Corpus {
        name: "cpel-lines",
        run: logs::lines,
    },
    Corpus {
        name: "cpel-elog-dump",
        run: logs::elog_dumps,
    },
    Corpus {
        name: "cpel-elog-conversions",
        run: logs::elog_conversions,
    },
    Corpus {
        name: "cpel-states",
        run: analyses::states,
    },
    Corpus {
        name: "cpel-profiles",
        run: analyses::profiles,
    },
    Corpus {
        name: "collectd-packets",
        run: collectd::packets,
    },
    Corpus {
        name: "collectd-malformed",
        run: collectd::malformed,
    },
    Corpus {
        name: "collectd-commands",
        run: collectd::commands,
    },
    Corpus {
        name: "collectd-configurations",
        run: collectd::configurations,
    },
];

/// `cargo xtask conformance`.
pub(crate) fn run(mut args: Args) -> Outcome {
    let corpus: PathBuf = args
        .value("--corpus")?
        .ok_or("conformance needs `--corpus DIR`")?;
    let only: Option<String> = args.value("--only")?;
    let bless = args.flag("--bless");
    let verbose = args.flag("--verbose");
    args.finish()?;

    let traces = corpus.join("ctf");
    if !traces.is_dir() {
        return Err(format!("no corpora at {}", traces.display()).into());
    }
    let setting = Setting {
        traces: traces.canonicalize()?,
        kymo: process::build_kymo(false)?,
    };
    let mut corpora: Vec<&Corpus> = CORPORA.iter().collect();
    corpora.retain(|corpus| only.as_deref().is_none_or(|name| name == corpus.name));
    if corpora.is_empty() {
        return Err("no corpus of that name".into());
    }
    let folder = process::root().join("conformance");
    let mut tally = Tally {
        numbers: Numbers::read(&folder.join("expected.tsv"))?,
        exceptions: Exceptions::read(&folder.join("exceptions.tsv"))?,
        bless,
        verbose,
        passed: 0,
        failed: 0,
        known: 0,
        complaints: Vec::new(),
    };
    in_threads(&corpora, &setting, |corpus, verdicts| {
        verdicts.map(|verdicts| tally.add(corpus.name, verdicts))
    })?;
    if bless {
        tally.numbers.write(&folder.join("expected.tsv"))?;
    }
    println!(
        "known failures, with reasons in conformance/exceptions.tsv: {}",
        tally.known
    );
    println!("{} passed, {} failed", tally.passed, tally.failed);
    let mut complaints = tally.complaints;
    match complaints.len() {
        0 => Ok(()),
        1 => Err(complaints.remove(0).into()),
        more => Err(format!("{} (and {} more)", complaints[0], more - 1).into()),
    }
}

/// Runs as many corpora at a time as there are processors, and gives the verdicts of each to `then`
/// in the order of the corpora, as soon as they are there.
fn in_threads(
    corpora: &[&Corpus],
    setting: &Setting,
    mut then: impl FnMut(&Corpus, Result<Vec<Verdict>, String>) -> Result<(), String>,
) -> Result<(), String> {
    let next = AtomicUsize::new(0);
    let (sender, done) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            let (next, sender) = (&next, sender.clone());
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(corpus) = corpora.get(index) else {
                        return;
                    };
                    let verdicts = (corpus.run)(setting).map_err(|error| error.to_string());
                    if sender.send((index, verdicts)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut turn = 0;
        for (index, verdicts) in done {
            early.insert(index, verdicts);
            while let Some(verdicts) = early.remove(&turn) {
                then(corpora[turn], verdicts)?;
                turn += 1;
            }
        }
        Ok(())
    })
}

/// What has been found so far.
struct Tally {
    numbers: Numbers,
    exceptions: Exceptions,
    /// Whether the numbers reached are recorded instead of compared.
    bless: bool,
    verbose: bool,
    passed: usize,
    failed: usize,
    known: usize,
    complaints: Vec<String>,
}

impl Tally {
    /// Reports how the cases of a corpus ended.
    fn add(&mut self, corpus: &str, mut verdicts: Vec<Verdict>) {
        verdicts.sort_by(|a, b| a.case.cmp(&b.case));
        let exceptions = &self.exceptions;
        let passed = verdicts.iter().filter(|v| v.failure.is_none()).count();
        let known = verdicts
            .iter()
            .filter(|v| v.failure.is_some() && exceptions.reason(corpus, &v.case).is_some())
            .count();
        let failed = verdicts.len() - passed - known;
        self.passed += passed;
        self.failed += failed;
        self.known += known;
        println!("{corpus:<24} {passed:>5} passed {failed:>5} failed {known:>5} known");
        for verdict in &verdicts {
            match (&verdict.failure, exceptions.reason(corpus, &verdict.case)) {
                (Some(why), Some(reason)) => {
                    println!("    known:  {}: {reason}", verdict.case);
                    if self.verbose {
                        println!("{}", indented(why));
                    }
                }
                (Some(why), None) => {
                    println!("    FAILED: {}", verdict.case);
                    let why = if self.verbose { why } else { first_line(why) };
                    println!("{}", indented(why));
                    self.complaints.push(format!("{} fails", verdict.case));
                }
                (None, Some(_)) => self.complaints.push(format!(
                    "{} passes: take it out of conformance/exceptions.tsv",
                    verdict.case
                )),
                (None, None) => {}
            }
        }
        if self.bless {
            self.numbers.set(corpus, passed, verdicts.len());
        } else if let Err(complaint) = self.numbers.check(corpus, passed, verdicts.len()) {
            self.complaints.push(complaint);
        }
    }
}

/// `cargo xtask elements`.
pub(crate) fn print_elements(mut args: Args) -> Outcome {
    let trace = args.word().ok_or("elements needs a trace")?;
    args.finish()?;
    print!("{}", elements::listing(Path::new(&trace))?);
    Ok(())
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| format!("            {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Where two texts differ, as far as a person wants to see it.
fn difference(expected: &str, found: &str) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    let line = expected
        .lines()
        .zip(found.lines())
        .take_while(|(a, b)| a == b)
        .count();
    Err(format!(
        "differs at line {}\nexpected: {}\nfound:    {}",
        line + 1,
        expected.lines().nth(line).unwrap_or("(the end)"),
        found.lines().nth(line).unwrap_or("(the end)"),
    ))
}

/// All files whose paths relative to `base` begin with `prefix` and end with `suffix`: these
/// paths without the suffix, sorted.
fn cases(base: &Path, prefix: &str, suffix: &str) -> Outcome<Vec<String>> {
    let whole = base.join(prefix);
    let folder = match whole.is_dir() {
        true => whole.as_path(),
        false => whole.parent().unwrap_or(base),
    };
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(relative) = path.strip_prefix(base)
                && let Some(case) = relative.to_string_lossy().strip_suffix(suffix)
                && case.starts_with(prefix)
            {
                found.push(case.to_string());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_the_first_line_that_differs() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), Ok(()));
        assert_eq!(
            difference("a\nb\n", "a\n"),
            Err("differs at line 2\nexpected: b\nfound:    (the end)".to_string())
        );
    }
}
