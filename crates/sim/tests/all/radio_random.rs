//! Random radio scenarios within the ranges that are accepted: they run, and what is received is a number.

use crate::common::run;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::ops::RangeInclusive;

/// Draws scenarios.
struct Draw(Xoshiro256PlusPlus);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }

    /// A number of a range, at times one of its ends.
    fn within(&mut self, range: RangeInclusive<f64>) -> f64 {
        let (low, high) = range.into_inner();
        match self.below(8) {
            0 => low,
            1 => high,
            _ => low + (high - low) * self.below(1 << 20) as f64 / f64::from(1 << 20),
        }
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Where a model holds: heights of antenna and UE and distances in metres, and carriers in MHz.
type Model = (&'static str, [RangeInclusive<f64>; 3], RangeInclusive<f64>);

fn models() -> [Model; 8] {
    let wide = || 500.0..=52_600.0;
    [
        ("kind = \"friis\"", [0.0..=200.0, 0.0..=200.0, 0.0..=100_000.0], 410.0..=52_600.0),
        ("kind = \"umi\"", [1.5..=30.0, 1.5..=22.5, 0.0..=5000.0], wide()),
        ("kind = \"uma\"", [25.0..=25.0, 1.5..=13.0, 10.0..=5000.0], wide()),
        ("kind = \"rma\"", [10.0..=150.0, 1.0..=10.0, 10.0..=5000.0], 500.0..=30_000.0),
        ("kind = \"inh\"", [1.0..=10.0, 0.5..=5.0, 0.0..=150.0], wide()),
        ("kind = \"cost-231\", shadowing_db = 8", [30.0..=200.0, 1.0..=10.0, 1000.0..=20_000.0], 1500.0..=2000.0),
        (
            "kind = \"log-distance\", exponent = 3.5, at_1m_db = 30, shadowing_db = 8",
            [0.0..=200.0, 0.0..=200.0, 0.0..=100_000.0],
            410.0..=52_600.0,
        ),
        ("kind = \"fixed\", loss_db = 300", [0.0..=200.0, 0.0..=200.0, 0.0..=100_000.0], 410.0..=52_600.0),
    ]
}

fn scenario(seed: u64) -> String {
    let mut d = Draw(Xoshiro256PlusPlus::seed_from_u64(seed));
    let (model, [mast, ue, distance], mhz) = models()[d.below(8) as usize].clone();
    let is_lte = d.below(2) == 0 || mhz.end() < &3000.0;
    let network = if is_lte {
        let most = mhz.end().min(5000.0);
        let downlink = d.within(*mhz.start()..=most - 50.0);
        format!("[lte]\ndownlink_mhz = {downlink}\nuplink_mhz = {}\n", downlink + 50.0)
    } else {
        let is_fr1 = d.below(2) == 0 || mhz.end() < &24_250.0;
        let range = if is_fr1 { mhz.start().max(410.0)..=mhz.end().min(7125.0) } else { 24_250.0..=*mhz.end() };
        let numerology = d.below(2) + if is_fr1 { 0 } else { 2 };
        format!(
            "[nr]\nfrequency_mhz = {}\nnumerology = {numerology}\nresource_blocks = {}\nduplex = {}\n",
            d.within(range),
            2 + d.below(130),
            d.one_of(&["\"fdd\"", "\"tdd\"", "\"flexible\""]),
        )
    };
    let table = if is_lte { "lte" } else { "nr" };
    let (height, z) = (d.within(mast), d.within(ue));
    let mobility = match d.below(2) {
        0 => format!("[{}, 0, {z}]", d.within(distance)),
        // At most 2.4 m until the end.
        _ => {
            let (x, speed) = (d.within(distance.start() + 3.0..=distance.end() - 3.0), d.within(-40.0..=40.0));
            format!("{{ kind = \"line\", from = [{x}, 0, {z}], velocity = [{speed}, 0, 0] }}")
        }
    };
    let fading = if is_lte { ["", "fading = \"epa\"", "fading = \"etu\""] } else { ["", "", "fading = \"tdla30\""] };
    format!(
        "duration = \"60 ms\"\nseed = {seed}\nrecord = {{ samples = \"7 ms\" }}\n{network}\
         cells = [{{ position = [0, 0, {height}], power_dbm = {} }}]\n[[{table}.ues]]\nname = \"ue\"\n\
         mobility = {mobility}\nchannel = {{ {model} }}\n{}\n{}\n\
         [[flows]]\nname = \"down\"\n[[flows]]\nname = \"up\"\nfrom = \"ue\"\nto = \"server\"\n",
        d.within(0.0..=46.0),
        d.one_of(&fading),
        d.one_of(&["", "blockage = \"outdoor\"", "blockage = \"indoor\""]),
    )
}

#[test]
fn what_is_received_is_a_number_wherever_a_model_holds() {
    for seed in 0..200 {
        let text = scenario(seed);
        let tables = run(&text);
        assert!(tables.radio.iter().count() > 5, "{text}");
        for row in tables.radio.iter() {
            let numbers = [row.rsrp_dbm, row.rsrq_db, row.blocked_db, row.dl_mbps, row.ul_mbps];
            assert!(numbers.iter().all(|x| x.is_finite()), "{numbers:?}\n{text}");
            assert!(row.sinr_db.is_none_or(f64::is_finite), "{:?}\n{text}", row.sinr_db);
            // No more than 46 dBm of the cell's, less than a metre of free space.
            assert!(row.rsrp_dbm < 46.0, "{}\n{text}", row.rsrp_dbm);
        }
    }
}
