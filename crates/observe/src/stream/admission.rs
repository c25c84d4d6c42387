//! Which packets between two ends belong to a direction of their connection, as its receiver would judge.
//!
//! Read first: RFC 9293 section 3.10.7 (which segments and acknowledgements are acceptable), RFC 5961 sections 3 and 4 (resets and
//! challenge acknowledgements). Between the same ports there may also be packets of an earlier connection, whose other end
//! still holds it; answers of another server; and damaged numbers, since checksums are not verified.
//!
//! A capture may have missed packets, which an end never has: what is judged to be foreign is kept as a suspect, and believed once
//! the receiver acknowledges it or enough follows it.

use units::Time;
use wire::{Flags, Segment};

use super::suspect::Suspect;
use super::{LARGEST_UNSCALED, LARGEST_WINDOW, ORIGIN, Options, Stream, near};

/// Segments that must follow data outside the window that the receiver permits before it is believed; where that window is unknown,
/// or acknowledgements pass elsewhere; and if what they acknowledge was never sent, or their direction has not begun.
/// Fitted: old packets come alone or in one flight.
const FOLLOWERS: usize = 3;
const FOLLOWERS_UNKNOWN: usize = 1;
const FOLLOWERS_FOREIGN: usize = 64;

/// What a packet is to its direction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Admission {
    /// Its own.
    Own,
    /// A SYN-ACK that begins the direction anew.
    Anew,
    /// Its own, and so is earlier data that did not seem so.
    Late(Late),
    /// A byte that asks whether a closed window has opened (RFC 9293 section 3.8.6.1).
    Probe,
    /// Not of this connection, as far as is known.
    Foreign,
}

/// Data that has turned out to be the connection's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Late {
    pub(crate) segments: u64,
    /// Their payload, and what of it counts as delivered now.
    pub(crate) bytes: u64,
    pub(crate) delivered: u64,
    /// What is missing before it.
    pub(crate) gap: (u64, u64),
}

impl Stream {
    /// Judges a packet at the sender's edge, before [`Stream::entered`] takes it; `back` is the other direction, and `alone` says
    /// whether there is one vantage point.
    #[inline]
    pub(crate) fn admit(&mut self, back: &Stream, tcp: &Segment, payload: u32, alone: bool, now: Time) -> Admission {
        if self.first.is_none() || tcp.flags.has(Flags::SYN) {
            return self.admit_first(back, tcp, payload, alone, now);
        }
        if payload == 0 && !tcp.flags.has(Flags::FIN) {
            return Admission::Own;
        }
        let start = near(tcp.seq, self.place());
        if start > self.highest {
            return self.admit_jump(back, tcp, (start, payload), alone, now);
        }
        // Before the connection began, or farther back than the largest window.
        if self.has_syn && start + 1 < self.begin || start + LARGEST_WINDOW < self.place() {
            return Admission::Foreign;
        }
        if payload == 1 && self.window == Some(0) && !tcp.flags.has(Flags::FIN) {
            return self.admit_byte(start, now);
        }
        Admission::Own
    }

    /// The first packet of a direction, or a SYN.
    #[cold]
    fn admit_first(&mut self, back: &Stream, tcp: &Segment, payload: u32, alone: bool, now: Time) -> Admission {
        let answers = !back.has_syn || tcp.flags.has(Flags::ACK) && back.may_acknowledge(tcp);
        match (self.first, tcp.flags.has(Flags::SYN)) {
            (None, true) if !tcp.flags.has(Flags::ACK) || answers => Admission::Own,
            (None, false) if answers => Admission::Own,
            (None, false) if payload > 0 && !tcp.flags.has(Flags::RST) => {
                let start = self.suspect.as_ref().map_or(ORIGIN + u64::from(tcp.seq), |one| near(tcp.seq, one.end()));
                let end = start + u64::from(payload) + u64::from(tcp.flags.has(Flags::FIN));
                let range = (start, end, payload);
                if !self.follows(range, FOLLOWERS_FOREIGN, now) {
                    return Admission::Foreign;
                }
                let first = self.suspect.as_ref().map_or(start, |suspect| suspect.start());
                self.start_at(first as u32, false);
                // Offsets count anew.
                for range in self.suspect.iter_mut().flat_map(|suspect| &mut suspect.ranges) {
                    let len = range.1 - range.0;
                    range.0 = near(range.0 as u32, self.highest);
                    range.1 = range.0 + len;
                }
                self.believe_suspect(alone)
            }
            (None, _) => Admission::Foreign,
            (Some(first), _) if first == tcp.seq => Admission::Own,
            // Of several answers to a SYN, that which is acknowledged counts.
            (Some(first), _) if answers && self.acked == ORIGIN + u64::from(first) => {
                let spurned = self.has_syn.then_some(first);
                *self = Stream { spurned, ..Stream::new(self.most_notes) };
                Admission::Anew
            }
            _ => Admission::Foreign,
        }
    }

