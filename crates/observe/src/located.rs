//! Where packets waited: in the host, in the modem and the radio access, or in the network behind it.
//!
//! Three measurements tell the queues apart, and each has a baseline from before the load:
//!
//! - the time that the host's own data spends in the queueing discipline (`SO_TIMESTAMPING`: from *scheduled* to *sent*);
//! - the round-trip time to the server: what it grows by was waited for anywhere on the path;
//! - the round-trip times of two probes that were sent together, one to the server and one, with a small hop limit, to the first
//!   router behind the modem: what their difference grows by was waited for behind that router.
//!
//! A queue may grow or shrink by more between two probes than there is to find behind the router, and routers answer few of them.
//! Two probes that were sent together meet the same queue, which cancels in their difference. Its growth has a sign and a 95 %
//! confidence interval (Student's t): a part of the wait that is not longer than its uncertainty is unknown.
//!
//! Probes and data must share the queues. A modem that serves flows separately, or an operator that gives ICMP priority, hides its
//! queue from probes; then the sum of the parts is less than what TCP's own round-trip times show.

use units::Span;
use units::stats::{Mean, nearest_rank};

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
    nearest_rank(&sorted, 0.5)
}

/// The round-trip times of two probes that were sent together, and were both answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// To a router on the path.
    pub router: Span,
    /// To the server.
    pub server: Span,
}

impl Pair {
    /// How much farther the server is than the router, in milliseconds; less than 0 if the router took longer to answer.
    fn behind(&self) -> f64 {
        milliseconds(self.server) - milliseconds(self.router)
    }
}

/// Pairs of probes to the same router.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    /// While nothing waited.
    pub idle: Vec<Pair>,
    /// Under it.
    pub under: Vec<Pair>,
}

/// What was measured of the path.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Times in the host's queueing discipline under load. Missing of downloads, whose data waits elsewhere.
    pub host: Vec<Span>,
    /// Pairs of probes to each router, the nearest first.
    pub hops: Vec<Pairs>,
    /// Round-trip times to the server.
    pub server: Loaded,
}

/// By how much more the round trip to the server grew than that to the router.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Behind {
    /// The mean over pairs of probes, in milliseconds, less that while nothing waited. Less than 0 if the router's answers became slower.
    pub ms: f64,
    /// Half the width of its 95 % confidence interval, in milliseconds. A wait cannot be negative: a router that answers later than
    /// the server behind it is wrong by at least the difference, which is added.
    pub error_ms: f64,
}

/// Typical waiting times under load. What is missing could not be told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Located {
    /// In the host's queueing discipline.
    pub host: Option<Span>,
    /// In the modem and the radio access, up to the first router behind them; missing unless it is longer than the uncertainty.
    pub modem: Option<Span>,
    /// Behind that router; likewise.
    pub network: Option<Span>,
    /// On the whole path. Neither of the two parts before is longer.
    pub total: Option<Span>,
    /// What the probes told about the wait behind the router.
    pub behind: Option<Behind>,
    /// Where packets waited longer, of modem and network, if the pairs tell.
    longer: Option<Place>,
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
        let (total, host) = (measured.server.growth(), median(&measured.host));
        let is_behind = |hop: &&Pairs| hop.idle.iter().map(|pair| pair.router).min() >= Some(SAME_PLACE);
        let found = measured.hops.iter().find(is_behind).and_then(|hop| Some((hop, Idle::of(hop)?)));
        let behind = found.and_then(|(hop, idle)| Behind::of(hop, &idle));
        let beyond_host = total.map(|total| total.saturating_sub(host.unwrap_or(Span::ZERO)));
        let divided = beyond_host.zip(behind);
        let [modem, network] = divided.and_then(|(rest, behind)| behind.parts(rest)).unwrap_or_default();
        let longer = divided.and_then(|(rest, behind)| behind.longer(rest)).or_else(|| {
            let (hop, idle) = found?;
            longer(hop, &idle, host.unwrap_or(Span::ZERO))
        });
        Located { host, modem, network, total, behind, longer }
    }

    /// Returns the place where packets waited most, if they waited for at least `least` there. Without a router that answers, or if
    /// the times in modem and network differ by less than their uncertainty, only the host can be named.
    pub fn worst(&self, least: Span) -> Option<(Place, Span)> {
        let rest = self.total.unwrap_or(Span::ZERO).saturating_sub(self.host.unwrap_or(Span::ZERO));
        let others = match (self.modem, self.network) {
            (None, None) => rest,
            (modem, network) => modem.max(network).unwrap_or(Span::ZERO),
        };
        let place = match self.longer {
            _ if self.host.is_some_and(|host| host >= others) => Some((Place::Host, self.host)),
            Some(Place::Modem) => Some((Place::Modem, self.modem)),
            Some(Place::Network) => Some((Place::Network, self.network)),
            _ => None,
        };
        place.and_then(|(place, span)| Some((place, span?))).filter(|&(_, span)| span >= least)
    }
}

