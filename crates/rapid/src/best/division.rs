//! How a UE's capacity is divided among its flows: max-min shares of their demands, and what each may take beyond its share.

use super::demand::Demand;
use super::parameters::MARGIN;
use super::rules::Rule;
use crate::decision::Category;
use crate::share::share;

/// Traffic of others, and of flows whose demand is not known, is given so many times what was measured, so that it can grow.
const MORE: f64 = 1.0 + MARGIN;

/// The capacity divided. Rates are in bytes a second.
#[derive(Debug)]
pub(crate) struct Division {
    /// The shares of the flows, in their order.
    pub(crate) shares: Vec<f64>,
    /// The share of what the proxy does not see, and that which the flows of unknown demand have together.
    of_unseen: f64,
    of_newcomers: f64,
    newcomers: u32,
    /// What each unsatisfied demand is given.
    level: f64,
    /// The sums of the shares of slow and of fast flows, and how many slow flows have a share.
    slow: f64,
    pub(crate) fast: f64,
    slow_flows: u32,
    /// What nobody wants.
    unwanted: f64,
}

impl Division {
    /// Divides `capacity` among flows, of which the silent ones want nothing, traffic that the proxy does not see, and flows of
    /// unknown demand, which have taken `unknown` together.
    pub(crate) fn new(capacity: f64, demands: &[Option<Demand>], unseen: Option<f64>, unknown: f64) -> Division {
        let mut shares = Vec::with_capacity(demands.len() + 2);
        shares.extend(demands.iter().map(|demand| match demand {
            None | Some(Demand::Unknown) => 0.0,
            Some(Demand::Everything) => f64::INFINITY,
            Some(Demand::Limited(demand)) => *demand,
        }));
        shares.push(unseen.filter(|_| Rule::CountUnseen.applies()).map_or(0.0, |rate| rate * MORE));
        shares.push(if Rule::CountUnknown.applies() { unknown * MORE } else { 0.0 });
        let level = share(capacity, &mut shares);
        let others = shares.split_off(demands.len());
        let (of_unseen, of_newcomers) = (others[0], others[1]);
        let newcomers = demands.iter().filter(|demand| **demand == Some(Demand::Unknown)).count() as u32;
        let (mut slow, mut slow_flows, mut fast) = (0.0, 0, 0.0);
        for (demand, &share) in demands.iter().zip(&shares) {
            match demand {
                Some(Demand::Limited(_)) => (slow, slow_flows) = (slow + share, slow_flows + u32::from(share > 0.0)),
                Some(Demand::Everything) => fast += share,
                Some(Demand::Unknown) | None => {}
            }
        }
        let unwanted = (capacity - slow - fast - of_unseen).max(0.0);
        Division { shares, of_unseen, of_newcomers, newcomers, level, slow, fast, slow_flows, unwanted }
    }

    /// Returns what should be delivered of slow and new flows.
    pub(crate) fn expected(&self) -> f64 {
        self.slow + self.of_newcomers
    }

    /// Returns what each slow flow may have that nobody wants.
    fn spare(&self) -> f64 {
        (self.unwanted - self.of_newcomers).max(0.0) / f64::from(self.slow_flows.max(1))
    }

    /// Returns how many unsatisfied demands there are whose flows are known.
    fn known(&self) -> f64 {
        self.shares.iter().chain([&self.of_unseen]).filter(|share| **share == self.level).count() as f64
    }

    /// Returns what a flow of this share would have if it took everything: so many would share what they and it have.
    pub(crate) fn potential(&self) -> impl Fn(f64) -> f64 {
        let unsatisfied = self.known() + f64::from(u8::from(self.of_newcomers == self.level));
        let (level, spare) = (self.level, self.spare() * f64::from(self.slow_flows));
        move |share| if level.is_finite() { (level * unsatisfied + share) / (unsatisfied + 1.0) } else { share + spare }
    }

    /// Returns what a flow is promised by its demand and its share, and its category. Flows of unknown demand
    /// may take what they would have if they were fast. Until they are, the others leave only what they take.
    pub(crate) fn promises(&self) -> impl Fn(Demand, f64) -> (f64, Category) {
        let newcomers = f64::from(self.newcomers).max(1.0);
        let for_newcomer = if self.level.is_finite() {
            let known = self.known();
            (self.level * known + self.of_newcomers) / (known + newcomers)
        } else {
            self.unwanted / newcomers
        };
        // If the share of a slow flow is less than its demand, nothing is spare.
        let spare = if Rule::GiveSpare.applies() { self.spare() } else { 0.0 };
        move |demand, share| match demand {
            Demand::Limited(_) => (share + spare, Category::Slow),
            Demand::Unknown => (for_newcomer, Category::Fast),
            Demand::Everything => (share, Category::Fast),
        }
    }
}