    /// Whether an acknowledgement of data of this direction is one that its receiver may send, within what a capture may have missed.
    fn may_acknowledge(&self, tcp: &Segment) -> bool {
        let ack = near(tcp.ack, self.highest);
        self.first.is_some_and(|first| ack > ORIGIN + u64::from(first)) && ack <= self.highest + LARGEST_UNSCALED
    }

    /// How far data may begin beyond a hole, and whether that is what the receiver permits.
    fn limit(&self) -> (u64, bool) {
        match self.edge {
            Some(edge) if self.was_heard() && !self.is_unheard => (edge.max(self.highest), true),
            edge => (edge.unwrap_or(0).max(self.highest + LARGEST_UNSCALED), false),
        }
    }

    /// Data beyond the highest, behind a hole.
    #[cold]
    fn admit_jump(
        &mut self,
        back: &Stream,
        tcp: &Segment,
        (start, payload): (u64, u32),
        alone: bool,
        now: Time,
    ) -> Admission {
        if let Some(suspect) = self.suspect.take_if(|suspect| suspect.is_probe && start == suspect.end()) {
            // Its sender takes the byte for sent.
            return Admission::Late(self.believe(&suspect, alone));
        }
        let (limit, is_permitted) = self.limit();
        if start <= limit {
            return Admission::Own;
        }
        let mut needed = if is_permitted { FOLLOWERS } else { FOLLOWERS_UNKNOWN };
        if tcp.flags.has(Flags::ACK) && back.first.is_some() {
            let ack = near(tcp.ack, back.acked);
            if ack + LARGEST_WINDOW < back.acked || back.has_syn && ack < back.begin {
                return Admission::Foreign;
            }
            if ack > back.highest + LARGEST_UNSCALED {
                needed = FOLLOWERS_FOREIGN;
            }
        }
        let end = start + u64::from(payload) + u64::from(tcp.flags.has(Flags::FIN));
        if !self.follows((start, end, payload), needed, now) {
            return Admission::Foreign;
        }
        self.believe_suspect(alone)
    }

    /// Whether enough has come before this data to believe it; otherwise it becomes a suspect.
    fn follows(&mut self, range: (u64, u64, u32), needed: usize, now: Time) -> bool {
        let near = |suspect: &Suspect| {
            !suspect.is_probe && range.0 >= suspect.start() && range.0 <= suspect.end() + LARGEST_UNSCALED
        };
        match &mut self.suspect {
            Some(suspect) if near(suspect) => {
                // The parts of a packet that was cut come at once.
                suspect.followers += usize::from(now > suspect.last);
                suspect.last = now;
                if suspect.followers >= needed {
                    return true;
                }
                if suspect.ranges.len() < 4 * FOLLOWERS_FOREIGN {
                    suspect.ranges.push(range);
                }
            }
            suspect => *suspect = Some(Suspect::new(range, false, now)),
        }
        false
    }

    /// A byte of data, sent to a closed window.
    #[cold]
    fn admit_byte(&mut self, start: u64, now: Time) -> Admission {
        if start == self.highest {
            self.suspect = Some(Suspect::new((start, start + 1, 1), true, now));
            return Admission::Probe;
        }
        // The first byte that was not acknowledged, again.
        if start == self.acked { Admission::Probe } else { Admission::Own }
    }

    /// Takes what was suspect, if anything was, for the connection's, and so what has just come.
    fn believe_suspect(&mut self, alone: bool) -> Admission {
        self.suspect.take().map_or(Admission::Own, |suspect| Admission::Late(self.believe(&suspect, alone)))
    }

    /// Takes a suspect for data of the connection's.
    fn believe(&mut self, suspect: &Suspect, alone: bool) -> Late {
        let mut late = Late { gap: (self.highest, suspect.start().max(self.highest)), ..Late::default() };
        self.highest = self.highest.max(suspect.end());
        for &(start, end, payload) in &suspect.ranges {
            late.segments += u64::from(payload > 0);
            late.bytes += u64::from(payload);
            if end - start > u64::from(payload) && self.fin.is_none() {
                self.fin = Some(end - 1);
            }
            if alone {
                late.delivered += self.arrive(start, end, alone);
            }
        }
        late
    }

