//! The packet that a sender is cutting into segments.

/// The segments of the packet that is being sent.
#[derive(Debug, Default)]
pub(crate) struct Tso {
    pub(crate) on: bool,
    /// Segments of it that have not left yet.
    pub(crate) left: u32,
    /// A part of a packet is kept back, for lack of congestion window.
    pub(crate) deferred: bool,
}
