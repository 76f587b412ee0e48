//! A connection, and what is asked over it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::connection::Connection;
use super::{Error, LOOK_PAUSE, NAP, REPLY_PATIENCE, nap};
use crate::message::Session;
use crate::url::{Target, Url};
use crate::viewer::{Viewer, ViewerEvent};

/// A connection and what is asked over it.
pub(super) struct Link {
    pub(super) url: Url,
    connection: Connection,
    pub(super) viewer: Viewer,
    pub(super) begun: Instant,
    /// When the request was sent that waits for its reply.
    asked: Instant,
}

/// What a step has brought.
pub(super) enum Step {
    /// Something, or a request was sent.
    Busy,
    /// Nothing is due.
    Idle,
}

impl Link {
    pub(super) fn new(url: &Url, viewer: Viewer, stop: &AtomicBool) -> Result<Self, Error> {
        let connection = Connection::new(url, stop).map_err(|error| Error::Connect {
            url: url.clone(),
            error,
        })?;
        Ok(Self {
            url: url.clone(),
            connection,
            viewer,
            begun: Instant::now(),
            asked: Instant::now(),
        })
    }

    /// Sends what is due, and takes what has come, waiting for a nap at most.
    pub(super) fn step(&mut self) -> Result<Step, Error> {
        let lost = |url: &Url, error| Error::Lost {
            url: url.clone(),
            error,
        };
        if let Some(request) = self.viewer.next_request(self.begun.elapsed()) {
            self.connection
                .send(&request)
                .map_err(|error| lost(&self.url, error))?;
            self.asked = Instant::now();
        }
        if !self.viewer.is_waiting() {
            return Ok(Step::Idle);
        }
        match self.connection.receive(NAP) {
            Ok(Some(bytes)) => {
                let now = self.begun.elapsed();
                self.viewer
                    .receive(now, bytes)
                    .map_err(|error| Error::Protocol {
                        url: self.url.clone(),
                        error,
                    })?;
            }
            Ok(None) => {}
            Err(error) => return Err(lost(&self.url, error)),
        }
        if self.viewer.is_waiting() && self.asked.elapsed() > REPLY_PATIENCE {
            return Err(lost(&self.url, io::ErrorKind::TimedOut.into()));
        }
        Ok(Step::Busy)
    }

    /// Lists sessions.
    pub(super) fn sessions(
        &mut self,
        until: Option<Instant>,
        stop: &AtomicBool,
    ) -> Result<Vec<Session>, Error> {
        self.viewer.list();
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Err(Error::Late {
                    url: self.url.clone(),
                });
            }
            self.step()?;
            while let Some(event) = self.viewer.next_event() {
                if let ViewerEvent::Sessions(sessions) = event {
                    return Ok(sessions);
                }
            }
        }
    }

    /// Attaches the sessions of the URL; with `waits`, when they are there.
    pub(super) fn attach(
        &mut self,
        waits: bool,
        until: Option<Instant>,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        loop {
            let sessions = self.sessions(until, stop)?;
            let is_wanted = |session: &&Session| match &self.url.target {
                Some(Target {
                    host,
                    session: name,
                }) => session.host == *host && session.name == *name,
                None => false,
            };
            let wanted: Vec<u64> = sessions.iter().filter(is_wanted).map(|it| it.id).collect();
            if !wanted.is_empty() {
                wanted.into_iter().for_each(|id| self.viewer.attach(id));
                return Ok(());
            }
            if !waits {
                return Err(Error::NoSession {
                    url: self.url.clone(),
                    sessions,
                });
            }
            nap(LOOK_PAUSE, stop);
        }
    }
}
