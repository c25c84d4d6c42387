//! Expands the table `[radio]` to links, radio hops and flows.

use super::*;
use crate::faults::{MAX_CELLS, MAX_FLOWS, MAX_UES};
use crate::placement::{placed, placed_count};

/// The node through which the hosts are reached, and at which middleboxes stand.
pub const CORE: &str = "core";
/// The node at which the radio hops start.
pub const RAN: &str = "ran";

/// Places and names each cell, and replaces several identical UEs by individual ones. Returns
/// whether the rest of the network can be checked.
pub(super) fn expand(radio: &mut Radio, c: &mut Check) -> bool {
    let Radio { servers, cells, ues: all, .. } = radio;
    // The check has already reported too few or too many.
    let ues = all.iter().map(|ue| u64::from(ue.count)).sum::<u64>();
    if servers.is_empty() || !(1..=MAX_UES).contains(&ues) {
        return false;
    }
    if placed_count(cells) > MAX_CELLS {
        return false;
    }
    *cells = placed(cells).into_iter().map(|(_, cell)| cell).collect();
    let mut nodes = BTreeSet::from([CORE.to_owned(), RAN.to_owned()]);
    let mut node = |name: &str, c: &mut Check| {
        if !nodes.insert(name.to_owned()) {
            c.wrong(format!("duplicate node `{name}`"));
        }
        if name.ends_with("-reverse") {
            c.wrong(format!("`{name}` ends in `-reverse`, which is reserved for reverse links"));
        }
    };
    for (i, server) in servers.iter().enumerate() {
        c.key("servers", |c| c.index(i, |c| node(server, c)));
    }
    for (i, mut ue) in core::mem::take(all).into_iter().enumerate() {
        let (name, count) = (ue.name.clone(), core::mem::replace(&mut ue.count, 1));
        for number in 1..=count {
            if count > 1 {
                ue.name = format!("{name}-{number}");
            }
            c.key("ues", |c| c.index(i, |c| c.key("name", |c| node(&ue.name, c))));
            if c.faults.len() > MAX_FAULTS {
                return false;
            }
            all.push(ue.clone());
        }
    }
    true
}

/// Returns the duplex links.
pub(super) fn links(radio: &Radio) -> Vec<Link> {
    let with_pep = |at: PepAt, link: Link| {
        let pep = radio.pep && radio.pep_at == at;
        Link { pep, pep_report_loss: if pep { radio.pep_report_loss } else { 0.0 }, ..link }
    };
    let internet = |server: &String| Link {
        rate: radio.server_rate.clone(),
        delay: radio.server_delay.into(),
        loss: radio.server_loss,
        // Loss is not inherited.
        reverse: radio.server_loss.map(|loss| Reverse { loss: Some(loss), ..Reverse::default() }),
        ..with_pep(PepAt::Core, plain_link(format!("internet-{server}"), server, CORE))
    };
    let core = with_pep(PepAt::Cells, plain_link(radio.core_link().into(), CORE, RAN));
    let core = Link { rate: radio.core_rate.clone(), delay: radio.core_delay.into(), ..core };
    radio.servers.iter().map(internet).chain([core]).collect()
}

/// Returns the radio hops, as duplex links.
pub(super) fn radio_hops(scenario: &Scenario) -> impl Iterator<Item = Link> {
    let ues = scenario.radio.as_ref().map_or(&[][..], |radio| &radio.ues);
    ues.iter().map(|ue| plain_link(format!("radio-{}", ue.name), RAN, &ue.name))
}

/// Returns one flow for each UE or host that matches the `*` at one end of `flow`. `count` is the number of flows
/// before it.
pub(super) fn flows(flow: Flow, radio: &Radio, count: u64, c: &mut Check) -> Vec<Flow> {
    let (key, end) = match (flow.from.ends_with('*'), flow.to.ends_with('*')) {
        (false, false) => return vec![flow],
        (true, false) => ("from", &flow.from),
        (false, true) => ("to", &flow.to),
        (true, true) => {
            c.key("to", |c| c.wrong("only one of `from` and `to` may contain a `*`"));
            return Vec::new();
        }
    };
    let prefix = end.trim_end_matches('*');
    let fits = |name: &&str| name.starts_with(prefix);
    let ues = || radio.ues.iter().map(|ue| ue.name.as_str());
    let hosts = || radio.servers.iter().map(String::as_str);
    let mut names: Vec<&str> = ues().filter(fits).collect();
    if names.is_empty() {
        names = hosts().filter(fits).collect();
    }
    if names.is_empty() {
        c.key(key, |c| c.wrong(unknown("UE or host", end, ues().chain(hosts()))));
    } else if count + names.len() as u64 * u64::from(flow.count) > MAX_FLOWS {
        c.key(key, |c| c.wrong(format!("more than {MAX_FLOWS} flows")));
        return Vec::new();
    }
    let one = |name: &str| {
        let mut one = flow.clone();
        one.name = format!("{}-{name}", flow.name);
        *(if key == "from" { &mut one.from } else { &mut one.to }) = name.to_owned();
        one
    };
    names.into_iter().map(one).collect()
}
