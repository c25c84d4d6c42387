//! Options of TCP, as scenario files write them.

use crate::{Config, Kernel, Pacing, SendBuffer};
use units::check::Check;
use units::{Bytes, Span, parameters};

/// The largest window that window scaling can announce (RFC 7323, 2.3).
const MAX_BUFFER: Bytes = Bytes::new(1 << 30);

parameters! {
    /// TCP options. The defaults are those of Linux 6.18.
    #[schemars(rename = "Tcp")]
    pub struct Parameters {
        /// The version of Linux to follow where versions differ: in the share of the receive buffer that is window (half in 6.1,
        /// measured since 6.6), in how that buffer grows, and in the memory that packets take.
        pub linux: Kernel = Kernel::V6_18;
        /// Maximum payload of a segment in bytes; 1448 corresponds to an MTU of 1500 with timestamps.
        pub mss: u32 = 1448, in 64..=65_483;
        /// Initial congestion window in segments (RFC 6928).
        pub initial_window: u32 = 10, in 1..=10_000;
        /// Negotiate ECN (RFC 3168).
        pub ecn: bool = false;
        /// Pace segments even if the congestion control does not request it (`true`), or never, as Linux before 4.13 without
        /// the queue discipline `fq` (`false`). Default: as the congestion control requests.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub pacing: Option<bool> = None;
        /// Start with the slow-start threshold that an earlier connection between the same two hosts has left, with whichever
        /// congestion control, as Linux before 5.6 (`tcp_no_ssthresh_metrics_save = 0`).
        pub ssthresh_cache: bool = false;
        /// Limit the data in the queue of the host, and reduce the window without a loss when that queue is full, as Linux does
        /// (TCP small queues). Applies to UEs, whose hosts have a queue (`host_queue`), and to links whose queue is in the host
        /// (`queue_in_host`).
        pub small_queues: bool = true;
        /// Send packets of up to one millisecond's worth of segments, as Linux does with segmentation offload (TSO, GSO): parts
        /// of a packet wait until more can be sent, and the last segment of each has PSH, so that it is acknowledged at once.
        pub tso: bool = true;
        /// Delay acknowledgements (with Linux's quick-acknowledgement phase); otherwise every segment is acknowledged.
        pub delayed_ack: bool = true;
        /// Reduce the congestion window after an idle period (RFC 2861).
        pub slow_start_after_idle: bool = true;
        /// Minimum retransmission timeout.
        pub min_rto: Span = Span::from_millis(200), in Span::from_millis(1)..=Span::from_secs(120);
        /// Maximum memory of the sender's socket for data, sent or not, until it is acknowledged (Linux `tcp_wmem`). The buffer
        /// begins with room for two windows (BBR: three) and grows with the congestion window; each packet takes more memory
        /// than its data.
        pub send_buffer: Bytes = Bytes::new(4 << 20);
        /// Let the send buffer grow up to `send_buffer`. Otherwise it holds `send_buffer` bytes of data from the start, as in
        /// ns-3.
        pub send_autotuning: bool = true;
        /// Maximum memory of the receiver's socket (Linux `tcp_rmem` grows up to it). 63 % of it are window for segments of 1448
        /// bytes, half with `linux = "6.1"`, whose default is `6 MiB`.
        pub receive_buffer: Bytes = Bytes::new(32 << 20);
        /// Bytes that packets leave for headers (Linux `MAX_TCP_HEADER`, which depends on the kernel's build): 320 with drivers
        /// for wireless networks and tunnels, as in distributions, 192 without. They count in the send buffer.
        pub max_header: u16 = 320, in 128..=1024;
        /// Upper bound of the advertised window (Linux `TCP_WINDOW_CLAMP`).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub window_clamp: Option<Bytes> = None;
    } with check_buffers()
}

impl Parameters {
    /// [`Parameters::receive_buffer`] in Linux 6.1 (`tcp_rmem[2]`, which `tcp_init` bounds by 6 MiB).
    pub const RECEIVE_BUFFER_6_1: &str = "6 MiB";

    /// Checks that the buffers hold a segment.
    fn check_buffers(&self, c: &mut Check) {
        let segment = Bytes::new(u64::from(self.mss.min(65_483)));
        c.range("send_buffer", self.send_buffer, segment..=MAX_BUFFER);
        c.range("receive_buffer", self.receive_buffer, segment..=MAX_BUFFER);
        c.range("window_clamp", self.window_clamp.unwrap_or(segment), segment..=MAX_BUFFER);
    }
}

impl From<&Parameters> for Config {
    fn from(of: &Parameters) -> Config {
        let receive_buffer = of.receive_buffer.get().min(u32::MAX.into()) as u32;
        let default = Config::default();
        Config {
            kernel: of.linux,
            // The parameter is the payload of a full segment, the option counts the timestamps in.
            mss: of.mss as u16 + 12,
            ecn: of.ecn,
            receive_buffer: default.receive_buffer.min(receive_buffer),
            receive_buffer_max: receive_buffer,
            window_clamp: of.window_clamp.map(|c| c.get().min(u32::MAX.into()) as u32),
            delayed_ack: of.delayed_ack,
            slow_start_after_idle: of.slow_start_after_idle,
            send_buffer: if of.send_autotuning {
                SendBuffer::Growing(of.send_buffer.get())
            } else {
                SendBuffer::Fixed(of.send_buffer.get())
            },
            max_header: of.max_header,
            pacing: match of.pacing {
                None => Pacing::AsAsked,
                Some(true) => Pacing::Always,
                Some(false) => Pacing::Never,
            },
            tso: of.tso,
            rto_min: of.min_rto,
            ..default
        }
    }
}
