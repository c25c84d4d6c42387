//! One side of a connection: its states, the handshake, and the processing of segments in each state.
//!
//! Sources: RFC 9293 section 3.10; RFC 7323 (window scale, timestamps); RFC 3168 section 6.1 (ECN); Linux
//! `tcp_rcv_state_process`, `tcp_rcv_synsent_state_process`. Which segments are accepted is in `acceptance.rs`.
//!
//! Deviations:
//! 1. A retransmitted segment keeps its size, so it carries no SACK blocks if there is no room for them.
//! 2. A close before the handshake is complete waits for it; Linux drops a connection in SYN-SENT.

use crate::Context;
use crate::ack::Incoming;
use crate::config::Config;
use crate::receiver::{Delays, Payload, Receiver};
use crate::sender::{Out, Sender};
use crate::stats::{Limit, Stats};
use cc::{Controller, Phase, Signal};
use units::{Rate, Span, Time};
use wire::report::{ANNOUNCEMENT_LEN, Key};
use wire::{Flags, Options, Sack, Segment, Timestamps};

/// The state of a connection (RFC 9293 section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// None, before or after.
    Closed,
    /// Waits for a SYN.
    Listen,
    /// SYN sent.
    SynSent,
    /// SYN received, SYN-ACK sent.
    SynReceived,
    /// Open in both directions.
    Established,
    /// This side has closed; its FIN is not acknowledged.
    FinWait1,
    /// This side has closed and its FIN is acknowledged.
    FinWait2,
    /// The peer has closed.
    CloseWait,
    /// Both have closed at once.
    Closing,
    /// The peer has closed, then this side.
    LastAck,
    /// Over; answers what still arrives.
    TimeWait,
}

/// An event for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// Bytes acknowledged since the previous event of this kind.
    Acked(u64),
    /// Bytes received in order since the previous event of this kind.
    Delivered(u64),
    /// The peer has closed its direction.
    PeerClosed,
    /// Both directions are closed and everything was acknowledged.
    Closed,
    /// The peer reset the connection, or this side aborted it.
    Reset,
    /// The connection timed out: the peer did not answer.
    TimedOut,
}

/// A segment to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmit {
    /// The segment.
    pub segment: Segment,
    /// Whether its packet is ECN-capable: ECT(0).
    pub ect: bool,
}

/// The effect of a received segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The time since the newest segment was sent that is newly acknowledged, cumulatively or selectively, and was sent only once
    /// (`ca_rtt_us` of Linux). If all was retransmitted, what a timestamp tells is not reported: it is in milliseconds.
    pub rtt: Option<Span>,
    /// Payload bytes newly in order.
    pub delivered: u64,
    /// Payload bytes newly acknowledged.
    pub acked: u64,
    /// Whether the segment certainly causes no transmission, event or timer.
    pub quiet: bool,
}

/// A snapshot of a connection, for display and plots.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The connection's state.
    pub state: State,
    /// Congestion window and slow-start threshold in segments.
    pub cwnd: u32,
    /// See `cwnd`.
    pub ssthresh: u32,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Segments in the network: sent - delivered - lost + retransmitted.
    pub in_flight: u32,
    /// Bytes sent and not cumulatively acknowledged.
    pub unacked: u64,
    /// Bytes written and not sent; huge for an unlimited stream.
    pub unsent: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
    /// The latest sample.
    pub rtt: Option<Span>,
    /// The smallest of the last 300 s.
    pub min_rtt: Option<Span>,
    /// Retransmission time-out with back-off.
    pub rto: Span,
    /// The controller's gauges ([`Controller::gauges`]), by name.
    pub gauges: Vec<(&'static str, u64)>,
    /// The rate at which segments leave, if paced.
    pub pacing: Option<Rate>,
    /// The peer's receive window in bytes.
    pub send_window: u64,
    /// The window that this side has announced and is still open, in bytes.
    pub receive_window: u64,
    /// Bytes of payload that the receive buffer holds.
    pub receive_buffer: u64,
    /// The phase of loss recovery.
    pub phase: Phase,
    /// What limits the sender.
    pub limit: Limit,
    /// The controller's name and state.
    pub controller: &'static str,
    /// See `controller`.
    pub controller_state: &'static str,
}

