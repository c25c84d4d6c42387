//! The receiving side: reassembly, and the timing and contents of acknowledgements.
//!
//! Sources: Linux `tcp_input.c` (`tcp_data_queue`, `tcp_event_data_recv`, `__tcp_ack_snd_check`, `tcp_measure_rcv_mss`),
//! `tcp_output.c` (`tcp_send_delayed_ack`, `tcp_select_window`), `tcp.c` (`tcp_cleanup_rbuf`); RFC 2018 section 4 and RFC
//! 2883 for the order of SACK blocks, RFC 3168 section 6.1.3 for ECN.
//!
//! Deviations:
//! 1. A segment is accepted if it begins inside the window.
//! 2. A retransmission without ECT does not cause quick acknowledgements.
//! 3. The timer of compressed acknowledgements has no slack.

#[cfg(test)]
mod tests;

use crate::autotune::Space;
use crate::config::{Config, Kernel};
use crate::ranges::{Range, RangeSet};
use crate::stats::Stats;
use units::{Span, Time};
use wire::{Block, Sack};

/// The shortest and the longest delay of an acknowledgement (`TCP_ATO_MIN`, `TCP_DELACK_MAX`), and a tick of the kernel's
/// clock (`HZ` = 1000), by which 6.18 keeps it below the shortest time-out (`tcp_delack_max`).
const ATO_MIN: Span = Span::from_millis(40);
const DELAY_MAX: Span = Span::from_millis(200);
const TICK: Span = Span::from_millis(1);
/// Acknowledgements without delay at the start, after a pause and after a duplicate (`TCP_MAX_QUICKACKS`).
const QUICK_ACKS: u32 = 16;
/// Number of out-of-order segments acknowledged at once after each advance, and the maximum compressed into one ACK.
const DUP_ACKS: u8 = 3;
const COMPRESSED_MAX: u8 = 44;
/// Number of blocks that compressed acknowledgements may rely on: before a later block changes, a compressed ACK is
/// sent (`TCP_SACK_BLOCKS_EXPECTED`).
const BLOCKS_EXPECTED: usize = 2;
const COMPRESSION_MAX: Span = Span::from_millis(1);
/// Beyond any offset.
const NO_FIN: u64 = u64::MAX;

/// State of the sending side that affects the delay of acknowledgements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    pub(crate) srtt: Option<Span>,
    pub(crate) rto: Span,
}

/// A segment's payload, as offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload {
    pub(crate) seq: u64,
    pub(crate) len: u64,
    pub(crate) fin: bool,
    pub(crate) push: bool,
}

/// Up to four SACK blocks, newest first.
#[derive(Clone, Copy, Debug, Default)]
struct Blocks {
    ranges: [Range; 4],
    len: u8,
}

impl Blocks {
    #[inline]
    fn as_slice(&self) -> &[Range] {
        &self.ranges[..usize::from(self.len)]
    }

    fn extend(&mut self, at: usize, data: &Range) {
        let block = &mut self.ranges[at];
        *block = Range::new(block.start.min(data.start), block.end.max(data.end));
    }

    /// Adds a block; drops the oldest if there is no room.
    fn push_front(&mut self, new: Range) {
        self.len = (self.len + 1).min(self.ranges.len() as u8);
        self.ranges[..usize::from(self.len)].rotate_right(1);
        self.ranges[0] = new;
    }

    /// Makes a block the newest, merged with all blocks that it touches (`tcp_sack_maybe_coalesce`).
    fn bring_to_front(&mut self, at: usize) {
        self.ranges[..=at].rotate_right(1);
        let mut i = 1;
        while i < usize::from(self.len) {
            let other = self.ranges[i];
            if self.ranges[0].touches(&other) {
                self.extend(0, &other);
                self.ranges[i..usize::from(self.len)].rotate_left(1);
                self.len -= 1;
            } else {
                i += 1;
            }
        }
    }

