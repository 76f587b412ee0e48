//! Datagrams to values.

use kymo_time::CdTime;

use super::{
    ENCRYPTION, Fault, Guard, HEADER, IV, Keys, LONGEST_MESSAGE, Problem, SIGNATURE, Security, part,
};
use crate::identifier::{LONGEST_NAME, check_name};
use crate::value::{Kind, Value, kind_of_code};
use crate::{Identifier, NameError, Notification, Severity};

/// Signatures and encrypted parts in each other: collectd writes one.
const DEEPEST: usize = 4;

/// What comes out of a datagram.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<'a> {
    /// Values of one name and time.
    Values(ValueList<'a>),
    /// A message.
    Notification(ReceivedNotification<'a>),
    /// Something is wrong.
    Fault(Fault),
}

/// Values of one name and time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueList<'a> {
    /// Their name: [checked](Identifier::check), not escaped.
    pub id: Identifier<'a>,
    /// When they were measured.
    pub time: CdTime,
    /// From one measurement to the next; 0 where the sender leaves it to the receiver.
    pub interval: CdTime,
    /// The values, of which there is one at least.
    pub values: Values<'a>,
    /// How they were protected.
    pub security: Security,
}

/// A message, and how it was protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedNotification<'a> {
    /// The message.
    pub notification: Notification<'a>,
    /// How it was protected.
    pub security: Security,
}

/// Values as they lie in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values<'a> {
    /// The kinds, which were checked.
    kinds: &'a [u8],
    numbers: &'a [[u8; 8]],
}

impl<'a> Values<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there is none; the decoder gives no such list.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Their kinds.
    pub fn kinds(&self) -> impl ExactSizeIterator<Item = Kind> + use<'a> {
        let kind = |code: &u8| kind_of_code(*code).unwrap_or(Kind::Gauge);
        self.kinds.iter().map(kind)
    }

    /// The values.
    pub fn iter(&self) -> impl Iterator<Item = Value> + use<'a> {
        let numbers = self.numbers.iter().copied();
        self.kinds()
            .zip(numbers)
            .map(|(kind, bytes)| Value::from_wire(kind, bytes))
    }
}

/// Reads datagrams.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    /// What is not protected so far is left out.
    pub level: Security,
    /// Accepted users of signatures and encryption. Without keys, signed values are treated as
    /// unprotected ones, and encrypted ones are left out; with keys, what is signed must be
    /// signed right at every level.
    pub keys: Option<Keys>,
}

impl Decoder {
    /// Reads a datagram: `sink` gets what is in it, in order. What comes before damage is kept.
    pub fn decode<G: Guard, S: FnMut(Item<'_>)>(
        &self,
        datagram: &[u8],
        guard: &mut G,
        sink: &mut S,
    ) {
        Section {
            decoder: self,
            security: Security::None,
            base: None,
            depth: 0,
        }
        .decode(datagram, 0, guard, sink);
    }
}

/// Bytes that are protected in one way.
#[derive(Clone, Copy)]
struct Section<'k> {
    decoder: &'k Decoder,
    security: Security,
    /// Where the encrypted part begins that the bytes are from.
    base: Option<usize>,
    depth: usize,
}

/// What parts have said so far.
#[derive(Default)]
struct State<'d> {
    id: Identifier<'d>,
    /// Names that cannot be stored: a bit for each.
    odd_names: u8,
    time: CdTime,
    interval: CdTime,
    severity: u64,
}

