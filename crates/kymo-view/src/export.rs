//! The page as one file that needs no server: its files, the tiles, the slices and the events of a range of time.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::ops::ControlFlow;

use kymo::timeline::{Columns, QueryError};
use kymo_model::batch::RowId;
use kymo_model::{EntryKind, Recording, SliceRole};
use kymo_text::base64;
use serde_json::{Value, json};

use crate::api::{Api, line};
use crate::bundle::{Page, data_element};
use crate::events::label;
use crate::flows::Flows;
use crate::scene::TrackBins;
use crate::tracks::Classifier;
use crate::wire::{put_head, put_track};

/// Columns of the coarsest tiles, and by how much the next finer ones have more.
const FIRST_COLUMNS: usize = 1 << 12;
const FINER: usize = 8;

/// Maximum columns, of a track and of all tracks together: the time and memory of an answer grow with these.
const MOST_COLUMNS: usize = 1 << 18;
const MOST_CELLS: usize = 1 << 24;

/// Slices at most; if there are more, narrow ones share a pixel.
const MOST_SLICES: usize = 1 << 17;

/// Stops of all flows at most.
const MOST_FLOW_STOPS: usize = 1 << 17;

/// What a page that stands alone holds.
#[derive(Clone, Copy, Debug)]
pub struct ExportOptions {
    /// About how large the page may become, in bytes: half of it are tiles, half events.
    pub size: usize,
}

/// What was written.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The page.
    pub page: String,
    /// The number of events in it.
    pub events: usize,
    /// Whether these are all events of the range.
    pub is_whole: bool,
}

/// Why a page cannot be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExportError {
    /// There is nothing to show.
    Empty,
    /// The events cannot be read.
    Query(QueryError),
    /// Not even the first event fits into the size: about so many bytes are needed for it.
    TooSmall(usize),
    /// Random numbers are not available.
    Random(io::Error),
}

/// The least bytes of a line.
const LINE: usize = 64;

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there are no events with a time"),
            Self::Query(error) => write!(f, "{error}"),
            Self::TooSmall(needed) => write!(
                f,
                "no event fits into the page: the first one needs a size of {needed} bytes"
            ),
            Self::Random(error) => write!(f, "cannot make a random number: {error}"),
        }
    }
}

impl std::error::Error for ExportError {}

impl Api {
    /// Makes a page that stands alone. Waits until everything is known.
    ///
    /// # Errors
    ///
    /// There is nothing to show, or it cannot be read.
    pub fn export(&self, options: ExportOptions) -> Result<Exported, ExportError> {
        self.scene.wait();
        let range = self.scene.range().ok_or(ExportError::Empty)?;
        let tracks: Vec<u32> = self
            .scene
            .state()
            .shown
            .iter()
            .map(|track| track.number)
            .collect();
        let tiles = self.finest_tiles(&tracks, range, options.size / 2);
        let (events, is_whole) = self
            .events(&tracks, range, options.size / 2)
            .map_err(ExportError::Query)?;
        let count = events.len();
        if count == 0 && !is_whole {
            return Err(ExportError::TooSmall(self.least_size(range)?));
        }
        let data = json!({
            "scene": self.scene(&Value::Null),
            "fingerprints": self.fingerprints()["fingerprints"],
            "begin": range.0.to_string(),
            "end": range.1.to_string(),
            "tiles": base64::encode(&tiles),
            "slices": self.all_slices(&tracks, range),
            "flows": self.all_flows(range),
            "events": events,
            "whole": is_whole,
            "kept": self.kept(),
        });
        let nonce = kymo_io::random::<16>().map_err(ExportError::Random)?;
        Ok(Exported {
            page: page(&data, &base64::encode(&nonce)),
            events: count,
            is_whole,
        })
    }

    /// The size of a page that holds the first event of a range: half of it is for events.
    fn least_size(&self, range: (i64, i64)) -> Result<usize, ExportError> {
        let first = self.scene.lines(range, false, 1, None);
        let first = first.map_err(ExportError::Query)?;
        Ok(first.first().map_or(0, |line| 2 * (line.json.len() + LINE)))
    }

    /// The flows through the events of a page, as far as they lie in its range.
    fn all_flows(&self, (begin, end): (i64, i64)) -> Value {
        let flows = self.flows.get_or_init(|| Flows::new(&self.scene));
        let mut left = MOST_FLOW_STOPS;
        let mut list = Vec::new();
        let mut is_cut = flows.is_cut;
        for flow in flows.all() {
            let stops = flow
                .iter()
                .filter(|stop| (begin..=end).contains(&stop.time));
            let stops: Vec<Value> = stops
                .map(|stop| json!([stop.track, stop.time.to_string()]))
                .collect();
            if stops.len() > left {
                is_cut = true;
                break;
            }
            left -= stops.len();
            if stops.len() > 1 {
                list.push(stops);
            }
        }
        json!({"list": list, "cut": is_cut})
    }

    /// The finest tiles that have room: the page makes coarser ones of them.
    fn finest_tiles(&self, tracks: &[u32], (begin, end): (i64, i64), size: usize) -> Vec<u8> {
        let mut columns = FIRST_COLUMNS;
        let mut best = Vec::new();
        loop {
            let (grid, bins) = self.scene.bins(None, tracks, begin, end, columns);
            let mut out = Vec::new();
            put_head(self.scene.state().generation, &grid, bins.len(), &mut out);
            for track in &bins {
                put_track(track, &grid, &mut out);
            }
            let fits = best.is_empty() || out.len() <= size;
            let is_exact = bins.iter().all(is_exact) || grid.span() == 1;
            if fits {
                best = out;
            }
            columns *= FINER;
            let is_much =
                columns > MOST_COLUMNS || columns.saturating_mul(tracks.len()) > MOST_CELLS;
            if !fits || is_exact || is_much || best.len().saturating_mul(FINER) > size {
                return best;
            }
        }
    }

