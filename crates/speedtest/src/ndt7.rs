//! ndt7, M-Lab's test of one stream over WebSocket.
//!
//! Read first: `spec/ndt7-protocol.md` in the repository m-lab/ndt-server. The sender of data sends binary messages, both sides send
//! text messages with their measurements. The test ends with a close frame of whoever has finished, after about ten seconds.

use std::fmt;

use serde::de::{self, Deserializer, Unexpected, Visitor};
use serde::{Deserialize, Serialize};
use units::Span;
use wire::tcp_info;

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
/// The sizes of messages that are sent. The protocol permits 16 MiB, but ndt7-client-go (0.10.1, `internal/params`) ends the test
/// without a word at more than 1 MiB, and M-Lab's server (0.25.0, `ndt7/spec`) sends no more.
pub const SIZES: Sizes = Sizes { first: 1 << 13, largest: 1 << 20 };
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
    /// What BBR knows, if it is the congestion control of the side that measured.
    #[serde(rename = "BBRInfo", skip_serializing_if = "Option::is_none", default)]
    pub bbr_info: Option<BbrInfo>,
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

/// Reads a whole number, or the text of one: exports of `BigQuery` write integers of 64 bits so, as the JSON of protocol buffers does.
///
/// # Errors
/// It is neither.
pub fn number_or_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    struct Number;

    impl<'de> Visitor<'de> for Number {
        type Value = Option<i64>;

        fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
            to.write_str("a whole number of 64 bits")
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<Option<i64>, E> {
            Ok(Some(number))
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<Option<i64>, E> {
            let told = i64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))?;
            Ok(Some(told))
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<i64>, E> {
            text.parse().map(Some).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
        }

        fn visit_unit<E: de::Error>(self) -> Result<Option<i64>, E> {
            Ok(None)
        }
    }

    from.deserialize_any(Number)
}

/// The same of a number that is 0 if it is not told.
///
/// # Errors
/// As [`number_or_text`].
pub fn told_or_0<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    Ok(number_or_text(from)?.unwrap_or(0))
}