/// One side of a TCP connection, as a state machine without I/O.
///
/// Order of calls, each with a `now` that never decreases:
///
/// 1. An input: [`handle_segment`](Endpoint::handle_segment) when a segment arrives, [`handle_timeout`](
///    Endpoint::handle_timeout) when the time of [`poll_timeout`](Endpoint::poll_timeout) has come, or a command:
///    [`write`](Endpoint::write), [`read`](Endpoint::read), [`close`](Endpoint::close), [`abort`](Endpoint::abort),
///    [`set_window_clamp`](Endpoint::set_window_clamp). Several inputs of one moment may come together.
/// 2. [`poll_transmit`](Endpoint::poll_transmit) until it returns `None`, which the endpoint records as the reason to stop.
/// 3. [`poll_event`](Endpoint::poll_event) until it returns `None`.
/// 4. [`poll_timeout`](Endpoint::poll_timeout): the time of the next call if there is no input before.
///
/// Poll a new endpoint before its first input, too: the SYN of an active open is its first transmission.
#[derive(Debug)]
pub struct Endpoint<C> {
    pub(crate) state: State,
    pub(crate) sender: Sender<C>,
    pub(crate) receiver: Receiver,
    pub(crate) offers: Offers,
    /// In use on this connection.
    pub(crate) ecn: bool,
    pub(crate) timestamps: bool,
    /// Whether a SYN or SYN-ACK is pending, the number sent so far, the time of the first, and when the next is due.
    pub(crate) syn_due: bool,
    pub(crate) syns: u8,
    pub(crate) syn_at: Time,
    pub(crate) syn_timeout: Time,
    /// The sequence number of a pending reset.
    pub(crate) reset_due: Option<u32>,
    pub(crate) closing: bool,
    time_wait_end: Time,
    pub(crate) last_challenge: Option<Time>,
    pub(crate) events: Events,
}

/// The options offered in the SYN, and the handshake's timeouts.
#[derive(Debug)]
pub(crate) struct Offers {
    pub(crate) mss: u16,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) ecn: bool,
    pub(crate) syn_retries: u8,
    pub(crate) synack_retries: u8,
    time_wait: Span,
    pub(crate) report_key: Option<Key>,
}

/// Pending events, in the order in which they are returned.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) connected: bool,
    acked: u64,
    delivered: u64,
    peer_closed: bool,
    end: Option<Event>,
}

impl<C: Controller> Endpoint<C> {
    /// Creates an endpoint for an active open: the SYN is its first transmission.
    pub fn connect(config: &Config, controller: C, isn: u32, now: Time) -> Endpoint<C> {
        let mut endpoint = Endpoint::new(config, controller, isn, now);
        endpoint.enter(State::SynSent);
        endpoint.syn_due = true;
        endpoint
    }

    /// Creates an endpoint for a passive open: the first SYN that arrives opens the connection.
    pub fn listen(config: &Config, controller: C, isn: u32) -> Endpoint<C> {
        // Its time begins with the SYN.
        let mut endpoint = Endpoint::new(config, controller, isn, Time::MAX);
        endpoint.enter(State::Listen);
        endpoint
    }

    fn new(config: &Config, controller: C, isn: u32, now: Time) -> Endpoint<C> {
        Endpoint {
            state: State::Closed,
            sender: Sender::new(config, controller, isn, now),
            receiver: Receiver::new(config),
            offers: Offers {
                mss: config.mss.max(88),
                sack: config.sack,
                timestamps: config.timestamps,
                ecn: config.ecn,
                syn_retries: config.syn_retries,
                synack_retries: config.synack_retries,
                time_wait: config.time_wait,
                report_key: config.report_key,
            },
            ecn: false,
            timestamps: false,
            syn_due: false,
            syns: 0,
            syn_at: now,
            syn_timeout: Time::MAX,
            reset_due: None,
            closing: false,
            time_wait_end: Time::MAX,
            last_challenge: None,
            events: Events::default(),
        }
    }

    // Getters.

    /// The connection's state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns whether the endpoint is closed and has nothing left to send, so that it can be dropped.
    pub fn is_over(&self) -> bool {
        self.state == State::Closed && self.reset_due.is_none()
    }

    /// Returns the counters since the start.
    pub fn stats(&self) -> &Stats {
        &self.sender.stats
    }

    /// Returns for how long each of [`Limit::ALL`] has limited the sender, from the start (for a listener, the SYN)
    /// until `now` or the acknowledgement of its FIN.
    pub fn limited(&self, now: Time) -> [Span; Limit::ALL.len()] {
        self.sender.chrono.times(now)
    }

    /// Returns the in-order bytes that have not been read.
    pub fn readable(&self) -> u64 {
        self.receiver.unread()
    }