    fn retain(&mut self, keep: impl Fn(&Range) -> bool) {
        let mut kept = 0;
        for i in 0..usize::from(self.len) {
            if keep(&self.ranges[i]) {
                self.ranges[kept] = self.ranges[i];
                kept += 1;
            }
        }
        self.len = kept as u8;
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// The peer's initial sequence number; offset 0.
    pub(crate) irs: u32,
    /// The next expected offset (RCV.NXT), and where it was when the last acknowledgement left.
    pub(crate) next: u64,
    acked: u64,
    /// The window that was announced then (RCV.WND).
    window: u64,
    pub(crate) scale: u8,
    /// Selective acknowledgements are in use.
    sack: bool,
    /// The offset up to which the application has read.
    copied: u64,
    auto_read: bool,
    /// The offset of the peer's FIN; [`NO_FIN`] until it is seen.
    fin: u64,
    pub(crate) space: Space,
    out_of_order: RangeSet,
    /// The blocks to report, newest first: parts of `out_of_order`, as far as they are remembered (`selective_acks`).
    recent: Blocks,
    /// The blocks of an acknowledgement that leaves without the segment that came last.
    earlier: Option<Blocks>,
    d_sack: Option<Range>,
    /// The full segment size that the peer seems to use.
    mss: u64,
    max_mss: u64,
    /// The size of the last segment that was smaller.
    small_mss: u64,
    /// Whether an acknowledgement is pending, whether it is due now, and whether the peer has pushed once and twice.
    owed: bool,
    pub(crate) now_due: bool,
    pushed: bool,
    pushed_twice: bool,
    /// Data was answered with data: acknowledgements ride on it.
    interactive: bool,
    /// Acknowledgements may be delayed at all, and for how long.
    may_delay: bool,
    delay_max: Span,
    /// Acknowledgements that leave without delay.
    quick: u32,
    /// The expected gap between data segments; zero before the first.
    ato: Span,
    last_data: Time,
    delayed: Time,
    compress: Time,
    compressed: u8,
    dup_acks: u8,
    dup_acks_at: u64,
    /// A congestion mark arrived and the sender has not confirmed its reaction (`TCP_ECN_DEMAND_CWR`).
    pub(crate) demand_cwr: bool,
    pub(crate) ts_recent: u32,
}

impl Receiver {
    pub(crate) fn new(config: &Config) -> Receiver {
        let mut space = Space::new(config);
        let window = space.initial_window();
        Receiver {
            irs: 0,
            next: 0,
            acked: 0,
            window,
            scale: space.scale(),
            sack: false,
            copied: 1,
            auto_read: config.auto_read,
            fin: NO_FIN,
            space,
            out_of_order: RangeSet::default(),
            recent: Blocks::default(),
            earlier: None,
            d_sack: None,
            mss: 536.min(u64::from(config.mss)),
            max_mss: u64::from(config.mss),
            small_mss: 0,
            owed: false,
            now_due: false,
            pushed: false,
            pushed_twice: false,
            interactive: false,
            may_delay: config.delayed_ack,
            delay_max: match config.kernel {
                Kernel::V6_1 => DELAY_MAX,
                Kernel::V6_18 => DELAY_MAX.min(config.rto_min.max(TICK * 2) - TICK),
            },
            quick: 0,
            ato: Span::ZERO,
            last_data: Time::ZERO,
            delayed: Time::MAX,
            compress: Time::MAX,
            compressed: 0,
            dup_acks: 0,
            dup_acks_at: 0,
            demand_cwr: false,
            ts_recent: 0,
        }
    }

    /// The peer's SYN arrived.
    pub(crate) fn synchronize(&mut self, irs: u32) {
        self.irs = irs;
        self.next = 1;
        self.acked = 1;
    }

    /// Full segments of this side carry `mss` bytes, and so, until they are seen, may the peer's.
    pub(crate) fn begin(&mut self, mss: u32, sack: bool) {
        self.sack = sack;
        self.max_mss = u64::from(mss);
        self.mss = self.mss.min(self.max_mss).min((self.window / 2).max(88));
    }

    /// The connection is established.
    pub(crate) fn establish(&mut self, now: Time) {
        self.space.begin(self.max_mss as u32, self.window, self.scale, now);
    }

    /// Ends the connection: no acknowledgement is pending any more.
    pub(crate) fn stop(&mut self) {
        self.owed = false;
        self.now_due = false;
        self.delayed = Time::MAX;
        self.compress = Time::MAX;
        self.out_of_order = RangeSet::default();
    }

    /// The payload of the segments that the peer seems to fill.
    #[inline]
    pub(crate) fn full_segment(&self) -> u64 {
        self.mss
    }

