//! The packet that a sender is cutting into segments.

/// The segments of the packet that is being sent.
#[derive(Debug, Default)]
pub(crate) struct Tso {
    pub(crate) on: bool,
    /// Segments of it that have not left yet, and all.
    pub(crate) left: u32,
    pub(crate) size: u32,
    /// The next segment is its first.
    pub(crate) begins: bool,
    /// A part of a packet is kept back, for lack of congestion window.
    pub(crate) deferred: bool,
}

impl Tso {
    /// The next segment is a packet by itself.
    pub(crate) fn begin_alone(&mut self) {
        (self.left, self.size, self.begins) = (0, 1, true);
    }

    /// Whether the segment that leaves is the last of several (`__tcp_transmit_skb`, which sets PSH on packets of more than
    /// one segment).
    #[inline]
    pub(crate) fn ends_packet(&self) -> bool {
        self.on && self.size > 1 && self.left == 0
    }
}
