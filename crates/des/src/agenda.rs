//! The event queue: a heap keyed by (time, sequence), with at most one live entry per part.
//!
//! A part's deadline usually moves later (every acknowledgement pushes back the retransmission timer). In that case
//! nothing needs to be done: the part is called at the earlier time, finds nothing due, and is entered again with its
//! current deadline. Only a deadline that moves earlier costs a second entry; the first one is recognised as stale by
//! its sequence number and skipped. Entries with equal times are returned in the order in which they were made.

use units::Time;

/// The number of a part, from [`Agenda::add_part`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part(pub u32);

/// Number of bits of a ticket that hold the part's number; the sequence number in the bits above orders tickets.
const PART_BITS: u32 = 24;

/// The time at which a part is called, and the order among entries for that time.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    at: Time,
    /// The sequence number and the part's number.
    ticket: u64,
}

impl Entry {
    #[inline]
    fn is_before(&self, other: &Entry) -> bool {
        let key = |entry: &Entry| u128::from(entry.at.as_nanos()) << 64 | u128::from(entry.ticket);
        key(self) < key(other)
    }

    #[inline]
    fn part(&self) -> usize {
        (self.ticket & ((1 << PART_BITS) - 1)) as usize
    }
}

/// The entry of a part without a deadline.
const IDLE: Entry = Entry { at: Time::MAX, ticket: u64::MAX };

/// The event queue. Time never goes back.
#[derive(Default)]
pub struct Agenda {
    now: Time,
    sequence: u64,
    /// A binary heap: no entry is earlier than its parent.
    heap: Vec<Entry>,
    /// Whether the first entry's part has been called. That part usually makes the next entry, which then replaces the
    /// first.
    called: bool,
    /// For each part, its live entry.
    armed: Vec<Entry>,
    free: Vec<u32>,
    handled: u64,
}

impl Agenda {
    /// Creates an empty agenda at time zero.
    pub fn new() -> Agenda {
        Agenda::default()
    }

    /// Returns the number of a new part. Numbers of removed parts are reused.
    pub fn add_part(&mut self) -> Part {
        Part(self.free.pop().unwrap_or_else(|| {
            self.armed.push(IDLE);
            assert!(self.armed.len() < 1 << PART_BITS, "more parts than an agenda can number");
            (self.armed.len() - 1) as u32
        }))
    }

    /// Removes `part`: it is not called again.
    pub fn remove_part(&mut self, part: Part) {
        self.armed[part.0 as usize] = IDLE;
        self.free.push(part.0);
    }

    /// Ensures that `part` is called no later than `at`; a time in the past means now, and `None` has no effect.
    #[inline]
    pub fn wake(&mut self, part: Part, at: Option<Time>) {
        let Some(at) = at else { return };
        let armed = self.armed[part.0 as usize];
        if armed.at <= at && armed != IDLE {
            return;
        }
        self.enter(part, at.max(self.now));
    }

    fn enter(&mut self, part: Part, at: Time) {
        let entry = Entry { at, ticket: self.sequence << PART_BITS | u64::from(part.0) };
        self.sequence += 1;
        self.armed[part.0 as usize] = entry;
        if std::mem::take(&mut self.called) {
            self.sink(entry);
        } else {
            self.rise(entry);
        }
    }

    /// Returns the next part to call, or `None` if nothing is due up to and including `until`. Sets [`Agenda::now`].
    #[inline]
    pub fn next(&mut self, until: Time) -> Option<Part> {
        loop {
            if std::mem::take(&mut self.called)
                && let Some(last) = self.heap.pop()
                && !self.heap.is_empty()
            {
                self.sink(last);
            }
            let entry = *self.heap.first()?;
            if entry.at > until {
                return None;
            }
            self.called = true;
            let armed = &mut self.armed[entry.part()];
            if armed.ticket != entry.ticket {
                continue;
            }
            *armed = IDLE;
            self.now = entry.at;
            self.handled += 1;
            return Some(Part(entry.part() as u32));
        }
    }

    /// Replaces the first entry by `entry`, and sifts it down.
    #[inline]
    fn sink(&mut self, entry: Entry) {
        let heap = &mut self.heap[..];
        let (mut place, mut below) = (0, 1);
        while below < heap.len() {
            if below + 1 < heap.len() && heap[below + 1].is_before(&heap[below]) {
                below += 1;
            }
            if entry.is_before(&heap[below]) {
                break;
            }
            heap[place] = heap[below];
            place = below;
            below = 2 * place + 1;
        }
        heap[place] = entry;
    }

    /// Appends `entry` and sifts it up.
    fn rise(&mut self, entry: Entry) {
        let mut place = self.heap.len();
        self.heap.push(entry);
        while place > 0 {
            let above = (place - 1) / 2;
            if self.heap[above].is_before(&entry) {
                break;
            }
            self.heap[place] = self.heap[above];
            place = above;
        }
        self.heap[place] = entry;
    }