    /// A SYN arrived, whose sender's segments carry `mss` bytes: the first window is counted in those. Who opens a connection
    /// does not know yet whether timestamps take a part of each segment, and announces a window without them
    /// (`tcp_openreq_init_rwin`, `tcp_connect_init`).
    pub(crate) fn count_window_in(&mut self, mss: u32) {
        self.window = self.space.window_of(mss);
    }

    /// The window field of a SYN, which is never scaled.
    pub(crate) fn initial_window(&self) -> u16 {
        self.window.min(65_535) as u16
    }

    /// The offset of a sequence number near the next expected one; `None` if before the start.
    #[inline]
    pub(crate) fn offset(&self, seq: u32) -> Option<u64> {
        let distance = seq.wrapping_sub(self.irs.wrapping_add(self.next as u32)) as i32;
        self.next.checked_add_signed(i64::from(distance))
    }

    /// The sequence number to acknowledge.
    #[inline]
    pub(crate) fn ack_number(&self) -> u32 {
        self.irs.wrapping_add(self.next as u32)
    }

    /// Returns the window as the peer knows it (`tcp_receive_window`).
    #[inline]
    pub(crate) fn open_window(&self) -> u64 {
        (self.acked + self.window).saturating_sub(self.next)
    }

    /// Whether a segment touches the window (RFC 9293 3.10.7.4; Linux `tcp_sequence`).
    #[inline]
    pub(crate) fn acceptable(&self, seq: u64, end: u64) -> bool {
        end >= self.acked && seq <= self.next + self.open_window()
    }

    /// Returns whether all data up to the peer's FIN has arrived in order.
    #[inline]
    pub(crate) fn finished(&self) -> bool {
        self.next > self.fin
    }

    /// In-order bytes that the application has not read.
    #[inline]
    pub(crate) fn unread(&self) -> u64 {
        (self.next - u64::from(self.finished())).saturating_sub(self.copied)
    }

    /// Bytes in the buffer.
    #[inline]
    fn used(&self) -> u64 {
        self.unread() + self.out_of_order.bytes()
    }

    /// Whether the timestamp may replace the one to echo (RFC 7323 section 4.3).
    #[inline]
    pub(crate) fn update_ts_recent(&mut self, seq: u64, value: u32) {
        if seq <= self.acked && value.wrapping_sub(self.ts_recent) as i32 >= 0 {
            self.ts_recent = value;
        }
    }

    /// A congestion mark arrived (`__tcp_ecn_check_ce`).
    pub(crate) fn on_ce(&mut self) {
        if !self.demand_cwr {
            self.enter_quick_acks(2);
            self.demand_cwr = true;
        }
    }

    /// The sender reduced its window (`tcp_ecn_accept_cwr`).
    pub(crate) fn on_cwr(&mut self, has_data: bool) {
        self.demand_cwr = false;
        if has_data {
            self.now_due = true;
        }
    }

    /// Accepts a segment that touches the window and returns the payload bytes newly in order. A FIN without data is
    /// accepted even if the window is closed, as in 6.18; 6.1 rejects it (`tcp_data_queue`).
    #[inline]
    pub(crate) fn on_data(&mut self, data: Payload, delays: Delays, now: Time, stats: &mut Stats) -> u64 {
        self.earlier = None;
        let end = data.seq + data.len;
        if data.fin && self.fin == NO_FIN {
            self.fin = end;
        }
        let all_end = end + u64::from(data.fin);
        if all_end <= self.next || data.seq >= self.next + self.open_window() + u64::from(data.len == 0) {
            // Nothing new, or nothing that there is room for.
            stats.duplicates_received += 1;
            self.on_useless(data, all_end <= self.next);
            return 0;
        }
        self.owed = true;
        if data.seq > self.next {
            stats.out_of_order_received += 1;
            self.on_out_of_order(Range::new(data.seq, end));
            return 0;
        }
        let before = self.next;
        if data.seq < before && data.len > 0 {
            self.set_d_sack(Range::new(data.seq, before));
        }
        self.next = self.next.max(end);
        if data.len > 0 {
            self.on_arrival(data.len, data.push, delays, now);
        }
        if !self.out_of_order.is_empty() {
            self.join(Range::new(before, end));
        }
        let delivered = self.next - before;
        if self.fin == self.next {
            self.next += 1;
            self.interactive = true;
        }
        stats.bytes_received += delivered;
        delivered
    }

