//! What is known of the reports on each UE: for the status and for metrics, and for the operator when it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rapid::{Doubt, Rejected};
use serde::{Deserialize, Serialize};
use units::{Span, Time};

use super::notice::Notice;

/// A UE that receives less than this, in bytes a second, has no need of reports: cells do not report idle UEs.
const LITTLE: f64 = 12_500.0;
/// The shortest interval between notices of the same kind: those on many UEs are one.
const NOTICES: Span = Span::from_secs(10);
/// UEs that a notice names.
const NAMED: usize = 3;

/// Whether the reports on a UE are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// They are.
    Believed,
    /// Far more is delivered than they tell, so they are not.
    TooLow,
    /// Far less is delivered than they tell, although data waits, so they are not.
    TooHigh,
    /// The latest one is too old.
    Stale,
}

impl Trust {
    /// All values.
    pub const ALL: [Trust; 4] = [Trust::Believed, Trust::TooLow, Trust::TooHigh, Trust::Stale];

    /// Returns its name in the status, in tables and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Trust::Believed => "believed",
            Trust::TooLow => "too-low",
            Trust::TooHigh => "too-high",
            Trust::Stale => "stale",
        }
    }

    pub(super) fn of(feed: &rapid::Feed) -> Trust {
        match feed.doubt {
            _ if feed.is_stale => Trust::Stale,
            Some(Doubt::TooLow) => Trust::TooLow,
            Some(Doubt::TooHigh) => Trust::TooHigh,
            None => Trust::Believed,
        }
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

/// The reports on the UE that has an address.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Feed {
    /// An address of the UE, as its connections have it.
    pub ue: IpAddr,
    /// The age of the latest report in seconds.
    pub age_s: f64,
    /// Whether they are believed.
    pub trust: Trust,
}

/// How many reports were of no use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unused {
    /// From the future, by the proxy's clock.
    pub ahead: u64,
    /// Made more than a second before the proxy began to control connections.
    pub old: u64,
    /// With values that are beyond any cell.
    pub impossible: u64,
    /// Older than the one on the UE before.
    pub overtaken: u64,
}

impl Unused {
    /// Combines what the control and the inbox have counted.
    pub(super) fn new(rejected: Rejected, old: u64) -> Unused {
        let Rejected { ahead, impossible, overtaken } = rejected;
        Unused { ahead, old, impossible, overtaken }
    }
}

/// What a control has published last.
#[derive(Debug, Default)]
pub(super) struct Feeds(Mutex<Published>);

#[derive(Clone, Debug, Default)]
struct Published {
    feeds: Vec<Feed>,
    unused: Unused,
}

impl Feeds {
    fn lock(&self) -> MutexGuard<'_, Published> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the feeds, which are in the order of the addresses.
    pub(super) fn publish(&self, feeds: Vec<Feed>, unused: Unused) {
        *self.lock() = Published { feeds, unused };
    }

    /// Returns the feeds in the order of the addresses, and how many reports were of no use.
    pub(super) fn get(&self) -> (Vec<Feed>, Unused) {
        let published = self.lock();
        (published.feeds.clone(), published.unused)
    }
}

/// Finds out what the operator should know of feeds.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// What was found of each UE that has flows, and what the operator was told of it, if anything.
    ues: BTreeMap<IpAddr, (Trust, Trust)>,
    /// What was told of reports that were of no use.
    unused: Unused,
    /// When there may be notices again.
    next: Time,
}

