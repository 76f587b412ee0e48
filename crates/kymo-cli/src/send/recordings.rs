//! Samples of recordings, on their way to a server.

use std::io;
use std::ops::ControlFlow;

use kymo::pipeline::{self, Output};
use kymo::send::{Entry, Lists, entries};
use kymo::show::WallOptions;
use kymo_collectd::{Identifier, Notification};
use kymo_model::FaultReport;

use super::sender::Sender;
use crate::args::send::Send;
use crate::open::{Wanted, inputs, tell_opening_faults};
use crate::terminal::{Failure, Outcome, Terminal};

/// Sends all samples in the order of time.
pub(super) fn send(
    args: &Send,
    sender: &mut Sender<'_>,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let inputs = inputs(&args.input, terminal)?;
    let gmt = args.input.clock_gmt;
    let wanted = Wanted::new(&args.selection, gmt);
    let filter = wanted.filter(&inputs.recordings, terminal)?;
    wanted.warn_of_idle_patterns(&inputs.recordings, terminal);
    let outcome = tell_opening_faults(&inputs, terminal);
    let wall = WallOptions {
        date: false,
        gmt,
        seconds: false,
    };
    let all = !args.selection.event.is_empty();
    let lists = Lists::new(&inputs.recordings, all, args.id.as_deref(), wall);
    let mut lists = lists.map_err(|error| Failure::Usage(format!("error: {error}")))?;
    let mut output = Sending { sender, terminal };
    let options = pipeline::Options::default();
    let summary = pipeline::run(
        &inputs.recordings,
        &&filter,
        &options,
        &mut lists,
        &mut output,
    )?;
    Ok(match summary.faults {
        0 => outcome,
        _ => Outcome::Damage,
    })
}

/// Entries to the server, the rest to standard error.
struct Sending<'a, 't> {
    sender: &'a mut Sender<'t>,
    terminal: &'a Terminal,
}

impl Output for Sending<'_, '_> {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        for entry in entries(text) {
            let (Entry::Values { id: name, .. } | Entry::Notification { id: name, .. }) = &entry;
            let id = match Identifier::parse(name) {
                Ok(id) => id,
                Err(error) => {
                    self.sender.refuse(name, error)?;
                    continue;
                }
            };
            match &entry {
                Entry::Values {
                    time,
                    interval,
                    values,
                    ..
                } => self.sender.list(name, &id, *time, *interval, values)?,
                Entry::Notification {
                    severity,
                    time,
                    message,
                    ..
                } => {
                    let notification = Notification {
                        severity: *severity,
                        time: *time,
                        id,
                        message,
                    };
                    self.sender.message(name, &notification)?;
                }
            }
        }
        Ok(())
    }

    fn warning(&mut self, lines: &[u8]) -> io::Result<()> {
        self.terminal.tell(lines);
        Ok(())
    }

    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        self.terminal.fault(fault);
        ControlFlow::Continue(())
    }
}
