//! Readers: applications that pause reading, so that the receive window closes.

use units::{Span, Time};

/// The receiving end of an application that alternates between reading everything and reading nothing.
///
/// It begins reading. Order of calls: [`Reader::poll`] at each [`Reader::poll_timeout`]. Time never goes back.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    reads: Span,
    pauses: Span,
    is_reading: bool,
    /// When that changes.
    until: Time,
}

impl Reader {
    /// Creates a reader that begins at `start` to read for `reads`, then pauses for `pauses`, and so on. One of the two is more
    /// than zero.
    pub fn new(reads: Span, pauses: Span, start: Time) -> Reader {
        Reader { reads, pauses, is_reading: true, until: start + reads }
    }

    /// Returns whether it reads, as of the last [`Reader::poll`].
    #[inline]
    pub fn is_reading(&self) -> bool {
        self.is_reading
    }

    /// Returns whether it reads at `now`, if that has changed.
    pub fn poll(&mut self, now: Time) -> Option<bool> {
        let before = self.is_reading;
        while self.until <= now {
            self.is_reading = !self.is_reading;
            self.until += if self.is_reading { self.reads } else { self.pauses };
        }
        (self.is_reading != before).then_some(self.is_reading)
    }

    /// Returns when it changes next.
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_alternates_from_its_start_and_a_late_call_catches_up() {
        let ms = |n| Time::ZERO + Span::from_millis(n);
        let mut reader = Reader::new(Span::from_millis(30), Span::from_millis(10), ms(100));
        assert_eq!((reader.poll(ms(129)), reader.poll_timeout()), (None, ms(130)));
        assert_eq!((reader.poll(ms(130)), reader.poll_timeout()), (Some(false), ms(140)));
        assert_eq!((reader.poll(ms(140)), reader.poll_timeout()), (Some(true), ms(170)));
        // Past a pause and into the next one.
        assert_eq!((reader.poll(ms(215)), reader.is_reading()), (Some(false), false));
        assert_eq!(reader.poll_timeout(), ms(220));
    }
}
