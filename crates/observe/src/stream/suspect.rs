//! Data that may be of another connection, until it is believed or forgotten.

use units::Time;

/// Data that may be of another connection.
#[derive(Debug)]
pub(super) struct Suspect {
    /// The offsets that each segment takes, and its payload, in the order in which they came: never empty.
    pub(super) ranges: Vec<(u64, u64, u32)>,
    /// Whether it is the byte of a probe.
    pub(super) is_probe: bool,
    /// The times at which more of it came.
    pub(super) followers: usize,
    pub(super) last: Time,
}

impl Suspect {
    pub(super) fn new(range: (u64, u64, u32), is_probe: bool, now: Time) -> Box<Suspect> {
        Box::new(Suspect { ranges: vec![range], is_probe, followers: 0, last: now })
    }

    pub(super) fn start(&self) -> u64 {
        self.ranges.iter().map(|range| range.0).min().unwrap_or(u64::MAX)
    }

    pub(super) fn end(&self) -> u64 {
        self.ranges.iter().map(|range| range.1).max().unwrap_or(0)
    }
}
