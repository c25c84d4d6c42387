//! Constant bit rate: UDP datagrams of one size, evenly spaced. The rate counts IP packets.

use crate::limits::PACKETS;
use crate::ticker::Ticker;
use crate::{Action, UDP_HEADERS};
use units::check::Range;
use units::{Bytes, Rate, Time, parameters};

parameters! {
    /// Datagrams at a constant rate.
    #[derive(Copy, Eq)]
    pub struct Parameters {
        /// Rate, including IP headers.
        pub rate: Rate, in Range::RATE;
        /// Bytes of an IP packet.
        #[serde(default = "crate::limits::mtu")]
        pub packet: Bytes, in PACKETS;
    }
}

/// Datagrams at a constant rate; the first one is sent at the start.
#[derive(Clone, Debug)]
pub struct Cbr {
    ticker: Ticker,
    /// UDP payload of a datagram.
    payload: u32,
    stop: Time,
    finished: bool,
}

impl Cbr {
    pub(crate) fn new(rate: Rate, packet: u32, start: Time, stop: Time) -> Cbr {
        Cbr { ticker: Ticker::new(rate, packet, start), payload: packet - UDP_HEADERS, stop, finished: false }
    }

    #[inline]
    pub(crate) fn poll_action(&mut self, now: Time) -> Option<Action> {
        if now < self.poll_timeout() || self.finished {
            return None;
        }
        if self.ticker.next() >= self.stop {
            self.finished = true;
            return Some(Action::Finished);
        }
        self.ticker.advance();
        Some(Action::Datagram { bytes: self.payload })
    }

    #[inline]
    pub(crate) fn poll_timeout(&self) -> Time {
        if self.finished { Time::MAX } else { self.ticker.next().min(self.stop) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::story::{Story, ms};

    #[test]
    fn its_datagrams_are_evenly_spaced_from_the_start_until_before_the_stop() {
        // 1250 B at 1 Mbit/s: 10 ms.
        let config = Config::Cbr(Parameters { rate: Rate::from_mbps(1), packet: Bytes::new(1250) });
        let story = Story::new(&config, ms(5), Some(ms(45))).run(ms(100));
        let moments = story.moments(|action| *action == Action::Datagram { bytes: 1250 - 28 });
        assert_eq!(moments, [ms(5), ms(15), ms(25), ms(35)]);
        assert_eq!(story.finished(), Some(ms(45)));
    }

    #[test]
    fn a_rate_that_does_not_divide_evenly_is_met_exactly() {
        // 7 Mbit/s for 120 s: 105 MB in datagrams of 1000 B.
        let config = Config::Cbr(Parameters { rate: Rate::from_mbps(7), packet: Bytes::new(1000) });
        let story = Story::new(&config, ms(0), Some(ms(120_000))).run(ms(200_000));
        assert_eq!(story.moments(|action| matches!(action, Action::Datagram { .. })).len(), 105_000);
    }
}
