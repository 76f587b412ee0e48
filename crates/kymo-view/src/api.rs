//! What the page may ask.
//!
//! Each request is JSON, each answer JSON but for [tiles](crate::wire). Times are strings of nanoseconds, since
//! browsers' numbers have 53 bits; offsets from a time that the request names are numbers.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kymo_model::Recording;
use kymo_text::base64;
use serde_json::{Value, json};

use crate::events::Cursor;
use crate::flows::Flows;
use crate::jobs::{Job, Jobs};
use crate::keep::Keep;
use crate::matches::Matches;
use crate::save::{Save, Saving};
use crate::scene::Scene;
use crate::search::chosen;
use crate::server::Answer;
use crate::slices::Slice;
use crate::sql::{self, Sql};
use crate::wire::{TILE, put_head, put_track};

/// Tracks of one request at most.
const MOST_TRACKS: usize = 4096;

/// Tiles of one request at most.
const MOST_TILES: u64 = 16;

/// The width of the picture that a page draws first, in pixels, and the tracks that it has tiles of then: about as many
/// as are in sight.
const FIRST_WIDTH: i128 = 1600;
const FIRST_TRACKS: usize = 40;

/// Rows of a page at most, and events that are drawn one by one.
const MOST_LINES: u64 = 1000;
const MOST_FEW: u64 = 4000;

/// Columns of a density.
pub(crate) const MOST_COLUMNS: u64 = 4096;

/// Answers the page.
#[derive(Debug)]
pub struct Api {
    pub(crate) scene: Arc<Scene>,
    pub(crate) jobs: Arc<Jobs>,
    keep: Arc<Keep>,
    /// Found when they are asked for first.
    pub(crate) flows: OnceLock<Flows>,
    save: Arc<Save>,
    sql: Arc<Sql>,
    words: Arc<Mutex<CommandWords>>,
}

/// Words of the command line that shows the recordings: other commands that the page copies need them, too.
#[derive(Clone, Debug, Default)]
pub struct CommandWords {
    /// Options that say how recordings are opened.
    pub input: Vec<String>,
    /// Options that choose events.
    pub selection: Vec<String>,
    /// Options that name addresses.
    pub symbols: Vec<String>,
    /// Where the recordings are.
    pub paths: Vec<String>,
}

pub(crate) type Result<T, E = String> = std::result::Result<T, E>;

impl Api {
    /// Answers about a scene.
    pub fn new(scene: Arc<Scene>) -> Self {
        Self {
            scene,
            jobs: Arc::default(),
            keep: Arc::default(),
            flows: OnceLock::new(),
            save: Arc::default(),
            sql: Arc::default(),
            words: Arc::default(),
        }
    }

    /// The same, which converts what the page saves.
    #[must_use]
    pub fn saving(self, save: Save) -> Self {
        Self {
            save: Arc::new(save),
            ..self
        }
    }

    /// The same, which answers SQL.
    #[must_use]
    pub fn querying(self, sql: Sql) -> Self {
        Self {
            sql: Arc::new(sql),
            ..self
        }
    }

    /// The same, which was started by a command with these words.
    #[must_use]
    pub fn commanded(self, words: CommandWords) -> Self {
        *self.words() = words;
        self
    }

    fn words(&self) -> MutexGuard<'_, CommandWords> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another path is shown, too.
    pub(crate) fn add_path(&self, path: &str) {
        self.words().paths.push(path.into());
    }

    /// The words of the command line.
    fn command(&self) -> Value {
        let words = self.words();
        json!({"input": words.input, "selection": words.selection, "symbols": words.symbols, "paths": words.paths})
    }

    /// The same, which keeps snapshots and notes.
    #[must_use]
    pub fn keeping(self, keep: Keep) -> Self {
        Self {
            keep: Arc::new(keep),
            ..self
        }
    }

    /// What the page brings along, so that it need not ask for it first: the scene, and what is kept, if that can be
    /// read.
    pub(crate) fn first(&self) -> Value {
        let keep = self.keep.answer(&json!({})).ok();
        json!({"scene": self.scene(&Value::Null), "keep": keep, "tiles": self.first_tiles()})
    }

