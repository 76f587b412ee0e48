//! What processes have mapped, and when.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kymo_ctf::trace::Trace;
use kymo_model::{
    BlockQuery, Chunk, Cursor, Event, EventBlock, EventClass, EventVisitor, Fault, FieldId,
    Interest, Kind, Recording, Schema, Scope, Visitor, Walk,
};
use kymo_symbols::{DebugLink, Identity};

use super::names::{Image, Names};

/// Mappings of all processes of a trace.
const MOST_MAPPINGS: usize = 1 << 20;
/// Places below an address at which something was mapped once, and that are looked at.
const MOST_BASES: usize = 1_024;
/// Bytes of the path of a file.
const MOST_PATH: usize = 4_096;
/// Bytes of a build ID.
const MOST_BUILD_ID: usize = 64;
/// Events between two tests whether a walk has an end.
const EVENTS: usize = 4_096;

/// A file in the memory of a process.
#[derive(Clone, Debug)]
struct Mapping {
    /// From when on, and until when.
    from: i64,
    until: i64,
    size: u64,
    path: Arc<str>,
    is_relative: bool,
    /// Whether it was unloaded, and the process goes on.
    is_unloaded: bool,
    identity: Identity,
    image: Option<Arc<Image>>,
}

/// The memory of one process: by address, what was mapped there, in order of time.
#[derive(Debug, Default)]
struct Process {
    mappings: BTreeMap<u64, Vec<Mapping>>,
}

/// The processes of a trace.
#[derive(Debug, Default)]
pub(super) struct Processes {
    processes: HashMap<i64, Process>,
    count: usize,
    /// Whether there were too many mappings.
    pub(super) is_full: bool,
    /// Of each stream, the first chunk that was not looked at.
    next_chunks: Vec<usize>,
}

/// What an event says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    /// It begins to list what is mapped.
    Start,
    /// Something is mapped.
    Mapped,
    /// The build ID of something that is mapped.
    BuildId,
    /// The debug link of something that is mapped.
    Link,
    /// Something is mapped no longer.
    Unmapped,
}

/// The events that say something, of LTTng's user space tracer.
fn says(name: &str) -> Option<Says> {
    Some(match name {
        "lttng_ust_statedump:start" => Says::Start,
        "lttng_ust_statedump:bin_info"
        | "lttng_ust_dl:dlopen"
        | "lttng_ust_dl:dlmopen"
        | "lttng_ust_lib:load" => Says::Mapped,
        "lttng_ust_statedump:build_id" | "lttng_ust_dl:build_id" | "lttng_ust_lib:build_id" => {
            Says::BuildId
        }
        "lttng_ust_statedump:debug_link"
        | "lttng_ust_dl:debug_link"
        | "lttng_ust_lib:debug_link" => Says::Link,
        // `lttng_ust_dl:dlclose` does not say so: something else may have opened the library, too.
        "lttng_ust_lib:unload" => Says::Unmapped,
        _ => return None,
    })
}

/// Where an event of a class says it.
#[derive(Clone, Debug)]
struct Reporting {
    says: Says,
    vpid: FieldId,
    base: Option<FieldId>,
    size: Option<FieldId>,
    path: Option<FieldId>,
    is_relative: Option<FieldId>,
    build_id: Option<FieldId>,
    crc: Option<FieldId>,
}

impl Reporting {
    fn new(class: &EventClass) -> Option<Self> {
        let says = says(class.name.as_deref()?)?;
        let schema = &class.schema;
        let child = |name: &str| schema.child(schema.root(Scope::Payload)?, name);
        let reporting = Self {
            says,
            vpid: vpid(schema)?,
            base: child("baddr"),
            size: child("memsz"),
            path: child("path").or_else(|| child("filename")),
            is_relative: child("is_pic"),
            build_id: child("build_id")
                .and_then(|list| schema.field(list).children.first().copied()),
            crc: child("crc").or_else(|| child("crc32")),
        };
        (says == Says::Start || reporting.base.is_some()).then_some(reporting)
    }

    fn fields(&self) -> impl Iterator<Item = FieldId> {
        let Self {
            vpid,
            base,
            size,
            path,
            is_relative,
            build_id,
            crc,
            ..
        } = *self;
        [Some(vpid), base, size, path, is_relative, build_id, crc]
            .into_iter()
            .flatten()
    }
}

/// The field with the number of the process, as it knows it.
pub(super) fn vpid(schema: &Schema) -> Option<FieldId> {
    let field = schema.child(schema.root(Scope::CommonContext)?, "vpid")?;
    matches!(schema.field(field).kind, Kind::Sint { .. }).then_some(field)
}

/// What one event says.
#[derive(Clone, Debug)]
struct Statement {
    time: i64,
    says: Says,
    vpid: i64,
    base: u64,
    size: u64,
    path: Arc<str>,
    is_relative: bool,
    bytes: Vec<u8>,
    crc: u32,
}

