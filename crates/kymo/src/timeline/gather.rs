//! Which columns are gathered: those of numbers that are at the same place in all events of a class.

use std::ops::Range;

use kymo_model::batch::{ColumnSource, Place, WantedColumn};
use kymo_model::{Columns, Interest, Recording};

use super::RowPlan;
use super::plan::ClassPlan;
use crate::AnyRecording;

/// How the rows of a recording are taken in blocks.
#[derive(Debug, Default)]
pub(super) struct BlockPlan {
    /// By class; those of one group if classes share columns.
    groups: Vec<Group>,
    is_mixed: bool,
    /// What is wanted of each class.
    pub(super) interests: Vec<Interest>,
}

/// Columns that the events of a class fill, or those of all classes.
#[derive(Debug, Default)]
struct Group {
    gathered: Vec<Gathered>,
    /// Whether events are visited for other columns.
    is_visited: bool,
}

/// A column of numbers at known places.
#[derive(Debug)]
struct Gathered {
    column: usize,
    /// By class, from the first one of the group; `None` if a class does not have it.
    places: Vec<Option<Place>>,
    /// The place in all wanted classes.
    everywhere: Option<Place>,
}

/// Rows of which columns are gathered.
#[derive(Clone, Copy)]
pub(super) struct BlockRows<'b> {
    /// The chunk, and where in it the fields of each row begin.
    pub(super) bytes: &'b [u8],
    pub(super) bases: &'b [usize],
    /// The class of each row.
    pub(super) classes: &'b [u32],
}

impl BlockPlan {
    /// The plan for the wanted classes of a recording.
    pub(super) fn new(
        plan: &RowPlan,
        (recording, of): (usize, &AnyRecording),
        wanted: &[bool],
    ) -> Self {
        let classes = &plan.classes[recording];
        let is_mixed = plan.is_mixed;
        let all = 0..classes.len();
        let groups: Vec<Group> = match is_mixed {
            true => vec![Group::new(of, classes, all, wanted)],
            false => all
                .map(|class| Group::new(of, classes, class..class + 1, wanted))
                .collect(),
        };
        let interests = classes
            .iter()
            .enumerate()
            .map(|(class, of_class)| Interest {
                is_wanted: wanted.get(class).is_some_and(|&wanted| wanted),
                is_decoded: of_class.wanted.iter().any(|of| of.source.is_of_fields()),
                is_visited: groups[if is_mixed { 0 } else { class }].is_visited,
            });
        Self {
            interests: interests.collect(),
            groups,
            is_mixed,
        }
    }

    fn group(&self, class: usize) -> &Group {
        &self.groups[if self.is_mixed { 0 } else { class }]
    }

    /// The columns of a class, of which those that are gathered are not filled by events.
    pub(super) fn columns(&self, class: usize, plan: &ClassPlan) -> Vec<WantedColumn> {
        let mut wanted = plan.wanted.clone();
        for of in &self.group(class).gathered {
            wanted[of.column].source = ColumnSource::Gathered;
        }
        wanted
    }

    /// Appends rows to the gathered columns of a class or, if classes share columns, of all; and to the others,
    /// unless its events have filled them.
    pub(super) fn gather(&self, class: usize, columns: &mut Columns, rows: BlockRows<'_>) {
        let group = self.group(class);
        if !group.is_visited {
            columns.add_rows(rows.bases.len());
        }
        let first_class = if self.is_mixed { 0 } else { class };
        for of in &group.gathered {
            let column = columns.gather(of.column);
            if let Some(place) = of.everywhere {
                column.gather(rows.bytes, rows.bases, place);
                continue;
            }
            let mut bases = rows.bases;
            for run in rows.classes.chunk_by(|one, other| one == other) {
                let (of_run, behind) = bases.split_at(run.len());
                bases = behind;
                match of.places[run[0] as usize - first_class] {
                    None => column.push_nulls(run.len()),
                    Some(place) if run.len() > 4 => column.gather(rows.bytes, of_run, place),
                    place => of_run
                        .iter()
                        .for_each(|&base| column.gather_one(rows.bytes, base, place)),
                }
            }
        }
    }

    /// Whether some class has columns of its own.
    pub(super) fn is_mixed(&self) -> bool {
        self.is_mixed
    }
}

impl Group {
    /// The columns of some classes, of which not all may be wanted.
    fn new(of: &AnyRecording, classes: &[ClassPlan], range: Range<usize>, wanted: &[bool]) -> Self {
        let mut group = Self::default();
        let is_wanted = |class: usize| wanted.get(class).is_some_and(|&wanted| wanted);
        let used = || range.clone().filter(|&class| is_wanted(class));
        let columns = classes.get(range.start).map_or(0, |of| of.wanted.len());
        group.is_visited = used().any(|class| !classes[class].others.is_empty());
        for column in 0..columns {
            let source = |class: usize| &classes[class].wanted[column].source;
            if used().any(|class| *source(class) == ColumnSource::Shared) {
                continue;
            }
            let place = |class: usize| match source(class) {
                ColumnSource::Fields(picks) => match &picks[..] {
                    [pick] if pick.elements.is_empty() => of.place(class, pick.field),
                    _ => None,
                },
                _ => None,
            };
            let has_no_value = |class: usize| *source(class) == ColumnSource::None;
            let places: Vec<_> = range.clone().map(place).collect();
            let is_known = |class: usize| places[class - range.start].is_some();
            if used().all(has_no_value) {
                continue;
            }
            if !used().all(|class| is_known(class) || has_no_value(class)) {
                group.is_visited = true;
                continue;
            }
            let mut of_used = used().map(|class| places[class - range.start]);
            let first = of_used.next().flatten();
            group.gathered.push(Gathered {
                column,
                everywhere: first.filter(|_| of_used.all(|place| place == first)),
                places,
            });
        }
        group
    }
}
