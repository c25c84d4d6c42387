//! Measured values as the integers of the standards' tables.
//!
//! | quantity | LTE (36.133) | NR (38.133) |
//! | --- | --- | --- |
//! | RSRP | table 9.1.4-1: 0 below -140 dBm, 1 dB steps, 97 from -44 dBm | table 10.1.6.1-1: 0 below -156 dBm, 126 from -31 dBm |
//! | RSRQ | table 9.1.7-1: 0 below -19.5 dB, 0.5 dB steps, 34 from -3 dB | table 10.1.11.1-1: 0 below -43 dB, 127 from 20 dB |
//! | SINR | table 9.1.17-1: 0 below -23 dB, 0.5 dB steps, 127 from 40 dB | table 10.1.16.1-1: the same |

use channel::tables::{RSRP_DBM, RSRQ_DB, SINR_DB};

/// Returns the step in which a value lies: 0 below `low`, then one per `step`, at most `most`.
fn index(value: f64, low: f64, step: f64, most: i32) -> i32 {
    if value.is_nan() || value < low {
        return 0;
    }
    let steps = (value - low) / step;
    if steps >= f64::from(most) { most } else { (steps as i32 + 1).min(most) }
}

pub(super) fn lte_rsrp(dbm: f64) -> i32 {
    index(dbm, -140.0, 1.0, 97)
}

pub(super) fn lte_rsrq(db: f64) -> i32 {
    index(db, -19.5, 0.5, 34)
}

pub(super) fn nr_rsrp(dbm: f64) -> i32 {
    index(dbm, *RSRP_DBM.start(), 1.0, 126)
}

pub(super) fn nr_rsrq(db: f64) -> i32 {
    index(db, *RSRQ_DB.start(), 0.5, 127)
}

pub(super) fn sinr(db: f64) -> i32 {
    index(db, *SINR_DB.start(), 0.5, 127)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_and_steps_are_those_of_the_tables() {
        assert_eq!([-140.1, -140.0, -139.0, -44.1, -44.0, 0.0].map(lte_rsrp), [0, 1, 2, 96, 97, 97]);
        assert_eq!([-19.6, -19.5, -19.0, -3.5, -3.0].map(lte_rsrq), [0, 1, 2, 33, 34]);
        assert_eq!([-157.0, -156.0, -31.1, -31.0].map(nr_rsrp), [0, 1, 125, 126]);
        assert_eq!([-43.1, -43.0, 19.9, 20.0].map(nr_rsrq), [0, 1, 126, 127]);
        assert_eq!([-24.0, -23.0, 39.9, 40.0, f64::NAN, f64::INFINITY].map(sinr), [0, 1, 126, 127, 0, 127]);
    }
}
