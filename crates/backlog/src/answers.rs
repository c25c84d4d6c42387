//! What a modem holds, learnt from when packets are answered.
//!
//! Packets are counted as they are handed down, and a packet's *position* is the count behind it. The modem is a FIFO, so a
//! packet that is answered says that all up to its position has drained, whatever it was: also what nobody answers, as
//! most of UDP. The answer comes later than that by the round trip without the modem's queue, which each conversation has of
//! its own: the shortest round trip that it has seen of late, its *base*.
//!
//! - An answer at `t` to position `x` says that `x` had drained at `t - base`. The drain's rate is what drained between
//!   two such moments, a *round* of at least a round trip apart. The largest of the last rounds counts, among those in which
//!   the modem had something to send all the time: because the packets waited there, or because there were always some
//!   waiting above.
//! - The modem holds what was handed down, less `x`, less what has drained at this rate in the base. It has room while that
//!   is less than what drains in the *target*, the time for which packets are to wait there. So a rate that rises is found
//!   by itself: the queue below gets shorter, answers come earlier, and more drains in a round than in the one before.
//!   In one round of eight there is room for a quarter more, in case the base was a lucky packet's.
//! - An answer that may be late for the receiver's own reasons says nothing: TCP may hold back the acknowledgement of a lone
//!   segment for half a second (RFC 9293 section 3.8.6.3), and Linux holds back those of a buffer that fills because the
//!   application reads slowly (`__tcp_ack_snd_check`). What such conversations send counts like what nobody answers. So the
//!   drain's rate is what leaves the modem, over all, and not what one receiver takes.
//! - Every so often it is let run nearly empty for a round trip, which is when bases are seen again.
//! - What asks for no answer is taken to drain a quarter faster than the last rate: too much is seen at the next answer.
//! - Without any answer for a second nothing is known, and there is room for everything, as without us. So it is in the
//!   beginning, until packets are seen to wait longer than the target.
//!
//! The maximum over rounds and the way it is probed are those of BBR (draft-cardwell-iccrg-bbr-congestion-control), applied
//! to all that goes through a modem instead of one connection. Why not byte queue limits on what is answered: those learn
//! from a buffer that was seen to be empty, and by answers it is seen a round trip later.

use std::collections::{BTreeMap, VecDeque};

use units::{Bytes, Rate, Span, Time};

use crate::{Answer, DrainModel, Estimate, Probe};

/// Rounds that are remembered, as BBR's.
const ROUNDS: usize = 10;
/// One in so many rounds looks for more, by a quarter, as BBR's.
const CYCLE: u32 = 8;
/// A round lasts at least so long: some retransmissions (HARQ) and scheduling requests of a radio.
const ROUND: Span = Span::from_millis(50);
/// For how long the shortest round trip is remembered, as BBR's; then the modem is let run empty.
const MEMORY: Span = Span::from_secs(10);
/// Without an answer for so long nothing is known: the initial retransmission time-out of TCP (RFC 6298).
const SILENCE: Span = Span::from_secs(1);
/// A receiver reads slowly if its window has fallen below this share of the widest, and for so long after that. Fitted: a
/// receiver that keeps up has most of its buffer free.
const NARROW: u32 = 4;
const SLOW: Span = MEMORY;
/// Conversations, and probes of each, that are remembered at most. Those beyond are not asked.
const CONVERSATIONS: usize = 4096;
const PROBES: usize = 4096;

/// See the module.
#[derive(Clone, Debug)]
pub struct Answers {
    target: Span,
    /// Bytes that were handed down, ever.
    handed: u64,
    /// What was handed when nothing more waited, for the last time.
    dry: u64,
    conversations: BTreeMap<u64, Conversation>,
    /// All probes in the order of their positions. Those that are answered leave when they come to the front.
    asked: VecDeque<(u64, u64)>,
    /// The last answer by which most has drained.
    last: Option<Drained>,
    /// When anything was answered, or had to be answered first after that.
    heard: Time,
    round: Option<Round>,
    /// Rates of the last rounds.
    rates: VecDeque<Rate>,
    rate: Option<Rate>,
    /// Rounds so far.
    count: u32,
    /// Until when it runs empty, or when it does so next.
    drains: Drains,
    delay: Option<Span>,
}

#[derive(Clone, Debug)]
struct Conversation {
    /// In the order of their ends and positions.
    probes: VecDeque<Asked>,
    highest: u32,
    /// The shortest round trip since `base_since`, and that in the time before.
    base: Span,
    base_before: Span,
    base_since: Time,
    used: Time,
    /// The widest window field of the receiver, and until when it is taken to read slowly.
    widest: u16,
    slow_until: Time,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    end: u32,
    position: u64,
    at: Time,
}

