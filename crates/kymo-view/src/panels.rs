//! What the page's panels ask beside events and statistics.

use std::sync::atomic::Ordering;

use kymo::timeline::Columns;
use serde_json::{Value, json};

use crate::analyses::{self, AnalysisQuery};
use crate::api::{Api, Result, number, range, time, tracks};
use crate::events::Cursor;
use crate::flows::{Flows, Stop};
use crate::lens;
use crate::search::chosen;

/// Stops of a flow on either side of a row at most.
const MOST_STOPS: usize = 100;

/// The name of a field is at most so long.
const MOST_NAME: usize = 4096;

impl Api {
    /// Starts an analysis, or reports its progress.
    pub(crate) fn analysis(&self, request: &Value) -> Result<Value> {
        let job = match request.get("job") {
            Some(_) => self.job(request)?,
            None => {
                let query = AnalysisQuery::new(&self.scene, request, range(request)?)?;
                analyses::start(&self.jobs, &self.scene, query)
            }
        };
        match job.answer.get() {
            Some(Ok(answer)) => Ok(json!({"job": job.number, "done": true, "answer": answer})),
            Some(Err(problem)) => Err(problem.clone()),
            None if job.is_done() => Err("there is no thread for the analysis".into()),
            None => {
                let bytes = job.bytes.load(Ordering::Relaxed);
                Ok(json!({"job": job.number, "done": false, "bytes": bytes}))
            }
        }
    }

    /// Starts to find the rows that a condition holds for, with the values of a field as their colours.
    pub(crate) fn lens(&self, request: &Value) -> Result<Value> {
        let condition = self.given_condition(request)?;
        let field = match request["field"].as_str() {
            Some(name) if name.len() > MOST_NAME => {
                return Err(format!("`field` is longer than {MOST_NAME} bytes"));
            }
            Some(name) => {
                Columns::named(&format!("`{}`", name.replace('`', "")))
                    .map_err(|error| error.render("field", false))?;
                Some(name.to_string())
            }
            None => None,
        };
        let job = lens::start(&self.jobs, &self.scene, condition, field);
        Ok(json!({"job": job.number}))
    }

    /// The flows that lead through a row.
    pub(crate) fn flows(&self, request: &Value) -> Result<Value> {
        let stop = Stop {
            time: time(request, "time")?,
            track: u32::try_from(number(request, "track")?)
                .map_err(|_| "`track` is not a track")?,
        };
        if !self.scene.state().is_whole {
            return Ok(json!({"flows": [], "count": null}));
        }
        let flows = self.flows.get_or_init(|| Flows::new(&self.scene));
        let through: Vec<Value> = flows
            .through(stop, MOST_STOPS)
            .into_iter()
            .take(64)
            .map(|flow| flow.iter().map(place).collect())
            .collect();
        Ok(json!({"flows": through, "count": flows.len(), "cut": flows.is_cut}))
    }

    /// The rows of a search around a time, in order.
    pub(crate) fn around(&self, request: &Value) -> Result<Value> {
        let job = self.job(request)?;
        let matches = job.matches.as_ref().ok_or("this is not a search")?;
        let from = time(request, "time")?;
        let mut found = matches.lock();
        let rows = found.around(from, MOST_STOPS);
        let rows = rows.into_iter().map(|(track, row)| {
            place(&Stop {
                time: row.time,
                track,
            })
        });
        Ok(json!({"done": job.is_done(), "stops": rows.collect::<Vec<_>>()}))
    }

    /// The tracks on which a search has found something from a time on, in the order of the first rows there.
    pub(crate) fn order(&self, request: &Value) -> Result<Value> {
        let job = self.job(request)?;
        let matches = job.matches.as_ref().ok_or("this is not a search")?;
        let from = time(request, "time")?;
        let mut found = matches.lock();
        let numbers = chosen(request)?.unwrap_or_else(|| found.tracks().collect());
        let mut first: Vec<(i64, u32)> = numbers
            .into_iter()
            .filter_map(|track| {
                let rows = found.between(track, from, i64::MAX);
                rows.first().map(|row| (row.time, track))
            })
            .collect();
        first.sort_unstable();
        let tracks = first
            .into_iter()
            .map(|(time, track)| place(&Stop { time, track }));
        Ok(json!({"done": job.is_done(), "tracks": tracks.collect::<Vec<_>>()}))
    }

    /// Long times in which nothing happens.
    pub(crate) fn gaps(&self, request: &Value) -> Result<Value> {
        let least = number(request, "least")?.clamp(2, 1000);
        let gaps = self.scene.gaps(&tracks(request)?, least).into_iter();
        let gaps = gaps.map(|(begin, end)| json!([begin.to_string(), end.to_string()]));
        Ok(json!({"gaps": gaps.collect::<Vec<_>>(), "whole": self.scene.state().is_whole}))
    }

    /// Where an event lies, and what its fields are.
    pub(crate) fn describe(&self, request: &Value) -> Result<Value> {
        let at = Cursor {
            time: time(request, "time")?,
            skip: number(request, "skip")?,
        };
        let problem = |error: kymo::timeline::QueryError| error.to_string();
        let described = self.scene.describe(at).map_err(problem)?;
        let track = request["track"].as_u64();
        let track = track.and_then(|track| u32::try_from(track).ok());
        let nth = track.map(|track| self.scene.nth_on(track, at));
        let nth = nth.transpose().map_err(problem)?.flatten();
        Ok(json!({"event": described, "nth": nth}))
    }
}

fn place(stop: &Stop) -> Value {
    json!([stop.track, stop.time.to_string()])
}

#[cfg(test)]
mod tests;
