//! Fragments of packets in a capture: later ones have no ports, and are of the flow of the first, which has.
//!
//! Source: RFC 791, section 3.2 (identification, addresses and protocol are the same for all fragments of a packet), RFC 8200,
//! section 4.5 (identification and addresses). Fragments are not put together. Those that come before the first one wait for it.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use wire::Headers;
use wire::ip::{Fragment, View};

/// For how long fragments of a packet may follow each other, in nanoseconds (Linux's `ipfrag_time`).
const LIFE_NS: u64 = 30_000_000_000;
/// Packets whose fragments are waited for, and fragments that wait for their first.
const MOST_PACKETS: usize = 16_384;
const MOST_WAITING: usize = 16_384;

/// What fragments of a packet share.
type Key = (IpAddr, IpAddr, u8, u32);

/// What is known of a packet.
#[derive(Clone, Copy, Debug)]
struct Known {
    at: u64,
    ports: (u16, u16),
    protocol: u8,
}

/// What a packet is.
#[derive(Clone, Debug, PartialEq)]
pub enum Part<T> {
    /// A packet with its own headers: a whole one, or a first fragment, with what waited for it.
    Own(Vec<T>),
    /// A later fragment, with the ports of the first.
    Later(Headers),
    /// A later fragment that waits for the first.
    Waits,
}

/// Finds the flows of fragments. `T` is what the caller knows of a fragment that waits.
#[derive(Debug)]
pub struct Fragments<T> {
    known: BTreeMap<Key, Known>,
    /// The order in which packets became known.
    order: VecDeque<(Key, u64)>,
    waiting: BTreeMap<Key, Vec<(Headers, u64, T)>>,
    waiting_len: usize,
    lost: u64,
}

impl<T> Default for Fragments<T> {
    fn default() -> Fragments<T> {
        Fragments { known: BTreeMap::new(), order: VecDeque::new(), waiting: BTreeMap::new(), waiting_len: 0, lost: 0 }
    }
}

impl<T> Fragments<T> {
    /// Takes a packet with these headers and bytes, captured at a time in nanoseconds. A later fragment whose first was not seen
    /// keeps `what` until it is.
    #[inline]
    pub fn take(&mut self, headers: &Headers, ip: &[u8], at: u64, what: impl FnOnce() -> T) -> Part<(Headers, T)> {
        match View::parse_captured(ip, ip.len()) {
            Ok(view) if view.fragment != Fragment::Whole => self.fragment(headers, &view, at, what),
            _ => Part::Own(Vec::new()),
        }
    }

    /// Number of later fragments whose first was not captured. There are no more packets.
    pub fn finish(&mut self) -> u64 {
        self.waiting.clear();
        self.lost += std::mem::take(&mut self.waiting_len) as u64;
        self.lost
    }

    #[cold]
    fn fragment(
        &mut self,
        headers: &Headers,
        view: &View<'_>,
        at: u64,
        what: impl FnOnce() -> T,
    ) -> Part<(Headers, T)> {
        // Of IPv6, the protocol in later fragments is that of the first header behind the fragment header, which may be an extension.
        let protocol = if view.is_v6() { 0 } else { view.protocol };
        let key = (view.source, view.destination, protocol, view.identification.unwrap_or_default());
        if view.fragment == Fragment::First {
            let ports = (headers.source_port, headers.destination_port);
            let known = Known { at, ports, protocol: headers.protocol };
            self.remember(key, known);
            let waited = self.waiting.remove(&key).unwrap_or_default();
            self.waiting_len -= waited.len();
            let (joined, late): (Vec<_>, Vec<_>) =
                waited.into_iter().partition(|(_, since, _)| at.saturating_sub(*since) <= LIFE_NS);
            self.lost += late.len() as u64;
            return Part::Own(joined.into_iter().map(|(headers, _, what)| (with(headers, known), what)).collect());
        }
        if let Some(known) = self.known.get(&key).filter(|known| at.saturating_sub(known.at) <= LIFE_NS) {
            return Part::Later(with(*headers, *known));
        }
        if self.waiting_len >= MOST_WAITING {
            self.lost += 1;
        } else {
            self.waiting_len += 1;
            self.waiting.entry(key).or_default().push((*headers, at, what()));
        }
        Part::Waits
    }

    fn remember(&mut self, key: Key, known: Known) {
        while let Some(&(old, at)) = self.order.front()
            && (self.order.len() >= MOST_PACKETS || known.at.saturating_sub(at) > LIFE_NS)
        {
            self.order.pop_front();
            // An identification may have been used again since.
            if self.known.get(&old).is_some_and(|known| known.at == at) {
                self.known.remove(&old);
            }
        }
        self.order.push_back((key, known.at));
        self.known.insert(key, known);
    }
}

/// The headers of a fragment with what only the first has.
fn with(headers: Headers, Known { ports: (source_port, destination_port), protocol, .. }: Known) -> Headers {
    Headers { source_port, destination_port, protocol, ..headers }
}
