//! The data of the page, and the batches that its readers have not seen.

use axum::body::Bytes;
use record::report::live::{Board, page};
use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Batches that are kept for readers that come back, and their bytes.
const MOST_BATCHES: usize = 600;
const MOST_BYTES: usize = 8_000_000;
/// Interval between renewals of means, which take longer than the rest.
const MEANS: Duration = Duration::from_secs(2);

/// What all parts of the server share.
#[derive(Debug)]
pub(super) struct Hub {
    state: Mutex<State>,
    /// The number of the newest batch.
    newest: watch::Sender<u64>,
    pub(super) readers: AtomicUsize,
}

#[derive(Debug)]
struct State {
    board: Board,
    /// The newest batches, as events; the last one has the number `newest`.
    ring: VecDeque<Bytes>,
    bytes: usize,
    newest: u64,
    summarised: Option<Instant>,
    /// The page, and the event with all data, since the newest batch: each is made once for all who ask.
    page: Option<Bytes>,
    everything: Option<Bytes>,
}

impl Hub {
    pub(super) fn new(board: Board) -> Arc<Hub> {
        let state =
            State { board, ring: VecDeque::new(), bytes: 0, newest: 0, summarised: None, page: None, everything: None };
        Arc::new(Hub { state: Mutex::new(state), newest: watch::Sender::new(0), readers: AtomicUsize::new(0) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `act` with the board.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Board) -> T) -> T {
        act(&mut self.state().board)
    }

    /// Makes a batch of what is new, with means if they are due or it is the last one.
    pub(super) fn publish(&self, is_last: bool) {
        let newest = {
            let mut state = self.state();
            let means = is_last || state.summarised.is_none_or(|at| at.elapsed() >= MEANS);
            if means {
                state.summarised = Some(Instant::now());
            }
            state.publish(means);
            state.newest
        };
        self.newest.send_if_modified(|before| std::mem::replace(before, newest) != newest);
    }

    /// The number of batches so far.
    pub(super) fn batches(&self) -> u64 {
        *self.newest.borrow()
    }

    /// Tells a reader about new batches.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Returns the page with all data so far.
    pub(super) fn page(&self) -> Bytes {
        let mut state = self.state();
        state.publish(false);
        if let Some(made) = &state.page {
            return made.clone();
        }
        let made = Bytes::from(page(state.whole()));
        state.page = Some(made.clone());
        made
    }

    /// Returns the batches after the one that `last` names, or all data if those are not known.
    pub(super) fn after(&self, last: Option<&str>) -> (Bytes, u64) {
        let mut state = self.state();
        if let Some(events) = last.and_then(|last| state.number(last)).and_then(|last| state.since(last)) {
            return events;
        }
        state.everything()
    }

    /// Returns the events that a reader that has the batches up to `last` gets next, with the number of the last batch in them.
    pub(super) fn next(&self, last: u64) -> Option<(Bytes, u64)> {
        if self.batches() <= last {
            return None;
        }
        let mut state = self.state();
        // It may have been slower than the ring is long.
        Some(state.since(last).unwrap_or_else(|| state.everything()))
    }
}

impl State {
    fn publish(&mut self, means: bool) {
        let Some(data) = self.board.growth(means) else { return };
        self.newest += 1;
        (self.page, self.everything) = (None, None);
        let event = Bytes::from(format!("id: {}\nevent: batch\ndata: {data}\n\n", self.id()));
        self.bytes += event.len();
        self.ring.push_back(event);
        while self.ring.len() > MOST_BATCHES || (self.bytes > MOST_BYTES && self.ring.len() > 1) {
            self.bytes -= self.ring.pop_front().map_or(0, |event| event.len());
        }
    }

    /// Returns an event with all data.
    fn everything(&mut self) -> (Bytes, u64) {
        self.publish(false);
        if let Some(made) = &self.everything {
            return (made.clone(), self.newest);
        }
        let made = Bytes::from(format!("id: {}\nevent: whole\ndata: {}\n\n", self.id(), self.whole()));
        self.everything = Some(made.clone());
        (made, self.newest)
    }

