//! What happens to a UE in a cell, beside its reports.

use crate::identity::{Rat, TempUeId};
use crate::report::{RadioReport, UeId, micros_span, micros_time};
use channel::tables::{RSRP_DBM, RSRQ_DB, SINR_DB};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use units::{Span, Time};

/// The most cells or carriers that one event may name; a measurement report holds 8 neighbours (36.331, `maxCellReport`), and a
/// UE aggregates at most 32 carriers (36.331 and 38.331, `maxNrofServingCells`).
pub const MOST_CELLS_IN_EVENT: usize = 32;

/// One record of a feed.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// What a cell did for a UE in an interval.
    Report(RadioReport),
    /// What happened to a UE.
    Event(Event),
}

impl Record {
    /// Returns when it was recorded.
    pub fn time(&self) -> Time {
        match self {
            Record::Report(report) => report.time,
            Record::Event(event) => event.time,
        }
    }

    /// Returns the report, if it is one.
    pub fn report_mut(&mut self) -> Option<&mut RadioReport> {
        match self {
            Record::Report(report) => Some(report),
            Record::Event(_) => None,
        }
    }

    /// Changes when it was recorded.
    pub fn set_time(&mut self, time: Time) {
        match self {
            Record::Report(report) => report.time = time,
            Record::Event(event) => event.time = time,
        }
    }
}

/// Something that happened to a UE in a cell. In JSON, the field `event` tells which kind it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When it happened.
    #[serde(rename = "time_us", with = "micros_time")]
    pub time: Time,
    /// The serving cell; at a cell change, the source.
    pub cell: u64,
    /// The UE.
    #[serde(flatten)]
    pub ue: UeId,
    /// Its temporary identity, if the cell knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temp_ue_id: Option<TempUeId>,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum What {
    /// The UE reported measurements.
    Measurement(Measurement),
    /// A handover changed its state.
    CellChange {
        /// The state.
        status: HandoverStatus,
        /// The target cells; one, once the handover is executed.
        targets: Vec<u64>,
    },
    /// A bearer was established.
    BearerEstablished(Bearer),
    /// A bearer's quality of service changed.
    BearerModified(Bearer),
    /// A bearer was released.
    BearerReleased {
        /// The bearer.
        erab: u8,
    },
    /// The timing advance was measured or changed.
    TimingAdvance {
        /// In units of 16 Ts (36.214 5.2.4).
        timing_advance: u32,
    },
    /// The carriers of the UE changed.
    CarrierReconfigured {
        /// Secondary cells that were added.
        #[serde(default)]
        added: Vec<u64>,
        /// Secondary cells that were removed.
        #[serde(default)]
        removed: Vec<u64>,
    },
    /// An S1 bearer (N3 tunnel) was established, modified or released.
    S1Bearer {
        /// What happened to it.
        action: S1Action,
        /// The bearer.
        bearer: S1Bearer,
    },
    /// Counters of the layer 2 that a [`RadioReport`] does not have.
    Layer2(Layer2),
    /// The UE left the cell.
    Left,
}

/// The state of a handover; the numbers are MEC 012's `hoStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum HandoverStatus {
    /// The target is being prepared.
    InPreparation = 1,
    /// The UE changes to the target.
    InExecution = 2,
    /// The UE is in the target.
    Completed = 3,
    /// The target refused.
    Rejected = 4,
    /// The source cancelled.
    Cancelled = 5,
}

/// A measurement report of a UE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Why it was sent: the number of MEC 012's `Trigger` (LTE) or `TriggerNr`.
    pub trigger: u8,
    /// The serving cell.
    pub serving: Signal,
    /// Other cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbours: Vec<Neighbour>,
}