/// Collects what events say.
struct Collector<'c> {
    reports: &'c [Option<Reporting>],
    statements: Vec<Statement>,
    /// The same path comes for each process.
    last_path: Arc<str>,
    is_full: bool,
}

/// The values of one event.
struct Values<'v> {
    reporting: &'v Reporting,
    statement: &'v mut Statement,
    last_path: &'v mut Arc<str>,
}

impl Visitor for Values<'_> {
    fn wants(&self, field: FieldId) -> bool {
        self.reporting.fields().any(|wanted| wanted == field)
    }

    fn uint(&mut self, field: FieldId, value: u64) {
        let Reporting {
            base,
            size,
            is_relative,
            build_id,
            crc,
            ..
        } = self.reporting;
        let statement = &mut *self.statement;
        let field = Some(field);
        if field == *base {
            statement.base = value;
        } else if field == *size {
            statement.size = value;
        } else if field == *is_relative {
            statement.is_relative = value == 1;
        } else if field == *crc {
            statement.crc = value as u32;
        } else if field == *build_id && statement.bytes.len() < MOST_BUILD_ID {
            statement.bytes.push(value as u8);
        }
    }

    fn sint(&mut self, field: FieldId, value: i64) {
        if field == self.reporting.vpid {
            self.statement.vpid = value;
        }
    }

    fn text(&mut self, field: FieldId, text: &[u8]) {
        if Some(field) == self.reporting.path {
            let text = String::from_utf8_lossy(&text[..text.len().min(MOST_PATH)]);
            if **self.last_path != *text {
                *self.last_path = text.into();
            }
            self.statement.path = Arc::clone(self.last_path);
        }
    }
}

impl EventVisitor for Collector<'_> {
    fn event<E: Event>(&mut self, event: &E) -> Result<bool, Fault> {
        let Some(Some(reporting)) = self.reports.get(event.class_index()) else {
            return Ok(true);
        };
        let Some(time) = event.timestamp() else {
            return Ok(true);
        };
        let mut statement = Statement {
            time: time.as_nanos(),
            says: reporting.says,
            vpid: 0,
            base: 0,
            size: 0,
            path: Arc::clone(&self.last_path),
            // What `dlopen` opens always is.
            is_relative: reporting.is_relative.is_none(),
            bytes: Vec::new(),
            crc: 0,
        };
        event.visit(&mut Values {
            reporting,
            statement: &mut statement,
            last_path: &mut self.last_path,
        })?;
        if self.statements.len() >= 4 * MOST_MAPPINGS {
            self.is_full = true;
            return Ok(false);
        }
        self.statements.push(statement);
        Ok(true)
    }
}

impl Walk for &mut Collector<'_> {
    type Output = ();

    fn walk<C: Cursor>(self, mut cursor: C) {
        let interests = self.reports.iter().map(|reporting| Interest {
            is_wanted: reporting.is_some(),
            is_visited: reporting.is_some(),
            ..Interest::default()
        });
        let interests: Vec<Interest> = interests.collect();
        let query = BlockQuery::all(&interests);
        loop {
            let mut block = EventBlock::default();
            // Damage is reported when events are read.
            match cursor.walk_block(&query, EVENTS, &mut block, self) {
                Ok(true) if !self.is_full => {}
                _ => return,
            }
        }
    }
}

impl Processes {
    /// Whether any process is known.
    pub(super) fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// Looks at the events of a trace that it has not looked at. `shift` is what times were moved by since the first
    /// look.
    pub(super) fn read(&mut self, trace: &Trace, names: &Names, shift: i64) {
        let classes = trace.event_classes().iter();
        let reports: Vec<Option<Reporting>> = classes.map(Reporting::new).collect();
        let streams = trace.streams().len();
        let mut jobs = Vec::new();
        self.next_chunks.resize(streams, 0);
        for (stream, next) in self.next_chunks.iter_mut().enumerate() {
            // The last one may have grown.
            let from = trace.first_chunk(stream).max(next.saturating_sub(1));
            let count = trace.chunk_count(stream);
            jobs.extend((from..count).filter_map(|number| trace.chunk(stream, number)));
            *next = count;
        }
        if !reports.iter().any(Option::is_some) {
            return;
        }
        let (mut statements, is_full) = collect(trace, &reports, &jobs);
        self.is_full |= is_full;
        statements.sort_by_key(|statement| statement.time);
        for mut statement in statements {
            statement.time = statement.time.saturating_sub(shift);
            self.apply(statement);
        }
        for mapping in self
            .processes
            .values_mut()
            .flat_map(|process| process.mappings.values_mut())
            .flatten()
            .filter(|mapping| mapping.image.is_none())
        {
            mapping.image = Some(names.image(&mapping.path, &mapping.identity));
        }
    }

