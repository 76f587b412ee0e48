//! Shows performance records in the browser.
//!
//! A [`Server`] listens on this machine and serves a page (`web/`) that draws a [`Scene`]: recordings on one time
//! line. The page asks for what it shows and keeps little: [tiles](wire) of all visible tracks, slices, events where
//! there are few, and pages of the event table. What a request may ask, [`Api`] decides; who is answered at all,
//! [`guard`].
//!
//! ```no_run
//! use kymo_view::{Api, Scene, SceneOptions, Server, ServerOptions};
//!
//! let opened = kymo::open::open(&["trace/".into()], &Default::default());
//! let scene = Scene::new(opened.recordings, SceneOptions::default());
//! let server = Server::bind(&ServerOptions::default())?;
//! println!("{}", server.address());
//! server.run(Api::new(scene));
//! # Ok::<(), kymo_view::ServerError>(())
//! ```

mod ahead;
mod analyses;
mod api;
pub mod assets;
mod bundle;
mod contents;
mod density;
mod events;
mod export;
mod flows;
mod gaps;
pub mod guard;
mod jobs;
mod keep;
mod lens;
mod live;
mod matches;
mod notices;
mod outwards;
mod overview;
mod panels;
mod place;
pub mod request;
mod save;
mod scene;
mod search;
mod server;
mod slices;
mod sql;
mod stats;
mod text;
mod tracks;
pub mod wire;

#[cfg(test)]
mod tests;

pub use api::{Api, CommandWords};
pub use export::{ExportError, ExportOptions, Exported};
pub use keep::Keep;
pub use live::{Open, Opened, Reopen};
pub use save::{Save, Saving};
pub use scene::{Scene, SceneOptions};
pub use server::{Server, ServerError, ServerOptions};
pub use sql::{Sql, SqlRows};
