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
    /// Bytes sent and not acknowledged; unknown without TCP's acknowledgements.
    pub in_flight: Option<u64>,
    /// The pipe of RFC 6675, of captures; likewise.
    pub pipe: Option<u64>,
    /// The receive window that its receiver advertised last, of captures that show its scale.
    pub window: Option<u64>,
    /// Retransmissions in the interval, of captures.
    pub retransmitted: u64,
    /// Segments out of order in the interval, of captures.
    pub out_of_order: u64,
    /// The smoothed round-trip time.
    pub srtt: Option<Span>,
    /// The latest round-trip time of the interval.
    pub rtt: Option<Span>,
    /// The mean one-way delay of the data packets that arrived in the interval.
    pub owd: Option<Span>,
    /// Packets of this direction that were lost in the interval; unknown with one vantage point.
    pub lost: Option<u64>,
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
            retransmitted: self.retransmitted + next.retransmitted,
            out_of_order: self.out_of_order + next.out_of_order,
            lost: self.lost.zip(next.lost).map(|(before, after)| before + after),
            srtt: next.srtt.or(self.srtt),
            rtt: next.rtt.or(self.rtt),
            ..*next
        }
    }
}
