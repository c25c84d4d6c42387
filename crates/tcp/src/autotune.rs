//! The receive buffer, the window that it allows, and how both grow (Linux `tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`,
//! `tcp_rcv_rtt_update`, `tcp_measure_rcv_mss`, `tcp_grow_window`, `__tcp_select_window`, `tcp_select_initial_window`,
//! `tcp_init_buffer_space`, `tcp_set_window_clamp`).
//!
//! Deviations:
//! 1. Data in the buffer takes as much of the window as it has bytes, whatever the size of its segments; Linux counts the
//!    memory of each packet, and a window of full segments is as large in both.
//! 2. A clamp set by the application stays when autotuning grows the buffer; Linux forgets it then.
//! 3. In 6.1 the buffer grows by the memory of whole segments, which is some per cent more.
//! 4. Segments that are short beside their memory open the window as full ones do (`__tcp_grow_window` opens it less).

use crate::config::{Config, Kernel};
use crate::send_buffer::state::STRUCTURE;
use units::{Span, Time};

/// The share of a buffer that is window before it is measured, in 256ths, and in 6.1 always (`TCP_DEFAULT_SCALING_RATIO`,
/// `tcp_adv_win_scale` = 1).
const HALF: u64 = 128;
/// Memory of a received packet besides the data's and its structure: what the data's allocation holds in front of and behind
/// the data (`NET_SKB_PAD` and the Ethernet header; the IP and TCP headers with timestamps; `struct skb_shared_info`).
const AROUND: u64 = 64 + 14 + 20 + 32 + 320;

/// The least that a clamp can be set to, in bytes (`SOCK_MIN_RCVBUF / 2`).
const CLAMP_MIN: u64 = 2304;

/// The receive buffer and the window that it allows.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    kernel: Kernel,
    /// Bytes of memory now, and at most (`sk_rcvbuf`, `tcp_rmem[2]`).
    buffer: u64,
    buffer_max: u64,
    /// The share of it that is window, in 256ths (`scaling_ratio`).
    ratio: u64,
    /// The window that the buffer allows: bytes of payload that fit (`tcp_full_space`).
    full: u64,
    /// The window was set, not the memory: it stays whatever the share.
    fixed: bool,
    /// The most that is announced: what the application allows, and what the buffer does (`window_clamp`).
    clamp: u64,
    ceiling: u64,
    /// The largest window that the field can say.
    largest: u64,
    /// The largest window to announce now; grows with what arrives (`rcv_ssthresh`).
    ssthresh: u64,
    mss: u64,
    /// Eight times the receiver's estimate of the round-trip time, in nanoseconds; 0 if there is none.
    rtt8: u64,
    /// Where a window's worth of data ends, for the estimate without timestamps, and when it began.
    window_end: u64,
    window_since: Option<Time>,
    last_echo: Option<u32>,
    /// What the application read in the last round trip, and where and when this one began.
    copied: u64,
    round_start: u64,
    round_since: Time,
}

impl Space {
    pub(crate) fn new(config: &Config) -> Space {
        let buffer = u64::from(config.receive_buffer);
        Space {
            kernel: config.kernel,
            buffer,
            buffer_max: buffer.max(u64::from(config.receive_buffer_max)),
            ratio: HALF,
            full: (buffer * HALF) >> 8,
            fixed: false,
            clamp: clamp(config.window_clamp),
            ceiling: u64::MAX,
            largest: 65_535,
            ssthresh: 0,
            mss: u64::from(config.mss),
            rtt8: 0,
            window_end: 0,
            window_since: None,
            last_echo: None,
            copied: 0,
            round_start: 0,
            round_since: Time::ZERO,
        }
    }

    /// The window of the SYN: whole segments, unscaled.
    pub(crate) fn initial_window(&mut self) -> u64 {
        self.window_of(self.mss as u32)
    }

