//! Expands the dumbbell, the radio network and duplex links to one-way links, and the ends of flows to routes.

mod hosts;
mod link;
mod radio;

pub use hosts::{host_addresses, hosts};
pub use radio::{CORE, RAN};

use self::link::{plain_link, reverse_name};
use crate::faults::{Check, MAX_FAULTS, MAX_LINKS, unknown};
use crate::*;
use core::cmp::Reverse as Least;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use units::Span;

/// Maximum number of flows that one stands for with `repeat`.
pub(crate) const MAX_REPEATS: u32 = 10_000;
/// Maximum number of links on a route, like IP's hop limit.
const MAX_HOPS: usize = 64;

/// Resolves the network of `s` in place.
pub(crate) fn resolve(s: &mut Scenario, c: &mut Check) {
    if s.radio.is_some() && s.dumbbell.is_some() {
        return c.key("radio", |c| c.wrong("a scenario has either `[dumbbell]` or `[radio]`, not both"));
    }
    if let Some(radio) = &mut s.radio
        && !c.key("radio", |c| radio::expand(radio, c))
    {
        return;
    }
    let given = core::mem::take(&mut s.links);
    let short_form = match (&s.dumbbell, &s.radio) {
        (Some(dumbbell), _) => dumbbell_links(dumbbell),
        (None, Some(radio)) => radio::links(radio),
        (None, None) => Vec::new(),
    };
    if given.len() + short_form.len() > MAX_LINKS / 2 {
        return c.key("links", |c| c.wrong(format!("more than {} duplex links", MAX_LINKS / 2)));
    }
    let in_hosts = given.iter().enumerate().filter(|(_, link)| link.queue_in_host);
    let in_hosts: Vec<(usize, String)> = in_hosts.map(|(i, link)| (i, link.name.clone())).collect();
    let mut links = one_way(short_form, given, s, c);
    s.links = links.iter().map(|(link, _)| link.clone()).collect();
    for hop in radio::radio_hops(s) {
        add(hop, &mut links);
    }
    let network = Network::new(&links, s.links.len());
    let (from, to) = match (s.dumbbell.take(), &s.radio) {
        (Some(d), _) => (d.senders.into_iter().next(), d.receivers.into_iter().next()),
        (None, Some(radio)) => (radio.servers.first().cloned(), radio.ues.first().map(|ue| ue.name.clone())),
        (None, None) => (None, None),
    };
    let mut flow_names = BTreeSet::new();
    let mut trees = BTreeMap::new();
    let mut count = 0;
    for (i, mut flow) in core::mem::take(&mut s.flows).into_iter().enumerate() {
        if c.faults.len() > MAX_FAULTS {
            break;
        }
        if flow.name.is_empty() {
            flow.name = format!("flow-{}", i + 1);
        }
        if flow.from.is_empty() {
            flow.from = from.clone().unwrap_or_default();
        }
        if flow.to.is_empty() {
            flow.to = to.clone().unwrap_or_default();
        }
        c.key("flows", |c| {
            c.index(i, |c| {
                let flows = match &s.radio {
                    Some(radio) => radio::flows(flow, radio, count, c),
                    None => vec![flow],
                };
                for mut flow in flows.into_iter().flat_map(repeated) {
                    if !flow_names.insert(flow.name.clone()) {
                        c.key("name", |c| c.wrong(format!("duplicate flow `{}`", flow.name)));
                    }
                    network.route(&mut flow, &mut trees, c);
                    count += u64::from(flow.count);
                    s.flows.push(flow);
                }
            });
        });
    }
    for (i, link) in in_hosts {
        link::check_queue_in_host(&link, &s.flows, i, c);
    }
    for (i, host) in s.hosts.named.iter().enumerate() {
        if !network.nodes.iter().any(|node| host.matches(node)) {
            let message = unknown("node", &host.name, network.nodes.iter().copied());
            c.key("hosts", |c| c.key("named", |c| c.index(i, |c| c.key("name", |c| c.wrong(message)))));
        }
    }
    // The table has already been merged into each flow's own.
    s.tcp = Tcp::default();
    check_captures(s, &network, c);
}

