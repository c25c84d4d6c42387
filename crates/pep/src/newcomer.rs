//! A flow that is not known yet: a segment of a sender, until a segment of the receiver shows that it was genuine.
//!
//! Whoever forges the sender's segment does not see what the receiver answers to it, and whoever forges the answer does not know
//! the timestamp that it has to echo. So nothing that is known is given up for a newcomer, and none is remembered among the
//! flows, before it is confirmed.

use crate::arrival::{Arrival, NEAR, is_after};
use units::{Span, Time};
use wire::{Flags, Options, Segment, Timestamps};

/// How long a segment in the middle of a connection waits for its answer before another takes its place.
const HOLD: Span = Span::from_secs(1);

/// Newcomers of a flow lie at these places: a SYN at the number that its answer acknowledges, so that forged ones take no
/// place from it; data at one place.
pub(crate) type Place<K> = (K, Option<u32>);

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newcomer {
    /// It is a SYN, and not data.
    pub(crate) syn: bool,
    /// One past it.
    pub(crate) next: u32,
    /// Its `TSval`, and that of the first time if it was sent again.
    pub(crate) stamp: u32,
    first_stamp: u32,
    /// Its sender understands reports.
    pub(crate) announced: bool,
    pub(crate) via: u64,
    seen: Time,
}

/// What a segment of the receiver says of a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Nothing,
    /// It answers it.
    Confirmed,
    /// It shows that it will not be answered.
    Refuted,
}

/// Whether a segment says that its sender understands reports.
pub(crate) fn announces(segment: &Segment) -> bool {
    match &segment.options {
        Options::Syn(options) => options.reports,
        Options::Announcement => true,
        Options::Sack(_) | Options::Report(_) => false,
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
            via: arrival.via,
            seen: now,
        }
    }

    /// Another comes to the same place: whether it is the same SYN again, or late enough to take it.
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