    /// An acknowledgement by `receiver` enters: what it says of what did not seem to be the connection's.
    #[inline]
    pub(crate) fn vouch(&mut self, receiver: &Stream, tcp: &Segment, alone: bool) -> Option<Late> {
        if self.suspect.is_none() && self.spurned.is_none() || tcp.flags.has(Flags::RST) || !tcp.flags.has(Flags::ACK) {
            return None;
        }
        self.vouched(receiver, tcp, alone)
    }

    #[cold]
    fn vouched(&mut self, receiver: &Stream, tcp: &Segment, alone: bool) -> Option<Late> {
        let first = self.first?;
        if let Some(spurned) = self.spurned.take_if(|spurned| tcp.ack == spurned.wrapping_add(1)) {
            if self.acked == ORIGIN + u64::from(first) && spurned != first {
                *self = Stream { scale: self.scale, ..Stream::new(self.most_notes) };
                self.start_at(spurned, true);
                self.highest += 1;
            }
            return None;
        }
        let ack = near(tcp.ack, self.acked);
        let suspect = self.suspect.as_ref()?;
        if ack <= self.highest || ack > suspect.end() {
            return None;
        }
        // It acknowledges a part, or permits it.
        let window = self.shift(receiver, tcp).map_or(0, |shift| u64::from(tcp.window) << shift);
        if ack <= suspect.start() && (suspect.is_probe || suspect.start() > ack + window) {
            return None;
        }
        let suspect = self.suspect.take()?;
        Some(self.believe(&suspect, alone))
    }

    /// The window scale of a packet of `receiver`'s; `None` if it is unknown. A scale counts only if both ends offered one (RFC 7323
    /// section 2.2), and not in a SYN.
    fn shift(&self, receiver: &Stream, tcp: &Segment) -> Option<u8> {
        match (receiver.scale, self.scale) {
            _ if tcp.flags.has(Flags::SYN) => Some(0),
            (Some(None), _) | (_, Some(None)) => Some(0),
            (Some(Some(own)), Some(Some(_))) => Some(own.min(14)),
            _ => None,
        }
    }

    /// Notes what an acknowledgement of `receiver`'s permits.
    #[inline]
    pub(super) fn permit(&mut self, receiver: &Stream, tcp: &Segment, ack: u64) {
        self.window = Some(tcp.window);
        self.edge = self.shift(receiver, tcp).map(|shift| {
            let edge = ack + (u64::from(tcp.window) << shift);
            self.edge.map_or(edge, |before| before.max(edge))
        });
    }

    /// Whether a reset of this direction's is one that its receiver accepts (RFC 9293 section 3.10.7, RFC 5961 section 3), within what
    /// a capture may have missed.
    pub(crate) fn resets(&self, back: &Stream, tcp: &Segment) -> bool {
        if self.first.is_none() {
            return !back.has_syn || tcp.flags.has(Flags::ACK) && back.may_acknowledge(tcp);
        }
        let at = near(tcp.seq, self.place());
        let known = if back.first.is_none() { Some(self.highest) } else { self.edge };
        let edge = known.unwrap_or(self.highest + LARGEST_WINDOW).max(self.highest + LARGEST_UNSCALED);
        at + LARGEST_UNSCALED >= self.acked && at <= edge
    }

    /// Whether this begins another connection between the same ports; `is_closed` if this one is over.
    #[inline]
    pub(crate) fn is_replaced_by(&self, tcp: &Segment, is_closed: bool) -> bool {
        tcp.flags.has(Flags::SYN)
            && self.first.is_some_and(|first| {
                let is_answer = tcp.flags.has(Flags::ACK);
                first != tcp.seq && (!is_answer || is_closed && self.acked > ORIGIN + u64::from(first))
            })
    }

    /// Whether a packet that has arrived was taken for the connection's when it entered.
    #[inline]
    pub(crate) fn owns(&self, tcp: &Segment, payload: u32) -> bool {
        self.first.is_some()
            && (payload <= 1 || {
                let start = near(tcp.seq, self.place());
                start + u64::from(payload) <= self.highest
            })
    }

    /// The options of a SYN of this direction.
    #[inline]
    pub(super) fn note_syn(&mut self, tcp: &Segment) {
        if let Options::Syn(syn) = &tcp.options {
            self.scale = Some(syn.window_scale);
        }
    }
}