    /// The tiles of the first tracks, as a page asks for them that shows all of the time: with the request that they
    /// answer. A page of another width draws them until it has its own.
    fn first_tiles(&self) -> Option<Value> {
        let (begin, end) = self.scene.range()?;
        // As `fitAll` and `tileRange` of the page have it.
        let (begin, end) = (i128::from(begin), i128::from(end));
        let room = ((end - begin) / 50).max(500);
        let span = end - begin + 2 * room;
        let shift = (span / FIRST_WIDTH).max(1).ilog2().min(53);
        let tile = |time: i128| time.div_euclid(i128::from(TILE) << shift);
        let first = tile(begin - room - (1 << shift));
        let count = tile(end + room) - first + 1;
        let shown = self.scene.state();
        let tracks = shown.shown.iter().map(|track| track.number);
        let tracks: Vec<u32> = tracks.take(FIRST_TRACKS).collect();
        drop(shown);
        let count = count.min(MOST_TILES.into()) as u64;
        let request =
            json!({"shift": shift, "first": first.to_string(), "count": count, "tracks": tracks});
        let tiles = self.tiles(&request).ok()?;
        Some(json!({"request": request, "tiles": base64::encode(&tiles)}))
    }

    /// The snapshots and notes.
    pub(crate) fn kept(&self) -> Value {
        let answer = self.keep.answer(&json!({}));
        answer.map_or(Value::Null, |mut answer| answer["kept"].take())
    }

    /// The same about another scene.
    pub(crate) fn with_scene(&self, scene: Arc<Scene>) -> Self {
        Self {
            scene,
            jobs: Arc::clone(&self.jobs),
            keep: Arc::clone(&self.keep),
            flows: OnceLock::new(),
            save: Arc::clone(&self.save),
            sql: Arc::clone(&self.sql),
            words: Arc::clone(&self.words),
        }
    }

    pub(crate) fn answer(&self, name: &str, body: &[u8]) -> Answer {
        let request: Value = match serde_json::from_slice(body) {
            Ok(request) => request,
            Err(error) => return Answer::problem(&format!("the request is not JSON: {error}")),
        };
        let answer = match name {
            "scene" => Ok(self.scene(&request)),
            "tiles" => {
                return self
                    .tiles(&request)
                    .map_or_else(|error| Answer::problem(&error), Answer::binary);
            }
            "save" => {
                return self
                    .save(&request)
                    .map_or_else(|error| Answer::problem(&error), Answer::binary);
            }
            "fingerprints" => Ok(self.fingerprints()),
            "command" => Ok(self.command()),
            "schema" => self.schema(&request),
            "density" => self.density(&request),
            "slices" => self.slices(&request),
            "few" => self.few(&request),
            "event" => self.event(&request),
            "page" => self.page(&request),
            "search" => self.search(&request),
            "found" => self.found(&request),
            "next" => self.next(&request),
            "stats" => self.stats(&request),
            "analysis" => self.analysis(&request),
            "sql" => self.sql(&request),
            "lens" => self.lens(&request),
            "flows" => self.flows(&request),
            "around" => self.around(&request),
            "order" => self.order(&request),
            "gaps" => self.gaps(&request),
            "describe" => self.describe(&request),
            "keep" => self.keep.answer(&request),
            "stop" => number(&request, "job").map(|number| {
                self.jobs.stop(number);
                json!({})
            }),
            _ => return Answer::status(404),
        };
        match answer {
            Ok(value) => Answer::json(&value),
            Err(error) => Answer::problem(&error),
        }
    }

    pub(crate) fn job(&self, request: &Value) -> Result<Arc<Job>> {
        let number = number(request, "job")?;
        self.jobs
            .get(number)
            .ok_or_else(|| "this search has ended: search again".to_string())
    }