    /// The same for segments of `mss` bytes.
    pub(crate) fn window_of(&mut self, mss: u32) -> u64 {
        self.mss = u64::from(mss);
        let space = self.full.min(self.clamp);
        let window = if space > self.mss { space / self.mss * self.mss } else { space };
        self.ssthresh = window.min(65_535);
        self.ssthresh
    }

    /// The window scale shift to offer: the largest window must fit (RFC 7323).
    pub(crate) fn scale(&self) -> u8 {
        // Linux also takes `net.core.rmem_max` as a buffer that the application may ask for.
        let rmem_max = match self.kernel {
            Kernel::V6_1 => 212_992,
            Kernel::V6_18 => 4 << 20,
        };
        let space = self.buffer_max.max(rmem_max).min(self.clamp.max(65_535));
        (space.ilog2().saturating_sub(15)).min(14) as u8
    }

    /// The connection is established; `mss` is the payload of the segments that this side would send. Until the buffer
    /// grows, a segment of it stays free, and no more is announced than the window field can say
    /// (`tcp_init_buffer_space`, `tcp_select_initial_window`).
    pub(crate) fn begin(&mut self, mss: u32, window: u64, scale: u8, now: Time) {
        self.mss = u64::from(mss);
        self.largest = 65_535 << scale;
        self.ceiling = self.largest;
        if self.limit() > 2 * self.mss && self.limit() + self.mss > self.full {
            self.ceiling = (self.full - self.mss).max(2 * self.mss);
        }
        self.ssthresh = self.ssthresh.min(self.limit());
        self.copied = self.ssthresh.min(window).min(10 * self.mss);
        self.round_start = 1;
        self.round_since = now;
    }

    /// The most that can be announced (`window_clamp`, `tcp_full_space`).
    #[inline]
    fn limit(&self) -> u64 {
        self.full.min(self.clamp).min(self.ceiling)
    }

    pub(crate) fn full(&self) -> u64 {
        self.full
    }

    /// Whether the announced window is small beside what could be announced (`tcp_cleanup_rbuf`).
    #[inline]
    pub(crate) fn is_low(&self, window: u64) -> bool {
        2 * window <= self.limit()
    }

    pub(crate) fn rtt(&self) -> Option<Span> {
        if self.rtt8 == 0 { None } else { Some(Span::from_nanos(self.rtt8 >> 3)) }
    }

    /// Sets how many bytes of payload fit, from now on.
    pub(crate) fn set_full(&mut self, bytes: u64) {
        // Not more than the window field can say.
        self.full = bytes.min(self.largest);
        self.buffer = self.memory_for(self.full);
        (self.buffer_max, self.fixed, self.ceiling) = (self.buffer, true, u64::MAX);
        self.ssthresh = self.ssthresh.min(self.full);
    }

    pub(crate) fn set_clamp(&mut self, bytes: Option<u32>, window: u64) {
        let old = self.clamp;
        self.clamp = clamp(bytes);
        if self.clamp < old {
            self.ssthresh = self.ssthresh.min(self.clamp);
        } else {
            self.ssthresh = self.ssthresh.max(window.min(self.clamp));
        }
    }

    /// The window to announce with `used` bytes in the buffer, and whether space is short. `window` is the announced one.
    #[inline]
    pub(crate) fn select(&self, used: u64, received_mss: u64, window: u64, scale: u8) -> (u64, bool) {
        let full = self.limit();
        let mss = received_mss.min(full);
        let mut free = self.full.saturating_sub(used);
        let short = free < full >> 1;
        if short {
            free = free >> scale << scale;
            if free < self.full >> 4 || free < mss {
                return (0, true);
            }
        }
        free = free.min(self.ssthresh);
        if scale > 0 {
            return (round_up(free, scale), short);
        }
        // Unscaled windows are kept in whole segments, and left alone for less than one.
        if window + mss <= free || window > free {
            return (free / mss.max(1) * mss, short);
        }
        if mss == full && free > window + (full >> 1) {
            return (free, short);
        }
        (window, short)
    }