/// The values of MEC 012's `Trigger` (36.331) for LTE cells.
pub const TRIGGERS_LTE: &[u8] = &[0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15, 20, 21, 30, 31, 40, 41, 42, 50, 51, 60, 61];
/// The values of MEC 012's `TriggerNr` (38.331) for NR cells.
pub const TRIGGERS_NR: &[u8] = &[0, 1, 2, 10, 11, 12, 13, 14, 15, 20, 21, 30, 31];
/// The trigger of periodic reports, the same number for both technologies.
pub const PERIODICAL: u8 = 1;

/// The signal of a cell at a UE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    /// Reference signal received power in dBm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rsrp_dbm: Option<f64>,
    /// Reference signal received quality in dB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rsrq_db: Option<f64>,
    /// Signal to interference and noise ratio in dB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sinr_db: Option<f64>,
}

impl Signal {
    /// Returns what of a modem's values can have been measured. Modems tell unknown values as others: as -32768 or a tenth of it, as
    /// 32767, as 0 or as -1. No cell has an RSRQ of 0 or -1 dB: of the received power, its reference signals are less than half. A
    /// SINR of 0 or -1 dB is believed if the power is known.
    pub fn of_modem(rsrp_dbm: Option<f64>, rsrq_db: Option<f64>, sinr_db: Option<f64>) -> Signal {
        let is_filler = |value: &f64| *value == 0.0 || *value == -1.0;
        let rsrp_dbm = rsrp_dbm.filter(|value| RSRP_DBM.contains(value));
        let is_known = rsrp_dbm.is_some();
        Signal {
            rsrp_dbm,
            rsrq_db: rsrq_db.filter(|value| RSRQ_DB.contains(value) && !is_filler(value)),
            sinr_db: sinr_db.filter(|value| SINR_DB.contains(value) && (is_known || !is_filler(value))),
        }
    }
}

/// A measured neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Neighbour {
    /// The cell.
    pub cell: u64,
    /// Its technology, if not that of the serving cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rat: Option<Rat>,
    /// Its signal.
    #[serde(flatten)]
    pub signal: Signal,
}

/// A radio access bearer and its quality of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bearer {
    /// The bearer's number in its UE (0 to 15).
    pub erab: u8,
    /// The class: QCI, or 5QI of an NR flow.
    pub qci: u8,
    /// Bit rates of a bearer with a guaranteed rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<BearerRates>,
}

/// Maximum and guaranteed rates of a bearer in bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BearerRates {
    /// Maximum downlink rate.
    pub mbr_dl: u64,
    /// Maximum uplink rate.
    pub mbr_ul: u64,
    /// Guaranteed downlink rate.
    pub gbr_dl: u64,
    /// Guaranteed uplink rate.
    pub gbr_ul: u64,
}

/// What happened to an S1 bearer; the numbers are MEC 012's `eventType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum S1Action {
    /// It was established.
    Established = 1,
    /// It was modified.
    Modified = 2,
    /// It was released.
    Released = 3,
}

/// The tunnel of a bearer between the base station and its gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct S1Bearer {
    /// The bearer's number in its UE.
    pub erab: u8,
    /// The base station's end.
    pub enb: TunnelEnd,
    /// The gateway's end.
    pub sgw: TunnelEnd,
}

/// One end of a GTP tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelEnd {
    /// Its transport address.
    pub address: IpAddr,
    /// Its tunnel endpoint identifier.
    pub teid: u32,
}

/// Layer 2 counters of a UE over an interval, as 36.314 defines them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layer2 {
    /// The length of the interval.
    #[serde(rename = "interval_us", with = "micros_span")]
    pub interval: Span,
    /// Mean delay of downlink packets in PDCP, RLC and MAC, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dl_delay_ms: Option<f64>,
    /// Downlink packets that were discarded, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dl_discard_percent: Option<f64>,
    /// Bits that the UE received, if no report tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dl_bits: Option<u64>,
    /// Bits that the UE sent and the cell decoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ul_bits: Option<u64>,
    /// Share of the uplink's blocks that all UEs together used, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_ul_prb_percent: Option<f64>,
    /// Share of the downlink's blocks that all UEs together used, in percent, if no report tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_dl_prb_percent: Option<f64>,
}

