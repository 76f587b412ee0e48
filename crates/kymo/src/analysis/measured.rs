//! Analyses whose durations a breakdown takes apart.

use super::breakdown::{Breakdown, GroupTable};
use super::events::{Error, EventPattern};
use super::feed::Feed;
use super::run::{Analysis, Coverage, Extra, Options, Question, Role, run_feed};
use super::tracks::TrackBy;
use crate::AnyRecording;
use crate::filter::FieldNames;
use crate::tracks::{SliceKeys, TrackTable};

/// An analysis that adds durations to a breakdown.
pub(super) trait Measured<'w>: Analysis {
    /// Where it adds them.
    fn breakdown(&mut self) -> &mut Breakdown<'w>;

    /// Gets ready for recordings, which may be more than before.
    fn bind(&mut self, _recordings: &[AnyRecording]) {}

    /// There are no more events.
    fn end(&mut self) {}
}

/// What is measured.
pub(super) struct MeasuredQuestion<'q, R> {
    /// Finds what the events of each class are.
    pub(super) roles: R,
    /// The events that begin something.
    pub(super) pattern: Option<&'q EventPattern>,
    pub(super) tracks: &'q TrackBy,
    pub(super) keys: SliceKeys<'q>,
}

/// Makes the analysis of all that a feed has. Returns what was seen, all tracks, and the durations by group if
/// `breakdown` wants a table of them.
pub(super) fn run_measured<'w, A: Measured<'w>, R>(
    feed: &mut dyn Feed,
    question: &MeasuredQuestion<'_, R>,
    options: &Options,
    breakdown: &mut Breakdown<'w>,
    work: &mut A,
) -> Result<(Coverage, TrackTable, Option<GroupTable>), Error>
where
    R: Fn(&[AnyRecording]) -> Result<Vec<Vec<Option<Role>>>, Error>,
{
    let by = breakdown.by().clone();
    let recordings = feed.recordings();
    let roles = (question.roles)(recordings).unwrap_or_default();
    let more = breakdown.find_fields(recordings, &roles);
    let more: Vec<&FieldNames> = more.iter().collect();
    let extra = Extra {
        more: &more,
        ..Breakdown::extra(&by)
    };
    *work.breakdown() = std::mem::take(breakdown);
    let ask = |recordings: &[AnyRecording], work: &mut A| {
        let roles = (question.roles)(recordings)?;
        work.bind(recordings);
        work.breakdown().bind(recordings, question.pattern);
        Ok(Question {
            roles,
            tracks: question.tracks,
            keys: question.keys,
        })
    };
    let (coverage, known) = run_feed(feed, ask, &extra, options, work)?;
    let recordings = feed.recordings();
    work.end();
    *breakdown = std::mem::take(work.breakdown());
    breakdown.end(&known, recordings);
    let groups = breakdown.rows(&known, recordings);
    Ok((coverage, known, groups))
}
