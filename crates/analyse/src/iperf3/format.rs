//! What iperf3 writes.

use serde::Deserialize;

/// A whole test, or with `--json-stream` a part of one.
#[derive(Deserialize)]
pub(super) struct Value {
    pub(super) start: Option<Start>,
    #[serde(default)]
    pub(super) intervals: Vec<Interval>,
    pub(super) end: Option<End>,
    pub(super) error: Option<String>,
    pub(super) event: Option<String>,
    pub(super) data: Option<serde_json::Value>,
}

/// A test.
#[derive(Default)]
pub(super) struct Test {
    pub(super) start: Start,
    pub(super) intervals: Vec<Interval>,
    pub(super) end: End,
    pub(super) error: Option<String>,
    /// Whether it came in parts.
    pub(super) is_streamed: bool,
}

#[derive(Default, Deserialize)]
pub(super) struct Start {
    #[serde(default)]
    pub(super) connected: Vec<Connected>,
    #[serde(default)]
    pub(super) test_start: TestStart,
    #[serde(default)]
    pub(super) timestamp: Timestamp,
    pub(super) cookie: Option<String>,
    /// A server has it.
    pub(super) accepted_connection: Option<serde::de::IgnoredAny>,
}

#[derive(Default, Deserialize)]
pub(super) struct Timestamp {
    pub(super) timesecs: Option<f64>,
    /// Since 3.20.
    pub(super) timemillisecs: Option<f64>,
}

impl Timestamp {
    /// When the test began, in seconds since 1970, if that is known to the millisecond.
    pub(super) fn exact_s(&self) -> Option<f64> {
        let exact_s = self.timemillisecs? / 1e3;
        let is_same = self.timesecs.is_none_or(|seconds| (0.0..1.0).contains(&(exact_s - seconds)));
        is_same.then_some(exact_s)
    }
}

#[derive(Deserialize)]
pub(super) struct Connected {
    pub(super) socket: i64,
    pub(super) local_host: String,
    pub(super) local_port: u16,
    pub(super) remote_host: String,
    pub(super) remote_port: u16,
}

#[derive(Default, Deserialize)]
pub(super) struct TestStart {
    #[serde(default)]
    pub(super) protocol: String,
    #[serde(default)]
    pub(super) reverse: u8,
    /// Seconds.
    #[serde(default)]
    pub(super) omit: f64,
}

#[derive(Deserialize)]
pub(super) struct Interval {
    #[serde(default)]
    pub(super) streams: Vec<Stream>,
}

/// A stream in an interval.
#[derive(Deserialize)]
pub(super) struct Stream {
    pub(super) socket: i64,
    pub(super) start: f64,
    pub(super) end: f64,
    pub(super) seconds: Option<f64>,
    pub(super) bytes: u64,
    pub(super) retransmits: Option<i64>,
    pub(super) snd_cwnd: Option<u64>,
    /// In microseconds.
    pub(super) rtt: Option<f64>,
    /// Of a receiver of UDP.
    pub(super) lost_packets: Option<i64>,
    #[serde(default)]
    pub(super) omitted: bool,
    pub(super) sender: Option<bool>,
}

#[derive(Default, Deserialize)]
pub(super) struct End {
    #[serde(default)]
    pub(super) streams: Vec<EndStream>,
    /// What was received in the direction of the test, and in the other one of a test in both.
    pub(super) sum_received: Option<Total>,
    pub(super) sum_received_bidir_reverse: Option<Total>,
    pub(super) sender_tcp_congestion: Option<String>,
    pub(super) receiver_tcp_congestion: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct EndStream {
    pub(super) sender: Option<Total>,
    pub(super) receiver: Option<Total>,
    /// Bytes that were sent, and the receiver's losses.
    pub(super) udp: Option<Total>,
}

#[derive(Deserialize)]
pub(super) struct Total {
    #[serde(default)]
    pub(super) socket: i64,
    pub(super) start: Option<f64>,
    pub(super) end: Option<f64>,
    pub(super) seconds: Option<f64>,
    pub(super) bytes: u64,
    pub(super) retransmits: Option<i64>,
    pub(super) lost_packets: Option<i64>,
    pub(super) packets: Option<i64>,
    /// Of a receiver of UDP.
    pub(super) jitter_ms: Option<f64>,
    /// In microseconds.
    pub(super) min_rtt: Option<f64>,
    pub(super) mean_rtt: Option<f64>,
    pub(super) max_rtt: Option<f64>,
}

impl Total {
    /// For how long it was counted: iperf3 divides by this, too.
    pub(super) fn length_s(&self) -> Option<f64> {
        let between = self.start.zip(self.end).map(|(start, end)| end - start);
        let is_length = |seconds: &f64| seconds.is_finite() && *seconds > 0.0 && *seconds < 1e9;
        between.filter(is_length).or(self.seconds.filter(is_length))
    }
}
