//! throughput1, M-Lab's test of several streams with a chosen congestion control, over WebSocket.
//!
//! Read first: `pkg/throughput1` in the repository m-lab/msak. Each stream is a WebSocket like one of [`crate::ndt7`]; the query of its
//! URL says what the test is.

use crate::http::Request;
use crate::ndt7::{BbrInfo, Sizes, TcpInfo};
use serde::{Deserialize, Serialize};
use units::Span;

/// The path of a download.
pub const DOWNLOAD: &str = "/throughput/v1/download";
/// The path of an upload.
pub const UPLOAD: &str = "/throughput/v1/upload";
/// The subprotocol, which both sides must name.
pub const SUBPROTOCOL: &str = "net.measurementlab.throughput.v1";
/// The longest test.
pub const LONGEST: Span = Span::from_secs(25);
/// How long a test lasts whose client does not say so.
pub const DURATION: Span = Span::from_secs(5);
/// The sizes of messages.
pub const SIZES: Sizes = Sizes { first: 1 << 10, largest: 1 << 20 };
/// The most streams of a test.
pub const MOST_STREAMS: u32 = 64;
/// The longest value in a query.
const LONGEST_VALUE: usize = 512;

/// What a client asks for, in the query of the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The number of streams of the test, of which this is one.
    pub streams: u32,
    /// How long the sender sends.
    pub duration: Span,
    /// The pause between the starts of two streams; the client keeps it.
    pub delay: Span,
    /// The congestion control of the server's end, by its name in Linux.
    pub congestion: Option<String>,
    /// A download ends after so many bytes.
    pub bytes: Option<u64>,
    /// The measurement, which its streams have in common.
    pub measurement: String,
}

/// A query that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid parameter `{0}`: expected {1}")]
pub struct Invalid(&'static str, &'static str);

impl Options {
    /// Reads the options from the query of a request.
    ///
    /// # Errors
    /// The parameter that is missing or not valid.
    pub fn parse(request: &Request) -> Result<Options, Invalid> {
        let number = |name: &'static str| {
            let text = request.parameter(name).filter(|text| !text.is_empty());
            let digits =
                |text: &str| if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None };
            text.map(|text| digits(text).ok_or(Invalid(name, "a whole number"))).transpose()
        };
        let millis = |name: &'static str, longest: Span| {
            let longest_ms = longest.as_millis();
            let span = |ms: u64| {
                if ms <= longest_ms {
                    Ok(Span::from_millis(ms))
                } else {
                    Err(Invalid(name, "milliseconds within the limit"))
                }
            };
            number(name)?.map(span).transpose()
        };
        let streams = number("streams")?.and_then(|count| u32::try_from(count).ok());
        let streams =
            streams.filter(|count| (1..=MOST_STREAMS).contains(count)).ok_or(Invalid("streams", "1 to 64"))?;
        let measurement = request.parameter("mid").filter(|text| !text.is_empty() && text.len() <= LONGEST_VALUE);
        let measurement = measurement.ok_or(Invalid("mid", "the name of the measurement"))?.to_owned();
        let congestion = request.parameter("cc").filter(|name| !name.is_empty()).map(ToOwned::to_owned);
        if congestion.as_deref().is_some_and(|name| !is_congestion(name)) {
            return Err(Invalid("cc", "the name of a congestion control"));
        }
        Ok(Options {
            streams,
            duration: millis("duration", LONGEST)?.filter(|span| *span > Span::ZERO).unwrap_or(DURATION),
            delay: millis("delay", LONGEST)?.unwrap_or(Span::ZERO),
            congestion,
            bytes: number("bytes")?.filter(|bytes| *bytes > 0),
            measurement,
        })
    }

    /// Returns the query of a client's URL. `token` is what the server requires, if it does.
    pub fn query(&self, token: Option<&str>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("streams", &self.streams.to_string());
        query.append_pair("duration", &self.duration.as_millis().to_string());
        query.append_pair("delay", &self.delay.as_millis().to_string());
        query.append_pair("mid", &self.measurement);
        if let Some(congestion) = &self.congestion {
            query.append_pair("cc", congestion);
        }
        if let Some(bytes) = self.bytes {
            query.append_pair("bytes", &bytes.to_string());
        }
        if let Some(token) = token {
            query.append_pair("access_token", token);
        }
        query.finish()
    }
}