    /// Tiles: what happened on tracks in the spans of a grid.
    fn tiles(&self, request: &Value) -> Result<Vec<u8>> {
        let shift = number(request, "shift")?;
        let count = number(request, "count")?;
        if shift > 53 || !(1..=MOST_TILES).contains(&count) {
            return Err(format!("`shift` is at most 53, `count` 1 to {MOST_TILES}"));
        }
        let first = i128::from(time(request, "first")?);
        let length = i128::from(TILE) << shift;
        let clamp = |time: i128| time.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let (begin, end) = (first * length, (first + i128::from(count)) * length - 1);
        if end < i64::MIN.into() || begin > i64::MAX.into() {
            return Err("the tiles are beyond all times".into());
        }
        let found = match request["job"].as_u64() {
            Some(_) => Some(self.job(request)?),
            None => None,
        };
        let found = found.as_ref().and_then(|job| job.matches.as_ref());
        let tracks = tracks(request)?;
        let columns = (count * TILE / 2) as usize;
        let (grid, tracks) = self
            .scene
            .bins(found, &tracks, clamp(begin), clamp(end), columns);
        let mut out = Vec::new();
        put_head(self.scene.state().generation, &grid, tracks.len(), &mut out);
        for track in tracks {
            put_track(&track, &grid, &mut out);
        }
        self.scene.is_seen.store(true, Ordering::Relaxed);
        Ok(out)
    }

    /// Starts a query in SQL, or reports whether its rows are there.
    pub(crate) fn sql(&self, request: &Value) -> Result<Value> {
        let job = match request.get("job") {
            Some(_) => self.job(request)?,
            None => {
                let text = request["text"].as_str().ok_or("`text` is not a string")?;
                sql::start(&self.jobs, &self.sql, text)?
            }
        };
        match job.answer.get() {
            Some(Ok(answer)) => Ok(json!({"job": job.number, "done": true, "answer": answer})),
            Some(Err(problem)) => Err(problem.clone()),
            None if job.is_done() => Err("there is no thread for the query".into()),
            None => Ok(json!({"job": job.number, "done": false})),
        }
    }

    /// A range in another format, as bytes of a file.
    fn save(&self, request: &Value) -> Result<Vec<u8>> {
        let (begin, end) = range(request)?;
        let format = request["format"]
            .as_str()
            .ok_or("`format` is not a string")?;
        let (first, last) = self
            .scene
            .range()
            .ok_or("there are no events with a time")?;
        if end < first || last < begin {
            return Err("there are no events in this range".into());
        }
        // A plain name: it becomes part of paths where the archive is extracted.
        let name = request["name"].as_str().unwrap_or_default();
        let is_plain = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
        let name: String = name
            .chars()
            .filter(|&char| is_plain(char))
            .take(100)
            .collect();
        // Not more than what is shown.
        self.save.bytes(&Saving {
            format: format.to_string(),
            begin: begin.max(first),
            end: end.min(last),
            condition: self.given_condition(request)?,
            name: match name.trim_start_matches('.') {
                "" => "saved".into(),
                name => name.into(),
            },
        })
    }

    /// The slices and states of tracks.
    fn slices(&self, request: &Value) -> Result<Value> {
        let (begin, end) = range(request)?;
        let columns = number(request, "width")?.clamp(1, MOST_COLUMNS);
        let pixel = (end.abs_diff(begin) / columns).max(1);
        let lens = match request["job"].as_u64() {
            Some(_) => Some(self.job(request)?),
            None => None,
        };
        let lens = lens.as_ref().and_then(|job| job.matches.as_ref());
        Ok(self.drawn_slices(&tracks(request)?, (begin, end), pixel, lens))
    }

