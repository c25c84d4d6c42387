//! The MAC layer of LTE cells.

use super::{
    ASSIGNMENTS, Drx, MAX_AVERAGE, MILLISECOND, OUTER_LOOP_DB, POSITIVE_TIMER, SR_MAXIMUM, SR_PROHIBIT, TRANSMISSIONS,
    check_delay,
};
use crate::{LinkAdaptation, MacConfig, PowerReports, Rat, Requests};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::check::Check;
use units::{Span, parameters};

/// Duration of random access: preamble, response, message 3, and contention.
pub(super) const RANDOM_ACCESS: Span = Span::from_millis(24);
/// Bytes of the grant that answers a scheduling request, where files do not say it.
const FIRST_GRANT: u32 = 150;

/// The scope of a downlink CQI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CqiOf {
    /// The whole carrier.
    #[default]
    Carrier,
    /// The carrier's worst resource block group. ns-3's schedulers choose a block's modulation and coding by the worst
    /// group it is sent on; this setting gives the same result if one UE has the whole carrier, and is pessimistic if
    /// several share it.
    WorstGroup,
}

parameters! {
    /// Parameters of the MAC layer.
    pub struct Mac {
        /// Maximum number of HARQ transmissions of a transport block.
        pub harq_transmissions: u8 = 4, in TRANSMISSIONS;
        /// Decoding delay, from the end of a transmission until RLC receives the block; at most 3 ms, when the
        /// acknowledgement is due.
        // 36.213 7.3: in the fourth subframe after the block.
        pub decoding: Span = Span::from_millis(3), in Span::ZERO..=MILLISECOND * 3;
        /// Interval between channel quality reports.
        pub cqi_period: Span = Span::from_millis(5), in POSITIVE_TIMER;
        /// Delay from the measurement until the scheduler has the report.
        pub cqi_delay: Span = Span::from_millis(6);
        /// The scope of a CQI. It also applies with `ideal`.
        pub cqi: CqiOf = CqiOf::Carrier;
        /// Step of the outer-loop link adaptation towards 10 % block errors, in dB; 0 disables it.
        pub outer_loop_db: f64 = 0.1, in OUTER_LOOP_DB;
        /// Averaging time of proportional fair: a UE's past rate is an exponential average over it. ns-3's default is 99 ms, as 99
        /// TTIs of LTE.
        pub fairness: Span = Span::from_millis(100), in MILLISECOND * 2..=MAX_AVERAGE;
        /// Interval between a UE's scheduling request opportunities in ms: 1, 2, 5, 10, 20, 40 or 80.
        // 36.213 table 10.1.5-1.
        pub sr_period: u8 = 10, in &[1, 2, 5, 10, 20, 40, 80];
        /// Number of these opportunities for which a request suppresses the next one, 0 to 7.
        pub sr_prohibit: u8 = 1, in SR_PROHIBIT;
        /// Number of scheduling requests before random access, 4 to 64.
        pub sr_maximum: u8 = 64, in SR_MAXIMUM;
        /// Interval between buffer status reports while data waits.
        pub bsr_period: Span = Span::from_millis(10), in POSITIVE_TIMER;
        /// How long a UE with data waits without a grant before it requests again.
        pub bsr_retx: Span = Span::from_millis(320), in POSITIVE_TIMER;
        /// Number of assignments and grants that the control channel has room for in a TTI, both directions together, 2 to 1000.
        /// Default: half of the control channel elements of two control symbols, at least 2: 12 in 10 MHz, 25 in 20 MHz.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub assignments: Option<u16> = None, in ASSIGNMENTS;
        /// Discontinuous reception. Default: UEs always listen.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub drx: Option<Drx> = None;
        /// Idealised like ns-3's LTE module: buffer levels are known at once; no scheduling requests, MAC headers or
        /// decoding delay.
        pub ideal: bool = false;
    } with check_parts()
}

impl Mac {
    fn check_parts(&self, c: &mut Check) {
        check_delay(self.cqi_delay, self.cqi_period, MILLISECOND, c);
        let Some(drx) = &self.drx else { return };
        c.key("drx", |c| {
            if self.ideal {
                c.wrong("UEs that send no scheduling requests (`ideal = true`) always listen");
            } else {
                drx.check(c);
            }
        });
    }

    fn link(&self) -> LinkAdaptation {
        LinkAdaptation {
            period: self.cqi_period,
            delay: self.cqi_delay,
            step_db: self.outer_loop_db as f32,
            worst_group: self.cqi == CqiOf::WorstGroup,
        }
    }

    fn requests(&self) -> Requests {
        Requests {
            sr_period: self.sr_period.into(),
            sr_prohibit: self.sr_prohibit,
            sr_maximum: self.sr_maximum,
            random_access: RANDOM_ACCESS,
            bsr_periodic: Some(self.bsr_period),
            bsr_retx: self.bsr_retx,
            first_grant: FIRST_GRANT,
        }
    }
}

impl From<&Mac> for MacConfig {
    fn from(of: &Mac) -> MacConfig {
        if of.ideal {
            let ideal = MacConfig::ideal();
            return MacConfig {
                transmissions: of.harq_transmissions,
                link: LinkAdaptation { worst_group: of.link().worst_group, ..ideal.link },
                fairness: of.fairness,
                requests: of.requests(),
                ..ideal
            };
        }
        MacConfig {
            rat: Rat::default(),
            transmissions: of.harq_transmissions,
            decoding: of.decoding,
            link: of.link(),
            fairness: of.fairness,
            requests: of.requests(),
            assignments: of.assignments,
            power_reports: PowerReports::default(),
            drx: of.drx.as_ref().map(Into::into),
            configured: None,
        }
    }
}

impl Default for MacConfig {
    fn default() -> MacConfig {
        (&Mac::default()).into()
    }
}

impl Default for LinkAdaptation {
    fn default() -> LinkAdaptation {
        Mac::default().link()
    }
}

impl Default for Requests {
    fn default() -> Requests {
        Mac::default().requests()
    }
}