impl Section<'_> {
    /// Reads parts from the one at `begin` to the end of the datagram.
    fn decode<G: Guard, S: FnMut(Item<'_>)>(
        &self,
        datagram: &[u8],
        begin: usize,
        guard: &mut G,
        sink: &mut S,
    ) {
        let mut state = State::default();
        let mut at = begin;
        let mut is_reported = false;
        while at < datagram.len() {
            let step = self.part(datagram, at, &mut state, &mut is_reported, guard, sink);
            match step {
                Ok(next) => at = next,
                Err(problem) => return self.report(problem, at, sink),
            }
        }
    }

    fn report<S: FnMut(Item<'_>)>(&self, problem: Problem, at: usize, sink: &mut S) {
        sink(Item::Fault(Fault {
            problem,
            offset: self.base.unwrap_or(at),
        }));
    }

    /// Reads the part at `at`, and returns where the next one begins.
    fn part<'d, G: Guard, S: FnMut(Item<'_>)>(
        &self,
        datagram: &'d [u8],
        at: usize,
        state: &mut State<'d>,
        is_reported: &mut bool,
        guard: &mut G,
        sink: &mut S,
    ) -> Result<usize, Problem> {
        let rest = &datagram[at..];
        let truncated = |needed| Problem::Truncated {
            needed,
            left: rest.len(),
        };
        let [t0, t1, l0, l1, ..] = *rest else {
            return Err(truncated(HEADER));
        };
        let (kind, length) = (
            u16::from_be_bytes([t0, t1]),
            usize::from(u16::from_be_bytes([l0, l1])),
        );
        if length < HEADER {
            return Err(Problem::PartLength(length));
        }
        let whole = rest.get(..length).ok_or_else(|| truncated(length))?;
        let payload = &whole[HEADER..];
        let next = at + length;
        match kind {
            part::ENCRYPTION => {
                self.encrypted(whole, at, guard, sink)?;
                return Ok(next);
            }
            part::SIGNATURE
                if self.decoder.level <= Security::Sign || self.security >= self.decoder.level =>
            {
                self.signed(datagram, at, length, guard, sink)?;
                // It covers the rest.
                return Ok(datagram.len());
            }
            _ if self.security < self.decoder.level => {
                if !std::mem::replace(is_reported, true) {
                    self.report(Problem::Unprotected(self.decoder.level), at, sink);
                }
                return Ok(next);
            }
            part::HOST => state.name(0, "host", payload)?,
            part::PLUGIN => state.name(1, "plugin", payload)?,
            part::PLUGIN_INSTANCE => state.name(2, "plugin instance", payload)?,
            part::TYPE => state.name(3, "type", payload)?,
            part::TYPE_INSTANCE => state.name(4, "type instance", payload)?,
            part::TIME => state.time = seconds(payload)?,
            part::INTERVAL => state.interval = seconds(payload)?,
            part::TIME_HR => state.time = CdTime::from_ticks(number(payload)?),
            part::INTERVAL_HR => state.interval = CdTime::from_ticks(number(payload)?),
            part::SEVERITY => state.severity = number(payload)?,
            part::VALUES => {
                let values = values(payload)?;
                match self.list(state, values, guard) {
                    Ok(list) => sink(Item::Values(list)),
                    Err(problem) => self.report(problem, at, sink),
                }
            }
            part::MESSAGE => {
                let message = text(payload, LONGEST_MESSAGE)?;
                match self.notification(state, message, guard) {
                    Ok(notification) => sink(Item::Notification(notification)),
                    Err(problem) => self.report(problem, at, sink),
                }
            }
            // Parts of later versions.
            _ => {}
        }
        Ok(next)
    }

    fn list<'d, G: Guard>(
        &self,
        state: &State<'d>,
        values: Values<'d>,
        guard: &G,
    ) -> Result<ValueList<'d>, Problem> {
        let id = state.id;
        let empty = id.host.is_empty() || id.plugin.is_empty() || id.type_name.is_empty();
        if empty || state.odd_names != 0 {
            id.check().map_err(Problem::Name)?;
        }
        if state.time == CdTime::ZERO {
            return Err(Problem::NoTime);
        }
        if values.is_empty() {
            return Err(Problem::NoValues);
        }
        if self.security > Security::None && !guard.is_fresh(state.time) {
            return Err(Problem::Stale);
        }
        Ok(ValueList {
            id,
            time: state.time,
            interval: state.interval,
            values,
            security: self.security,
        })
    }

    fn notification<'d, G: Guard>(
        &self,
        state: &State<'d>,
        message: &'d str,
        guard: &G,
    ) -> Result<ReceivedNotification<'d>, Problem> {
        if state.time == CdTime::ZERO {
            return Err(Problem::NoTime);
        }
        let severity =
            Severity::from_code(state.severity).ok_or(Problem::Severity(state.severity))?;
        if message.is_empty() {
            return Err(Problem::NoMessage);
        }
        if let Some((what, _)) = state
            .id
            .names()
            .find(|(what, name)| check_name(what, name).is_err())
        {
            return Err(Problem::Name(NameError::Control(what)));
        }
        if self.security > Security::None && !guard.is_fresh(state.time) {
            return Err(Problem::Stale);
        }
        Ok(ReceivedNotification {
            notification: Notification {
                severity,
                time: state.time,
                id: state.id,
                message,
            },
            security: self.security,
        })
    }

    /// What is in a signature or an encrypted part of this section.
    fn inner(&self, security: Security, base: Option<usize>) -> Result<Self, Problem> {
        if self.depth >= DEEPEST {
            return Err(Problem::Nesting);
        }
        Ok(Self {
            security: self.security.max(security),
            base,
            depth: self.depth + 1,
            ..*self
        })
    }

    /// Reads all that follows a signature, of `length` bytes.
    fn signed<G: Guard, S: FnMut(Item<'_>)>(
        &self,
        datagram: &[u8],
        at: usize,
        length: usize,
        guard: &mut G,
        sink: &mut S,
    ) -> Result<(), Problem> {
        if length <= SIGNATURE {
            return Err(Problem::SignatureLength(length));
        }
        let signature = &datagram[at + HEADER..at + SIGNATURE];
        let user = &datagram[at + SIGNATURE..at + length];
        let Some(keys) = &self.decoder.keys else {
            if self.decoder.level > self.security {
                return Err(Problem::NoKeys);
            }
            self.report(Problem::Unverified, at, sink);
            self.inner(Security::None, self.base)?
                .decode(datagram, at + length, guard, sink);
            return Ok(());
        };
        let name = || String::from_utf8_lossy(user).into_owned();
        let key = keys.get(user).ok_or_else(|| Problem::UnknownUser(name()))?;
        let section = self.inner(Security::Sign, self.base)?;
        if !key.verify(&datagram[at + SIGNATURE..], signature) {
            return Err(Problem::WrongSignature(name()));
        }
        let mark = signature.first_chunk().copied().unwrap_or_default();
        if !guard.admits(mark) {
            return Err(Problem::Replayed);
        }
        section.decode(datagram, at + length, guard, sink);
        Ok(())
    }

    /// Reads what is in an encrypted part.
    fn encrypted<G: Guard, S: FnMut(Item<'_>)>(
        &self,
        whole: &[u8],
        at: usize,
        guard: &mut G,
        sink: &mut S,
    ) -> Result<(), Problem> {
        let wrong = || Problem::EncryptionLength(whole.len());
        let (length, rest) = whole[HEADER..].split_first_chunk().ok_or_else(wrong)?;
        let length = usize::from(u16::from_be_bytes(*length));
        if length == 0 || whole.len() <= ENCRYPTION + length {
            return Err(wrong());
        }
        let (user, rest) = rest.split_at_checked(length).ok_or_else(wrong)?;
        let (iv, hidden) = rest.split_first_chunk::<IV>().ok_or_else(wrong)?;
        let name = || String::from_utf8_lossy(user).into_owned();
        let keys = self.decoder.keys.as_ref().ok_or(Problem::NoKeys)?;
        let key = keys.get(user).ok_or_else(|| Problem::UnknownUser(name()))?;
        let section = self.inner(Security::Encrypt, Some(self.base.unwrap_or(at)))?;
        let payload = key
            .decrypt(iv, hidden)
            .ok_or_else(|| Problem::WrongChecksum(name()))?;
        if !guard.admits(*iv) {
            return Err(Problem::Replayed);
        }
        section.decode(&payload, super::CHECKSUM, guard, sink);
        Ok(())
    }
}