/// The one-way links of a network, each with its reverse link if it is half of a duplex one: those that a short form such as `[radio]`
/// stands for, and those that were given.
fn one_way(short_form: Vec<Link>, given: Vec<Link>, s: &Scenario, c: &mut Check) -> Vec<(Link, Option<usize>)> {
    let mut links = Vec::new();
    let mut names = BTreeSet::new();
    for link in short_form {
        names.extend([reverse_name(&link.name), link.name.clone()]);
        add(link, &mut links);
    }
    let of_short_form = links.len();
    names.extend(radio::radio_hops(s).flat_map(|hop| [reverse_name(&hop.name), hop.name]));
    for (i, link) in given.into_iter().enumerate() {
        // A resolved scenario that is read again lists the links of its `[radio]`.
        if s.radio.is_some() && names.contains(&link.name) && links[..of_short_form].iter().any(|(own, _)| *own == link)
        {
            continue;
        }
        let (name, twin) = (link.name.clone(), link.duplex.then(|| reverse_name(&link.name)));
        for name in core::iter::once(name).chain(twin) {
            if !names.insert(name.clone()) {
                let message = format!("duplicate link `{name}`");
                c.key("links", |c| c.index(i, |c| c.key("name", |c| c.wrong(message))));
            }
        }
        add(link, &mut links);
    }
    links
}

/// Checks that what is to be captured is a link or a host with flows.
fn check_captures(s: &Scenario, network: &Network<'_>, c: &mut Check) {
    let ends: BTreeSet<&str> = s.flows.iter().flat_map(|flow| [flow.from.as_str(), flow.to.as_str()]).collect();
    for (i, name) in s.record.pcap.iter().enumerate().filter(|(_, name)| *name != "*") {
        let message = match network.by_name.get(name.as_str()) {
            Some(&index) if index < network.wired => continue,
            Some(_) => {
                let link = s.radio.as_ref().map_or("", Radio::core_link);
                format!("`{name}` is a radio hop and cannot be captured; capture `{link}`, the link in front of it")
            }
            None if ends.contains(name.as_str()) => continue,
            None => {
                let links = s.links.iter().map(|link| link.name.as_str());
                unknown("link or host with flows", name, links.chain(ends.iter().copied()))
            }
        };
        c.key("record", |c| c.key("pcap", |c| c.index(i, |c| c.wrong(message))));
    }
}

/// Returns the names of the links and radio hops from one node of a loaded scenario to another, as for flows: the
/// fewest links, then the least delay, then the first in the file; between UEs through the core. Returns `None` if
/// there is no route or no such node, or if both nodes are the same.
pub fn route(scenario: &Scenario, from: &str, to: &str) -> Option<Vec<String>> {
    let mut links: Vec<_> = scenario.links.iter().map(|link| (link.clone(), None)).collect();
    for hop in radio::radio_hops(scenario) {
        add(hop, &mut links);
    }
    let network = Network::new(&links, scenario.links.len());
    let [from, to] = [network.nodes.get(from)?, network.nodes.get(to)?];
    if from == to {
        return None;
    }
    let found = network.find("", from, to, &mut BTreeMap::new(), &mut Check::default())?;
    Some(network.names(&found))
}

/// Returns the flows that a flow stands for.
fn repeated(mut flow: Flow) -> Vec<Flow> {
    let Some(Repeat { count, every }) = flow.repeat.take() else { return vec![flow] };
    // Faults that the check has reported must not do harm.
    let later = |span: Span, i: u32| {
        Span::from_nanos(span.as_nanos().saturating_add(every.as_nanos().saturating_mul(i.into())))
    };
    let one = |i: u32| Flow {
        name: format!("{}-{}", flow.name, i + 1),
        start: later(flow.start, i),
        stop: flow.stop.map(|stop| later(stop, i)),
        ..flow.clone()
    };
    (0..count.min(MAX_REPEATS)).map(one).collect()
}

fn dumbbell_links(d: &Dumbbell) -> Vec<Link> {
    let Dumbbell { rate, rtt, jitter, reordering, loss, queue, overhead, reverse, access_rate, senders, receivers } = d;
    let access = |host: &String, from: &str, to: &str| Link {
        rate: access_rate.clone(),
        ..plain_link(format!("access-{host}"), from, to)
    };
    let bottleneck = Link {
        rate: Some(rate.clone()),
        delay: (*rtt / 2).into(),
        jitter: *jitter,
        reordering: *reordering,
        loss: *loss,
        queue: *queue,
        overhead: *overhead,
        reverse: reverse.clone(),
        ..plain_link("bottleneck".into(), "r1", "r2")
    };
    let senders = senders.iter().map(|s| access(s, s, "r1"));
    let receivers = receivers.iter().map(|r| access(r, "r2", r));
    core::iter::once(bottleneck).chain(senders).chain(receivers).collect()
}

