//! Counts rows by their verdicts, marks and origins.

use crate::check::Origin;
use crate::compare::{Row, Verdict};
use core::fmt;
use std::collections::BTreeMap;

/// Rows by verdict. The paper's own rows are apart from those of its artefact and from ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Predictions that hold.
    pub held: usize,
    /// Rows by which a parameter was chosen, and how many of them hold.
    pub fitted: Tally,
    /// Rows that hold by construction, or should.
    pub given: Tally,
    /// Predictions that do not hold.
    pub missed: usize,
    /// Rows that nothing physical could hold.
    pub impossible: usize,
    /// Rows that cannot be measured yet.
    pub not_possible: usize,
    /// Rows of the paper's artefact, whatever their marks.
    pub artefact: Tally,
    /// Rows of ours, whatever their marks.
    pub ours: Tally,
}

/// Rows, and how many of them hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All rows.
    pub all: usize,
    /// Those that hold.
    pub held: usize,
}

impl Tally {
    fn add(&mut self, verdict: Verdict) {
        self.all += 1;
        self.held += usize::from(verdict == Verdict::Held);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} of {}", self.held, self.all)
    }
}

impl Counts {
    /// Counts rows.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Counts {
        let mut counts = Counts::default();
        for row in rows {
            match (row.origin, row.verdict) {
                (Origin::Ours, verdict) => counts.ours.add(verdict),
                (Origin::Artefact, verdict) => counts.artefact.add(verdict),
                (Origin::Paper, verdict) if row.fitted.is_some() => counts.fitted.add(verdict),
                (Origin::Paper, verdict) if row.given.is_some() => counts.given.add(verdict),
                (Origin::Paper, Verdict::Held) => counts.held += 1,
                (Origin::Paper, Verdict::Missed) => counts.missed += 1,
                (Origin::Paper, Verdict::Impossible) => counts.impossible += 1,
                (Origin::Paper, Verdict::NotPossible) => counts.not_possible += 1,
            }
        }
        counts
    }

    /// Returns the number of the paper's own rows.
    pub fn own(&self) -> usize {
        self.held + self.fitted.all + self.given.all + self.missed + self.impossible + self.not_possible
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} held, {} missed", self.held, self.missed)?;
        let more = [(self.impossible, "impossible"), (self.not_possible, "not possible yet")];
        for (count, what) in more.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, ", {count} {what}")?;
        }
        let apart = [
            (self.fitted, "fitted"),
            (self.given, "given"),
            (self.artefact, "of the artefact"),
            (self.ours, "of ours"),
        ];
        let mut sign = "; held of those counted apart:";
        for (tally, what) in apart.into_iter().filter(|(tally, _)| tally.all > 0) {
            write!(f, "{sign} {tally} {what}")?;
            sign = ",";
        }
        Ok(())
    }
}

/// Counts the rows of each paper, in the order of their names, and all together. A variant asks the same rows again, so the sum
/// is without variants, unless there is nothing else.
pub fn counts_by_paper(rows: &[Row]) -> (Vec<(String, Counts)>, Counts) {
    let mut papers: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        papers.entry(&row.paper).or_default().push(row);
    }
    let is_variant = |row: &&Row| row.paper.contains('@');
    let only_variants = rows.iter().all(|row| is_variant(&row));
    let sum = Counts::of(rows.iter().filter(|row| only_variants || !is_variant(row)));
    (papers.into_iter().map(|(paper, rows)| (paper.to_owned(), Counts::of(rows))).collect(), sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_rows_and_those_of_others_are_counted_apart() {
        let row = |origin, verdict| Row { origin, verdict, paper: "a".into(), ..Row::default() };
        let text = |text: &str| Some(text.to_owned());
        let own = |verdict| row(Origin::Paper, verdict);
        let rows = [
            own(Verdict::Held),
            own(Verdict::Missed),
            own(Verdict::Impossible),
            own(Verdict::NotPossible),
            Row { fitted: text("a buffer"), ..own(Verdict::Held) },
            Row { fitted: text("a buffer"), ..own(Verdict::Missed) },
            Row { given: text("the distances"), ..own(Verdict::Held) },
            row(Origin::Artefact, Verdict::Missed),
            Row { fitted: text("a buffer"), ..row(Origin::Ours, Verdict::Held) },
            Row { paper: "b".into(), ..row(Origin::Ours, Verdict::Held) },
        ];
        let counts = Counts::of(&rows);
        assert_eq!((counts.held, counts.missed, counts.impossible, counts.not_possible), (1, 1, 1, 1));
        assert_eq!((counts.fitted, counts.given), (Tally { all: 2, held: 1 }, Tally { all: 1, held: 1 }));
        assert_eq!((counts.artefact, counts.ours), (Tally { all: 1, held: 0 }, Tally { all: 2, held: 2 }));
        assert_eq!(counts.own(), 7);
        let text = "1 held, 1 missed, 1 impossible, 1 not possible yet; held of those counted apart: 1 of 2 fitted, 1 of 1 given, \
                    0 of 1 of the artefact, 2 of 2 of ours";
        assert_eq!(counts.to_string(), text);
        assert_eq!(Counts { held: 2, ..Counts::default() }.to_string(), "2 held, 0 missed");
        let (by_paper, sum) = counts_by_paper(&rows);
        assert_eq!(sum, counts);
        assert_eq!(
            by_paper.iter().map(|(paper, counts)| (paper.as_str(), counts.ours.all)).collect::<Vec<_>>(),
            [("a", 1), ("b", 1)]
        );
    }

    #[test]
    fn a_variant_does_not_count_twice() {
        let row = |paper: &str| Row { verdict: Verdict::Held, paper: paper.into(), ..Row::default() };
        let (by_paper, sum) = counts_by_paper(&[row("a"), row("a@as-run"), row("b")]);
        assert_eq!((by_paper.len(), sum.held), (3, 2));
        assert_eq!(counts_by_paper(&[row("a@as-run")]).1.held, 1);
    }
}
