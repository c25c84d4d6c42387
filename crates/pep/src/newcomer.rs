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

#[cfg(test)]
mod tests {
    use super::*;
    use wire::SynOptions;

    fn stamps(value: u32, echo: u32) -> Timestamps {
        Timestamps { value, echo }
    }

    fn segment(seq: u32, ack: u32, len: u16, flags: Flags) -> Segment {
        Segment { seq, ack, window: 9, len, flags, timestamps: None, options: Options::default() }
    }

    fn syn(seq: u32, ack: u32, flags: Flags, reports: bool) -> Segment {
        let options = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true, reports };
        Segment { options: Options::Syn(options), ..segment(seq, ack, 0, Flags::SYN | flags) }
    }

    fn newcomer(segment: &Segment, value: u32, via: u64, ms: u64) -> Newcomer {
        let now = Time::from_nanos(ms * 1_000_000);
        Newcomer::new(segment, stamps(value, 0), &Arrival { packets: 1, packet_len: 100, via }, now)
    }

    #[test]
    fn data_keeps_its_place_for_a_second() {
        for (ms, taken) in [(1_000, false), (1_001, true)] {
            let mut first = newcomer(&segment(1, 1, 100, Flags::ACK), 5, 0, 0);
            first.meet(&newcomer(&segment(901, 1, 100, Flags::ACK), 6, 0, ms));
            assert_eq!(first.next, if taken { 1001 } else { 101 }, "{ms} ms");
        }
    }

    #[test]
    fn a_syn_that_is_sent_again_keeps_its_announcement_and_its_first_time() {
        let mut first = newcomer(&syn(1, 0, Flags(0), true), 100, 1, 0);
        first.meet(&newcomer(&syn(1, 0, Flags(0), false), 110, 2, 10));
        assert_eq!((first.announced, first.stamp, first.first_stamp, first.via), (true, 110, 100, 2));
        // An older one that comes late changes no time.
        first.meet(&newcomer(&syn(1, 0, Flags(0), false), 90, 2, 20));
        assert_eq!((first.announced, first.stamp, first.first_stamp), (true, 110, 100));
        let answers = |echo| first.verdict(&segment(1, 2, 0, Flags::ACK), stamps(0, echo));
        assert_eq!([99, 100, 105, 110].map(answers)[1..], [Verdict::Confirmed; 3]);
        assert_eq!((answers(99), answers(111)), (Verdict::Nothing, Verdict::Nothing));
        let mut silent = newcomer(&syn(1, 0, Flags(0), false), 100, 1, 0);
        silent.meet(&newcomer(&syn(1, 0, Flags(0), true), 110, 1, 10));
        assert!(silent.announced, "either of them");
    }

    #[test]
    fn data_is_confirmed_by_its_own_time_and_refuted_by_another() {
        let data = newcomer(&segment(1, 1, 100, Flags::ACK), 100, 0, 0);
        let verdict = |ack: u32, echo| data.verdict(&segment(1, ack, 0, Flags::ACK), stamps(0, echo));
        assert_eq!((verdict(101, 100), verdict(101, 99), verdict(101, 101)), {
            (Verdict::Confirmed, Verdict::Refuted, Verdict::Refuted)
        });
        // What does not acknowledge all of it says nothing of it.
        assert_eq!((verdict(100, 100), verdict(100, 99)), (Verdict::Nothing, Verdict::Nothing));
        let far = 101 + (1 << 30);
        assert_eq!((verdict(far - 1, 100), verdict(far, 100)), (Verdict::Confirmed, Verdict::Nothing));
    }

    #[test]
    fn a_sender_answers_the_receivers_syn_by_its_number_and_its_time() {
        let mut opening = Opening::new(&syn(500, 0, Flags(0), false), stamps(40, 0));
        // The same SYN again, and an older transmission that comes late.
        opening.meet(&Opening::new(&syn(500, 0, Flags(0), false), stamps(44, 0)));
        opening.meet(&Opening::new(&syn(500, 0, Flags(0), false), stamps(42, 0)));
        let answer = |opening: &mut Opening, seq, ack, flags, echo| {
            let segment = syn(seq, ack, flags, true);
            opening.take_answer(&segment, stamps(100, echo), &newcomer(&segment, 100, 0, 0))
        };
        for (ack, flags, echo, taken) in [
            (501, Flags::ACK, 40, true),
            (501, Flags::ACK, 44, true),
            (501, Flags::ACK, 39, false),
            (501, Flags::ACK, 45, false),
            (502, Flags::ACK, 40, false),
            (501, Flags(0), 40, false),
        ] {
            assert_eq!(answer(&mut opening.clone(), 7, ack, flags, echo), taken, "{ack} {flags:?} {echo}");
        }
        assert!(answer(&mut opening, 7, 501, Flags::ACK, 40));
        let confirmed = |opening: &Opening, ack, echo| {
            opening.confirmed(&segment(501, ack, 0, Flags::ACK), stamps(50, echo)).map(|newcomer| newcomer.next)
        };
        assert_eq!(
            (confirmed(&opening, 8, 100), confirmed(&opening, 9, 100), confirmed(&opening, 8, 99)),
            (Some(8), None, None)
        );
        // The answer sent again is the same one; one with another number takes its place.
        let again = syn(7, 501, Flags::ACK, false);
        assert!(opening.take_answer(&again, stamps(120, 40), &newcomer(&again, 120, 0, 0)));
        assert_eq!((confirmed(&opening, 8, 100), confirmed(&opening, 8, 120)), (Some(8), Some(8)));
        assert!(
            opening.confirmed(&segment(501, 8, 0, Flags::ACK), stamps(50, 120)).is_some_and(|answer| answer.announced)
        );
        let other = syn(70, 501, Flags::ACK, false);
        assert!(opening.take_answer(&other, stamps(130, 40), &newcomer(&other, 130, 0, 0)));
        assert_eq!((confirmed(&opening, 8, 120), confirmed(&opening, 71, 130)), (None, Some(71)));
        assert!(
            opening
                .confirmed(&segment(501, 71, 0, Flags::ACK), stamps(50, 130))
                .is_some_and(|answer| !answer.announced)
        );
        // The SYN of a new connection forgets all.
        opening.meet(&Opening::new(&syn(900, 0, Flags(0), false), stamps(60, 0)));
        assert_eq!((opening.next, confirmed(&opening, 71, 130)), (901, None));
    }
}
