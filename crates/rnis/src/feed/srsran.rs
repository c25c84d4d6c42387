//! Metrics of srsRAN's gNB (25.10 and later; older releases wrap members in `ue_container`).
//!
//! The gNB sends a JSON object each report period (`du_report_period`, by default 1 s) to those who sent
//! `{"cmd": "metrics_subscribe"}`. Objects without `cells` are metrics of other layers and hold no records.
//!
//! What it does not tell: resource blocks of a UE and of the carrier, and addresses. `n_prb` comes from [`Carrier`], addresses
//! from [`crate::AddressMap`]; a UE's blocks are inferred from the cell's and from what each UE decoded at its MCS and rank. Its
//! cells have no identity but their PCI, which takes its place.
//!
//! `pdsch_prbs_used_per_tdd_slot_idx` is a mean over the report period in some releases and a sum in others. It is taken for a
//! sum if an entry is greater than the number of resource blocks.

use super::blocks::fill_in;
use super::carrier::{Carrier, MOST_UES, interval, scaled};
use super::json::{integer, list, number, rounded};
use crate::error::FeedError;
use crate::event::{Event, Layer2, Record, What};
use crate::report::{RadioReport, UeId};
use serde_json::Value;
use units::{Span, Time};

/// The message that asks for the metrics.
pub const SUBSCRIBE: &str = r#"{"cmd":"metrics_subscribe"}"#;

/// The parser.
#[derive(Clone, Debug)]
pub struct Srsran {
    carrier: Carrier,
    before: Option<Time>,
}

impl Srsran {
    /// Creates a parser for a carrier.
    pub fn new(carrier: Carrier) -> Srsran {
        Srsran { carrier, before: None }
    }

    /// Parses one message that arrived at `now`. The interval ends then: the gNB's own timestamp has no time zone.
    pub fn parse(&mut self, message: &[u8], now: Time) -> Result<Vec<Record>, FeedError> {
        let message: Value = serde_json::from_slice(message).map_err(FeedError::new)?;
        if !message.is_object() {
            return Err(FeedError::new("the message is not a JSON object"));
        }
        if message.get("error").is_some() {
            return Err(FeedError::new(format_args!("the gNB replied {message}")));
        }
        let cells = list(&message, "cells");
        if cells.is_empty() && list(&message, "ue_list").is_empty() {
            return Ok(Vec::new());
        }
        let interval = interval(self.before, now, self.carrier.period);
        self.before = Some(now);
        let mut records = Vec::new();
        for cell in cells {
            self.cell(cell, now, interval, &mut records)?;
        }
        if cells.is_empty() {
            self.cell(&message, now, interval, &mut records)?;
        }
        Ok(records)
    }

    fn cell(&self, cell: &Value, now: Time, interval: Span, records: &mut Vec<Record>) -> Result<(), FeedError> {
        let metrics = cell.get("cell_metrics").unwrap_or(&Value::Null);
        let ues = list(cell, "ue_list");
        if ues.len() + records.len() > MOST_UES {
            return Err(FeedError::new(format_args!("more than {MOST_UES} UEs")));
        }
        let slots = self.carrier.slots(interval);
        let cell_pci: Option<u16> = integer(metrics, "pci");
        let cell_prbs = self.used_blocks(metrics, "pdsch_prbs_used_per_tdd_slot_idx", interval);
        let all = u64::from(self.carrier.n_prb) * u64::from(slots);
        let containers = || ues.iter().map(|ue| ue.get("ue_container").unwrap_or(ue));
        let is_active = |ue: &Value| [number(ue, "dl_nof_ok"), number(ue, "dl_bs")].iter().flatten().any(|&n| n > 0.0);
        let active = containers().filter(|ue| is_active(ue)).count();
        let of_others = records.len();
        for ue in containers() {
            let rnti: u16 = integer(ue, "rnti").ok_or_else(|| FeedError::new("a UE has no valid `rnti`"))?;
            let pci = integer(ue, "pci").or(cell_pci).map_or(self.carrier.cell, |pci: u16| pci.into());
            let ue_id = UeId::new(rnti);
            let rate = number(ue, "dl_brate").unwrap_or(0.0);
            let failed: u32 = integer(ue, "dl_nof_nok").unwrap_or(0);
            let decoded: u32 = integer(ue, "dl_nof_ok").unwrap_or(0);
            records.push(Record::Report(RadioReport {
                time: now,
                interval,
                cell: pci,
                ue: ue_id,
                n_prb: self.carrier.n_prb,
                slots,
                cell_prbs: cell_prbs.map(|used| used.min(all)),
                active_ues: u16::try_from(active).ok(),
                prbs: None,
                acked_bits: scaled(rate * interval.as_secs_f64()),
                blocks: decoded.saturating_add(failed),
                failed,
                mcs: integer(ue, "dl_mcs").filter(|mcs| *mcs <= 31),
                layers: number(ue, "dl_ri").and_then(rounded).filter(|rank| (1..=8).contains(rank)),
                cqi: integer(ue, "cqi").filter(|cqi| (1..=15).contains(cqi)),
                bits_per_prb: None,
                queue_bytes: integer(ue, "dl_bs"),
            }));
            let ul_bits = number(ue, "ul_brate").map(|rate| scaled(rate * interval.as_secs_f64()));
            let uplink = self.used_blocks(metrics, "pusch_prbs_used_per_tdd_slot_idx", interval);
            let uplink_slots = self.carrier.slots_of_both_directions(interval) - f64::from(slots);
            let uplink_blocks = uplink_slots * f64::from(self.carrier.n_prb);
            let share = |used: u64| (used as f64 * 100.0 / uplink_blocks).min(100.0);
            let layer2 = Layer2 {
                interval,
                dl_delay_ms: None,
                dl_discard_percent: None,
                dl_bits: None,
                ul_bits,
                cell_ul_prb_percent: uplink.filter(|_| uplink_blocks >= 1.0).map(share),
                cell_dl_prb_percent: None,
            };
            let what = What::Layer2(layer2);
            records.push(Record::Event(Event { time: now, cell: pci, ue: ue_id, temp_ue_id: None, what }));
        }
        fill_in(records[of_others..].iter_mut().filter_map(Record::report_mut));
        Ok(())
    }

    /// Returns the block-slots that a cell used in the interval.
    fn used_blocks(&self, metrics: &Value, name: &str, interval: Span) -> Option<u64> {
        let per_slot = list(metrics, name);
        if per_slot.is_empty() || per_slot.len() > 1024 {
            return None;
        }
        let counts: Vec<f64> = per_slot.iter().filter_map(Value::as_f64).filter(|n| *n >= 0.0).collect();
        let sum: f64 = counts.iter().sum();
        if counts.iter().any(|&count| count > f64::from(self.carrier.n_prb)) {
            return Some(scaled(sum));
        }
        // The list has an entry for each slot of the pattern, those of the other direction included.
        let mean = sum / counts.len().max(1) as f64;
        Some(scaled(mean * self.carrier.slots_of_both_directions(interval)))
    }
}