/// This position had drained at a time before now.
#[derive(Clone, Copy, Debug)]
struct Drained {
    position: u64,
    base: Span,
    answered: Time,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    position: u64,
    at: Time,
    /// The shortest wait in the modem since.
    least: Span,
}

#[derive(Clone, Copy, Debug)]
enum Drains {
    At(Time),
    Until(Time),
}

/// Whether `a` comes before `b` or is it, modulo 2³².
fn upto(a: u32, b: u32) -> bool {
    b.wrapping_sub(a) < 1 << 31
}

impl Conversation {
    fn new(now: Time) -> Conversation {
        Conversation {
            probes: VecDeque::new(),
            highest: 0,
            base: Span::MAX,
            base_before: Span::MAX,
            base_since: now,
            used: now,
            widest: 0,
            slow_until: Time::ZERO,
        }
    }

    /// Notes a window field of the receiver. If that reads slowly, nothing is asked any more.
    fn open(&mut self, window: u16, now: Time) {
        self.widest = self.widest.max(window);
        if u32::from(window) * NARROW < self.widest.into() {
            self.slow_until = now + SLOW;
        }
        if self.is_slow(now) {
            self.probes.clear();
        }
    }

    fn is_slow(&self, now: Time) -> bool {
        now < self.slow_until
    }

    /// Notes a round trip: what it is without waiting.
    fn base(&mut self, rtt: Span, now: Time) -> Span {
        if now.saturating_since(self.base_since) > MEMORY {
            (self.base_before, self.base, self.base_since) = (self.base, rtt, now);
        }
        self.base = self.base.min(rtt);
        self.base.min(self.base_before)
    }
}

impl Answers {
    /// Nothing is known. Packets are to wait for `target` in the modem.
    pub fn new(target: Span) -> Answers {
        Answers {
            target,
            handed: 0,
            dry: 0,
            conversations: BTreeMap::new(),
            asked: VecDeque::new(),
            last: None,
            heard: Time::ZERO,
            round: None,
            rates: VecDeque::new(),
            rate: None,
            count: 0,
            drains: Drains::At(Time::ZERO + MEMORY),
            delay: None,
        }
    }

    /// This probe was answered.
    fn learn(&mut self, conversation: u64, asked: Asked, now: Time) {
        let Some(of) = self.conversations.get_mut(&conversation) else { return };
        let rtt = now.saturating_since(asked.at);
        let base = of.base(rtt, now);
        let waited = rtt.saturating_sub(base);
        (self.heard, self.delay) = (now, Some(waited));
        let newest = Drained { position: asked.position, base, answered: now };
        let reach = |d: &Drained| d.position + self.rate.map_or(0, |rate| rate.bytes_in(d.base).get());
        if self.last.is_none_or(|last| reach(&newest) >= reach(&last)) {
            self.last = Some(newest);
        }
        // Before the clock's beginning nothing has drained.
        let at = Time::ZERO + now.saturating_since(Time::ZERO + base);
        self.note(asked.position, at, waited, base);
    }

    /// `position` had drained `at` that time, after it had `waited`.
    fn note(&mut self, position: u64, at: Time, waited: Span, base: Span) {
        let Some(round) = &mut self.round else {
            self.round = Some(Round { position, at, least: waited });
            return;
        };
        round.least = round.least.min(waited);
        if position <= round.position || at.saturating_since(round.at) < base.max(ROUND) {
            return;
        }
        let rate = Rate::over(Bytes::new(position - round.position), at - round.at);
        let waited_below = round.least >= self.target;
        let waited_above = self.dry <= round.position;
        if waited_below || self.rate.is_some() && waited_above {
            if self.rates.len() == ROUNDS {
                self.rates.pop_front();
            }
            self.rates.push_back(rate);
            self.rate = self.rates.iter().max().copied();
        }
        self.count = self.count.wrapping_add(1);
        self.round = Some(Round { position, at, least: waited });
    }

    /// What may be unanswered at `rate`, and what is, less what will not be answered and is taken for drained.
    fn window(&self, rate: Rate, last: &Drained, now: Time) -> (u64, u64) {
        let window = match self.drains {
            Drains::Until(end) if now < end => rate.bytes_in(last.base).get() / 2,
            _ => {
                let whole = rate.bytes_in(last.base + self.target).get();
                if self.count.is_multiple_of(CYCLE) { whole + whole / 4 } else { whole }
            }
        };
        // Up to the next probe nothing is to be answered.
        let silent = self.asked.front().map_or(self.handed, |&(position, _)| position).saturating_sub(last.position);
        let drained = rate.mul_div(5, 4).bytes_in(now.saturating_since(last.answered)).get();
        (window, (self.handed - last.position) - silent.min(drained))
    }

