//! Directions of flows, kinds of probes, and what requests tell of the path.

use units::{Span, Time};

/// A kind of probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// ICMP echo to the server.
    Echo,
    /// A datagram with this hop limit, to a router on the path.
    Hop(u8),
    /// A TCP handshake with the server.
    Handshake,
    /// A request and its answer on a connection without load.
    Request,
}

impl Probe {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Probe::Echo => "echo",
            Probe::Hop(_) => "hop",
            Probe::Handshake => "handshake",
            Probe::Request => "request",
        }
    }
}

/// A probe and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// When it was sent.
    pub at: Time,
    /// Its kind.
    pub probe: Probe,
    /// When the answer came, after that; `None` if none came.
    pub rtt: Option<Span>,
}

/// What the connection for requests tells of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// The shortest round trip of TCP on it, by this end's kernel; `None` if that does not tell it.
    pub acknowledged: Option<Span>,
    /// The shortest round trip of a request, as either end measured it.
    pub answered: Span,
    /// Number of requests that were answered.
    pub count: usize,
}

impl Requests {
    /// Adds a request and its answer to those before.
    pub(crate) fn add(before: Option<Requests>, acknowledged: Option<Span>, answered: Span) -> Requests {
        let before = before.unwrap_or(Requests { acknowledged: None, answered: Span::MAX, count: 0 });
        Requests {
            acknowledged: before.acknowledged.into_iter().chain(acknowledged).min(),
            answered: before.answered.min(answered),
            count: before.count + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_keep_the_shortest_times_of_both_ends() {
        let ms = Span::from_millis;
        let mut all = None;
        for (acknowledged, answered) in [(None, 40), (Some(25), 31), (Some(20), 35)] {
            all = Some(Requests::add(all, acknowledged.map(ms), ms(answered)));
        }
        let expected = Requests { acknowledged: Some(ms(20)), answered: ms(31), count: 3 };
        assert_eq!(all, Some(expected));
    }
}
