//! Media between links: what several hosts share, such as a cell.
//!
//! To add a medium: a file in this module's folder with a type that implements [`Medium`], and a line in the table below; its table in
//! scenarios with its hops for routes (`scenario/src/topology.rs`), and a line in `build.rs` that makes it.

pub(crate) mod radio;

use super::packet::{Packet, Store};
use aqm::{Backlog, DropReason};
use core::any::Any;
use des::Part;
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

/// A medium of the network, and its part of the agenda.
pub(crate) struct PlacedMedium {
    pub(super) medium: AnyMedium,
    pub(crate) part: Part,
}

/// The table of media: variant and type.
macro_rules! media {
    ($d:tt $($(#[$meta:meta])* $variant:ident($type:ty);)*) => {
        /// Any of the media, with static dispatch.
        pub(crate) enum AnyMedium {
            $($(#[$meta])* $variant(Box<$type>),)*
        }

        /// Calls a method of the medium. (`$d` is a dollar sign of this inner macro.)
        macro_rules! each {
            ($d any:expr, $d medium:ident => $d body:expr) => {
                match $d any {
                    $(AnyMedium::$variant($d medium) => $d body,)*
                }
            };
        }
    };
}

media! { $
    /// The cells and their UEs.
    Radio(radio::Radio);
}

impl PlacedMedium {
    pub(crate) fn new(medium: AnyMedium, part: Part) -> PlacedMedium {
        PlacedMedium { medium, part }
    }

    /// Returns the medium if it is the radio network.
    pub(super) fn radio(&self) -> Option<&radio::Radio> {
        each!(&self.medium, medium => (&**medium as &dyn Any).downcast_ref())
    }

    /// Like [`PlacedMedium::radio`], to be changed.
    pub(super) fn radio_mut(&mut self) -> Option<&mut radio::Radio> {
        each!(&mut self.medium, medium => (&mut **medium as &mut dyn Any).downcast_mut())
    }

    pub(crate) fn ports(&self) -> Vec<String> {
        each!(&self.medium, medium => medium.ports())
    }

    #[inline]
    pub(super) fn enter(&mut self, port: Port, packet: Packet, now: Time, drops: &mut impl FnMut(Packet, DropReason)) {
        each!(&mut self.medium, medium => medium.enter(port, packet, now, drops));
    }

    #[inline]
    pub(super) fn handle_timeout(&mut self, now: Time, drops: &mut impl FnMut(Packet, DropReason)) {
        each!(&mut self.medium, medium => medium.handle_timeout(now, drops));
    }

    #[inline]
    pub(super) fn poll(&mut self, now: Time, store: &mut Store) -> Option<Packet> {
        each!(&mut self.medium, medium => medium.poll(now, store))
    }

    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        each!(&self.medium, medium => medium.poll_timeout())
    }

    pub(super) fn track_host(&mut self, port: Port) -> bool {
        each!(&mut self.medium, medium => medium.track_host(port))
    }

    #[inline]
    pub(super) fn poll_released(&mut self) -> Option<u64> {
        each!(&mut self.medium, medium => medium.poll_released())
    }

    pub(super) fn is_host_full(&self, port: Port, len: u32, priority: u8, ahead: Backlog) -> bool {
        each!(&self.medium, medium => medium.is_host_full(port, len, priority, ahead))
    }

    pub(crate) fn warmed_up(&mut self, now: Time) {
        each!(&mut self.medium, medium => medium.warmed_up(now));
    }

    pub(crate) fn sample(&mut self, now: Time, interval: Span, tables: &mut Tables) {
        each!(&mut self.medium, medium => medium.sample(now, interval, tables));
    }

    pub(crate) fn rows_so_far(&mut self, now: Time, tables: &mut Tables) {
        each!(&mut self.medium, medium => medium.rows_so_far(now, tables));
    }

    pub(crate) fn finish(self, end: Time, tables: &mut Tables) {
        each!(self.medium, medium => medium.finish(end, tables));
    }
}