/// Adds a link and, if it is duplex, its reverse; each with the index of the other.
fn add(mut link: Link, links: &mut Vec<(Link, Option<usize>)>) {
    let index = links.len();
    let duplex = core::mem::take(&mut link.duplex);
    let differs = link.reverse.take().unwrap_or_default();
    if !duplex {
        return links.push((link, None));
    }
    let twin = Link {
        name: reverse_name(&link.name),
        from: link.to.clone(),
        to: link.from.clone(),
        duplex: false,
        rate: differs.rate.or_else(|| link.rate.clone()),
        delay: differs.delay.unwrap_or_else(|| link.delay.clone()),
        jitter: differs.jitter,
        reordering: differs.reordering,
        loss: differs.loss,
        queue: differs.queue.unwrap_or(link.queue),
        queue_in_host: false,
        overhead: differs.overhead.unwrap_or(link.overhead),
        pep: false,
        pep_report_loss: 0.0,
        reverse: None,
    };
    links.push((link, Some(index + 1)));
    links.push((twin, Some(index)));
}

/// A shortest-path tree: for each node, the last link of the best route to it.
type Tree<'a> = BTreeMap<&'a str, usize>;

struct Network<'a> {
    links: &'a [(Link, Option<usize>)],
    /// The number of links; the indices after them are radio hops.
    wired: usize,
    by_name: BTreeMap<&'a str, usize>,
    leaving: BTreeMap<&'a str, Vec<usize>>,
    nodes: BTreeSet<&'a str>,
    ues: BTreeSet<&'a str>,
}

