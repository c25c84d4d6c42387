//! The send buffer: what it holds, when the application waits for room in it, and how it grows.
//!
//! Sources: Linux `tcp_input.c` (`tcp_sndbuf_expand`, `tcp_should_expand_sndbuf`, `tcp_check_space`), `tcp.c`
//! (`tcp_sendmsg_locked`, `tcp_xmit_size_goal`), `stream.c` (`sk_stream_write_space`), `sock.h` (`sk_stream_min_wspace`),
//! `tcp_output.c` (`tcp_stream_alloc_skb`), `skbuff.h` (`SKB_TRUESIZE`, `SKB_SMALL_HEAD_CACHE_SIZE`).
//!
//! A growing buffer counts the memory of packets. The application fills packets until they take as much memory as the buffer
//! has, so that the last may exceed it, and goes on when at least a third is free. The buffer grows with the congestion
//! window, when an acknowledgement arrives while the application waits and everything in the buffer has been sent.
//!
//! Deviations:
//! 1. What is written and not sent lies in packets of the size goal, whichever writes it came from, and retransmissions do
//!    not divide packets.
//! 2. The application goes on at once.

use crate::config::SendBuffer;
use crate::sender::Sender;
use crate::tso::LONGEST;
use cc::Controller;

pub(crate) mod state;

/// Segments that the buffer has room for, whatever the congestion window (`TCP_INIT_CWND`).
const SEGMENTS_MIN: u64 = 10;

impl<C: Controller> Sender<C> {
    /// The end of what the send buffer holds: what is written beyond waits outside.
    #[inline]
    pub(crate) fn held(&self) -> u64 {
        match self.buffer.kind {
            SendBuffer::Fixed(bytes) => self.written.min(self.una.max(1).saturating_add(bytes)),
            SendBuffer::Growing(_) => self.buffer.held,
        }
    }

    /// Bytes in the send buffer that were not sent yet. Of a fixed buffer, they include data that the application has not been
    /// able to write yet.
    #[inline]
    pub(crate) fn buffered(&self) -> u64 {
        match self.buffer.kind {
            SendBuffer::Fixed(_) => self.unsent(),
            SendBuffer::Growing(_) => self.buffer.held.saturating_sub(self.next.max(1)),
        }
    }

    /// Whether the application waits for room in the send buffer. Of a fixed one, what exceeds two windows counts as outside:
    /// a growing one would hold no more.
    #[inline]
    pub(crate) fn is_blocked(&self) -> bool {
        match self.buffer.kind {
            SendBuffer::Fixed(_) => {
                let buffered = 2 * u64::from(self.limits.cwnd) * u64::from(self.path.mss);
                self.buffer.blocked || self.held() < self.written || self.unsent() > buffered
            }
            SendBuffer::Growing(_) => self.buffer.blocked,
        }
    }

    /// Whether the application has more to send than the buffer holds.
    #[inline]
    pub(crate) fn waits_for_room(&self) -> bool {
        self.buffer.blocked || self.held() < self.written
    }

    /// The bytes that a write may add, up to `bytes`; the rest was refused.
    pub(crate) fn accept(&mut self, bytes: u64) -> u64 {
        match self.buffer.kind {
            SendBuffer::Fixed(size) => {
                let count = bytes.min(size.saturating_sub(self.written - self.una.max(1)));
                self.written += count;
                self.buffer.blocked = count < bytes;
                count
            }
            SendBuffer::Growing(_) => {
                let before = self.written;
                self.written += bytes;
                // A write looks for room itself, however little.
                self.buffer.blocked = false;
                self.fill();
                // What is refused waits with the application.
                self.written = self.buffer.held.max(before);
                self.written - before
            }
        }
    }

    /// A fixed buffer from which a write was refused may have room again.
    #[inline]
    pub(crate) fn refresh_room(&mut self) {
        if let SendBuffer::Fixed(size) = self.buffer.kind {
            self.buffer.blocked &= self.written - self.una.min(self.written) >= size;
        }
    }

    /// What was written and not sent is dropped.
    pub(crate) fn release_unsent(&mut self) {
        self.buffer.held = self.buffer.held.min(self.written);
        self.buffer.blocked = false;
    }

    /// The connection is established: the buffer has room for two windows (`tcp_init_buffer_space`).
    pub(crate) fn begin_buffer(&mut self) {
        self.expand();
    }

    /// `tcp_sndbuf_expand`: every segment counts as a packet of its own whose data has a power of two.
    fn expand(&mut self) {
        let SendBuffer::Growing(most) = self.buffer.kind else { return };
        let segment = self.buffer.segment_memory(self.path.mss);
        let segments = SEGMENTS_MIN.max(self.limits.cwnd.max(self.rack.reordering + 1).into());
        let memory = u64::from(self.controller.buffered_windows()) * segments * segment;
        self.buffer.limit = self.buffer.limit.max(memory.min(most));
    }

    /// The payload of a packet that the application fills (`tcp_xmit_size_goal`).
    #[inline]
    fn size_goal(&self) -> u64 {
        let mss = u64::from(self.path.mss.max(1));
        if self.tso.on { (LONGEST.min(self.max_window / 2) / mss).max(1) * mss } else { mss }
    }

