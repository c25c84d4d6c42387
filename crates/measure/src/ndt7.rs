//! ndt7, M-Lab's test of one stream over WebSocket.
//!
//! Read first: `spec/ndt7-protocol.md` in the repository m-lab/ndt-server. The sender of data sends binary messages, both sides send
//! text messages with their measurements. The test ends with a close frame of whoever has finished, after about ten seconds.

use serde::{Deserialize, Serialize};
use units::Span;

/// The path of a download.
pub const DOWNLOAD: &str = "/ndt/v7/download";
/// The path of an upload.
pub const UPLOAD: &str = "/ndt/v7/upload";
/// The subprotocol, which both sides must name.
pub const SUBPROTOCOL: &str = "net.measurementlab.ndt.v7";
/// How long the sender sends.
pub const DURATION: Span = Span::from_secs(10);
/// A test that lasts longer is ended.
pub const LONGEST: Span = Span::from_secs(15);
/// The sizes of messages.
pub const SIZES: Sizes = Sizes { first: 1 << 13, largest: 1 << 24 };
/// The largest message that a client may send, in bytes.
pub const LARGEST_MESSAGE: u64 = 1 << 24;
/// The mean interval between measurements. Intervals are exponential, within [`SHORTEST_INTERVAL`] and [`LONGEST_INTERVAL`].
pub const MEAN_INTERVAL: Span = Span::from_millis(250);
/// The shortest interval between measurements.
pub const SHORTEST_INTERVAL: Span = Span::from_millis(25);
/// The longest interval between measurements.
pub const LONGEST_INTERVAL: Span = Span::from_millis(625);
/// A message grows when it is at most this part of what was sent.
const FRACTION: u64 = 16;

/// The sizes of binary messages: from the first one they double, as long as one is at most 1/16 of what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The first message, in bytes.
    pub first: usize,
    /// The largest message, in bytes.
    pub largest: usize,
}

impl Sizes {
    /// Returns the size of the message after one of `size` bytes, when `sent` bytes have been sent.
    pub fn next(self, size: usize, sent: u64) -> usize {
        if size < self.largest && size as u64 <= sent / FRACTION { size * 2 } else { size }
    }
}

/// Returns an interval between measurements from a uniform random number in [0, 1).
pub fn interval(uniform: f64) -> Span {
    let exponential = -libm::log(1.0 - uniform.clamp(0.0, 1.0 - f64::EPSILON));
    Span::from_secs_f64(MEAN_INTERVAL.as_secs_f64() * exponential).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL)
}

/// A measurement, the content of a text message. A field that a side does not know is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Measurement {
    /// What the application counted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub app_info: Option<AppInfo>,
    /// The connection, as the server sees it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub connection_info: Option<ConnectionInfo>,
    /// Which side measured: `client` or `server`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub origin: Option<String>,
    /// Which test it belongs to: `download` or `upload`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub test: Option<String>,
    /// What the kernel counted.
    #[serde(rename = "TCPInfo", skip_serializing_if = "Option::is_none", default)]
    pub tcp_info: Option<TcpInfo>,
}

/// What the application counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AppInfo {
    /// Time since the start, in microseconds.
    pub elapsed_time: i64,
    /// Bytes of payload sent or received.
    pub num_bytes: i64,
}

/// The connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionInfo {
    /// The address and port of the client.
    #[serde(rename = "Client")]
    pub client: String,
    /// The address and port of the server.
    #[serde(rename = "Server")]
    pub server: String,
    /// An identifier of the connection.
    #[serde(rename = "UUID")]
    pub uuid: String,
}

/// A part of the kernel's `TCP_INFO`. Times are in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct TcpInfo {
    /// Time during which there was data to send.
    pub busy_time: i64,
    /// Bytes acknowledged by the other side.
    pub bytes_acked: i64,
    /// Bytes received.
    pub bytes_received: i64,
    /// Bytes sent, retransmissions included.
    pub bytes_sent: i64,
    /// Bytes retransmitted.
    pub bytes_retrans: i64,
    /// Time since the start.
    pub elapsed_time: i64,
    /// The least round-trip time.
    #[serde(rename = "MinRTT")]
    pub min_rtt: i64,
    /// The smoothed round-trip time.
    #[serde(rename = "RTT")]
    pub rtt: i64,
    /// The variation of the round-trip time.
    #[serde(rename = "RTTVar")]
    pub rtt_var: i64,
    /// Time limited by the receive window.
    #[serde(rename = "RWndLimited")]
    pub rwnd_limited: i64,
    /// Time limited by the send buffer.
    pub snd_buf_limited: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_double_when_one_is_a_sixteenth_of_what_was_sent() {
        let (mut size, mut sent, mut growths) = (SIZES.first, 0, Vec::new());
        while size < SIZES.largest {
            sent += size as u64;
            let next = SIZES.next(size, sent);
            if next > size {
                growths.push((size, sent));
            }
            size = next;
        }
        assert_eq!(growths[0], (1 << 13, 16 << 13));
        assert!(growths.iter().all(|&(size, sent)| sent >= 16 * size as u64 && sent < 17 * size as u64), "{growths:?}");
        assert_eq!(SIZES.next(1 << 24, u64::MAX), 1 << 24);
    }

    #[test]
    fn intervals_are_within_their_bounds() {
        assert_eq!(interval(0.0), SHORTEST_INTERVAL);
        assert_eq!(interval(1.0), LONGEST_INTERVAL);
        // The median of an exponential distribution is ln 2 of its mean.
        assert_eq!(interval(0.5).as_millis(), 173);
    }

    #[test]
    fn a_measurement_has_the_names_of_the_specification() {
        let measurement = Measurement {
            app_info: Some(AppInfo { elapsed_time: 1_234, num_bytes: 5_678 }),
            tcp_info: Some(TcpInfo { min_rtt: 9, ..TcpInfo::default() }),
            ..Measurement::default()
        };
        let json = serde_json::to_value(&measurement).expect("it has a form in JSON");
        assert_eq!(json["AppInfo"], serde_json::json!({ "ElapsedTime": 1_234, "NumBytes": 5_678 }));
        for name in [
            "BusyTime",
            "BytesAcked",
            "BytesReceived",
            "BytesSent",
            "BytesRetrans",
            "ElapsedTime",
            "MinRTT",
            "RTT",
            "RTTVar",
            "RWndLimited",
            "SndBufLimited",
        ] {
            assert!(json["TCPInfo"][name].is_i64(), "{name}: {json}");
        }
        assert_eq!(json.as_object().map(serde_json::Map::len), Some(2));
        assert_eq!(serde_json::from_value::<Measurement>(json).expect("it is one"), measurement);
    }

    #[test]
    fn fields_that_are_not_known_are_ignored() {
        let text = r#"{"AppInfo":{"ElapsedTime":1,"NumBytes":2},"BBRInfo":{"BW":3},"TCPInfo":{"State":1,"RTT":4}}"#;
        let measurement: Measurement = serde_json::from_str(text).expect("it is one");
        assert_eq!(measurement.tcp_info.map(|info| info.rtt), Some(4));
    }
}