    /// A segment of `len` bytes was taken in: the window may grow by two; whether it did.
    #[inline]
    pub(crate) fn grow_window(&mut self, used: u64, len: u64) -> bool {
        let room = self.limit().min(self.full.saturating_sub(used)).saturating_sub(self.ssthresh);
        self.ssthresh += room.min((2 * self.mss).max(2 * len));
        room > 0
    }

    /// The memory that a window of so many bytes takes (`tcp_space_from_win`).
    #[inline]
    fn memory_for(&self, window: u64) -> u64 {
        (window << 8) / self.ratio
    }

    /// A full segment of `len` bytes arrived, another size than before: the share of its memory that is data becomes the share
    /// of the buffer that is window (`tcp_measure_rcv_mss`). `window` is the announced one.
    #[cold]
    pub(crate) fn measure_segment(&mut self, len: u64, window: u64) {
        let ratio = match self.kernel {
            Kernel::V6_1 => HALF,
            Kernel::V6_18 => ((len << 8) / packet_memory(len)).max(1),
        };
        if ratio == self.ratio {
            return;
        }
        let before = self.limit();
        self.ratio = ratio;
        if self.fixed {
            self.buffer = self.memory_for(self.full);
            return;
        }
        self.full = (self.buffer * ratio) >> 8;
        self.ceiling = u64::MAX;
        let limit = self.limit();
        if limit < before {
            self.ssthresh = self.ssthresh.min(limit);
        } else {
            self.ssthresh = self.ssthresh.max(window.min(limit));
        }
        self.copied = self.copied.min(limit);
    }

    /// The round-trip time from an echoed timestamp, in milliseconds of the option's clock, once for each echo; `full` is
    /// whether the segment that brings it is a full one, `unread` whether data waits to be read. A time of less than a
    /// millisecond is no sample in 6.18, and a millisecond in 6.1 (`tcp_rcv_rtt_measure_ts`).
    #[inline]
    pub(crate) fn measure_echo(&mut self, echo: u32, millis_since: u32, full: bool, unread: bool) {
        if self.last_echo == Some(echo) {
            return;
        }
        self.last_echo = Some(echo);
        // A delay of more than half of the clock's range is no delay.
        let millis = millis_since.max(u32::from(self.kernel == Kernel::V6_1));
        if full && millis > 0 && millis < 1 << 31 {
            self.update_rtt(u64::from(millis) * 1_000_000, false, unread);
        }
    }

    /// A smaller sample counts at once, a larger one by an eighth, if it is one of a timestamp (`tcp_rcv_rtt_update`).
    #[inline]
    fn update_rtt(&mut self, sample: u64, from_window: bool, unread: bool) {
        let only_smaller = from_window || (unread && self.kernel == Kernel::V6_18);
        if self.rtt8 == 0 || sample << 3 < self.rtt8 {
            self.rtt8 = sample << 3;
        } else if !only_smaller {
            self.rtt8 += sample - (self.rtt8 >> 3);
        }
    }

    /// The round-trip time from the time that a window's worth of data takes; too long rather than too short, so only a
    /// smaller one counts.
    #[inline]
    pub(crate) fn measure_window(&mut self, received: u64, window: u64, now: Time) {
        if let Some(since) = self.window_since {
            if received < self.window_end {
                return;
            }
            self.update_rtt(now.saturating_since(since).as_nanos().max(1000), true, false);
        }
        self.window_end = received + window;
        self.window_since = Some(now);
    }