impl Behind {
    fn of(hop: &Pairs, idle: &Idle) -> Option<Behind> {
        let under = mean(hop.under.iter().map(Pair::behind))?;
        let ms = under.mean - idle.behind.mean;
        let error_ms = under.half_width_beside(&idle.behind)? + (-ms).max(0.0);
        Some(Behind { ms, error_ms })
    }

    /// Returns the longer one of modem and network, if that is certain of all that packets waited beyond the host.
    fn longer(self, rest: Span) -> Option<Place> {
        let half = milliseconds(rest) / 2.0;
        let [least, most] = [self.ms - self.error_ms, self.ms.max(0.0) + self.error_ms];
        if most < half { Some(Place::Modem) } else { (least > half).then_some(Place::Network) }
    }

    /// Divides the time that packets waited beyond the host into that in the modem and that behind it; `None` if the probes of the
    /// router were sent at other times than those that tell the whole, and do not fit.
    fn parts(self, rest: Span) -> Option<[Option<Span>; 2]> {
        let span = |ms: f64| Span::from_secs_f64(ms.max(0.0) / 1e3);
        let (network, error) = (span(self.ms).min(rest), span(self.error_ms));
        let known = |part: Span| Some(part).filter(|&part| part > error);
        let fits = span(self.ms - self.error_ms) <= rest;
        fits.then(|| [known(rest.saturating_sub(network)), known(network)])
    }
}

/// What pairs of probes tell while nothing waits.
#[derive(Clone, Copy)]
struct Idle {
    /// The shortest round trip to the router, in milliseconds.
    router: f64,
    /// How much farther the server is, in milliseconds.
    behind: Mean,
}

impl Idle {
    fn of(hop: &Pairs) -> Option<Idle> {
        let router = hop.idle.iter().map(|pair| pair.router).min()?;
        let behind = mean(hop.idle.iter().map(Pair::behind))?;
        Some(Idle { router: milliseconds(router), behind })
    }
}

/// Returns where packets waited longer, in the modem or behind it, if the pairs under load agree about that: in each of them, the
/// time behind the router less that up to it, beyond the host. A queue that grows makes both uncertain, but not which of them is longer.
fn longer(hop: &Pairs, idle: &Idle, host: Span) -> Option<Place> {
    let before_router = |pair: &Pair| milliseconds(pair.router) - idle.router - milliseconds(host);
    let difference = mean(hop.under.iter().map(|pair| pair.behind() - before_router(pair)))?;
    let (value, error) = (difference.mean - idle.behind.mean, difference.half_width_beside(&idle.behind)?);
    (value.abs() > error).then_some(if value > 0.0 { Place::Network } else { Place::Modem })
}

fn mean(samples: impl Iterator<Item = f64>) -> Option<Mean> {
    Mean::of(&samples.collect::<Vec<_>>())
}

