//! SQL of the page: `kymo-query` answers it, with the recordings and clocks of the command line.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use kymo_view::{Sql, SqlRows};

use crate::args::view::View;
use crate::query;
use crate::view::words::Words;

/// Rows of an answer at most, and their bytes.
const MOST_ROWS: usize = 1000;
const MOST_BYTES: usize = 4 << 20;

/// Bytes of messages that are shown.
const MOST_MESSAGES: u64 = 16 << 10;

/// A query may take so long.
const TIME: Duration = Duration::from_secs(30);

/// Memory for sorting, joining and grouping: the viewer and the browser need some, too.
const MEMORY: &str = "--memory=512M";

/// Interval of the check whether the receiver of the rows is gone.
const LOOK_TIME: Duration = Duration::from_millis(50);

/// Answers the SQL of the page, one statement after the other.
pub(super) fn sql(args: &View) -> Sql {
    let Words { input, paths, .. } = Words::new();
    let mut words = vec![format!("--threads={}", args.threads.count()).into()];
    words.extend(input);
    words.push("--".into());
    words.extend(paths);
    let running = Mutex::new(());
    Sql::new(move |text, stop| {
        let Ok(_running) = running.try_lock() else {
            return Err("another query is running: try again when it is done".into());
        };
        answer(&words, text, stop)
    })
}

/// Runs the program for one statement.
fn answer(words: &[OsString], text: &str, stop: &AtomicBool) -> Result<SqlRows, String> {
    let program = query::program();
    let mut command = Command::new(&program);
    command
        .args(["--file=-", "--format=json", "--read-only", MEMORY])
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => query::missing(),
        _ => format!(
            "cannot run `{}`: {}",
            program.display(),
            kymo_io::reason(&error)
        ),
    })?;
    let mut running = Running(child);
    if let Some(mut input) = running.0.stdin.take() {
        // Who does not read it says why.
        let _ = input.write_all(text.as_bytes());
    }
    let (sender, lines) = mpsc::sync_channel(256);
    let output = running.0.stdout.take();
    let messages = running.0.stderr.take();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let lines = output
                .into_iter()
                .flat_map(|output| BufReader::new(output).lines());
            for line in lines.map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let messages = scope.spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut output) = messages {
                // What was read is shown. The rest is read, too: else the program would wait.
                let _ = (&mut output).take(MOST_MESSAGES).read_to_end(&mut bytes);
                let _ = std::io::copy(&mut output, &mut std::io::sink());
            }
            String::from_utf8_lossy(&bytes).trim().to_string()
        });
        let mut rows = SqlRows::default();
        let cut = rows_of(&lines, &mut rows.lines, stop);
        drop(lines);
        let is_good = match cut {
            Some(note) => {
                rows.notes.push(note);
                running.end();
                true
            }
            None => running.0.wait().is_ok_and(|status| status.success()),
        };
        let messages = messages.join().unwrap_or_default();
        match is_good || !rows.lines.is_empty() {
            true => {
                rows.notes
                    .extend(Some(messages).filter(|text| !text.is_empty()));
                Ok(rows)
            }
            false if messages.is_empty() => Err("the query failed".into()),
            false => Err(messages),
        }
    })
}

/// Collects rows until there are no more; otherwise returns a note with the reason.
fn rows_of(
    lines: &mpsc::Receiver<String>,
    rows: &mut Vec<String>,
    stop: &AtomicBool,
) -> Option<String> {
    let end = Instant::now() + TIME;
    let mut bytes = 0;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Some("stopped".into());
        }
        if Instant::now() >= end {
            let seconds = TIME.as_secs();
            return Some(format!(
                "stopped after {seconds} s: `kymo query` has no such limit"
            ));
        }
        match lines.recv_timeout(LOOK_TIME) {
            Ok(line) => {
                bytes += line.len();
                if rows.len() >= MOST_ROWS || bytes > MOST_BYTES {
                    return Some(format!("only the first {} rows are shown", rows.len()));
                }
                rows.push(line);
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// A program that ends with this.
struct Running(Child);

impl Running {
    fn end(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
