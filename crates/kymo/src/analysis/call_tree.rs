//! Call trees: nested calls of each track, merged where the same calls lead to them. What flame graphs are made of.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::calls::{CallKeys, MOST_DEPTH, MOST_OPEN, call_roles, key_fields};
use super::events::{Error, EventPattern};
use super::run::{Analysis, BEGINS, Coverage, ENDS, Occurrence, Options, Question, run};
use super::tracks::{Track, TrackBy, track};
use crate::AnyRecording;
use crate::filter::FieldNames;
use crate::pipeline::{Select, Window};
use crate::tracks::{OpenSlices, RowKey};
use foldhash::fast::RandomState;

/// Nodes of a tree; calls that would need more are not counted.
const MOST_NODES: usize = 1 << 18;

/// Which events are calls.
#[derive(Clone, Debug)]
pub struct CallTreeQuery {
    /// The events that enter something, and those that leave it; without them those that begin and end slices, as
    /// the recordings say.
    pub events: Option<(EventPattern, EventPattern)>,
    /// Fields whose values name calls; by default, the name of the entering event.
    pub key: Option<FieldNames>,
    /// What a track is: each has a tree of its own.
    pub tracks: TrackBy,
    /// Only time within it counts. Calls that were entered before it are known if the events before it are
    /// selected.
    pub within: Window,
}

/// The call trees of recordings.
#[derive(Clone, Debug)]
pub struct CallTree {
    /// The calls. Callers come before those that they call.
    pub nodes: Vec<CallNode>,
    /// The tracks that have calls.
    pub tracks: Vec<Track>,
    /// Calls that were not left; they count until the end.
    pub open: u64,
    /// Events that leave what was not entered, and calls that were not left in their turn.
    pub unmatched: u64,
    /// Calls that are not counted, since there are too many, or too many were open at the same time.
    pub dropped: u64,
    /// What was seen.
    pub coverage: Coverage,
}

/// Calls with the same name, track, and callers.
#[derive(Clone, Debug, PartialEq)]
pub struct CallNode {
    /// Position of the caller among the nodes; `None` if the calls have none.
    pub caller: Option<usize>,
    /// Position of the track.
    pub track: usize,
    /// The values of the fields, or the name of the event.
    pub name: String,
    /// How many calls there are.
    pub calls: u64,
    /// The total time of all calls, in nanoseconds.
    pub total: u64,
    /// The same without the time in what they call.
    pub own: u64,
    /// The longest one, in nanoseconds.
    pub longest: u64,
    /// When the longest one was entered, in nanoseconds.
    pub longest_begin: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Caller {
    Track(u32),
    Node(u32),
}

#[derive(Clone, Debug)]
struct Node {
    caller: Caller,
    track: u32,
    key: u32,
    calls: u64,
    total: u64,
    own: u64,
    longest: u64,
    longest_begin: i64,
}

/// A call that is open.
#[derive(Clone, Copy, Debug)]
struct Frame {
    node: u32,
    key: u32,
    begin: i64,
    inner: u64,
}

struct Work {
    within: (i64, i64),
    keys: CallKeys,
    nodes: Vec<Node>,
    numbers: HashMap<(Caller, u32), u32, RandomState>,
    open: OpenSlices<Frame>,
    /// When, and on which track, calls with a known duration end.
    ends: BinaryHeap<Reverse<(i64, u32)>>,
    unmatched: u64,
    dropped: u64,
    last: i64,
}

impl Work {
    fn new(within: Window) -> Self {
        Self {
            within: (within.begin.as_nanos(), within.end.as_nanos()),
            keys: CallKeys::default(),
            nodes: Vec::new(),
            numbers: HashMap::default(),
            open: OpenSlices::new(MOST_OPEN, MOST_DEPTH),
            ends: BinaryHeap::new(),
            unmatched: 0,
            dropped: 0,
            last: i64::MIN,
        }
    }

    fn enter(&mut self, event: &Occurrence<'_>) {
        let key = self.keys.entered(event);
        let caller = match self.open.on(event.track).last() {
            Some(frame) => Caller::Node(frame.node),
            None => Caller::Track(event.track),
        };
        let known = self.numbers.get(&(caller, key)).copied();
        let node = match known {
            Some(node) => node,
            None if self.nodes.len() >= MOST_NODES => {
                self.dropped += 1;
                self.open.add_dropped(event.track, 1);
                return;
            }
            None => {
                let number = self.nodes.len() as u32;
                self.numbers.insert((caller, key), number);
                self.nodes.push(Node {
                    caller,
                    track: event.track,
                    key,
                    calls: 0,
                    total: 0,
                    own: 0,
                    longest: 0,
                    longest_begin: event.time,
                });
                number
            }
        };
        let frame = Frame {
            node,
            key,
            begin: event.time,
            inner: 0,
        };
        let is_kept = self.open.begin(event.track, frame);
        self.dropped += u64::from(!is_kept);
    }

