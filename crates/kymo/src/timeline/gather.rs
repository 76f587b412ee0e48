//! Which columns are gathered: those of values that are at the same place in all events of a class.

use std::ops::Range;

use kymo_model::batch::{ColumnSource, Place, WantedColumn};
use kymo_model::{Columns, EventBlock, Interest, Recording};

use super::RowPlan;
use super::plan::ClassPlan;
use crate::AnyRecording;

/// How the rows of a recording are taken in blocks.
#[derive(Debug, Default)]
pub(super) struct BlockPlan {
    /// By class; those of one group if classes share columns.
    groups: Vec<Group>,
    is_mixed: bool,
    /// Whether a wanted class has columns.
    pub(super) has_columns: bool,
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

/// A column of values at known places.
#[derive(Debug)]
struct Gathered {
    column: usize,
    /// By class, from the first one of the group; `None` if a class does not have it.
    places: Vec<Option<Place>>,
    first_class: usize,
    /// The place in all wanted classes.
    everywhere: Option<Place>,
}

/// Rows of which columns are gathered.
#[derive(Clone, Copy)]
pub(super) struct BlockRows<'b> {
    /// The chunk.
    pub(super) bytes: &'b [u8],
    /// The rows of the last walk are in it, which are those behind the first ones.
    pub(super) block: &'b EventBlock,
    pub(super) first: usize,
}

/// Stands for what is nowhere in a chunk.
const NOWHERE: usize = usize::MAX / 2;

impl BlockRows<'_> {
    pub(super) fn classes(&self) -> &[u32] {
        &self.block.classes[self.first..]
    }

    /// What a place counts from in a row.
    #[inline]
    fn base(&self, row: usize, place: Place) -> usize {
        let Some(before) = place.base.checked_sub(1) else {
            return self.block.bases[row];
        };
        let end = self.block.ends.get(self.block.first_ends[row] + before);
        end.map_or(NOWHERE, |end| (end + place.mask) & !place.mask)
    }
}

impl BlockPlan {
    /// The plan for the wanted classes of a recording.
    pub(super) fn new(
        plan: &RowPlan,
        (recording, source): (usize, &AnyRecording),
        wanted: &[bool],
    ) -> Self {
        let classes = &plan.classes[recording];
        let is_mixed = plan.is_mixed;
        let all = 0..classes.len();
        let groups: Vec<Group> = match is_mixed {
            true => vec![Group::new(source, classes, all, wanted)],
            false => all
                .map(|class| Group::new(source, classes, class..class + 1, wanted))
                .collect(),
        };
        let interests = classes
            .iter()
            .enumerate()
            .map(|(class, of_class)| Interest {
                is_wanted: wanted.get(class).is_some_and(|&wanted| wanted),
                is_decoded: of_class
                    .wanted
                    .iter()
                    .any(|wanted| wanted.source.is_of_fields()),
                is_visited: groups[if is_mixed { 0 } else { class }].is_visited,
                wants_ends: groups[if is_mixed { 0 } else { class }].wants_ends(class),
            });
        let mut of_wanted = classes.iter().zip(wanted).filter(|(_, wanted)| **wanted);
        Self {
            interests: interests.collect(),
            has_columns: of_wanted.any(|(class, _)| !class.wanted.is_empty()),
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
        for gathered in &self.group(class).gathered {
            wanted[gathered.column].source = ColumnSource::Gathered;
        }
        wanted
    }

    /// Appends rows of a class, which are `of_class`, to its gathered columns; or, if classes share columns, all rows.
    /// And to the other columns, unless events have filled them.
    pub(super) fn gather(
        &self,
        class: usize,
        columns: &mut Columns,
        rows: BlockRows<'_>,
        of_class: &[u32],
    ) {
        let group = self.group(class);
        if !group.is_visited {
            let all = if self.is_mixed {
                rows.classes().len()
            } else {
                of_class.len()
            };
            columns.add_rows(all);
        }
        let mut bases = Vec::new();
        for gathered in &group.gathered {
            let bytes = rows.bytes;
            match gathered.everywhere {
                Some(place) if self.is_mixed && place.base == 0 => {
                    columns.gather(gathered.column, bytes, &rows.block.bases, place);
                }
                Some(place) => {
                    bases.clear();
                    match self.is_mixed {
                        true => {
                            bases.extend((0..rows.classes().len()).map(|row| rows.base(row, place)))
                        }
                        false => {
                            let each = of_class.iter().map(|&row| rows.base(row as usize, place));
                            bases.extend(each);
                        }
                    }
                    columns.gather(gathered.column, bytes, &bases, place);
                }
                None => {
                    let classes = rows.classes().iter().enumerate();
                    let places = classes.map(|(row, &class)| {
                        let place = gathered.places[class as usize];
                        (place.map_or(NOWHERE, |place| rows.base(row, place)), place)
                    });
                    columns.gather_each(gathered.column, bytes, places);
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
    /// Whether events of a class have values behind fields of variable size.
    fn wants_ends(&self, class: usize) -> bool {
        self.gathered.iter().any(|gathered| {
            let place = class
                .checked_sub(gathered.first_class)
                .and_then(|at| *gathered.places.get(at)?);
            place.is_some_and(|place| place.base > 0)
        })
    }

    /// The columns of some classes, of which not all may be wanted.
    fn new(
        recording: &AnyRecording,
        classes: &[ClassPlan],
        range: Range<usize>,
        wanted: &[bool],
    ) -> Self {
        let mut group = Self::default();
        let is_wanted = |class: usize| wanted.get(class).is_some_and(|&wanted| wanted);
        let used = || range.clone().filter(|&class| is_wanted(class));
        let columns = classes
            .get(range.start)
            .map_or(0, |class| class.wanted.len());
        group.is_visited = used().any(|class| !classes[class].others.is_empty());
        for column in 0..columns {
            let source = |class: usize| &classes[class].wanted[column].source;
            if used().any(|class| *source(class) == ColumnSource::Shared) {
                continue;
            }
            let place = |class: usize| match source(class) {
                ColumnSource::Fields(picks) => match &picks[..] {
                    [pick] if pick.elements.is_empty() => recording.place(class, pick.field),
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
                first_class: range.start,
            });
        }
        group
    }
}
