//! What held a TCP sender back, from the state that its kernel tells at two moments.

use units::Span;
use wire::tcp_info::TcpInfo;

/// Where a sender's time went, in seconds. The kernel counts in jiffies of 1 to 10 ms, so parts of a short time may be negative; the
/// sums are right.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// The application had nothing to send.
    pub app: f64,
    /// The receive window was full.
    pub rwnd: f64,
    /// The congestion window was full.
    pub cwnd: f64,
    /// The pacer made it wait.
    pub pacing: f64,
    /// The send buffer had no room for what the application would have written.
    pub buffer: f64,
    /// No kernel said anything: the handshake, and kernels before Linux 4.10.
    pub unknown: f64,
}

impl Limits {
    /// The parts with the names that the column `limit` of the table of samples has.
    fn parts(&self) -> [(f64, &'static str); 6] {
        [
            (self.cwnd, "cwnd"),
            (self.pacing, "pacing"),
            (self.rwnd, "rwnd"),
            (self.buffer, "sndbuf"),
            (self.app, "app"),
            (self.unknown, "idle"),
        ]
    }

    /// Returns where the time of `span` between two states went, of which the first may be missing: then the connection began
    /// with the span. The kernel counts how long the sender was busy, and how long of this the receive window and the send buffer
    /// held it back. A sender is busy as long as data is in flight (`tcp_chrono_start`), whatever holds it back. So the second state
    /// tells whose the rest was: the application's if all it wrote was sent and the window has room, the pacer's of a sender that
    /// keeps to a pacing rate (`is_paced`) and has room in its window, and otherwise the congestion window's.
    pub fn between(before: Option<&TcpInfo>, after: &TcpInfo, span: Span, is_paced: bool) -> Limits {
        let whole = span.as_secs_f64();
        let grown = |total: fn(&TcpInfo) -> Option<u64>| {
            let now = total(after)?;
            Some(now.saturating_sub(before.and_then(total).unwrap_or(0)) as f64 * 1e-6)
        };
        let grown = (grown(|info| info.busy_time), grown(|info| info.rwnd_limited), grown(|info| info.sndbuf_limited));
        let (Some(busy), Some(rwnd), Some(buffer)) = grown else {
            return Limits { unknown: whole, ..Limits::default() };
        };
        let (idle, sending) = (whole - busy, busy - rwnd - buffer);
        let (app, cwnd, pacing) = if has_nothing_to_send(after) {
            (sending, 0.0, 0.0)
        } else if is_paced && !fills_window(after) {
            (0.0, 0.0, sending)
        } else {
            (0.0, sending, 0.0)
        };
        Limits { app: idle + app, rwnd, cwnd, pacing, buffer, unknown: 0.0 }
    }

    /// The sum with other times.
    #[must_use]
    pub fn plus(self, other: Limits) -> Limits {
        Limits {
            app: self.app + other.app,
            rwnd: self.rwnd + other.rwnd,
            cwnd: self.cwnd + other.cwnd,
            pacing: self.pacing + other.pacing,
            buffer: self.buffer + other.buffer,
            unknown: self.unknown + other.unknown,
        }
    }

    /// Whether a kernel said anything.
    pub fn is_known(&self) -> bool {
        *self != Limits { unknown: self.unknown, ..Limits::default() }
    }

    /// Returns the share of `part`, in seconds, in all of the time (0 to 1).
    pub fn share(&self, part: f64) -> f64 {
        let all: f64 = self.parts().iter().map(|part| part.0.max(0.0)).sum();
        if all > 0.0 { part.max(0.0) / all } else { 0.0 }
    }

    /// Returns the shares of all of the time (0 to 1) that the columns `limited_*` of the table of flows have: the application, the
    /// congestion window, the receive window, pacing, the send buffer, and the rest. `None` if no kernel said anything.
    pub fn shares(&self) -> Option<[f64; 6]> {
        let parts = [self.app, self.cwnd, self.rwnd, self.pacing, self.buffer, self.unknown];
        self.is_known().then(|| parts.map(|part| self.share(part)))
    }

    /// Says where the time went, as `congestion window 93 %, application 7 %`; `unknown` if no kernel said anything.
    pub fn words(&self) -> String {
        match self.shares() {
            Some(shares) => words(shares),
            None => "unknown".to_owned(),
        }
    }

    /// Returns what held the sender back for most of the time: `cwnd`, `pacing`, `rwnd`, `sndbuf`, `app` or `idle`; empty without
    /// time.
    pub fn most(&self) -> &'static str {
        self.parts().into_iter().fold((0.0, ""), |most, part| if part.0 > most.0 { part } else { most }).1
    }
}

