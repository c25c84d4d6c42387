//! What RAPID sees of a flow, and what it decides.

use units::{Rate, Span};

/// What the proxy sees of a flow. Counts are of payload bytes since the flow's start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Bytes that have arrived in order on the wired leg.
    pub arrived: u64,
    /// Bytes that the UE has acknowledged on the radio leg.
    pub delivered: u64,
    /// Bytes sent to the UE and not acknowledged.
    pub in_flight: u64,
    /// Round-trip time of the wired leg by what it sends: smoothed, and its minimum. A leg that only receives measures it as
    /// it opens, and hardly ever again.
    pub wan_rtt: Option<Span>,
    /// See `wan_rtt`.
    pub wan_min_rtt: Option<Span>,
    /// Round-trip time of the wired leg by what it receives.
    pub wan_receive_rtt: Option<Span>,
    /// Smoothed round-trip time of the radio leg, and its minimum.
    pub ran_rtt: Option<Span>,
    /// See `ran_rtt`.
    pub ran_min_rtt: Option<Span>,
}

impl Sample {
    /// Returns the present round-trip time of the wired leg.
    pub fn wired_rtt(&self) -> Option<Span> {
        self.wan_receive_rtt.or(self.wan_rtt).max(self.wan_min_rtt)
    }

    /// Returns the bytes in the proxy: those that have arrived and were not yet sent on.
    pub fn held(&self) -> u64 {
        self.arrived.saturating_sub(self.delivered).saturating_sub(self.in_flight)
    }
}

/// The kind of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Takes whatever it is given.
    Fast,
    /// Limited elsewhere: by its application, its server or the wired leg.
    Slow,
    /// Silent.
    Idle,
}

impl Category {
    /// Returns its name in tables and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Category::Fast => "fast",
            Category::Slow => "slow",
            Category::Idle => "idle",
        }
    }
}

/// The settings of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The share that the flow is promised, in payload; `None` if the capacity is unknown.
    pub rate: Option<Rate>,
    /// The receive window of the wired leg in bytes; `None` lifts the limit.
    pub receive_window: Option<u64>,
    /// The receive buffer of the wired leg in bytes of payload: unread data leaves only the rest of it as window. `None`
    /// lifts the limit.
    pub receive_buffer: Option<u64>,
    /// What the radio leg takes from the wired leg beyond what it can send at once (`TCP_NOTSENT_LOWAT`). The rest stays in the
    /// receive buffer. `None` lifts the limit.
    pub unsent: Option<u64>,
    /// The congestion window of the radio leg in bytes; `None` leaves it to a congestion control.
    pub window: Option<u64>,
    /// The pacing rate of the radio leg; `None` does not pace.
    pub pacing: Option<Rate>,
    /// The flow's kind.
    pub category: Category,
}

impl Decision {
    /// Without a report of the radio: the proxy passes data on as any split proxy does.
    pub const UNLIMITED: Decision = Decision {
        rate: None,
        receive_window: None,
        receive_buffer: None,
        unsent: None,
        window: None,
        pacing: None,
        category: Category::Fast,
    };
}

/// Returns a rate of so many bytes a second.
pub(crate) fn rate(bytes_per_sec: f64) -> Rate {
    Rate::from_bits_per_sec((bytes_per_sec * 8.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a leg receives tells its time better than what it sends, and neither is less than the least.
    #[test]
    fn the_wired_legs_round_trip_time_is_the_one_measured_by_what_it_receives() {
        let ms = |ms: Option<u64>| ms.map(Span::from_millis);
        for (receive, send, least, rtt) in [
            (None, None, None, None),
            (None, Some(20), None, Some(20)),
            (Some(30), Some(20), Some(10), Some(30)),
            (Some(15), Some(20), Some(10), Some(15)),
            (Some(5), Some(20), Some(10), Some(10)),
            (None, None, Some(10), Some(10)),
        ] {
            let (wan_receive_rtt, wan_rtt, wan_min_rtt) = (ms(receive), ms(send), ms(least));
            let sample = Sample { wan_receive_rtt, wan_rtt, wan_min_rtt, ..Sample::default() };
            assert_eq!(sample.wired_rtt(), ms(rtt), "{receive:?}, {send:?}, {least:?}");
        }
    }

    /// The counts of the two legs may be of slightly different times.
    #[test]
    fn the_proxy_holds_what_has_arrived_and_was_not_sent_on() {
        let held = |arrived, delivered, in_flight| Sample { arrived, delivered, in_flight, ..Sample::default() }.held();
        assert_eq!([held(10, 3, 2), held(10, 3, 7), held(10, 3, 9), held(3, 10, 0)], [5, 0, 0, 0]);
        assert_eq!(rate(1000.0).bits_per_sec(), 8000);
    }
}
