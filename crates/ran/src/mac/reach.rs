//! The weakest uplink with which a cell hears a UE.
//!
//! A cell that decodes nothing from a UE gets no acknowledgements, no channel reports and no requests either: their channel
//! (PUCCH) needs about as much power as the most robust block of data. After N310 measurements without them, it sends the UE
//! no more data, except RRC messages. In the standards, a UE whose requests and random accesses remain unanswered declares a
//! radio link failure (36.331 5.3.11.3, 38.331 5.3.10.3), and so does RLC at the end of its retransmissions.
//!
//! Deviation: what a UE tries in vain is not simulated one by one. While the cell does not hear it, each measurement counts
//! as out of sync, so that the link fails after N310 of them and T310; until then, feedback is free of errors. Fast fading
//! and interference do not count.

use channel::{Direction, Soft};

use crate::rat::{Formats, Rat};

/// The range in dB in which the SINR is sought, and steps that halve it.
const RANGE_DB: (f64, f64) = (-40.0, 40.0);
const HALVINGS: u32 = 20;

/// Returns the SINR in dB on one resource block below which a cell of `rat` does not hear a UE: the most robust block fails in
/// all of its `transmissions` with a probability of more than 90 %. Negative infinity if feedback is ideal.
pub(crate) fn least_sinr_db(rat: Rat, transmissions: u8) -> f64 {
    if !rat.reports().include_buffers() {
        return f64::NEG_INFINITY;
    }
    let formats = rat.formats();
    let (mut below, mut above) = RANGE_DB;
    for _ in 0..HALVINGS {
        let middle = (below + above) / 2.0;
        if is_lost(&formats, transmissions, middle) { below = middle } else { above = middle }
    }
    above
}

fn is_lost(formats: &Formats, transmissions: u8, sinr_db: f64) -> bool {
    let mcs = formats.least_mcs(1);
    let modulation = formats.modulation(Direction::Uplink, mcs);
    let information = channel::mutual_information(modulation, channel::linear(sinr_db) as f32);
    let mut soft = Soft::default();
    for _ in 0..transmissions {
        soft.add(information, formats.coded_bits(Direction::Uplink, modulation, 1, 1));
    }
    formats.block_error(Direction::Uplink, mcs, formats.uplink_bits(mcs, 1), &soft) > 1.0 - channel::phy::TARGET
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Duplex, Nr};
    use channel::tables::nr::Numerology;

    #[test]
    fn more_transmissions_are_heard_from_further_away() {
        let nr = Rat::Nr(Nr::new(Numerology::Khz30, Duplex::Fdd));
        for rat in [Rat::Lte, nr] {
            let [one, four] = [1, 4].map(|transmissions| least_sinr_db(rat, transmissions));
            assert!((4.0..7.5).contains(&(one - four)), "four times the energy, and a lower code rate: {one} {four}");
            assert!((-12.0..-6.0).contains(&four), "{rat:?}: {four}");
        }
        assert_eq!(least_sinr_db(Rat::LteIdeal, 4), f64::NEG_INFINITY);
    }
}