    /// The name of the newest batch.
    fn id(&self) -> String {
        format!("{}-{}", self.board.live().instance, self.newest)
    }

    fn whole(&self) -> String {
        self.board.whole(&self.id())
    }

    /// Returns the number of a batch of ours by its name.
    fn number(&self, name: &str) -> Option<u64> {
        let (instance, number) = name.rsplit_once('-')?;
        number.parse().ok().filter(|number| instance == self.board.live().instance && *number <= self.newest)
    }

    /// The batches after `last`, if all of them are kept.
    fn since(&self, last: u64) -> Option<(Bytes, u64)> {
        let missing = usize::try_from(self.newest - last.min(self.newest)).ok()?;
        let first = self.ring.len().checked_sub(missing)?;
        let events: Vec<&Bytes> = self.ring.range(first..).collect();
        let joined = match events[..] {
            [only] => only.clone(),
            _ => Bytes::from(events.iter().flat_map(|event| event.iter().copied()).collect::<Vec<u8>>()),
        };
        Some((joined, self.newest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Meta;

    fn hub() -> Arc<Hub> {
        Hub::new(Board::new("one".to_owned(), "run", Meta::default(), false))
    }

    fn text((events, _): (Bytes, u64)) -> String {
        String::from_utf8(events.to_vec()).expect("text")
    }

    #[test]
    fn a_reader_that_comes_back_gets_what_it_missed() {
        let hub = hub();
        for n in 1..=3 {
            hub.with(|board| board.note(Some(f64::from(n)), format!("event {n}")));
            hub.publish(false);
        }
        let missed = text(hub.after(Some("one-1")));
        assert_eq!(missed.matches("event: batch").count(), 2);
        assert!(!missed.contains("event 1") && missed.contains("event 2") && missed.contains("id: one-3\n"));
        assert_eq!(text(hub.after(Some("one-3"))), "");
    }

    #[test]
    fn a_reader_of_another_run_or_of_the_future_gets_everything() {
        let hub = hub();
        hub.with(|board| board.note(None, "an event"));
        for last in [None, Some("two-1"), Some("one-99"), Some("one"), Some(""), Some("one-x"), Some("-1")] {
            let all = text(hub.after(last));
            assert!(all.contains("event: whole") && all.contains("an event"), "{last:?}: {all}");
        }
    }

    #[test]
    fn the_ring_is_bounded_and_a_reader_that_is_too_slow_gets_everything() {
        let hub = hub();
        let long = "x".repeat(100_000);
        for n in 0..200 {
            hub.with(|board| board.note(Some(f64::from(n)), long.clone()));
            hub.publish(false);
        }
        let state = hub.state();
        assert!(state.bytes <= MOST_BYTES && state.ring.len() < 100, "{} bytes", state.bytes);
        drop(state);
        let (events, last) = hub.next(1).expect("there are events");
        assert!(events.starts_with(b"id: one-200\nevent: whole\n"));
        assert_eq!(last, 200);
        assert_eq!(hub.next(200), None);
    }

    #[test]
    fn page_and_data_are_made_once_for_all_who_ask_until_something_is_new() {
        let hub = hub();
        let places = || [hub.page().as_ptr(), hub.after(None).0.as_ptr()];
        let [before, kept] = [hub.page(), hub.after(None).0];
        assert_eq!(places(), [before.as_ptr(), kept.as_ptr()]);
        hub.with(|board| board.note(None, "an event"));
        let now = String::from_utf8(hub.page().to_vec()).expect("text");
        assert!(now.contains("an event") && text(hub.after(None)).contains("an event"));
        assert_ne!(hub.page(), before);
    }

    #[test]
    fn data_cannot_end_an_event_or_the_script_around_it() {
        let hub = hub();
        hub.with(|board| board.note(None, "</script>\n\nevent: whole\r\ndata: x"));
        let page = String::from_utf8(hub.page().to_vec()).expect("text");
        assert!(!page.contains("</script>\n\nevent"));
        let events = text(hub.after(None));
        assert_eq!(events.matches("\n\n").count(), 1);
        assert_eq!(events.lines().count(), 4);
    }
}
