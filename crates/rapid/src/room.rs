//! The receive buffer of a wired leg that shrinks.
//!
//! A window that was announced cannot be taken back: the sender may already have used it (RFC 9293 section 3.8.6). Linux never
//! announces less than before (`tcp_select_window`), but a smaller buffer (`SO_RCVBUF`) counts at once, and what does not fit is
//! dropped (`tcp_can_ingest`, `tcp_prune_queue`), which costs the sender a timeout. So a buffer shrinks as the window is used.

/// The least receive window and buffer, in full segments of the wired leg, which may be much longer than those of the radio leg: in a
/// window of less, a sender waits until it has more.
pub const LEAST_SEGMENTS: u64 = 4;

/// The least that a packet takes of a receive buffer, which counts half of the memory (`TCP_SKB_MIN_TRUESIZE`).
const LEAST_PACKET: u64 = 1_152;

/// The receive buffer of a leg and the bound of the window that it announces from now on, in bytes of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The receive buffer.
    pub buffer: u64,
    /// The bound of the window; `None` if there is no bound but the buffer.
    pub window: Option<u64>,
}

impl Room {
    /// Returns what to set where `self` is wanted. The buffer has `before` bytes now, of which `queued` are in use; `announced` is
    /// the window that the sender has. As long as the buffer has to be larger than wanted, the window is what the wanted one would
    /// leave, and at least `least` bytes, so that the sender goes on. When all that was announced is used, or the buffer is full and
    /// takes no packet more whatever its size, it has the wanted size at once, although more waits in it: the window opens again as
    /// that is read. A sender nearby fills the buffer long before a late reader's turn.
    pub fn within(self, before: u64, queued: u64, announced: u64, least: u64) -> Room {
        let buffer = self.buffer.max(before.min(queued.saturating_add(announced)));
        let is_full = announced == 0 || before.saturating_sub(queued) < LEAST_PACKET;
        if is_full || buffer == self.buffer {
            return self;
        }
        let rest = self.buffer.saturating_sub(queued).max(least);
        Room { buffer, window: Some(self.window.map_or(rest, |window| window.min(rest))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn room(buffer: u64, window: Option<u64>) -> Room {
        Room { buffer, window }
    }

    #[test]
    fn a_larger_buffer_counts_at_once() {
        let wanted = room(100_000, Some(80_000));
        assert_eq!(wanted.within(40_000, 30_000, 40_000, 5_000), wanted);
    }

    #[test]
    fn a_buffer_shrinks_at_once_when_the_last_announced_byte_is_used_and_not_before() {
        let wanted = room(40_000, Some(40_000));
        assert_eq!(wanted.within(100_000, 50_000, 0, 5_000), wanted);
        assert_eq!(wanted.within(100_000, 50_000, 1, 5_000), room(50_001, Some(5_000)));
    }

    #[test]
    fn a_smaller_buffer_keeps_room_for_what_was_announced() {
        let wanted = room(40_000, Some(40_000));
        assert_eq!(wanted.within(100_000, 0, 100_000, 5_000), room(100_000, Some(40_000)));
        assert_eq!(wanted.within(100_000, 10_000, 60_000, 5_000), room(70_000, Some(30_000)));
        // It never grows for that.
        assert_eq!(wanted.within(60_000, 10_000, 60_000, 5_000), room(60_000, Some(30_000)));
        // It fits.
        assert_eq!(wanted.within(100_000, 10_000, 30_000, 5_000), wanted);
    }

    #[test]
    fn the_window_stays_open_for_some_segments() {
        let window = |queued: u64| room(40_000, None).within(100_000, queued, 50_000, 5_000).window;
        assert_eq!([50_000, 40_001, 36_000, 30_000].map(window), [5_000, 5_000, 5_000, 10_000].map(Some));
    }

    #[test]
    fn a_buffer_whose_window_is_used_up_has_its_size_at_once() {
        let wanted = room(40_000, Some(40_000));
        assert_eq!(wanted.within(100_000, 99_000, 0, 5_000), wanted);
        assert_eq!(wanted.within(100_000, 99_000, 6_000, 5_000), wanted);
        assert_eq!(wanted.within(100_000, 98_000, 6_000, 5_000), room(100_000, Some(5_000)));
    }

    /// A reader that takes half of what is queued in each step; a sender that fills its window.
    #[test]
    fn a_buffer_reaches_its_size_while_data_waits() {
        let (wanted, mut buffer) = (room(40_000, Some(40_000)), 1_000_000);
        let (mut queued, mut announced): (u64, u64) = (100_000, 900_000);
        for _ in 0..20 {
            let set = wanted.within(buffer, queued, announced, 5_000);
            buffer = set.buffer;
            // A quarter arrives, and the window reopens as far as the settings allow.
            queued = (queued + announced / 4) / 2;
            let rest = announced - announced / 4;
            announced = rest.max(set.window.unwrap_or(u64::MAX).min(buffer.saturating_sub(queued)));
            assert!(queued + announced <= buffer, "all that was announced fits: {queued} and {announced} in {buffer}");
        }
        assert_eq!(buffer, 40_000);
    }
}
