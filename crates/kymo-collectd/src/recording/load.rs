//! Files to lists and messages in the order of time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_model::{FaultCode, FaultReport};

use super::{Content, List, MESSAGES, Message, Names, VALUES};
use crate::Identifier;
use crate::capture::{CaptureFault, CaptureProblem, Datagram, Form, Position, datagrams_from};
use crate::network::{Decoder, Item, Keys, PORT, Problem, Security};

/// How many faults are reported one by one.
const MOST_FAULTS: usize = 1000;
/// The largest datagram of UDP.
const LARGEST: usize = 65_507;

/// What was read from a file.
pub(super) struct Loaded {
    pub(super) content: Content,
    pub(super) datagrams: u64,
    pub(super) faults: Vec<FaultReport>,
    pub(super) notes: Vec<String>,
}

/// Whether a file may be a datagram: its first part is of a known type and as long as those are.
pub(super) fn looks_like_datagram(bytes: &[u8]) -> bool {
    let Some(&[t0, t1, l0, l1]) = bytes.first_chunk() else {
        return false;
    };
    let length = usize::from(u16::from_be_bytes([l0, l1]));
    let payload = bytes.get(4..length);
    bytes.len() <= LARGEST
        && match u16::from_be_bytes([t0, t1]) {
            0 | 2..=5 | 0x100 => payload.is_some_and(|text| text.ends_with(&[0])),
            1 | 7..=9 | 0x101 => length == 12 && payload.is_some(),
            0x200 => length > 36 && payload.is_some(),
            0x210 => length > 42 && payload.is_some(),
            _ => false,
        }
}

/// Reads what a file holds from a position on. What is known comes first: the texts and values that it
/// has are used, and new lists and messages are all that is in the result. `first` is the number of the next
/// datagram.
pub(super) fn load(
    path: &Path,
    bytes: &[u8],
    keys: Option<&Keys>,
    known: Content,
    first: u64,
    position: &mut Position,
) -> Loaded {
    let texts = known.texts.iter().zip(0..);
    let mut loader = Loader {
        decoder: Decoder {
            level: Security::None,
            keys: keys.cloned(),
        },
        numbers: texts
            .map(|(text, number)| (Arc::clone(text), number))
            .collect(),
        content: known,
        file: Arc::new(path.to_path_buf()),
        first,
        datagrams: 0,
        faults: Vec::new(),
        more_faults: 0,
        without_keys: None,
        unverified: 0,
    };
    match Form::detect(bytes) {
        Some(form) => datagrams_from(bytes, form, PORT, position, &mut |found| match found {
            Ok(datagram) => loader.datagram(datagram),
            Err(fault) => loader.capture_fault(fault),
        }),
        None => loader.datagram(Datagram {
            offset: 0,
            payload: bytes,
        }),
    }
    loader.finish()
}

struct Loader {
    decoder: Decoder,
    content: Content,
    /// Positions of the texts.
    numbers: HashMap<Arc<str>, u32>,
    file: Arc<PathBuf>,
    /// Datagrams that were read before.
    first: u64,
    datagrams: u64,
    faults: Vec<FaultReport>,
    /// The number of faults that are not reported.
    more_faults: u64,
    /// Where the first part is that only keys can open, and how many there are.
    without_keys: Option<(FaultReport, u64)>,
    /// Signatures that could not be verified.
    unverified: u64,
}

impl Loader {
    fn datagram(&mut self, datagram: Datagram<'_>) {
        let number = self.datagrams;
        self.datagrams += 1;
        // A file that has more of them does not fit into any memory.
        let track = u32::try_from(self.first + number).unwrap_or(u32::MAX);
        // The decoder lends its items while the loader takes them.
        let decoder = std::mem::take(&mut self.decoder);
        decoder.decode(datagram.payload, &mut (), &mut |item| match item {
            Item::Values(list) => {
                let first = self.content.values.len();
                self.content.values.extend(list.values.iter());
                let list = List {
                    time: list.time,
                    interval: list.interval,
                    names: self.names(&list.id),
                    security: list.security,
                    datagram: track,
                    count: list.values.len() as u16,
                    first,
                    position: 0,
                };
                self.content.lists.push(list);
            }
            Item::Notification(received) => {
                let notification = received.notification;
                let message = Message {
                    time: notification.time,
                    severity: notification.severity,
                    names: self.names(&notification.id),
                    text: self.text(notification.message),
                    security: received.security,
                    datagram: track,
                    position: 0,
                };
                self.content.messages.push(message);
            }
            Item::Fault(fault) => {
                let report = FaultReport {
                    code: match fault.problem {
                        Problem::Truncated { .. } => FaultCode::Truncated,
                        _ => FaultCode::Datagram,
                    },
                    file: Arc::clone(&self.file),
                    offset: (datagram.offset + fault.offset) as u64,
                    packet: Some(number),
                    event: None,
                    field: None,
                    message: format!("{}: {}", fault.problem.as_str(), fault.problem),
                };
                match fault.problem {
                    Problem::Unverified => self.unverified += 1,
                    Problem::NoKeys => {
                        self.without_keys.get_or_insert((report, 0)).1 += 1;
                    }
                    _ => self.fault(report),
                }
            }
        });
        self.decoder = decoder;
    }

    fn capture_fault(&mut self, fault: CaptureFault) {
        let report = FaultReport::new(
            match fault.problem {
                CaptureProblem::Truncated => FaultCode::Truncated,
                _ => FaultCode::Datagram,
            },
            Arc::clone(&self.file),
            fault.offset as u64,
            fault.problem.to_string(),
        );
        self.fault(report);
    }

    fn fault(&mut self, report: FaultReport) {
        match self.faults.len() < MOST_FAULTS {
            true => self.faults.push(report),
            false => self.more_faults += 1,
        }
    }

    fn text(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let (text, number) = (Arc::<str>::from(text), self.content.texts.len() as u32);
        self.content.texts.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        number
    }

    fn names(&mut self, id: &Identifier<'_>) -> Names {
        let mut names = Names::default();
        for (number, (_, name)) in names.iter_mut().zip(id.names()) {
            *number = self.text(name);
        }
        names
    }

    fn finish(mut self) -> Loaded {
        let Content {
            lists,
            messages,
            texts,
            sizes,
            ..
        } = &mut self.content;
        // Of the same time, in the order in which they came.
        lists.sort_by_key(|list| list.time);
        messages.sort_by_key(|message| message.time);
        let mut position = sizes[VALUES];
        for list in lists {
            list.position = position;
            position += 6 + 9 * u64::from(list.count);
        }
        sizes[VALUES] = position;
        position = sizes[MESSAGES];
        for message in messages {
            message.position = position;
            let text = texts.get(message.text as usize);
            position += 5 + text.map_or(0, |text| text.len() as u64);
        }
        sizes[MESSAGES] = position;
        if let Some((mut report, count)) = self.without_keys {
            report.message = format!(
                "{count} encrypted {}, and there are no keys (`--auth-file`)",
                if count == 1 { "part" } else { "parts" }
            );
            self.faults.push(report);
        }
        if self.more_faults > 0
            && let Some(last) = self.faults.last().cloned()
        {
            let message = format!("{} more faults are not listed", self.more_faults);
            self.faults.push(FaultReport { message, ..last });
        }
        let mut notes = Vec::new();
        if self.unverified > 0 {
            notes.push(format!(
                "{} signatures were not verified, since there are no keys (`--auth-file`)",
                self.unverified
            ));
        }
        Loaded {
            content: self.content,
            datagrams: self.datagrams,
            faults: self.faults,
            notes,
        }
    }
}
