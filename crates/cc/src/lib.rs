//! Congestion control.
//!
//! A [`Controller`] is notified of events: it reads no clock, does not count data in flight and does not detect losses.
//! The endpoint does, and calls, in the order of events,
//!
//! 1. [`Controller::on_sent`] after each transmission,
//! 2. [`Controller::on_congestion`] when loss recovery or a CWR phase begins, or the retransmission timer expires,
//! 3. [`Controller::on_undo`] when such a reduction turns out to be spurious,
//! 4. [`Controller::on_ack`] once for each acknowledgement, after 2 and 3 of the same acknowledgement, with what it
//!    delivered and the [`Phase`] that it left the connection in,
//! 5. and reads [`Controller::limits`] at any time.
//!
//! A controller that [listens](Controller::listens) to PEPs also receives each of their reports
//! ([`Controller::on_signal`]), before the reaction to missing segments (2).
//!
//! Time in `Ctx` never goes back. Windows are in segments of `Path::mss` bytes, as in the Linux kernel, whose integer
//! arithmetic on segments is the reference here.
//!
//! To add a controller: one file with a type that implements [`Controller`] (or, for a loss-based one, [`loss_based::Growth`])
//! and with its parameters, and a line in the table of `any.rs`. `new_reno.rs` is the file to read first.

mod any;
pub mod bbr;
pub mod cubic;
pub mod directed;
#[cfg(test)]
mod driver;
mod hystart;
pub mod loss_based;
pub mod multi_domain;
pub mod new_reno;
pub mod prr;
pub mod scalable;
pub mod vegas;
pub mod westwood;
pub mod yeah;

pub use any::{AnyController, Config};
pub use directed::Directed;

use rand_xoshiro::Xoshiro256PlusPlus;
use units::{Bytes, Rate, Span, Time};

/// The random stream for a controller. The driver names it, so that runs can be repeated.
pub type Random = Xoshiro256PlusPlus;

/// "No limit" for a slow-start threshold, as Linux's `TCP_INFINITE_SSTHRESH`.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// The initial window in segments (RFC 6928).
pub const INITIAL_WINDOW: u32 = 10;

/// Returns whether a parameter can be left out of a file.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The context of an event: time, path, random numbers and log.
pub struct Ctx<'a> {
    /// The current time.
    pub now: Time,
    /// The endpoint's estimates of the path.
    pub path: &'a Path,
    /// The controller's own random stream.
    pub random: &'a mut Random,
    /// Receives state changes, if set.
    pub log: Option<&'a mut Vec<Event>>,
}

impl Ctx<'_> {
    /// Logs an event if logging is enabled; otherwise the event is not constructed.
    pub fn emit(&mut self, event: impl FnOnce() -> Event) {
        if let Some(log) = &mut self.log {
            log.push(event());
        }
    }
}

/// The endpoint's estimates of the path.
#[derive(Clone, Debug)]
pub struct Path {
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Smoothed round-trip time (RFC 6298), once there is a sample.
    pub srtt: Option<Span>,
    /// The smallest round-trip time of the last 300 s (Linux `tcp_min_rtt`), once there is a sample.
    pub min_rtt: Option<Span>,
    /// The current retransmission timeout, without back-off.
    pub rto: Span,
    /// The stack's pacing rate: twice, later 1.2 times, cwnd per smoothed RTT (Linux `tcp_update_pacing_rate`).
    pub stack_rate: StackRate,
    /// Whether segments are paced: `HyStart`'s ACK train test depends on it.
    pub paced: bool,
    /// Whether an unused window shrinks (Linux `tcp_slow_start_after_idle`).
    pub shrinks_idle: bool,
    /// When pacing allows the next segment to be sent, as far as known; in the past if it is not held back (Linux
    /// `tcp_wstamp_ns`).
    pub departure: Time,
}

/// A rate that is computed on demand: it changes at each acknowledgement, but is rarely used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackRate {
    bits: u64,
    micros: u64,
}

impl StackRate {
    /// Creates a rate of `bits` per `srtt`, which counts as at least a microsecond.
    #[inline]
    pub fn new(bits: u64, srtt: Span) -> StackRate {
        StackRate { bits, micros: srtt.as_micros().max(1) }
    }

    /// Returns the rate; `None` by default, before the first round-trip time sample.
    pub fn get(self) -> Option<Rate> {
        let bits = self.bits.saturating_mul(1_000_000).checked_div(self.micros)?;
        Some(Rate::from_bits_per_sec(bits))
    }
}

/// The state of loss recovery (Linux `tcp_ca_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// No indication of loss.
    #[default]
    Open,
    /// Selective acknowledgements or duplicates were received, but nothing is marked lost yet.
    Disorder,
    /// The window is being reduced because of an ECN echo.
    Cwr,
    /// The window is being reduced and losses are retransmitted.
    Recovery,
    /// A retransmission timeout occurred, and not everything sent before it is acknowledged yet.
    Loss,
}

