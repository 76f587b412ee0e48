//! The project's own runs, which need more than a clone: corpora, peers, time.
//!
//! `cargo xtask help` lists them.

mod api;
mod args;
mod bench;
mod conformance;
mod count;
mod daemons;
mod dist;
mod fuzz;
mod interop;
mod live_soak;
mod make_trace;
mod pictures;
mod process;
mod soak;
mod twin;
mod view_tests;
mod words;

use std::process::ExitCode;

use args::Args;

/// What a run ends with: an error is one line for a person.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const HELP: &str = "\
usage: cargo xtask COMMAND [OPTIONS]

  conformance --corpus DIR [--only NAME] [--bless] [--verbose]
      Runs the corpora below DIR and compares the numbers with conformance/expected.tsv.
      --only NAME   only the corpus of this name
      --bless       records the numbers found
      --verbose     shows where each failure differs
  elements TRACE
      Prints every element of a trace with its bit offset.
  interop [--only analyses|ctf|tracing|perfetto|rrd|engine|commands|graphs|graph-scripts|serve|collectd|queries|kills|taking|soak] [--python PROGRAM] [--tool SCRIPT] [--events N]
          [--databases DIR] [--command-lines FILE]
          [--rounds N] [--seed N] [--graphs N] [--scenarios N] [--kind KIND] [--kills N] [--ours PROGRAM]
          [--theirs PROGRAM]
      Compares kymo's analyses with their definitions; kymo with babeltrace2 on traces that LTTng-UST makes now; with rrdtool on
      databases that it makes now and on those of other machines, converted to this one; its
      engine with rrdtool on databases and updates that are made up; its command lines with
      rrdtool's on those that are made up; what it makes for Perfetto with Perfetto's schema;
      and `kymo serve` with rrdcached, and with what collectd sends it; and lets it soak for 20 seconds.
      --only NAME   only one of these
      --python PROGRAM  a Python with the package perfetto (target/perfetto/bin/python)
      --tool SCRIPT makes a trace (../shared/tools/lttng-load/make-trace.sh, or LTTNG_LOAD)
      --events N    events of each of two threads (20000)
      --databases DIR  where the databases of other machines are (../shared/data/rrd)
      --rounds N    databases to make up (500)
      --seed N      makes others up (1)
      --graphs N    random command lines of graphs (2000), with --only graphs
      --scenarios N scenarios of command lines of each kind (40)
      --kind KIND   only scenarios of this kind
      --kills N     how often a program is killed while it updates (20); with --only kills, `kymo serve` under all protocols
      --ours PROGRAM, --theirs PROGRAM  what is compared instead of kymo and of rrdtool
  bench NAME --profile dist
      Measures what is released instead of what the README's command builds; for all of these:
  bench ctf [--tool SCRIPT] [--events N] [--runs N]
      Measures kymo beside babeltrace2 on a trace of N events (10000000), and on the same
      events in CTF 2.
      --runs N      alternating runs of which the median counts (5)
  bench engine
      Counts the instructions of an update of a database that stays open; needs valgrind.
  bench graph [--runs N] [--pictures N] [--ours PROGRAM]
      Measures graphs of a year as PNG and SVG beside rrdtool, a process each and many in a pipe.
      --ours PROGRAM  what is measured instead of kymo; it takes rrdtool's words
  bench index [--events N] [--runs N] [--keep]
      Measures the summary index of a trace of N events (10000000, some 400 MB) on 50 tracks beside
      `kymo check`: building, size, first answer, queries of 2000 columns.
      --keep        does not remove the trace afterwards
  bench logs [--runs N]
      Measures kymo on an event log of 5000000 events beside a copy of them, and cpeldump.
  bench machine [--runs N]
      Measures the conversion of doubles between machines beside a plain copy.
  bench commands [--runs N] [--files N]
      Measures rrdtool's command lines as kymo and rrdtool carry them out.
      --files N     files that are updated in turn (1000)
  bench collectd [--runs N] [--rounds N]
      Measures the decoding of collectd's datagrams, and `kymo serve` beside collectd with its
      rrdtool plugin; xtask itself must be built with --release.
      --rounds N    lists of each of 1000 names (1000)
  bench serve [--runs N] [--files N]
      Measures `kymo serve` beside rrdcached: updates in batches and one by one, and flushes.
      --files N     databases that are updated in turn (1000)
  bench queries [--clients N] [--rate N] [--seconds N] [--files N] [--ours PROGRAM]
      Measures range queries of N clients (50) at `kymo serve` beside N updates a second (10000) of N databases (500),
      and looks whether an update is missing afterwards.
  bench taking [--samples N] [--ours PROGRAM]
      Measures samples (1000000) that `kymo serve` takes with a journal, of Graphite, InfluxDB and remote write.
  bench tracing [--runs N] [--events N]
      Measures kymo-tracing beside LTTng-UST: an event with three integers, processor time and
      instructions; needs gcc, liblttng-ust-dev and valgrind.
      --events N    events of a run (2000000)
  bench columns [--tool SCRIPT] [--events N] [--runs N] [--python PYTHON]
      Measures Parquet, NumPy, iteration in Python and DuckDB beside babeltrace2 on a trace of N events (10000000).
      --python PYTHON  has a release wheel of crates/kymo-python (target/python/bin/python)
  bench cluster [--tool SCRIPT] [--events N] [--recordings N] [--runs N] [--query PROGRAM]
      Measures a statement over 40 recordings of N events (500000) by clusters of one worker and of two, on processors
      of their own.
      --query PROGRAM  a release build of kymo-query (query/target/release/kymo-query)
  bench rows [--tool SCRIPT] [--events N] [--runs N]
      Measures rows with columns beside babeltrace2 on a trace of N events (10000000).
  bench view [--events N] [--rrds N] [--keep]
      Measures the page of `kymo view` in Chromium on a trace of N events (10000000) on 64 tracks: first paint,
      frames, bytes, memory; needs npm and chromium.
      --rrds N      databases that are listed (2000)
  bench rrd [--runs N] [--files N]
      Measures conversion, dump and restore of databases beside rrdtool.
      --files N     small files to convert (1000)
  api [--bless]
      Compares the public items of each crate with the lists in xtask/api.
      --bless       records the items found
  count [--base REVISION]
      Counts the lines of each crate without its tests, and how many more they are than in a revision.
  dist [--static] [--verify] [--program FILE] [--to DIR]
      Builds what is released, in target/dist: the program with all features, stripped, its debug information,
      an archive, a Debian package, and an RPM if `rpmbuild` is installed. The same commit gives the same bytes.
      --static      only a program that needs no library of the system (needs rustc-web, rust-web-src, musl-tools)
      --verify      builds the commit again, in a clone in another directory, and fails if the bytes differ
      --program FILE  packages this program instead of building one
      --to DIR      writes to DIR
  live-soak [SECONDS] [--rate N] [--ours PROGRAM]
      Shows a session of LTTng live of SECONDS (120) with `kymo print`, which is ended and begun again twice, while the
      relay daemon rotates files: each event must come once. Needs gcc, liblttng-ust-dev, lttng-tools, babeltrace2.
      --rate N      events a second (100000)
      --ours PROGRAM  instead of the kymo that is built now
  make-trace N DIR [--from TRACE] [--streams N]
      Makes a CTF trace of N events in a new directory DIR: a recorded trace of LTTng, repeated with later clocks.
      --from TRACE  what is repeated (examples/lttng-small)
      --streams N   copies of each of its streams (1)
  soak [MINUTES] [--ours PROGRAM]
      Puts `kymo serve` under mixed, hostile load for MINUTES (10): datagrams of all levels of security,
      damaged ones, lines of both protocols, slow readers, times that jump, a full disk (as root).
      --ours PROGRAM  instead of the kymo that is built now
  view-pictures
      Makes the pictures of docs/view.md; needs npm and chromium.
  view-tests
      Tests the page of `kymo view` in Chromium; needs npm and chromium.
  pictures
      Draws the picture of README.md with kymo.
  words
      Checks documents, help and messages: words that xtask/src/words/phrases.txt replaces, long lines, dead links,
      options that the program or the documents do not have.
  fuzz SECONDS [TARGET...] [--seed N]
      Runs the fuzz targets on the corpora in fuzz/corpus, for SECONDS in total.
      --seed N      starts from this seed (a new one each time)
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome {
    let mut args = Args::from_env();
    match args.word().as_deref() {
        Some("conformance") => conformance::run(args),
        Some("elements") => conformance::print_elements(args),
        Some("interop") => interop::run(args),
        Some("bench") => bench::run(args),
        Some("count") => count::run(args),
        Some("dist") => dist::run(args),
        Some("make-trace") => make_trace::run(args),
        Some("soak") => soak::run(args),
        Some("live-soak") => live_soak::run(args),
        Some("fuzz") => fuzz::run(args),
        Some("view-pictures") => view_tests::pictures(args),
        Some("view-tests") => view_tests::run(args),
        Some("words") => words::run(args),
        Some("api") => api::run(args),
        Some("pictures") => pictures::run(args),
        Some("help") | None => {
            print!("{HELP}");
            Ok(())
        }
        Some(other) => Err(format!("no command `{other}`; `cargo xtask help` lists them").into()),
    }
}
