//! Proportional rate reduction: the number of segments that each acknowledgement releases during a reduction.
//!
//! Source: RFC 6937, in the form of Linux 6.1 `tcp_cwnd_reduction`, which counts segments.
//!
//! Deviations of Linux, and so of this file, from the RFC:
//! 1. Below the threshold, the bound depends on the acknowledgement: one that advances SND.UNA and marks nothing lost
//!    gets the slow-start bound (one segment more than it delivered), any other the conservative bound
//!    `max(prr_delivered - prr_out, DeliveredData)`.
//! 2. As long as nothing was sent in this recovery, at least one segment may be sent: the fast retransmission.
//! 3. `RecoverFS` is the window at the start, not the flight.

/// The state of a reduction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prr {
    /// The window when the reduction began, in segments; 0 before the first reduction.
    prior_cwnd: u32,
    /// Segments delivered since.
    delivered: u32,
    /// Segments sent since, retransmissions included.
    out: u32,
}

/// The effect of an acknowledgement during a reduction, in segments.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// Newly delivered.
    pub delivered: u32,
    /// Newly marked lost.
    pub lost: u32,
    /// In flight after it.
    pub in_flight: u32,
    /// Whether SND.UNA moved.
    pub advanced: bool,
}

impl Prr {
    /// Begins a reduction at a window of `cwnd` segments.
    pub fn begin(cwnd: u32) -> Prr {
        Prr { prior_cwnd: cwnd, delivered: 0, out: 0 }
    }

    /// Called when a segment was sent.
    #[inline]
    pub fn on_sent(&mut self) {
        self.out = self.out.saturating_add(1);
    }

    /// Returns the number of segments that may be sent now (RFC 6937 section 3, `sndcnt`); `None` if the
    /// acknowledgement delivered nothing and so changes nothing.
    pub fn on_ack(&mut self, ack: Delivery, ssthresh: u32) -> Option<u32> {
        if ack.delivered == 0 || self.prior_cwnd == 0 {
            return None;
        }
        self.delivered = self.delivered.saturating_add(ack.delivered);
        let count = if ack.in_flight > ssthresh {
            let share = (u64::from(ssthresh) * u64::from(self.delivered)).div_ceil(u64::from(self.prior_cwnd));
            (share as u32).saturating_sub(self.out)
        } else {
            let bound = self.delivered.saturating_sub(self.out).max(ack.delivered);
            let bound = bound + u32::from(ack.advanced && ack.lost == 0);
            bound.min(ssthresh - ack.in_flight)
        };
        Some(count.max(u32::from(self.out == 0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender of 20 segments that lost `lost` of them, as in RFC 6937 section 4: the acknowledgements of the others
    /// arrive one by one, and every segment allowed is sent at once. Gives what each of them released.
    fn released(lost: u32) -> Vec<u32> {
        let (cwnd, ssthresh) = (20, 10);
        let mut prr = Prr::begin(cwnd);
        // Three duplicates came before recovery and count as delivered with the first acknowledgement of it, which
        // also marks the losses.
        let mut in_flight = cwnd - lost - 3;
        let mut out = Vec::new();
        let mut step = |prr: &mut Prr, in_flight: &mut u32, delivered, lost| {
            let delivery = Delivery { delivered, lost, in_flight: *in_flight, advanced: false };
            let n = prr.on_ack(delivery, ssthresh).expect("it delivers");
            for _ in 0..n {
                prr.on_sent();
            }
            *in_flight += n;
            out.push(n);
        };
        step(&mut prr, &mut in_flight, 3, lost);
        for _ in 0..cwnd - lost - 3 {
            in_flight -= 1;
            step(&mut prr, &mut in_flight, 1, 0);
        }
        out
    }

    #[test]
    fn one_loss_of_twenty_sends_one_segment_for_two_delivered() {
        // RFC 6937 section 4, first example: after the entry (ceil(3 * 10 / 20) = 2 at once, pipe 18), with pipe > ssthresh
        // one segment leaves on every second acknowledgement: ceil(d / 2) - out is 0, 1, 0, 1, ... for d = 4, 5, 6, 7 ...
        // Pipe so falls by one on every second one: 12 after d = 15, 11 after d = 16, and at d = 17 it is ssthresh, 10,
        // which leaves no room. From then on one leaves for one.
        let expected = [2, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1];
        assert_eq!(released(1), expected);
        // d = 19 delivered, ceil(19 / 2) = 10 sent: half of the window, as the threshold says.
        assert_eq!(expected.iter().sum::<u32>(), 10);
    }

    #[test]
    fn fifteen_losses_of_twenty_keep_one_in_one_out() {
        // The second figure of section 4: 15 of 20 are lost, pipe is 2 < ssthresh at the entry. No acknowledgement
        // advances, so the conservative bound holds: max(prr_delivered - prr_out, delivered) = delivered.
        assert_eq!(released(15), [3, 1, 1]);
    }

    #[test]
    fn an_advance_without_new_losses_gets_the_slow_start_bound() {
        let mut prr = Prr::begin(20);
        let ack = |advanced, lost| Delivery { delivered: 1, lost, in_flight: 4, advanced };
        assert_eq!(prr.on_ack(ack(true, 0), 10), Some(2));
        prr.on_sent();
        prr.on_sent();
        assert_eq!(prr.on_ack(ack(true, 1), 10), Some(1));
        assert_eq!(prr.on_ack(ack(false, 0), 10), Some(1));
        // Never past the threshold: 10 - 9 = 1.
        assert_eq!(prr.on_ack(Delivery { delivered: 5, lost: 0, in_flight: 9, advanced: true }, 10), Some(1));
    }

    #[test]
    fn the_first_acknowledgement_releases_the_fast_retransmission() {
        // 100 in flight against a threshold of 10: ceil(10 * 1 / 100) = 1 by the share; with 1 already counted the share
        // would be 0, and only a recovery that sent nothing may pass it.
        let ack = Delivery { delivered: 1, lost: 1, in_flight: 100, advanced: false };
        let mut fresh = Prr::begin(1000);
        assert_eq!(fresh.on_ack(ack, 0), Some(1));
        fresh.on_sent();
        assert_eq!(fresh.on_ack(ack, 0), Some(0));
    }

    #[test]
    fn an_acknowledgement_that_delivers_nothing_changes_nothing() {
        let ack = Delivery { delivered: 0, lost: 2, in_flight: 5, advanced: false };
        assert_eq!(Prr::begin(20).on_ack(ack, 10), None);
    }

    #[test]
    fn before_any_reduction_nothing_is_reduced() {
        let ack = Delivery { delivered: 1, lost: 0, in_flight: 5, advanced: true };
        assert_eq!(Prr::default().on_ack(ack, 2), None);
    }
}