/// Makes the form that `TCP_INFO` has in messages: the kernel's names of its fields, and those that ndt-server gives them.
macro_rules! tcp_info_of_messages {
    (
        required { $($field:ident: $key:literal),+ $(,)? }
        optional { $($later:ident: $later_key:literal),+ $(,)? }
    ) => {
        /// The kernel's `TCP_INFO`: all of it, as M-Lab's servers tell it, or the eleven fields of the specification. What is not
        /// told is missing. Times are in microseconds, fields have the kernel's names.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        #[allow(missing_docs, reason = "the kernel's names")]
        pub struct TcpInfo {
            /// Time since the start; of msak, since the connection was accepted.
            #[serde(rename = "ElapsedTime", skip_serializing_if = "Option::is_none", deserialize_with = "number_or_text")]
            pub elapsed_time: Option<i64>,
            #[serde(rename = "CAState", skip_serializing_if = "Option::is_none", deserialize_with = "number_or_text")]
            pub ca_state: Option<i64>,
            #[serde(rename = "AppLimited", skip_serializing_if = "Option::is_none", deserialize_with = "number_or_text")]
            pub app_limited: Option<i64>,
            #[serde(rename = "SndSsThresh", skip_serializing_if = "Option::is_none", deserialize_with = "number_or_text")]
            pub snd_ssthresh: Option<i64>,
            #[serde(rename = "MinRTT", skip_serializing_if = "Option::is_none", deserialize_with = "number_or_text")]
            pub min_rtt: Option<i64>,
            #[serde(rename = "DataSegsOut", skip_serializing_if = "Option::is_none", deserialize_with = "number_or_text")]
            pub data_segs_out: Option<i64>,
            #[serde(rename = "PacingRate", skip_serializing_if = "Option::is_none", deserialize_with = "number_or_text")]
            pub pacing_rate: Option<i64>,
            $(#[serde(rename = $key, skip_serializing_if = "Option::is_none", deserialize_with = "number_or_text")] pub $field: Option<i64>,)+
            $(#[serde(rename = $later_key, skip_serializing_if = "Option::is_none", deserialize_with = "number_or_text")] pub $later: Option<i64>,)+
        }

        impl TcpInfo {
            /// Returns the kernel's state, and whether it has all that the table `tcp_info` of results has. A number that no kernel
            /// can have counted is one that was not told.
            pub fn state(&self) -> (tcp_info::TcpInfo, bool) {
                let state = tcp_info::TcpInfo {
                    ca_state: self.ca_state.and_then(|state| state.try_into().ok()).unwrap_or(0),
                    flags: u8::from(self.app_limited == Some(1)),
                    snd_ssthresh: self.snd_ssthresh.and_then(|value| value.try_into().ok()).unwrap_or(u32::MAX),
                    min_rtt: self.min_rtt.and_then(|value| value.try_into().ok()).unwrap_or(0),
                    data_segs_out: self.data_segs_out.and_then(|value| value.try_into().ok()).unwrap_or(0),
                    pacing_rate: self.pacing_rate.and_then(|value| value.try_into().ok()).unwrap_or(0),
                    $($field: self.$field.and_then(|value| value.try_into().ok()).unwrap_or_default(),)+
                    $($later: self.$later.and_then(|value| value.try_into().ok()),)+
                    ..tcp_info::TcpInfo::default()
                };
                (state, $(self.$field.is_some())&&+)
            }
        }

        impl From<&tcp_info::TcpInfo> for TcpInfo {
            /// Tells all that there is a name for; the time since the start is the caller's.
            fn from(state: &tcp_info::TcpInfo) -> TcpInfo {
                TcpInfo {
                    elapsed_time: None,
                    ca_state: number(state.ca_state),
                    app_limited: number(state.flags & 1),
                    snd_ssthresh: number(state.snd_ssthresh),
                    min_rtt: state.min_rtt().and_then(number),
                    data_segs_out: number(state.data_segs_out),
                    pacing_rate: state.pacing_rate().and_then(number),
                    $($field: number(state.$field),)+
                    $($later: state.$later.and_then(number),)+
                }
            }
        }
    };
}
tcp_info_of_messages! {
    required {
        rto: "RTO", snd_mss: "SndMSS", unacked: "Unacked", sacked: "Sacked", lost: "Lost", retrans: "Retrans", rtt: "RTT",
        rttvar: "RTTVar", snd_cwnd: "SndCwnd", total_retrans: "TotalRetrans", bytes_acked: "BytesAcked",
        bytes_received: "BytesReceived", notsent_bytes: "NotsentBytes", delivery_rate: "DeliveryRate",
    }
    optional {
        busy_time: "BusyTime", rwnd_limited: "RWndLimited", sndbuf_limited: "SndBufLimited", bytes_sent: "BytesSent",
        bytes_retrans: "BytesRetrans",
    }
}

fn number(value: impl TryInto<i64>) -> Option<i64> {
    value.try_into().ok()
}

/// What BBR knows of a connection. Servers may send one without numbers with another congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct BbrInfo {
    /// Bandwidth estimate in bits per second.
    #[serde(rename = "BW", alias = "MaxBandwidth", deserialize_with = "told_or_0")]
    pub bandwidth: i64,
    /// Its smallest round-trip time in microseconds; 0 before the first sample.
    #[serde(rename = "MinRTT", deserialize_with = "told_or_0")]
    pub min_rtt: i64,
    /// Gain of the pacing rate in 256ths.
    #[serde(deserialize_with = "told_or_0")]
    pub pacing_gain: i64,
    /// Gain of the congestion window in 256ths.
    #[serde(deserialize_with = "told_or_0")]
    pub cwnd_gain: i64,
}

impl BbrInfo {
    /// Returns BBR's state; `None` without any number.
    pub fn state(&self) -> Option<tcp_info::BbrInfo> {
        let gain = |parts: i64| parts as f64 / 256.0;
        (*self != BbrInfo::default()).then(|| tcp_info::BbrInfo {
            bandwidth: u64::try_from(self.bandwidth).unwrap_or(0) / 8,
            min_rtt: u32::try_from(self.min_rtt).ok().filter(|rtt| ![0, u32::MAX].contains(rtt)),
            pacing_gain: gain(self.pacing_gain),
            cwnd_gain: gain(self.cwnd_gain),
        })
    }
}

impl From<&tcp_info::BbrInfo> for BbrInfo {
    fn from(state: &tcp_info::BbrInfo) -> BbrInfo {
        let parts = |gain: f64| (gain * 256.0) as i64;
        BbrInfo {
            bandwidth: number(state.bandwidth.saturating_mul(8)).unwrap_or(i64::MAX),
            min_rtt: state.min_rtt.map_or(0, i64::from),
            pacing_gain: parts(state.pacing_gain),
            cwnd_gain: parts(state.cwnd_gain),
        }
    }
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
        assert_eq!(SIZES.next(1 << 20, u64::MAX), 1 << 20);
    }

    #[test]
    fn intervals_are_within_their_bounds() {
        assert_eq!(interval(0.0), SHORTEST_INTERVAL);
        assert_eq!(interval(1.0), LONGEST_INTERVAL);
        // The median of an exponential distribution is ln 2 of its mean.
        assert_eq!(interval(0.5).as_millis(), 173);
    }

    /// The state of a sender in a kernel that counts everything.
    fn counted() -> tcp_info::TcpInfo {
        tcp_info::TcpInfo {
            min_rtt: 9,
            rtt: 20,
            snd_mss: 1_448,
            snd_cwnd: 10,
            total_retrans: 2,
            busy_time: Some(100),
            rwnd_limited: Some(30),
            sndbuf_limited: Some(0),
            bytes_sent: Some(7_000),
            bytes_retrans: Some(2_896),
            ..tcp_info::TcpInfo::default()
        }
    }

    #[test]
    fn a_measurement_has_the_names_of_the_specification() {
        let measurement = Measurement {
            app_info: Some(AppInfo { elapsed_time: 1_234, num_bytes: 5_678 }),
            tcp_info: Some(TcpInfo { elapsed_time: Some(1_234), ..TcpInfo::from(&counted()) }),
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
        assert_eq!(measurement.tcp_info.map(|info| info.rtt), Some(Some(4)));
        assert_eq!(measurement.bbr_info.map(|bbr| bbr.bandwidth), Some(3));
    }

    #[test]
    fn a_kernels_state_is_told_whole_and_eleven_fields_are_a_part() {
        let (state, is_whole) = TcpInfo::from(&counted()).state();
        assert_eq!((state, is_whole), (counted(), true));
        let unknown = tcp_info::TcpInfo { min_rtt: u32::MAX, pacing_rate: u64::MAX, busy_time: None, ..counted() };
        let told = TcpInfo::from(&unknown);
        assert_eq!((told.min_rtt, told.pacing_rate, told.busy_time), (None, None, None));
        let part = TcpInfo { snd_cwnd: None, ..TcpInfo::from(&counted()) };
        assert_eq!((part.state().0.snd_cwnd, part.state().1), (0, false));
        // No kernel has counted less than nothing, or more than its counter holds.
        let hostile = TcpInfo { rtt: Some(-1), snd_cwnd: Some(1 << 40), busy_time: Some(-5), ..TcpInfo::default() };
        let state = hostile.state().0;
        assert_eq!((state.rtt, state.snd_cwnd, state.busy_time), (0, 0, None));
    }

    #[test]
    fn a_state_of_bbr_without_numbers_is_none() {
        let state = tcp_info::BbrInfo { bandwidth: 125, min_rtt: Some(40), pacing_gain: 1.25, cwnd_gain: 2.0 };
        let told = BbrInfo::from(&state);
        assert_eq!((told.bandwidth, told.pacing_gain, told.state()), (1_000, 320, Some(state)));
        assert_eq!(BbrInfo::default().state(), None);
        let older: BbrInfo = serde_json::from_str(r#"{"MaxBandwidth": 800}"#).expect("it is one");
        assert_eq!(older.state().map(|bbr| (bbr.bandwidth, bbr.min_rtt)), Some((100, None)));
    }
}
