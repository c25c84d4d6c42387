//! Congestion control: when to send more and when to send less.
//!
//! A [`Controller`] is told of packets and never looks for them: it reads no clock, counts no flight and detects no loss.
//! The endpoint does those and calls, in the order in which things happen,
//!
//! 1. [`Controller::on_sent`] after each transmission,
//! 2. [`Controller::on_congestion`] when loss recovery or a CWR phase begins, or the retransmission timer fires,
//! 3. [`Controller::on_undo`] when such a reaction is found to have been spurious,
//! 4. [`Controller::on_ack`] once for each acknowledgement, after 2 and 3 of the same acknowledgement, with what it
//!    delivered and the [`Phase`] that it left the connection in,
//! 5. and reads [`Controller::limits`] at any time.
//!
//! A controller that [listens](Controller::listens) for more than acknowledgements gets it by [`Controller::on_signal`]: a
//! PEP's report, before the reaction to what is missing (2).
//!
//! Time in `Ctx` never goes back. Windows are counted in segments of `Path::mss` bytes, as the Linux kernel counts them,
//! because its arithmetic (which is the reference here) is integer arithmetic on segments.
//!
//! To add a controller: one file with a type that implements [`Controller`] (or, for a loss-based one, [`loss_based::Growth`]),
//! one line in the table of [`AnyController`]. `new_reno.rs` is the file to read first.

mod any;
pub mod bbr;
pub mod cubic;
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

pub use any::AnyController;

use rand_xoshiro::Xoshiro256PlusPlus;
use units::{Bytes, Rate, Span, Time};

/// The random stream that a controller may draw from. It is named by the driver, so that runs repeat.
pub type Random = Xoshiro256PlusPlus;

/// "No limit" for a slow-start threshold, as Linux's `TCP_INFINITE_SSTHRESH`.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// The initial window in segments (RFC 6928).
pub const INITIAL_WINDOW: u32 = 10;

/// What surrounds an event: the moment, the path, and where randomness and log entries come from and go to.
pub struct Ctx<'a> {
    /// Now.
    pub now: Time,
    /// What the endpoint knows of the path.
    pub path: &'a Path,
    /// The controller's own random stream.
    pub random: &'a mut Random,
    /// Where state changes are told, if anybody listens.
    pub log: Option<&'a mut Vec<Event>>,
}

impl Ctx<'_> {
    /// Tells the listener, if there is one; the event is not even built otherwise.
    pub fn tell(&mut self, event: impl FnOnce() -> Event) {
        if let Some(log) = &mut self.log {
            log.push(event());
        }
    }
}

/// What the endpoint knows of the path.
#[derive(Clone, Debug)]
pub struct Path {
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Smoothed round-trip time (RFC 6298), once there is a sample.
    pub srtt: Option<Span>,
    /// The smallest round-trip time of the last 300 s (Linux `tcp_min_rtt`), once there is a sample.
    pub min_rtt: Option<Span>,
    /// The retransmission time-out now, without back-off.
    pub rto: Span,
    /// The rate at which the stack would pace if asked: twice, later 1.2 times, cwnd per smoothed RTT (Linux
    /// `tcp_update_pacing_rate`).
    pub stack_rate: StackRate,
    /// Whether segments leave paced: `HyStart`'s ACK train test depends on it.
    pub paced: bool,
    /// Whether a window that is not used shrinks (Linux `tcp_slow_start_after_idle`).
    pub shrinks_idle: bool,
    /// When pacing lets the next segment leave, as far as is known; in the past if nothing holds it back (Linux
    /// `tcp_wstamp_ns`).
    pub departure: Time,
}

/// A rate that is computed when it is asked for: at each acknowledgement it changes, and few ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackRate {
    bits: u64,
    micros: u64,
}

impl StackRate {
    /// `bits` in each `srtt`, which counts as a microsecond at least.
    #[inline]
    pub fn new(bits: u64, srtt: Span) -> StackRate {
        StackRate { bits, micros: srtt.as_micros().max(1) }
    }

