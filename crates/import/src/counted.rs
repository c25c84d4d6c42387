//! Which packets of a capture count: what a place has twice counts once ([`crate::twice`]), of tunnels what is inside
//! ([`crate::tunnel`]), and of packets in fragments the whole, when the last of them came ([`crate::fragments`]).

use wire::Headers;

use crate::fragments::Fragments;
use crate::tunnel::{Outcome, Tunnels};
use crate::twice::Twice;

/// Tells which packets of a capture count. Each is taken once, in the order of the file.
#[derive(Debug, Default)]
pub struct Counted {
    twice: Twice,
    tunnels: Tunnels,
    fragments: Fragments,
}

impl Counted {
    /// Takes a packet with these headers and bytes, captured at a time in nanoseconds on an interface. Returns the headers of the packet that
    /// counts now, if one does. `look` sees those of a packet inside its tunnel, with its bytes, before it waits for other
    /// fragments, and may complete them.
    #[inline]
    pub fn take(
        &mut self,
        headers: Headers,
        ip: &[u8],
        (at, interface): (u64, u32),
        look: impl FnOnce(Headers, &[u8]) -> Headers,
    ) -> Option<Headers> {
        if self.twice.is_copy(&headers, ip, at, interface) {
            return None;
        }
        let (headers, ip) = if self.tunnels.concern(&headers) {
            match self.tunnels.take(headers, ip, at, interface) {
                Outcome::Counts(headers, ip) => (headers, ip),
                Outcome::LeftOut => return None,
            }
        } else {
            (headers, ip)
        };
        self.fragments.take(look(headers, ip), ip, at)
    }

    /// The tunnels of the packets.
    pub fn tunnels(&self) -> &Tunnels {
        &self.tunnels
    }

    /// What to say of them when there are no more; lines without a full stop.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        self.twice.note().into_iter().chain(self.tunnels.notes()).chain(self.fragments.notes())
    }
}
