//! The queue's invariants, for tests: what it counts and links, recounted from the records.

use super::{EVER_RETRANSMITTED, LINK_MASK, LINKED, LOST, NIL, PACKET, Queue, RETRANSMITTED, Record, SACKED};

impl Queue {
    /// Panics if what the queue keeps does not agree with its records.
    pub(crate) fn audit(&self, sack: bool) {
        let records: Vec<(u64, &Record)> = self.ids().map(|id| (id, self.get(id))).collect();
        let count = |flags| records.iter().filter(|(_, record)| record.has(flags)).count() as u32;
        assert_eq!(self.lost_out, count(LOST), "lost");
        assert_eq!(self.retrans_out, count(RETRANSMITTED), "retransmitted");
        assert_eq!(self.heads, count(PACKET), "packets");
        // Without SACK, duplicates stand for segments, whichever they are.
        let sacked: u64 = records.iter().filter(|(_, record)| record.has(SACKED)).map(|(_, r)| r.end() - r.seq).sum();
        assert_eq!(self.sacked.bytes(), sacked, "bytes that are selectively acknowledged");
        if sack {
            assert_eq!(self.sacked_out, count(SACKED), "selectively acknowledged");
        }
        assert!(self.sacked_out + self.lost_out <= self.len() + self.retrans_out, "more has left than was sent");
        for pair in records.windows(2) {
            assert_eq!(pair[0].1.end(), pair[1].1.seq, "segments follow each other");
        }
        for (id, record) in &records {
            assert!(!(record.has(LOST) && record.has(SACKED)), "{id} is lost and selectively acknowledged");
            assert!(!record.has(RETRANSMITTED) || record.has(EVER_RETRANSMITTED), "{id} was retransmitted and never");
            let waits = record.has(LOST) && !record.has(RETRANSMITTED);
            assert!(!waits || self.lost.iter().any(|other| other.0 == *id), "{id} waits, and is not in the heap");
            assert_eq!(record.has(LINKED), !waits && !record.has(SACKED), "{id} may still be found lost");
        }
        let mut linked = Vec::new();
        let (mut link, mut before, mut met_edge) = (self.head, NIL, self.edge == NIL);
        while link != NIL {
            let record = self.get(u64::from(link));
            assert_eq!(record.prev, before, "links in both directions");
            linked.push((record.order, link));
            met_edge |= link == self.edge;
            (before, link) = (link, record.next);
        }
        assert_eq!(self.tail, before, "the end of the list");
        assert!(met_edge, "the edge is in the list");
        assert!(linked.is_sorted(), "the list is in the order of transmissions");
        let mut expected: Vec<(u64, u32)> =
            records.iter().filter(|(_, r)| r.has(LINKED)).map(|&(id, r)| (r.order, (id & LINK_MASK) as u32)).collect();
        expected.sort_unstable();
        assert_eq!(linked, expected, "the list holds what may be found lost");
    }
}
