//! A flow that the kernel carries.

use units::Span;

/// Bytes of the timestamps option in a segment.
pub(super) const TIMESTAMPS: u32 = 12;

/// A flow of the scenario that the kernel's TCP carries.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The flow's name in the scenario.
    pub name: String,
    /// The copy of the flow, from 0.
    pub copy: u32,
    /// The congestion control, as the kernel calls it.
    pub cc: &'static str,
    /// The host that sends.
    pub from: usize,
    /// The host that receives.
    pub to: usize,
    /// When the sender connects.
    pub start: Span,
    /// When the sender stops writing.
    pub stop: Option<Span>,
    /// Bytes to send; unlimited if `None`.
    pub bytes: Option<u64>,
    /// The pauses of its receiving application.
    pub reader: Option<scenario::Reader>,
    /// The TOS byte of its packets, in both directions.
    pub tos: u8,
    /// Its TCP options.
    pub tcp: scenario::Tcp,
}