    /// The slices and states of tracks at `pixel` nanoseconds per pixel; only those that a lens shows.
    pub(crate) fn drawn_slices(
        &self,
        tracks: &[u32],
        (begin, end): (i64, i64),
        pixel: u64,
        lens: Option<&Matches>,
    ) -> Value {
        let slices = Arc::clone(&self.scene.state().slices);
        let filter = self.scene.wanted.as_ref();
        let mut names: BTreeMap<u32, &str> = BTreeMap::new();
        let mut answer = Vec::new();
        for &track in tracks {
            // The rows of a lens may have numbers of values as their classes.
            let wants = |slice: &Slice| match (lens, filter) {
                (Some(found), _) => {
                    let mut found = found.lock();
                    !found.between(track, slice.begin, slice.begin).is_empty()
                }
                (None, Some(found)) => {
                    let mut found = found.lock();
                    let at = found.between(track, slice.begin, slice.begin);
                    at.iter().any(|row| row.class == slice.class)
                }
                (None, None) => true,
            };
            let drawn = slices.draw(track, (begin, end), pixel, wants);
            let drawn: Vec<Value> = drawn
                .iter()
                .map(|drawn| {
                    let slice = drawn.slice;
                    names.insert(slice.name, &slices.names[slice.name as usize]);
                    let from = (i128::from(slice.begin) - i128::from(begin)) as f64;
                    json!([
                        slice.depth,
                        from,
                        slice.end.abs_diff(slice.begin),
                        slice.name,
                        drawn.count,
                        u8::from(slice.is_open),
                        lens.and_then(|found| {
                            let mut found = found.lock();
                            let at = found.between(track, slice.begin, slice.begin);
                            at.first().map(|row| row.class)
                        })
                    ])
                })
                .collect();
            if !drawn.is_empty() {
                answer.push(json!({"track": track, "slices": drawn}));
            }
        }
        json!({"names": names, "tracks": answer})
    }

    /// Events one by one, where there are few.
    fn few(&self, request: &Value) -> Result<Value> {
        let (begin, end) = range(request)?;
        let limit = number(request, "limit")?.clamp(1, MOST_FEW);
        let condition = self.given_condition(request)?;
        let tracks = tracks(request)?;
        let few = self
            .scene
            .few(&tracks, (begin, end), limit, condition.as_deref());
        let events = few.map_err(|error| error.to_string())?;
        let events = events.map(|events| {
            let event = |track: crate::events::OnTrack| {
                json!([
                    track.track,
                    track.time.abs_diff(begin),
                    track.recording,
                    track.class,
                    track.label
                ])
            };
            events.into_iter().map(event).collect::<Vec<_>>()
        });
        Ok(json!({"events": events}))
    }

    /// An event of a track: at a time, or the next one or the one before.
    fn event(&self, request: &Value) -> Result<Value> {
        let track =
            u32::try_from(number(request, "track")?).map_err(|_| "`track` is not a track")?;
        let from = time(request, "time")?;
        let step = request["step"].as_i64().unwrap_or(0);
        let nth = request["nth"].as_u64();
        let problem = |error: kymo::timeline::QueryError| error.to_string();
        let is_back = step < 0;
        let mut at = None;
        if let (Some(nth), true) = (nth, step != 0) {
            // Others of the same time come first.
            let other = nth.checked_add_signed(step);
            if let Some(other) = other {
                let place = self.scene.place_on(track, from, other).map_err(problem)?;
                at = place.map(|(cursor, _)| (cursor, other));
            }
        }
        if at.is_none() {
            let Some(time) = self.scene.time_on(track, from, is_back, step == 0) else {
                return Ok(json!({"event": null}));
            };
            let mut nth = if step == 0 { nth.unwrap_or(0) } else { 0 };
            let mut place = self.scene.place_on(track, time, nth).map_err(problem)?;
            if let (true, Some((_, count))) = (is_back, place) {
                nth = count.saturating_sub(1);
                place = self.scene.place_on(track, time, nth).map_err(problem)?;
            }
            at = place.map(|(cursor, _)| (cursor, nth));
        }
        let Some((cursor, nth)) = at else {
            return Ok(json!({"event": null}));
        };
        let lines = self.scene.page(cursor, false, 1, None).map_err(problem)?;
        Ok(json!({"track": track, "nth": nth, "event": lines.first().map(line)}))
    }