    fn all_slices(&self, tracks: &[u32], (begin, end): (i64, i64)) -> Value {
        let mut pixel = 1;
        loop {
            let drawn = self.drawn_slices(tracks, (begin, end), pixel, None);
            let lists = drawn["tracks"].as_array();
            let count: usize = lists
                .into_iter()
                .flatten()
                .map(|panel| panel["slices"].as_array().map_or(0, Vec::len))
                .sum();
            let width = end.abs_diff(begin);
            if count <= MOST_SLICES || pixel > width {
                return drawn;
            }
            pixel = match pixel {
                1 => (width >> 20).max(2),
                pixel => pixel.saturating_mul(4),
            };
        }
    }

    /// Events from the beginning of a range on, as long as there is room: each a line of the table, with its tracks
    /// and what it is called there.
    fn events(
        &self,
        tracks: &[u32],
        (begin, end): (i64, i64),
        size: usize,
    ) -> Result<(Vec<Value>, bool), QueryError> {
        let limit = (size / LINE) as u64;
        let mut lines = self.scene.lines((begin, end), false, limit.max(1), None)?;
        let mut is_whole = (lines.len() as u64) < limit;
        let mut left = size;
        let room = lines.iter().position(|line| {
            let length = line.json.len() + LINE;
            let fits = length <= left;
            left = left.saturating_sub(length);
            !fits
        });
        if let Some(room) = room {
            lines.truncate(room);
            is_whole = false;
        }
        let Some(last) = lines.last().map(|line| line.cursor.time) else {
            return Ok((Vec::new(), is_whole));
        };
        let mut order = Vec::new();
        let mut query = self.scene.within((begin, last), None);
        query.limit = Some((lines.len() as u64).saturating_add(self.scene.state().untimed));
        self.scene.timeline.for_each_batch(&query, |batch| {
            order.extend(self.scene.timed(&batch).map(|(_, id, _)| id));
            ControlFlow::Continue(())
        })?;
        // The tracks are found class by class.
        let mut on: HashMap<RowId, Vec<Value>> = HashMap::new();
        on.extend(order.iter().take(lines.len()).map(|&id| (id, Vec::new())));
        let shown: HashSet<u32> = tracks.iter().copied().collect();
        let recordings = self.scene.recordings();
        query.columns = Columns::All;
        let mut classifier = Classifier::new(&self.scene, &mut query)?;
        self.scene.timeline.for_each_batch(&query, |batch| {
            for (row, id, _) in self.scene.timed(&batch) {
                let Some(own) = on.get_mut(&id) else { continue };
                let recording = &recordings[id.recording as usize];
                let is_sample = recording.entry_kind(id.stream as usize) == EntryKind::Sample;
                let name = recording.event_classes()[batch.classes()[row] as usize]
                    .name
                    .as_deref();
                let parts = classifier.parts(&batch, row);
                for part in parts.iter().filter(|part| shown.contains(&part.track)) {
                    // Readings have no name on their track.
                    let is_named = !is_sample && part.value.is_none();
                    let label = is_named.then(|| label(name.unwrap_or("event"), &batch, row));
                    own.push(match part.value {
                        Some(value) => json!([part.track, label, value]),
                        None => json!([part.track, label]),
                    });
                }
            }
            ControlFlow::Continue(())
        })?;
        let events = lines.iter().zip(order).map(|(source, id)| {
            let mut event = line(source);
            event["tracks"] = on.remove(&id).unwrap_or_default().into();
            let role = recordings[source.recording].roles(source.class).slice;
            if matches!(role, SliceRole::Whole(_)) {
                event["slice"] = true.into();
            }
            event
        });
        Ok((events.collect(), is_whole))
    }
}

/// Whether each row has a bin of its own, so that finer tiles say nothing more.
fn is_exact(bins: &TrackBins) -> bool {
    bins.bins.iter().all(|(_, bin)| bin.count == 1)
}

/// The page with its data.
fn page(data: &Value, nonce: &str) -> String {
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data: blob:; base-uri 'none'; \
         form-action 'none'"
    );
    let meta =
        format!("{CHARSET}\n<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">");
    let page = Page::alone(nonce);
    let head = page.head.replacen(CHARSET, &meta, 1);
    [head, page.body, data_element("embedded", data), page.end].concat()
}

/// Where the policy of a page begins.
const CHARSET: &str = "<meta charset=\"utf-8\">";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_stands_alone() {
        assert_eq!(Page::alone("N").head.matches(CHARSET).count(), 1);
        let page = page(&json!({"name": "</script><img src=x>"}), "N");
        assert!(!page.contains("<img"));
        // A name of elements, which is not fetched.
        let page = page.replace("http://www.w3.org/2000/svg", "");
        for own in [
            "src=\"main.js\"",
            "href=\"view.css\"",
            "http://",
            "https://",
        ] {
            assert!(!page.contains(own), "{own}");
        }
        // The data and two scripts.
        assert_eq!(page.matches("</script").count(), 3);
        assert_eq!(page.matches("// main.js\n").count(), 1);
    }
}
