//! Rows: events decoded to columns by any thread, merged by time.

use std::cell::RefCell;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use kymo_model::FaultReport;
use kymo_model::batch::{Batch, MergedRows, NoticeKind, RowId, SourceRows, SourceRun};
use kymo_text::Line;

use super::ahead::Ahead;
use super::{Bound, Direction, Filler, RowPlan, backwards};
use crate::AnyRecording;
use crate::pipeline::{self, NO_TIME, Output, RowRun, Select, Span, Watched};
use crate::show::table::Table;
use crate::show::{Message, MessageKind, Sink};

/// A batch has some of these bytes at most, beside one row.
const MOST_BYTES: usize = 8 << 20;

/// Its size is not looked at after every few rows.
const ROWS_BETWEEN_SIZES: usize = 1024;

/// The rows of a query, batch by batch; made by [`Timeline::rows`](super::Timeline::rows).
///
/// A thread works ahead by two batches, and ends when this is dropped.
#[derive(Debug)]
pub struct Rows(Ahead<Batch>);

impl Rows {
    pub(super) fn spawn(recordings: Arc<Vec<AnyRecording>>, bound: Bound) -> io::Result<Self> {
        let work = move |sender: SyncSender<Batch>| {
            let mut take = |batch| match sender.send(batch) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            };
            run(&recordings, &bound, &mut take);
        };
        Ahead::spawn(work).map(Self)
    }
}

impl Iterator for Rows {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        self.0.next()
    }
}

/// Hands over the rows of a query in batches.
pub(super) fn run(
    recordings: &[AnyRecording],
    bound: &Bound,
    take: &mut dyn FnMut(Batch) -> ControlFlow<()>,
) {
    let filter = &bound.filter;
    let (plan, options, batch_rows) = (&bound.plan, &bound.options, bound.batch_rows);
    let span = Span {
        select: filter,
        from: bound.from.as_ref(),
        to: bound.to.as_ref(),
    };
    match (bound.direction, &bound.from, &bound.to) {
        (Direction::Forwards, None, None) => match &bound.read {
            Some(read) => {
                let progress = |bytes| {
                    read.fetch_add(bytes, Ordering::Relaxed);
                };
                let select = Watched::new(recordings, filter, &progress, None);
                run_plan(recordings, &select, plan, options, batch_rows, take);
            }
            None => run_plan(recordings, filter, plan, options, batch_rows, take),
        },
        (Direction::Forwards, ..) => {
            run_plan(recordings, &span, plan, options, batch_rows, take);
        }
        (Direction::Backwards, ..) => backwards::run(recordings, &span, bound, take),
    }
}

/// The same for any choice of events and any plan.
pub(super) fn run_plan(
    recordings: &[AnyRecording],
    select: &dyn Select,
    plan: &RowPlan,
    options: &pipeline::Options,
    batch_rows: usize,
    take: &mut dyn FnMut(Batch) -> ControlFlow<()>,
) {
    let faults = RefCell::default();
    let mut gatherer = Gatherer {
        plan,
        faults: &faults,
        batches: Table::default(),
        batch_rows,
        take,
        is_done: false,
        groups: Vec::new(),
        group_numbers: Table::default(),
        met: Vec::new(),
        fitting: Vec::new(),
    };
    let mut output = Faults(&faults);
    // Its output takes everything.
    let _ = pipeline::run(recordings, select, options, &mut gatherer, &mut output);
    gatherer.finish_all();
}

/// Keeps faults until they are put between the rows.
struct Faults<'a>(&'a RefCell<Vec<Arc<FaultReport>>>);

impl Output for Faults<'_> {
    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        self.0.borrow_mut().push(Arc::new(fault.clone()));
        ControlFlow::Continue(())
    }
}

