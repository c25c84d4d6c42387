//! Segments for a time–sequence plot, in bounded memory: neighbours are merged when there are too many.

use units::Time;

/// What a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Data for the first time, from `start` to `end`; neighbours may have been merged.
    Data,
    /// Data again.
    Retransmission,
    /// Data that was overtaken.
    OutOfOrder,
    /// An acknowledgement up to `start`, and the receive window up to `end`.
    Ack,
    /// A SACK block.
    Sack,
    /// A D-SACK.
    Dsack,
}

impl Item {
    /// Whether neighbours may be merged.
    fn is_plain(self) -> bool {
        matches!(self, Item::Data | Item::Ack)
    }
}

/// A segment, an acknowledgement or a SACK block. Sequence numbers are relative to the connection's first and do not wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// When it passed.
    pub at: Time,
    /// Where it begins.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// What it is.
    pub item: Item,
}

/// The rows of one direction.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    rows: Vec<Row>,
    /// Of so many neighbours, one row is made; as a power of two.
    merged: u32,
    /// The latest rows of data and acknowledgements that may still grow, and how many they stand for.
    open: [Option<(usize, u32)>; 2],
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Adds a row, or makes it part of the one before. Returns whether there is one more.
    pub(crate) fn push(&mut self, row: Row) -> bool {
        if !row.item.is_plain() || self.merged == 0 {
            self.rows.push(row);
            return true;
        }
        let open = &mut self.open[usize::from(row.item == Item::Ack)];
        if let Some((at, count)) = open
            && *count < 1 << self.merged
            && let Some(last) = self.rows.get_mut(*at)
            && merge(last, &row)
        {
            *count += 1;
            return false;
        }
        *open = Some((self.rows.len(), 1));
        self.rows.push(row);
        true
    }

    /// Merges neighbours, so that about half of the rows are left.
    pub(crate) fn thin(&mut self) {
        let wanted = self.rows.len() / 2;
        self.merged = (self.merged + 1).min(30);
        self.open = [None; 2];
        let mut kept: Vec<Row> = Vec::with_capacity(wanted + 1);
        let mut open: [Option<usize>; 2] = [None; 2];
        for &row in &self.rows {
            let place = &mut open[usize::from(row.item == Item::Ack)];
            if row.item.is_plain()
                && let Some(last) = place.take().and_then(|at| kept.get_mut(at))
                && merge(last, &row)
            {
                continue;
            }
            if row.item.is_plain() {
                *place = Some(kept.len());
            }
            kept.push(row);
        }
        if kept.len() > wanted {
            // Only what has not been retransmitted is interesting less: then every second of all.
            let mut number = 0;
            let spare = kept.len() - wanted;
            kept.retain(|_| {
                number += 1;
                number % 2 == 0 || number > 2 * spare
            });
        }
        self.rows = kept;
    }

    /// The rows in the order of time.
    pub(crate) fn take(&mut self) -> Vec<Row> {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by_key(|row| row.at);
        rows
    }
}

/// Makes `row` part of the one before, if they are neighbours.
fn merge(last: &mut Row, row: &Row) -> bool {
    match row.item {
        Item::Data if last.end == row.start => last.end = row.end,
        Item::Ack if row.start >= last.start => *last = *row,
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: u64, item: Item) -> Row {
        Row { at: Time::from_nanos(n), start: n * 10, end: n * 10 + 10, item }
    }

    #[test]
    fn thinning_keeps_the_whole_line_and_the_retransmissions() {
        let mut rows = Rows::default();
        for n in 0..1_000 {
            rows.push(row(n, Item::Data));
            rows.push(row(n, Item::Ack));
            if n % 50 == 0 {
                rows.push(row(n, Item::Retransmission));
            }
        }
        let before = rows.len();
        rows.thin();
        assert!(rows.len() <= before / 2 + 21, "{} of {before}", rows.len());
        for n in 1_000..2_000 {
            rows.push(row(n, Item::Data));
        }
        let rows = rows.take();
        assert!(rows.is_sorted_by_key(|row| row.at));
        let of = |item: Item| rows.iter().filter(move |row| row.item == item);
        assert!(of(Item::Retransmission).count() >= 10);
        assert_eq!(of(Item::Data).map(|row| row.end).max(), Some(20_000));
        let later: Vec<_> = of(Item::Data).filter(|row| row.start >= 10_000).collect();
        assert_eq!(later.len(), 500);
        assert!(later.windows(2).all(|pair| pair[0].end == pair[1].start));
    }

    #[test]
    fn nothing_but_retransmissions_is_halved_too() {
        let mut rows = Rows::default();
        (0..1_000).for_each(|n| {
            rows.push(row(n, Item::Retransmission));
        });
        rows.thin();
        assert_eq!(rows.len(), 500);
    }
}
