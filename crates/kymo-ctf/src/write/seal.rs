//! Packets sealed on their way to a file, several at once.

use std::io;
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

use super::{PacketInfo, PacketSink, StreamFile};
use crate::secure::{self, Nonce, Protection};
use kymo_machine::ByteOrder;

use kymo_io::in_threads;

/// The bytes of packets that wait to be sealed together, beyond which no more are waited for.
const MOST_WAITING: usize = 8 << 20;

/// Number of packets that wait for each thread: sealing takes unequally long.
const FOR_EACH: usize = 4;

/// A packet that waits to be sealed, or for those before it.
#[derive(Debug)]
struct Waiting {
    packet: Vec<u8>,
    info: PacketInfo,
    how: Option<(Protection, Nonce)>,
}

/// Seals the packets of a stream.
#[derive(Debug)]
pub struct Sealing {
    file: StreamFile,
    /// How packets are sealed; none are without it.
    how: Option<(Protection, Nonce)>,
    order: ByteOrder,
    threads: NonZero<usize>,
    waiting: Vec<Waiting>,
    bytes: usize,
}

impl Sealing {
    /// For a stream file in which packets have a byte order; `threads` seal them.
    pub fn new(
        file: StreamFile,
        how: Option<(Protection, Nonce)>,
        order: ByteOrder,
        threads: NonZero<usize>,
    ) -> Self {
        Self {
            file,
            how,
            order,
            threads,
            waiting: Vec::new(),
            bytes: 0,
        }
    }

    /// How the packets that follow are sealed; they are written as they are without it.
    pub fn protect(&mut self, how: Option<(Protection, Nonce)>) {
        self.how = how;
    }

    /// Seals and writes what waits, and hands on what is not yet written.
    ///
    /// # Errors
    ///
    /// A packet cannot be sealed, or the file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.seal()?;
        self.file.flush()
    }

    fn seal(&mut self) -> io::Result<()> {
        let order = self.order;
        let seal = |waiting: &mut Waiting| {
            let Some((protection, nonce)) = &waiting.how else {
                return Ok(());
            };
            let packet = &mut waiting.packet;
            let chance = match protection.key {
                Some(_) => nonce()?,
                None => Default::default(),
            };
            *packet =
                secure::seal(packet, order, protection, || chance).map_err(io::Error::other)?;
            Ok(())
        };
        let packets: Vec<_> = self.waiting.iter_mut().map(Mutex::new).collect();
        let new_part = || Ok(());
        let parts = in_threads(
            packets.len(),
            self.threads.get(),
            new_part,
            |done, number| {
                // No other thread takes this number.
                let mut packet = packets[number]
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                *done = seal(&mut packet);
                done.is_ok()
            },
        );
        parts.into_iter().collect::<io::Result<()>>()?;
        for Waiting { packet, info, .. } in self.waiting.drain(..) {
            self.file.packet(&packet, &info)?;
        }
        self.bytes = 0;
        Ok(())
    }
}

impl PacketSink for Sealing {
    fn packet(&mut self, bytes: &[u8], info: &PacketInfo) -> io::Result<()> {
        if self.how.is_none() && self.waiting.is_empty() {
            return self.file.packet(bytes, info);
        }
        self.waiting.push(Waiting {
            packet: bytes.to_vec(),
            info: *info,
            how: self.how.clone(),
        });
        self.bytes += bytes.len();
        if self.waiting.len() >= FOR_EACH * self.threads.get() || self.bytes >= MOST_WAITING {
            self.seal()?;
        }
        Ok(())
    }
}
