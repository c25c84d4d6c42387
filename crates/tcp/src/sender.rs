//! The sending side: what is written, what is in flight, and what may leave now.
//!
//! Sources: Linux `tcp_output.c` (`tcp_write_xmit`, `tcp_cwnd_test`, `tcp_snd_wnd_test`, `tcp_cwnd_validate`,
//! `tcp_event_new_data_sent`, `tcp_xmit_retransmit_queue`, `tcp_schedule_loss_probe`, `tcp_send_probe0`), `tcp.c`
//! (`tcp_rate_check_app_limited`).
//!
//! Deviations:
//! 1. Segments are sent one by one, in the packets of [`crate::tso`].
//! 2. Nagle's algorithm is not in: every write leaves as soon as the windows allow.
//! 3. What the host's own queue holds is known only if the driver tells it ([`crate::host`]).
//! 4. PSH is set on the last segment of a packet with several, and on what empties the send buffer, and not also once in
//!    half a window.
//! 5. A send buffer of a fixed size ([`crate::SendBuffer`]) counts payload, not memory, and who waits for room in it gets it
//!    a segment at a time.
//! 6. A probe of the tail, and the first retransmission after a time-out, do not wait for the pacer.

#[cfg(test)]
pub(crate) mod tests;

use crate::Context;
use crate::config::{Config, Pacing, RTO_INITIAL, RTO_MAX, TIMEOUT_MIN};
use crate::host::OwnHost;
use crate::pacing::{Data, Pacer};
use crate::passage::state::Pep;
use crate::queue::{EVER_RETRANSMITTED, FIN, PACKET, PUSHED, Queue, RETRANSMITTED, Record};
use crate::rack::Rack;
use crate::rate::Rate;
use crate::recovery::state::Recovery;
use crate::rtt::Rtt;
use crate::send_buffer::state::Buffer;
use crate::stats::{Chrono, Limit, Stats};
use crate::tso::state::Tso;
use cc::{Controller, Limits, Path, Phase, Sent, Signal, StackRate};
use units::{Rate as BitRate, Span, Time};

/// The end of a stream that has none.
const UNLIMITED: u64 = u64::MAX >> 2;

/// What the sender's one timer waits for (Linux `icsk_pending`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    Idle,
    Retransmit,
    Reorder,
    LossProbe,
    WindowProbe,
}

/// A segment that leaves whatever the congestion window says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forced {
    None,
    /// The first in flight, after a time-out.
    Head,
    /// A tail loss probe: new data, or the last in flight again.
    LossProbe,
    /// A zero-window probe.
    WindowProbe,
}

/// What to put on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    pub(crate) seq: u64,
    pub(crate) len: u16,
    pub(crate) fin: bool,
    /// It ends a packet of several segments, or what the send buffer holds.
    pub(crate) push: bool,
    /// A data segment sent for the first time: it may carry ECT and CWR.
    pub(crate) new: bool,
}

#[derive(Debug)]
pub(crate) struct Sender<C> {
    pub(crate) controller: C,
    /// What the controller allows: read again after each call that may have changed it.
    pub(crate) limits: Limits,
    pub(crate) path: Path,
    pub(crate) queue: Queue,
    pub(crate) isn: u32,
    /// SND.UNA, SND.NXT and the end of what was written, as offsets: the SYN is at 0.
    pub(crate) una: u64,
    pub(crate) next: u64,
    pub(crate) written: u64,
    /// A FIN follows what is written; it was sent.
    fin_queued: bool,
    fin_sent: bool,
    pub(crate) buffer: Buffer,
    /// The peer's window, its greatest ever, and the segment that it was taken from (SND.WL1).
    pub(crate) window: u64,
    pub(crate) max_window: u64,
    pub(crate) window_seq: u64,
    pub(crate) window_scale: u8,
    pub(crate) sack: bool,
    pub(crate) rtt: Rtt,
    pub(crate) rate: Rate,
    pub(crate) rack: Rack,
    pub(crate) recovery: Recovery,
    /// What is known of a PEP on the way, if the controller works with one.
    pub(crate) pep: Option<Box<Pep>>,
    pacer: Pacer,
    pacing: Pacing,
    pub(crate) host: OwnHost,
    pub(crate) chrono: Chrono,
    pub(crate) stats: Stats,
    pub(crate) timer: Timer,
    pub(crate) deadline: Time,
    pub(crate) forced: Forced,
    pub(crate) backoff: u8,
    /// Time-outs or probes without an answer.
    pub(crate) retries: u32,
    pub(crate) retries_max: u8,
    /// The network was full at the last chance to send, or else the most segments in flight since `usage_end` was
    /// acknowledged (Linux `is_cwnd_limited`, `max_packets_out`, `cwnd_usage_seq`).
    cwnd_limited: bool,
    max_out: u32,
    usage_end: u64,
    pub(crate) last_data: Option<Time>,
    pub(crate) tso: Tso,
    /// Something was sent since the last chance to send ended.
    sent_some: bool,
    /// Something happened since then.
    dirty: bool,
    /// What is due after the pacer's wait.
    pub(crate) paced_until: Time,
    /// The window was reduced and the peer must be told (`TCP_ECN_QUEUE_CWR`).
    pub(crate) queue_cwr: bool,
}

