//! The parameters of the policy `best`, and what its parts share.

use units::Span;

/// The parameters of the policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// The queue that fast flows keep in the radio, beyond its least time for a packet and up to that time: what its
    /// scheduler needs to fill its transport blocks.
    pub radio_target: Span,
    /// What a flow keeps in the proxy, in time at its rate.
    pub proxy_target: Span,
    /// How much a slow flow's windows exceed its demand, as part of it.
    pub headroom: f64,
}

impl Default for Best {
    fn default() -> Best {
        Best { radio_target: Span::from_millis(5), proxy_target: Span::from_millis(2), headroom: 0.25 }
    }
}

/// The part of a full packet that is payload: beside it there are the headers of IPv4, TCP with timestamps, PDCP, RLC and MAC.
pub(crate) const PAYLOAD: f64 = 1448.0 / (1448.0 + 62.0);
/// The time constant of the averages of delivery.
pub(crate) const SMOOTHING: f64 = 0.1;
/// Pacing above the share: the window limits, pacing only spreads.
pub(crate) const PACING: f64 = 1.05;
/// A reported queue older than this says nothing about the present.
pub(crate) const FRESH: Span = Span::from_millis(50);
/// Up to this age, it still says which part of the time on the leg was a queue.
pub(crate) const LATE: Span = Span::from_millis(500);
