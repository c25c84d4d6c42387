//! The bytes of the packets that are in the network, which itself carries only their tags.

use std::ops::Range;

/// Most packets at once, and most of their bytes: bounds the memory, whatever hosts send.
const MOST: usize = 1 << 18;
const MOST_BYTES: usize = 512 << 20;
/// Buffer bytes kept for the next packet, so that packets of usual size cost no allocation.
const ROOM: usize = 2048;

/// A packet in the network.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// The frame to deliver.
    pub(crate) frame: Vec<u8>,
    /// Where in it the IP packet is.
    pub(crate) ip: Range<usize>,
    /// The observer's number for it; `None` for a packet that no host sent.
    pub(crate) flow: Option<u32>,
    /// The host to deliver it to.
    pub(crate) to: usize,
}

impl Held {
    /// The IP packet.
    #[inline]
    pub(crate) fn packet(&mut self) -> &mut [u8] {
        &mut self.frame[self.ip.clone()]
    }
}

/// Packets by tag.
#[derive(Debug, Default)]
pub(crate) struct Store {
    held: Vec<Held>,
    free: Vec<u32>,
    bytes: usize,
}

impl Store {
    /// Whether there is room for a frame of this length.
    #[inline]
    pub(crate) fn has_room(&self, len: usize) -> bool {
        (!self.free.is_empty() || self.held.len() < MOST) && self.bytes + len <= MOST_BYTES
    }

    /// Stores a frame with an IP packet in it. Returns its tag.
    #[inline]
    pub(crate) fn keep(&mut self, frame: &[u8], ip: Range<usize>, flow: Option<u32>, to: usize) -> u32 {
        let tag = self.free.pop().unwrap_or_else(|| {
            self.held.push(Held::default());
            (self.held.len() - 1) as u32
        });
        let place = &mut self.held[tag as usize];
        place.frame.reserve_exact(frame.len());
        place.frame.extend_from_slice(frame);
        (place.ip, place.flow, place.to) = (ip, flow, to);
        self.bytes += frame.len();
        tag
    }

    /// The packet with this tag.
    #[inline]
    pub(crate) fn get(&self, tag: u32) -> &Held {
        &self.held[tag as usize]
    }

    /// As [`Store::get`], to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, tag: u32) -> &mut Held {
        &mut self.held[tag as usize]
    }

    /// Frees a packet that has left the network; its tag is reused.
    #[inline]
    pub(crate) fn free(&mut self, tag: u32) {
        let frame = &mut self.held[tag as usize].frame;
        self.bytes -= frame.len();
        frame.clear();
        if frame.capacity() > ROOM {
            *frame = Vec::new();
        }
        self.free.push(tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_what_it_was_until_it_is_freed_and_its_tag_is_used_again() {
        let mut store = Store::default();
        let [one, other] = [store.keep(b"eth-one", 4..7, Some(7), 1), store.keep(b"other", 0..5, None, 0)];
        assert_eq!(
            (store.get_mut(one).packet().to_vec(), store.get(one).flow, store.get(one).to),
            (b"one".to_vec(), Some(7), 1)
        );
        store.free(one);
        assert_eq!(store.get_mut(other).packet(), b"other");
        assert_eq!(store.keep(b"3", 0..1, None, 1), one);
        assert_eq!(store.get(one).frame, b"3");
        assert_eq!(store.bytes, 6);
    }

    #[test]
    fn long_packets_take_no_more_memory_than_many_short_ones() {
        let mut store = Store::default();
        let long = vec![0; 65_535];
        let mut tags = Vec::new();
        while store.has_room(long.len()) {
            tags.push(store.keep(&long, 0..long.len(), None, 0));
        }
        assert_eq!(tags.len(), MOST_BYTES / long.len());
        tags.into_iter().for_each(|tag| store.free(tag));
        assert!(store.has_room(long.len()) && store.bytes == 0);
        let kept: usize = store.held.iter().map(|held| held.frame.capacity()).sum();
        assert_eq!(kept, 0);
    }
}