/// One transmission.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Payload bytes.
    pub bytes: u32,
    /// Whether this is a retransmission.
    pub retransmission: bool,
    /// Segments in flight before this one.
    pub in_flight_before: u32,
    /// Set if data is sent with nothing in flight, after a pause or after everything was marked lost: the time since
    /// the last data segment. Never set for the first segment (Linux `CA_EVENT_TX_START`).
    pub idle: Option<Span>,
    /// Whether the application waits for room in the send buffer (Linux `SOCK_NOSPACE`): then it is not lack of data
    /// that keeps the data in flight below the window.
    pub blocked: bool,
    /// Whether the sender was application-limited before this segment (Linux `tp->app_limited`).
    pub app_limited: bool,
}

/// An acknowledgement, after loss detection has processed it.
#[derive(Clone, Debug)]
pub struct AckSample {
    /// Segments that this acknowledgement cumulatively acknowledged.
    pub acked: u32,
    /// Segments newly known to be delivered: cumulatively or selectively.
    pub delivered: u32,
    /// Of `delivered`, those newly known to carry a congestion mark (with accurate ECN; with classic ECN all or none).
    pub delivered_ce: u32,
    /// Segments newly marked lost by it.
    pub lost: u32,
    /// Segments in flight before it and after it (sent - delivered - lost + retransmitted).
    pub prior_in_flight: u32,
    /// See `prior_in_flight`.
    pub in_flight: u32,
    /// Whether SND.UNA moved.
    pub advanced: bool,
    /// Whether only the window limited sending at the last opportunity (Linux `tcp_is_cwnd_limited`, including its
    /// allowance in slow start).
    pub cwnd_limited: bool,
    /// The peer echoed a congestion mark.
    pub ece: bool,
    /// The state of loss recovery afterwards.
    pub phase: Phase,
    /// The round-trip time sample of this acknowledgement: never from a retransmission (Karn).
    pub rtt: Option<Span>,
    /// SND.UNA and SND.NXT after it, as offsets that never wrap.
    pub una: u64,
    /// See `una`.
    pub next: u64,
    /// Delivery rate sample.
    pub rate: RateSample,
}

/// A delivery rate sample (Linux `struct rate_sample`; draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Debug, Default)]
pub struct RateSample {
    /// Segments delivered over `interval`; `None` if there is no valid sample.
    pub delivered: Option<u32>,
    /// The longer of the send and the acknowledgement interval.
    pub interval: Span,
    /// The connection's count of delivered segments when the newest acknowledged segment was sent.
    pub prior_delivered: u64,
    /// The same count now.
    pub total_delivered: u64,
    /// The connection's count of lost segments now.
    pub total_lost: u64,
    /// Whether the sender was application-limited when the newest acknowledged segment was sent.
    pub app_limited: bool,
    /// Whether the sample's segment was a retransmission.
    pub retransmitted: bool,
    /// Whether the receiver may have delayed this acknowledgement: it covers a single segment, not full-sized, that was
    /// alone in its round trip (Linux `FLAG_ACK_MAYBE_DELAYED`). BBR then does not refresh an expired minimum with its
    /// RTT.
    pub maybe_delayed: bool,
}

/// A report of a PEP between the wired and the radio domain, after validation by the endpoint.
#[derive(Clone, Debug)]
pub struct Passage {
    /// Whether it came from a report. Otherwise it follows from the receiver's acknowledgement, which implies passage
    /// of the PEP.
    pub reported: bool,
    /// Segments newly known to have passed the PEP.
    pub passed: u32,
    /// Segments newly known to be missing at the PEP.
    pub missing: u32,
    /// Segments in flight now, between sender and receiver.
    pub in_flight: u32,
    /// Whether only the window limited sending at the last opportunity.
    pub cwnd_limited: bool,
    /// The round-trip time to the PEP: never from a retransmission (Karn).
    pub rtt: Option<Span>,
    /// SND.UNA of the PEP, below which everything has passed, and SND.NXT; both as offsets that never wrap.
    pub una: u64,
    /// See `una`.
    pub next: u64,
}

/// What governs a [`directed::Directed`] controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The congestion window.
    pub window: Bytes,
    /// The pacing rate; `None` does not pace.
    pub pacing: Option<Rate>,
}

/// What a controller learns other than by acknowledgements. More kinds will follow, so that a controller ignores those that
/// it does not know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Signal {
    /// Data has passed a PEP, or is missing there.
    Passage(Passage),
    /// Somebody else sets the limits, or no longer does ([`directed::Directed`]).
    Target(Option<Target>),
}

/// The signals that a controller listens for: none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listens {
    /// [`Signal::Passage`]. The connection asks PEPs for reports.
    pub passages: bool,
    /// What a PEP reports as missing is retransmitted at once.
    pub early_retransmission: bool,
    /// No reports have come for some time: the connection asks for them again. This may change at any time.
    pub misses_passages: bool,
}