    fn apply(&mut self, statement: Statement) {
        let Statement { time, base, .. } = statement;
        let process = self.processes.entry(statement.vpid).or_default();
        let current = |process: &mut Process| -> Option<usize> {
            let mappings = process.mappings.get(&base)?;
            let last = mappings.last()?;
            (last.until == i64::MAX).then_some(mappings.len() - 1)
        };
        match statement.says {
            Says::Start => {
                for mapping in process
                    .mappings
                    .values_mut()
                    .filter_map(|mappings| mappings.last_mut())
                {
                    mapping.until = mapping.until.min(time);
                    mapping.is_unloaded = false;
                }
            }
            Says::Mapped => {
                // The code that the kernel maps has no size.
                if statement.size == 0 || statement.path.is_empty() {
                    return;
                }
                let known = current(process);
                let mappings = process.mappings.entry(base).or_default();
                if let Some(known) = known.map(|known| &mut mappings[known]) {
                    if known.path == statement.path {
                        return;
                    }
                    known.until = time;
                }
                if self.count >= MOST_MAPPINGS {
                    self.is_full = true;
                    return;
                }
                self.count += 1;
                mappings.push(Mapping {
                    from: time,
                    until: i64::MAX,
                    size: statement.size,
                    path: statement.path,
                    is_relative: statement.is_relative,
                    is_unloaded: false,
                    identity: Identity::default(),
                    image: None,
                });
            }
            Says::BuildId | Says::Link => {
                let Some(known) = current(process) else {
                    return;
                };
                let Some(mapping) = process
                    .mappings
                    .get_mut(&base)
                    .and_then(|mappings| mappings.get_mut(known))
                else {
                    return;
                };
                mapping.image = None;
                match statement.says {
                    Says::BuildId => mapping.identity.build_id = statement.bytes,
                    _ => {
                        mapping.identity.debug_link = Some(DebugLink {
                            name: statement.path.to_string(),
                            crc: statement.crc,
                        });
                    }
                }
            }
            Says::Unmapped => {
                if let Some(known) = current(process)
                    && let Some(mappings) = process.mappings.get_mut(&base)
                {
                    mappings[known].until = time;
                    mappings[known].is_unloaded = true;
                }
            }
        }
    }

    /// What a process has at an address at a time: the file, the address in it, and whether that counts from where the file
    /// is mapped. With `is_early` what is first known to be at an address was there before, too, as in a process that had
    /// begun before it was traced.
    pub(super) fn find(
        &self,
        vpid: i64,
        time: i64,
        address: u64,
        is_early: bool,
    ) -> Option<(&Image, u64, bool)> {
        let process = self.processes.get(&vpid)?;
        let below = process.mappings.range(..=address).rev().take(MOST_BASES);
        let mut unloaded = None;
        for (&base, mappings) in below {
            let after = mappings.partition_point(|mapping| mapping.from <= time);
            let Some(last) = after.checked_sub(1).or(is_early.then_some(0)) else {
                continue;
            };
            let mapping = &mappings[last];
            let Some(image) = mapping.image.as_deref() else {
                continue;
            };
            if address - base >= mapping.size {
                continue;
            }
            let within = match mapping.is_relative {
                true => address - base,
                false => address,
            };
            let found = (image, within, mapping.is_relative);
            if time < mapping.until {
                return Some(found);
            }
            // What runs where a library was is one that is being loaded: this is reported after its constructors
            // have run. It is hardly ever another one.
            if mapping.is_unloaded && unloaded.is_none() {
                unloaded = Some(found);
            }
        }
        unloaded
    }
}

/// What the events of some chunks say, and whether there is too much of it.
fn collect(trace: &Trace, reports: &[Option<Reporting>], jobs: &[Chunk]) -> (Vec<Statement>, bool) {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut all = Vec::new();
        let mut is_full = false;
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(chunk) = jobs.get(at) else {
                return (all, is_full);
            };
            let mut collector = Collector {
                reports,
                statements: Vec::new(),
                last_path: "".into(),
                is_full: false,
            };
            trace.walk(chunk, &mut collector);
            is_full |= collector.is_full;
            if !collector.statements.is_empty() {
                all.push((at, collector.statements));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut parts, is_full) = std::thread::scope(|scope| {
        let others = (1..threads.min(jobs.len())).map(|_| {
            let spawned = std::thread::Builder::new().spawn_scoped(scope, work);
            spawned.ok()
        });
        let others: Vec<_> = others.flatten().collect();
        let (mut parts, mut is_full) = work();
        for other in others {
            if let Ok((more, full)) = other.join() {
                parts.extend(more);
                is_full |= full;
            }
        }
        (parts, is_full)
    });
    parts.sort_by_key(|&(at, _)| at);
    let statements = parts.into_iter().flat_map(|(_, statements)| statements);
    (statements.collect(), is_full)
}
