//! The handshake: SYN and SYN-ACK, what they offer, and their retransmission.
//!
//! Sources: RFC 9293 sections 3.5 and 3.10.7; RFC 7323 section 2 (window scale); RFC 2018 section 2 (SACK-permitted); RFC
//! 3168 section 6.1.1 (ECN); RFC 6298 section 5.7; Linux `tcp_rcv_synsent_state_process`, `tcp_synack_rtt_meas`.

use crate::Context;
use crate::config::{RTO_INITIAL, RTO_MAX};
use crate::endpoint::{Endpoint, Event, State, Transmit};
use crate::passage::state::Pep;
use cc::Controller;
use units::{Span, Time};
use wire::{Flags, Options, Segment, SynOptions, Timestamps};

impl<C: Controller> Endpoint<C> {
    pub(crate) fn on_listen(&mut self, segment: &Segment, now: Time) {
        let Options::Syn(options) = segment.options else { return };
        if !segment.flags.has(Flags::SYN) || segment.flags.0 & (Flags::ACK.0 | Flags::RST.0) != 0 {
            return;
        }
        self.enter(State::SynReceived);
        self.sender.chrono = crate::stats::Chrono::new(now);
        self.ecn = self.offers.ecn && segment.flags.has(Flags::ECE | Flags::CWR);
        self.synchronize(segment, &options);
        self.syn_due = true;
    }

    /// The peer's SYN or SYN-ACK: what both offer is in use.
    pub(crate) fn synchronize(&mut self, segment: &Segment, options: &SynOptions) {
        self.receiver.synchronize(segment.seq);
        self.timestamps = self.offers.timestamps && segment.timestamps.is_some();
        if let Some(timestamps) = segment.timestamps {
            self.receiver.ts_recent = timestamps.value;
        }
        match options.window_scale {
            Some(shift) => self.sender.window_scale = shift.min(14),
            None => self.receiver.scale = 0,
        }
        let space = if self.timestamps { 12 } else { 0 };
        self.sender.sack = self.offers.sack && options.sack_permitted;
        if self.state == State::SynReceived {
            self.receiver.count_window_in(u32::from(self.offers.mss) - space);
        }
        self.receiver.begin(u32::from(self.offers.mss) - space, self.sender.sack);
        self.sender.path.mss = u32::from(self.offers.mss.min(options.mss).max(88)) - space;
        self.sender.window = u64::from(segment.window);
        self.sender.max_window = self.sender.window;
    }

    pub(crate) fn on_syn_sent(&mut self, segment: &Segment, cx: &mut Context) {
        let flags = segment.flags;
        if flags.has(Flags::ACK) && segment.ack != self.sender.wire(1) {
            if !flags.has(Flags::RST) {
                self.reset_due = Some(segment.ack);
            }
            return;
        }
        if flags.has(Flags::RST) {
            if flags.has(Flags::ACK) {
                self.end(Event::Reset);
            }
            return;
        }
        let Options::Syn(options) = segment.options else { return };
        if !flags.has(Flags::SYN) {
            return;
        }
        self.synchronize(segment, &options);
        if flags.has(Flags::ACK) {
            self.ecn = self.offers.ecn && flags.has(Flags::ECE) && !flags.has(Flags::CWR);
            self.establish(segment, cx.now);
            self.receiver.now_due = true;
        } else {
            // Both have opened at once (RFC 9293 figure 8).
            self.ecn = self.offers.ecn && flags.has(Flags::ECE | Flags::CWR);
            self.enter(State::SynReceived);
            self.syn_due = true;
        }
    }

    /// This side's SYN is acknowledged.
    pub(crate) fn establish(&mut self, segment: &Segment, now: Time) {
        self.syn_timeout = Time::MAX;
        self.syn_due = false;
        self.sender.una = 1;
        let sample = if self.syns == 1 {
            Some(now.saturating_since(self.syn_at))
        } else {
            self.echo(segment)
                .map(|echo| crate::millis(now).wrapping_sub(echo))
                .filter(|&millis| millis < 1 << 31)
                .map(|millis| Span::from_millis(u64::from(millis.max(1))))
        };
        if let Some(rtt) = sample {
            self.sender.take_rtt(rtt, Some(rtt), now);
        }
        let (mss, sack) = (self.sender.path.mss, self.sender.sack);
        self.sender.begin(mss, sack, now);
        if self.timestamps && sack {
            self.sender.pep = Pep::new(self.sender.controller.listens(), self.offers.report_key, now);
        }
        self.receiver.establish(now);
        self.enter(if self.closing { State::FinWait1 } else { State::Established });
        self.events.connected = true;
    }

    pub(crate) fn on_syn_timeout(&mut self) {
        let retries = if self.state == State::SynSent { self.offers.syn_retries } else { self.offers.synack_retries };
        self.syn_timeout = Time::MAX;
        if self.syns > retries {
            self.end(Event::TimedOut);
        } else {
            self.sender.stats.timeouts += 1;
            self.syn_due = true;
        }
    }

    pub(crate) fn build_syn(&mut self, now: Time) -> Transmit {
        let passive = self.state == State::SynReceived;
        if self.syns == 0 {
            self.syn_at = now;
        } else {
            self.sender.stats.retransmitted_syn += 1;
        }
        let timeout = RTO_INITIAL * (1 << self.syns.min(7));
        self.syns = self.syns.saturating_add(1);
        self.syn_timeout = now + timeout.min(RTO_MAX);
        self.sender.next = 1;
        self.sender.stats.segments_sent += 1;
        let mut flags = Flags::SYN;
        if passive {
            flags |= Flags::ACK;
            if self.ecn {
                flags |= Flags::ECE;
            }
        } else if self.offers.ecn && self.syns == 1 {
            // A SYN that is sent again asks for no ECN, in case a box on the path drops those that do.
            flags |= Flags::ECE | Flags::CWR;
        }
        let scaled = !passive || self.receiver.scale > 0 || self.sender.window_scale > 0;
        let options = SynOptions {
            mss: self.offers.mss,
            window_scale: if scaled { Some(self.receiver.scale) } else { None },
            sack_permitted: if passive { self.sender.sack } else { self.offers.sack },
            // As with ECN: not in one that is sent again.
            reports: self.syns == 1 && self.sender.controller.listens().passages,
        };
        let timestamps = if passive {
            self.stamps(now)
        } else if self.offers.timestamps {
            Some(Timestamps { value: crate::millis(now), echo: 0 })
        } else {
            None
        };
        let segment = Segment {
            seq: self.sender.isn,
            ack: if passive { self.receiver.ack_number() } else { 0 },
            window: self.receiver.initial_window(),
            len: 0,
            flags,
            timestamps,
            options: Options::Syn(options),
        };
        Transmit { segment, ect: false }
    }
}