    /// Rejects a segment; `old` is whether all of it had arrived before.
    #[cold]
    fn on_useless(&mut self, data: Payload, old: bool) {
        if old && data.len > 0 {
            self.set_d_sack(Range::new(data.seq, (data.seq + data.len).min(self.next)));
        }
        self.enter_quick_acks(QUICK_ACKS);
        self.owed = true;
    }

    /// In-order data reached what had arrived before it.
    fn join(&mut self, new: Range) {
        let held = self.out_of_order.overlap(&new);
        if !held.is_empty() {
            self.set_d_sack(held);
        }
        while let Some(first) = self.out_of_order.first().filter(|r| r.start <= self.next) {
            self.next = self.next.max(first.end);
            self.out_of_order.forget_below(self.next);
        }
        // RFC 5681 4.2: at once when a gap is filled.
        self.now_due |= self.out_of_order.is_empty();
        let next = self.next;
        self.recent.retain(|block| block.start >= next);
    }

    /// Accepts data beyond a gap (`tcp_data_queue_ofo`). The buffer grows for it as in 6.18, but not in 6.1.
    fn on_out_of_order(&mut self, data: Range) {
        if data.is_empty() {
            return;
        }
        let held = self.out_of_order.overlap(&data);
        if !held.is_empty() {
            self.set_d_sack(held);
        }
        self.out_of_order.insert(data);
        if self.sack {
            self.report(data);
            // Without SACK a window that changes would keep the acknowledgement from counting as a duplicate.
            self.grow_window(data.end - data.start);
        }
        self.space.provide(self.beyond());
    }

    /// Adds out-of-order data to the reported blocks (`tcp_sack_new_ofo_skb`).
    fn report(&mut self, data: Range) {
        let known = self.recent.as_slice().iter().position(|block| block.touches(&data));
        if let Some(at) = known {
            self.recent.extend(at, &data);
        }
        if known.unwrap_or(self.recent.as_slice().len()) >= BLOCKS_EXPECTED && self.compressed > 0 {
            // An acknowledgement has no room for all of these changes: those so far leave by themselves, and nothing is
            // owed for this segment (`tcp_sack_compress_send_ack`).
            self.earlier = Some(self.recent);
            self.compressed = 0;
            self.compress = Time::MAX;
            self.owed = false;
            self.now_due = true;
        }
        match known {
            Some(at) => self.recent.bring_to_front(at),
            None => self.recent.push_front(data),
        }
    }

    /// Returns the end of the highest out-of-order data.
    #[inline]
    fn beyond(&self) -> u64 {
        self.out_of_order.end().map_or(0, |end| end - self.next)
    }

    /// Without SACK, nothing is reported, and no room is left for it (`tcp_dsack_set`).
    fn set_d_sack(&mut self, range: Range) {
        if !self.sack {
            return;
        }
        // Two of them that touch become one (`tcp_dsack_extend`); of others the newer counts.
        self.d_sack = Some(match self.d_sack {
            Some(old) if old.start <= range.end && range.start <= old.end => {
                Range::new(old.start.min(range.start), old.end.max(range.end))
            }
            _ => range,
        });
    }

    /// Records the arrival of in-order data (`tcp_event_data_recv`).
    #[inline]
    fn on_arrival(&mut self, len: u64, push: bool, delays: Delays, now: Time) {
        if len >= self.mss {
            if len != self.mss {
                self.space.measure_segment(len, self.window);
            }
            self.mss = len.min(self.max_mss);
            self.pushed |= push;
        } else {
            self.on_small_segment(len, push);
        }
        self.space.measure_window(self.next, self.window, now);
        if self.ato == Span::ZERO {
            self.add_quick_acks(QUICK_ACKS);
            self.ato = ATO_MIN;
        } else {
            let gap = now.saturating_since(self.last_data);
            if gap <= ATO_MIN / 2 {
                self.ato = self.ato / 2 + ATO_MIN / 2;
            } else if gap < self.ato {
                self.ato = (self.ato / 2 + gap).min(delays.rto);
            } else if gap > delays.rto {
                // A long pause: the peer may have started again with a small window.
                self.add_quick_acks(QUICK_ACKS);
            }
        }
        self.last_data = now;
        if len >= 128 {
            self.grow_window(len);
        }
    }

