//! The connections of all flows.

use crate::network::packet::End;
use crate::rows::meter::Level;
use cc::AnyController;
use des::Part;
use tcp::Endpoint;
use units::{Span, Time};

/// A connection: its two endpoints.
pub(super) struct Connection {
    pub(super) ends: [Endpoint<AnyController>; 2],
    pub(super) parts: [Part; 2],
    pub(super) flow: u32,
    /// The application's number of it.
    pub(super) number: u32,
    pub(super) generation: u32,
    pub(super) level: Level,
    /// Payload of each end in the queue of its host, if that is tracked.
    pub(super) held: [u64; 2],
}

/// The connections that live, by slot. A slot is used again once both ends have forgotten its connection.
#[derive(Default)]
pub(super) struct Connections {
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    generation: u32,
}

impl Connections {
    /// Takes a free slot for a new connection.
    pub(super) fn reserve(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        })
    }

    /// A number that no connection had before.
    pub(super) fn next_generation(&mut self) -> u32 {
        self.generation += 1;
        self.generation
    }

    /// Puts a connection into the slot that was reserved for it.
    pub(super) fn insert(&mut self, slot: u32, connection: Connection) {
        self.slots[slot as usize] = Some(Box::new(connection));
    }

    /// The connection in a slot, if it lives.
    #[inline]
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Connection> {
        self.slots[slot as usize].as_deref_mut()
    }

    /// The connection in the slot of a flow's connection.
    pub(super) fn living(&self, slot: u32) -> &Connection {
        self.slots[slot as usize].as_deref().expect(LIVES)
    }

    /// As [`Connections::living`].
    pub(super) fn living_mut(&mut self, slot: u32) -> &mut Connection {
        self.slots[slot as usize].as_deref_mut().expect(LIVES)
    }

    /// Takes a connection out of its slot, which is free from now on.
    pub(super) fn remove(&mut self, slot: u32) -> Option<Box<Connection>> {
        let connection = self.slots[slot as usize].take()?;
        self.free.push(slot);
        Some(connection)
    }

    /// The counts at the sending ends of a flow's connections.
    pub(super) fn senders(&self, of: &[(u32, u32)], now: Time) -> Vec<(&tcp::Stats, [Span; tcp::Limit::ALL.len()])> {
        let sender = |&(_, slot): &(u32, u32)| {
            let sender = &self.living(slot).ends[End::From as usize];
            (sender.stats(), sender.limited(now))
        };
        of.iter().map(sender).collect()
    }
}

const LIVES: &str = "a flow's connections live";