impl<C: Controller> Sender<C> {
    pub(crate) fn new(config: &Config, controller: C, isn: u32, now: Time) -> Sender<C> {
        let limits = controller.limits();
        let paced = match config.pacing {
            Pacing::AsAsked => limits.pacing.is_some(),
            Pacing::Always => true,
            Pacing::Never => false,
        };
        let mss = u32::from(config.mss.max(88));
        Sender {
            controller,
            limits,
            path: Path {
                mss,
                srtt: None,
                min_rtt: None,
                rto: RTO_INITIAL,
                stack_rate: StackRate::default(),
                paced,
                shrinks_idle: config.slow_start_after_idle,
                departure: Time::ZERO,
            },
            queue: Queue::default(),
            isn,
            una: 0,
            next: 0,
            written: 1,
            fin_queued: false,
            fin_sent: false,
            buffer: Buffer::new(config),
            window: 0,
            max_window: 0,
            window_seq: 0,
            window_scale: 0,
            sack: false,
            rtt: Rtt::new(config.rto_min),
            rate: Rate::default(),
            rack: Rack::new(config.rto_min),
            recovery: Recovery::default(),
            pep: None,
            pacer: Pacer::new(),
            pacing: config.pacing,
            host: OwnHost::default(),
            chrono: Chrono::new(now),
            stats: Stats::default(),
            timer: Timer::Idle,
            deadline: Time::MAX,
            forced: Forced::None,
            backoff: 0,
            retries: 0,
            retries_max: config.retries,
            cwnd_limited: false,
            max_out: 0,
            usage_end: 0,
            last_data: None,
            tso: Tso { on: config.tso, ..Tso::default() },
            sent_some: false,
            dirty: true,
            paced_until: Time::MAX,
            queue_cwr: false,
        }
    }

    /// The handshake is complete: `mss` payload bytes fit into a segment.
    pub(crate) fn begin(&mut self, mss: u32, sack: bool, now: Time) {
        self.una = 1;
        self.next = self.next.max(1);
        self.path.mss = mss;
        self.sack = sack;
        self.usage_end = 1;
        self.rate.begin(now);
        if self.rtt.smoothed().is_none() {
            self.rtt.fall_back();
        }
        self.refresh_path();
        self.dirty = true;
        self.chrono.switch(Limit::Application, now);
        self.begin_buffer();
    }

    /// The sequence number of an offset.
    #[inline]
    pub(crate) fn wire(&self, offset: u64) -> u32 {
        self.isn.wrapping_add(offset as u32)
    }

    /// The offset of an acknowledgement or SACK edge near SND.UNA; `None` if before the start.
    #[inline]
    pub(crate) fn offset(&self, number: u32) -> Option<u64> {
        let distance = number.wrapping_sub(self.wire(self.una)) as i32;
        self.una.checked_add_signed(i64::from(distance))
    }

    /// What the estimators say, for the controller.
    #[inline]
    pub(crate) fn refresh_path(&mut self) {
        self.path.srtt = self.rtt.smoothed();
        self.path.min_rtt = self.rtt.min();
        self.path.rto = self.rtt.rto().unwrap_or(RTO_INITIAL);
    }

    /// Linux `tcp_update_pacing_rate`.
    #[inline]
    pub(crate) fn refresh_stack_rate(&mut self) {
        if let Some(srtt) = self.path.srtt {
            let limits = &self.limits;
            let percent = if limits.cwnd < limits.ssthresh / 2 { 200 } else { 120 };
            let segments = u64::from(limits.cwnd.max(self.queue.len()));
            self.path.stack_rate = StackRate::new(segments * u64::from(self.path.mss) * 8 * percent / 100, srtt);
        }
    }

