//! Measurement protocols without their sockets, for both ends of a connection.
//!
//! | module | contents |
//! | --- | --- |
//! | [`rmbt`] | RTR's Multithreaded Broadband Test: grammar, tokens, chunks, client, server, control server |
//! | [`ndt7`] | M-Lab's ndt7: paths, messages, growth of messages |
//! | [`throughput1`] | M-Lab's throughput1: ndt7's framing for several streams with a chosen congestion control |
//! | [`websocket`] | frames of RFC 6455, decoded as they arrive |
//! | [`http`] | heads of HTTP/1.1 requests and responses, upgrades |
//! | [`rate`] | throughput from samples of several flows |
//! | [`responsiveness`] | round trips per minute |
//!
//! A state machine takes bytes and the time as arguments, and returns bytes to send. The caller owns sockets, clocks, keys and
//! random data. Time is the caller's: nanoseconds since any moment before the connection.
//!
//! All input is hostile: every buffer has a bound, which its type states, and no input makes a parser panic.

pub mod http;
pub mod ndt7;
pub mod rate;
pub mod responsiveness;
pub mod rmbt;
pub mod throughput1;
pub mod websocket;

use std::net::Ipv6Addr;

/// Splits `HOST` or `HOST:PORT`, where an IPv6 address has brackets or no port. Returns the host without brackets; `None` if there is no
/// such port.
pub fn host_and_port(server: &str) -> Option<(&str, Option<u16>)> {
    let bare = server.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<Ipv6Addr>().is_ok() {
        return Some((bare, None));
    }
    let Some((host, port)) = server.rsplit_once(':') else { return Some((bare, None)) };
    let port = port.parse().ok().filter(|&port| port > 0)?;
    Some((host.trim_start_matches('[').trim_end_matches(']'), Some(port)))
}
