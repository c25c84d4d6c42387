//! The parameters of the policy `best`: all numbers that it has, but for nothing, one and two.
//!
//! Each stands for one time scale, or for one size of a difference, wherever the policy needs it; the parts of the policy name what
//! they take it for. *Fitted* are those that have no other reason than bounds of tests: to what, they say.

use units::Span;

/// The parameters of the policy that users set.
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
        Best { radio_target: Span::from_millis(5), proxy_target: Span::from_millis(2), headroom: HEADROOM }
    }
}

/// The part of a full packet that is payload: beside it there are the headers of IPv4, TCP with timestamps, PDCP, RLC and MAC.
pub(crate) const PAYLOAD: f64 = 1448.0 / (1448.0 + 62.0);

/// A time in which a radio has answered: some grants, and a HARQ round trip or two. It is the interval of corrections, and the
/// radio leg's round-trip time before that is known.
pub(crate) const ROUND: Span = Span::from_millis(20);
/// The time in which a flow of 1 Mbit/s sends four or five segments: less tells no demand. A queue changes in it.
pub(crate) const PERIOD: Span = Span::from_millis(50);
/// The time constant of averages of delivery, in seconds: five rounds, so that one more or less counts little.
pub(crate) const SMOOTHING: f64 = 0.1;
/// The longest that a correction waits for enough bytes, or for the effect of a drain, and the time for which a feed must contradict
/// what is measured: two time constants.
pub(crate) const LONGEST: Span = Span::from_millis(200);
/// The longest time by which reports, or acknowledgements of what was lost, are late and still tell something. It bears reports that
/// come each 100 ms and 200 ms late.
pub(crate) const LATE: Span = Span::from_millis(500);
/// The time in which what is known without a report is forgotten.
pub(crate) const FADE: Span = Span::from_secs(1);
/// The time for which a feed must seem too high before it is in doubt although the radio may be idle for other reasons. No reason for
/// this value is known.
pub(crate) const UNCLEAR: Span = Span::from_secs(5);

/// A step of a probe, in which capacity and windows are tested: promises may exceed what is delivered by so much.
pub(crate) const PROBE: f64 = 0.02;
/// The part of what should be delivered that must be, for a capacity to be raised. Fitted: with half of a probe on top, promises stay
/// within a probe of what is delivered.
pub(crate) const DELIVERED: f64 = 0.992;
/// The part by which pacing may exceed a rate, and rates that are measured may differ from what they are.
pub(crate) const MARGIN: f64 = 0.05;
/// A tenth: less of a whole is nearly nothing, and all but that is nearly everything.
pub(crate) const STEP: f64 = 0.1;
/// The part by which what a flow uses and what it has differ, if it is limited elsewhere. Fitted: a tenth is too little with slow
/// and wrong reports, a quarter too much for a flow whose demand grows.
pub(crate) const TELLS: f64 = 0.15;
/// The part by which a slow flow's windows exceed its demand, and by which rates differ that are not the same.
pub(crate) const HEADROOM: f64 = 0.25;
/// Half as much again: by more, neither a capacity nor a time on the leg is what it was. Fitted: a quarter is too little for capacities.
pub(crate) const HALF_MORE: f64 = 1.5;
/// A feed that is wrong by more than this factor is not corrected, but in doubt. Fitted: one that is wrong by two must be corrected.
pub(crate) const FAR: f64 = 2.5;
/// So many times what is wanted, or usual, is much: twice what is long.
pub(crate) const MUCH: f64 = 4.0;
/// How often a capacity, windows, and the patience with a feed that was in doubt are doubled at most: to 32 times what they were.
pub(crate) const DOUBLINGS: u32 = 5;
/// Traffic that the proxy does not see counts from this part of the capacity. Fitted: beside an upload, whose delayed
/// acknowledgements look like it, less makes a download late.
pub(crate) const UNSEEN: f64 = 0.03;
/// The part of what was corrected that is given up at each correction beside other traffic. No reason for this value is known.
pub(crate) const BACK: f64 = 0.001;
/// The gain of averages over periods: that of the smoothed round-trip time in RFC 6298.
pub(crate) const GAIN: f64 = 0.125;
/// The bytes from which an average time on the leg counts. What is delivered in a second must exceed it, too. Fitted: with ten or
/// with twenty segments, a queue is seen too late after a change of capacity.
pub(crate) const ENOUGH: f64 = 20_000.0;
/// The least window without a capacity, in segments: four times the smallest window with one.
pub(crate) const UNKNOWN: u32 = 40;
/// The least target of the radio's queue, in seconds, unless a lower one is set: a subframe of LTE.
pub(crate) const SUBFRAME: f64 = 0.001;

/// Up to this age, a reported queue tells the present.
pub(crate) const FRESH: Span = PERIOD;
/// Pacing above the share: the window limits, pacing only spreads.
pub(crate) const PACING: f64 = 1.0 + MARGIN;
