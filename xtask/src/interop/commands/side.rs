//! One of two programs that are compared: where it works, and what it answers.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::process::command;

/// Longer than any command takes, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(30);

/// The user that can write only where it is allowed to: `nobody`.
const NOBODY: u32 = 65534;

/// What a program said to a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) end: End,
    /// Data.
    pub(super) out: String,
    /// The error, without the `ERROR: ` in front.
    pub(super) error: String,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With this exit code; in a pipe, 0 for `OK` and 1 for an error.
    Code(i32),
    /// By a signal, or it did not end.
    Broken,
}

impl Answer {
    fn broken(why: impl Into<String>) -> Self {
        Self {
            end: End::Broken,
            out: String::new(),
            error: why.into(),
        }
    }
}

/// A program and the folder it works in.
pub(super) struct Side {
    program: PathBuf,
    folder: PathBuf,
    zone: String,
    pipe: Option<Pipe>,
}

impl Side {
    pub(super) fn new(program: &Path, folder: PathBuf) -> Self {
        Self {
            program: program.to_owned(),
            folder,
            zone: "UTC".to_owned(),
            pipe: None,
        }
    }

    /// Where the program works.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Local time from now on.
    pub(super) fn set_zone(&mut self, zone: &str) {
        if self.zone != zone {
            zone.clone_into(&mut self.zone);
            self.pipe = None;
        }
    }

    /// The answer to a command line in a pipe that takes many.
    pub(super) fn piped(&mut self, line: &str) -> Outcome<Answer> {
        let pipe = match self.pipe.take() {
            Some(pipe) => pipe,
            None => Pipe::start(self.command(false).arg("-"), &self.folder)?,
        };
        let (answer, pipe) = pipe.ask(line)?;
        self.pipe = pipe;
        Ok(answer)
    }

    /// The answer of a process of its own.
    pub(super) fn process(&self, words: &[String], nobody: bool) -> Outcome<Answer> {
        self.finish(self.command(nobody).args(words), "")
    }

    /// The answer of a process to many lines; what differs from run to run is left out of it.
    pub(super) fn script(&self, lines: &str) -> Outcome<Answer> {
        let mut answer = self.finish(self.command(false).arg("-"), lines)?;
        let folder = self.folder.to_string_lossy();
        let mut lines: Vec<String> = Vec::new();
        let mut usage = false;
        for line in answer.out.lines() {
            usage |= line.starts_with("RRDtool 1.") || line.starts_with("kymo ");
            if line.starts_with("OK u:") {
                lines.push("OK".to_owned());
                usage = false;
            } else if !usage {
                lines.push(line.replace(&*folder, "FOLDER"));
            }
        }
        // Folders are listed in any order.
        for listed in lines.chunk_by_mut(|a, b| is_entry(a) && is_entry(b)) {
            listed.sort();
        }
        answer.out = lines.join("\n");
        Ok(answer)
    }

    fn command(&self, nobody: bool) -> Command {
        let mut command = command(&self.program);
        command
            .current_dir(&self.folder)
            .env("TZ", &self.zone)
            .env("HOME", &self.folder)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("RRDCACHED_ADDRESS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if nobody && nix::unistd::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn finish(&self, command: &mut Command, input: &str) -> Outcome<Answer> {
        let mut child = command
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that has ended does not need the rest.
            let _ = stdin.write_all(input.as_bytes());
        }
        let id = child.id();
        let (send, receive) = channel();
        std::thread::spawn(move || send.send(child.wait_with_output()));
        let output = match receive.recv_timeout(PATIENCE) {
            Ok(output) => output?,
            Err(_) => {
                kill(id);
                return Ok(Answer::broken("it did not end"));
            }
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let end = match (output.status.code(), output.status.signal()) {
            (Some(code), _) => End::Code(code),
            (None, signal) => return Ok(Answer::broken(format!("ended by signal {signal:?}"))),
        };
        let error = text(&output.stderr);
        Ok(Answer {
            end,
            out: text(&output.stdout),
            error: error
                .strip_prefix("ERROR: ")
                .unwrap_or(&error)
                .trim_end()
                .to_owned(),
        })
    }

    /// The files that there are, with what is in them.
    pub(super) fn files(&self) -> Outcome<BTreeMap<String, Vec<u8>>> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                let name = entry.file_name().to_string_lossy().into_owned();
                files.insert(name, fs::read(entry.path())?);
            }
        }
        Ok(files)
    }

    /// Removes all files, and what else there is.
    pub(super) fn clear(&self) -> Outcome {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => {
                    super::allow(&entry.path(), 0o755)?;
                    fs::remove_dir_all(entry.path())?;
                }
                false => fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }
}

/// Whether a line is one of those that `ls` prints.
fn is_entry(line: &str) -> bool {
    line.starts_with("- ") || line.starts_with("d ")
}

/// A program that takes command lines from a pipe.
struct Pipe {
    child: Child,
    input: ChildStdin,
    /// The lines that it prints.
    lines: Receiver<Vec<u8>>,
    /// The folder it works in, which it prints after each command, so that it is known where
    /// answers end.
    folder: String,
}

impl Pipe {
    fn start(command: &mut Command, folder: &Path) -> Outcome<Self> {
        let mut child = command.stderr(Stdio::null()).spawn()?;
        let input = child.stdin.take().ok_or("no pipe")?;
        let mut output = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while output
                .read_until(b'\n', &mut line)
                .is_ok_and(|read| read > 0)
            {
                if send.send(std::mem::take(&mut line)).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            child,
            input,
            lines,
            folder: folder.to_string_lossy().into_owned(),
        })
    }

    /// The answer, and the pipe unless the program has ended over it.
    fn ask(mut self, line: &str) -> Outcome<(Answer, Option<Self>)> {
        // A program that has ended is noticed when nothing comes back.
        let _ = self.input.write_all(format!("{line}\npwd\n").as_bytes());
        let mut reported: Vec<String> = Vec::new();
        let begin = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(begin.elapsed());
            match self.lines.recv_timeout(left) {
                Ok(line) => reported.push(String::from_utf8_lossy(&line).into_owned()),
                Err(RecvTimeoutError::Timeout) => {
                    let so_far = reported.concat();
                    return Ok((Answer::broken(format!("no answer but {so_far:?}")), None));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait()?;
                    return Ok((Answer::broken(format!("the pipe ended: {status}")), None));
                }
            }
            if let [answer @ .., place, done] = &reported[..]
                && place.trim_end() == self.folder
                && done.starts_with("OK u:")
            {
                let answer = Self::answer(answer);
                return Ok((answer, Some(self)));
            }
        }
    }

    fn answer(lines: &[String]) -> Answer {
        let ends = |line: &String| line.starts_with("OK u:") || line.starts_with("ERROR: ");
        let Some(end) = lines.iter().position(ends) else {
            return Answer {
                // Neither good nor bad was said.
                end: End::Code(-1),
                out: lines.concat(),
                error: String::new(),
            };
        };
        let error = lines[end..].concat();
        let error = error.strip_prefix("ERROR: ").unwrap_or_default();
        Answer {
            end: End::Code(i32::from(lines[end].starts_with("ERROR: "))),
            out: lines[..end].concat(),
            error: error.trim_end().to_owned(),
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kill(id: u32) {
    let id = nix::unistd::Pid::from_raw(i32::try_from(id).unwrap_or(i32::MAX));
    let _ = nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGKILL);
}
