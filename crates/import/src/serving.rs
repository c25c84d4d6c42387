//! Recorded channels of the cells that served a UE, one after the other.
//!
//! A UE measures and tells its serving cell. Of cells that do not serve nothing is recorded: just before and after its time,
//! one is taken for a little weaker than the one that serves, so that handovers happen when they did, and otherwise for out of
//! reach.

use std::collections::BTreeMap;

use channel::recorded::Quantity;

use crate::Error;
use crate::channel::Channel;

/// Maximum number of cells of a scenario.
pub const MOST_CELLS: usize = 400;
/// Maximum number of samples of all cells together.
pub const MOST_SAMPLES: usize = 2_000_000;
/// By how much a cell that does not serve is weaker than the one that does, around its time: more than event A3 needs.
pub const MARGIN_DB: f64 = 6.0;
/// The power of a cell that is out of reach.
pub const AWAY_DBM: f64 = -140.0;
/// The SINR of a cell that is out of reach.
const AWAY_DB: f64 = -50.0;

/// A moment at which a cell served.
#[derive(Clone, Debug, PartialEq)]
pub struct Serving {
    /// Seconds since the beginning, not decreasing.
    pub at_s: f64,
    /// The cell's name.
    pub cell: String,
    /// Its power in dBm, or its SINR in dB.
    pub value: f64,
}

/// Returns the channels of the cells that served; `quantity` is a received power or an SINR. A cell that does not serve is
/// weaker by `margin_db` than the one that does, around its time: [`MARGIN_DB`], or nothing for an SINR beside a received power,
/// which alone decides on handovers.
///
/// # Errors
/// [`Error::File`] if there are more than [`MOST_CELLS`] or [`MOST_SAMPLES`], or a value is out of the quantity's range.
pub fn channels(serving: &[Serving], quantity: Quantity, margin_db: f64) -> Result<BTreeMap<String, Channel>, Error> {
    let away = if quantity == Quantity::Rsrp { AWAY_DBM } else { AWAY_DB };
    // Times during which one cell served.
    let spans: Vec<&[Serving]> = serving.chunk_by(|a, b| a.cell == b.cell).collect();
    let mut samples: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    // Cells that are not out of reach; at most the latest, and those before and after it.
    let mut near_cells: Vec<&str> = Vec::new();
    let mut count = 0;
    for (number, span) in spans.iter().enumerate() {
        let around = |offset: usize| spans.get(number.wrapping_add(offset)).map(|span| span[0].cell.as_str());
        let (cell, begin) = (span[0].cell.as_str(), span[0].at_s);
        for (near, serves) in [(Some(cell), true), (around(usize::MAX), false), (around(1), false)] {
            let Some(near) = near.filter(|near| serves || *near != cell) else { continue };
            let margin = if serves { 0.0 } else { margin_db };
            let of_it = samples.entry(near).or_default();
            // The neighbour of before may be that of after.
            if of_it.last().is_some_and(|last| last.0 >= begin) {
                continue;
            }
            of_it.extend(span.iter().map(|one| (one.at_s, (one.value - margin).max(away))));
            count += span.len();
            if !near_cells.contains(&near) {
                near_cells.push(near);
            }
        }
        // It was out of reach before its first time, and after the time of the next cell.
        near_cells.retain(|near| {
            let of_it = samples.entry(near).or_default();
            let is_gone = of_it.last().is_some_and(|last| last.0 < begin);
            if is_gone {
                of_it.push((begin, away));
                count += 1;
            }
            !is_gone
        });
        if samples.len() > MOST_CELLS || count > MOST_SAMPLES {
            let what = format!("more than {MOST_CELLS} cells or {MOST_SAMPLES} samples: take a shorter part");
            return Err(Error::File(what));
        }
    }
    samples
        .into_iter()
        .map(|(cell, mut samples)| {
            if samples.first().is_some_and(|first| first.0 > 0.0) {
                samples.insert(0, (0.0, away));
            }
            Ok((cell.to_owned(), Channel::new(quantity, samples)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serving(all: &[(f64, &str, f64)]) -> Vec<Serving> {
        all.iter().map(|&(at_s, cell, value)| Serving { at_s, cell: cell.to_owned(), value }).collect()
    }

    #[test]
    fn a_cell_is_near_just_before_and_after_its_time_and_else_away() {
        let drive = serving(&[
            (0.0, "a", -80.0),
            (5.0, "a", -90.0),
            (10.0, "b", -85.0),
            (20.0, "c", -95.0),
            (30.0, "a", -70.0),
        ]);
        let channels = channels(&drive, Quantity::Rsrp, MARGIN_DB).unwrap();
        let of = |cell: &str| channels[cell].samples.clone();
        assert_eq!(of("a"), [(0.0, -80.0), (5.0, -90.0), (10.0, -91.0), (20.0, -101.0), (30.0, -70.0)]);
        assert_eq!(of("b"), [(0.0, -86.0), (5.0, -96.0), (10.0, -85.0), (20.0, -101.0), (30.0, AWAY_DBM)]);
        assert_eq!(of("c"), [(0.0, AWAY_DBM), (10.0, -91.0), (20.0, -95.0), (30.0, -76.0)]);
    }

    #[test]
    fn a_cell_that_is_on_both_sides_of_another_has_one_value_at_a_time() {
        let drive = serving(&[(0.0, "a", -80.0), (1.0, "b", -81.0), (2.0, "a", -82.0)]);
        let channels = channels(&drive, Quantity::Rsrp, MARGIN_DB).unwrap();
        assert_eq!(channels["a"].samples, [(0.0, -80.0), (1.0, -87.0), (2.0, -82.0)]);
        assert_eq!(channels["b"].samples, [(0.0, -86.0), (1.0, -81.0), (2.0, -88.0)]);
    }

    #[test]
    fn a_cell_is_near_again_when_it_serves_after_it_was_away() {
        let drive = serving(&[(0.0, "a", 10.0), (1.0, "b", 8.0), (2.0, "c", 6.0), (3.0, "d", 4.0), (4.0, "a", 2.0)]);
        let channels = channels(&drive, Quantity::Sinr, MARGIN_DB).unwrap();
        assert_eq!(channels["a"].samples, [(0.0, 10.0), (1.0, 2.0), (2.0, AWAY_DB), (3.0, -2.0), (4.0, 2.0)]);
    }
}
