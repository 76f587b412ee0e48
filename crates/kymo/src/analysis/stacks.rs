//! Call stacks that events have: how many events there are with each, as a tree. What flame graphs of samples are made of.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use kymo_model::Value;

use super::events::Error;
use super::run::{Analysis, Coverage, Extra, Occurrence, Options, Question, run_with};
use super::tracks::{Track, TrackBy, track};
use crate::AnyRecording;
use crate::filter::FieldNames;
use crate::pipeline::Select;
use crate::tracks::Interner;

/// Nodes of a tree; stacks that would need more end above them.
const MOST_NODES: usize = 1 << 18;
/// Calls of a stack; those beyond are left out.
const MOST_DEPTH: usize = 1024;

/// The call stacks of events, merged where they begin with the same calls.
#[derive(Clone, Debug)]
pub struct StackTree {
    /// The calls. Callers come before those that they call.
    pub nodes: Vec<StackNode>,
    /// The tracks of the events.
    pub tracks: Vec<Track>,
    /// Events that have a stack.
    pub stacks: u64,
    /// Stacks that are shown shorter than they are.
    pub cut: u64,
    /// What was seen.
    pub coverage: Coverage,
}

/// Calls with the same name, track, and callers.
#[derive(Clone, Debug, PartialEq)]
pub struct StackNode {
    /// Position of the caller among the nodes; `None` if there is none.
    pub caller: Option<usize>,
    /// Position of the track.
    pub track: usize,
    /// The function.
    pub name: String,
    /// Events whose stack ends here.
    pub own: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Caller {
    Track(u32),
    Node(u32),
}

struct Node {
    caller: Caller,
    track: u32,
    name: u32,
    own: u64,
}

#[derive(Default)]
struct Work {
    names: Interner<Box<str>>,
    nodes: Vec<Node>,
    numbers: HashMap<(Caller, u32), u32, RandomState>,
    stacks: u64,
    cut: u64,
}

impl Work {
    fn name(&mut self, name: &str) -> u32 {
        let hash = self.names.hasher().hash_one(name);
        let make = || (name.into(), name.len());
        self.names.number(hash, |known| **known == *name, make)
    }

    /// Adds a stack: names from the outermost call on, with semicolons between them.
    fn add(&mut self, track: u32, stack: &str) {
        self.stacks += 1;
        let mut at = Caller::Track(track);
        for (depth, name) in stack.split(';').enumerate() {
            let name = self.name(name);
            let known = self.numbers.get(&(at, name)).copied();
            if depth >= MOST_DEPTH || (known.is_none() && self.nodes.len() >= MOST_NODES) {
                self.cut += 1;
                break;
            }
            let number = known.unwrap_or_else(|| {
                let number = self.nodes.len() as u32;
                self.numbers.insert((at, name), number);
                self.nodes.push(Node {
                    caller: at,
                    track,
                    name,
                    own: 0,
                });
                number
            });
            at = Caller::Node(number);
        }
        if let Caller::Node(node) = at {
            self.nodes[node as usize].own += 1;
        }
    }
}

impl Analysis for Work {
    fn event(&mut self, event: &Occurrence<'_>) {
        if let Value::Text(stack) = event.value
            && !stack.is_empty()
        {
            self.add(event.track, &String::from_utf8_lossy(stack));
        }
    }
}

impl StackTree {
    /// Counts the stacks of all events that `select` wants: those that `field` holds as text, which call stacks of
    /// [named](crate::symbols::symbolize) recordings are.
    ///
    /// # Errors
    ///
    /// No event has the field, or the fields that make a track.
    pub fn new(
        recordings: &[AnyRecording],
        select: &dyn Select,
        field: &FieldNames,
        tracks: &TrackBy,
        options: &Options,
    ) -> Result<Self, Error> {
        let question = Question::of_all(recordings, tracks);
        let extra = Extra {
            value: Some(field),
            ..Extra::default()
        };
        let mut work = Work::default();
        let run = run_with(recordings, select, &question, &extra, options, &mut work);
        let (coverage, known) = run?;
        let mut tracks = Vec::new();
        let mut places: HashMap<u32, usize> = HashMap::new();
        let nodes = work.nodes.iter().map(|node| {
            let place = *places.entry(node.track).or_insert_with(|| {
                tracks.push(track(recordings, &known, node.track));
                tracks.len() - 1
            });
            StackNode {
                caller: match node.caller {
                    Caller::Node(caller) => Some(caller as usize),
                    Caller::Track(_) => None,
                },
                track: place,
                name: match work.names.key(node.name) {
                    Some(name) => name.to_string(),
                    None => "(other functions)".to_owned(),
                },
                own: node.own,
            }
        });
        Ok(Self {
            nodes: nodes.collect(),
            tracks,
            stacks: work.stacks,
            cut: work.cut,
            coverage,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_that_begin_alike_are_merged() {
        let mut work = Work::default();
        for stack in ["main;a;b", "main;a", "main;a;b", "main"] {
            work.add(0, stack);
        }
        work.add(1, "main");
        let nodes: Vec<_> = work
            .nodes
            .iter()
            .map(|node| (node.caller, &**work.names.key(node.name).unwrap(), node.own))
            .collect();
        assert_eq!(
            nodes,
            [
                (Caller::Track(0), "main", 1),
                (Caller::Node(0), "a", 1),
                (Caller::Node(1), "b", 2),
                (Caller::Track(1), "main", 1),
            ]
        );
        let deep = "x;".repeat(2 * MOST_DEPTH);
        work.add(0, &deep);
        assert_eq!((work.cut, work.stacks), (1, 6));
    }
}
