//! What packets alone tell of a TCP connection: which segments are retransmissions, reordered or spurious, what its windows
//! were, and what is in flight. For captures, in which packets are looked at one by one.
//!
//! | module | contents |
//! | --- | --- |
//! | `track` | one direction, by our own definitions |
//! | `wireshark` | both directions, by Wireshark's rules |
//! | `rows` | segments for a time–sequence plot, in bounded memory |
//!
//! # Definitions
//!
//! A segment belongs to a connection if its receiver would accept it, as far as a capture can tell: see `stream::admission`. A byte
//! that is sent to a closed window is a probe, and data only if it is acknowledged.
//!
//! A data segment that begins below the highest sequence number seen is
//! - *out of order* if none of it was seen before and it was sent before what was seen beyond it: by its timestamp
//!   (RFC 7323), or, where timestamps are equal or missing, because it came sooner after that than a round trip from here
//!   to both ends, which a sender needs to learn of a loss (the handshake's; 3 ms if that was not seen);
//! - else a *retransmission*. At the sender nothing but a capture's own faults makes another of it.
//!
//! A retransmission is *fast* if three ranges or more than two segments' bytes beyond it were selectively acknowledged
//! (RFC 6675), or three duplicate acknowledgements came; a *timeout's* if not, it begins with the first unacknowledged byte, and nothing had been
//! sent or acknowledged for [`SHORTEST_TIMEOUT`]. It is *spurious* if the receiver already had the data: an acknowledgement
//! was seen before, a D-SACK reports it (RFC 2883), or what acknowledges it echoes an older timestamp than the
//! retransmission's (Eifel, RFC 3522).
//!
//! Bytes in flight are counted twice: what was sent and not cumulatively acknowledged, and the *pipe* of RFC 6675: that
//! without what was selectively acknowledged or lost, and with what was retransmitted. Data is lost if as much beyond it was
//! selectively acknowledged, or after a timeout. Linux's pipe differs where RACK (RFC 8985) marks losses by
//! time, and in packets that it counts as whole segments.

pub(crate) mod rows;
pub(crate) mod track;
pub(crate) mod wireshark;

use units::{Distribution, Span};
use wire::SynOptions;

pub use rows::{Item, Row};

/// The silence after which a retransmission is a timeout's: Linux's smallest timeout.
pub const SHORTEST_TIMEOUT: Span = Span::from_millis(200);

/// Whose definitions are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// Those of this module.
    #[default]
    Ranway,
    /// Those of Wireshark 4.0: super-packets are not cut, and SACK is ignored.
    Wireshark,
}

/// How captures are looked at.
#[derive(Clone, Copy, Debug)]
pub struct Inspection {
    /// Whose definitions are used.
    pub rules: Rules,
    /// Connections that are followed singly.
    pub connections: usize,
    /// Whether to keep segments for time–sequence plots.
    pub rows: bool,
}

/// What a packet is, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(pub u32);

impl Marks {
    /// Data that was sent before.
    pub const RETRANSMISSION: Marks = Marks(1);
    /// Of these, in fast recovery; of Wireshark, instead of [`Marks::RETRANSMISSION`].
    pub const FAST: Marks = Marks(1 << 1);
    /// Of these, data that the receiver had acknowledged; of Wireshark, instead of [`Marks::RETRANSMISSION`].
    pub const SPURIOUS: Marks = Marks(1 << 2);
    /// Of these, after a timeout.
    pub const TIMEOUT: Marks = Marks(1 << 3);
    /// Data that was overtaken.
    pub const OUT_OF_ORDER: Marks = Marks(1 << 4);
    /// A duplicate acknowledgement.
    pub const DUPLICATE_ACK: Marks = Marks(1 << 5);
    /// An acknowledgement with a D-SACK.
    pub const DSACK: Marks = Marks(1 << 6);
    /// A receive window of 0.
    pub const ZERO_WINDOW: Marks = Marks(1 << 7);
    /// Data up to the edge of the receive window.
    pub const WINDOW_FULL: Marks = Marks(1 << 8);
    /// A keep-alive probe.
    pub const KEEP_ALIVE: Marks = Marks(1 << 9);
    /// Its answer.
    pub const KEEP_ALIVE_ACK: Marks = Marks(1 << 10);
    /// A byte sent to a closed receive window.
    pub const ZERO_WINDOW_PROBE: Marks = Marks(1 << 11);
    /// Its answer.
    pub const ZERO_WINDOW_PROBE_ACK: Marks = Marks(1 << 12);
    /// Data before it was not seen.
    pub const LOST_SEGMENT: Marks = Marks(1 << 13);
    /// It acknowledges data that was not seen.
    pub const ACKED_UNSEEN: Marks = Marks(1 << 14);
    /// A changed receive window, and nothing else.
    pub const WINDOW_UPDATE: Marks = Marks(1 << 15);
    /// A packet of several segments, as interfaces take them from or give them to a host.
    pub const SUPER_PACKET: Marks = Marks(1 << 16);
    /// Data, SYN or FIN; a retransmission too.
    pub const DATA: Marks = Marks(1 << 17);

    /// Whether one of `others` is among them.
    #[inline]
    pub const fn any(self, others: Marks) -> bool {
        self.0 & others.0 != 0
    }

    #[inline]
    pub(crate) fn add(&mut self, other: Marks) {
        self.0 |= other.0;
    }

    /// The same with `other` if `so`.
    #[inline]
    pub(crate) fn with_if(self, other: Marks, so: bool) -> Marks {
        if so { Marks(self.0 | other.0) } else { self }
    }
}

