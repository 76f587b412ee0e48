//! `kymo serve`: a daemon that takes metrics and keeps them in round-robin databases.
//!
//! * [`store`]: databases by their paths, what is not yet in their files, threads that write it;
//! * [`journal`]: what was acknowledged, for when the program is killed;
//! * [`listen`]: sockets, and a thread for each connection; [`lines`]: what is read from these;
//! * [`rrdcached`]: rrdcached's protocol;
//! * [`collectd`]: collectd's clients: [`network`] receives datagrams, [`plain`] serves the text protocol;
//!   [`ingest`] gives their lists to databases, defined as in [`definitions`], and to files ([`csv`]);
//!   [`forward`] sends them on; [`conf`] reads a `collectd.conf`;
//! * [`taking`]: Graphite, StatsD, InfluxDB, Prometheus and OTLP: listeners, and rules by which series get paths
//!   and archives; [`series_index`] keeps the labels of their databases;
//! * [`expire`]: databases of series that have stopped, removed by rule;
//! * [`http`]: a small server of HTTP; `tokens`: who may ask there;
//! * [`query`]: Prometheus' HTTP API and Graphite's, over all databases;
//! * [`metrics`]: what the daemon reports about itself, counted by `per_listener`; [`log`]: messages for people;
//! * [`config`], [`daemon`]: its configuration, and its lifecycle.
//!
//! Sources are modules beside these: each gives a [`Store`](store::Store) what it receives. Threads are
//! those of the standard library, and sockets block: a slow client holds up its own thread only.

mod activation;
pub mod collectd;
pub mod conf;
pub mod config;
mod creation;
pub mod csv;
pub mod daemon;
pub mod definitions;
pub mod expire;
pub mod forward;
pub mod http;
pub mod ingest;
mod instance;
pub mod journal;
pub mod lines;
pub mod listen;
pub mod log;
mod log_limiter;
pub mod metrics;
pub mod network;
mod per_listener;
pub mod plain;
pub mod query;
pub mod rrdcached;
mod senders;
mod sequence_cache;
pub mod series_index;
pub mod store;
mod sync;
pub mod taking;
mod tokens;

#[cfg(feature = "tls")]
pub use listen::tls::Connector as TlsConnector;