/// Puts rows together to batches.
struct Gatherer<'a> {
    plan: &'a RowPlan,
    faults: &'a RefCell<Vec<Arc<FaultReport>>>,
    /// By recording and class; in the mixed shape the first one is for all.
    batches: Table<Batch>,
    batch_rows: usize,
    take: &'a mut dyn FnMut(Batch) -> ControlFlow<()>,
    is_done: bool,
    /// The rows of each class that are taken at once, the position of each class there, and those of which there are any.
    groups: Vec<Group>,
    group_numbers: Table<usize>,
    met: Vec<usize>,
    /// The runs that fit in a batch.
    fitting: Vec<SourceRun>,
}

/// The rows of a class among some runs.
#[derive(Default)]
struct Group {
    recording: usize,
    class: usize,
    /// Where they are in the columns of the class, and how many there are.
    parts: Vec<SourceRun>,
    rows: usize,
    /// In their final order, the positions among all rows; if runs are merged, those among the rows of the class, too.
    positions: Vec<usize>,
    order: Vec<u16>,
}

impl Group {
    fn clear(&mut self) {
        self.parts.clear();
        self.positions.clear();
        self.order.clear();
        self.rows = 0;
    }
}

impl Gatherer<'_> {
    fn batch(&mut self, recording: usize, class: usize) -> &mut Batch {
        let plan = self.plan;
        let (place, schema) = match plan.is_mixed {
            true => ((0, 0), &plan.schema),
            false => ((recording, class), &plan.classes[recording][class].schema),
        };
        self.batches
            .get(place.0, place.1, || Batch::new(Arc::clone(schema)))
    }

    /// Hands over a batch. `false` ends the run.
    fn hand_over(&mut self, recording: usize, class: usize) -> bool {
        let batch = self.batch(recording, class);
        let empty = batch.empty_like();
        let full = std::mem::replace(batch, empty);
        self.is_done = (self.take)(full).is_break();
        !self.is_done
    }

    /// Puts a notice, which is not a row, behind the rows that came before it, in the batch of this class.
    fn notice(&mut self, recording: usize, stream: usize, kind: NoticeKind) {
        let batch = self.batch(recording, 0);
        batch.push_notice(recording as u32, stream as u32, kind);
    }

    /// Puts the faults that were met before some rows before them.
    fn take_faults_before(&mut self, sources: &[SourceRows<'_>], rows: &[SourceRun]) {
        let has_faults = !self.faults.borrow().is_empty();
        if let Some(run) = rows.first().filter(|_| has_faults) {
            let id = sources[run.source].id;
            self.take_faults(id.recording as usize, id.stream as usize);
        }
    }

    fn take_faults(&mut self, recording: usize, stream: usize) {
        let faults = std::mem::take(&mut *self.faults.borrow_mut());
        for fault in faults {
            self.notice(recording, stream, NoticeKind::Fault(fault));
        }
    }

    /// Hands over all that is left, in the order of recordings and classes.
    fn finish_all(&mut self) {
        self.take_faults(0, 0);
        let left = std::mem::take(&mut self.batches).into_iter();
        for batch in left.filter(|batch| !batch.is_empty() || !batch.notices().is_empty()) {
            if self.is_done {
                return;
            }
            self.is_done = (self.take)(batch).is_break();
        }
    }
}

impl<'a> Sink for Gatherer<'a> {
    type Renderer = Filler<'a>;

    fn renderer(&self) -> Filler<'a> {
        Filler::new(self.plan)
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn message(
        &mut self,
        message: &Message,
        _of: &[AnyRecording],
        _text: &[u8],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) {
        let kind = match message.kind {
            MessageKind::LostEvents(lost) => NoticeKind::LostEvents(lost),
            MessageKind::LostChunks(lost) => NoticeKind::LostChunks(lost),
            _ => return,
        };
        self.notice(message.recording, message.stream, kind);
    }

    fn rows(
        &mut self,
        run: RowRun<'_>,
        _of: &[AnyRecording],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) -> bool {
        if !self.faults.borrow().is_empty() {
            self.take_faults(run.recording, run.stream);
        }
        self.by_class(&mut [run], None)
    }

