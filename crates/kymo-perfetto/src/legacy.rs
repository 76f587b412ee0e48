//! Trace events by their phases: what Chrome's JSON has, and Perfetto's legacy events keep.

use std::sync::Arc;

use kymo_model::EntryKind;

use crate::builder::{Args, Builder, Row, Stop};
use crate::classes::Kind;
use crate::row::Value;
use crate::tracks::{Id, Place, name_of};

/// A number or text that joins events.
#[derive(Clone, Debug)]
pub(crate) struct JoinId {
    pub(crate) text: String,
    /// Whether it means something within its process only.
    pub(crate) is_local: bool,
}

/// A trace event.
#[derive(Clone, Debug)]
pub(crate) struct PhaseEvent<'a> {
    pub(crate) phase: u8,
    pub(crate) time: Option<i64>,
    pub(crate) duration: Option<u64>,
    /// Where it is: mostly a thread.
    pub(crate) place: Place,
    pub(crate) process: Option<Id>,
    pub(crate) name: &'a [u8],
    pub(crate) category: &'a [u8],
    pub(crate) id: Option<JoinId>,
    pub(crate) scope: &'a [u8],
    /// Of an instant, `g`, `p` or `t`.
    pub(crate) instant_scope: u8,
    pub(crate) bind_id: Option<u64>,
    pub(crate) flow_in: bool,
    pub(crate) flow_out: bool,
}

impl PhaseEvent<'_> {
    /// The track of asynchronous events.
    fn join_place(&self) -> Place {
        let scope = match self.scope {
            b"" => self.category,
            scope => scope,
        };
        let id = self.id.as_ref();
        let text = id.map_or("", |id| &id.text);
        let name = format!("{} {text}", name_of(scope));
        let process = self
            .process
            .clone()
            .filter(|_| id.is_some_and(|id| id.is_local));
        let name = name_of(name.trim().as_bytes());
        Place::Named(process, name, EntryKind::Event)
    }

    fn process_place(&self) -> Place {
        match &self.process {
            Some(process) => Place::Process(process.clone()),
            None => Place::Global,
        }
    }

    /// The number of a flow that phases `s`, `t` and `f` make: flows of other names and categories
    /// are others.
    fn flow_id(&self) -> u64 {
        let id = self.id.as_ref().map_or("", |id| &id.text);
        let local = self.process.as_ref().filter(|_| {
            let id = self.id.as_ref();
            id.is_some_and(|id| id.is_local)
        });
        let local = local.map_or(String::new(), |process| format!("{process:?}"));
        let parts = [
            self.category,
            self.name,
            self.scope,
            id.as_bytes(),
            local.as_bytes(),
        ];
        // FNV-1a, with a byte between the parts that no text has.
        parts.iter().fold(0xcbf2_9ce4_8422_2325, |hash, part| {
            let bytes = part.iter().chain(&[0xff]);
            bytes.fold(hash, |hash, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            })
        })
    }

    /// Adds the event, unless its phase has none: then it is counted.
    pub(crate) fn emit(&self, builder: &mut Builder, args: &mut Args) -> Result<(), Stop> {
        let kind = match self.phase {
            b'B' | b'b' | b'S' => Kind::Begin,
            b'E' | b'e' | b'F' => Kind::End,
            b'X' => Kind::Slice,
            b's' => Kind::FlowBegin,
            b't' => Kind::FlowStep,
            b'f' => Kind::FlowEnd,
            b'i' | b'I' | b'R' | b'c' | b'P' | b'n' | b'T' | b'p' | b'N' | b'O' | b'D' | b'V'
            | b'v' => Kind::Instant,
            0 => {
                builder.count("events without a phase, which are not read");
                return Ok(());
            }
            other => {
                let phase = char::from(other).escape_default();
                builder.count(&format!("events of phase `{phase}`, which is not read"));
                return Ok(());
            }
        };
        let place = match (self.phase, self.instant_scope) {
            (b'b' | b'e' | b'n' | b'S' | b'F' | b'T' | b'p', _) => self.join_place(),
            (b'N' | b'O' | b'D' | b'V' | b'v', _) | (b'i' | b'I', b'p') => self.process_place(),
            (b'i' | b'I', b'g') | (b'c', _) => Place::Global,
            _ => self.place.clone(),
        };
        if kind == Kind::Slice && self.duration.is_none() {
            builder.count("events of phase `X` without a duration, taken for one of 0");
        }
        if let Some(id) = &self.id {
            args.push(b"id", Value::Text(id.text.as_bytes()));
        }
        let by_phase = matches!(self.phase, b's' | b't' | b'f').then(|| self.flow_id());
        let bound = self.bind_id.filter(|_| self.flow_in || self.flow_out);
        let flow: Vec<u64> = by_phase.into_iter().chain(bound).collect();
        // What only comes in ends there.
        let is_ended = self.phase == b'f' || self.flow_in && !self.flow_out;
        let (flows, ended) = match is_ended {
            true => (&[][..], &flow[..]),
            false => (&flow[..], &[][..]),
        };
        let row = Row {
            name: self.name,
            category: self.category,
            duration: self.duration.unwrap_or(0),
            flows,
            ended_flows: ended,
            ..Row::new(kind, self.time, builder.tracks.at(&place))
        };
        builder.push(&row, args)
    }

    /// Adds a value of a series of the process. A counter with one series that is called `value`
    /// goes by its own name.
    pub(crate) fn emit_counter(
        &self,
        builder: &mut Builder,
        args: &mut Args,
        series: &[u8],
        value: Value<'_>,
    ) -> Result<(), Stop> {
        let mut name = self.name.to_vec();
        if series != b"value" && !series.is_empty() {
            name.push(b' ');
            name.extend_from_slice(series);
        }
        let shown = name_of(&name);
        let track: Arc<str> = match &self.id {
            Some(id) => name_of(format!("{shown} {}", id.text).as_bytes()),
            None => shown,
        };
        let place = Place::Named(self.process.clone(), track, EntryKind::Sample);
        args.clear();
        args.push(b"value", value);
        let row = Row {
            name: &name,
            category: self.category,
            ..Row::new(Kind::Counter, self.time, builder.tracks.at(&place))
        };
        builder.push(&row, args)
    }
}
