//! Checks of second carriers, and of the UEs that receive them.

use super::*;
use crate::propagation::Channel;
use channel::tables::lte::Category;

/// Checks that a carrier does not overlap another one. Each has its centre frequency and width in MHz.
pub(super) fn check_apart(
    key: &str,
    (mhz, width): (f64, f64),
    (what, (other, also)): (&str, (f64, f64)),
    c: &mut Check,
) {
    let least = (width + also) / 2.0;
    if (mhz - other).abs() < least {
        let [mhz, other, least] = [mhz, other, least].map(shown);
        c.key(key, |c| {
            c.wrong(format!("{mhz} overlaps the {what} at {other}: they must be at least {least} MHz apart"));
        });
    }
}

/// Checks how many carriers `ue` receives.
pub(super) fn check_ue(ue: &Ue, radio: &Radio, c: &mut Check) {
    let Some(carriers) = ue.carriers else { return };
    c.range("carriers", carriers, 1..=2);
    if carriers != 2 {
        return;
    }
    let lte_has = radio.carriers.lte.as_ref().is_some_and(|lte| lte.secondary.is_some());
    let nr_has = radio.carriers.nr.as_ref().is_some_and(|nr| nr.secondary.is_some());
    if !lte_has && !nr_has {
        c.key("carriers", |c| c.wrong("the cells have one carrier: add `secondary`"));
    } else if matches!(ue.channel, Channel::Recorded { .. }) {
        c.key("carriers", |c| c.wrong("a UE with a recorded channel receives one carrier; use a model of the channel"));
    } else if let Some(number) = ue.category
        && Category::numbered(number).is_some_and(|category| !nr_has && !category.aggregates)
    {
        let message = format!("a UE of category {number} receives one carrier; those from 6 on receive two");
        c.key("carriers", |c| c.wrong(message));
    }
}