    /// Questions that are answered leave the front, and those that have drained by an answer to a later one.
    fn shift(&mut self) {
        while let Some(&(position, conversation)) = self.asked.front() {
            let of = self.conversations.get(&conversation);
            let waits = self.last.is_none_or(|last| last.position < position);
            if waits && of.is_some_and(|of| of.probes.binary_search_by_key(&position, |asked| asked.position).is_ok()) {
                break;
            }
            self.asked.pop_front();
        }
    }

    /// Nothing is known any more.
    fn forget(&mut self) {
        (self.last, self.round, self.rate, self.delay) = (None, None, None, None);
        self.rates.clear();
        self.asked.clear();
        for of in self.conversations.values_mut() {
            of.probes.clear();
        }
    }

    /// Lets the modem run empty when that is due.
    fn drain(&mut self, base: Span, now: Time) {
        match self.drains {
            Drains::At(at) if now >= at => self.drains = Drains::Until(now + base.max(ROUND) + self.target),
            Drains::Until(end) if now >= end => self.drains = Drains::At(now + MEMORY),
            _ => {}
        }
    }
}

impl DrainModel for Answers {
    fn has_room(&mut self, now: Time) -> bool {
        let (Some(rate), Some(last)) = (self.rate, self.last) else { return true };
        self.drain(last.base, now);
        self.shift();
        let (window, out) = self.window(rate, &last, now);
        if out < window || out == 0 {
            return true;
        }
        if now.saturating_since(self.heard) >= SILENCE {
            self.forget();
            return true;
        }
        false
    }

    fn handed(&mut self, bytes: u32, probe: Option<Probe>, now: Time) {
        if self.last.is_none_or(|last| last.position == self.handed) {
            // After a rest it takes its time until something can be answered.
            self.heard = now;
            if let Some(last) = &mut self.last {
                last.answered = now;
            }
        }
        self.handed += u64::from(bytes);
        let Some(Probe { conversation, end }) = probe else { return };
        if self.conversations.len() >= CONVERSATIONS && !self.conversations.contains_key(&conversation) {
            self.conversations.retain(|_, of| now.saturating_since(of.used) < MEMORY);
            if self.conversations.len() >= CONVERSATIONS {
                return;
            }
        }
        let position = self.handed;
        let fresh = !self.conversations.contains_key(&conversation);
        let of = self.conversations.entry(conversation).or_insert_with(|| Conversation::new(now));
        of.used = now;
        if !fresh && upto(end, of.highest) {
            // Sent again: whichever is answered, it is not known which (Karn).
            if let Some(at) = of.probes.iter().position(|asked| asked.end == end) {
                of.probes.remove(at);
            }
            return;
        }
        of.highest = end;
        if !of.is_slow(now) && of.probes.len() < PROBES && self.asked.len() < CONVERSATIONS * 16 {
            of.probes.push_back(Asked { end, position, at: now });
            self.asked.push_back((position, conversation));
        }
    }

    fn on_idle(&mut self) {
        self.dry = self.handed;
    }

    fn answered(&mut self, answer: Answer, now: Time) {
        let Some(of) = self.conversations.get_mut(&answer.conversation) else { return };
        // Nobody answers what was not sent (RFC 9293 section 3.10.7.4): it is forged, or was sent past us.
        if !upto(answer.upto, of.highest) {
            return;
        }
        if let Some(window) = answer.window {
            of.open(window, now);
        }
        let (mut found, mut answered) = (None, 0);
        while let Some(first) = of.probes.front()
            && upto(first.end, answer.upto)
        {
            found = of.probes.pop_front();
            answered += 1;
        }
        // All that was sent, in one segment: the receiver had no reason to hurry.
        let is_lone = answer.window.is_some() && answered == 1 && of.probes.is_empty();
        if let Some(end) = answer.exactly
            && let Some(at) = of.probes.iter().position(|asked| asked.end == end)
        {
            found = of.probes.remove(at);
        }
        match found {
            Some(asked) if is_lone => _ = of.base(now.saturating_since(asked.at), now),
            Some(asked) => self.learn(answer.conversation, asked, now),
            None => {}
        }
    }

    fn poll_timeout(&self, now: Time) -> Option<Time> {
        let (rate, last) = (self.rate?, self.last?);
        let (window, out) = self.window(rate, &last, now);
        let missing = (out + 1).checked_sub(window)?;
        let until = match self.drains {
            Drains::Until(end) if now < end => end,
            _ => self.heard + SILENCE,
        };
        Some(until.min(now + rate.mul_div(5, 4).time_for(Bytes::new(missing))).max(now + Span::from_micros(100)))
    }

    fn estimate(&self, now: Time) -> Estimate {
        let bytes = self.rate.zip(self.last).map_or(0, |(rate, last)| {
            let (_, out) = self.window(rate, &last, now);
            out.saturating_sub(rate.bytes_in(last.base).get())
        });
        Estimate { rate: self.rate, bytes, delay: self.delay }
    }
}

#[cfg(test)]
mod tests;
