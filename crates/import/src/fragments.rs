//! Fragments of IP packets (RFC 791, section 3.2; RFC 8200, section 4.5): a packet counts when the last of them came, with the headers
//! of the first and the size of all. What is in them is not put together, as nothing but headers is read.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use wire::Headers;
use wire::ip::{Fragment, View};

/// For how long fragments of a packet may follow each other, in nanoseconds (Linux's `ipfrag_time`).
const LIFE_NS: u64 = 30_000_000_000;
/// Packets that are waited for.
const MOST_PACKETS: usize = 16_384;

/// What fragments of a packet share: addresses, protocol (of IPv4) and identification.
type Key = (IpAddr, IpAddr, u8, u32);

/// What came of a packet.
#[derive(Debug, Default)]
struct Parts {
    since: u64,
    /// The headers in the first fragment, and the bytes of its transport header.
    first: Option<(Headers, u32)>,
    /// Bytes of the fragments, with and without their IP headers.
    len: u32,
    got: u32,
    /// Bytes behind the IP header of the whole packet, as the last fragment tells.
    all: Option<u32>,
}

/// The fragmented packets of a file.
#[derive(Debug, Default)]
pub struct Fragments {
    parts: BTreeMap<Key, Parts>,
    order: VecDeque<(Key, u64)>,
    /// Packets of which all fragments came, and of which some did not.
    whole: u64,
    incomplete: u64,
}

impl Fragments {
    /// Takes a packet that was captured at a time in nanoseconds: its headers and bytes. Returns those of a whole packet; none of a fragment
    /// while others are missing.
    #[inline]
    pub fn take(&mut self, headers: Headers, ip: &[u8], at: u64) -> Option<Headers> {
        match View::parse_captured(ip, ip.len()) {
            Ok(view) if view.offset > 0 || view.more => self.fragment(headers, &view, at),
            _ => Some(headers),
        }
    }

    /// What to say of them when there are no more; lines without a full stop.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let incomplete = self.incomplete + self.parts.len() as u64;
        let counted = [
            (self.whole, "packets came in fragments, and each counts when the last of them came"),
            (incomplete, "packets came in fragments that are not all in the capture, and are left out"),
        ];
        counted.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"))
    }

    #[cold]
    fn fragment(&mut self, headers: Headers, view: &View<'_>, at: u64) -> Option<Headers> {
        self.forget(at);
        let protocol = if view.is_v6() { 0 } else { view.protocol };
        let key = (view.source, view.destination, protocol, view.identification.unwrap_or_default());
        let order = &mut self.order;
        let parts = self.parts.entry(key).or_insert_with(|| {
            order.push_back((key, at));
            Parts { since: at, ..Parts::default() }
        });
        let payload = view.len().saturating_sub(view.header_len()) as u32;
        parts.len = parts.len.saturating_add(headers.len);
        parts.got = parts.got.saturating_add(payload);
        if view.fragment == Fragment::First {
            parts.first = Some((headers, payload.saturating_sub(headers.payload_len)));
        }
        if !view.more {
            parts.all = Some(view.offset + payload);
        }
        let (all, (first, header_len)) = parts.all.filter(|all| *all <= parts.got).zip(parts.first)?;
        let whole = Headers { len: parts.len, payload_len: all.saturating_sub(header_len), ..first };
        self.parts.remove(&key);
        self.whole += 1;
        Some(whole)
    }

    /// Gives up what is too old, or too much.
    fn forget(&mut self, now: u64) {
        while let Some(&(key, since)) = self.order.front()
            && (self.order.len() >= MOST_PACKETS || now.saturating_sub(since) > LIFE_NS)
        {
            self.order.pop_front();
            // The others are whole, and their identification may have been used again.
            if self.parts.get(&key).is_some_and(|parts| parts.since == since) {
                self.parts.remove(&key);
                self.incomplete += 1;
            }
        }
    }
}
