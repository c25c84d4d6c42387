//! Rows that only measurements of real networks and captures have.

use crate::table::{column_of, item_of, table};

table! {
    /// A round-trip time probe of a measurement.
    pub struct LatencyRow<'a> in Latencies "latencies" {
        /// The load, from 0: loads run one after the other.
        "" point: u32,
        /// 0.
        "" run: u32,
        /// When it was sent.
        "s" t_s: f64,
        /// Its kind: `echo` (ICMP), `hop` (a datagram with a small hop limit), `handshake` (of TCP), `request` (an answer of the
        /// server's program on a connection without load).
        "" probe: str,
        /// The hop limit of `hop`; missing for other kinds.
        "" hop: opt_u64,
        /// The part of the measurement: `before`, `during` or `after` the load.
        "" phase: str,
        /// Time until the answer came; missing if none came in time.
        "ms" rtt_ms: opt_f64,
    }
}

table! {
    /// Where data of a real flow's sender was, for some of its writes. What the kernel has not told is missing.
    pub struct PassageRow<'a> in Passages "passages" {
        /// The load, from 0.
        "" point: u32,
        /// 0.
        "" run: u32,
        /// The flow's name.
        "" flow: str,
        /// The number of the flow among those with its name, from 0.
        "" conn: u32,
        /// When it was written to the socket.
        "s" t_s: f64,
        /// Time from then until the host's queue discipline had its last byte: in the send buffer.
        "ms" buffer_ms: opt_f64,
        /// Time from then until the driver had it: in the queue of the host.
        "ms" host_ms: opt_f64,
        /// Time from then until it was acknowledged: in the modem and the network, there and back.
        "ms" path_ms: opt_f64,
    }
}

table! {
    /// The kernel's state of a real flow at one end (`TCP_INFO`), as raw bytes and in part decoded. What counts up (retransmissions, bytes,
    /// times) is as the kernel tells it: of the whole connection, with handshake, tokens and warm-up. `flows` counts from the transfer on.
    pub struct TcpInfoRow<'a> in TcpInfos "tcp_info" {
        /// The load, from 0.
        "" point: u32,
        /// 0.
        "" run: u32,
        /// The flow's name.
        "" flow: str,
        /// The number of the flow among those with its name, from 0.
        "" conn: u32,
        /// The moment.
        "s" t_s: f64,
        /// The bytes that the kernel filled in, `struct tcp_info` of linux/tcp.h in the machine's byte order.
        "" raw: bytes,
        /// Smoothed round-trip time.
        "us" rtt_us: u64,
        /// Its mean deviation.
        "us" rttvar_us: u64,
        /// Smallest recent round-trip time; missing before the first sample.
        "us" min_rtt_us: opt_u64,
        /// Retransmission timeout.
        "us" rto_us: u64,
        /// Congestion window in segments.
        "" cwnd: u32,
        /// Payload of a full segment.
        "B" mss_bytes: u32,
        /// Segments sent and not acknowledged.
        "" unacked: u32,
        /// Of these, selectively acknowledged.
        "" sacked: u32,
        /// Of these, considered lost.
        "" lost: u32,
        /// Segments retransmitted and not acknowledged.
        "" retrans: u32,
        /// Retransmissions since the connection began.
        "" total_retrans: u32,
        /// Bytes acknowledged since the connection began.
        "B" bytes_acked: u64,
        /// Bytes received since the connection began.
        "B" bytes_received: u64,
        /// Bytes in the send buffer that have not been sent yet.
        "B" notsent_bytes: u32,
        /// Latest measure of the delivery rate.
        "Mbit/s" delivery_mbps: f64,
        /// Time with data to send or unacknowledged data since the connection began; missing before Linux 4.10.
        "us" busy_us: opt_u64,
        /// Of this, limited by the receive window.
        "us" rwnd_limited_us: opt_u64,
        /// Of this, limited by the send buffer.
        "us" sndbuf_limited_us: opt_u64,
        /// BBR's bandwidth estimate; missing with another congestion control.
        "Mbit/s" bbr_bw_mbps: opt_f64,
        /// BBR's round-trip time.
        "us" bbr_min_rtt_us: opt_u64,
        /// BBR's gain of the pacing rate.
        "" bbr_pacing_gain: opt_f64,
        /// BBR's gain of the congestion window.
        "" bbr_cwnd_gain: opt_f64,
    }
}