    /// Advances the time to `now`; nothing may be due until then ([`Agenda::next`] has returned `None`).
    pub fn pass(&mut self, now: Time) {
        debug_assert!(self.heap.first().is_none_or(|entry| entry.at > now), "something is due");
        self.now = self.now.max(now);
    }

    /// Returns a time before which nothing is due; `None` if there are no entries.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.heap.first().map(|entry| entry.at)
    }

    /// Returns the current time.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns how many calls [`Agenda::next`] has returned.
    pub fn handled(&self) -> u64 {
        self.handled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u64) -> Option<Time> {
        Some(Time::from_nanos(n))
    }

    fn order(agenda: &mut Agenda) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| agenda.next(Time::MAX).map(|p| (agenda.now().as_nanos(), p.0))).collect()
    }

    #[test]
    fn entries_with_equal_times_are_called_in_the_order_of_entry() {
        let mut agenda = Agenda::new();
        let parts: Vec<Part> = (0..4).map(|_| agenda.add_part()).collect();
        for &i in &[2, 0, 3, 1] {
            agenda.wake(parts[i], at(5));
        }
        assert_eq!(order(&mut agenda), [(5, 2), (5, 0), (5, 3), (5, 1)]);
    }

    #[test]
    fn an_entry_in_the_past_is_due_now() {
        let mut agenda = Agenda::new();
        let (a, b) = (agenda.add_part(), agenda.add_part());
        agenda.wake(a, at(3));
        assert_eq!(agenda.poll_timeout(), at(3));
        assert!(agenda.next(Time::from_nanos(5)).is_some() && agenda.next(Time::from_nanos(5)).is_none());
        agenda.pass(Time::from_nanos(5));
        agenda.wake(b, at(4));
        assert_eq!((agenda.now(), agenda.poll_timeout()), (Time::from_nanos(5), at(5)));
    }

    #[test]
    fn a_part_is_called_once_at_its_earliest_deadline() {
        let mut agenda = Agenda::new();
        let (a, b) = (agenda.add_part(), agenda.add_part());
        agenda.wake(a, at(9));
        agenda.wake(b, at(7));
        agenda.wake(a, at(3));
        agenda.wake(a, at(8));
        assert_eq!(order(&mut agenda), [(3, 0), (7, 1)]);
    }

    #[test]
    fn deadlines_are_called_in_order_while_parts_set_new_ones() {
        let mut agenda = Agenda::new();
        let parts: Vec<Part> = (0..200).map(|_| agenda.add_part()).collect();
        let spread = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52;
        for (n, &part) in (0..).zip(&parts) {
            agenda.wake(part, at(spread(n)));
        }
        let mut deadlines: Vec<Option<u64>> = (0..200).map(|n| Some(spread(n))).collect();
        for n in 0..5_000 {
            let part = agenda.next(Time::MAX).unwrap();
            let now = agenda.now().as_nanos();
            assert_eq!(deadlines.iter().flatten().min(), Some(&now));
            assert_eq!(deadlines[part.0 as usize].take(), Some(now));
            // None, one or two new deadlines, to cover all ways of refilling the first place.
            for i in 0..n % 3 {
                let other = (u64::from(part.0) + i * spread(n)) % 200;
                let later = now + spread(n + i);
                let deadline = &mut deadlines[other as usize];
                *deadline = Some(deadline.map_or(later, |d| d.min(later)));
                agenda.wake(parts[other as usize], at(later));
            }
            agenda.wake(part, at(now + 5_000));
            let deadline = &mut deadlines[part.0 as usize];
            *deadline = Some(deadline.map_or(now + 5_000, |d| d.min(now + 5_000)));
        }
    }

    #[test]
    fn a_removed_part_is_not_called_and_its_number_is_reused() {
        let mut agenda = Agenda::new();
        let a = agenda.add_part();
        agenda.wake(a, at(3));
        agenda.remove_part(a);
        let b = agenda.add_part();
        assert_eq!(a, b);
        agenda.wake(b, at(4));
        assert_eq!(order(&mut agenda), [(4, 0)]);
    }

    #[test]
    fn a_past_deadline_means_now_and_the_limit_is_inclusive() {
        let mut agenda = Agenda::new();
        let a = agenda.add_part();
        agenda.wake(a, at(10));
        assert_eq!(agenda.next(Time::from_nanos(9)), None);
        assert_eq!(agenda.next(Time::from_nanos(10)), Some(a));
        agenda.wake(a, at(2));
        assert_eq!(agenda.next(Time::MAX), Some(a));
        assert_eq!(agenda.now(), Time::from_nanos(10));
    }
}