fn milliseconds(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Span = Span::from_millis(10);

    fn ms(values: &[u64]) -> Vec<Span> {
        values.iter().map(|&ms| Span::from_millis(ms)).collect()
    }

    fn pairs(pairs: &[[u64; 2]]) -> Vec<Pair> {
        let pair = |&[router, server]: &[u64; 2]| Pair {
            router: Span::from_millis(router),
            server: Span::from_millis(server),
        };
        pairs.iter().map(pair).collect()
    }

    /// What is located with pairs of round trips to a router and the server, beside those of the router at home. All probes of the
    /// server are in pairs.
    fn located(host: &[u64], before: &[[u64; 2]], under: &[[u64; 2]]) -> Located {
        let [before, under] = [before, under].map(pairs);
        let at_home =
            |pairs: &[Pair]| pairs.iter().map(|pair| Pair { router: Span::from_millis(1), ..*pair }).collect();
        let home = Pairs { idle: at_home(&before), under: at_home(&under) };
        let servers = |pairs: &[Pair]| pairs.iter().map(|pair| pair.server).collect();
        let server = Loaded { before: servers(&before), under: servers(&under) };
        Located::of(&Measured { host: ms(host), hops: vec![home, Pairs { idle: before, under }], server })
    }

    fn millis(span: Option<Span>) -> Option<u64> {
        span.map(Span::as_millis)
    }

    const BEFORE: &[[u64; 2]] = &[[40, 50], [41, 51], [40, 51], [40, 50]];

    #[test]
    fn a_queue_is_where_round_trips_begin_to_grow() {
        // Of a queue that changes by hundreds of milliseconds, a difference of one.
        let modem = located(&[2, 3, 9], BEFORE, &[[438, 448], [300, 310], [500, 511], [445, 455], [700, 711]]);
        assert_eq!([modem.host, modem.total].map(millis), [Some(3), Some(405)]);
        assert_eq!([modem.modem, modem.network].map(millis), [Some(401), None]);
        assert_eq!(modem.worst(LEAST).map(|worst| worst.0), Some(Place::Modem));
        let network = located(&[3], BEFORE, &[[45, 150], [44, 250], [45, 251], [46, 330], [44, 250]]);
        assert_eq!(millis(network.total), Some(200));
        assert!(millis(network.network).is_some_and(|ms| (190..200).contains(&ms)) && network.modem.is_none());
        assert_eq!(network.worst(LEAST).map(|worst| worst.0), Some(Place::Network));
        assert_eq!(located(&[3], BEFORE, &[[44, 55], [45, 55], [44, 54]]).worst(LEAST), None);
    }

    #[test]
    fn nothing_that_waits_behind_the_modem_is_found_in_noise() {
        // Both probes of a pair wait for 400 to 700 ms in the modem; each has a jitter of 0 to 7 ms of its own.
        let jitter = |number: u64| (number * 2_654_435_761 % 4_294_967_296) >> 29;
        for seed in 0..200 {
            let pair = |queue: u64, number: u64| {
                let of = |probe: u64| jitter(1 + seed * 97 + number * 2 + probe);
                [40 + queue + of(0), 50 + queue + of(1)]
            };
            let before: Vec<_> = (0..20).map(|number| pair(0, number)).collect();
            let under: Vec<_> = (0..10).map(|number| pair(400 + number * 331 % 300, 20 + number)).collect();
            let located = located(&[], &before, &under);
            assert_eq!(located.worst(LEAST).map(|worst| worst.0), Some(Place::Modem), "{located:?}");
            assert_eq!(located.network, None, "{located:?}");
            assert!(located.modem <= located.total, "{located:?}");
        }
    }

    #[test]
    fn a_wait_of_20_ms_behind_the_modem_is_found_with_its_uncertainty() {
        let before = [[40, 50], [43, 52], [41, 53], [40, 51]];
        let under = [[400, 430], [462, 495], [380, 408], [520, 552], [433, 462], [410, 440]];
        let located = located(&[], &before, &under);
        let behind = located.behind.expect("there are pairs");
        assert!((behind.ms - 20.0).abs() < behind.error_ms && behind.error_ms < 6.0, "{behind:?}");
        assert!(millis(located.network).is_some_and(|ms| (18..=22).contains(&ms)), "{located:?}");
        assert_eq!(located.worst(LEAST).map(|worst| worst.0), Some(Place::Modem));
        assert!(located.modem <= located.total, "{located:?}");
    }

    #[test]
    fn a_router_that_answers_late_is_uncertain_by_its_delay() {
        let located = located(&[], BEFORE, &[[450, 410], [452, 411], [448, 409], [450, 410]]);
        let behind = located.behind.expect("there are pairs");
        assert!((-51.0..-49.0).contains(&behind.ms) && behind.error_ms > 50.0, "{behind:?}");
        assert_eq!((millis(located.modem), located.network), (Some(360), None));
    }

    #[test]
    fn which_of_two_waits_is_longer_is_unknown_if_the_pairs_do_not_agree() {
        let pairs = [[190, 350], [340, 390], [140, 340], [320, 370], [220, 350]];
        assert_eq!(located(&[], BEFORE, &pairs).worst(LEAST), None);
        // A single pair has no uncertainty.
        let single = located(&[], BEFORE, &[[45, 250]]);
        assert_eq!((single.behind, single.network, single.worst(LEAST)), (None, None, None));
    }

    #[test]
    fn the_hosts_queue_is_not_taken_for_the_modems() {
        let located = located(&[300], BEFORE, &[[345, 355], [346, 357], [345, 355]]);
        assert_eq!(located.worst(LEAST), Some((Place::Host, Span::from_millis(300))));
        assert!(located.modem.is_none_or(|modem| modem <= Span::from_millis(5)), "{located:?}");
    }

    #[test]
    fn without_routers_that_answer_only_the_host_can_be_named() {
        let server = Loaded { before: ms(&[50]), under: ms(&[450]) };
        let of = |host| Located::of(&Measured { host: ms(&[host]), hops: vec![], server: server.clone() });
        assert_eq!(
            of(10),
            Located { host: Some(Span::from_millis(10)), total: Some(Span::from_millis(400)), ..Located::default() }
        );
        assert_eq!(of(10).worst(Span::ZERO), None);
        assert_eq!(of(390).worst(Span::ZERO), Some((Place::Host, Span::from_millis(390))));
        // A router that stopped answering under load says nothing.
        let silent = Measured { hops: vec![Pairs { idle: pairs(BEFORE), under: vec![] }], ..Measured::default() };
        assert_eq!(Located::of(&silent), Located::default());
    }

    #[test]
    fn the_median_of_an_even_number_is_the_lower_one() {
        assert_eq!(median(&ms(&[4, 1, 3, 2])), Some(Span::from_millis(2)));
        assert_eq!(median(&[]), None);
    }
}