    /// Returns the bytes written and not yet acknowledged.
    pub fn unacked(&self) -> u64 {
        self.sender.unacked()
    }

    /// The congestion controller.
    pub fn controller(&self) -> &C {
        &self.sender.controller
    }

    /// Returns the congestion window and the segments in flight, in bytes; zero once the FIN is acknowledged.
    #[inline]
    pub fn window(&self) -> (u64, u64) {
        let s = &self.sender;
        if s.fin_acked() {
            return (0, 0);
        }
        let bytes = |segments: u32| u64::from(segments) * u64::from(s.path.mss);
        (bytes(s.limits.cwnd), bytes(s.queue.in_flight()))
    }

    /// Returns the bytes sent and not cumulatively acknowledged.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.sender.next - self.sender.una
    }

    /// Returns the bytes written and not yet sent.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.sender.unsent()
    }

    /// Returns the sender's smoothed round-trip time and its minimum over the last 300 s.
    pub fn rtt(&self) -> (Option<Span>, Option<Span>) {
        (self.sender.rtt.smoothed(), self.sender.rtt.min())
    }

    /// Returns the receiver's estimate of the round-trip time (`tcpi_rcv_rtt`), from the timestamps that come back with data.
    pub fn receive_rtt(&self) -> Option<Span> {
        self.receiver.space.rtt()
    }

    /// Panics if the counts of the transmit queue do not agree with its segments; for tests.
    #[doc(hidden)]
    pub fn audit(&self) {
        self.sender.queue.audit(self.sender.sack);
    }

    /// Returns a snapshot of the current state.
    pub fn snapshot(&self) -> Snapshot {
        let s = &self.sender;
        let limits = &s.limits;
        let mut gauges = Vec::new();
        s.controller.gauges(&mut |name, value| gauges.push((name, value)));
        Snapshot {
            state: self.state,
            cwnd: limits.cwnd,
            ssthresh: limits.ssthresh,
            mss: s.path.mss,
            in_flight: s.queue.in_flight(),
            unacked: s.next - s.una,
            unsent: s.unsent(),
            srtt: s.rtt.smoothed(),
            rtt: s.rtt.latest,
            min_rtt: s.rtt.min(),
            rto: s.rto(),
            gauges,
            pacing: s.pacing_rate(),
            send_window: s.window,
            receive_window: self.receiver.open_window(),
            receive_buffer: self.receiver.space.full(),
            phase: s.recovery.phase,
            limit: s.chrono.limit,
            controller: s.controller.name(),
            controller_state: s.controller.state(),
        }
    }

    // Commands.

    /// Appends up to `bytes` to the send buffer and returns how many it accepted; none after a close.
    pub fn write(&mut self, bytes: u64) -> u64 {
        self.sender.write(bytes)
    }

    /// Appends `bytes` to the stream. Bytes without room in the send buffer enter it as soon as there is room, as in a blocking
    /// write.
    pub fn write_all(&mut self, bytes: u64) {
        self.sender.write_all(bytes);
    }

    /// Provides unlimited data to send from now on, until [`close`](Endpoint::close).
    pub fn write_unlimited(&mut self) {
        self.sender.write_unlimited();
    }

    /// Ends [`write_unlimited`](Endpoint::write_unlimited): no further data is sent.
    pub fn pause(&mut self) {
        self.sender.pause();
    }

    /// Reads up to `bytes` of the received data and returns how many there were. Not needed with [`Config::auto_read`].
    pub fn read(&mut self, bytes: u64, now: Time) -> u64 {
        self.receiver.read(bytes, now)
    }

    /// Sets [`Config::auto_read`] from now on: whether the application reads all data as it arrives.
    pub fn set_auto_read(&mut self, auto_read: bool, now: Time) {
        self.receiver.set_auto_read(auto_read, now);
    }

    /// Closes the sending direction: a FIN follows the data written so far. Unsent data of an unlimited stream is dropped.
    pub fn close(&mut self) {
        match self.state {
            State::Listen => {
                self.enter(State::Closed);
                self.events.end = Some(Event::Closed);
            }
            _ if self.closing => {}
            _ => {
                self.closing = true;
                self.sender.finish();
                match self.state {
                    State::Established => self.enter(State::FinWait1),
                    State::CloseWait => self.enter(State::LastAck),
                    _ => {}
                }
            }
        }
    }

    /// Aborts the connection at once and sends a reset to the peer, if there is one.
    pub fn abort(&mut self) {
        match self.state {
            State::Closed | State::TimeWait => {}
            State::Listen | State::SynSent => self.end(Event::Reset),
            _ => {
                self.reset_due = Some(self.sender.wire(self.sender.next));
                self.end(Event::Reset);
            }
        }
    }

    /// Limits the receive window announced from now on (`TCP_WINDOW_CLAMP`). Windows already announced remain valid.
    pub fn set_window_clamp(&mut self, bytes: Option<u32>) {
        self.receiver.set_clamp(bytes);
    }

    /// Sets the receive buffer to `bytes` of payload (`SO_RCVBUF`) and ends its autotuning: unread data leaves only the rest of
    /// it as window. Windows already announced remain valid.
    pub fn set_receive_buffer(&mut self, bytes: u64) {
        self.receiver.space.set_full(bytes);
    }

    /// Passes a signal of the driver to the congestion controller.
    pub fn signal(&mut self, signal: &Signal, cx: &mut Context) {
        self.sender.on_signal(signal, cx);
        self.sender.touch();
    }

    // Inputs.

    /// Processes a received segment; `ce` is whether its packet carried a congestion mark.
    #[inline]
    pub fn handle_segment(&mut self, segment: &Segment, ce: bool, cx: &mut Context) -> Outcome {
        self.sender.stats.segments_received += 1;
        match self.state {
            State::Closed => Outcome::default(),
            State::Listen => {
                self.on_listen(segment, cx.now);
                Outcome::default()
            }
            State::SynSent => {
                self.on_syn_sent(segment, cx);
                Outcome::default()
            }
            State::TimeWait => {
                self.on_time_wait(segment, cx.now);
                Outcome::default()
            }
            _ => self.on_synchronized(segment, ce, cx),
        }
    }

    /// Processes everything that is due by `now`.
    pub fn handle_timeout(&mut self, cx: &mut Context) {
        if self.syn_timeout <= cx.now {
            self.on_syn_timeout();
        }
        if self.sender.deadline <= cx.now && !self.sender.on_timer(cx) {
            self.end(Event::TimedOut);
        }
        if self.sender.paced_until <= cx.now {
            self.sender.paced_until = Time::MAX;
            self.sender.touch();
        }
        self.receiver.on_timeout(self.sender.rto(), cx.now);
        if self.time_wait_end <= cx.now {
            self.time_wait_end = Time::MAX;
            self.enter(State::Closed);
        }
    }

    // Outputs.

    /// Returns the next segment to send now, if any.
    pub fn poll_transmit(&mut self, cx: &mut Context) -> Option<Transmit> {
        let mut transmit = Transmit::default();
        self.poll_transmit_into(&mut transmit, cx).then_some(transmit)
    }

    /// Like [`poll_transmit`](Endpoint::poll_transmit), but writes the segment to `transmit`; returns whether there was one.
    #[inline]
    pub fn poll_transmit_into(&mut self, transmit: &mut Transmit, cx: &mut Context) -> bool {
        if let Some(seq) = self.reset_due.take() {
            *transmit = self.build_reset(seq, cx.now);
            return true;
        }
        let out = match self.state {
            State::Closed | State::Listen => return false,
            State::SynSent | State::SynReceived => {
                if core::mem::take(&mut self.syn_due) {
                    *transmit = self.build_syn(cx.now);
                    return true;
                }
                if self.state == State::SynSent {
                    return false;
                }
                None
            }
            _ if self.sender.is_settled() => None,
            _ => {
                let blocks_len = self.receiver.sack_option_len();
                let announces = blocks_len == 0 && self.sender.announcement_is_due(cx.now);
                self.sender.poll(if announces { ANNOUNCEMENT_LEN as u32 } else { blocks_len }, cx)
            }
        };
        let out = match out {
            Some(out) => out,
            None if self.receiver.now_due => {
                self.sender.stats.acks_sent += 1;
                Out { seq: self.sender.next.max(1), len: 0, fin: false, push: false, new: false }
            }
            None => return false,
        };
        self.build(out, transmit, cx.now);
        true
    }

    /// Returns whether an event is pending that does not merely report delivered or acknowledged bytes.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.events.connected || self.events.peer_closed || self.events.end.is_some()
    }

    /// Returns the next event, if any.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        let events = &mut self.events;
        if core::mem::take(&mut events.connected) {
            return Some(Event::Connected);
        }
        if events.acked > 0 {
            return Some(Event::Acked(core::mem::take(&mut events.acked)));
        }
        if events.delivered > 0 {
            return Some(Event::Delivered(core::mem::take(&mut events.delivered)));
        }
        if core::mem::take(&mut events.peer_closed) {
            return Some(Event::PeerClosed);
        }
        events.end.take()
    }

    /// Returns when [`handle_timeout`](Endpoint::handle_timeout) is due, if it is.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        let sender = self.sender.deadline.min(self.sender.paced_until);
        let other = self.receiver.timeout().min(self.syn_timeout).min(self.time_wait_end);
        Some(sender.min(other)).filter(|&at| at != Time::MAX)
    }

    // Synchronized states.

    #[inline]
    pub(crate) fn echo(&self, segment: &Segment) -> Option<u32> {
        if self.timestamps { segment.timestamps.map(|t| t.echo) } else { None }
    }

    fn delays(&self) -> Delays {
        Delays { srtt: self.sender.path.srtt, rto: self.sender.rto() }
    }

    #[inline]
    fn on_synchronized(&mut self, segment: &Segment, ce: bool, cx: &mut Context) -> Outcome {
        let mut outcome = Outcome::default();
        let flags = segment.flags;
        let Some(seq) = self.receiver.offset(segment.seq) else { return outcome };
        let len = u64::from(segment.len);
        let end = seq + u64::from(segment.seq_len());
        if !self.validate(segment, seq, end, cx.now) {
            return outcome;
        }
        let Some(ack) = self.sender.offset(segment.ack) else { return outcome };
        if ack > self.sender.next {
            // Of what was never sent (RFC 5961 section 5).
            self.challenge(cx.now);
            return outcome;
        }
        if self.state == State::SynReceived {
            if ack < 1 {
                return outcome;
            }
            self.sender.window_seq = seq;
            self.establish(segment, cx.now);
            self.sender.window = u64::from(segment.window) << self.sender.window_scale;
            self.sender.max_window = self.sender.window;
        }
        if let (Options::Report(report), Some(stamps)) =
            (&segment.options, segment.timestamps.filter(|_| self.timestamps))
        {
            self.sender.stats.reports_received += 1;
            self.sender.stats.reports_taken += u64::from(self.sender.on_report(segment.ack, report, stamps, cx));
            outcome.quiet = !self.sender.may_have_output() && !self.has_news();
            return outcome;
        }
        if let Some(timestamps) = segment.timestamps.filter(|_| self.timestamps) {
            self.receiver.update_ts_recent(seq, timestamps.value);
        }
        let has_data = end > seq;
        let window = u64::from(segment.window) << self.sender.window_scale;
        let ece = self.ecn && flags.has(Flags::ECE);
        let sack = match &segment.options {
            Options::Sack(sack) => sack,
            Options::Syn(_) | Options::Report(_) | Options::Announcement => &Sack::NONE,
        };
        if sack.is_empty() && self.sender.is_unconcerned(ack, window) {
            self.sender.note_ack(seq, ece);
        } else {
            let incoming = Incoming { ack, seq, has_data, window, sack, ece, echo: self.echo(segment) };
            let prior_acked = self.sender.stats.bytes_acked;
            outcome.rtt = self.sender.on_ack(&incoming, cx);
            outcome.acked = self.sender.stats.bytes_acked - prior_acked;
            self.events.acked += outcome.acked;
        }
        if self.closing {
            self.on_fin_acked(cx.now);
        }
        if has_data && self.state != State::Closed {
            let push = flags.has(Flags::PSH);
            let payload = Payload { seq, len, fin: flags.has(Flags::FIN), push };
            outcome.delivered = self.on_payload(segment, payload, ce, cx.now);
        }
        outcome
    }

    #[inline]
    fn on_payload(&mut self, segment: &Segment, payload: Payload, ce: bool, now: Time) -> u64 {
        if self.ecn {
            if segment.flags.has(Flags::CWR) {
                self.receiver.on_cwr(payload.len > 0);
            }
            if ce {
                self.sender.stats.ce_received += 1;
                self.receiver.on_ce();
            }
        }
        if payload.len > 0
            && let Some(echo) = self.echo(segment)
        {
            let (full, unread) = (payload.len >= self.receiver.full_segment(), self.receiver.unread() > 0);
            self.receiver.space.measure_echo(echo, crate::millis(now).wrapping_sub(echo), full, unread);
        }
        let delays = self.delays();
        let was_finished = self.receiver.finished();
        let delivered = self.receiver.on_data(payload, delays, now, &mut self.sender.stats);
        self.events.delivered += delivered;
        if self.receiver.finished() && !was_finished {
            self.on_peer_fin(now);
        }
        self.receiver.check_ack(delays, now);
        delivered
    }

    fn on_peer_fin(&mut self, now: Time) {
        self.events.peer_closed = true;
        match self.state {
            State::Established => self.enter(State::CloseWait),
            State::FinWait1 => {
                self.enter(State::Closing);
                self.receiver.now_due = true;
            }
            State::FinWait2 => {
                self.receiver.now_due = true;
                self.enter_time_wait(now);
            }
            _ => {}
        }
    }

    fn on_fin_acked(&mut self, now: Time) {
        if self.sender.fin_acked() {
            self.sender.chrono.stop(now);
            match self.state {
                State::FinWait1 => self.enter(State::FinWait2),
                State::Closing => self.enter_time_wait(now),
                State::LastAck => self.end(Event::Closed),
                _ => {}
            }
        }
    }

    fn enter_time_wait(&mut self, now: Time) {
        self.enter(State::TimeWait);
        self.sender.disarm();
        self.sender.queue.free();
        self.time_wait_end = now + self.offers.time_wait;
        self.events.end = Some(Event::Closed);
    }

    fn on_time_wait(&mut self, segment: &Segment, now: Time) {
        if segment.flags.has(Flags::RST) {
            self.enter(State::Closed);
            self.time_wait_end = Time::MAX;
        } else if segment.seq_len() > 0 {
            // The last acknowledgement was lost.
            self.receiver.now_due = true;
            self.time_wait_end = now + self.offers.time_wait;
        }
    }

    pub(crate) fn end(&mut self, event: Event) {
        self.enter(State::Closed);
        self.events.end = Some(event);
        self.syn_due = false;
        self.syn_timeout = Time::MAX;
        self.sender.disarm();
        self.sender.paced_until = Time::MAX;
        self.sender.queue.free();
        self.receiver.stop();
    }

    // Segments.

    #[inline]
    pub(crate) fn stamps(&self, now: Time) -> Option<Timestamps> {
        if self.timestamps {
            Some(Timestamps { value: crate::millis(now), echo: self.receiver.ts_recent })
        } else {
            None
        }
    }

    fn build_reset(&mut self, seq: u32, now: Time) -> Transmit {
        self.sender.stats.segments_sent += 1;
        let segment = Segment {
            seq,
            ack: self.receiver.ack_number(),
            window: 0,
            len: 0,
            flags: Flags::RST | Flags::ACK,
            timestamps: self.stamps(now),
            options: Options::Sack(Sack::NONE),
        };
        Transmit { segment, ect: false }
    }

    #[inline]
    fn build(&mut self, out: Out, transmit: &mut Transmit, now: Time) {
        let mut flags = Flags::ACK;
        if out.fin {
            flags |= Flags::FIN;
        }
        if out.push && out.len > 0 {
            flags |= Flags::PSH;
        }
        if self.ecn {
            if self.receiver.demand_cwr {
                flags |= Flags::ECE;
            }
            if out.new && self.sender.queue_cwr {
                flags |= Flags::CWR;
                self.sender.queue_cwr = false;
            }
        }
        if out.len > 0 {
            self.receiver.on_data_sent(now);
        }
        self.sender.stats.segments_sent += 1;
        let window = self.receiver.announce();
        let blocks_len = self.receiver.sack_option_len();
        let (seq, ack) = (self.sender.wire(out.seq), self.receiver.ack_number());
        // Field by field, so that each is written in its place: a copy right after would wait for each part of it.
        let segment = &mut transmit.segment;
        (segment.seq, segment.ack, segment.window) = (seq, ack, window);
        (segment.len, segment.flags, segment.timestamps) = (out.len, flags, self.stamps(now));
        match &mut segment.options {
            Options::Sack(sack) => sack.clear(),
            options => *options = Options::default(),
        }
        transmit.ect = self.ecn && out.new;
        // What is sent again keeps its size, so there may be no room for blocks.
        if blocks_len > 0 && self.sender.sack && u32::from(out.len) + blocks_len <= self.sender.path.mss {
            transmit.segment.options = Options::Sack(self.take_sack());
        } else if out.new && self.sender.announcement_is_due(now) {
            // New data leave room for it.
            transmit.segment.options = Options::Announcement;
            self.sender.note_announcement(now);
        }
    }

    #[cold]
    fn take_sack(&mut self) -> Sack {
        let max = if self.timestamps { 3 } else { 4 };
        self.receiver.take_sack(max, &mut self.sender.stats)
    }
}