/// Returns whether a name may be one of a congestion control: Linux has at most 15 characters.
pub fn is_congestion(name: &str) -> bool {
    name.len() <= 15
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte))
}

/// A measurement, the content of a text message. The first four fields are in a side's first message only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The congestion control of the side that measured.
    #[serde(rename = "CC", skip_serializing_if = "String::is_empty", default)]
    pub congestion: String,
    /// An identifier of the stream.
    #[serde(rename = "UUID", skip_serializing_if = "String::is_empty", default)]
    pub uuid: String,
    /// The address and port of the side that measured.
    #[serde(rename = "LocalAddr", skip_serializing_if = "String::is_empty", default)]
    pub local: String,
    /// The address and port of the other side.
    #[serde(rename = "RemoteAddr", skip_serializing_if = "String::is_empty", default)]
    pub remote: String,
    /// Bytes of payload.
    #[serde(rename = "Application", default)]
    pub application: Counters,
    /// Bytes of the TCP connection.
    #[serde(rename = "Network", default)]
    pub network: Counters,
    /// Time since the start, in microseconds.
    #[serde(rename = "ElapsedTime", default)]
    pub elapsed_time: i64,
    /// What the kernel counted.
    #[serde(rename = "TCPInfo", skip_serializing_if = "Option::is_none", default)]
    pub tcp_info: Option<TcpInfo>,
    /// What BBR knows, if it is the congestion control of the side that measured.
    #[serde(rename = "BBRInfo", skip_serializing_if = "Option::is_none", default)]
    pub bbr_info: Option<BbrInfo>,
}

/// Bytes of a side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Bytes sent.
    #[serde(rename = "BytesSent")]
    pub sent: i64,
    /// Bytes received.
    #[serde(rename = "BytesReceived")]
    pub received: i64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::parse_request;

    fn options(query: &str) -> Result<Options, Invalid> {
        let text = format!("GET {DOWNLOAD}?{query} HTTP/1.1\r\n\r\n");
        Options::parse(&parse_request(text.as_bytes()).expect("valid").expect("complete").0)
    }

    #[test]
    fn a_query_is_read_as_it_was_written() {
        let all = Options {
            streams: 4,
            duration: Span::from_secs(10),
            delay: Span::from_millis(250),
            congestion: Some("bbr".into()),
            bytes: Some(1 << 30),
            measurement: "a b&c".into(),
        };
        assert_eq!(options(&all.query(Some("token"))), Ok(all));
        let least = Options {
            streams: 1,
            duration: DURATION,
            delay: Span::ZERO,
            congestion: None,
            bytes: None,
            measurement: "m".into(),
        };
        assert_eq!(options("streams=1&mid=m&bytes=0"), Ok(least));
    }

    #[test]
    fn a_query_that_is_not_valid_names_the_parameter() {
        for (query, name) in [
            ("mid=m", "streams"),
            ("streams=0&mid=m", "streams"),
            ("streams=65&mid=m", "streams"),
            ("streams=2", "mid"),
            ("streams=2&mid=m&duration=25001", "duration"),
            ("streams=2&mid=m&duration=-1", "duration"),
            ("streams=2&mid=m&delay=1s", "delay"),
            ("streams=2&mid=m&cc=../etc", "cc"),
            ("streams=2&mid=m&cc=a_name_too_long_for_linux", "cc"),
            ("streams=2&mid=m&bytes=1e9", "bytes"),
        ] {
            assert_eq!(options(query).map_err(|invalid| invalid.0), Err(name), "{query}");
        }
    }

    #[test]
    fn a_measurement_names_its_side_once() {
        let text = serde_json::to_string(&Measurement::default()).expect("it has a form in JSON");
        assert!(!text.contains("CC") && !text.contains("UUID"), "{text}");
        assert!(text.contains(r#""Application":{"BytesSent":0,"BytesReceived":0}"#), "{text}");
    }
}