    fn exit(&mut self, track: u32, key: RowKey<'_>, now: i64) {
        let wanted = self.keys.left(key);
        if self.open.end_dropped(track) {
            return;
        }
        let frames = self.open.on(track);
        let place = match wanted {
            Some(wanted) => frames.iter().rposition(|frame| frame.key == wanted),
            None => frames.len().checked_sub(1),
        };
        let Some(place) = place else {
            self.unmatched += 1;
            return;
        };
        // What was entered within it and not left ends with it.
        let above = self.open.on(track).len() - place - 1;
        self.unmatched += above as u64;
        for _ in 0..=above {
            self.leave(track, now);
        }
    }

    /// Ends the innermost call.
    fn leave(&mut self, track: u32, now: i64) {
        let Some(frame) = self.open.pop(track) else {
            return;
        };
        let (begin, end) = (frame.begin.max(self.within.0), now.min(self.within.1));
        if end < begin {
            return;
        }
        let whole = end.abs_diff(begin);
        if let Some(caller) = self.open.on(track).last_mut() {
            caller.inner = caller.inner.saturating_add(whole);
        }
        let node = &mut self.nodes[frame.node as usize];
        node.calls += 1;
        node.total = node.total.saturating_add(whole);
        let own = whole.saturating_sub(frame.inner);
        node.own = node.own.saturating_add(own);
        if whole > node.longest || node.calls == 1 {
            (node.longest, node.longest_begin) = (whole, frame.begin);
        }
    }

    fn end_until(&mut self, time: i64) {
        while let Some(&Reverse((end, track))) = self.ends.peek()
            && end <= time
        {
            self.ends.pop();
            self.last = self.last.max(end);
            self.exit(track, RowKey::default(), end);
        }
    }

