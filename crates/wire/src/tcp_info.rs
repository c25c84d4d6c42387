//! The kernel's state of a TCP connection as bytes: `TCP_INFO`, and `TCP_CC_INFO` of BBR.
//!
//! Source: `struct tcp_info` and `struct tcp_bbr_info` in Linux `include/uapi/linux/tcp.h` and `inet_diag.h`, as of 6.18. The
//! kernel only appends to the former, so what an older kernel does not know is missing at the end. Times are in microseconds
//! unless the name says otherwise, and rates in bytes per second. Numbers are in the byte order of the machine that wrote them,
//! which is assumed to be little-endian, as are all machines that this program supports.

/// `TCP_INFINITE_SSTHRESH`.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
/// The bytes that Linux 4.9 fills in. Shorter states are not understood.
pub const LEAST: usize = 168;
/// The bytes that Linux 6.18 fills in.
pub const MOST: usize = 280;

/// Reads a number in the machine's order.
trait Number: Sized {
    fn read(bytes: &[u8], at: usize) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty)+) => {$(
        impl Number for $number {
            #[inline]
            fn read(bytes: &[u8], at: usize) -> Option<$number> {
                let bytes = bytes.get(at..at + size_of::<$number>())?;
                Some(<$number>::from_le_bytes(bytes.try_into().ok()?))
            }
        }
    )+};
}
numbers! { u8 u16 u32 u64 }

/// Makes the struct and its decoder from the fields' offsets.
macro_rules! tcp_info {
    (
        always { $($name:ident: $type:ty = $at:literal,)+ }
        later { $($later:ident: $later_type:ty = $later_at:literal,)+ }
    ) => {
        /// The state of a TCP connection. Fields have the kernel's names; those that kernels after Linux 4.9 have added may be
        /// missing.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the kernel's names")]
        pub struct TcpInfo {
            $(pub $name: $type,)+
            $(pub $later: Option<$later_type>,)+
        }

        impl TcpInfo {
            /// Decodes what the kernel has filled in; `None` if that is less than [`LEAST`] bytes.
            #[inline]
            pub fn decode(bytes: &[u8]) -> Option<TcpInfo> {
                if bytes.len() < LEAST {
                    return None;
                }
                Some(TcpInfo {
                    $($name: <$type>::read(bytes, $at)?,)+
                    $($later: <$later_type>::read(bytes, $later_at),)+
                })
            }
        }
    };
}

tcp_info! {
    always {
        state: u8 = 0,
        ca_state: u8 = 1,
        retransmits: u8 = 2,
        backoff: u8 = 4,
        options: u8 = 5,
        flags: u8 = 7,
        rto: u32 = 8,
        snd_mss: u32 = 16,
        rcv_mss: u32 = 20,
        unacked: u32 = 24,
        sacked: u32 = 28,
        lost: u32 = 32,
        retrans: u32 = 36,
        last_data_sent_ms: u32 = 44,
        last_data_recv_ms: u32 = 52,
        last_ack_recv_ms: u32 = 56,
        pmtu: u32 = 60,
        rcv_ssthresh: u32 = 64,
        rtt: u32 = 68,
        rttvar: u32 = 72,
        snd_ssthresh: u32 = 76,
        snd_cwnd: u32 = 80,
        advmss: u32 = 84,
        reordering: u32 = 88,
        rcv_rtt: u32 = 92,
        rcv_space: u32 = 96,
        total_retrans: u32 = 100,
        pacing_rate: u64 = 104,
        bytes_acked: u64 = 120,
        bytes_received: u64 = 128,
        segs_out: u32 = 136,
        segs_in: u32 = 140,
        notsent_bytes: u32 = 144,
        min_rtt: u32 = 148,
        data_segs_in: u32 = 152,
        data_segs_out: u32 = 156,
        delivery_rate: u64 = 160,
    }
    later {
        busy_time: u64 = 168,
        rwnd_limited: u64 = 176,
        sndbuf_limited: u64 = 184,
        delivered: u32 = 192,
        delivered_ce: u32 = 196,
        bytes_sent: u64 = 200,
        bytes_retrans: u64 = 208,
        dsack_dups: u32 = 216,
        reord_seen: u32 = 220,
        rcv_ooopack: u32 = 224,
        snd_wnd: u32 = 228,
        rcv_wnd: u32 = 232,
        rehash: u32 = 236,
        total_rto: u16 = 240,
        total_rto_recoveries: u16 = 242,
        total_rto_time_ms: u32 = 244,
    }
}

impl TcpInfo {
    /// Segments in flight, as `tcp_packets_in_flight` of the kernel counts them.
    pub fn in_flight(&self) -> u32 {
        self.unacked.saturating_add(self.retrans).saturating_sub(self.sacked.saturating_add(self.lost))
    }

    /// Whether the latest measure of the delivery rate was taken while the application limited the flow.
    pub fn delivery_rate_app_limited(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Slow-start threshold in segments; `None` while infinite.
    pub fn ssthresh(&self) -> Option<u32> {
        (self.snd_ssthresh < INFINITE_SSTHRESH).then_some(self.snd_ssthresh)
    }

    /// Smallest recent round-trip time in microseconds; `None` before the first sample.
    pub fn min_rtt(&self) -> Option<u32> {
        (self.min_rtt != 0 && self.min_rtt != u32::MAX).then_some(self.min_rtt)
    }

    /// Pacing rate in bytes per second; `None` if the kernel has none.
    pub fn pacing_rate(&self) -> Option<u64> {
        (self.pacing_rate != 0 && self.pacing_rate != u64::MAX).then_some(self.pacing_rate)
    }
}

/// What BBR knows of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BbrInfo {
    /// Bandwidth estimate in bytes per second.
    pub bandwidth: u64,
    /// Its smallest round-trip time in microseconds; `None` before the first sample.
    pub min_rtt: Option<u32>,
    /// Gain of the pacing rate.
    pub pacing_gain: f64,
    /// Gain of the congestion window.
    pub cwnd_gain: f64,
}

