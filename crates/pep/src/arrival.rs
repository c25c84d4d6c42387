//! How segments come, and how their numbers compare.

/// Sequence numbers are near if they differ by less: no window is larger (RFC 7323 section 2.3).
pub(crate) const NEAR: u64 = 1 << 30;

/// How a segment came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Segments that a host has merged into it because they followed each other (GRO): one report answers them.
    pub packets: u32,
    /// Bytes of the IP packet.
    pub packet_len: u32,
    /// The neighbour that it came from, as the link knows it; 0 where there is only one. Reports go to a flow's own alone.
    pub via: u64,
}

/// Whether a timestamp or sequence number is later.
#[inline]
pub(crate) fn is_after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}
