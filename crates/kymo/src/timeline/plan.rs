//! Which columns the events of each class fill, and from which fields.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use kymo_model::batch::{
    self, ColumnSource, ColumnType, DataType, WantedColumn, all_columns, column_type,
};
use kymo_model::{EventClass, FieldId, Pick, Recording, Schema};

use super::{Columns, Query, Shape};
use crate::AnyRecording;
use crate::filter::{self, FieldNames, Fields, FilterError, Source, Wish};

/// The columns of the events of one class.
#[derive(Debug, Default)]
pub(crate) struct ClassPlan {
    /// What its events fill.
    pub(super) wanted: Vec<WantedColumn>,
    /// Columns whose value is not in a field of the event, and where it is.
    pub(super) others: Vec<(usize, Vec<Source>)>,
    /// The same where the value is that of all rows of a chunk, whatever their class if classes share columns.
    pub(super) shared: Vec<(usize, Vec<Source>)>,
    /// The fields that they come from, and those that specify which of their elements are meant; sorted.
    pub(super) fields: OnceLock<Vec<FieldId>>,
    /// Of each value that the class was asked for by name, the columns that may have it.
    positions: Vec<Range<usize>>,
    /// The first of the columns of fields that were [added](RowPlan::with_fields).
    first_added: usize,
    /// Its own schema; that of the whole plan where all classes share one.
    pub(super) schema: Arc<[ColumnType]>,
}

/// The columns of all classes of all recordings.
#[derive(Debug, Default)]
pub(crate) struct RowPlan {
    pub(super) classes: Vec<Vec<ClassPlan>>,
    /// Whether all classes fill the same columns.
    pub(super) is_mixed: bool,
    /// The schema that all share.
    pub(super) schema: Arc<[ColumnType]>,
    /// What describes packets, where fields are asked for by name.
    pub(super) fields: Option<Fields>,
}

impl RowPlan {
    /// The columns that a query asks for. Classes whose names it leaves out have none, and do not affect the types of
    /// others.
    pub(super) fn new(recordings: &[AnyRecording], query: &Query) -> Result<Self, FilterError> {
        let mut plan = Self {
            is_mixed: query.shape == Shape::Mixed,
            ..Self::default()
        };
        let is_wanted = |recording: &AnyRecording, class: usize| {
            query.filter.names_class(&recording.event_classes()[class])
        };
        if let Columns::Chosen {
            columns,
            packet_fields,
        } = &query.columns
        {
            plan.add_chosen(recordings, &query.filter, columns, packet_fields)?;
        } else if let Columns::Named(names) = &query.columns {
            let wish = Wish {
                names,
                required: true,
            };
            let asked = |recording: usize, class: usize| {
                is_wanted(&recordings[recording], class).then(|| vec![0])
            };
            plan.add_named(recordings, &[wish], asked, false)
                .map_err(|(_, error)| error)?;
        } else {
            let has_all = matches!(query.columns, Columns::All);
            let classes = |recording: &AnyRecording| {
                let plan = |class| match has_all && is_wanted(recording, class) {
                    true => ClassPlan::all(recording, class),
                    false => ClassPlan::default(),
                };
                (0..recording.event_classes().len()).map(plan).collect()
            };
            plan.classes = recordings.iter().map(classes).collect();
        }
        if query.binary_texts {
            for (recording, classes) in recordings.iter().zip(&mut plan.classes) {
                for (class, plan) in recording.event_classes().iter().zip(classes) {
                    let all = plan.wanted.iter_mut();
                    all.for_each(|wanted| wanted.make_texts_binary(&class.schema));
                }
            }
        }
        plan.finish();
        Ok(plan)
    }

