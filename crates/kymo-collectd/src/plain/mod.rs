//! The protocol of text lines that collectd's unixsock and exec plugins speak.
//!
//! A command is a line, and has exactly one [`Reply`]. [`Lines`] cuts what arrives into lines,
//! [`parse`] makes a [`Command`] of one, or the reply that says what is wrong with it.
//! [`put_values`] and [`put_notification`] write commands, [`Reply::parse`] reads what comes back.
//!
//! `docs/formats/collectd-plain.md` describes where replies differ from collectd's, and why.

mod fields;
mod lines;
mod parse;
mod reply;
mod write;

pub use lines::{LineError, Lines};
pub use parse::{Context, parse};
pub use reply::Reply;
pub use write::{put_notification, put_values};

use kymo_time::CdTime;

use crate::{Identifier, Severity, Value};

/// A command.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// What is the value of this name?
    GetValue {
        /// The name, which can be split.
        id: String,
    },
    /// Between which bounds should the values of this name be?
    GetThreshold {
        /// The name, which can be split.
        id: String,
    },
    /// What names are there?
    ListValues,
    /// Here are values.
    PutValues(PutValues),
    /// Here is a message.
    PutNotification(PutNotification),
    /// Write what is not written yet.
    Flush(Flush),
}

/// Values of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct PutValues {
    /// The name: it can be kept, but for its host, which may be empty and is the server's then.
    pub id: String,
    /// The lists, of which there is one at least.
    pub lists: Vec<PutList>,
}

/// Values of one time.
#[derive(Clone, Debug, PartialEq)]
pub struct PutList {
    /// When; `None` is now.
    pub time: Option<CdTime>,
    /// The time from one list to the next, if it is given; never 0.
    pub interval: Option<CdTime>,
    /// As many values as the type has.
    pub values: Vec<Value>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutNotification {
    /// How bad it is.
    pub severity: Severity,
    /// When.
    pub time: CdTime,
    /// What people read; not empty.
    pub message: String,
    /// Host, plugin, plugin instance, type and type instance; each may be empty.
    pub names: [String; 5],
    /// More that is known, by name.
    pub meta: Vec<(String, String)>,
}

impl PutNotification {
    /// What it is about.
    pub fn id(&self) -> Identifier<'_> {
        let [host, plugin, plugin_instance, type_name, type_instance] = &self.names;
        Identifier {
            host,
            plugin,
            plugin_instance,
            type_name,
            type_instance,
        }
    }
}

/// What is to be written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flush {
    /// Only what is older than this.
    pub timeout: Option<CdTime>,
    /// The plugins whose values are written; all if empty.
    pub plugins: Vec<String>,
    /// The names whose values are written; all if empty.
    pub ids: Vec<String>,
}
