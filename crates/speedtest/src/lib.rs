//! Measurement protocols without their sockets, for both ends of a connection.
//!
//! | module | contents |
//! | --- | --- |
//! | [`rmbt`] | RTR's Multithreaded Broadband Test: grammar, tokens, chunks, client, server, control server |
//! | [`ndt7`] | M-Lab's ndt7: paths, messages, growth of messages |
//! | [`throughput1`] | M-Lab's throughput1: ndt7's framing for several streams with a chosen congestion control |
//! | [`websocket`] | frames of RFC 6455, decoded as they arrive |
//! | [`host_port`] | hosts, ports and zones of servers, as users write them |
//! | [`http`] | heads of HTTP/1.1 requests and responses, upgrades |
//! | [`rate`] | throughput from samples of several flows |
//! | [`responsiveness`] | round trips per minute |
//!
//! A state machine takes bytes and the time as arguments, and returns bytes to send. The caller owns sockets, clocks, keys and
//! random data. Time is the caller's: nanoseconds since any moment before the connection.
//!
//! All input is hostile: every buffer has a bound, which its type states, and no input makes a parser panic.

pub mod host_port;
pub mod http;
pub mod ndt7;
pub mod rate;
pub mod responsiveness;
pub mod rmbt;
pub mod throughput1;
pub mod websocket;
