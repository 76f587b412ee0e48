//! The definitions of a database, made ready for updates.

use super::Template;
use crate::fault::Error;
use crate::model::validate::LATEST;
use crate::model::{Archive, ArchiveKind, ArchiveLink, Consolidation, Reading, SourceKind};
use crate::rpn::{Node, Program};
use crate::{Database, Text};

/// Definitions in which every link was followed and every limit checked.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Seconds of a data point.
    pub(super) step: u64,
    /// Whether times have no fraction.
    pub(super) whole_seconds: bool,
    /// Whether the file specifies the part of a season that is smoothed over.
    pub(super) reports_window: bool,
    pub(super) sources: Vec<Source>,
    pub(super) archives: Vec<Ring>,
    /// Whether some archive does more than consolidate, so that archives look at each other.
    pub(super) predicts: bool,
    /// Readings of all data sources that are measured.
    pub(super) everything: Template,
    /// The names of the data sources, and their places in the order of these.
    pub(super) names: Vec<Text>,
    pub(super) by_name: Vec<usize>,
}

/// Where the values of a data source come from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Measured(Meter),
    Computed(Program),
}

/// What readings of a data source are, and what they may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    pub(super) reading: Reading,
    /// The longest time between readings.
    pub(super) heartbeat: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

/// An archive.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    pub(super) rows: u64,
    pub(super) points: u64,
    pub(super) role: Role,
}

/// What an archive does with data points.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    Consolidate {
        function: Consolidation,
        xff: f64,
    },
    Predict {
        adaption: Adaption,
        seasonal: usize,
    },
    Season {
        /// Of deviations, and not of values.
        deviation: bool,
        gamma: f64,
        window: f64,
        smooth_row: u64,
        links: Links,
    },
    PredictDeviation {
        deviations: usize,
    },
    Fail {
        delta_positive: f64,
        delta_negative: f64,
        window: usize,
        threshold: u64,
        deviations: usize,
        links: Links,
    },
}

/// How predictions follow what happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Adaption {
    pub(super) multiplicative: bool,
    pub(super) alpha: f64,
    pub(super) beta: f64,
}

/// The archives that make a prediction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    /// That of predictions.
    pub(super) predictions: usize,
    /// That of coefficients.
    pub(super) seasonal: usize,
    pub(super) adaption: Adaption,
}

impl Plan {
    /// # Errors
    ///
    /// Definitions that no update can follow.
    pub(super) fn new(database: &Database) -> Result<Self, Error> {
        database
            .check_shape()
            .map_err(|shape| Error::new(shape.what, None, shape.found, shape.expected))?;
        if database.step > LATEST as u64 {
            let expected = format!("at most {LATEST} s");
            return Err(Error::new("step", None, database.step, expected));
        }
        let sources: Vec<Source> = database
            .sources
            .iter()
            .enumerate()
            .map(|(index, source)| Source::new(index, &source.kind))
            .collect::<Result<_, _>>()?;
        let archives = database.archives.iter().enumerate();
        let archives: Vec<Ring> = archives
            .map(|(index, archive)| Ring::new(database, index, archive))
            .collect::<Result<_, _>>()?;
        let names = database.sources.iter().map(|source| source.name.clone());
        let names: Vec<Text> = names.collect();
        let mut by_name: Vec<usize> = (0..names.len()).collect();
        by_name.sort_by_key(|&place| &names[place]);
        let is_measured = |index: &usize| matches!(sources[*index], Source::Measured(_));
        let measured = (0..sources.len()).filter(is_measured).collect();
        let consolidates = |ring: &Ring| matches!(ring.role, Role::Consolidate { .. });
        Ok(Self {
            step: database.step,
            whole_seconds: database.version < 3,
            reports_window: database.version >= 4,
            everything: Template::new(measured, sources.len()),
            names,
            by_name,
            sources,
            predicts: !archives.iter().all(consolidates),
            archives,
        })
    }
}

impl Source {
    fn new(index: usize, kind: &SourceKind) -> Result<Self, Error> {
        match kind {
            SourceKind::Measured {
                reading,
                heartbeat,
                min,
                max,
            } => Ok(Self::Measured(Meter {
                reading: *reading,
                heartbeat: *heartbeat as f64,
                min: min.to_f64(),
                max: max.to_f64(),
            })),
            SourceKind::Compute(program) => {
                // What needs a series fails when values arrive, and not here: readers of old files
                // must not be kept from the other archives.
                let place = program.nodes.iter().find_map(|node| match node {
                    Node::Variable(place) if *place as usize >= index => Some(place),
                    _ => None,
                });
                match place {
                    Some(place) => {
                        let field = format!("expression of data source {index}");
                        let found = format!("data source {place}");
                        Err(Error::new(field, None, found, "one before its own"))
                    }
                    None => Ok(Self::Computed(program.clone())),
                }
            }
        }
    }
}

