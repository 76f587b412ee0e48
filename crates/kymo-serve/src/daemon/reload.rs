//! Another configuration, while clients stay connected.

use std::sync::Arc;

use kymo_io::net::Address;
use kymo_io::reason;
use sd_notify::NotifyState;

use super::sockets::encrypt;
use super::{Bound, Configure, Daemon, check_files};
use crate::config::Config;
use crate::log::Level;

impl Daemon {
    /// Reads the configuration again, and does what has changed.
    pub(super) fn reload(&mut self, configure: Configure<'_>) {
        self.notify(&[
            NotifyState::Reloading,
            NotifyState::monotonic_usec_now().unwrap_or(NotifyState::Status("reloading")),
        ]);
        let taken = configure().and_then(|config| self.take(config).map_err(|it| vec![it]));
        match taken {
            Err(problems) => {
                let end = "the configuration was not applied: all stays as it was";
                let lines = problems.iter().map(String::as_str).chain([end]);
                lines.for_each(|line| (self.log)(Level::Error, line));
            }
            Ok(()) => (self.log)(Level::Info, "the configuration was read again"),
        }
        self.notify(&[NotifyState::Ready]);
    }

    /// Applies a configuration, or returns why that is not possible and keeps the one before.
    fn take(&mut self, config: Config) -> Result<(), String> {
        let config = self.complete(config);
        // Messages about the rest are written as the new configuration says.
        let log_before = self.config.log;
        self.messages.change(config.log);
        let taken = self.take_all(config);
        if taken.is_err() {
            self.messages.change(log_before);
        }
        taken
    }

    fn take_all(&mut self, config: Config) -> Result<(), String> {
        // All that may be impossible comes first.
        check_files(&config)?;
        let bound = self.bind(&config)?;
        let plan = match (&self.collectd, &config.collectd) {
            (Some(collectd), Some(options)) => Some(collectd.plan(options)?),
            _ => None,
        };
        let taking = self.taking.as_ref();
        let taking_plan = taking.map(|it| it.plan(&config.taking)).transpose()?;
        // Before anybody comes to sockets that are new.
        self.limit_clients(&config, &bound);
        let mut begun = self.add(&bound);
        if begun.is_ok() && self.collectd.is_none() {
            begun = self.start_collectd(&config, &bound, Vec::new());
        }
        if begun.is_err() {
            self.limit_clients(&self.config, &self.bound);
            self.retain();
            return begun;
        }
        // Who was let in by other permissions may not be by these.
        let changed: Vec<_> = bound
            .iter()
            .filter(|(_, address, _)| has_other_permissions(&self.config, &config, address))
            .map(|(.., socket)| Arc::clone(socket))
            .collect();
        for (_, listen) in config.spoken() {
            let addresses = &listen.addresses;
            let sockets = bound.iter().filter(|(_, it, _)| addresses.contains(it));
            for (_, address, socket) in sockets {
                // It was tried before.
                if let Err(problem) = encrypt(socket, listen) {
                    (self.log)(Level::Warning, &format!("{address}: {problem}"));
                }
            }
        }
        let before = std::mem::replace(&mut self.config, config);
        let bound_before = std::mem::replace(&mut self.bound, bound);
        match (&self.collectd, plan) {
            (Some(collectd), Some(plan)) => collectd.take(plan),
            _ if self.config.collectd.is_none() => self.stop_collectd(),
            _ => {}
        }
        if let (Some(taking), Some(plan)) = (&self.taking, taking_plan)
            && let Err(problem) = taking.take(plan)
        {
            (self.log)(Level::Warning, &problem);
        }
        if let Some(expiry) = &self.expiry {
            expiry.change(&self.config.expire);
        }
        self.retain();
        // Removes the files of sockets that nothing listens on.
        drop(bound_before);
        let now = &self.config;
        let write = &now.write;
        self.store.set_timing(write.timing());
        if let Some(query) = &self.query {
            query.set_listen(&now.query.listen);
        }
        let kept = [
            ("data", before.data == now.data),
            ("anywhere", before.anywhere == now.anywhere),
            ("format", before.target == now.target),
            ("pid-file", before.pid_file == now.pid_file),
            ("journal", before.journal == now.journal),
            ("write.threads", before.write.threads == write.threads),
            (
                "write.open-files",
                before.write.open_files == write.open_files,
            ),
            (
                "write.most-pending-mib",
                before.write.most_pending == write.most_pending,
            ),
            (
                "write.future-limit",
                before.write.future_limit == write.future_limit,
            ),
            (
                "write.suspend-limit",
                before.write.suspend_limit == write.suspend_limit,
            ),
            (
                "write.least-free-mib",
                before.write.least_free == write.least_free,
            ),
            ("query", before.query.has_same_limits(&now.query)),
        ];
        let changed_keys = kept.iter().filter(|(_, is_kept)| !is_kept);
        let changed_keys: Vec<_> = changed_keys.map(|(key, _)| format!("`{key}`")).collect();
        if !changed_keys.is_empty() {
            let text = format!(
                "changed, but applied only by a restart: {}",
                changed_keys.join(", ")
            );
            (self.log)(Level::Warning, &text);
        }
        for (_, listen) in now.spoken() {
            let addresses = &listen.addresses;
            let sockets = self
                .bound
                .iter()
                .filter(|(_, it, _)| addresses.contains(it));
            for (_, address, socket) in sockets {
                if let Err(error) = socket.set_access(&listen.access) {
                    (self.log)(Level::Warning, &format!("{address}: {}", reason(&error)));
                }
            }
        }
        for (_, server) in self.servers().iter().filter(|_| !changed.is_empty()) {
            server.end_connections(&changed);
        }
        Ok(())
    }

    /// Also waits for connections at these sockets.
    fn add(&self, bound: &Bound) -> Result<(), String> {
        self.servers().iter().try_for_each(|(what, server)| {
            let added = server.add(&self.sockets(what, bound));
            added.map_err(|error| reason(&error))
        })
    }

    /// Waits for connections at the sockets of the configuration only.
    fn retain(&self) {
        let spoken = self.config.spoken();
        for (what, server) in self.servers() {
            let listen = spoken.iter().find(|(name, _)| *name == what);
            let most = listen.map_or(0, |(_, listen)| listen.connections);
            server.retain(&self.sockets(what, &self.bound), most);
        }
    }

    /// Holds rrdcached's clients to these limits.
    fn limit_clients(&self, config: &Config, bound: &Bound) {
        if let Some(source) = &self.rrdcached {
            source.shared.set_limits(self.client_limits(config, bound));
        }
    }
}

/// Whether others may connect at an address by one configuration than by another.
fn has_other_permissions(before: &Config, now: &Config, address: &Address) -> bool {
    let permissions = |config: &Config| {
        let spoken = config.spoken().into_iter();
        let mut here = spoken.filter(|(_, listen)| listen.addresses.contains(address));
        here.next().map(|(_, listen)| {
            let has_file = matches!(address, Address::Unix(_));
            let access = has_file.then(|| listen.access.clone());
            (access, listen.tls.clone())
        })
    };
    let before = permissions(before);
    before.is_some() && before != permissions(now)
}
