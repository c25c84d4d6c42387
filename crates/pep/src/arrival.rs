//! The arrival of segments, and the comparison of their numbers.

/// Sequence numbers closer than this are near each other: no window is larger (RFC 7323 section 2.3).
pub(crate) const NEAR: u64 = 1 << 30;

/// The arrival of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Number of segments that a host has merged into this one (GRO); one report answers all of them.
    pub packets: u32,
    /// Bytes of the IP packet.
    pub packet_len: u32,
    /// The neighbour that sent it, by its link address; 0 if there is only one. Reports go only to the flow's own neighbour.
    pub via: u64,
}

/// Returns whether a timestamp or sequence number is later.
#[inline]
pub(crate) fn is_after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}