impl BbrInfo {
    /// Decodes what the kernel has filled in; `None` if that is too short. The answer of another congestion control is not told
    /// apart: ask for its name first.
    pub fn decode(bytes: &[u8]) -> Option<BbrInfo> {
        let word = |at| u32::read(bytes, at);
        let gain = |at| word(at).map(|gain| f64::from(gain) / 256.0);
        Some(BbrInfo {
            bandwidth: u64::from(word(0)?) | u64::from(word(4)?) << 32,
            min_rtt: word(8).filter(|&rtt| rtt != u32::MAX),
            pacing_gain: gain(12)?,
            cwnd_gain: gain(16)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that are all different in 32-bit words: each word has its offset in it.
    fn bytes() -> [u8; MOST] {
        let mut bytes = [0; MOST];
        for (word, at) in bytes.chunks_exact_mut(4).zip((0_u32..).step_by(4)) {
            word.copy_from_slice(&at.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn fields_are_at_the_offsets_of_the_kernels_header() {
        let info = TcpInfo::decode(&bytes()).expect("it is whole");
        // Offsets as `pahole` prints them for 6.18.
        assert_eq!((info.rto, info.unacked, info.sacked, info.lost, info.retrans), (8, 24, 28, 32, 36));
        assert_eq!(
            (info.rtt, info.rttvar, info.snd_ssthresh, info.snd_cwnd, info.total_retrans),
            (68, 72, 76, 80, 100)
        );
        assert_eq!(info.bytes_acked, 120 | 124 << 32);
        assert_eq!((info.notsent_bytes, info.min_rtt, info.data_segs_out), (144, 148, 156));
        assert_eq!(info.busy_time, Some(168 | 172 << 32));
        assert_eq!(info.sndbuf_limited, Some(184 | 188 << 32));
        assert_eq!((info.delivered, info.dsack_dups, info.rcv_ooopack), (Some(192), Some(216), Some(224)));
        assert_eq!((info.snd_wnd, info.rcv_wnd, info.rehash), (Some(228), Some(232), Some(236)));
        assert_eq!((info.total_rto, info.total_rto_recoveries), (Some(240), Some(0)));
        assert_eq!(info.total_rto_time_ms, Some(244));
    }

    #[test]
    fn what_an_older_kernel_does_not_know_is_missing() {
        let bytes = bytes();
        assert_eq!(TcpInfo::decode(&bytes[..LEAST - 1]), None);
        let of = |length: usize| TcpInfo::decode(&bytes[..length]).expect("it is long enough");
        // Linux 4.9, 5.4 (5.10 has the same), 6.1.
        assert_eq!((of(168).busy_time, of(168).delivery_rate), (None, 160 | 164 << 32));
        assert_eq!((of(232).snd_wnd, of(232).rcv_wnd), (Some(228), None));
        assert_eq!((of(240).rehash, of(240).total_rto), (Some(236), None));
        // A field that is cut is missing.
        assert_eq!((of(171).busy_time, of(175).busy_time, of(176).busy_time.is_some()), (None, None, true));
    }

    #[test]
    fn values_that_mean_nothing_are_missing() {
        let mut info = TcpInfo { snd_ssthresh: INFINITE_SSTHRESH, min_rtt: u32::MAX, ..TcpInfo::default() };
        assert_eq!((info.ssthresh(), info.min_rtt(), info.pacing_rate()), (None, None, None));
        info = TcpInfo { snd_ssthresh: 10, min_rtt: 7, pacing_rate: u64::MAX, ..info };
        assert_eq!((info.ssthresh(), info.min_rtt(), info.pacing_rate()), (Some(10), Some(7), None));
        info.min_rtt = 0;
        assert_eq!(info.min_rtt(), None);
        let limited = |flags| TcpInfo { flags, ..TcpInfo::default() }.delivery_rate_app_limited();
        assert_eq!([0, 1, 2, 3, 0xfe].map(limited), [false, true, false, true, false]);
        let info = TcpInfo { unacked: 10, sacked: 3, lost: 2, retrans: 1, ..info };
        assert_eq!(info.in_flight(), 6);
        let hostile = TcpInfo { unacked: u32::MAX, retrans: u32::MAX, lost: u32::MAX, sacked: u32::MAX, ..info };
        assert_eq!(hostile.in_flight(), 0);
    }

    #[test]
    fn bbr_is_decoded_with_gains_in_256ths() {
        let words = [1_250_000_u32, 1, 40_000, 739, 512];
        let bytes: [u8; 20] = core::array::from_fn(|i| words[i / 4].to_le_bytes()[i % 4]);
        let info = BbrInfo::decode(&bytes).expect("it is whole");
        assert_eq!((info.bandwidth, info.min_rtt), (1_250_000 | 1 << 32, Some(40_000)));
        assert_eq!((info.pacing_gain, info.cwnd_gain), (739.0 / 256.0, 2.0));
        assert_eq!(BbrInfo::decode(&bytes[..19]), None);
        let unknown = [&bytes[..8], &[0xff; 4], &bytes[12..]].concat();
        assert_eq!(BbrInfo::decode(&unknown).map(|info| info.min_rtt), Some(None));
    }
}
