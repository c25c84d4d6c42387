//! Builds what follows single packets.

use crate::error::Error;
use crate::network::medium::PlacedMedium;
use crate::network::watch::Watch;
use crate::rows::RunId;
use record::tables::Events;
use record::{Capture, Output};
use scenario::{Flow, Scenario};

/// The watch that a scenario asks for, if it asks for any.
pub(super) fn watch(
    scenario: &Scenario,
    media: &[PlacedMedium],
    id: RunId,
    output: Option<&Output>,
) -> Result<Option<Box<Watch>>, Error> {
    let record = &scenario.record;
    let links: Vec<String> = scenario.links.iter().map(|link| link.name.clone()).collect();
    let captured = |name: &String| record.pcap.iter().any(|p| p == "*" || p == name);
    let nodes = scenario.nodes();
    // A name of both is the link.
    let is_host = |name: &str| record.pcap.iter().any(|p| p == name) && !links.iter().any(|link| link == name);
    let at_links = links.iter().map(|link| captured(link).then_some(link.as_str()));
    let at_nodes = nodes.iter().map(|node| is_host(node).then_some(*node));
    let places: Vec<Option<&str>> = at_links.chain(at_nodes).collect();
    let wanted: Vec<&str> = places.iter().copied().flatten().collect();
    let mut next = 0..;
    let mut interfaces: Vec<Option<u32>> = places.iter().map(|place| place.and_then(|_| next.next())).collect();
    let at_hosts = interfaces.split_off(links.len());
    if !record.events && wanted.is_empty() {
        return Ok(None);
    }
    let captures = match output {
        Some(output) if !wanted.is_empty() => {
            let file = output.file(&format!("captures/point-{}-run-{}.pcapng", id.point, id.run))?;
            Some(Capture::new(file, wanted.iter().copied())?)
        }
        _ => None,
    };
    let node = |name: &str| nodes.iter().position(|n| *n == name).unwrap_or_default() as u32;
    let copies = |f: &Flow| vec![(f.name.clone(), [node(&f.from), node(&f.to)]); f.count as usize];
    Ok(Some(Box::new(Watch {
        id,
        events: record.events.then(Events::default),
        commands: Events::default(),
        captures,
        interfaces,
        at_hosts,
        flows: scenario.flows.iter().flat_map(copies).chain([("visitors".to_owned(), [0, 0])]).collect(),
        ports: media.iter().map(PlacedMedium::ports).collect(),
        links,
        log: Vec::new(),
        kept: Vec::new(),
        failure: None,
    })))
}
