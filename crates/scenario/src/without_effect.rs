//! Checks for keys that are valid but change nothing, or not what their names promise.

use units::Span;

use crate::error::Fault;
use crate::{Carriers, Cell, Link, Mac, NrCarriers, NrMac, Radio, Reordering, Scenario, Scheduler};

/// Returns a warning for each such key that has no effect at any of the points.
pub(crate) fn warnings(points: &[&Scenario]) -> Vec<Fault> {
    let Some((first, others)) = points.split_first() else { return Vec::new() };
    let mut found = of(first);
    for point in others {
        // With other values of a sweep, it may have one.
        let here = of(point);
        found.retain(|warning| here.contains(warning));
    }
    found.into_iter().map(|(key, message)| Fault::new(None, key, message)).collect()
}

/// Returns the keys of a scenario that have no effect, and why.
fn of(scenario: &Scenario) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if let Some(radio) = &scenario.radio {
        check_carriers(radio, &mut found);
    }
    for link in &scenario.links {
        check_reordering(link, &mut found);
    }
    for (i, host) in scenario.hosts.named.iter().enumerate() {
        let is_end = |node: &str| scenario.flows.iter().any(|flow| flow.from == node || flow.to == node);
        if !scenario.flows.is_empty() && !scenario.nodes().into_iter().any(|node| host.matches(node) && is_end(node)) {
            let name = &host.name;
            let message = format!("no flow begins or ends at `{name}`, and only such hosts have a processing time");
            found.push((format!("hosts.named[{i}]"), message));
        }
    }
    found
}

fn check_carriers(radio: &Radio, found: &mut Vec<(String, String)>) {
    let Carriers { lte, nr } = &radio.carriers;
    if let Some(lte) = lte {
        check_ideal(&lte.mac, found);
    }
    if let Some(nr) = nr {
        check_fairness(nr.mac.fairness, NrMac::default().fairness, (&radio.cells, "nr"), found);
        check_requests(nr, found);
    } else if let Some(lte) = lte {
        check_fairness(lte.mac.fairness, Mac::default().fairness, (&radio.cells, "lte"), found);
    }
}

/// The idealised MAC of ns-3 has the values of ns-3.
fn check_ideal(mac: &Mac, found: &mut Vec<(String, String)>) {
    if !mac.ideal {
        return;
    }
    let usual = Mac::default();
    let keys = [
        ("decoding", mac.decoding != usual.decoding),
        ("cqi_period", mac.cqi_period != usual.cqi_period),
        ("cqi_delay", mac.cqi_delay != usual.cqi_delay),
        ("outer_loop_db", mac.outer_loop_db.to_bits() != usual.outer_loop_db.to_bits()),
        ("sr_period", mac.sr_period != usual.sr_period),
        ("sr_prohibit", mac.sr_prohibit != usual.sr_prohibit),
        ("sr_maximum", mac.sr_maximum != usual.sr_maximum),
        ("bsr_period", mac.bsr_period != usual.bsr_period),
        ("bsr_retx", mac.bsr_retx != usual.bsr_retx),
        ("assignments", mac.assignments.is_some()),
    ];
    for (key, _) in keys.into_iter().filter(|(_, is_set)| *is_set) {
        found.push((format!("radio.carriers.lte.mac.{key}"), "it has no effect with `ideal = true`".to_owned()));
    }
}

/// Only proportional fair has an average.
fn check_fairness(fairness: Span, usual: Span, (cells, rat): (&[Cell], &str), found: &mut Vec<(String, String)>) {
    let averages = |cell: &Cell| [cell.scheduler, cell.uplink_scheduler].contains(&Scheduler::ProportionalFair);
    if fairness != usual && !cells.iter().any(averages) {
        found.push((
            format!("radio.carriers.{rat}.mac.fairness"),
            "it has no effect: no scheduler of a cell is `proportional-fair`".to_owned(),
        ));
    }
}

/// Opportunities for scheduling requests come less often than `sr_period` says if some of them have no uplink slot.
fn check_requests(nr: &NrCarriers, found: &mut Vec<(String, String)>) {
    let (Some(period), slots, pattern) = (nr.mac.sr_period, nr.mac.sr_slots(&nr.cell()), nr.duplex.pattern_slots())
    else {
        return;
    };
    if slots <= 1 || slots.is_multiple_of(pattern) {
        return;
    }
    // The slots of one UE reach the same slots of the pattern again after as many periods as it has.
    let met = |offset: u64| (0..pattern).filter(|n| nr.carries_requests(offset + n * slots)).count() as u64;
    let fewest = (0..slots).map(met).filter(|met| *met > 0).min().unwrap_or(1);
    let slot = nr.numerology().slot();
    let (real, of_pattern) = (slot * (slots * pattern) / fewest, slot * pattern);
    let message = format!(
        "{period} is no multiple of the TDD pattern of {of_pattern}: UEs have an opportunity every {real} on average, since \
         the others fall into slots without uplink"
    );
    found.push(("radio.carriers.nr.mac.sr_period".to_owned(), message));
}

fn check_reordering(link: &Link, found: &mut Vec<(String, String)>) {
    let Some(Reordering { share, spread, .. }) = link.reordering else { return };
    let why = if share == 0.0 {
        "it has no effect with `share = 0`"
    } else if share == 1.0 && spread == Span::ZERO {
        "no packet overtakes another if all are delayed alike; set `spread`, or a smaller `share`"
    } else {
        return;
    };
    found.push(("reordering".to_owned(), format!("link `{}`: {why}", link.name)));
}
