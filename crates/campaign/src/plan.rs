//! The tests of a campaign and their order: randomised complete blocks.
//!
//! Each block has every combination once, in an order of its own that is drawn from the seed. What changes with time and place (load,
//! weather, the position of a bus) thus affects all combinations alike (Fisher, The Design of Experiments, 1935).

use std::fmt::Write as _;

use des::Streams;
use rand_xoshiro::rand_core::Rng;
use serde::{Deserialize, Serialize};

use crate::file::{Direction, File};
use units::stats::bootstrap::below;

/// A combination of the factors of a campaign.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Combination {
    /// The congestion control.
    pub cc: String,
    /// The number of flows in each direction.
    pub flows: u32,
    /// The directions.
    pub direction: Direction,
    /// The interface through which a server is measured; that of the route if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
}

impl Combination {
    /// The interface after a separator; nothing without one.
    pub(crate) fn through(&self, separator: char) -> String {
        self.interface.as_ref().map(|name| format!("{separator}{name}")).unwrap_or_default()
    }
}

/// A test: a combination in a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Test {
    /// Its number in the order of the campaign, from 1.
    pub number: u32,
    /// Its block, from 1.
    pub block: u32,
    /// What is tested.
    pub combination: Combination,
}

impl Test {
    /// The name of its directory.
    pub fn name(&self) -> String {
        let Combination { cc, flows, direction, .. } = &self.combination;
        format!("{:04}-{cc}-{flows}-{}{}", self.number, direction.name(), self.combination.through('-'))
    }
}

/// All tests of a campaign, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The tests, block by block.
    pub tests: Vec<Test>,
    /// The combinations, in the order of the file.
    pub combinations: Vec<Combination>,
    seed: u64,
}

impl Plan {
    /// Plans a campaign.
    pub fn of(file: &File) -> Plan {
        let mut interfaces: Vec<Option<String>> = file.place.interfaces.iter().cloned().map(Some).collect();
        if interfaces.is_empty() {
            interfaces.push(None);
        }
        let mut combinations = Vec::new();
        for cc in &file.cc {
            for &flows in &file.flows {
                for interface in &interfaces {
                    let of =
                        |&direction| Combination { cc: cc.clone(), flows, direction, interface: interface.clone() };
                    combinations.extend(file.directions.iter().map(of));
                }
            }
        }
        let mut tests = Vec::new();
        for block in 1..=file.repetitions {
            let mut random = Streams::new(file.seed, block.into()).named("campaign order");
            let mut order: Vec<&Combination> = combinations.iter().collect();
            // Fisher and Yates: every permutation is equally likely.
            for last in (1..order.len()).rev() {
                order.swap(last, below(last + 1, &mut random));
            }
            for combination in order {
                tests.push(Test { number: tests.len() as u32 + 1, block, combination: combination.clone() });
            }
        }
        Plan { tests, combinations, seed: file.seed }
    }

    /// The seed of simulations in a block. All tests of a block meet the same random network.
    pub fn simulation_seed(&self, block: u32) -> u64 {
        // Scenario files hold signed integers of 64 bits.
        Streams::new(self.seed, block.into()).named("campaign simulation").next_u64() >> 1
    }

    /// The plan for people: a line a test.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut block = 0;
        for test in &self.tests {
            if test.block != block {
                block = test.block;
                let _ = writeln!(text, "block {block}");
            }
            let Combination { cc, flows, direction, .. } = &test.combination;
            let (number, direction, through) = (test.number, direction.name(), test.combination.through(' '));
            let _ = writeln!(text, "  {number:4}  {cc:<12} {flows:2} flows  {direction}{through}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn file(seed: u64) -> File {
        let text = format!(
            "title = 't'\ncc = ['cubic', 'bbr', 'vegas']\nflows = [1, 4]\ndirections = ['up', 'down']\nrepetitions = 40\nseed = {seed}\n\
             time = '1 s'\nwhere.simulation = 'dumbbell'"
        );
        File::parse("c.toml", &text).expect("valid")
    }

    #[test]
    fn each_block_has_every_combination_once() {
        let plan = Plan::of(&file(7));
        assert_eq!(plan.tests.len(), 480);
        let all: BTreeSet<_> = plan.combinations.iter().collect();
        assert_eq!(all.len(), 12);
        for block in plan.tests.chunks(12) {
            assert!(block.iter().all(|test| test.block == block[0].block));
            assert_eq!(block.iter().map(|test| &test.combination).collect::<BTreeSet<_>>(), all);
        }
        assert!(plan.tests.iter().zip(1..).all(|(test, number)| test.number == number));
    }

    #[test]
    fn each_interface_is_in_every_block_with_all_other_factors() {
        let with = |place: &str| {
            let text = format!(
                "title = 't'\ncc = ['cubic', 'bbr']\ndirections = ['up']\nrepetitions = 2\ntime = '1 s'\n[where]\n{place}"
            );
            Plan::of(&File::parse("c.toml", &text).expect("valid"))
        };
        let plan = with("server = 'a'\ninterfaces = ['wwan0', 'eth0.7']");
        assert_eq!(plan.tests.len(), 8);
        for block in plan.tests.chunks(4) {
            let of: BTreeSet<_> =
                block.iter().map(|test| (&test.combination.cc, &test.combination.interface)).collect();
            assert_eq!(of.len(), 4);
        }
        let names: BTreeSet<String> = plan.tests[..4].iter().map(|test| test.name()[5..].to_owned()).collect();
        let expected = ["bbr-1-up-eth0.7", "bbr-1-up-wwan0", "cubic-1-up-eth0.7", "cubic-1-up-wwan0"];
        assert_eq!(names, BTreeSet::from(expected.map(str::to_owned)));
        assert!(plan.text().contains(" flows  up wwan0\n"), "{}", plan.text());
        // Without interfaces nothing changes: campaigns that began before there were any can be resumed.
        let test = with("server = 'a'").tests.swap_remove(0);
        assert!(test.name().ends_with("-1-up"), "{}", test.name());
        assert!(serde_json::to_value(&test.combination).expect("JSON").get("interface").is_none());
    }

    #[test]
    fn the_order_depends_on_the_seed_alone_and_differs_between_blocks() {
        let (plan, again, other) = (Plan::of(&file(7)), Plan::of(&file(7)), Plan::of(&file(8)));
        assert_eq!(plan, again);
        assert_ne!(plan.tests, other.tests);
        let order = |block: usize| {
            plan.tests[block * 12..][..12].iter().map(|test| test.combination.clone()).collect::<Vec<_>>()
        };
        let orders: BTreeSet<_> = (0..40).map(order).collect();
        assert_eq!(orders.len(), 40);
        // More repetitions do not change the blocks that there were.
        let fewer = Plan::of(&File { repetitions: 3, ..file(7) });
        assert_eq!(fewer.tests[..], plan.tests[..36]);
    }

    #[test]
    fn every_combination_is_about_equally_often_first() {
        let plan = Plan::of(&File { repetitions: 6000, cc: vec!["cubic".into()], ..file(3) });
        for combination in &plan.combinations {
            let first = plan.tests.chunks(4).filter(|block| block[0].combination == *combination).count();
            // 1,500 are expected, with a standard deviation of 33.5.
            assert!(first.abs_diff(1500) < 170, "{first}");
        }
    }
}
