//! Handover between cells, and radio link failure.

use super::{MILLISECOND, POSITIVE_TIMER, TIMER};
use crate::pdcp::LONGEST_SDU;
use crate::{A3, RadioLink};
use core::ops::RangeInclusive;
use units::check::{Check, shown};
use units::{Bytes, Span, parameters};

/// Thresholds of radio link failure, in SINR.
const SYNC_DB: RangeInclusive<f64> = -50.0..=50.0;

parameters! {
    /// Handover between cells by event A3 (36.331 5.5.4.4), and radio link failure (36.331 5.3.11).
    // The ranges of 36.331, 6.3.5 and 6.3.6; twice that range for the time to trigger.
    pub struct Handover {
        /// Whether UEs change cells.
        pub enabled: bool = true;
        /// Offset in dB by which a neighbour must be better than the serving cell.
        pub offset_db: f64 = 0.0, in -15.0..=15.0;
        /// Hysteresis in dB: added to `offset_db` for a neighbour to be reported, and subtracted for its reports to end.
        pub hysteresis_db: f64 = 3.0, in 0.0..=15.0;
        /// How long either condition must hold continuously.
        pub time_to_trigger: Span = Span::from_millis(256), in Span::ZERO..=Span::from_secs(10);
        /// Interval between reports while a neighbour is better (`reportInterval`).
        pub report_interval: Span = Span::from_millis(240), in POSITIVE_TIMER;
        /// Interval between measurements of signal strength and radio link quality.
        pub measurement_period: Span = Span::from_millis(40), in MILLISECOND..=Span::from_secs(1);
        /// Coefficient k of the layer-3 filter (36.331 5.5.3.2), 0 to 19: for measurements 200 ms apart, a new one has the
        /// weight 2^(-k/4). The filter's time constant does not depend on `measurement_period`.
        pub filter: u8 = 4, in 0..=19;
        /// Time from the arrival of the UE's report until the cell sends the handover command.
        pub preparation: Span = Span::from_millis(30), in TIMER;
        /// Size of that command, an `RRCConnectionReconfiguration`. It depends on the operator's configuration.
        pub command_size: Bytes = Bytes::new(150), in Bytes::new(1)..=LONGEST_SDU;
        /// Time from the command's arrival until the target cell serves the UE; in between, no cell does.
        pub interruption: Span = Span::from_millis(30), in TIMER;
        /// Whether the source cell forwards data that the UE has not received to the target.
        pub forwarding: bool = true;
        /// How long the UE tries to reach the target before the handover fails.
        pub t304: Span = Span::from_millis(500), in POSITIVE_TIMER;
        /// Duration of a re-establishment after a radio link failure or a failed handover.
        pub reestablishment: Span = Span::from_millis(150), in TIMER;
        /// Qout: below this SINR in dB the radio link is out of sync, and a cell cannot be accessed.
        pub q_out_db: f64 = -5.0, in SYNC_DB;
        /// Qin: above this SINR in dB the radio link is in sync; at least `q_out_db`.
        pub q_in_db: f64 = -3.9, in SYNC_DB;
        /// N310: consecutive out-of-sync measurements that start T310, 1 to 20.
        pub n310: u8 = 6, in 1..=20;
        /// N311: consecutive in-sync measurements that stop T310, 1 to 10.
        pub n311: u8 = 2, in 1..=10;
        /// T310: the radio link has failed when this timer expires.
        pub t310: Span = Span::from_secs(1), in Span::ZERO..=Span::from_secs(6);
    } with check_sync()
}

impl Handover {
    fn check_sync(&self, c: &mut Check) {
        if self.q_in_db < self.q_out_db {
            let message = format!("{} is below `q_out_db`, {}", shown(self.q_in_db), shown(self.q_out_db));
            c.key("q_in_db", |c| c.wrong(message));
        }
    }

    fn a3(&self) -> A3 {
        A3 {
            offset_db: self.offset_db,
            hysteresis_db: self.hysteresis_db,
            time_to_trigger: self.time_to_trigger,
            report_interval: self.report_interval,
        }
    }

    fn link(&self) -> RadioLink {
        RadioLink { q_out_db: self.q_out_db, q_in_db: self.q_in_db, n310: self.n310, n311: self.n311, t310: self.t310 }
    }
}

impl From<&Handover> for crate::Handover {
    fn from(of: &Handover) -> crate::Handover {
        crate::Handover {
            a3: of.enabled.then(|| of.a3()),
            period: of.measurement_period,
            filter: of.filter,
            preparation: of.preparation,
            command_bytes: of.command_size.get() as u32,
            interruption: of.interruption,
            forwarding: of.forwarding,
            t304: of.t304,
            reestablishment: of.reestablishment,
            link: of.link(),
        }
    }
}

impl Default for crate::Handover {
    fn default() -> crate::Handover {
        (&Handover::default()).into()
    }
}

impl Default for A3 {
    fn default() -> A3 {
        Handover::default().a3()
    }
}

impl Default for RadioLink {
    fn default() -> RadioLink {
        Handover::default().link()
    }
}
