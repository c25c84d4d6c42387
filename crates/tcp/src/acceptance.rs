//! Which segments of a synchronized connection are processed, and how the others are answered.
//!
//! Sources: RFC 9293 section 3.10.7.4; RFC 5961 (challenge acknowledgements); RFC 7323 section 5 (PAWS); Linux
//! `tcp_validate_incoming`.
//!
//! Deviations:
//! 1. Challenge acknowledgements are limited to one in 500 ms per connection, and so are answers to unacceptable segments
//!    without data; Linux has a limit per host for the former.
//! 2. PAWS makes no exception for acknowledgements that were merely reordered.

use crate::endpoint::{Endpoint, Event, State};
use cc::Controller;
use units::{Span, Time};
use wire::{Flags, Segment};

/// The least time between two answers to what may be an attack or a loop (`tcp_invalid_ratelimit`).
const CHALLENGE_INTERVAL: Span = Span::from_millis(500);

impl<C: Controller> Endpoint<C> {
    /// Whether a segment is to be processed further (`tcp_validate_incoming`).
    #[inline]
    pub(crate) fn validate(&mut self, segment: &Segment, seq: u64, end: u64, now: Time) -> bool {
        let flags = segment.flags;
        let reset = flags.has(Flags::RST);
        let len = u64::from(segment.len);
        if self.timestamps
            && let Some(timestamps) = segment.timestamps
        {
            // PAWS (RFC 7323 section 5), with the one tick of tolerance of Linux.
            let behind = self.receiver.ts_recent.wrapping_sub(timestamps.value) as i32;
            if behind > 1 && !reset {
                self.refuse(seq, len, now);
                return false;
            }
        }
        if !self.receiver.acceptable(seq, end) {
            self.sender.stats.duplicates_received += u64::from(len > 0);
            if !reset {
                self.refuse(seq, len, now);
            }
            return false;
        }
        if reset {
            if seq == self.receiver.next {
                self.end(Event::Reset);
            } else {
                self.challenge(now);
            }
            return false;
        }
        if flags.has(Flags::SYN) {
            if self.state == State::SynReceived && seq == 0 && !flags.has(Flags::ACK) {
                self.syn_due = true;
                return false;
            }
            if self.state != State::SynReceived {
                self.challenge(now);
                return false;
            }
        }
        flags.has(Flags::ACK)
    }

    /// Answers an unacceptable segment; what carries no data only now and then.
    fn refuse(&mut self, seq: u64, len: u64, now: Time) {
        if len > 0 || self.may_answer(now) {
            self.receiver.on_unacceptable(seq, len);
        }
    }

    pub(crate) fn challenge(&mut self, now: Time) {
        if self.may_answer(now) {
            self.sender.stats.challenge_acks_sent += 1;
            self.receiver.now_due = true;
        }
    }

    fn may_answer(&mut self, now: Time) -> bool {
        let allowed = self.last_challenge.is_none_or(|last| now.saturating_since(last) >= CHALLENGE_INTERVAL);
        if allowed {
            self.last_challenge = Some(now);
        }
        allowed
    }
}