    /// A page of the event table.
    pub(crate) fn page(&self, request: &Value) -> Result<Value> {
        let from = Cursor {
            time: time(request, "time")?,
            skip: request["skip"].as_u64().unwrap_or(0),
        };
        let limit = number(request, "limit")?.clamp(1, MOST_LINES);
        let is_back = request["back"].as_bool().unwrap_or(false);
        let condition = match request.get("text") {
            Some(_) => Some(self.condition(request)?),
            None => None,
        };
        let on = chosen(request)?.map(|tracks| tracks.into_iter().collect::<HashSet<u32>>());
        let page = (self.scene).page_on(on.as_ref(), from, is_back, limit, condition.as_deref());
        let page = page.map_err(|error| error.to_string())?;
        let lines = page.lines.iter().map(|(event, tracks)| {
            let mut shown = line(event);
            shown["tracks"] = json!(tracks);
            shown
        });
        Ok(json!({"lines": lines.collect::<Vec<_>>(), "cut": page.is_cut}))
    }

    /// Starts statistics, or reports their progress.
    fn stats(&self, request: &Value) -> Result<Value> {
        let job = match request.get("job") {
            Some(_) => self.job(request)?,
            None => self
                .jobs
                .stats(&self.scene, range(request)?, tracks(request)?),
        };
        let is_done = job.is_done();
        let stats = job.stats().ok_or("these are not statistics")?;
        let slices = Arc::clone(&self.scene.state().slices);
        let lines: Vec<Value> = stats.lines.iter().map(|((recording, class, track, name), line)| {
            let source = &self.scene.recordings()[*recording];
            let name = match class {
                Some(class) => source.event_classes()[*class as usize].name.as_deref(),
                None => slices.names.get(*name as usize).map(|name| &**name),
            };
            let fields = line.fields.iter().map(|(name, values)| {
                let [p50, p95, p99] = values.percentiles([500, 950, 990]);
                json!({
                    "name": &**name, "count": values.count, "min": values.min, "mean": values.mean(),
                    "deviation": values.deviation(), "p50": p50, "p95": p95, "p99": p99, "max": values.max,
                    "sum": values.sum, "exact": values.is_exact(),
                })
            });
            json!({
                "recording": recording, "slice": class.is_none(), "name": name, "track": track,
                "count": line.count, "fields": fields.collect::<Vec<_>>(),
            })
        }).collect();
        Ok(json!({
            "job": job.number, "done": is_done, "rows": stats.rows, "cut": stats.is_cut, "lines": lines,
        }))
    }
}

pub(crate) fn line(line: &crate::events::Line) -> Value {
    json!({
        "time": line.cursor.time.to_string(),
        "skip": line.cursor.skip,
        "recording": line.recording,
        "class": line.class,
        // As text: the page reads integers of 64 bits, and text that is not UTF-8.
        "json": line.json,
    })
}

pub(crate) fn number(request: &Value, key: &str) -> Result<u64> {
    request[key]
        .as_u64()
        .ok_or_else(|| format!("`{key}` is not a natural number"))
}

pub(crate) fn time(request: &Value, key: &str) -> Result<i64> {
    let text = request[key].as_str();
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| format!("`{key}` is not a string of nanoseconds"))
}

pub(crate) fn range(request: &Value) -> Result<(i64, i64)> {
    let (begin, end) = (time(request, "begin")?, time(request, "end")?);
    match begin <= end {
        true => Ok((begin, end)),
        false => Err("`end` is before `begin`".into()),
    }
}

pub(crate) fn tracks(request: &Value) -> Result<Vec<u32>> {
    let list = request["tracks"]
        .as_array()
        .ok_or("`tracks` is not a list")?;
    if list.len() > MOST_TRACKS {
        return Err(format!("`tracks` has more than {MOST_TRACKS} elements"));
    }
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let numbers: Option<Vec<u32>> = list.iter().map(number).collect();
    numbers.ok_or_else(|| "`tracks` has something that is not a number".into())
}
