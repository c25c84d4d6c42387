//! Flows, round-trip times and losses, measured from packets that pass one or two vantage points, without help from the
//! hosts. Live interfaces, the emulator's network and captures can be sources: this crate does no I/O and reads no clock.
//!
//! | module | contents |
//! | --- | --- |
//! | `observer` | the table of connections: what a source calls |
//! | `connection` | what is counted of both directions of a connection |
//! | `stream` | one direction of TCP: retransmissions, round-trip times, data in order |
//! | `inspect` | what captures are looked at for beside: reordering, spurious retransmissions, windows, Wireshark's rules |
//! | `ranges` | which sequence numbers have been seen |
//! | `counters`, `sample` | totals, and the state at a moment |
//! | `limits` | what held a sender back, as its kernel tells it |
//! | `located` | where packets waited: host, modem or network |
//! | `kernel`, `progress` | what the kernels at a flow's ends tell, and its bytes over time |
//! | `modem` | what a modem tells of its cells |
//! | `flow` | the result: one direction of a connection, with its name |
//!
//! # Path of a packet
//!
//! 1. The source reads its headers ([`wire::Headers::parse`]) and calls [`Observer::entered`] with both vantage points,
//!    the headers and the time. The observer finds or opens the connection by its ends and lets the sender's direction count the
//!    packet: new data or a retransmission, bytes in flight.
//! 2. When the packet reaches the other vantage point, the source calls [`Observer::arrived`] with its delay; if it is lost,
//!    [`Observer::lost`]. An arrival counts as delivered data in its own direction, and its acknowledgement yields a
//!    round-trip time in the other.
//! 3. A source with one vantage point calls [`Observer::passed`] instead of both; a capture [`Observer::inspect`], of an
//!    observer that was made by [`Observer::inspecting`].
//! 4. [`Observer::sample`] notes the state of the active connections, and [`Observer::finish`] returns the [`Flow`]s.
//!
//! What a sender knows by itself (its congestion window, why it sends nothing) cannot be measured from here. Hosts send what
//! they like, so memory is bounded: [`MOST_CONNECTIONS`] connections are followed singly, and later ones are counted
//! together for each protocol. Connections that are over keep their place, for the result.

mod connection;
mod counters;
mod flow;
mod inspect;
pub mod kernel;
pub mod limits;
pub mod located;
pub mod modem;
mod observer;
pub mod progress;
mod ranges;
mod sample;
mod stream;

pub use counters::{Counters, Packets};
pub use flow::{Flow, Key, VantagePoint};
pub use inspect::{Inspected, Inspection, Item, Marks, Row, Rules, SHORTEST_TIMEOUT, Tcp, TcpCounters};
pub use observer::{MOST_CONNECTIONS, Observer, pieces};
pub use sample::Sample;