table! {
    /// A serving cell of a real modem at a sampling moment, as the modem tells it. What it does not tell is missing. With LTE and
    /// NR together (EN-DC), each has its row.
    pub struct ModemRow<'a> in Modems "modem" {
        /// The load, from 0.
        "" point: u32,
        /// 0.
        "" run: u32,
        /// When it was read.
        "s" t_s: f64,
        /// Source of the values: `modemmanager` or `monroe`.
        "" source: str,
        /// Upper bound on the age of the values at that moment; missing if there is none.
        "ms" lag_ms: opt_f64,
        /// The modem, by its network interface.
        "" modem: str,
        /// The radio access technology: `lte`, `nr`, `umts` or `gsm`; empty without service.
        "" technology: str,
        /// The identity of the cell within its operator's network, without the operator: 28 bits in LTE and UMTS, 36 in NR.
        "" cell: opt_u64,
        /// The physical cell identity.
        "" pci: opt_u64,
        /// The band, as a number of its technology.
        "" band: opt_u64,
        /// The downlink's frequency: the carrier's from ModemManager, the band's nominal one from MONROE.
        "MHz" frequency_mhz: opt_f64,
        /// Reference signal received power.
        "dBm" rsrp_dbm: opt_f64,
        /// Reference signal received quality.
        "dB" rsrq_db: opt_f64,
        /// Received signal strength indicator.
        "dBm" rssi_dbm: opt_f64,
        /// Signal to interference and noise ratio.
        "dB" sinr_db: opt_f64,
    }
}

table! {
    /// Where packets waited in a second of a measurement: how much longer than before the load. What could not be told apart is
    /// missing.
    pub struct WaitRow<'a> in Waits "waits" {
        /// The load, from 0.
        "" point: u32,
        /// 0.
        "" run: u32,
        /// When the second began.
        "s" t_s: f64,
        /// In the queue discipline of the host: the median of its writes.
        "ms" host_ms: opt_f64,
        /// In the modem and the radio access: up to the first router behind them. Missing unless it is longer than `error_ms`.
        "ms" modem_ms: opt_f64,
        /// Behind that router; likewise.
        "ms" network_ms: opt_f64,
        /// On the whole path, there and back. No part is longer.
        "ms" total_ms: opt_f64,
        /// By how much more the round trip to the server grew than that to the router, with its sign: the mean over pairs of probes
        /// that were sent together, in the five seconds around this one. Missing in results of earlier versions.
        "ms" behind_ms: opt_f64,
        /// Half the width of its 95 % confidence interval; if it is less than 0, longer by as much.
        "ms" error_ms: opt_f64,
        /// Where they waited longest, if that was for at least 10 ms: `host`, `modem` or `network`; empty if not, or if the probes do
        /// not tell.
        "" worst: str,
    }
}

table! {
    /// Responsiveness under a load of a measurement, as round trips a minute (RPM) of draft-ietf-ippm-responsiveness. A load
    /// without all that it is made of has no row.
    pub struct ResponsivenessRow<'a> in Responsiveness "responsiveness" {
        /// The load, from 0.
        "" point: u32,
        /// 0.
        "" run: u32,
        /// The directions of its flows: `download`, `upload` or `both`.
        "" direction: str,
        /// Round trips a minute: the mean of those on separate connections and of those on connections that carry load.
        "1/min" rpm: f64,
        /// Mean round trip on separate connections under load: of TCP handshakes, TLS handshakes if there are any, and requests
        /// with equal weight.
        "ms" foreign_ms: f64,
        /// Mean round trip on the connections that carry the load.
        "ms" loaded_ms: f64,
    }
}

table! {
    /// A flow of TCP as its packets tell, of a capture: what they say beside the columns of `flows`, by the definitions of
    /// the book's *Analysing captures*. Counts are of the whole capture. What packets of one direction cannot tell is missing
    /// if acknowledgements were not captured; so is what only the other rules define.
    pub struct TcpFlowRow<'a> in TcpFlows "tcp_flows" {
        /// Point: the file, or pair of files.
        "" point: u32,
        /// Always 0.
        "" run: u32,
        /// The flow's name, `tcp SENDER > RECEIVER`.
        "" flow: str,
        /// Number of earlier connections with this name.
        "" conn: u32,
        /// Whose definitions were used: `ranway` or `wireshark`.
        "" rules: str,
        /// Segments with data, retransmissions included; super-packets count as the segments that they are cut into.
        "" segments: u64,
        /// Their bytes of payload.
        "B" payload_bytes: u64,
        /// Segments with data that was sent before.
        "" retransmitted: u64,
        /// Their bytes of payload.
        "B" retransmitted_bytes: u64,
        /// Of the retransmissions, those after three selectively acknowledged segments or duplicate acknowledgements.
        "" fast: opt_u64,
        /// Retransmission timeouts, as inferred from silence.
        "" timeouts: opt_u64,
        /// Of the retransmissions, those of data that the receiver had.
        "" spurious: opt_u64,
        /// Segments that were overtaken.
        "" out_of_order: u64,
        /// Duplicate acknowledgements (RFC 5681).
        "" dup_acks: opt_u64,
        /// Acknowledgements with a D-SACK (RFC 2883).
        "" dsacks: opt_u64,
        /// Acknowledgements with a receive window of 0.
        "" zero_windows: opt_u64,
        /// Segments up to the edge of the receive window; missing if its scale is not known.
        "" window_full: opt_u64,
        /// Keep-alive probes.
        "" keep_alives: opt_u64,
        /// Zero-window probes.
        "" zero_window_probes: opt_u64,
        /// Segments before which others were not captured.
        "" gaps: u64,
        /// Acknowledgements of data that was not captured.
        "" acked_unseen: opt_u64,
        /// Captured packets that were several segments.
        "" super_packets: u64,
        /// Segments with data, SYN or FIN between its ends that its receiver would not accept, as far as is known: of an earlier
        /// connection between the same ports, or outside the window. No other counter has them. Missing in results of earlier
        /// versions.
        "" foreign: opt_u64,
        /// Maximum segment size in the sender's SYN; missing if that was not captured.
        "B" mss: opt_u64,
        /// Maximum segment size in the receiver's SYN.
        "B" peer_mss: opt_u64,
        /// Maximum segment size in the sender's SYN at the other end, with two captures; a different value reveals a
        /// middlebox.
        "B" far_mss: opt_u64,
        /// Window scale shift in the sender's SYN; missing if it offered none.
        "" window_scale: opt_u64,
        /// Window scale shift in the receiver's SYN.
        "" peer_window_scale: opt_u64,
        /// Options in the sender's SYN, as `mss wscale sack timestamps`; empty if it was not captured.
        "" options: str,
        /// The same at the other end, with two captures.
        "" far_options: str,
        /// From the client's SYN to the server's answer, from where the capture was made.
        "ms" handshake_server_ms: opt_f64,
        /// From there to the client's acknowledgement.
        "ms" handshake_client_ms: opt_f64,
        /// Median round-trip time by timestamps (RFC 7323), of retransmitted segments too.
        "ms" rtt_ts_p50_ms: opt_f64,
        /// 95th percentile of the same.
        "ms" rtt_ts_p95_ms: opt_f64,
        /// Smallest time from an acknowledgement to data that echoes its timestamp: the way from the capture to the sender
        /// and back.
        "ms" to_sender_min_ms: opt_f64,
        /// Smallest receive window that the receiver advertised; missing if its scale is not known.
        "B" window_min_bytes: opt_u64,
        /// Largest receive window that the receiver advertised.
        "B" window_max_bytes: opt_u64,
        /// Mean pipe over time: bytes in flight as RFC 6675 counts them. Missing if acknowledgements were not captured.
        "B" mean_pipe_bytes: opt_f64,
        /// Largest pipe; likewise.
        "B" max_pipe_bytes: opt_u64,
    }
}