    /// The application has read up to `copied`; `unread` bytes wait, and out-of-order data reaches `beyond` past them
    /// (`tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`). 6.1 counts what is unread as read, allows 16 segments more, and nothing
    /// for out-of-order data.
    #[inline]
    pub(crate) fn adjust(&mut self, copied: u64, unread: u64, beyond: u64, now: Time) {
        let elapsed = now.saturating_since(self.round_since).as_nanos();
        if self.rtt8 == 0 || elapsed < self.rtt8 >> 3 {
            return;
        }
        let (unread, more, beyond) = match self.kernel {
            Kernel::V6_1 => (0, 16 * self.mss, 0),
            Kernel::V6_18 => (unread, 0, beyond),
        };
        let read = (copied - self.round_start).saturating_sub(unread);
        if read > self.copied {
            let window = 2 * read + more;
            let growth = 2 * (window * (read - self.copied) / self.copied.max(1));
            self.copied = read;
            self.grow_buffer(window + growth + beyond);
        }
        self.round_start = copied;
        self.round_since = now;
    }

    /// Out-of-order data reaches `beyond` past the next expected byte: it needs room beside a window of new data
    /// (`tcp_data_queue_ofo`, `tcp_rcvbuf_grow`). 6.1 has nothing of the kind.
    #[inline]
    pub(crate) fn provide(&mut self, beyond: u64) {
        if self.kernel == Kernel::V6_18 {
            self.grow_buffer(2 * self.copied + beyond);
        }
    }

    #[inline]
    fn grow_buffer(&mut self, window: u64) {
        let buffer = self.memory_for(window).min(self.buffer_max);
        if buffer > self.buffer && !self.fixed {
            self.buffer = buffer;
            self.full = (buffer * self.ratio) >> 8;
            self.ceiling = u64::MAX;
        }
    }
}

/// The memory of a packet with so many bytes of payload, as drivers with buffers from `kmalloc` and the TUN interface allocate
/// it: its data takes a power of two (`SKB_TRUESIZE`, `skb_end_offset`).
fn packet_memory(len: u64) -> u64 {
    (len + AROUND).next_power_of_two() + STRUCTURE
}

/// The next multiple of `1 << scale`.
#[inline]
pub(crate) fn round_up(bytes: u64, scale: u8) -> u64 {
    let mask = (1 << scale) - 1;
    (bytes + mask) & !mask
}