impl Watch {
    /// Takes note of the feeds of all UEs that have flows. Returns what to tell.
    pub(super) fn look(&mut self, feeds: &BTreeMap<IpAddr, rapid::Feed>, unused: Unused, now: Time) -> Vec<Notice> {
        self.ues.retain(|ue, _| feeds.contains_key(ue));
        for (&ue, feed) in feeds {
            let (found, _) = self.ues.entry(ue).or_insert((Trust::Believed, Trust::Believed));
            let trust = Trust::of(feed);
            if trust != Trust::Stale || feed.delivered > LITTLE {
                *found = trust;
            }
        }
        if now < self.next {
            return Vec::new();
        }
        let mut changed: BTreeMap<Trust, BTreeSet<IpAddr>> = BTreeMap::new();
        for (&ue, (found, told)) in &mut self.ues {
            if std::mem::replace(told, *found) != *found {
                changed.entry(*found).or_default().insert(ue);
            }
        }
        let mut notices: Vec<Notice> = changed.iter().map(|(&trust, ues)| notice(trust, ues)).collect();
        let before = std::mem::replace(&mut self.unused, unused);
        for (now, before, why) in [
            (unused.ahead, before.ahead, "are from the future: the clocks of this machine and of their source differ"),
            (unused.old, before.old, "were made before the proxy started: the clocks differ, or they are a recording"),
            (unused.impossible, before.impossible, "have values that no cell can have"),
        ] {
            if now > before {
                let count = now - before;
                notices.push(Notice::Failed(format!("{count} reports {why}; they were discarded").into()));
            }
        }
        if !notices.is_empty() {
            self.next = now + NOTICES;
        }
        notices
    }
}

fn notice(trust: Trust, ues: &BTreeSet<IpAddr>) -> Notice {
    let mut names = ues.iter().take(NAMED).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if ues.len() > NAMED {
        names += &format!(" and {} other UEs", ues.len() - NAMED);
    }
    let unlimited = "; their connections go on as without reports";
    match trust {
        Trust::Believed => Notice::Repaired(format!("the reports on {names} are believed again").into()),
        Trust::Stale => Notice::Failed(format!("no fresh reports on {names} arrive{unlimited}").into()),
        Trust::TooLow => Notice::Failed(
            format!("the reports on {names} tell far less than what is delivered, and are not believed{unlimited}")
                .into(),
        ),
        Trust::TooHigh => Notice::Failed(
            format!("the reports on {names} tell far more than what is delivered, and are not believed{unlimited}")
                .into(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(doubt: Option<Doubt>, is_stale: bool, delivered: f64) -> rapid::Feed {
        rapid::Feed { age: Span::ZERO, is_stale, doubt, delivered }
    }

    fn texts(notices: &[Notice]) -> Vec<String> {
        let text = |notice: &Notice| match notice {
            Notice::Failed(text) => format!("failed: {text}"),
            Notice::Repaired(text) | Notice::Doubtful(text) => format!("repaired: {text}"),
        };
        notices.iter().map(text).collect()
    }

    #[test]
    fn a_change_is_told_once_and_those_of_many_ues_together() {
        let mut watch = Watch::default();
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let all = |of: rapid::Feed| -> BTreeMap<IpAddr, rapid::Feed> {
            (1..6).map(|ue| (IpAddr::from([10, 0, 0, ue]), of)).collect()
        };
        let mut look = |feed, unused, seconds| texts(&watch.look(&all(feed), unused, at(seconds)));
        let none = Unused::default();
        assert_eq!(look(feed(None, false, 1e6), none, 0), [""; 0]);
        let low = "failed: the reports on 10.0.0.1, 10.0.0.2, 10.0.0.3 and 2 other UEs tell far less than what is delivered, \
                   and are not believed; their connections go on as without reports";
        assert_eq!(look(feed(Some(Doubt::TooLow), false, 1e6), none, 1), [low]);
        assert_eq!(look(feed(Some(Doubt::TooLow), false, 1e6), none, 2), [""; 0]);
        // What changes soon after is told later, and not at all if it is over by then.
        assert_eq!(look(feed(None, true, 1e6), none, 3), [""; 0]);
        let again = "repaired: the reports on 10.0.0.1, 10.0.0.2, 10.0.0.3 and 2 other UEs are believed again";
        assert_eq!(look(feed(None, false, 1e6), none, 20), [again]);
        // Nobody reports idle UEs.
        assert_eq!(look(feed(None, true, 0.0), none, 40), [""; 0]);
        let ahead = Unused { ahead: 7, ..none };
        let future = "failed: 7 reports are from the future: the clocks of this machine and of their source differ; they were \
                      discarded";
        assert_eq!(look(feed(None, true, 0.0), ahead, 50), [future]);
        assert_eq!(look(feed(None, true, 0.0), ahead, 90), [""; 0]);
    }
}
