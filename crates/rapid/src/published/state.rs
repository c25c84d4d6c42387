//! The parameters of the paper's algorithm, and the state of a flow.

use crate::blocks::TransportBlocks;
use crate::decision::Sample;
use units::{Span, Time};

/// The parameters of the paper's algorithm. The default is its text, but for `blocks`, which are the cell's;
/// [`Published::simulator`] and [`Published::kernel_module`] are what its authors ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// What a UE's blocks carry (equation 3).
    pub blocks: TransportBlocks,
    /// What a slow flow releases (equation 11).
    pub released: Released,
    /// A flow is slow if less than this part of its expected rate arrived in the last round trip of its period. Paper: 0.8;
    /// its simulator: 0.85, its kernel module: 0.75.
    pub slow_threshold: f64,
    /// Weight of the old average in the demand (equation 9). Paper: 1/8; both artefacts: 0.4.
    pub alpha: f64,
    /// The round-trip time of equations 4 to 10.
    pub round_trip: RoundTrip,
    /// The congestion window of the radio leg.
    pub radio_window: RadioWindow,
}

impl Default for Published {
    fn default() -> Published {
        Published {
            blocks: TransportBlocks::default(),
            released: Released::default(),
            slow_threshold: 0.8,
            alpha: 0.125,
            round_trip: RoundTrip::default(),
            radio_window: RadioWindow::default(),
        }
    }
}

impl Published {
    /// The paper's simulator: madi223/RAPID at 82cb4f9a, `epc-enb-proxy-application.cc`.
    pub fn simulator() -> Published {
        Published {
            blocks: TransportBlocks::Reported,
            released: Released::OfShare,
            slow_threshold: 0.85,
            alpha: 0.4,
            round_trip: RoundTrip::Path,
            radio_window: RadioWindow::ReceiveWindow,
        }
    }

    /// The paper's kernel module: madi223/RAPID-LINUX at fcf8eef, `rapid-llc.c`.
    pub fn kernel_module() -> Published {
        Published {
            slow_threshold: 0.75,
            round_trip: RoundTrip::Wired,
            radio_window: RadioWindow::Rounded,
            ..Published::simulator()
        }
    }
}

/// What a slow flow releases for the fast ones (equation 11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Released {
    /// Its window before the end of its last period less the one after, as the paper says. A flow that is slow twice in
    /// succession has hardly released anything the second time.
    #[default]
    OfWindow,
    /// Its equal share (equation 4) less its window, as in both artefacts.
    OfShare,
}

/// The round-trip time that equations 4 to 10 take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoundTrip {
    /// The wired leg's, as the paper says.
    #[default]
    Wired,
    /// The wired leg's and the radio leg's least together, as in the paper's simulator.
    Path,
}

impl RoundTrip {
    /// Returns the least one in seconds, and the present one, which is at least 1 µs.
    pub(crate) fn of(self, sample: &Sample) -> (f64, Span) {
        let radio = match self {
            RoundTrip::Wired => Span::ZERO,
            RoundTrip::Path => sample.ran_min_rtt.unwrap_or_default(),
        };
        let least = sample.wan_min_rtt.unwrap_or_default() + radio;
        let present = sample.wired_rtt().unwrap_or_default() + radio;
        (least.as_secs_f64(), present.max(Span::from_micros(1)))
    }
}

/// The congestion window of the radio leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RadioWindow {
    /// The flow's bandwidth-delay product on that leg (section 5.3).
    #[default]
    Bdp,
    /// The receive window, as in the paper's simulator.
    ReceiveWindow,
    /// The bandwidth-delay product with a round-trip time that is 16 ms longer, rounded up to a power of two of segments, as
    /// in the paper's kernel module.
    Rounded,
}

/// The state of a flow.
#[derive(Clone, Debug)]
pub(crate) struct PublishedFlow {
    /// The receive window in bytes, and what it would be for a fast flow without released windows (equation 4).
    pub(crate) window: f64,
    pub(crate) equal: f64,
    pub(crate) slow: bool,
    /// What it released at the end of its last period, in bytes (equation 11).
    pub(crate) released: f64,
    /// When its period ends, and its current round trip began, with what had arrived then.
    pub(crate) period_ends: Option<Time>,
    pub(crate) trip: (Time, u64),
    /// The rate in the last round trip, and the demand (equation 9).
    pub(crate) last: f64,
    pub(crate) demand: Option<f64>,
    /// The radio leg's least round-trip time, smoothed over periods.
    pub(crate) radio_rtt: Option<f64>,
}

impl PublishedFlow {
    pub(crate) fn new(now: Time) -> PublishedFlow {
        PublishedFlow {
            window: 0.0,
            equal: 0.0,
            slow: false,
            released: 0.0,
            period_ends: None,
            trip: (now, 0),
            last: 0.0,
            demand: None,
            radio_rtt: None,
        }
    }

    /// Ends a round trip: measures the arrival rate (equation 9).
    pub(crate) fn end_trip(&mut self, arrived: u64, alpha: f64, now: Time) {
        let span = (now - self.trip.0).as_secs_f64();
        self.last = arrived.saturating_sub(self.trip.1) as f64 / span;
        self.demand = Some(self.demand.map_or(self.last, |old| alpha * old + (1.0 - alpha) * self.last));
        self.trip = (now, arrived);
    }
}