impl<'d> State<'d> {
    /// One of the five names.
    fn name(&mut self, number: u8, what: &'static str, payload: &'d [u8]) -> Result<(), Problem> {
        let name = text(payload, LONGEST_NAME)?;
        let is_plain = |byte: u8| byte >= b' ' && byte != 0x7f && byte < 0x80 && byte != b'.';
        // Most names are plain; whether others can be stored depends on where they stand.
        let is_odd = !name.bytes().all(is_plain)
            && (check_name(what, name).is_err() || name.starts_with(['.', '/']));
        self.odd_names = self.odd_names & !(1 << number) | u8::from(is_odd) << number;
        let place = match number {
            0 => &mut self.id.host,
            1 => &mut self.id.plugin,
            2 => &mut self.id.plugin_instance,
            3 => &mut self.id.type_name,
            _ => &mut self.id.type_instance,
        };
        *place = name;
        Ok(())
    }
}

/// A text of at most `longest` bytes, which ends in a NUL. As in collectd the first NUL ends it:
/// some senders have buffers of a fixed size.
fn text(payload: &[u8], longest: usize) -> Result<&str, Problem> {
    let (last, text) = payload.split_last().ok_or(Problem::EmptyText)?;
    if *last != 0 {
        return Err(Problem::NoNul);
    }
    if text.len() > longest {
        return Err(Problem::TextLength(text.len()));
    }
    let text = match text.iter().position(|byte| *byte == 0) {
        Some(end) => &text[..end],
        None => text,
    };
    std::str::from_utf8(text).map_err(|_| Problem::NotUtf8)
}

fn number(payload: &[u8]) -> Result<u64, Problem> {
    let bytes = payload
        .try_into()
        .map_err(|_| Problem::NumberLength(payload.len() + HEADER))?;
    Ok(u64::from_be_bytes(bytes))
}

fn seconds(payload: &[u8]) -> Result<CdTime, Problem> {
    let seconds = number(payload)?;
    i64::try_from(seconds)
        .ok()
        .and_then(|seconds| CdTime::from_seconds(seconds).ok())
        .ok_or(Problem::TimeRange(seconds))
}

fn values(payload: &[u8]) -> Result<Values<'_>, Problem> {
    let length = payload.len() + HEADER;
    let (count, rest) = payload
        .split_first_chunk()
        .ok_or(Problem::ValuesLength { count: 0, length })?;
    let count = usize::from(u16::from_be_bytes(*count));
    let error = Problem::ValuesLength { count, length };
    let (kinds, numbers) = rest.split_at_checked(count).ok_or(error.clone())?;
    let (numbers, beyond) = numbers.as_chunks::<8>();
    if numbers.len() != count || !beyond.is_empty() {
        return Err(error);
    }
    match kinds.iter().find(|code| kind_of_code(**code).is_none()) {
        Some(code) => Err(Problem::ValueKind(*code)),
        None => Ok(Values { kinds, numbers }),
    }
}
