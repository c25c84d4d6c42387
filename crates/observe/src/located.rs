//! Where packets waited: in the host, in the modem and the radio access, or in the network behind it.
//!
//! Three measurements tell the queues apart, and each has a baseline from before the load:
//!
//! - the time that the host's own data spends in the queueing discipline (`SO_TIMESTAMPING`: from *scheduled* to *sent*);
//! - the round-trip time to the first router behind the modem, by probes with a small hop limit: what it grows by was waited for in
//!   the host, the modem or the radio access;
//! - the round-trip time to the server: what it grows by was waited for anywhere on the path.
//!
//! Probes and data must share the queues. A modem that serves flows separately, or an operator that gives ICMP priority, hides its
//! queue from probes; then the sum of the parts is less than what TCP's own round-trip times show.

use units::Span;

/// A host that answers faster than this is in the same place: the router of a tethered phone, not the network.
const SAME_PLACE: Span = Span::from_millis(2);

/// Samples of a time before the load and under it.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// Before the load.
    pub before: Vec<Span>,
    /// Under it.
    pub under: Vec<Span>,
}

impl Loaded {
    /// Returns the median under load, and by how much it is longer than the shortest time before the load; `None` if one of
    /// them is missing.
    pub fn growth(&self) -> Option<Span> {
        let idle = self.before.iter().min()?;
        Some(median(&self.under)?.saturating_sub(*idle))
    }
}

/// Returns the median; the lower one of two.
pub fn median(spans: &[Span]) -> Option<Span> {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

/// What was measured of the path.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Times in the host's queueing discipline under load. Missing of downloads, whose data waits elsewhere.
    pub host: Vec<Span>,
    /// Round-trip times to the routers that answered, the nearest first.
    pub hops: Vec<Loaded>,
    /// Round-trip times to the server.
    pub server: Loaded,
}

/// Typical waiting times under load. What is missing could not be told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Located {
    /// In the host's queueing discipline.
    pub host: Option<Span>,
    /// In the modem and the radio access: up to the first router behind them.
    pub modem: Option<Span>,
    /// Behind that router.
    pub network: Option<Span>,
    /// On the whole path.
    pub total: Option<Span>,
}

/// A place where packets wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The host's queueing discipline.
    Host,
    /// The modem and the radio access.
    Modem,
    /// The network behind them.
    Network,
}

impl Place {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Place::Host => "host",
            Place::Modem => "modem",
            Place::Network => "network",
        }
    }
}

impl Located {
    /// Locates the queues.
    pub fn of(measured: &Measured) -> Located {
        let total = measured.server.growth();
        let host = median(&measured.host);
        let is_behind = |hop: &&Loaded| hop.before.iter().min().is_some_and(|&idle| idle >= SAME_PLACE);
        let access = measured.hops.iter().find(is_behind).and_then(Loaded::growth);
        let beyond_host = |span: Span| span.saturating_sub(host.unwrap_or(Span::ZERO));
        Located {
            host,
            modem: access.map(beyond_host),
            network: access.and_then(|access| Some(total?.saturating_sub(access))),
            total,
        }
    }

    /// Returns the place where packets waited most, if they waited for at least `least` there. Without a router that answers, modem
    /// and network cannot be told apart, and only the host can be named.
    pub fn worst(&self, least: Span) -> Option<(Place, Span)> {
        let rest = self.total.unwrap_or(Span::ZERO).saturating_sub(self.host.unwrap_or(Span::ZERO));
        let is_unknown = self.modem.is_none() && self.host.is_none_or(|host| rest > host);
        let places = [(Place::Host, self.host), (Place::Modem, self.modem), (Place::Network, self.network)];
        let known = places.into_iter().filter_map(|(place, span)| Some((place, span?)));
        known.max_by_key(|&(_, span)| span).filter(|&(_, span)| !is_unknown && span >= least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(values: &[u64]) -> Vec<Span> {
        values.iter().map(|&ms| Span::from_millis(ms)).collect()
    }

    fn loaded(before: &[u64], under: &[u64]) -> Loaded {
        Loaded { before: ms(before), under: ms(under) }
    }

    #[test]
    fn a_queue_is_where_round_trips_begin_to_grow() {
        let router_at_home = loaded(&[1, 1], &[1, 2]);
        let host = Span::from_millis(3);
        let of = |hop, server| {
            let hops = vec![router_at_home.clone(), hop];
            Located::of(&Measured { host: ms(&[2, 3, 9]), hops, server })
        };
        let modem = of(loaded(&[40, 38], &[400, 438, 500]), loaded(&[50, 52], &[451, 455, 600]));
        let parts = |host: Span, modem, network, total| {
            let span = |ms| Some(Span::from_millis(ms));
            Located { host: Some(host), modem: span(modem), network: span(network), total: span(total) }
        };
        assert_eq!(modem, parts(host, 397, 5, 405));
        assert_eq!(modem.worst(Span::from_millis(10)), Some((Place::Modem, Span::from_millis(397))));
        let network = of(loaded(&[40], &[45]), loaded(&[50], &[250]));
        assert_eq!(network, parts(host, 2, 195, 200));
        assert_eq!(network.worst(Span::from_millis(10)).map(|worst| worst.0), Some(Place::Network));
        assert_eq!(of(loaded(&[40], &[44]), loaded(&[50], &[55])).worst(Span::from_millis(10)), None);
    }

    #[test]
    fn the_hosts_queue_is_not_taken_for_the_modems() {
        let measured = Measured { host: ms(&[300]), hops: vec![loaded(&[40], &[345])], server: loaded(&[50], &[352]) };
        let located = Located::of(&measured);
        assert_eq!((located.modem, located.network), (Some(Span::from_millis(5)), Some(Span::ZERO)));
        assert_eq!(located.worst(Span::from_millis(10)), Some((Place::Host, Span::from_millis(300))));
    }

    #[test]
    fn without_routers_that_answer_only_the_host_can_be_named() {
        let of = |host| Located::of(&Measured { host: ms(&[host]), hops: vec![], server: loaded(&[50], &[450]) });
        assert_eq!(
            of(10),
            Located { host: Some(Span::from_millis(10)), total: Some(Span::from_millis(400)), ..Located::default() }
        );
        assert_eq!(of(10).worst(Span::ZERO), None);
        assert_eq!(of(390).worst(Span::ZERO), Some((Place::Host, Span::from_millis(390))));
        // A router that stopped answering under load says nothing.
        let silent = Measured { hops: vec![loaded(&[40], &[])], ..Measured::default() };
        assert_eq!(Located::of(&silent), Located::default());
    }

    #[test]
    fn the_median_of_an_even_number_is_the_lower_one() {
        assert_eq!(median(&ms(&[4, 1, 3, 2])), Some(Span::from_millis(2)));
        assert_eq!(median(&[]), None);
    }
}