    /// The retransmission time-out with back-off.
    #[inline]
    pub(crate) fn rto(&self) -> Span {
        let shifted = self.path.rto.as_nanos().saturating_mul(1 << self.backoff.min(32));
        Span::from_nanos(shifted).min(RTO_MAX)
    }

    // The application.

    /// Appends up to `bytes`; gives how many there was room for.
    pub(crate) fn write(&mut self, bytes: u64) -> u64 {
        if self.fin_queued {
            return 0;
        }
        self.check_app_limited();
        self.dirty = true;
        self.accept(bytes.min(UNLIMITED - self.written))
    }

    /// Appends `bytes`; what there is no room for waits outside until there is, as in a blocking write.
    pub(crate) fn write_all(&mut self, bytes: u64) {
        if !self.fin_queued {
            self.check_app_limited();
            self.written += bytes.min(UNLIMITED - self.written);
            self.dirty = true;
        }
    }

    pub(crate) fn write_unlimited(&mut self) {
        if !self.fin_queued {
            self.check_app_limited();
            self.written = UNLIMITED;
            self.dirty = true;
        }
    }

    /// Of an unlimited stream, what was not sent yet is dropped.
    pub(crate) fn pause(&mut self) {
        if self.written == UNLIMITED {
            self.written = self.next.max(1);
            self.release_unsent();
            self.dirty = true;
        }
    }

    /// The application will write no more. Of an unlimited stream, what was not sent yet is dropped.
    pub(crate) fn finish(&mut self) {
        self.pause();
        self.fin_queued = true;
        self.dirty = true;
    }

    /// Before a write: whether the network had room that the application left unused.
    pub(crate) fn check_app_limited(&mut self) {
        if self.buffered() < u64::from(self.path.mss)
            && self.host.queue.payload == 0
            && self.queue.in_flight() < self.limits.cwnd
            && self.queue.lost_out <= self.queue.retrans_out
        {
            self.rate.app_limited = (self.rate.delivered + u64::from(self.queue.in_flight())).max(1);
        }
    }