    /// The rate; `None` by default, before the first round-trip time sample.
    pub fn get(self) -> Option<Rate> {
        let bits = self.bits.saturating_mul(1_000_000).checked_div(self.micros)?;
        Some(Rate::from_bits_per_sec(bits))
    }
}

/// Where loss recovery stands (Linux `tcp_ca_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing suspicious.
    #[default]
    Open,
    /// Selective acknowledgements or duplicates seen, nothing marked lost yet.
    Disorder,
    /// The window is being reduced because of an ECN echo.
    Cwr,
    /// The window is being reduced and losses are retransmitted.
    Recovery,
    /// A retransmission time-out happened and not everything sent before it is acknowledged yet.
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
    /// Set when data is sent with nothing in flight, after a pause or after everything was marked lost: how long ago the last
    /// data segment was sent. It was never before that when this is the first (Linux `CA_EVENT_TX_START`).
    pub idle: Option<Span>,
    /// The application has written more than a send buffer holds and waits for room (Linux `SOCK_NOSPACE`): if less than the
    /// window is in flight, that is not for lack of data.
    pub blocked: bool,
    /// The sender had nothing to send before this, by its application's choice (Linux `tp->app_limited`).
    pub app_limited: bool,
}

/// One acknowledgement, after loss detection has digested it.
#[derive(Clone, Debug)]
pub struct AckSample {
    /// Segments that this acknowledgement cumulatively acknowledged.
    pub acked: u32,
    /// Segments newly known to be delivered: cumulatively or selectively.
    pub delivered: u32,
    /// Of `delivered`, those newly known to have met congestion (accurate marks; with classic ECN all or none).
    pub delivered_ce: u32,
    /// Segments newly marked lost by it.
    pub lost: u32,
    /// Segments in flight before it and after it (sent - delivered - lost + retransmitted).
    pub prior_in_flight: u32,
    /// See `prior_in_flight`.
    pub in_flight: u32,
    /// Whether SND.UNA moved.
    pub advanced: bool,
    /// Whether the window, and nothing else, limited sending at the last chance (Linux `tcp_is_cwnd_limited`, with its
    /// allowance in slow start already applied).
    pub cwnd_limited: bool,
    /// The peer echoed a congestion mark.
    pub ece: bool,
    /// Where loss recovery stands after it.
    pub phase: Phase,
    /// This acknowledgement's round-trip time sample: never from a retransmission (Karn).
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
    /// The connection's count of delivered segments when the newest acknowledged one was sent.
    pub prior_delivered: u64,
    /// The same count now.
    pub total_delivered: u64,
    /// The connection's count of lost segments now.
    pub total_lost: u64,
    /// The newest acknowledged segment was sent when the application limited the sender.
    pub app_limited: bool,
    /// The sample's segment was a retransmission.
    pub retransmitted: bool,
    /// The receiver may have held this acknowledgement back: it covers one lone segment, shorter than a full one, that
    /// was all of its round trip (Linux `FLAG_ACK_MAYBE_DELAYED`). BBR then refreshes no expired minimum with its RTT.
    pub maybe_delayed: bool,
}

/// What a PEP between the wired and the radio domain told, after the endpoint has checked it.
#[derive(Clone, Debug)]
pub struct Passage {
    /// Whether a report told it. If not, it follows from what the receiver acknowledged, which must have passed too.
    pub reported: bool,
    /// Segments newly known to have passed the PEP.
    pub passed: u32,
    /// Segments newly known to be missing there.
    pub missing: u32,
    /// Segments in flight now, between sender and receiver.
    pub in_flight: u32,
    /// Whether the window, and nothing else, limited sending at the last chance.
    pub cwnd_limited: bool,
    /// The round-trip time to the PEP: never from a retransmission (Karn).
    pub rtt: Option<Span>,
    /// Everything below has passed; SND.NXT. Both as offsets that never wrap.
    pub una: u64,
    /// See `una`.
    pub next: u64,
}