    /// Grows the window for an accepted segment; such a segment is acknowledged at once (`tcp_grow_window`).
    #[inline]
    fn grow_window(&mut self, len: u64) {
        if self.space.grow_window(self.used(), len) {
            self.quick |= 1;
        }
    }

    /// Less than a full segment: the end of something, or a peer with a smaller segment size.
    fn on_small_segment(&mut self, len: u64, push: bool) {
        // The same size twice is the peer's full size.
        if len >= 536 || (len >= 88 && !push) {
            if self.small_mss == len {
                self.mss = len;
                return;
            }
            self.small_mss = len;
        }
        self.pushed_twice |= self.pushed;
        self.pushed = true;
    }

    fn add_quick_acks(&mut self, max: u32) {
        let count = match self.window / (2 * self.mss.max(1)) {
            0 => 2,
            n => u32::try_from(n).unwrap_or(max),
        };
        self.quick = self.quick.max(count.min(max));
    }

    fn enter_quick_acks(&mut self, max: u32) {
        self.add_quick_acks(max);
        self.interactive = false;
        self.ato = ATO_MIN;
    }

    /// Requests an acknowledgement of an unacceptable segment (`tcp_send_dupack`).
    pub(crate) fn on_unacceptable(&mut self, seq: u64, len: u64) {
        if len > 0 && seq < self.next {
            self.enter_quick_acks(QUICK_ACKS);
            self.set_d_sack(Range::new(seq, (seq + len).min(self.next)));
        }
        self.now_due = true;
    }

    /// Decides after an accepted segment to acknowledge now or later (`__tcp_ack_snd_check`), and lets the application read.
    #[inline]
    pub(crate) fn check_ack(&mut self, delays: Delays, now: Time) {
        if self.owed && !self.now_due {
            let full_frame = self.next - self.acked > self.mss;
            if !self.may_delay
                || (full_frame && (self.auto_read || self.can_advance()))
                || (self.quick > 0 && !self.interactive)
            {
                self.now_due = true;
            } else if self.out_of_order.is_empty() {
                self.delay_ack(delays, now);
            } else {
                self.ack_out_of_order(delays, now);
            }
        }
        if self.auto_read {
            self.read(u64::MAX, now);
        }
    }

    fn can_advance(&self) -> bool {
        self.unread() == 0 || self.space.select(self.used(), self.mss, self.window, self.scale).0 >= self.window
    }

    fn ack_out_of_order(&mut self, delays: Delays, now: Time) {
        if self.dup_acks_at != self.next {
            self.dup_acks_at = self.next;
            self.dup_acks = 0;
        }
        if !self.sack || self.dup_acks < DUP_ACKS {
            self.dup_acks = self.dup_acks.saturating_add(1);
            self.now_due = true;
        } else if self.compressed >= COMPRESSED_MAX {
            self.now_due = true;
        } else {
            self.compressed += 1;
            if self.compress == Time::MAX {
                let own = self.space.rtt().unwrap_or(Span::ZERO);
                let rtt = delays.srtt.filter(|&srtt| srtt < own).unwrap_or(own);
                self.compress = now + (rtt / 20).min(COMPRESSION_MAX);
            }
        }
    }

    /// Schedules a delayed acknowledgement (`tcp_send_delayed_ack`, whose other bounds lie above `tcp_delack_max`).
    fn delay_ack(&mut self, delays: Delays, now: Time) {
        let round_trip = delays.srtt.map_or(Span::MAX, |srtt| srtt.max(ATO_MIN));
        let delay = self.ato.min(round_trip).min(self.delay_max);
        if self.delayed == Time::MAX {
            self.delayed = now + delay;
        } else if self.delayed <= now + delay / 4 {
            // The timer is about to expire anyway.
            self.now_due = true;
        } else {
            self.delayed = self.delayed.min(now + delay);
        }
    }

    /// Returns when an acknowledgement is due.
    #[inline]
    pub(crate) fn timeout(&self) -> Time {
        self.delayed.min(self.compress)
    }