fn clamp(bytes: Option<u32>) -> u64 {
    bytes.map_or(u64::MAX, |bytes| u64::from(bytes).max(CLAMP_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_window_is_whole_segments_of_half_the_buffer() {
        let mut space = Space::new(&Config::default());
        assert_eq!(space.initial_window(), 44 * 1460);
        // As `ss` shows it for a socket of 6.18 with the default `tcp_rmem`, and of 6.1.
        assert_eq!(space.scale(), 10);
        let old = Config { kernel: Kernel::V6_1, receive_buffer_max: 6 << 20, ..Config::default() };
        assert_eq!(Space::new(&old).scale(), 7);
        let mut small = Space::new(&Config { window_clamp: Some(20_000), ..Config::default() });
        assert_eq!(small.initial_window(), 13 * 1460);
    }

    #[test]
    fn the_buffer_follows_what_is_read_in_a_round_trip() {
        let mut space = Space::new(&Config::default());
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let window = space.initial_window();
        space.begin(1448, window, 7, at(0));
        space.measure_echo(5, 50, true, false);
        // 10 segments were read in the first round trip: no more than assumed.
        space.adjust(14_481, 0, 0, at(50));
        assert_eq!(space.full(), 65_536);
        // Twice as much in the next: 2 * 28,960, plus twice as much again as it grew, 100 %.
        space.adjust(14_481 + 28_960, 0, 0, at(99));
        assert_eq!(space.full(), 65_536);
        space.adjust(14_481 + 28_960, 0, 0, at(100));
        assert_eq!(space.full(), 6 * 28_960);
        // Within the limit.
        space.adjust(14_481 + 28_960 + 40_000_000, 0, 0, at(150));
        assert_eq!(space.full(), 16 << 20);
    }

    /// A connection whose buffer has 131,072 bytes, with the first window of 45 segments announced.
    fn established(kernel: Kernel) -> Space {
        let mut space = Space::new(&Config { kernel, ..Config::default() });
        space.initial_window();
        let window = space.window_of(1448);
        assert_eq!(window, 65_160);
        space.begin(1448, window, 10, Time::ZERO);
        space
    }

    #[test]
    fn a_segment_stays_free_unless_that_leaves_fewer_than_two() {
        // `tcp_init_buffer_space`; half of the buffer is window.
        for (buffer, limit) in [(10_000, 5_000 - 1_448), (8_000, 2 * 1_448), (5_792, 2 * 1_448), (5_700, 2_850)] {
            let mut space = Space::new(&Config { receive_buffer: buffer, ..Config::default() });
            let window = space.window_of(1448);
            space.begin(1448, window, 0, Time::ZERO);
            assert_eq!(space.limit(), limit, "{buffer}");
        }
    }

    // The values of the following are worked by hand after Linux 6.18.

    #[test]
    fn the_first_full_segment_tells_how_much_of_the_buffer_is_window() {
        // 1448 + 450 bytes take 2048, with the structure 2304: 1448 * 256 / 2304 = 160.
        let mut space = established(Kernel::V6_18);
        assert_eq!((space.full(), space.ssthresh), (65_536, 64_088));
        space.measure_segment(1448, 65_160);
        // 131,072 * 160 / 256, all of which may be announced; what was announced is not withdrawn.
        assert_eq!((space.full(), space.limit(), space.ssthresh), (81_920, 81_920, 65_160));
        // But no more than fits is allowed for a window that was larger.
        let mut larger = established(Kernel::V6_18);
        larger.measure_segment(1448, 90_000);
        assert_eq!(larger.ssthresh, 81_920);
        // 173,760 bytes of window take 278,016 of memory.
        space.grow_buffer(173_760);
        assert_eq!((space.buffer, space.full()), (278_016, 173_760));
        // Segments of 536 bytes: 986 take 1024, with the structure 1280: 107. The window shrinks to 116,202.
        space.ssthresh = 170_000;
        assert_eq!(space.copied, 14_480);
        space.measure_segment(536, 65_160);
        assert_eq!((space.full(), space.ssthresh, space.copied), (116_202, 116_202, 14_480));
        // Of 88 bytes: 538 take 1024, with the structure 1280: 17. No more than that was read in a round trip.
        let mut space = established(Kernel::V6_18);
        space.measure_segment(88, 65_160);
        assert_eq!((space.full(), space.copied), (8_704, 8_704));
    }

    #[test]
    fn linux_6_1_takes_half_of_the_buffer_and_16_segments_more() {
        let mut space = established(Kernel::V6_1);
        space.measure_segment(1448, 65_160);
        assert_eq!((space.full(), space.limit()), (65_536, 64_088));
        space.measure_echo(5, 50, true, false);
        // 2 * 28,960 + 16 * 1448 = 81,088; it doubled, so twice as much is added.
        space.adjust(1 + 28_960, 10_000, 50_000, Time::from_nanos(50_000_000));
        assert_eq!(space.full(), 3 * 81_088);
        space.provide(10_000_000);
        assert_eq!(space.full(), 3 * 81_088);
    }

    #[test]
    fn a_shorter_round_trip_counts_at_once_and_a_longer_one_by_an_eighth() {
        let mut space = established(Kernel::V6_18);
        let mut rtt = |echo, millis, full, unread| {
            space.measure_echo(echo, millis, full, unread);
            space.rtt().map(Span::as_micros)
        };
        // Less than a tick is no sample.
        assert_eq!(rtt(1, 0, true, false), None);
        assert_eq!(rtt(2, 50, true, false), Some(50_000));
        assert_eq!(rtt(3, 20, true, false), Some(20_000));
        assert_eq!(rtt(4, 28, true, false), Some(21_000));
        // The same echo, a short segment, and data that waits to be read tell nothing of a longer time.
        assert_eq!(rtt(4, 100, true, false), Some(21_000));
        assert_eq!(rtt(5, 100, false, false), Some(21_000));
        assert_eq!(rtt(6, 100, true, true), Some(21_000));
        assert_eq!(rtt(7, 10, true, true), Some(10_000));
        let mut old = established(Kernel::V6_1);
        old.measure_echo(1, 0, true, false);
        assert_eq!(old.rtt(), Some(Span::from_millis(1)));
        old.measure_echo(2, 9, true, true);
        assert_eq!(old.rtt(), Some(Span::from_millis(2)));
    }

    /// A buffer for 20,000 bytes that never grows, with windows that are not scaled.
    fn small(fits: u32) -> Space {
        let buffer = 2 * fits;
        let config = Config { receive_buffer: buffer, receive_buffer_max: buffer, ..Config::default() };
        let mut space = Space::new(&config);
        let window = space.window_of(1448);
        space.begin(1448, window, 0, Time::ZERO);
        space
    }

    // The values of the following four are worked by hand after Linux 6.1 `__tcp_select_window`.

    #[test]
    fn an_unscaled_window_is_whole_segments_of_what_was_received() {
        // 13 * 1448 = 18,824 in the SYN-ACK; a segment of the buffer stays free: 18,552, of which 12 * 1448 = 17,376.
        let space = small(20_000);
        assert_eq!((space.limit(), space.ssthresh), (18_552, 18_552));
        assert_eq!(space.select(0, 1448, 18_824, 0), (17_376, false));
        // The peer's segments are shorter than those of this side: 18 * 1000, 34 * 536.
        assert_eq!(space.select(0, 1000, 18_824, 0), (18_000, false));
        assert_eq!(space.select(0, 536, 18_824, 0), (18_224, false));
        // 17,104 are free: 11 * 1448.
        assert_eq!(space.select(2 * 1448, 1448, 17_376, 0), (15_928, false));
    }

    #[test]
    fn an_unscaled_window_stays_as_it_is_for_less_than_a_segment() {
        let space = small(20_000);
        // 15,928 + 1448 = 17,376: a byte less is free, and then as much.
        assert_eq!(space.select(2_625, 1448, 15_928, 0), (15_928, false));
        assert_eq!(space.select(2_624, 1448, 15_928, 0), (17_376, false));
    }

    #[test]
    fn a_small_unscaled_window_closes_below_a_segment_or_a_sixteenth_of_the_buffer() {
        let space = small(20_000);
        // From less than half of 18,552 free on, space is short.
        assert_eq!(space.select(20_000 - 9_276, 1448, 2_896, 0), (8_688, false));
        assert_eq!(space.select(20_000 - 9_275, 1448, 2_896, 0), (8_688, true));
        assert_eq!(space.select(20_000 - 1_448, 1448, 0, 0), (1_448, true));
        assert_eq!(space.select(20_000 - 1_447, 1448, 0, 0), (0, true));
        // 20,000 / 16 = 1250, of which 14 * 88 = 1232.
        assert_eq!(space.select(20_000 - 1_250, 88, 0, 0), (1_232, true));
        assert_eq!(space.select(20_000 - 1_249, 88, 0, 0), (0, true));
    }

    #[test]
    fn a_scaled_window_is_rounded_up_to_what_its_field_can_say() {
        // 17,103 bytes are free.
        for (scale, window) in [(1, 17_104), (2, 17_104), (7, 17_152)] {
            assert_eq!(small(20_000).select(2_897, 1448, 17_376, scale), (window, false), "{scale}");
        }
    }

    #[test]
    fn a_buffer_of_less_than_a_segment_offers_all_of_itself() {
        let space = small(1_000);
        assert_eq!(space.limit(), 1_000);
        assert_eq!(space.select(0, 1448, 0, 0), (1_000, false));
        assert_eq!(space.select(0, 1448, 500, 0), (500, false));
        assert_eq!(space.select(0, 1448, 499, 0), (1_000, false));
        // One of more than a segment waits for a whole one.
        assert_eq!(small(2_000).select(0, 1448, 400, 0), (400, false));
    }

    #[test]
    fn the_window_field_bounds_an_unscaled_window_of_a_large_buffer() {
        // 45 * 1448 = 65,160 of 65,535.
        let mut space = small(1 << 20);
        for _ in 0..100 {
            space.grow_window(0, 1448);
        }
        assert_eq!(space.select(0, 1448, 0, 0), (65_160, false));
    }

    #[test]
    fn the_window_closes_before_it_would_offer_slivers() {
        let space = {
            let mut space = Space::new(&Config::default());
            space.initial_window();
            space
        };
        assert_eq!(space.select(0, 1448, 0, 7).0, 64_256);
        assert_eq!(space.select(65_536 - 4096, 1448, 0, 7), (4096, true));
        assert_eq!(space.select(65_536 - 4095, 1448, 0, 7), (0, true));
    }

    #[test]
    fn a_clamp_lowers_the_window_at_once_and_a_higher_one_lets_it_be() {
        let mut space = established(Kernel::V6_18);
        assert_eq!(space.ssthresh, 64_088);
        // `SOCK_MIN_RCVBUF / 2` at least.
        space.set_clamp(Some(1_000), 60_000);
        assert_eq!((space.limit(), space.ssthresh), (2_304, 2_304));
        // A higher clamp allows what is announced, up to itself.
        space.set_clamp(Some(20_000), 60_000);
        assert_eq!((space.limit(), space.ssthresh), (20_000, 20_000));
        space.set_clamp(Some(50_000), 30_000);
        assert_eq!(space.ssthresh, 30_000);
        space.set_clamp(None, 10_000);
        assert_eq!((space.limit(), space.ssthresh), (64_088, 30_000));
    }

    #[test]
    fn the_scale_is_the_least_that_the_largest_window_fits() {
        // The kernel, the largest buffer, the clamp: 2^15 times 2^scale is at most the space.
        for (kernel, buffer, clamp, scale) in [
            (Kernel::V6_1, 0, None, 2),
            (Kernel::V6_1, (1 << 18) - 1, None, 2),
            (Kernel::V6_1, 1 << 18, None, 3),
            (Kernel::V6_18, 0, None, 7),
            (Kernel::V6_18, 1 << 23, None, 8),
            (Kernel::V6_18, u32::MAX, None, 14),
            (Kernel::V6_18, 1 << 23, Some(1 << 20), 5),
            (Kernel::V6_18, 1 << 23, Some(5_000), 0),
        ] {
            let config = Config {
                kernel,
                receive_buffer: 1,
                receive_buffer_max: buffer,
                window_clamp: clamp,
                ..Config::default()
            };
            assert_eq!(Space::new(&config).scale(), scale, "{kernel:?} {buffer} {clamp:?}");
        }
    }

    #[test]
    fn a_segment_opens_the_window_by_two_of_this_sides_or_two_of_its_own() {
        for (used, len, opened) in
            [(0, 1_000, 2_896), (0, 1_448, 2_896), (0, 3_000, 6_000), (90_000, 1_000, 1_072), (91_072, 1_000, 0)]
        {
            let mut space = established(Kernel::V6_18);
            space.set_full(100_000);
            space.ssthresh = 8_928;
            assert_eq!(space.grow_window(used, len), opened > 0, "{used} {len}");
            assert_eq!(space.ssthresh, 8_928 + opened, "{used} {len}");
        }
        // Up to what may be announced.
        let mut space = established(Kernel::V6_18);
        space.ssthresh = 64_000;
        assert!(space.grow_window(0, 1_448) && !space.grow_window(0, 1_448));
        assert_eq!(space.ssthresh, 64_088);
    }

    #[test]
    fn a_window_is_low_up_to_half_of_what_could_be_announced() {
        let space = established(Kernel::V6_18);
        assert!(space.is_low(32_044) && !space.is_low(32_045));
    }

    #[test]
    fn a_buffer_that_was_set_does_not_grow_and_fits_the_window_field() {
        let mut space = established(Kernel::V6_18);
        space.set_full(30_000);
        assert_eq!((space.full(), space.limit(), space.ssthresh), (30_000, 30_000, 30_000));
        space.measure_segment(1448, 65_160);
        space.provide(1_000_000);
        assert_eq!((space.full(), space.memory_for(30_000)), (30_000, 48_000));
        space.set_full(1 << 40);
        assert_eq!(space.full(), 65_535 << 10);
    }

    #[test]
    fn the_time_of_a_windows_worth_of_data_only_shortens_the_round_trip() {
        let mut space = established(Kernel::V6_18);
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        space.measure_window(1_000, 10_000, at(0));
        assert_eq!(space.rtt(), None);
        space.measure_window(10_999, 10_000, at(40));
        assert_eq!(space.rtt(), None, "a byte is missing");
        space.measure_window(11_000, 5_000, at(50));
        assert_eq!(space.rtt(), Some(Span::from_millis(50)));
        space.measure_window(16_000, 5_000, at(130));
        assert_eq!(space.rtt(), Some(Span::from_millis(50)), "longer");
        space.measure_window(21_000, 5_000, at(170));
        assert_eq!(space.rtt(), Some(Span::from_millis(40)));
        // A microsecond at least.
        space.measure_window(26_000, 5_000, at(170));
        assert_eq!(space.rtt(), Some(Span::from_micros(1)));
    }

    #[test]
    fn the_buffer_grows_after_a_round_trip_in_which_more_was_read() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        // What was read beyond the 14,480 bytes assumed, and what is unread or out of order beside it.
        for (read, unread, beyond, full) in [
            (14_480, 0, 0, 65_536),
            (14_481, 0, 0, 65_536),
            (28_960, 0, 0, 6 * 28_960),
            (28_960, 14_480, 0, 65_536),
            (28_960, 0, 10_000, 6 * 28_960 + 10_000),
        ] {
            let mut space = established(Kernel::V6_18);
            space.measure_echo(5, 50, true, false);
            space.adjust(1 + read, unread, beyond, at(49));
            assert_eq!((space.full(), space.round_since), (65_536, at(0)), "the round trip is not over");
            space.adjust(1 + read, unread, beyond, at(50));
            assert_eq!(
                (space.full(), space.round_since, space.round_start),
                (full, at(50), 1 + read),
                "{read} {unread} {beyond}"
            );
        }
        // Without a round-trip time there is none to wait for.
        let mut space = established(Kernel::V6_18);
        space.adjust(1 + 28_960, 0, 0, at(5_000));
        assert_eq!(space.full(), 65_536);
        // Out-of-order data needs room beside two windows.
        space.provide(50_000);
        assert_eq!(space.full(), 2 * 14_480 + 50_000);
        space.provide(40_000);
        assert_eq!(space.full(), 2 * 14_480 + 50_000);
    }

    #[test]
    fn a_segment_stays_free_until_the_buffer_grows() {
        // 65,536 bytes of window take the 131,072 that there are, and a byte more takes two of them.
        let mut space = established(Kernel::V6_18);
        space.grow_buffer(65_536);
        assert_eq!((space.buffer, space.limit()), (131_072, 64_088));
        space.grow_buffer(65_537);
        assert_eq!((space.buffer, space.limit()), (131_074, 65_537));
    }

    #[test]
    fn a_packets_memory_is_a_power_of_two_for_data_and_what_is_around_it() {
        // 450 bytes around the data, and the structure of 256.
        for (len, data) in [(62, 512), (63, 1024), (574, 1024), (575, 2048), (1598, 2048), (1599, 4096)] {
            assert_eq!(packet_memory(len), data + 256, "{len}");
        }
    }
}
