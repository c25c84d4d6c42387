//! Messages of the control server, as far as clients need them: `settings`, `testRequest`, `result`.
//!
//! Read first: `rmbt_client/control.py` of the Python package `rmbt-client`, and RTR's documentation of the control server. Fields that are
//! not listed here are ignored. Of a result, only measured values are kept: no identities, places or networks.

use serde::{Deserialize, Serialize};

/// The path under which all requests are.
pub const BASE: &str = "/RMBTControlServer/";
/// The longest body of a request, in bytes: a result with a sample every 40 ms of 20 flows has half of it.
pub const LONGEST_BODY: usize = 1 << 20;
/// The most samples of a result that are kept.
const MOST_SAMPLES: usize = 20_000;
/// The most pings of a result that are kept.
const MOST_PINGS: usize = 1_000;

/// The answer to `settings`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// One element.
    pub settings: Vec<Setting>,
    /// What is wrong with the request.
    #[serde(default)]
    pub error: Vec<String>,
}

/// What a client keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// A name for the client, as a UUID. This server remembers none.
    pub uuid: String,
}

/// A request for a test.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestRequest {
    /// The client's name.
    pub uuid: String,
    /// The client's kind: `RMBT` or `RMBTws`.
    pub client: String,
}

/// The answer to `testRequest`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestParameters {
    /// The token.
    pub test_token: String,
    /// The test, as a UUID.
    pub test_uuid: String,
    /// The name or address of the server.
    pub test_server_address: String,
    /// Its port.
    pub test_server_port: u16,
    /// Whether to use TLS.
    pub test_server_encryption: bool,
    /// The framing: `RMBThttp` or `RMBTws`.
    pub test_server_type: String,
    /// Seconds of each direction. RTR's server sends a string.
    #[serde(deserialize_with = "number")]
    pub test_duration: u32,
    /// The number of connections. RTR's server sends a string.
    #[serde(deserialize_with = "number")]
    pub test_numthreads: u32,
    /// The number of pings. RTR's server sends a string.
    #[serde(deserialize_with = "number")]
    pub test_numpings: u32,
    /// Seconds to wait before the test.
    #[serde(deserialize_with = "number")]
    pub test_wait: u32,
    /// The client's address, as the server sees it.
    pub client_remote_ip: String,
    /// What is wrong with the request.
    pub error: Vec<String>,
}

/// Reads a number, or a string of one.
fn number<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Plain(u32),
        Text(String),
    }
    match Number::deserialize(from)? {
        Number::Plain(number) => Ok(number),
        Number::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
}

/// What is kept of a `result`: what the client measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientResult {
    /// The token of the test.
    #[serde(skip_serializing)]
    pub test_token: String,
    /// The download's bytes.
    pub test_bytes_download: u64,
    /// The download's duration in nanoseconds.
    pub test_nsec_download: u64,
    /// The download's throughput in kbit/s, by the client's formula.
    pub test_speed_download: f64,
    /// The upload's bytes, as the client counts them.
    pub test_bytes_upload: u64,
    /// The upload's duration in nanoseconds.
    pub test_nsec_upload: u64,
    /// The upload's throughput in kbit/s, by the client's formula.
    pub test_speed_upload: f64,
    /// The number of connections.
    pub test_num_threads: u32,
    /// The shortest ping in nanoseconds, as the server measured it.
    pub test_ping_shortest: u64,
    /// The pings.
    pub pings: Vec<Ping>,
    /// The samples of all connections.
    pub speed_detail: Vec<SpeedSample>,
}

/// A ping. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ping {
    /// As the client measured it.
    pub value: u64,
    /// As the server measured it.
    pub value_server: u64,
    /// Since the start of the pings.
    pub time_ns: u64,
}

/// A sample of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpeedSample {
    /// `download` or `upload`.
    pub direction: DirectionName,
    /// The number of the connection.
    pub thread: u32,
    /// Nanoseconds since the start.
    pub time: u64,
    /// Bytes since the start.
    pub bytes: u64,
}

/// A direction by its name in a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DirectionName {
    /// To the client.
    #[default]
    Download,
    /// To the server.
    Upload,
}

impl ClientResult {
    /// Reads the body of a request and drops what exceeds the bounds.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(body: &[u8]) -> Result<ClientResult, serde_json::Error> {
        let mut result: ClientResult = serde_json::from_slice(body)?;
        result.pings.truncate(MOST_PINGS);
        result.speed_detail.truncate(MOST_SAMPLES);
        Ok(result)
    }
}

/// Returns a UUID of version 4 from 16 random bytes (RFC 9562, section 5.4).
pub fn uuid(mut random: [u8; 16]) -> String {
    random[6] = random[6] & 0x0f | 0x40;
    random[8] = random[8] & 0x3f | 0x80;
    let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_be_strings_as_rtr_sends_them() {
        let text = r#"{"test_duration":"7","test_numthreads":3,"test_server_port":5231,"error":[],"other":{}}"#;
        let parameters: TestParameters = serde_json::from_str(text).expect("it is valid");
        assert_eq!((parameters.test_duration, parameters.test_numthreads, parameters.test_server_port), (7, 3, 5231));
        assert!(serde_json::from_str::<TestParameters>(r#"{"test_duration":"long"}"#).is_err());
    }

    #[test]
    fn only_measured_values_of_a_result_are_kept() {
        let text = r#"{"client_uuid":"secret","geoLocations":[{"geo_lat":59.4}],"telephony_network_sim_operator":"24001",
            "test_token":"a_1_b","test_bytes_upload":10,"pings":[{"value":5,"value_server":4,"time_ns":1}],
            "speed_detail":[{"direction":"upload","thread":1,"time":2,"bytes":3}]}"#;
        let result = ClientResult::parse(text.as_bytes()).expect("it is valid");
        assert_eq!(result.test_token, "a_1_b");
        let kept = serde_json::to_string(&result).expect("it has a form in JSON");
        for word in ["secret", "59.4", "24001", "a_1_b"] {
            assert!(!kept.contains(word), "{word}: {kept}");
        }
        assert!(kept.contains(r#"{"direction":"upload","thread":1,"time":2,"bytes":3}"#), "{kept}");
    }

    #[test]
    fn a_uuid_has_its_version_and_variant() {
        assert_eq!(uuid([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid([0; 16]), "00000000-0000-4000-8000-000000000000");
    }
}