    /// For each class the values of the wishes of which `asked` gives the positions, in their own types: a
    /// value that may be of several types has a column of each. Integers of more than 64 bits are text.
    ///
    /// # Errors
    ///
    /// No class that is asked has a field of a required wish; with the position of that wish.
    pub(crate) fn of_wishes(
        recordings: &[AnyRecording],
        wishes: &[Wish<'_>],
        asked: impl Fn(usize, usize) -> Option<Vec<usize>>,
    ) -> Result<Self, (usize, FilterError)> {
        let mut plan = Self::default();
        plan.add_named(recordings, wishes, asked, true)?;
        let classes = plan.classes.iter_mut().flatten();
        for wanted in classes.flat_map(|class| &mut class.wanted) {
            wide_as_text(&mut wanted.column);
        }
        plan.finish();
        Ok(plan)
    }

    /// The columns that may have value number `index` of those that a class was asked for: the first one that has
    /// it counts. None if the class does not have it.
    pub(crate) fn columns(&self, recording: usize, class: usize, index: usize) -> Range<usize> {
        let positions = self.classes[recording][class].positions.get(index);
        positions.cloned().unwrap_or_default()
    }

    /// The columns of a class that have what one field holds.
    pub(crate) fn of_fields(&self, recording: usize, class: usize) -> HashMap<FieldId, usize> {
        let columns = self.classes[recording][class].wanted.iter().enumerate();
        let columns = columns.filter_map(|(position, column)| match &column.source {
            ColumnSource::Fields(picks) => match &picks[..] {
                [pick] if *pick == Pick::from(pick.field) => Some((pick.field, position)),
                _ => None,
            },
            _ => None,
        });
        columns.collect()
    }

    /// Adds a column for a field of a class, and returns its position.
    pub(crate) fn add_field(
        &mut self,
        (recording, source): (usize, &AnyRecording),
        class: usize,
        field: FieldId,
    ) -> usize {
        let plan = &mut self.classes[recording][class];
        plan.wanted
            .push(of_field(&source.event_classes()[class].schema, field));
        plan.wanted.len() - 1
    }

    /// The same, and behind these columns one for each of some fields of each class.
    pub(crate) fn with_fields(
        mut self,
        recordings: &[AnyRecording],
        fields: impl Fn(usize, usize) -> Vec<FieldId>,
    ) -> Self {
        self.classes.resize_with(recordings.len(), Vec::new);
        for (number, recording) in recordings.iter().enumerate() {
            let classes = &mut self.classes[number];
            classes.resize_with(recording.event_classes().len(), ClassPlan::default);
            for (class, plan) in classes.iter_mut().enumerate() {
                plan.first_added = plan.wanted.len();
                let schema = &recording.event_classes()[class].schema;
                for field in fields(number, class) {
                    let mut wanted = of_field(schema, field);
                    wide_as_text(&mut wanted.column);
                    plan.wanted.push(wanted);
                }
            }
        }
        self
    }

    /// The first of the columns of the fields that were [added](Self::with_fields) to a class.
    #[inline]
    pub(crate) fn first_added(&self, recording: usize, class: usize) -> usize {
        self.classes[recording][class].first_added
    }

    /// Whether a column of a class has something of a field.
    pub(crate) fn looks_at(
        &self,
        recording: usize,
        source: &AnyRecording,
        class: usize,
        field: FieldId,
    ) -> bool {
        let plan = &self.classes[recording][class];
        let fields = plan.fields.get_or_init(|| {
            let schema = &source.event_classes()[class].schema;
            batch::Columns::new(schema, &plan.wanted).fields()
        });
        fields.binary_search(&field).is_ok()
    }

    /// No columns, to which some may be [added](Self::add_field).
    pub(crate) fn without_columns(recordings: &[AnyRecording]) -> Self {
        let classes = |recording: &AnyRecording| {
            let classes = recording.event_classes().iter();
            classes.map(|_| ClassPlan::default()).collect()
        };
        Self {
            classes: recordings.iter().map(classes).collect(),
            ..Self::default()
        }
    }

    /// Adds those of all columns of the chosen classes that have one of these names, and fields of packets.
    fn add_chosen(
        &mut self,
        recordings: &[AnyRecording],
        filter: &filter::Query,
        columns: &HashSet<Arc<str>>,
        packet_fields: &[Arc<str>],
    ) -> Result<(), FilterError> {
        let chosen = |class: &EventClass| filter.names_class(class);
        if !packet_fields.is_empty() {
            let names: Vec<_> = packet_fields
                .iter()
                .map(|name| format!("packet_context.`{name}`"))
                .collect();
            let names = FieldNames::parse(&names.join(","))?;
            let wish = Wish {
                names: &names,
                required: false,
            };
            let asked = |recording: usize, class: usize| {
                let recording: &AnyRecording = &recordings[recording];
                chosen(&recording.event_classes()[class]).then(|| vec![0])
            };
            self.add_named(recordings, &[wish], asked, false)
                .map_err(|(_, error)| error)?;
        }
        self.classes.resize_with(recordings.len(), Vec::new);
        for (recording, plans) in recordings.iter().zip(&mut self.classes) {
            plans.resize_with(recording.event_classes().len(), ClassPlan::default);
            for (class, plan) in recording.event_classes().iter().zip(plans) {
                if !chosen(class) {
                    continue;
                }
                let all = all_columns(&class.schema);
                let is_taken = |name: &str| all.iter().any(|wanted| *wanted.column.name == *name);
                let others: HashMap<usize, Vec<Source>> = plan.others.drain(..).collect();
                let of_packets = std::mem::take(&mut plan.wanted);
                let is_wanted = |wanted: &&WantedColumn| columns.contains(&wanted.column.name);
                plan.wanted = all.iter().filter(is_wanted).cloned().collect();
                for (position, mut wanted) in of_packets.into_iter().enumerate() {
                    let name = packet_fields
                        .iter()
                        .find(|name| *wanted.column.name == *format!("packet_context.`{name}`"));
                    let sources = others.get(&position);
                    if let (Some(name), Some(sources)) = (name, sources)
                        && !is_taken(name)
                    {
                        wanted.column.name = Arc::clone(name);
                        plan.others.push((plan.wanted.len(), sources.clone()));
                        plan.wanted.push(wanted);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the columns of all classes that are asked for by name.
    fn add_named(
        &mut self,
        recordings: &[AnyRecording],
        wishes: &[Wish<'_>],
        asked: impl Fn(usize, usize) -> Option<Vec<usize>>,
        own_types: bool,
    ) -> Result<(), (usize, FilterError)> {
        let fields = Fields::new(recordings, wishes, &asked)?;
        let names = |wish: usize| wishes[wish].names.iter();
        for (number, recording) in recordings.iter().enumerate() {
            let classes = (0..recording.event_classes().len()).map(|class| {
                let mut plan = ClassPlan::default();
                let asked = asked(number, class).unwrap_or_default();
                for (index, name) in asked.into_iter().flat_map(names).enumerate() {
                    let columns = fields.columns((number, recording), class, index, own_types);
                    let first = plan.wanted.len();
                    plan.positions.push(first..first + columns.len());
                    for (data_type, picks, others) in columns {
                        if !others.is_empty() {
                            plan.others.push((plan.wanted.len(), others));
                        }
                        plan.wanted.push(WantedColumn {
                            column: ColumnType {
                                name: name.into(),
                                data_type,
                            },
                            source: match picks.is_empty() {
                                true => ColumnSource::None,
                                false => ColumnSource::Fields(picks),
                            },
                        });
                    }
                }
                plan
            });
            self.classes.push(classes.collect());
        }
        self.fields = Some(fields);
        Ok(())
    }

    /// Makes the schemas of the columns that the classes have.
    pub(crate) fn finish(&mut self) {
        if !self.is_mixed {
            for class in self.classes.iter_mut().flatten() {
                class.schema = class
                    .wanted
                    .iter()
                    .map(|wanted| wanted.column.clone())
                    .collect();
                (0..class.wanted.len())
                    .for_each(|column| share(std::slice::from_mut(class), column));
            }
            return;
        }
        // In the order in which names are first met.
        let mut types: Vec<ColumnType> = Vec::new();
        let mut places: HashMap<Arc<str>, usize> = HashMap::new();
        for wanted in self
            .classes
            .iter()
            .flatten()
            .flat_map(|class| &class.wanted)
        {
            let ColumnType { name, data_type } = &wanted.column;
            match places.get(name) {
                Some(&place) => {
                    let known = &mut types[place].data_type;
                    *known = known.widest(data_type);
                }
                None => {
                    places.insert(Arc::clone(name), types.len());
                    types.push(wanted.column.clone());
                }
            }
        }
        self.schema = types.into();
        for class in self.classes.iter_mut().flatten() {
            let mut wanted: Vec<_> = self
                .schema
                .iter()
                .map(|column| WantedColumn {
                    column: column.clone(),
                    source: ColumnSource::None,
                })
                .collect();
            let place = |wanted: &WantedColumn| places[&wanted.column.name];
            for (column, _) in &mut class.others {
                *column = place(&class.wanted[*column]);
            }
            for column in class.wanted.drain(..) {
                let to = &mut wanted[place(&column)];
                // What is a compound in one class and something else in another has no value of both.
                let is_compound = matches!(
                    column.column.data_type,
                    DataType::List(_) | DataType::Struct(_)
                );
                if !is_compound || to.column.data_type == column.column.data_type {
                    to.source = column.source;
                }
            }
            class.wanted = wanted;
            class.schema = Arc::clone(&self.schema);
        }
        for classes in &mut self.classes {
            (0..self.schema.len()).for_each(|column| share(classes, column));
        }
    }
}

/// Makes the value of a column one that all rows of a chunk share, if it is: in all of these classes it comes from
/// the same places, which are not in the event.
fn share(classes: &mut [ClassPlan], column: usize) {
    let sources = |class: &ClassPlan| {
        let is_elsewhere = class.wanted[column].source == ColumnSource::None;
        let mut others = class.others.iter().filter(|other| other.0 == column);
        let sources = others
            .next()
            .filter(|_| is_elsewhere && others.next().is_none())?;
        let is_shared = sources.1.iter().all(Source::is_of_chunk);
        is_shared.then(|| sources.1.clone())
    };
    let Some(first) = classes.first().and_then(sources) else {
        return;
    };
    if classes
        .iter()
        .all(|class| sources(class).as_ref() == Some(&first))
    {
        for class in classes {
            class.wanted[column].source = ColumnSource::Shared;
            class.others.retain(|other| other.0 != column);
            class.shared.push((column, first.clone()));
        }
    }
}

/// The fields of a class that have names: those of rows of databases are their data sources.
pub(crate) fn named_fields(class: &EventClass) -> impl Iterator<Item = FieldId> {
    let fields = class.schema.fields().iter().zip(0..);
    fields.filter_map(|(field, position)| field.name.is_some().then_some(FieldId(position)))
}

/// Makes a column of integers of more than 64 bits one of texts, for those who look at single values.
fn wide_as_text(column: &mut ColumnType) {
    if matches!(column.data_type, DataType::FixedBinary(_)) {
        column.data_type = DataType::Text;
    }
}

/// The column of a field.
fn of_field(schema: &Schema, field: FieldId) -> WantedColumn {
    WantedColumn {
        column: ColumnType {
            name: schema.path(field).into(),
            data_type: column_type(schema, field),
        },
        source: ColumnSource::Fields(vec![field.into()]),
    }
}

impl ClassPlan {
    fn all(recording: &AnyRecording, class: usize) -> Self {
        Self {
            wanted: all_columns(&recording.event_classes()[class].schema),
            ..Self::default()
        }
    }
}