    fn mixed_rows(
        &mut self,
        runs: &mut [RowRun<'_>],
        order: &[u16],
        _: &[AnyRecording],
    ) -> Option<bool> {
        // Ticks are appended for all or none.
        if runs.iter().any(|run| !run.has_clock) {
            return None;
        }
        if let Some(run) = runs.first().filter(|_| !self.faults.borrow().is_empty()) {
            self.take_faults(run.recording, run.stream);
        }
        Some(self.by_class(runs, Some(order)))
    }

    fn takes_runs(&self) -> bool {
        self.plan.is_mixed
    }

    fn runs(&mut self, sources: &[SourceRows<'_>], runs: &[SourceRun]) -> bool {
        self.take_faults_before(sources, runs);
        self.mixed_rows(sources, runs)
    }

    fn merged(&mut self, sources: &[SourceRows<'_>], rows: MergedRows<'_>) -> bool {
        if !self.faults.borrow().is_empty() {
            self.take_faults_before(sources, &rows.runs());
        }
        let mut order = rows.order;
        while !order.is_empty() && !self.is_done {
            let (fitting, left) = order.split_at(order.len().min(self.room()));
            let rows = MergedRows {
                order: fitting,
                ..rows
            };
            self.batch(0, 0).append_merged(sources, rows, NO_TIME);
            self.end_append();
            order = left;
        }
        !self.is_done
    }
}

impl Gatherer<'_> {
    /// Appends rows that have their columns one after the other.
    fn mixed_rows(&mut self, sources: &[SourceRows<'_>], runs: &[SourceRun]) -> bool {
        let room = self.room();
        if runs.iter().map(|run| run.rows).sum::<usize>() <= room {
            return self.append(sources, runs);
        }
        let mut runs = runs.iter().copied();
        let mut next = runs.next();
        let mut fitting = std::mem::take(&mut self.fitting);
        while next.is_some() && !self.is_done {
            let mut room = self.room();
            fitting.clear();
            while let Some(run) = next
                && room > 0
            {
                let rows = run.rows.min(room);
                fitting.push(SourceRun { rows, ..run });
                room -= rows;
                next = match run.rows - rows {
                    0 => runs.next(),
                    left => Some(SourceRun {
                        first: run.first + rows,
                        rows: left,
                        ..run
                    }),
                };
            }
            self.append(sources, &fitting);
        }
        self.fitting = fitting;
        !self.is_done
    }

    /// Appends rows for which the batch has room. `false` ends the run.
    fn append(&mut self, sources: &[SourceRows<'_>], runs: &[SourceRun]) -> bool {
        self.batch(0, 0).append_runs(sources, runs, NO_TIME);
        self.end_append()
    }

    /// The number of rows that may be appended before the size of the batch is looked at.
    fn room(&mut self) -> usize {
        let batch_rows = self.batch_rows;
        (batch_rows - self.batch(0, 0).len()).min(ROWS_BETWEEN_SIZES)
    }

    /// Hands over a batch that is full. `false` ends the run.
    fn end_append(&mut self) -> bool {
        let batch_rows = self.batch_rows;
        let batch = self.batch(0, 0);
        if batch.len() >= batch_rows || batch.byte_size() >= MOST_BYTES {
            self.hand_over(0, 0);
        }
        !self.is_done
    }

    /// Appends rows to the batches of their classes: those of one run, or of several in this order.
    fn by_class(&mut self, runs: &mut [RowRun<'_>], order: Option<&[u16]>) -> bool {
        for run in &*runs {
            if run.first == 0 && run.buffers.replaced > 0 {
                let first_class = run.entries.classes[0] as usize;
                self.batch(run.recording, first_class)
                    .add_replaced(run.buffers.replaced);
            }
        }
        let mut met = std::mem::take(&mut self.met);
        // The class of each row, and its position among the rows of the class.
        let mut places = Vec::with_capacity(order.map_or(0, <[u16]>::len));
        for (source, run) in runs.iter().enumerate() {
            for &class in run.entries.classes {
                let class = class as usize;
                let next = self.groups.len();
                let number = *self.group_numbers.get(run.recording, class, || next);
                if number == next {
                    self.groups.push(Group {
                        recording: run.recording,
                        class,
                        ..Group::default()
                    });
                }
                let group = &mut self.groups[number];
                if group.rows == 0 {
                    met.push(number);
                }
                match group.parts.last_mut() {
                    Some(part) if part.source == source => part.rows += 1,
                    _ => group.parts.push(SourceRun {
                        source,
                        first: run.classes[class].taken,
                        rows: 1,
                    }),
                }
                places.push((number, group.rows as u16));
                group.rows += 1;
            }
        }
        match order {
            None => {
                for (position, &(group, _)) in places.iter().enumerate() {
                    self.groups[group].positions.push(position);
                }
            }
            Some(order) => {
                for &position in order {
                    let (group, place) = places[usize::from(position)];
                    let group = &mut self.groups[group];
                    group.positions.push(position.into());
                    group.order.push(place);
                }
            }
        }
        let heads = Heads::new(runs);
        let mut goes_on = true;
        for number in met.drain(..) {
            let mut group = std::mem::take(&mut self.groups[number]);
            goes_on = goes_on && self.append_group(&group, &heads, runs, order.is_some());
            for part in &group.parts {
                runs[part.source].classes[group.class].taken += part.rows;
            }
            group.clear();
            self.groups[number] = group;
        }
        self.met = met;
        goes_on
    }

    /// Appends the rows of a class. `false` ends the run.
    fn append_group(
        &mut self,
        group: &Group,
        heads: &Heads,
        runs: &[RowRun<'_>],
        is_merged: bool,
    ) -> bool {
        let (recording, class) = (group.recording, group.class);
        let columns = runs.iter().map(|run| match run.recording == recording {
            true => run.columns(class),
            false => &[],
        });
        let columns: Vec<_> = columns.collect();
        let mut done = 0;
        while done < group.positions.len() {
            let batch_rows = self.batch_rows;
            let batch = self.batch(recording, class);
            let left = &group.positions[done..];
            let rows = &left[..left.len().min(batch_rows - batch.len())];
            let times: Vec<_> = rows.iter().map(|&row| heads.times[row]).collect();
            let ticks: Vec<_> = rows
                .iter()
                .filter_map(|&row| heads.ticks.get(row).copied())
                .collect();
            batch.push_heads(
                class as u32,
                rows.iter().map(|&row| heads.ids[row]),
                (&times, NO_TIME),
                (!heads.ticks.is_empty()).then_some(&ticks),
            );
            match is_merged {
                true => {
                    let merged = MergedRows {
                        parts: &group.parts,
                        order: &group.order[done..done + rows.len()],
                    };
                    batch.append_merged_columns(&columns, merged);
                }
                false => {
                    let first = group.parts[0].first + done;
                    batch.append_columns(columns[0], first..first + rows.len());
                }
            }
            done += rows.len();
            let is_full = batch.len() >= batch_rows || batch.byte_size() >= MOST_BYTES;
            if is_full && !self.hand_over(recording, class) {
                return false;
            }
        }
        true
    }
}

/// What the rows of some runs are, beside their columns; without ticks unless all have a clock.
struct Heads {
    ids: Vec<RowId>,
    times: Vec<i64>,
    ticks: Vec<u64>,
}

impl Heads {
    fn new(runs: &[RowRun<'_>]) -> Self {
        let rows = runs.iter().map(|run| run.entries.len()).sum();
        let mut heads = Self {
            ids: Vec::with_capacity(rows),
            times: Vec::with_capacity(rows),
            ticks: Vec::with_capacity(rows),
        };
        for run in runs {
            let numbers = &run.buffers.numbers[run.first..][..run.entries.len()];
            heads.ids.extend(numbers.iter().map(|&number| RowId {
                recording: run.recording as u32,
                stream: run.stream as u32,
                chunk: run.chunk as u64,
                number,
            }));
            heads.times.extend_from_slice(run.entries.times);
            if run.has_clock {
                heads.ticks.extend_from_slice(run.entries.ticks);
            }
        }
        heads
    }
}