/// The reason for a reaction to congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Loss recovery begins: a segment was marked lost.
    Loss,
    /// A congestion mark was echoed; at most once a round trip.
    Ecn,
    /// The retransmission timer expired. `again` if nothing was acknowledged since the previous timeout.
    Timeout {
        /// See above.
        again: bool,
    },
}

/// The state of the connection at a sign of congestion.
#[derive(Clone, Debug)]
pub struct Congestion {
    /// The sign.
    pub sign: Sign,
    /// Segments in flight now.
    pub in_flight: u32,
    /// Segments marked lost and not yet retransmitted.
    pub lost: u32,
    /// SND.UNA, as an offset that never wraps: shows whether the previous reduction is over (Linux `high_seq`).
    pub una: u64,
    /// SND.NXT, as an offset that never wraps: recovery ends when it is acknowledged.
    pub next: u64,
    /// Whether all losses behind a [`Sign::Loss`] were reported missing by a PEP, in [`Signal::Passage`].
    pub announced: bool,
}

/// The limits set by a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The congestion window in segments: at least 1 in a reduction and after a timeout, otherwise at least 2.
    pub cwnd: u32,
    /// The slow-start threshold, in segments.
    pub ssthresh: u32,
    /// The pacing rate; `None` sends as soon as the window allows.
    pub pacing: Option<Rate>,
    /// The minimum number of segments sent back to back when paced (Linux `min_tso_segs`); the endpoint increases it at
    /// high rates and short round-trip times.
    pub burst: u32,
}

/// A state change for the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// Slow start ended.
    SlowStartExit {
        /// The cause.
        cause: ExitCause,
        /// The window at that time, in segments.
        cwnd: u32,
    },
    /// The controller entered a named state.
    State(&'static str),
}

/// The cause of the end of slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCause {
    /// `HyStart` detected a long train of acknowledgements.
    AckTrain,
    /// `HyStart`, Vegas or `YeAH` detected a delay increase.
    Delay,
    /// A loss, a mark or a timeout.
    Congestion,
}

/// A congestion controller. See the crate's documentation for the calling order.
pub trait Controller {
    /// Called when a segment was sent.
    fn on_sent(&mut self, sent: &Sent, cx: &mut Ctx);
    /// Called when an acknowledgement has been processed.
    fn on_ack(&mut self, ack: &AckSample, cx: &mut Ctx);
    /// Called at a sign of congestion.
    fn on_congestion(&mut self, congestion: &Congestion, cx: &mut Ctx);
    /// Called when the last reduction was spurious: everything considered lost had arrived.
    fn on_undo(&mut self, cx: &mut Ctx);
    /// A signal came for which the controller [listens](Controller::listens).
    fn on_signal(&mut self, signal: &Signal, cx: &mut Ctx) {
        let _ = (signal, cx);
    }
    /// The signals that it listens for.
    fn listens(&self) -> Listens {
        Listens::default()
    }
    /// Calls `each` with the name and the value of everything that it shows beside its limits.
    fn gauges(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let _ = each;
    }
    /// Sets the slow-start threshold that a connection begins with, in segments, before anything was acknowledged (as from
    /// Linux's cache of a destination's metrics). Ignored by controllers without slow start up to a threshold.
    fn begin_at(&mut self, ssthresh: u32) {
        let _ = ssthresh;
    }
    /// Returns the number of congestion windows that a growing send buffer has room for (Linux `sndbuf_expand`).
    fn buffered_windows(&self) -> u32 {
        2
    }
    /// Returns the current limits.
    fn limits(&self) -> Limits;
    /// Returns the controller's name, as in scenarios and `sysctl`.
    fn name(&self) -> &'static str;
    /// Returns the name of its state, for display: `slow-start`, `probe-bw`, ...
    fn state(&self) -> &'static str;
}

/// The value of a controller's gauge, if it shows that now.
pub fn gauge(controller: &impl Controller, name: &str) -> Option<u64> {
    let mut found = None;
    controller.gauges(&mut |gauge, value| found = found.or((gauge == name).then_some(value)));
    found
}

/// Returns a window of `cwnd` segments of `mss` bytes.
pub fn window(cwnd: u32, mss: u32) -> Bytes {
    Bytes::new(u64::from(cwnd) * u64::from(mss))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stacks_rate_is_bits_per_round_trip_of_at_least_a_microsecond() {
        assert_eq!(StackRate::default().get(), None);
        for (bits, srtt, rate) in [
            (80_000, Span::from_millis(10), 8_000_000),
            (80_000, Span::from_nanos(10_999), 8_000_000_000),
            // No less than a microsecond.
            (7, Span::from_nanos(999), 7_000_000),
            (7, Span::ZERO, 7_000_000),
        ] {
            assert_eq!(StackRate::new(bits, srtt).get(), Some(Rate::from_bits_per_sec(rate)), "{bits} bits in {srtt}");
        }
    }

    #[test]
    fn a_window_in_bytes_is_that_of_its_segments() {
        assert_eq!(window(10, 1448), Bytes::new(14_480));
    }
}