/// Says where a sender's time went, by its shares (0 to 1) in the order of [`Limits::shares`]: those of half a per cent or more.
pub fn words([app, cwnd, rwnd, pacing, buffer, unknown]: [f64; 6]) -> String {
    let parts = [
        ("congestion window", cwnd),
        ("pacing", pacing),
        ("receive window", rwnd),
        ("send buffer", buffer),
        ("application", app),
        ("unknown", unknown),
    ];
    let shown = parts.into_iter().filter(|(_, share)| *share >= 0.005);
    let shown: Vec<String> = shown.map(|(name, share)| format!("{name} {:.0} %", share * 100.0)).collect();
    if shown.is_empty() { "unknown".to_owned() } else { shown.join(", ") }
}

/// Whether a state shows that its sender keeps to a pacing rate, of whatever congestion control. The kernel tells a rate of every sender,
/// also of those that nothing paces: for these it is a fifth more than what the window permits in a round trip, or twice as much in
/// slow start (`tcp_update_pacing_rate`). So a sender is paced
///
/// - if its rate is less than its window permits, as that of BBR, whose window is a multiple of what the path holds, or
/// - if data arrives at three quarters of its rate or more although its window has room and data waits to be sent. Without a pacer, a
///   window that is not full delivers at most 0.56 of the kernel's rate, unless the round trip has just become shorter.
///
/// A control of its own that starts with a rate that fills its window within a round trip is not recognised until it is slower.
pub fn shows_pacing(info: &TcpInfo) -> bool {
    let Some(rate) = info.pacing_rate().filter(|_| info.rtt > 0) else { return false };
    let (rate, delivered) = (rate as f64, info.delivery_rate as f64);
    let window = f64::from(info.snd_cwnd) * f64::from(info.snd_mss) * 1e6 / f64::from(info.rtt);
    let could_send = info.notsent_bytes > 0 && !fills_window(info) && !info.delivery_rate_app_limited();
    rate < window || (could_send && delivered >= 0.75 * rate)
}

/// Whether a sender has sent all that its application wrote, and its congestion window would let it send more.
pub fn has_nothing_to_send(info: &TcpInfo) -> bool {
    info.notsent_bytes == 0 && info.in_flight() < info.snd_cwnd
}

