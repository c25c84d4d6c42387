//! What can be chosen for a connection; the defaults are those of Linux 6.18.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;
use wire::report::Key;

/// The longest retransmission time-out and probe interval (Linux `TCP_RTO_MAX`).
pub(crate) const RTO_MAX: Span = Span::from_secs(120);
/// The retransmission time-out without a sample (RFC 6298 2.1; Linux `TCP_TIMEOUT_INIT`).
pub(crate) const RTO_INITIAL: Span = Span::from_secs(1);
/// The same after a handshake that gave no sample (RFC 6298 5.7; Linux `TCP_TIMEOUT_FALLBACK`).
pub(crate) const RTO_FALLBACK: Span = Span::from_secs(3);
/// What Linux adds to timers that must not fire too early (`TCP_TIMEOUT_MIN_US`).
pub(crate) const TIMEOUT_MIN: Span = Span::from_millis(2);

/// When segments leave paced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// If the controller asks for it, at its rate.
    #[default]
    AsAsked,
    /// Also if it does not, at the stack's rate (as with the `fq` queue).
    Always,
    /// Never (as before Linux 4.13 without the `fq` queue).
    Never,
}

/// A version of Linux whose TCP to follow.
// In the state of their latest stable releases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TcpLinux")]
pub enum Kernel {
    /// Linux 6.1.
    // Half of the receive buffer is window.
    #[serde(rename = "6.1")]
    V6_1,
    /// Linux 6.18.
    // The share of the receive buffer that is window is measured.
    #[default]
    #[serde(rename = "6.18")]
    V6_18,
}

/// Memory for what is written and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendBuffer {
    /// Holds so many bytes of payload.
    Fixed(u64),
    /// Counts the memory of packets, begins with room for two windows and grows with the congestion window up to so many
    /// bytes (`tcp_wmem[2]`, `tcp_sndbuf_expand`).
    Growing(u64),
}

/// A connection's parameters.
#[derive(Clone, Debug)]
pub struct Config {
    /// The kernel to follow where versions differ.
    pub kernel: Kernel,
    /// The maximum segment size to announce, in bytes: the MTU less 40 bytes of IPv4 and TCP header. Timestamps take 12
    /// bytes of it in each data segment.
    pub mss: u16,
    /// Whether timestamps (RFC 7323) are offered and accepted.
    pub timestamps: bool,
    /// Whether selective acknowledgements (RFC 2018) are offered and accepted. Without them there is no RACK-TLP either.
    pub sack: bool,
    /// Whether ECN (RFC 3168) is offered and accepted.
    pub ecn: bool,
    /// Receive buffer at the start, in bytes of memory; a share of it is window (`tcp_rmem[1]`).
    pub receive_buffer: u32,
    /// The most that autotuning makes of it (`tcp_rmem[2]`); equal to `receive_buffer` there is no autotuning.
    pub receive_buffer_max: u32,
    /// The largest window to announce, in bytes (`TCP_WINDOW_CLAMP`); it can be changed later.
    pub window_clamp: Option<u32>,
    /// Whether acknowledgements of data in order may wait; if not, each segment is acknowledged at once.
    pub delayed_ack: bool,
    /// Whether a window that is not used shrinks (`tcp_slow_start_after_idle`).
    pub slow_start_after_idle: bool,
    /// Room for what is written and not acknowledged.
    pub send_buffer: SendBuffer,
    /// Bytes that packets leave for headers (`MAX_TCP_HEADER`): 320 in kernels built for wireless networks and tunnels, as
    /// distributions build them, 192 without.
    pub max_header: u16,
    /// Whether the application reads all data as it arrives.
    pub auto_read: bool,
    /// When segments leave paced.
    pub pacing: Pacing,
    /// Whether segments leave in packets that the interface, or the stack in front of it, cuts (TSO, GSO): parts of bursts
    /// wait for the rest, and the last segment of a packet has PSH.
    pub tso: bool,
    /// The shortest retransmission time-out (`tcp_rto_min`).
    pub rto_min: Span,
    /// Retransmissions of a SYN before giving up (`tcp_syn_retries`).
    pub syn_retries: u8,
    /// Retransmissions of a SYN-ACK before giving up (`tcp_synack_retries`).
    pub synack_retries: u8,
    /// Back-offs' worth of time without an acknowledgement before giving up (`tcp_retries2`).
    pub retries: u8,
    /// How long a closed connection answers what still arrives (`TCP_TIMEWAIT_LEN`).
    pub time_wait: Span,
    /// The key of the PEPs whose reports are taken. Without one, reports without a tag are, whoever made them.
    pub report_key: Option<Key>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            kernel: Kernel::default(),
            mss: 1460,
            timestamps: true,
            sack: true,
            ecn: false,
            receive_buffer: 131_072,
            receive_buffer_max: 32 << 20,
            window_clamp: None,
            delayed_ack: true,
            slow_start_after_idle: true,
            send_buffer: SendBuffer::Growing(4 << 20),
            max_header: 320,
            auto_read: true,
            pacing: Pacing::default(),
            tso: true,
            rto_min: Span::from_millis(200),
            syn_retries: 6,
            synack_retries: 5,
            retries: 15,
            time_wait: Span::from_secs(60),
            report_key: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_linux_6_18() {
        let config = Config::default();
        assert_eq!((config.kernel, config.mss, config.max_header), (Kernel::V6_18, 1460, 320));
        assert!(config.timestamps && config.sack && config.delayed_ack && config.tso && config.auto_read);
        // `tcp_ecn` = 2: not of its own accord.
        assert!(!config.ecn && config.slow_start_after_idle);
        // `tcp_rmem` and `tcp_wmem`.
        assert_eq!((config.receive_buffer, config.receive_buffer_max), (131_072, 33_554_432));
        assert_eq!((config.send_buffer, config.window_clamp), (SendBuffer::Growing(4_194_304), None));
        assert_eq!((config.pacing, config.report_key), (Pacing::AsAsked, None));
        // `tcp_syn_retries`, `tcp_synack_retries`, `tcp_retries2`; `TCP_RTO_MIN`, `TCP_TIMEWAIT_LEN`.
        assert_eq!((config.syn_retries, config.synack_retries, config.retries), (6, 5, 15));
        assert_eq!((config.rto_min.as_millis(), config.time_wait.as_millis()), (200, 60_000));
        let millis = [RTO_MAX, RTO_INITIAL, RTO_FALLBACK, TIMEOUT_MIN].map(Span::as_millis);
        assert_eq!(millis, [120_000, 1_000, 3_000, 2]);
    }
}