impl Event {
    /// Checks what JSON does not: lists have a bounded length, and numbers the range of their field.
    pub fn check(&self) -> Result<(), &'static str> {
        let too_many = |cells: usize| cells > MOST_CELLS_IN_EVENT;
        let long = |text: &String| text.len() > 32;
        if self.temp_ue_id.as_ref().is_some_and(|id| long(&id.mmec) || long(&id.mtmsi)) {
            return Err("a temporary identity is longer than 32 bytes");
        }
        match &self.what {
            What::Measurement(Measurement { trigger, neighbours, .. }) => {
                if too_many(neighbours.len()) {
                    return Err("a measurement has more than 32 neighbours");
                }
                if !TRIGGERS_LTE.contains(trigger) {
                    return Err("the trigger of a measurement is not one of MEC 012's");
                }
            }
            What::CellChange { targets, .. } if targets.is_empty() => return Err("a cell change has no target"),
            What::CellChange { targets, .. } if too_many(targets.len()) => {
                return Err("a cell change has more than 32 targets");
            }
            What::CarrierReconfigured { added, removed } if too_many(added.len()) || too_many(removed.len()) => {
                return Err("a carrier reconfiguration has more than 32 cells");
            }
            What::BearerEstablished(Bearer { erab, .. })
            | What::BearerModified(Bearer { erab, .. })
            | What::BearerReleased { erab }
            | What::S1Bearer { bearer: S1Bearer { erab, .. }, .. }
                if *erab > 15 =>
            {
                return Err("the number of a bearer is 0 to 15");
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_json() {
        let end = |last| TunnelEnd { address: [10, 0, 0, last].into(), teid: u32::from(last) };
        let neighbour = Neighbour { cell: 8, rat: None, signal: Signal { rsrp_dbm: Some(-97.5), ..Signal::default() } };
        let serving = Signal { rsrp_dbm: Some(-101.0), rsrq_db: Some(-11.0), sinr_db: None };
        let bearer = Bearer { erab: 5, qci: 9, rates: None };
        for what in [
            What::Measurement(Measurement { trigger: 12, serving, neighbours: vec![neighbour] }),
            What::CellChange { status: HandoverStatus::InPreparation, targets: vec![8, 9] },
            What::BearerEstablished(bearer),
            What::BearerModified(bearer),
            What::BearerReleased { erab: 5 },
            What::TimingAdvance { timing_advance: 12 },
            What::CarrierReconfigured { added: vec![9], removed: vec![] },
            What::S1Bearer { action: S1Action::Released, bearer: S1Bearer { erab: 5, enb: end(1), sgw: end(2) } },
            What::Left,
        ] {
            let ue = UeId::new(61).at([10, 45, 0, 2]);
            let event = Event { time: Time::from_nanos(5_000), cell: 7, ue, temp_ue_id: None, what };
            let text = serde_json::to_string(&event).expect("it can be written");
            assert_eq!(serde_json::from_str::<Event>(&text).expect("it can be read"), event, "{text}");
            assert_eq!(event.check(), Ok(()));
        }
    }

    #[test]
    fn long_lists_and_wrong_numbers_are_errors() {
        let event = |what| Event { time: Time::ZERO, cell: 1, ue: UeId::new(1), temp_ue_id: None, what };
        let targets = vec![1; 33];
        for what in [
            What::CellChange { status: HandoverStatus::Completed, targets },
            What::CellChange { status: HandoverStatus::Completed, targets: vec![] },
            What::BearerReleased { erab: 16 },
            What::Measurement(Measurement { trigger: 99, serving: Signal::default(), neighbours: vec![] }),
            What::CarrierReconfigured { added: vec![], removed: vec![2; 33] },
        ] {
            assert!(event(what.clone()).check().is_err(), "{what:?}");
        }
    }
}