/// Whether the congestion window, rather than the pacing rate, keeps a paced sender from sending. A sender that waits for its
/// window leaves less than a third of it unused (`tcp_tso_should_defer`); one that leaves more has room in it, and waits for the
/// pacer.
pub fn fills_window(info: &TcpInfo) -> bool {
    u64::from(info.in_flight()) * 3 > u64::from(info.snd_cwnd) * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(busy_ms: u64, rwnd_ms: u64, buffer_ms: u64) -> TcpInfo {
        let micros = |ms: u64| Some(ms * 1000);
        TcpInfo {
            busy_time: micros(busy_ms),
            rwnd_limited: micros(rwnd_ms),
            sndbuf_limited: micros(buffer_ms),
            snd_cwnd: 10,
            unacked: 9,
            notsent_bytes: 1,
            ..TcpInfo::default()
        }
    }

    #[test]
    fn a_sender_with_data_in_flight_and_nothing_to_send_waits_for_its_application() {
        // 35 segments in flight at all times, of 40 that the window permits: 1 Mbit/s at 400 ms.
        let state = |ms| TcpInfo { snd_cwnd: 40, unacked: 35, notsent_bytes: 0, ..info(ms, 0, 0) };
        let between = |after: &TcpInfo| Limits::between(Some(&state(0)), after, Span::from_millis(100), false);
        assert_eq!((between(&state(100)).most(), between(&state(100)).cwnd), ("app", 0.0));
        assert_eq!(between(&TcpInfo { notsent_bytes: 1, ..state(100) }).most(), "cwnd");
        assert_eq!(between(&TcpInfo { unacked: 40, ..state(100) }).most(), "cwnd");
    }

    #[test]
    fn the_time_between_two_states_is_divided_among_what_the_kernel_counts() {
        let of = Limits::between(Some(&info(100, 10, 5)), &info(180, 30, 15), Span::from_millis(100), false);
        let expected = Limits { app: 0.02, rwnd: 0.02, cwnd: 0.05, buffer: 0.01, ..Limits::default() };
        let near = |(one, _): (f64, &str), (other, _): (f64, &str)| (one - other).abs() < 1e-12;
        assert!(of.parts().into_iter().zip(expected.parts()).all(|(one, other)| near(one, other)), "{of:?}");
        assert_eq!(of.most(), "cwnd");
        assert!((of.share(of.cwnd) - 0.5).abs() < 1e-12);
        let twice = of.plus(of);
        assert!((twice.share(twice.app) - 0.2).abs() < 1e-12);
    }

    #[test]
    fn a_paced_sender_with_room_in_its_window_waits_for_the_pacer() {
        let after = TcpInfo { unacked: 6, ..info(50, 0, 0) };
        let of = Limits::between(None, &after, Span::from_millis(50), true);
        assert_eq!((of.cwnd, of.most()), (0.0, "pacing"));
        let full = TcpInfo { unacked: 7, ..after };
        assert_eq!(Limits::between(None, &full, Span::from_millis(50), true).most(), "cwnd");
        assert_eq!(Limits::between(None, &after, Span::from_millis(50), false).most(), "cwnd");
    }

    #[test]
    fn a_pacer_is_seen_by_its_rate_or_by_what_arrives_whatever_the_congestion_control() {
        // The window permits 1 MB/s, and has room.
        let unpaced = TcpInfo {
            snd_cwnd: 100,
            snd_mss: 1000,
            rtt: 100_000,
            unacked: 60,
            pacing_rate: 1_200_000,
            delivery_rate: 600_000,
            ..TcpInfo::default()
        };
        assert!(!shows_pacing(&unpaced));
        // BBR and its like cruise at what the path delivers, half of what the window permits.
        assert!(shows_pacing(&TcpInfo { pacing_rate: 600_000, ..unpaced }));
        assert!(shows_pacing(&TcpInfo { pacing_rate: 600_000, unacked: 100, ..unpaced }));
        // CUBIC behind `fq`, after a fall of the round-trip time: it sends at its rate, and the window has room.
        let behind_fq = TcpInfo { delivery_rate: 1_150_000, notsent_bytes: 1, ..unpaced };
        assert!(shows_pacing(&behind_fq));
        // Its last bytes are on their way, and the rate is that of before.
        assert!(!shows_pacing(&TcpInfo { notsent_bytes: 0, ..behind_fq }));
        assert!(!shows_pacing(&TcpInfo { unacked: 100, ..behind_fq }));
        assert!(!shows_pacing(&TcpInfo { flags: 1, ..behind_fq }));
        // In slow start without a pacer.
        assert!(!shows_pacing(&TcpInfo { pacing_rate: 2_000_000, unacked: 40, delivery_rate: 400_000, ..unpaced }));
        // After a timeout the window shrinks, and the rate follows later.
        assert!(!shows_pacing(&TcpInfo { snd_cwnd: 1, unacked: 1, ..unpaced }));
        // Nothing is known.
        for unknown in [0, u64::MAX] {
            assert!(!shows_pacing(&TcpInfo { pacing_rate: unknown, delivery_rate: u64::MAX, ..unpaced }));
        }
        assert!(!shows_pacing(&TcpInfo { rtt: 0, pacing_rate: 1, ..unpaced }));
    }

    #[test]
    fn segments_that_are_lost_or_sacked_do_not_fill_the_window() {
        let full = TcpInfo { snd_cwnd: 30, unacked: 30, ..TcpInfo::default() };
        assert!(fills_window(&full));
        assert!(!fills_window(&TcpInfo { lost: 6, sacked: 4, ..full }));
        assert!(fills_window(&TcpInfo { lost: 6, sacked: 4, retrans: 1, ..full }));
    }

    #[test]
    fn jiffies_of_the_kernel_do_not_add_up_to_idle_time() {
        // Busy all the time, counted in jiffies of 4 ms and sampled each 10 ms.
        let busy = |ms: u64| info(ms / 4 * 4, 0, 0);
        let sum = (0..1000).map(|n| (busy(n * 10), busy((n + 1) * 10)));
        let sum = sum.fold(Limits::default(), |sum, (before, after)| {
            sum.plus(Limits::between(Some(&before), &after, Span::from_millis(10), false))
        });
        assert!(sum.share(sum.app) < 1e-3 && sum.share(sum.cwnd) > 0.999, "{sum:?}");
    }

    #[test]
    fn nothing_is_known_of_a_kernel_that_does_not_count() {
        let of = Limits::between(None, &TcpInfo::default(), Span::from_millis(50), false);
        assert_eq!((of.unknown, of.share(of.unknown), of.most()), (0.05, 1.0, "idle"));
        assert!(!of.is_known() && !Limits::default().is_known());
        assert!(Limits { app: 0.01, ..of }.is_known());
        assert_eq!((Limits::default().most(), Limits::default().share(0.0)), ("", 0.0));
    }
}
