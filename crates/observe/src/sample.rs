//! One direction of a connection at a moment.

use units::{Bytes, Rate, Span, Time};

/// A direction of a connection at a sampling moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The moment.
    pub at: Time,
    /// Payload that was delivered in the interval before it.
    pub delivered: u64,
    /// That interval.
    pub interval: Span,
    /// Bytes sent and not acknowledged.
    pub in_flight: u64,
    /// The smoothed round-trip time.
    pub srtt: Option<Span>,
    /// The latest round-trip time of the interval.
    pub rtt: Option<Span>,
    /// The mean one-way delay of the data packets that arrived in the interval.
    pub owd: Option<Span>,
    /// Packets of this direction that were lost in the interval.
    pub lost: u64,
    /// Whether the connection is over.
    pub closed: bool,
}

impl Sample {
    /// Goodput of the interval.
    pub fn goodput(&self) -> Rate {
        Rate::over(Bytes::new(self.delivered), self.interval)
    }

    /// Merges this sample with the `next` one into one sample of both intervals.
    pub(crate) fn merged(&self, next: &Sample) -> Sample {
        Sample {
            delivered: self.delivered + next.delivered,
            interval: self.interval + next.interval,
            srtt: next.srtt.or(self.srtt),
            rtt: next.rtt.or(self.rtt),
            ..*next
        }
    }
}