impl<'a> Network<'a> {
    fn new(links: &'a [(Link, Option<usize>)], wired: usize) -> Network<'a> {
        let mut leaving = BTreeMap::<_, Vec<usize>>::new();
        for (i, (link, _)) in links.iter().enumerate() {
            leaving.entry(link.from.as_str()).or_default().push(i);
        }
        Network {
            links,
            wired,
            by_name: links.iter().enumerate().map(|(i, (link, _))| (link.name.as_str(), i)).collect(),
            leaving,
            nodes: links.iter().flat_map(|(link, _)| [link.from.as_str(), link.to.as_str()]).collect(),
            ues: links[wired..].iter().step_by(2).map(|(hop, _)| hop.to.as_str()).collect(),
        }
    }

    /// Checks or finds both routes of `flow`.
    fn route(&self, flow: &mut Flow, trees: &mut BTreeMap<&'a str, Tree<'a>>, c: &mut Check) {
        let mut ends = [("from", &flow.from), ("to", &flow.to)].map(|(key, name)| {
            let node = self.nodes.get(name.as_str()).copied();
            if node.is_none() {
                let message = match name.as_str() {
                    "" => {
                        "a node is required, because the scenario has neither a dumbbell nor a radio network".to_owned()
                    }
                    _ => unknown("node", name, self.nodes.iter().copied()),
                };
                c.key(key, |c| c.wrong(message));
            }
            node
        });
        if ends[0] == ends[1] && ends[0].is_some() {
            c.key("to", |c| c.wrong(format!("the flow leads from `{}` to itself", flow.from)));
            ends[1] = None;
        }
        let [Some(from), Some(to)] = ends else { return };
        let forward = if flow.route.is_empty() {
            self.find("from", from, to, trees, c)
        } else {
            self.follow("route", &flow.route, from, to, c)
        };
        let Some(forward) = forward else { return };
        let twins = || forward.iter().rev().map(|&i| self.links[i].1).collect::<Option<Vec<_>>>();
        let back = if flow.return_route.is_empty() {
            twins().or_else(|| self.find("to", to, from, trees, c))
        } else {
            self.follow("return_route", &flow.return_route, to, from, c)
        };
        let back = back.unwrap_or_default();
        if c.faults.is_empty()
            && flow.transport() == Transport::Tcp
            && forward.iter().chain(&back).all(|&hop| self.takes_no_time(hop))
        {
            let message = format!(
                "a round trip between `{}` and `{}` takes no time; give one of the links between them a `rate` or a `delay`",
                flow.from, flow.to
            );
            c.key("to", |c| c.wrong(message));
        }
        flow.route = self.names(&forward);
        flow.return_route = self.names(&back);
    }

    /// Returns whether packets pass a hop in no time. Radio hops, which come after the links, take time.
    fn takes_no_time(&self, hop: usize) -> bool {
        let link = &self.links[hop].0;
        hop < self.wired && link.rate.is_none() && link.delay.first() == Some(Span::ZERO) && link.jitter.is_none()
    }

    fn names(&self, route: &[usize]) -> Vec<String> {
        route.iter().map(|&i| self.links[i].0.name.clone()).collect()
    }

    /// Follows the named links, and checks that they form a route.
    fn follow(&self, key: &str, route: &[String], from: &str, to: &str, c: &mut Check) -> Option<Vec<usize>> {
        let mut at = from;
        let mut found = Vec::new();
        for (i, name) in route.iter().enumerate() {
            let mut wrong = |message: String| c.key(key, |c| c.index(i, |c| c.wrong(message)));
            let Some(&index) = self.by_name.get(name.as_str()) else {
                wrong(unknown("link", name, self.by_name.keys().copied()));
                return None;
            };
            let link = &self.links[index].0;
            if link.from != at {
                wrong(format!("the link `{name}` starts at `{}`, but the route has reached `{at}`", link.from));
                return None;
            }
            if i == MAX_HOPS {
                wrong(format!("a route has at most {MAX_HOPS} links"));
                return None;
            }
            at = &link.to;
            found.push(index);
        }
        if at != to {
            c.key(key, |c| c.wrong(format!("the route ends at `{at}`, not at `{to}`")));
            return None;
        }
        Some(found)
    }

    /// Finds the route with the fewest links, then the least delay, then the links that come first in the file.
    fn find(
        &self,
        key: &str,
        from: &'a str,
        to: &'a str,
        trees: &mut BTreeMap<&'a str, Tree<'a>>,
        c: &mut Check,
    ) -> Option<Vec<usize>> {
        // Traffic between UEs passes through the core.
        if self.ues.contains(from) && self.ues.contains(to) {
            let up = self.find(key, from, radio::CORE, trees, c)?;
            let down = self.find(key, radio::CORE, to, trees, c)?;
            return Some([up, down].concat());
        }
        // If a host has only one outgoing link, the tree of the node behind it is used, which many hosts share.
        let first = match self.leaving.get(from).map(Vec::as_slice) {
            Some(&[only]) => Some(only),
            _ => None,
        };
        let root = first.map_or(from, |index| self.links[index].0.to.as_str());
        // Trees of a large network are large, so only a few are cached.
        if trees.len() >= 64 && !trees.contains_key(root) {
            trees.clear();
        }
        let tree = trees.entry(root).or_insert_with(|| self.tree(root));
        let mut route = Vec::new();
        let mut at = to;
        while at != root {
            let Some(&index) = tree.get(at) else {
                c.key(key, |c| c.wrong(format!("there is no route from `{from}` to `{to}`")));
                return None;
            };
            if route.len() + usize::from(first.is_some()) == MAX_HOPS {
                let message = format!("the route from `{from}` to `{to}` has more than {MAX_HOPS} links");
                c.key(key, |c| c.wrong(message));
                return None;
            }
            route.push(index);
            at = &self.links[index].0.from;
        }
        route.extend(first);
        route.reverse();
        Some(route)
    }

    /// Dijkstra's algorithm.
    fn tree(&self, from: &'a str) -> Tree<'a> {
        let mut tree = Tree::new();
        let mut done = BTreeSet::new();
        let mut frontier = BinaryHeap::from([Least((0usize, Span::ZERO, usize::MAX, from))]);
        while let Some(Least((hops, delay, by, node))) = frontier.pop() {
            if !done.insert(node) {
                continue;
            }
            if by != usize::MAX {
                tree.insert(node, by);
            }
            for &index in self.leaving.get(node).map_or(&[][..], Vec::as_slice) {
                let link = &self.links[index].0;
                // Delays may not have been checked yet.
                let further = link.delay.first().unwrap_or_default();
                let sum = Span::from_nanos(delay.as_nanos().saturating_add(further.as_nanos()));
                frontier.push(Least((hops + 1, sum, index, link.to.as_str())));
            }
        }
        tree
    }
}
