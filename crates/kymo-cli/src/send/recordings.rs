//! Samples of recordings, on their way to a server.

use std::io;
use std::ops::ControlFlow;

use kymo::pipeline::{self, Output};
use kymo::send::{Lists, Receiver, SendPlan};
use kymo::show::WallOptions;
use kymo_collectd::{Identifier, Notification, Severity, Value};
use kymo_model::FaultReport;
use kymo_time::CdTime;

use super::sender::Sender;
use crate::args::send::Send;
use crate::open::{Wanted, inputs, report_opening_faults};
use crate::terminal::{Failure, Outcome, Terminal};

/// Sends all samples in the order of time.
pub(super) fn send(
    args: &Send,
    sender: &mut Sender<'_>,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let inputs = inputs(&args.input, false, terminal)?;
    let gmt = inputs.gmt;
    let wanted = Wanted::new(&args.selection, gmt);
    let filter = wanted.filter(&inputs.recordings, terminal)?;
    wanted.warn(&inputs, &filter, terminal);
    let outcome = report_opening_faults(&inputs, terminal);
    let wall = WallOptions {
        date: false,
        gmt,
        seconds: false,
    };
    let all = !args.selection.event.is_empty();
    let plan = SendPlan::new(&inputs.recordings, all, args.id.as_deref());
    let plan = plan.map_err(|error| Failure::Usage(format!("error: {error}")))?;
    let mut lists = Lists::new(&plan, Sending { sender }, wall);
    let options = pipeline::Options::default();
    let summary = pipeline::run(
        &inputs.recordings,
        &filter,
        &options,
        &mut lists,
        &mut Warnings { terminal },
    )?;
    lists.finish()?;
    Ok(match summary.faults {
        0 => outcome,
        _ => Outcome::Damage,
    })
}

/// Hands lists and messages to the server.
struct Sending<'a, 't> {
    sender: &'a mut Sender<'t>,
}

impl Receiver for Sending<'_, '_> {
    fn list(
        &mut self,
        name: &str,
        time: CdTime,
        interval: CdTime,
        values: &[Value],
    ) -> io::Result<()> {
        match Identifier::parse(name) {
            Ok(id) => self.sender.list(name, &id, time, interval, values),
            Err(error) => self.sender.refuse(name, error),
        }
    }

    fn message(
        &mut self,
        name: &str,
        time: CdTime,
        severity: Severity,
        message: &str,
    ) -> io::Result<()> {
        let id = match Identifier::parse(name) {
            Ok(id) => id,
            Err(error) => return self.sender.refuse(name, error),
        };
        let notification = Notification {
            severity,
            time,
            id,
            message,
        };
        self.sender.message(name, &notification)
    }
}

/// Writes warnings to standard error; there is no text output.
struct Warnings<'a> {
    terminal: &'a Terminal,
}

impl Output for Warnings<'_> {
    fn warning(&mut self, lines: &[u8]) -> io::Result<()> {
        self.terminal.losses(lines);
        Ok(())
    }

    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        self.terminal.fault(fault);
        ControlFlow::Continue(())
    }
}
