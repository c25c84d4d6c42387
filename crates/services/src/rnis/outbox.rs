//! The notifications that wait for one consumer.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// The most notifications that wait; the oldest is dropped first, since the latest tells most.
pub(super) const MOST_WAITING: usize = 32;

/// A bounded queue between the feed, which never waits, and one task that delivers.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    content: Mutex<Content>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Content {
    waiting: VecDeque<String>,
    dropped: u64,
    /// Nothing is added any more.
    finished: bool,
    /// The subscription is gone.
    closed: bool,
    /// Who delivers: a later WebSocket takes over from an earlier one.
    generation: u64,
}

/// What a task that delivers is to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Deliver this.
    Deliver(String),
    /// The subscription has ended and all was delivered, or another task has taken over.
    End,
}

impl Outbox {
    fn content(&self) -> std::sync::MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a notification. Returns whether it has dropped another one for it.
    pub(super) fn push(&self, notification: String) -> bool {
        let mut content = self.content();
        if content.finished {
            return false;
        }
        let is_full = content.waiting.len() >= MOST_WAITING;
        if is_full {
            content.waiting.pop_front();
            content.dropped += 1;
        }
        content.waiting.push_back(notification);
        drop(content);
        self.changed.notify_waiters();
        is_full
    }

    /// Ends the queue once all waiting notifications have been delivered.
    pub(super) fn finish(&self) {
        self.content().finished = true;
        self.changed.notify_waiters();
    }

    /// Ends the queue and drops the waiting notifications.
    pub(super) fn close(&self) {
        let mut content = self.content();
        (content.finished, content.closed) = (true, true);
        content.waiting.clear();
        drop(content);
        self.changed.notify_waiters();
    }

    /// Returns a number for a task that delivers from now on; [`Outbox::next`] ends the earlier ones.
    pub(super) fn take_over(&self) -> u64 {
        let mut content = self.content();
        content.generation += 1;
        let generation = content.generation;
        drop(content);
        self.changed.notify_waiters();
        generation
    }

    /// Waits for the next notification.
    pub(super) async fn next(&self, generation: u64) -> Next {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on a change wakes this task, even one before it waits.
            changed.as_mut().enable();
            {
                let mut content = self.content();
                if content.generation != generation {
                    return Next::End;
                }
                if let Some(notification) = content.waiting.pop_front() {
                    return Next::Deliver(notification);
                }
                if content.finished {
                    return Next::End;
                }
            }
            changed.await;
        }
    }

    /// Waits until the subscription was removed, or another task has taken over.
    pub(super) async fn closed(&self, generation: u64) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let content = self.content();
                if content.generation != generation || content.closed {
                    return;
                }
            }
            changed.await;
        }
    }

    /// Returns whether another task has taken over from this one.
    pub(super) fn is_taken_over(&self, generation: u64) -> bool {
        self.content().generation != generation
    }

    /// Takes the waiting notifications, for a successor.
    pub(super) fn take(&self) -> Vec<String> {
        self.content().waiting.drain(..).collect()
    }

    /// Returns how many notifications were dropped.
    #[cfg(test)]
    pub(super) fn dropped(&self) -> u64 {
        self.content().dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_are_dropped_and_a_finished_queue_is_drained() {
        let outbox = Outbox::default();
        let generation = outbox.take_over();
        (0..MOST_WAITING + 3).for_each(|n| _ = outbox.push(n.to_string()));
        outbox.finish();
        outbox.push("late".into());
        assert_eq!(outbox.dropped(), 3);
        for n in 3..MOST_WAITING + 3 {
            assert_eq!(outbox.next(generation).await, Next::Deliver(n.to_string()));
        }
        assert_eq!(outbox.next(generation).await, Next::End);
    }

    #[tokio::test]
    async fn a_successor_ends_its_predecessor() {
        let outbox = Outbox::default();
        let first = outbox.take_over();
        let second = outbox.take_over();
        outbox.push("x".into());
        assert_eq!(outbox.next(first).await, Next::End);
        assert_eq!(outbox.next(second).await, Next::Deliver("x".into()));
    }
}
