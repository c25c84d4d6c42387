//! Media between links: what several hosts share, such as a cell.
//!
//! To add a medium: a file in this module's folder with a type that implements [`interface::Medium`], and a line in the table below; its table in
//! scenarios with its hops for routes (`scenario/src/topology.rs`), and a line in `build.rs` that makes it.

pub(crate) mod interface;
pub(crate) mod radio;

use super::packet::{Packet, Store};
use aqm::{Backlog, DropReason};
use core::any::Any;
use des::Part;
use interface::{Medium as _, Port};
use record::Tables;
use units::{Span, Time};

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