/// What a controller learns other than by acknowledgements. More kinds will follow, so that a controller ignores those that
/// it does not know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Signal {
    /// Data has passed a PEP, or is missing there.
    Passage(Passage),
}

/// The signals that a controller listens for: none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listens {
    /// [`Signal::Passage`]. The connection asks PEPs for reports.
    pub passages: bool,
    /// What a PEP reports as missing is retransmitted at once.
    pub early_retransmission: bool,
}

/// Why the sender must react.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Loss recovery begins: a segment was marked lost.
    Loss,
    /// A congestion mark was echoed; at most once a round trip.
    Ecn,
    /// The retransmission timer fired. `again` if it is a repeated one, with nothing acknowledged in between.
    Timeout {
        /// See above.
        again: bool,
    },
}

/// The state in which a sign came.
#[derive(Clone, Debug)]
pub struct Congestion {
    /// What happened.
    pub sign: Sign,
    /// Segments in flight now.
    pub in_flight: u32,
    /// Segments marked lost and not yet retransmitted.
    pub lost: u32,
    /// SND.UNA, as an offset that never wraps: whether the reduction before is over (Linux `high_seq`).
    pub una: u64,
    /// SND.NXT, as an offset that never wraps: recovery ends when it is acknowledged.
    pub next: u64,
    /// All that is behind a [`Sign::Loss`] was missing at a PEP, as a [`Signal::Passage`] has told.
    pub announced: bool,
}

/// What a controller allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The congestion window, in segments: at least 1 in a reduction and after a time-out, otherwise at least 2.
    pub cwnd: u32,
    /// The slow-start threshold, in segments.
    pub ssthresh: u32,
    /// The rate at which segments leave; `None` sends as the window opens.
    pub pacing: Option<Rate>,
    /// The least number of segments that leave back to back when paced (Linux `min_tso_segs`); the endpoint makes it more at
    /// high rates and short round-trip times.
    pub burst: u32,
}

/// A state change worth telling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// Slow start ended and why.
    SlowStartExit {
        /// What ended it.
        cause: ExitCause,
        /// The window then, in segments.
        cwnd: u32,
    },
    /// A named state was entered.
    State(&'static str),
}

/// What ended slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCause {
    /// `HyStart` saw a long train of acknowledgements.
    AckTrain,
    /// `HyStart`, Vegas or `YeAH` saw the delay rise.
    Delay,
    /// A loss, a mark or a time-out.
    Congestion,
}

/// A congestion controller. See the crate's documentation for the calling order.
pub trait Controller {
    /// A segment was sent.
    fn on_sent(&mut self, sent: &Sent, cx: &mut Ctx);
    /// An acknowledgement was digested.
    fn on_ack(&mut self, ack: &AckSample, cx: &mut Ctx);
    /// The sender must react.
    fn on_congestion(&mut self, congestion: &Congestion, cx: &mut Ctx);
    /// The last reaction was spurious: everything that was thought lost had arrived.
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
    /// What is allowed now.
    fn limits(&self) -> Limits;
    /// The controller's name, as scenarios and `sysctl` write it.
    fn name(&self) -> &'static str;
    /// The state it is in, for people: `slow-start`, `probe-bw`, ...
    fn state(&self) -> &'static str;
}

/// The value of a controller's gauge, if it shows that now.
pub fn gauge(controller: &impl Controller, name: &str) -> Option<u64> {
    let mut found = None;
    controller.gauges(&mut |gauge, value| found = found.or((gauge == name).then_some(value)));
    found
}

/// A window of `cwnd` segments of `mss` bytes.
pub fn window(cwnd: u32, mss: u32) -> Bytes {
    Bytes::new(u64::from(cwnd) * u64::from(mss))
}