impl std::ops::BitOr for Marks {
    type Output = Marks;
    fn bitor(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }
}

/// What a packet told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inspected {
    /// What it is.
    pub marks: Marks,
    /// The round-trip time that it ends, of the data in the other direction.
    pub rtt: Option<Span>,
    /// Bytes in flight in its own direction after it; of Wireshark's rules, only of data.
    pub in_flight: Option<u64>,
    /// The pipe of its own direction after it; not by Wireshark's rules.
    pub pipe: Option<u64>,
}

/// Counters of one direction of a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounters {
    /// Segments with data, retransmissions and super-packets' parts included.
    pub segments: u64,
    /// Their bytes of payload.
    pub bytes: u64,
    /// Of the segments, retransmissions.
    pub retransmitted: u64,
    /// Bytes of payload of those.
    pub retransmitted_bytes: u64,
    /// Of the retransmissions, fast ones.
    pub fast: u64,
    /// Of the retransmissions, those after a timeout: an event each.
    pub timeouts: u64,
    /// Of the retransmissions, spurious ones.
    pub spurious: u64,
    /// Segments out of order.
    pub out_of_order: u64,
    /// Duplicate acknowledgements of its data.
    pub duplicate_acks: u64,
    /// D-SACKs about its data.
    pub dsacks: u64,
    /// Windows of 0 that its receiver advertised.
    pub zero_windows: u64,
    /// Segments that filled the receive window.
    pub window_full: u64,
    /// Keep-alive probes.
    pub keep_alives: u64,
    /// Zero-window probes.
    pub zero_window_probes: u64,
    /// Gaps: segments before which others were not seen.
    pub gaps: u64,
    /// Acknowledgements of data that was not seen.
    pub acked_unseen: u64,
    /// Super-packets.
    pub super_packets: u64,
    /// Segments with data, SYN or FIN between its ends that its receiver would not accept, as far as is known: not in the other counters.
    pub foreign: u64,
}

impl TcpCounters {
    /// A packet of this direction with `payload` bytes.
    pub(crate) fn sent(&mut self, marks: Marks, payload: u32) {
        if marks.any(Marks::DATA) && payload > 0 {
            self.segments += 1;
            self.bytes += u64::from(payload);
        }
        let marked = Marks(marks.0 & !Marks::DATA.0);
        if marked == Marks::default() {
            return;
        }
        let one = |of: Marks| u64::from(marked.any(of));
        if marked.any(Marks::RETRANSMISSION | Marks::FAST | Marks::SPURIOUS) && payload > 0 {
            self.retransmitted += 1;
            self.retransmitted_bytes += u64::from(payload);
            self.fast += one(Marks::FAST);
            self.timeouts += one(Marks::TIMEOUT);
            self.spurious += one(Marks::SPURIOUS);
        }
        self.out_of_order += one(Marks::OUT_OF_ORDER);
        self.window_full += one(Marks::WINDOW_FULL);
        self.keep_alives += one(Marks::KEEP_ALIVE);
        self.zero_window_probes += one(Marks::ZERO_WINDOW_PROBE);
        self.gaps += one(Marks::LOST_SEGMENT);
        self.super_packets += one(Marks::SUPER_PACKET);
    }

    /// A packet of the other direction, which acknowledges this one.
    pub(crate) fn heard(&mut self, marks: Marks) {
        let marks = Marks(marks.0 & !Marks::DATA.0);
        if marks == Marks::default() {
            return;
        }
        let one = |of: Marks| u64::from(marks.any(of));
        self.duplicate_acks += one(Marks::DUPLICATE_ACK);
        self.dsacks += one(Marks::DSACK);
        self.zero_windows += one(Marks::ZERO_WINDOW);
        self.acked_unseen += one(Marks::ACKED_UNSEEN);
    }
}

/// What is known of one direction of a TCP connection beside the counters of every flow.
#[derive(Clone, Debug, Default)]
pub struct Tcp {
    /// Counters.
    pub counters: TcpCounters,
    /// The options of its SYN where it entered, if that was seen.
    pub syn: Option<SynOptions>,
    /// Whether that SYN had timestamps.
    pub syn_timestamps: bool,
    /// The options of the same SYN at the other vantage point: different ones tell of a middlebox.
    pub far_syn: Option<SynOptions>,
    /// The options of its receiver's SYN.
    pub peer_syn: Option<SynOptions>,
    /// Round-trip times by timestamps (RFC 7323): from the first segment with a timestamp to the acknowledgement with its
    /// echo, so that retransmitted segments have some too.
    pub ts_rtts: Distribution,
    /// The shortest time from an acknowledgement that passed here to data that echoes its timestamp: the way to the sender
    /// and back.
    pub min_to_sender: Option<Span>,
    /// From the SYN to the SYN-ACK, and from there to the acknowledgement, of the whole connection: the times from here to
    /// the server and to the client and back.
    pub handshake: [Option<Span>; 2],
    /// Mean pipe, until the connection was over; unknown if acknowledgements were not seen.
    pub mean_pipe: Option<f64>,
    /// Largest pipe; likewise.
    pub max_pipe: Option<u64>,
    /// The smallest and the largest receive window that its receiver advertised after the handshake, in bytes; unknown if
    /// the handshake was not seen.
    pub window: Option<(u64, u64)>,
    /// Segments for a time–sequence plot, in the order of time.
    pub rows: Vec<Row>,
}
