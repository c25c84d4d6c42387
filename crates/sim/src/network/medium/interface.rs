//! What a medium does.

use crate::network::packet::{Packet, Store};
use aqm::{Backlog, DropReason};
use record::Tables;
use units::{Span, Time};

/// A way through a medium, by number: where packets enter it and leave it. Each is a hop of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port(pub(crate) u32);

/// What carries packets through its ports.
///
/// Order of calls: [`Medium::enter`] when a packet arrives, [`Medium::handle_timeout`] at the time of [`Medium::poll_timeout`]; after
/// either, [`Medium::poll`] until it returns `None`, then [`Medium::poll_timeout`] again. Time never goes back. A packet that is lost
/// goes to `drops`.
pub(crate) trait Medium {
    /// Returns the names of its ports, in order; they name hops of routes.
    fn ports(&self) -> Vec<String>;

    /// Takes a packet at a port.
    fn enter(&mut self, port: Port, packet: Packet, now: Time, drops: &mut impl FnMut(Packet, DropReason));

    /// Processes what is due.
    fn handle_timeout(&mut self, now: Time, drops: &mut impl FnMut(Packet, DropReason));

    /// Returns the next packet that has passed.
    fn poll(&mut self, now: Time, store: &mut Store) -> Option<Packet>;

    /// Returns when to call it.
    fn poll_timeout(&self) -> Option<Time>;

    /// If packets wait for the port in a queue of the host before it, notes what leaves that queue from now on. Returns whether there
    /// is one.
    fn track_host(&mut self, _port: Port) -> bool {
        false
    }

    /// Returns the tag of a packet that has left the queue of a tracked host, which was not returned before.
    fn poll_released(&mut self) -> Option<u64> {
        None
    }

    /// Returns whether the queue of the host before the port would drop a packet after `ahead`.
    fn is_host_full(&self, _port: Port, _len: u32, _priority: u8, _ahead: Backlog) -> bool {
        false
    }

    /// Ends the warm-up: the rows at the end leave out what was counted so far.
    fn warmed_up(&mut self, now: Time);

    /// Writes the rows of a sampling time.
    fn sample(&mut self, now: Time, interval: Span, tables: &mut Tables);

    /// Writes rows as if the run ended now.
    fn rows_so_far(&mut self, now: Time, tables: &mut Tables);

    /// Writes the rows at the end.
    fn finish(self, end: Time, tables: &mut Tables);
}
