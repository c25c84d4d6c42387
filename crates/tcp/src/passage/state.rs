//! What a sender knows of a PEP on the way.

use crate::ranges::{Range, RangeSet};
use cc::Listens;
use units::{Span, Time};
use wire::report::Key;

/// A sender that has heard a PEP and hears none any more announces itself again, at first and at most after so long: the PEP may
/// have been started anew, or another one may be on the way.
pub(super) const ANNOUNCE_FIRST: Span = Span::from_secs(1);
pub(super) const ANNOUNCE_LAST: Span = Span::from_secs(64);

/// What is known of a PEP on the way.
#[derive(Debug)]
pub(crate) struct Pep {
    pub(super) retransmit: bool,
    /// Reports are taken with a tag of this key, or else without one.
    pub(super) key: Option<Key>,
    /// A report was taken: when the next announcement is due if there are no more, and how long it is to the one after it.
    pub(super) heard: bool,
    pub(super) announce_at: Time,
    pub(super) announce_after: Span,
    /// What has passed, from SND.UNA on.
    pub(super) passed: RangeSet,
    /// Bytes that have passed and do not make a segment yet.
    pub(super) rest: u64,
    /// The echo of the last report that was taken: an older one is late or was replayed.
    pub(super) echo: u32,
    /// `Queue::unannounced` and `Queue::announced` when the controller last heard of a loss, and whether that was of
    /// announced losses alone.
    pub(super) unannounced: u32,
    pub(super) announced: u32,
    pub(super) filtered: bool,
    /// One past the highest segment that a report named as missing.
    pub(super) missing_below: u64,
}

impl Pep {
    /// What is known of it at first, if the controller listens for its reports.
    pub(crate) fn new(listens: Listens, key: Option<Key>, now: Time) -> Option<Box<Pep>> {
        let pep = || Pep {
            retransmit: listens.early_retransmission,
            key,
            heard: false,
            announce_at: Time::ZERO,
            announce_after: ANNOUNCE_FIRST,
            passed: RangeSet::default(),
            rest: 0,
            echo: crate::millis(now),
            unannounced: 0,
            announced: 0,
            filtered: false,
            missing_below: 0,
        };
        listens.passages.then(|| Box::new(pep()))
    }

    /// Notes that the part of `range` that was not known to have passed has; gives its bytes, and each piece to `each`.
    pub(super) fn pass(&mut self, mut range: Range, mut each: impl FnMut(Range)) -> u64 {
        let mut bytes = 0;
        while !range.is_empty() {
            let new = self.passed.gap(&range);
            if !new.is_empty() {
                self.passed.insert(new);
                bytes += new.end - new.start;
                each(new);
            }
            range.start = new.end.max(range.start + 1);
            if new.is_empty() {
                break;
            }
        }
        bytes
    }

    /// Whole segments of `mss` among `bytes` more.
    pub(super) fn segments(&mut self, bytes: u64, mss: u32) -> u32 {
        self.rest += bytes;
        let segments = self.rest / u64::from(mss);
        self.rest %= u64::from(mss);
        segments as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pep() -> Pep {
        let listens = Listens { passages: true, ..Listens::default() };
        *Pep::new(listens, None, Time::from_nanos(7_000_000)).expect("it listens")
    }

    #[test]
    fn who_does_not_listen_knows_nothing_of_a_pep() {
        assert!(Pep::new(Listens::default(), None, Time::ZERO).is_none());
        let listens = Listens { passages: true, early_retransmission: true, ..Listens::default() };
        let pep = Pep::new(listens, None, Time::from_nanos(7_000_000)).expect("it listens");
        // Reports from before the connection are old.
        assert_eq!((pep.retransmit, pep.echo, pep.heard), (true, 7, false));
        assert!(!self::pep().retransmit);
    }

    #[test]
    fn only_what_was_not_known_passes_piece_by_piece() {
        let mut pep = pep();
        let mut pass = |start, end| {
            let mut pieces = Vec::new();
            let bytes = pep.pass(Range::new(start, end), |piece| pieces.push((piece.start, piece.end)));
            (bytes, pieces)
        };
        assert_eq!(pass(10, 20), (10, vec![(10, 20)]));
        assert_eq!(pass(30, 40), (10, vec![(30, 40)]));
        assert_eq!(pass(5, 50), (25, vec![(5, 10), (20, 30), (40, 50)]));
        assert_eq!(pass(5, 50), (0, vec![]));
        assert_eq!(pass(49, 51), (1, vec![(50, 51)]));
        assert_eq!(pass(60, 60), (0, vec![]));
    }

    #[test]
    fn bytes_make_whole_segments_and_the_rest_waits() {
        let mut pep = pep();
        assert_eq!([1_500, 499, 1, 2_999, 1].map(|bytes| pep.segments(bytes, 1_000)), [1, 0, 1, 2, 1]);
        assert_eq!(pep.rest, 0);
    }
}