    /// The memory of what is in the buffer (`sk_wmem_queued`).
    #[inline]
    fn memory(&self, goal: u64) -> u64 {
        let packets = u64::from(self.queue.packets()) + self.buffered().div_ceil(goal);
        self.buffer.held.saturating_sub(self.una.max(1)) + packets * self.buffer.packet_overhead()
    }

    /// The application writes what it has, until the buffer has no room for a further packet (`tcp_sendmsg_locked`).
    #[inline]
    pub(crate) fn fill(&mut self) {
        if self.buffer.held < self.written && !self.buffer.blocked && matches!(self.buffer.kind, SendBuffer::Growing(_))
        {
            self.fill_packets();
        }
    }

    #[inline(never)]
    fn fill_packets(&mut self) {
        let goal = self.size_goal();
        // The last packet takes what fits into it.
        let last = self.buffered() % goal;
        if last > 0 {
            self.buffer.held = self.written.min(self.buffer.held + goal - last);
        }
        let room = self.buffer.limit.saturating_sub(self.memory(goal));
        let packets = room.div_ceil(goal + self.buffer.packet_overhead());
        self.buffer.held = self.written.min(self.buffer.held + packets * goal);
        self.buffer.blocked = self.buffer.held < self.written;
    }

    /// After an acknowledgement and what it let go: lets an application that waits for room go on, if there is enough
    /// (`tcp_check_space`, `sk_stream_write_space`). Returns whether it wrote.
    #[inline]
    pub(crate) fn check_room(&mut self) -> bool {
        core::mem::take(&mut self.buffer.acknowledged) && self.buffer.blocked && self.wake_writer()
    }

    #[inline(never)]
    fn wake_writer(&mut self) -> bool {
        if matches!(self.buffer.kind, SendBuffer::Fixed(_)) {
            return false;
        }
        // `tcp_should_expand_sndbuf`: what fills the congestion window needs no more room.
        if self.queue.in_flight() < self.limits.cwnd {
            self.expand();
        }
        let memory = self.memory(self.size_goal());
        let room = self.buffer.limit.saturating_sub(memory);
        if room == 0 || room < memory / 2 {
            return false;
        }
        self.buffer.blocked = false;
        // The application's next write finds that everything has been sent.
        self.check_app_limited();
        self.fill();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::Incoming;
    use crate::{Config, Context};
    use cc::new_reno::NewReno;
    use rand_core::SeedableRng;
    use units::{Span, Time};
    use wire::Sack;

    const MSS: u64 = 1448;

    /// Acknowledges `count` segments, and sends what may leave then.
    fn acknowledge(sender: &mut Sender<NewReno>, count: u64) {
        let mut random = cc::Random::seed_from_u64(1);
        let mut cx = Context { now: Time::ZERO + Span::from_millis(50), random: &mut random, log: None };
        let ack = sender.una.max(1) + count * MSS;
        let sack = &Sack::NONE;
        let incoming = Incoming { ack, seq: 1, has_data: false, window: 1 << 20, sack, ece: false, echo: None };
        sender.on_ack(&incoming, &mut cx);
        while sender.poll(0, &mut cx).is_some() {}
    }

    #[test]
    fn a_writer_that_waits_goes_on_when_a_third_of_the_buffer_is_free() {
        let config = Config { max_header: 192, tso: false, ..Config::default() };
        let mut sender = Sender::new(&config, NewReno::new(4), 0, Time::ZERO);
        sender.begin(1448, true, Time::ZERO);
        (sender.window, sender.max_window) = (1 << 20, 1 << 20);
        sender.write_unlimited();
        let mut held = Vec::new();
        for count in [0, 4, 3, 1] {
            acknowledge(&mut sender, count);
            held.push((sender.held() - 1) / MSS);
        }
        // 46,080 bytes hold 21 packets of 2280. With 17 and 14 left, more than two thirds of the buffer are in use, with 13
        // 29,640 bytes: less. The congestion window stays full, so the buffer does not grow.
        assert_eq!(held, [21, 21, 21, 8 + 21]);
        assert_eq!(sender.buffer.limit, 46_080);
    }

    #[test]
    fn a_sender_that_its_buffer_limits_counts_as_limited_by_the_application() {
        let config = Config { max_header: 192, tso: false, ..Config::default() };
        let mut sender = Sender::new(&config, NewReno::new(100), 0, Time::ZERO);
        sender.begin(1448, true, Time::ZERO);
        (sender.window, sender.max_window) = (1 << 20, 1 << 20);
        // Less than the window.
        (sender.buffer.kind, sender.buffer.limit) = (SendBuffer::Growing(46_080), 46_080);
        sender.write_unlimited();
        acknowledge(&mut sender, 0);
        assert_eq!(sender.buffered(), 0);
        sender.rate.app_limited = 0;
        let all = u64::from(sender.queue.in_flight());
        acknowledge(&mut sender, all);
        assert!(sender.rate.app_limited > 0);
    }
}
