//! An unconfirmed flow: a segment of a sender, until a segment of the receiver shows that it was genuine.
//!
//! An attacker who forges the sender's segment does not see the receiver's answer, and one who forges the answer does not
//! know the timestamp to echo. Therefore no known flow is evicted for a newcomer, and a newcomer does not become a flow
//! before it is confirmed.
//!
//! A sender's answer to the SYN of a receiver has a place of its own, beside that SYN: whoever does not see what the receiver
//! sends does not know which numbers to answer. So a flood of segments from the senders' side, whatever they are, cannot
//! push out the answers of connections that receivers open.

use crate::arrival::{Arrival, NEAR, is_after};
use units::{Span, Time};
use wire::{Flags, Options, Segment, Timestamps};

/// How long a segment in the middle of a connection waits for its answer before another replaces it.
const HOLD: Span = Span::from_secs(1);

/// The places of a flow's newcomers: a SYN at the number that its answer acknowledges, so that forged ones do not take its
/// place; data at a single place.
pub(crate) type Place<K> = (K, Option<u32>);

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newcomer {
    /// Whether it is a SYN rather than data.
    pub(crate) syn: bool,
    /// One past its last sequence number.
    pub(crate) next: u32,
    /// Its `TSval`, and that of the first transmission if it was retransmitted.
    pub(crate) stamp: u32,
    first_stamp: u32,
    /// Whether its sender understands reports.
    pub(crate) announced: bool,
    /// Whether it offers to scale windows.
    pub(crate) scales: bool,
    pub(crate) via: u64,
    seen: Time,
}

/// The meaning of a segment of the receiver for a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Nothing,
    /// It answers the newcomer.
    Confirmed,
    /// It rules out an answer.
    Refuted,
}

/// Returns whether a segment announces that its sender understands reports.
pub(crate) fn announces(segment: &Segment) -> bool {
    match &segment.options {
        Options::Syn(options) => options.reports,
        Options::Announcement => true,
        Options::Sack(_) | Options::Report(_) => false,
    }
}

/// Returns the window scale that a SYN offers.
fn window_scale(segment: &Segment) -> Option<u8> {
    match &segment.options {
        Options::Syn(options) => options.window_scale,
        _ => None,
    }
}

/// The SYN of a receiver, and the sender's answer to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    /// One past its sequence number.
    next: u32,
    /// Its `TSval`, and that of the first transmission if it was retransmitted.
    stamp: u32,
    first_stamp: u32,
    /// The window scale that it offers.
    pub(crate) scale: Option<u8>,
    /// The sender's SYN-ACK, once that has passed.
    answer: Option<Newcomer>,
}

impl Opening {
    pub(crate) fn new(segment: &Segment, timestamps: Timestamps) -> Opening {
        Opening {
            next: segment.seq.wrapping_add(segment.seq_len()),
            stamp: timestamps.value,
            first_stamp: timestamps.value,
            scale: window_scale(segment),
            answer: None,
        }
    }

    /// Takes in another SYN of the receiver with the same addresses and ports: the same one again, or that of a new connection.
    pub(crate) fn meet(&mut self, other: &Opening) {
        if other.next != self.next {
            *self = *other;
        } else if is_after(other.stamp, self.stamp) {
            self.stamp = other.stamp;
        }
    }

    /// Takes the sender's answer, if this is one: it acknowledges the receiver's SYN and echoes its timestamp.
    pub(crate) fn take_answer(&mut self, segment: &Segment, timestamps: Timestamps, newcomer: &Newcomer) -> bool {
        let echoes = timestamps.echo.wrapping_sub(self.first_stamp) <= self.stamp.wrapping_sub(self.first_stamp);
        if !(segment.flags.has(Flags::ACK) && segment.ack == self.next && echoes) {
            return false;
        }
        match &mut self.answer {
            Some(answer) if answer.next == newcomer.next => answer.meet(newcomer),
            answer => *answer = Some(*newcomer),
        }
        true
    }

    /// Returns the sender's answer that this segment of the receiver confirms.
    pub(crate) fn confirmed(&self, reply: &Segment, timestamps: Timestamps) -> Option<Newcomer> {
        let answer = self.answer.filter(|answer| answer.next == reply.ack)?;
        (answer.verdict(reply, timestamps) == Verdict::Confirmed).then_some(answer)
    }
}

impl Newcomer {
    pub(crate) fn new(segment: &Segment, timestamps: Timestamps, arrival: &Arrival, now: Time) -> Newcomer {
        Newcomer {
            syn: segment.flags.has(Flags::SYN),
            next: segment.seq.wrapping_add(segment.seq_len()),
            stamp: timestamps.value,
            first_stamp: timestamps.value,
            announced: announces(segment),
            scales: window_scale(segment).is_some(),
            via: arrival.via,
            seen: now,
        }
    }

    /// Returns whether another newcomer may take this place: the same SYN again, or one that arrives late enough.
    pub(crate) fn meet(&mut self, other: &Newcomer) {
        if self.syn {
            // One that is sent again carries no announcement.
            let announced = self.announced || other.announced;
            let stamp = if is_after(other.stamp, self.stamp) { other.stamp } else { self.stamp };
            *self = Newcomer { announced, stamp, first_stamp: self.first_stamp, ..*other };
        } else if other.seen.saturating_since(self.seen) > HOLD {
            *self = *other;
        }
    }

    pub(crate) fn verdict(&self, reply: &Segment, timestamps: Timestamps) -> Verdict {
        let echo = timestamps.echo;
        if self.syn {
            // Its place has told that the acknowledgement is right.
            let answers = echo.wrapping_sub(self.first_stamp) <= self.stamp.wrapping_sub(self.first_stamp);
            return if answers { Verdict::Confirmed } else { Verdict::Nothing };
        }
        match u64::from(reply.ack.wrapping_sub(self.next)) {
            NEAR.. => Verdict::Nothing,
            _ if echo == self.stamp => Verdict::Confirmed,
            _ => Verdict::Refuted,
        }
    }
}