    /// Ends what was not left. Returns the number of such calls.
    fn end_open(&mut self) -> u64 {
        self.end_until(i64::MAX);
        let open = self.open.len() as u64;
        let tracks: Vec<u32> = self.open.iter().map(|(track, ..)| track).collect();
        let last = self.last;
        for track in tracks {
            while !self.open.on(track).is_empty() {
                self.leave(track, last);
            }
        }
        open
    }
}

impl Analysis for Work {
    #[inline]
    fn event(&mut self, event: &Occurrence<'_>) {
        self.end_until(event.time);
        self.last = self.last.max(event.time);
        match event.role {
            BEGINS => self.enter(event),
            ENDS => self.exit(event.track, event.end_key, event.time),
            _ => {}
        }
        if let Some(nanos) = event.duration {
            if self.ends.len() >= MOST_OPEN {
                self.dropped += 1;
                return;
            }
            self.enter(event);
            let end = event.time.saturating_add_unsigned(nanos);
            self.ends.push(Reverse((end, event.track)));
        }
    }
}

impl CallTree {
    /// Finds the calls of all events that `select` wants.
    ///
    /// An event that leaves something and has the fields of the key leaves the innermost call with the same values;
    /// without them it leaves the innermost call.
    ///
    /// # Errors
    ///
    /// No recording has such events or such fields; an event enters and leaves.
    pub fn new(
        recordings: &[AnyRecording],
        select: &dyn Select,
        query: &CallTreeQuery,
        options: &Options,
    ) -> Result<Self, Error> {
        let question = Question {
            roles: call_roles(query.events.as_ref(), recordings)?,
            tracks: &query.tracks,
            keys: key_fields(query.key.as_ref()),
        };
        let mut work = Work::new(query.within);
        if query.key.is_none() {
            work.keys.by_class(recordings);
        }
        let (coverage, known) = run(recordings, select, &question, options, &mut work)?;
        let open = work.end_open();
        let mut tracks = Vec::new();
        let mut places: HashMap<u32, usize> = HashMap::new();
        let mut nodes = Vec::new();
        // Nodes without calls in the range are left out; what such a node calls has none either.
        let mut kept = vec![None; work.nodes.len()];
        for (number, node) in work.nodes.iter().enumerate() {
            if node.calls == 0 {
                continue;
            }
            kept[number] = Some(nodes.len());
            let place = *places.entry(node.track).or_insert_with(|| {
                tracks.push(track(recordings, &known, node.track));
                tracks.len() - 1
            });
            nodes.push(CallNode {
                caller: match node.caller {
                    Caller::Node(caller) => kept[caller as usize],
                    Caller::Track(_) => None,
                },
                track: place,
                name: work.keys.text(node.key),
                calls: node.calls,
                total: node.total,
                own: node.own,
                longest: node.longest,
                longest_begin: node.longest_begin,
            });
        }
        Ok(Self {
            nodes,
            tracks,
            open,
            unmatched: work.unmatched,
            dropped: work.dropped,
            coverage,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Everything;
    use kymo_time::Timestamp;
    use proptest::prelude::*;

    fn open(events: &str) -> Vec<AnyRecording> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.json");
        std::fs::write(&path, events).unwrap();
        crate::open::open(&[path], &Default::default()).recordings
    }

    fn query(within: Window) -> CallTreeQuery {
        CallTreeQuery {
            events: None,
            key: None,
            tracks: TrackBy::Recording,
            within,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Trees against the calls themselves: random nested calls, cut to a random range.
        #[test]
        fn trees_add_up_what_calls_last(
            steps in prop::collection::vec((0u8..3, 1u64..50, 0usize..3), 1..80),
            range in (0i64..2_000_000, 0i64..2_000_000),
        ) {
            let names = ["a", "b", "c"];
            let (mut now, mut open_calls, mut calls) = (0u64, Vec::new(), Vec::new());
            let mut events = Vec::new();
            let end = |open_calls: &mut Vec<(usize, u64)>, now: u64, calls: &mut Vec<(Vec<usize>, u64, u64)>| {
                let path = open_calls.iter().map(|call| call.0).collect();
                if let Some((_, begin)) = open_calls.pop() {
                    calls.push((path, begin, now));
                    return true;
                }
                false
            };
            for (step, wait, name) in steps {
                now += wait * 1000;
                if step < 2 && open_calls.len() < 6 {
                    open_calls.push((name, now));
                    events.push(format!(r#"{{"ph":"B","pid":1,"tid":1,"ts":{},"name":"{}"}}"#, now / 1000, names[name]));
                } else if end(&mut open_calls, now, &mut calls) {
                    events.push(format!(r#"{{"ph":"E","pid":1,"tid":1,"ts":{}}}"#, now / 1000));
                }
            }
            let last = now;
            while end(&mut open_calls, last, &mut calls) {}
            prop_assume!(!events.is_empty());
            // What never ends, ends with the last event that is there.
            events.push(format!(r#"{{"ph":"X","pid":1,"tid":9,"ts":{},"dur":0,"name":"last"}}"#, last / 1000));
            let recordings = open(&format!("[{}]", events.join(",")));
            let (from, to) = (range.0.min(range.1), range.0.max(range.1));
            let within = Window { begin: Timestamp::from_nanos(from), end: Timestamp::from_nanos(to) };
            let tree = CallTree::new(&recordings, &Everything, &query(within), &Options { threads: 1, ..Options::default() }).unwrap();
            let path_of = |mut at: usize| {
                let mut path = vec![tree.nodes[at].name.clone()];
                while let Some(caller) = tree.nodes[at].caller {
                    at = caller;
                    path.insert(0, tree.nodes[at].name.clone());
                }
                path
            };
            let mut expected: std::collections::BTreeMap<Vec<String>, (u64, u64)> = Default::default();
            for (path, begin, end) in &calls {
                let (begin, end) = ((*begin as i64).max(from), (*end as i64).min(to));
                if begin <= end {
                    let sums = expected.entry(path.iter().map(|&at| names[at].to_string()).collect()).or_default();
                    sums.0 += 1;
                    sums.1 += end.abs_diff(begin);
                }
            }
            let found: std::collections::BTreeMap<_, _> = (0..tree.nodes.len())
                .filter(|&at| path_of(at) != ["last"])
                .map(|at| (path_of(at), (tree.nodes[at].calls, tree.nodes[at].total)))
                .collect();
            prop_assert_eq!(&found, &expected);
            // What a call lasts is its own time and that of what it calls.
            for (at, node) in tree.nodes.iter().enumerate() {
                let inner: u64 = tree.nodes.iter().filter(|node| node.caller == Some(at)).map(|node| node.total).sum();
                prop_assert_eq!(node.own + inner, node.total);
            }
        }
    }
}
