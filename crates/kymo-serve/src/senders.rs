//! What each sender has brought, so that one that errs or is hostile leaves room for others.

use std::net::IpAddr;

use foldhash::{HashMap, HashMapExt};

/// At most this many senders are distinguished; later ones share one account.
const MOST_SENDERS: usize = 1 << 16;

/// Accounts of senders.
#[derive(Debug)]
pub(crate) struct Senders {
    accounts: HashMap<IpAddr, Account>,
    others: Account,
    /// Databases that were created and are still there, by their paths.
    databases: HashMap<Box<[u8]>, CreatedDatabase>,
}

/// A database, for as long as it counts.
#[derive(Clone, Copy, Debug)]
struct CreatedDatabase {
    /// For whom it was created, if that is known.
    sender: Option<IpAddr>,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Account {
    /// Names that are known.
    series: usize,
    /// Bytes of databases that were created.
    bytes: u64,
}

impl Default for Senders {
    fn default() -> Self {
        Self {
            accounts: HashMap::new(),
            others: Account::default(),
            databases: HashMap::new(),
        }
    }
}

impl Senders {
    fn account(&mut self, sender: IpAddr) -> &mut Account {
        let is_known = self.accounts.contains_key(&sender);
        match is_known || self.accounts.len() < MOST_SENDERS {
            true => self.accounts.entry(sender).or_default(),
            false => &mut self.others,
        }
    }

    /// Adds a name that counts as so many, unless that would be more than there may be. Returns whether it was added.
    pub(crate) fn add_series(&mut self, sender: IpAddr, weight: usize, most: usize) -> bool {
        let account = self.account(sender);
        let has_room = account.series + weight <= most;
        account.series += if has_room { weight } else { 0 };
        has_room
    }

    /// Removes a name that counts as so many.
    pub(crate) fn remove_series(&mut self, sender: IpAddr, weight: usize) {
        let account = self.account(sender);
        account.series = account.series.saturating_sub(weight);
        self.close_empty(sender);
    }

    /// Leaves the room of an account that counts nothing to another sender.
    fn close_empty(&mut self, sender: IpAddr) {
        let account = self.accounts.get(&sender);
        if account.is_some_and(|it| it.series == 0 && it.bytes == 0) {
            self.accounts.remove(&sender);
        }
    }

    /// Whether databases may be created for a sender.
    pub(crate) fn has_room(&mut self, sender: IpAddr, most: u64) -> bool {
        self.account(sender).bytes < most
    }

    /// Those with the most names, and how many names and bytes of databases each has brought.
    pub(crate) fn largest(&self, most: usize) -> Vec<(IpAddr, usize, u64)> {
        let accounts = self.accounts.iter();
        let mut all: Vec<_> = accounts
            .map(|(sender, account)| (*sender, account.series, account.bytes))
            .collect();
        all.sort_unstable_by_key(|(sender, series, bytes)| {
            (std::cmp::Reverse((*series, *bytes)), *sender)
        });
        all.truncate(most);
        all
    }

    /// How many databases were created and are still there.
    pub(crate) fn databases(&self) -> usize {
        self.databases.len()
    }

    /// Adds a database that was created, in place of one that had the path before.
    pub(crate) fn add_database(&mut self, path: &[u8], sender: Option<IpAddr>, bytes: u64) {
        self.remove_database(path);
        if let Some(sender) = sender {
            let account = self.account(sender);
            account.bytes = account.bytes.saturating_add(bytes);
        }
        let database = CreatedDatabase { sender, bytes };
        self.databases.insert(path.into(), database);
    }

    /// Gives back what a database counts that was removed, if it was created since the start.
    pub(crate) fn remove_database(&mut self, path: &[u8]) {
        let Some(CreatedDatabase { sender, bytes }) = self.databases.remove(path) else {
            return;
        };
        if let Some(sender) = sender {
            let account = self.account(sender);
            account.bytes = account.bytes.saturating_sub(bytes);
            self.close_empty(sender);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sender_has_its_share() {
        let mut senders = Senders::default();
        let [a, b] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        assert!(senders.add_series(a, 1, 2) && senders.add_series(a, 1, 2));
        assert!(!senders.add_series(a, 1, 2));
        assert!(!senders.add_series(b, 3, 2) && senders.add_series(b, 1, 2));
        senders.remove_series(a, 1);
        assert!(senders.add_series(a, 1, 2));
        assert_eq!(senders.largest(1), [(a, 2, 0)]);
        senders.add_database(b"a", Some(a), 10);
        senders.add_database(b"of nobody", None, 10);
        assert!(!senders.has_room(a, 10) && senders.has_room(b, 10));
        // It was removed and created again, before the first was seen to be gone.
        senders.add_database(b"a", Some(a), 9);
        assert_eq!(
            (senders.largest(1), senders.databases()),
            (vec![(a, 2, 9)], 2)
        );
        for _ in 0..2 {
            senders.remove_database(b"a");
            assert_eq!(
                (senders.largest(1), senders.databases()),
                (vec![(a, 2, 0)], 1)
            );
        }
        senders.remove_series(a, 2);
        assert_eq!(senders.largest(2), [(b, 1, 0)]);
    }

    #[test]
    fn accounts_are_bounded() {
        let mut senders = Senders::default();
        for number in 0..MOST_SENDERS as u32 + 10 {
            assert_eq!(
                senders.add_series(IpAddr::from(number.to_be_bytes()), 1, 5),
                number < MOST_SENDERS as u32 + 5
            );
        }
        assert_eq!(senders.accounts.len(), MOST_SENDERS);
    }
}