    #[inline]
    pub(crate) fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.next.max(1))
    }

    /// Written bytes that are not acknowledged, and so take room in the send buffer.
    pub(crate) fn unacked(&self) -> u64 {
        self.written.saturating_sub(self.una.max(1))
    }

    /// Whether everything including the FIN is acknowledged.
    pub(crate) fn fin_acked(&self) -> bool {
        self.fin_sent && self.una > self.written
    }

    #[inline]
    pub(crate) fn window_end(&self) -> u64 {
        self.una + self.window
    }

    #[inline]
    pub(crate) fn touch(&mut self) {
        self.dirty = true;
        self.refresh_room();
    }

    /// Whether there may be something to send.
    #[inline]
    pub(crate) fn may_have_output(&self) -> bool {
        self.dirty || self.sent_some || self.forced != Forced::None
    }

    // Sending.

    /// The next new segment: its payload and whether it carries the FIN; `None` if there is nothing.
    #[inline]
    fn next_new(&self, option_len: u32) -> Option<(u16, bool)> {
        let mss = u64::from(self.path.mss.saturating_sub(option_len).max(1));
        let unsent = self.unsent();
        let len = self.held().saturating_sub(self.next.max(1)).min(mss);
        if len < mss && len < unsent && !self.queue.is_empty() {
            // Who waits for room in the send buffer gets it for whole segments.
            return None;
        }
        let fin = self.fin_queued && !self.fin_sent && len == unsent;
        if len == 0 && !fin { None } else { Some((len as u16, fin)) }
    }

    /// Whether a poll would give nothing and change nothing.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        !self.dirty && !self.sent_some && self.forced == Forced::None
    }

    /// What leaves now, if anything. `option_len` bytes of each new segment are taken by SACK blocks.
    pub(crate) fn poll(&mut self, option_len: u32, cx: &mut Context) -> Option<Out> {
        if self.forced != Forced::None
            && let Some(out) = self.poll_forced(option_len, cx)
        {
            return Some(out);
        }
        if !self.dirty && !self.sent_some {
            return None;
        }
        self.fill();
        let cwnd = self.limits.cwnd;
        let in_flight = self.queue.in_flight();
        let mut limit = Limit::Application;
        if self.queue.has_lost()
            && !self.recovery.new_data_first
            && !self.recovery.hold
            && let Some(id) = self.queue.next_lost()
        {
            let seq = self.queue.get(id).seq;
            if in_flight >= cwnd {
                limit = Limit::Cwnd;
            } else if self.is_held(Data { seq, again: true }, cx.now) {
                limit = Limit::Pacing;
            } else if seq >= self.window_end() && seq != self.una {
                limit = Limit::ReceiveWindow;
            } else if self.is_held_by_host(true, cx) {
                limit = Limit::HostQueue;
            } else {
                let cause = if self.recovery.phase == Phase::Loss {
                    &mut self.stats.retransmitted_timeout
                } else {
                    &mut self.stats.retransmitted_fast
                };
                *cause += 1;
                return Some(self.retransmit(id, true, cx));
            }
        }
        if let Some((len, fin)) = self.next_new(option_len) {
            if self.next.max(1) + u64::from(len) + u64::from(fin) > self.window_end() {
                if limit == Limit::Application {
                    limit = Limit::ReceiveWindow;
                }
            } else if in_flight >= cwnd && !fin {
                limit = Limit::Cwnd;
            } else if self.is_held(Data { seq: self.next.max(1), again: false }, cx.now) {
                limit = Limit::Pacing;
            } else if self.defers(fin, cx.now) {
                limit = if self.tso.deferred { Limit::Cwnd } else { Limit::ReceiveWindow };
            } else if self.is_held_by_host(false, cx) {
                limit = Limit::HostQueue;
            } else {
                return Some(self.send_new(len, fin, cx));
            }
        } else if self.waits_for_room() && limit == Limit::Application {
            limit = Limit::SendBuffer;
        }
        if self.check_room() {
            // What the application wrote may leave, too.
            return self.poll(option_len, cx);
        }
        self.end_of_chance(limit, option_len, cx)
    }

    /// Whether the pacer holds a segment back.
    #[inline(always)]
    fn is_held(&self, data: Data, now: Time) -> bool {
        self.pacing_rate().is_some() && !self.pacer.allows(data, now)
    }

    /// Nothing more leaves now: notes what was the limit.
    #[inline]
    fn end_of_chance(&mut self, limit: Limit, option_len: u32, cx: &mut Context) -> Option<Out> {
        if self.recovery.new_data_first {
            self.recovery.new_data_first = false;
            if self.next <= self.recovery.high {
                // F-RTO sent no new data, so it cannot tell; recover conventionally.
                self.recovery.f_rto = false;
                if self.queue.has_lost() {
                    return self.poll(option_len, cx);
                }
            }
            self.recovery.hold = self.next > self.recovery.high;
        }
        self.dirty = false;
        self.pacer.end_burst();
        self.paced_until = if limit == Limit::Pacing { self.pacer.next() } else { Time::MAX };
        self.chrono.switch(limit, cx.now);
        let cwnd_limited = self.queue.in_flight() >= self.limits.cwnd || self.tso.deferred;
        (self.tso.left, self.tso.deferred) = (0, false);
        if self.sent_some || cwnd_limited {
            let out = self.queue.len();
            if self.una >= self.usage_end || cwnd_limited || (!self.cwnd_limited && out > self.max_out) {
                self.cwnd_limited = cwnd_limited;
                self.max_out = out;
                self.usage_end = self.next;
            }
        }
        if self.sent_some {
            self.sent_some = false;
            self.schedule_loss_probe(false, cx.now);
        } else if self.queue.is_empty()
            && self.timer == Timer::Idle
            && matches!(limit, Limit::ReceiveWindow | Limit::HostQueue)
            && self.forced == Forced::None
        {
            self.arm(Timer::WindowProbe, cx.now + self.probe_interval());
        }
        None
    }

    /// Linux `tcp_is_cwnd_limited`.
    #[inline]
    pub(crate) fn is_cwnd_limited(&self) -> bool {
        if self.cwnd_limited {
            return true;
        }
        let limits = &self.limits;
        limits.cwnd < limits.ssthresh && limits.cwnd < 2 * self.max_out
    }

    #[inline]
    pub(crate) fn pacing_rate(&self) -> Option<BitRate> {
        match self.pacing {
            Pacing::AsAsked => self.limits.pacing,
            Pacing::Always => self.limits.pacing.or_else(|| self.path.stack_rate.get()),
            Pacing::Never => None,
        }
    }

    #[cold]
    fn poll_forced(&mut self, option_len: u32, cx: &mut Context) -> Option<Out> {
        match core::mem::replace(&mut self.forced, Forced::None) {
            Forced::None => None,
            Forced::Head => {
                let id = self.queue.ids().next()?;
                self.stats.retransmitted_timeout += 1;
                Some(self.retransmit(id, true, cx))
            }
            Forced::LossProbe => {
                let new = self
                    .next_new(option_len)
                    .filter(|&(len, fin)| self.next + u64::from(len) + u64::from(fin) <= self.window_end());
                let out = if let Some((len, fin)) = new {
                    self.tso.begin_alone();
                    self.rack.probe_retransmitted = false;
                    self.send_new(len, fin, cx)
                } else {
                    let id = self.queue.last_id()?;
                    self.rack.probe_retransmitted = true;
                    self.stats.retransmitted_probe += 1;
                    self.retransmit(id, false, cx)
                };
                self.stats.loss_probes += 1;
                self.rack.probe_end = self.next;
                // The timer runs from now, and the chance to send does not end with another probe.
                self.arm(Timer::Retransmit, cx.now + self.rto());
                self.sent_some = false;
                Some(out)
            }
            Forced::WindowProbe => Some(self.probe_window(cx)),
        }
    }

    /// A probe of a window that has no room: what fits of the next segment, or a byte that was acknowledged already (Linux
    /// `tcp_write_wakeup`).
    fn probe_window(&mut self, cx: &mut Context) -> Out {
        self.stats.window_probes += 1;
        let room = self.window_end().saturating_sub(self.next.max(1));
        match self.next_new(0) {
            Some((len, _)) if room > 0 && len > 0 => {
                let fitting = u64::from(len).min(room) as u16;
                self.backoff = 0;
                self.tso.begin_alone();
                let fin = self.fin_queued && self.unsent() == u64::from(fitting) && room > u64::from(fitting);
                self.send_new(fitting, fin, cx)
            }
            _ => Out { seq: self.una.saturating_sub(1), len: 0, fin: false, push: false, new: false },
        }
    }

    #[inline(always)]
    fn send_new(&mut self, len: u16, fin: bool, cx: &mut Context) -> Out {
        let prior_out = self.queue.len();
        let in_flight = self.queue.in_flight();
        let seq = self.next.max(1);
        let mut record = Record { seq, sent: cx.now, len, ..Record::default() };
        if fin {
            record.flags |= FIN;
            self.fin_sent = true;
        }
        let begins = core::mem::take(&mut self.tso.begins) || !self.tso.on;
        record.flags |= if begins { PACKET } else { 0 };
        self.rate.on_sent(&mut record, prior_out == 0, cx.now);
        self.next = record.end();
        let push = self.tso.ends_packet() || self.buffered() == 0;
        record.flags |= if push { PUSHED } else { 0 };
        self.queue.push(record);
        if prior_out == 0 || self.timer == Timer::LossProbe {
            if self.calls_for_probe() {
                // The end of this chance to send arms the probe's timer.
                self.set_timer(Timer::Retransmit);
            } else {
                self.rearm_rto(cx.now);
            }
        }
        self.note_sent(Data { seq, again: false }, len, in_flight, cx);
        Out { seq, len, fin, push, new: len > 0 }
    }

    /// Sends a segment again. A tail loss probe is not `counted` as in flight twice.
    fn retransmit(&mut self, id: u64, counted: bool, cx: &mut Context) -> Out {
        let in_flight = self.queue.in_flight();
        let mut record = *self.queue.get(id);
        if counted && !record.has(RETRANSMITTED) {
            record.flags |= RETRANSMITTED;
            self.queue.retrans_out += 1;
        }
        record.flags |= EVER_RETRANSMITTED;
        self.rate.on_sent(&mut record, false, cx.now);
        record.sent = cx.now;
        *self.queue.get_mut(id) = record;
        self.queue.relink_last(id);
        if counted {
            self.recovery.note_retransmission(cx.now);
            if id == self.queue.ids().start && self.timer != Timer::Reorder {
                self.arm(Timer::Retransmit, cx.now + self.rto());
            }
        }
        self.stats.bytes_retransmitted += u64::from(record.len);
        self.stats.retransmitted_fin += u64::from(record.len == 0);
        self.note_sent(Data { seq: record.seq, again: true }, record.len, in_flight, cx);
        Out { seq: record.seq, len: record.len, fin: record.has(FIN), push: record.has(PUSHED), new: false }
    }

    /// Everything that each data segment passes on its way out.
    #[inline(always)]
    fn note_sent(&mut self, data: Data, len: u16, in_flight_before: u32, cx: &mut Context) {
        // As the kernel's `tcpi_data_segs_out` does, without a FIN that has no payload.
        self.stats.data_segments_sent += u64::from(len > 0);
        if let Some(rate) = self.pacing_rate() {
            // `tcp_cwnd_test`: no packet takes more than half of the window.
            let burst = self.packet_segments().min(self.limits.cwnd / 2);
            self.pacer.on_sent(data, u32::from(len), rate, burst, self.stats.data_segments_sent, cx.now);
            self.path.departure = self.pacer.next();
        }
        self.stats.bytes_sent += u64::from(len);
        self.sent_some = true;
        let idle = self.last_data.filter(|_| in_flight_before == 0).map(|last| cx.now.saturating_since(last));
        self.last_data = Some(cx.now);
        let sent = Sent {
            bytes: u32::from(len),
            retransmission: data.again,
            in_flight_before,
            idle,
            blocked: self.is_blocked(),
            app_limited: self.rate.app_limited > 0,
        };
        self.controller.on_sent(&sent, &mut cx.controller(&self.path));
        self.limits = self.controller.limits();
    }

    /// Passes a signal to the controller.
    pub(crate) fn on_signal(&mut self, signal: &Signal, cx: &mut Context) {
        self.controller.on_signal(signal, &mut cx.controller(&self.path));
        self.limits = self.controller.limits();
    }

    // Timers.

    #[inline]
    pub(crate) fn arm(&mut self, timer: Timer, deadline: Time) {
        self.set_timer(timer);
        self.deadline = deadline;
    }

    #[inline]
    pub(crate) fn disarm(&mut self) {
        self.set_timer(Timer::Idle);
        self.deadline = Time::MAX;
    }

    /// When the retransmission timer should fire, counted from the first segment in flight (Linux `tcp_rto_delta_us`).
    #[inline]
    fn rto_of_first(&self, now: Time) -> Time {
        self.queue.front().map_or(now, |first| first.sent) + self.rto()
    }

    /// Linux `tcp_rearm_rto`.
    #[inline]
    pub(crate) fn rearm_rto(&mut self, now: Time) {
        if self.queue.is_empty() {
            if self.timer != Timer::WindowProbe {
                self.disarm();
            }
            return;
        }
        let deadline = if matches!(self.timer, Timer::Reorder | Timer::LossProbe) {
            self.rto_of_first(now).max(now + Span::from_micros(1))
        } else {
            now + self.rto()
        };
        self.arm(Timer::Retransmit, deadline);
    }

    /// Whether a loss of the last segments in flight is to be probed for.
    #[inline]
    fn calls_for_probe(&self) -> bool {
        matches!(self.recovery.phase, Phase::Open | Phase::Cwr) && self.sack && !self.queue.is_empty()
    }

    /// Arms the tail loss probe's timer, if one is called for (RFC 8985 section 7.2; Linux `tcp_schedule_loss_probe`).
    #[inline]
    pub(crate) fn schedule_loss_probe(&mut self, from_now: bool, now: Time) -> bool {
        if !self.calls_for_probe() {
            return false;
        }
        let mut timeout = match self.path.srtt {
            Some(srtt) if self.queue.len() == 1 => srtt * 2 + self.rack.delayed_ack,
            Some(srtt) => srtt * 2 + TIMEOUT_MIN,
            None => RTO_INITIAL,
        };
        let rto = if from_now { self.rto() } else { self.rto_of_first(now).saturating_since(now) };
        if rto > Span::ZERO {
            timeout = timeout.min(rto);
        }
        self.arm(Timer::LossProbe, now + timeout);
        true
    }

    #[inline]
    pub(crate) fn probe_interval(&self) -> Span {
        let base = self.path.rto.max(Span::from_millis(200));
        Span::from_nanos(base.as_nanos().saturating_mul(1 << self.backoff.min(32))).min(RTO_MAX)
    }

    /// The peer's window may have opened (Linux `tcp_ack_probe`).
    pub(crate) fn update_window_probe(&mut self, now: Time) {
        if self.timer != Timer::WindowProbe {
            return;
        }
        match self.next_new(0) {
            Some((len, fin)) if self.next.max(1) + u64::from(len) + u64::from(fin) > self.window_end() => {
                self.arm(Timer::WindowProbe, now + self.probe_interval());
            }
            _ => {
                self.backoff = 0;
                self.disarm();
            }
        }
    }
}