impl Ring {
    fn new(database: &Database, index: usize, archive: &Archive) -> Result<Self, Error> {
        let field = || format!("points per row of archive {index}");
        let points = archive.points_per_row;
        if database.row_seconds(index).is_none() {
            return Err(Error::new(
                field(),
                None,
                points,
                "a row of less than 2^64 s",
            ));
        }
        let role = Role::new(database, index, archive)?;
        if points != 1 && !matches!(role, Role::Consolidate { .. }) {
            return Err(Error::new(field(), None, points, "1"));
        }
        Ok(Self {
            rows: archive.rows,
            points,
            role,
        })
    }
}

impl Role {
    fn new(database: &Database, index: usize, archive: &Archive) -> Result<Self, Error> {
        let follow = Follow { database, index };
        Ok(match archive.kind {
            ArchiveKind::Consolidated { function, xff } => Self::Consolidate {
                function,
                xff: xff.to_f64(),
            },
            ArchiveKind::HwPredict { .. } => {
                let links = follow.predictions(index)?;
                Self::Predict {
                    adaption: links.adaption,
                    seasonal: links.seasonal,
                }
            }
            ArchiveKind::Seasonal {
                deviation,
                gamma,
                smoothing_window,
                smooth_row,
                predictions,
            } => Self::Season {
                deviation,
                gamma: gamma.to_f64(),
                window: smoothing_window.to_f64(),
                smooth_row,
                links: follow.predictions(follow.link(predictions)?)?,
            },
            ArchiveKind::DevPredict { deviations } => Self::PredictDeviation {
                deviations: follow.deviations(deviations)?.0,
            },
            ArchiveKind::Failures {
                delta_positive,
                delta_negative,
                window,
                threshold,
                deviations,
            } => {
                let most = crate::model::Scratch::HISTORY;
                let window = usize::try_from(window)
                    .ok()
                    .filter(|window| (1..=most).contains(window))
                    .ok_or_else(|| {
                        let field = format!("window of archive {index}");
                        Error::new(field, None, window, format!("1 to {most}"))
                    })?;
                let (deviations, links) = follow.deviations(deviations)?;
                Self::Fail {
                    delta_positive: delta_positive.to_f64(),
                    delta_negative: delta_negative.to_f64(),
                    window,
                    threshold,
                    deviations,
                    links,
                }
            }
        })
    }
}

/// Follows the links of an archive.
struct Follow<'a> {
    database: &'a Database,
    index: usize,
}

impl Follow<'_> {
    fn link(&self, link: ArchiveLink) -> Result<usize, Error> {
        link.index()
            .filter(|place| *place < self.database.archives.len())
            .ok_or_else(|| self.error(link.0, "the number of an archive"))
    }

    fn error(&self, found: impl std::fmt::Display, expected: &str) -> Error {
        let field = format!("archive that archive {} depends on", self.index);
        Error::new(field, None, found, expected)
    }

    fn predictions(&self, predictions: usize) -> Result<Links, Error> {
        let kind = &self.database.archives[predictions].kind;
        let ArchiveKind::HwPredict {
            multiplicative,
            alpha,
            beta,
            seasonal,
            ..
        } = *kind
        else {
            return Err(self.error(kind.name(), "predictions"));
        };
        let seasonal = self.link(seasonal)?;
        let kind = &self.database.archives[seasonal].kind;
        if !matches!(
            kind,
            ArchiveKind::Seasonal {
                deviation: false,
                ..
            }
        ) {
            return Err(self.error(kind.name(), "SEASONAL"));
        }
        Ok(Links {
            predictions,
            seasonal,
            adaption: Adaption {
                multiplicative,
                alpha: alpha.to_f64(),
                beta: beta.to_f64(),
            },
        })
    }

    fn deviations(&self, link: ArchiveLink) -> Result<(usize, Links), Error> {
        let place = self.link(link)?;
        match &self.database.archives[place].kind {
            ArchiveKind::Seasonal {
                deviation: true,
                predictions,
                ..
            } => Ok((place, self.predictions(self.link(*predictions)?)?)),
            other => Err(self.error(other.name(), "DEVSEASONAL")),
        }
    }
}