    /// Processes the timers of the receiving side.
    pub(crate) fn on_timeout(&mut self, rto: Span, now: Time) {
        if self.compress <= now {
            self.compress = Time::MAX;
            self.now_due |= self.compressed > 0;
        }
        if self.delayed <= now {
            self.delayed = Time::MAX;
            if self.owed {
                if self.interactive {
                    // The reply did not come in time.
                    self.interactive = false;
                    self.ato = ATO_MIN;
                } else {
                    self.ato = (self.ato * 2).min(rto);
                }
                self.now_due = true;
            }
        }
    }

    /// Sets whether the application reads all data as it arrives; if so, it first reads what the buffer holds.
    pub(crate) fn set_auto_read(&mut self, auto_read: bool, now: Time) {
        self.auto_read = auto_read;
        if auto_read {
            self.read(u64::MAX, now);
        }
    }

    /// Reads up to `bytes` for the application and returns how many there were (`tcp_recvmsg`, `tcp_cleanup_rbuf`).
    #[inline]
    pub(crate) fn read(&mut self, bytes: u64, now: Time) -> u64 {
        let unread = self.unread();
        let count = bytes.min(unread);
        if count == 0 {
            return 0;
        }
        self.copied += count;
        let unread = unread - count;
        self.space.adjust(self.copied, unread, self.beyond(), now);
        let used = unread + self.out_of_order.bytes();
        if self.owed && !self.now_due {
            self.now_due = self.next - self.acked > self.mss
                || (used == 0 && (self.pushed_twice || (self.pushed && !self.interactive)));
        }
        // A window that opens a lot must be told.
        let window = self.open_window();
        if !self.now_due && self.fin == NO_FIN && self.space.is_low(window) {
            let (new, _) = self.space.select(used, self.mss, self.window, self.scale);
            self.now_due = new > 0 && new >= 2 * window;
        }
        count
    }

    /// Records that data was sent in reply to data (`tcp_event_data_sent`).
    #[inline]
    pub(crate) fn on_data_sent(&mut self, now: Time) {
        if now.saturating_since(self.last_data) < self.ato {
            self.interactive = true;
        }
    }

    /// Returns the window to announce in a segment sent now; it never withdraws an earlier one (`tcp_select_window`). This
    /// fulfils a pending acknowledgement.
    #[inline]
    pub(crate) fn announce(&mut self) -> u16 {
        let open = self.open_window();
        let (mut window, short) = self.space.select(self.used(), self.mss, self.window, self.scale);
        if short {
            self.quick = 0;
        }
        if window < open {
            window = crate::autotune::round_up(open, self.scale);
        }
        window = window.min(65_535 << self.scale);
        self.window = window;
        self.acked = self.next;
        if self.quick > 0 && self.owed {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = ATO_MIN;
            }
        }
        self.owed = false;
        self.now_due = false;
        self.pushed = false;
        self.pushed_twice = false;
        self.delayed = Time::MAX;
        self.compress = Time::MAX;
        self.compressed = 0;
        (window >> self.scale) as u16
    }

    /// Limits the announced window.
    pub(crate) fn set_clamp(&mut self, bytes: Option<u32>) {
        self.space.set_clamp(bytes, self.window);
    }

    #[inline]
    fn reported(&self) -> &[Range] {
        self.earlier.as_ref().unwrap_or(&self.recent).as_slice()
    }

    /// Returns the blocks that the next segment reports, a D-SACK first, and the size of the option in bytes.
    #[inline]
    pub(crate) fn sack_option_len(&self) -> u32 {
        let count = self.reported().len() as u32 + u32::from(self.d_sack.is_some());
        if count == 0 { 0 } else { 4 + 8 * count.min(3) }
    }

    /// Returns the same and removes the D-SACK, which is reported once.
    #[inline]
    pub(crate) fn take_sack(&mut self, max: usize, stats: &mut Stats) -> Sack {
        let mut sack = Sack::NONE;
        if self.reported().is_empty() && self.d_sack.is_none() {
            return sack;
        }
        if let Some(range) = self.d_sack.take() {
            stats.dsacks_sent += 1;
            sack.push(self.block(range));
        }
        let room = max - sack.blocks().len();
        for &range in self.reported().iter().take(room) {
            sack.push(self.block(range));
        }
        self.earlier = None;
        sack
    }

    fn block(&self, range: Range) -> Block {
        let wire = |offset: u64| self.irs.wrapping_add(offset as u32);
        Block { start: wire(range.start), end: wire(range.end) }
    }
}