table! {
    /// A flow of TCP at a sampling moment, as its packets tell: what there is beside the columns of `samples`.
    pub struct TcpSampleRow<'a> in TcpSamples "tcp_samples" {
        /// Point: the file, or pair of files.
        "" point: u32,
        /// Always 0.
        "" run: u32,
        /// The flow's name.
        "" flow: str,
        /// Number of earlier connections with this name.
        "" conn: u32,
        /// The moment, from the capture's first packet.
        "s" t_s: f64,
        /// Bytes sent and not cumulatively acknowledged; missing if acknowledgements were not captured.
        "B" in_flight_bytes: opt_u64,
        /// The pipe of RFC 6675: bytes sent, neither acknowledged in any way nor lost; likewise.
        "B" pipe_bytes: opt_u64,
        /// The receive window that the receiver advertised last; missing if its scale is not known.
        "B" window_bytes: opt_u64,
        /// Retransmissions since the previous sample.
        "" retransmitted: u64,
        /// Segments out of order since the previous sample.
        "" out_of_order: u64,
    }
}

table! {
    /// A segment, an acknowledgement or a SACK block, for a time–sequence plot. Of a long flow, neighbouring segments and
    /// acknowledgements are merged, so that the table stays small; retransmissions are kept as long as possible. Sequence
    /// numbers are relative to the first one and do not wrap.
    pub struct SegmentRow<'a> in Segments "segments" {
        /// Point: the file, or pair of files.
        "" point: u32,
        /// Always 0.
        "" run: u32,
        /// The flow's name.
        "" flow: str,
        /// Number of earlier connections with this name.
        "" conn: u32,
        /// When it passed, from the capture's first packet.
        "s" t_s: f64,
        /// What it is: `data`, `retransmission`, `out-of-order`, `ack`, `sack` or `dsack`.
        "" kind: str,
        /// The first sequence number; of an acknowledgement, the one that it expects.
        "" start: u64,
        /// One past the last sequence number; of an acknowledgement, the end of the receive window, or the same again if
        /// that is not known.
        "" end: u64,
    }
}

table! {
    /// The clock of the second of two captures beside the first one's, as estimated from packets in both.
    pub struct ClockRow<'a> in Clocks "clocks" {
        /// Point: the pair of files.
        "" point: u32,
        /// Always 0.
        "" run: u32,
        /// The file of the first capture.
        "" file: str,
        /// The file of the second capture.
        "" other: str,
        /// Packets that were found in both, of a sample of all.
        "" matched: u64,
        /// By how much the second clock was ahead in the middle of the capture.
        "ms" offset_ms: f64,
        /// Bound on the offset's error: half of the smallest round-trip time between the captures, reached if all of it
        /// was in one direction.
        "ms" offset_bound_ms: f64,
        /// How much faster the second clock runs.
        "ppm" drift_ppm: f64,
        /// Half of the difference between the drifts as estimated from the packets of each direction.
        "ppm" drift_bound_ppm: f64,
    }
}
