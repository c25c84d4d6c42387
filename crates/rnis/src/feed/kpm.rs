//! E2SM-KPM measurements (names of 28.552, as srsRAN and OpenAirInterface send them), as an xApp prints them.
//!
//! JSON: one object a line. Measurements are members of the object or of its member `measData`; those of UEs may be in
//! `ueMeasData`, by number. CSV: a head of names, a row for each UE or cell.
//!
//! | member or column | contents |
//! | --- | --- |
//! | `time_us` | the end of the interval in Unix time; otherwise the arrival |
//! | `granulPeriod`, `granularity_ms` | the interval in ms; otherwise the time since the UE's last record |
//! | `cell` | the cell; otherwise [`Carrier::cell`] |
//! | `ue`, `ue_id`, `rnti` | the UE; a record without it is about the cell |
//!
//! Units: `DRB.UEThpDl` kbit/s, `DRB.RlcSduDelayDl` in ms, `DRB.RlcPacketDropRateDl` in 10^-6,
//! `DRB.RlcSduTransmittedVolumeDL` kbit, `RRU.PrbUsedDl` and `RRU.PrbAvailDl` (unused) in blocks per slot, `RRU.PrbTotDl` in
//! percent, `RSRP` dBm, `RSRQ` dB. Other measurements are ignored.
//!
//! An object with `ueMeasData` has all UEs of a cell. So their blocks, if they are not told, are inferred from the cell's and from
//! what each was sent at its CQI. Records of one UE have its blocks only if they tell them.

use super::blocks::fill_in;
use super::carrier::{Carrier, MOST_UES, interval, scaled};
use super::json::{as_number, rounded};
use super::table::Table;
use crate::error::FeedError;
use crate::event::{Event, Layer2, Measurement, PERIODICAL, Record, Signal, What};
use crate::report::{RadioReport, UeId};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use units::{Span, Time};

/// The parser.
#[derive(Clone, Debug)]
pub struct Kpm {
    carrier: Carrier,
    table: Table,
    before: BTreeMap<(u64, u16), Time>,
    /// Blocks per slot that each cell uses, of those that it has.
    cells: BTreeMap<u64, (f64, f64)>,
}

/// The measurements of one record by name.
#[derive(Debug, Default)]
struct Values(BTreeMap<String, f64>);

impl Values {
    fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Returns a value that is not negative.
    fn positive(&self, name: &str) -> Option<f64> {
        self.get(name).filter(|value| *value >= 0.0)
    }

    fn whole<T: TryFrom<u64>>(&self, name: &str) -> Option<T> {
        rounded(self.get(name)?)
    }

    fn add(&mut self, object: &Value) {
        for (name, value) in object.as_object().into_iter().flatten() {
            if let Some(number) = as_number(value) {
                self.0.insert(name.clone(), number);
            }
        }
    }
}

fn reports_on(records: &mut [Record], cell: u64) -> impl Iterator<Item = &mut RadioReport> {
    records.iter_mut().filter_map(Record::report_mut).filter(move |report| report.cell == cell)
}

impl Kpm {
    /// Creates a parser for a carrier.
    pub fn new(carrier: Carrier) -> Kpm {
        Kpm { carrier, table: Table::default(), before: BTreeMap::new(), cells: BTreeMap::new() }
    }

    /// Parses one line that arrived at `now`.
    pub fn parse(&mut self, line: &[u8], now: Time) -> Result<Vec<Record>, FeedError> {
        let mut records = Vec::new();
        if line.first() != Some(&b'{') {
            let mut values = Values::default();
            let Some(row) = self.table.line(line)? else { return Ok(records) };
            for (name, text) in row.entries() {
                let number = crate::addresses::number(text).map(|number| number as f64);
                if let Some(number) = number.or_else(|| text.parse().ok()).filter(|number: &f64| number.is_finite()) {
                    values.0.insert(name.to_owned(), number);
                }
            }
            self.record(&values, now, &mut records);
            return Ok(records);
        }
        let object: Value = serde_json::from_slice(line).map_err(|why| FeedError::json(&why))?;
        let mut common = Values::default();
        common.add(&object);
        if let Some(data) = object.get("measData") {
            common.add(data);
        }
        let Some(ues) = object.get("ueMeasData").and_then(Value::as_object) else {
            self.record(&common, now, &mut records);
            return Ok(records);
        };
        if ues.len() > MOST_UES {
            return Err(FeedError::new(format_args!("more than {MOST_UES} UEs")));
        }
        if object.get("measData").is_some() {
            self.record(&common, now, &mut records);
        }
        for (ue, data) in ues {
            let number = crate::addresses::number(ue).and_then(|number| u16::try_from(number).ok());
            let number = number.ok_or_else(|| FeedError::new(format_args!("invalid UE `{ue}`")))?;
            let mut values = Values::default();
            for name in ["time_us", "granulPeriod", "granularity_ms", "cell"] {
                if let Some(value) = common.get(name) {
                    values.0.insert(name.into(), value);
                }
            }
            values.add(data);
            if let Some(data) = data.get("measData") {
                values.add(data);
            }
            values.0.insert("ue".into(), number.into());
            self.record(&values, now, &mut records);
        }
        // Those are all UEs of the cell, unless one names another cell.
        let cells: BTreeSet<u64> =
            records.iter_mut().filter_map(Record::report_mut).map(|report| report.cell).collect();
        for cell in cells {
            let active = reports_on(&mut records, cell).filter(|report| report.acked_bits > 0).count();
            reports_on(&mut records, cell).for_each(|report| report.active_ues = u16::try_from(active).ok());
            fill_in(reports_on(&mut records, cell));
        }
        Ok(records)
    }

    fn record(&mut self, values: &Values, now: Time, records: &mut Vec<Record>) {
        let cell = values.whole("cell").unwrap_or(self.carrier.cell);
        let micros: Option<u64> = values.whole("time_us");
        let time = micros.and_then(|micros| micros.checked_mul(1000)).map_or(now, Time::from_nanos);
        if let (Some(used), Some(free)) = (values.positive("RRU.PrbUsedDl"), values.positive("RRU.PrbAvailDl"))
            && used + free > 0.0
            && (self.cells.len() < MOST_UES || self.cells.contains_key(&cell))
        {
            self.cells.insert(cell, (used, used + free));
        }
        let ue = ["rnti", "ue", "ue_id"].iter().find_map(|name| values.whole::<u16>(name));
        let key = (cell, ue.unwrap_or_default());
        let given = values.positive("granulPeriod").or(values.positive("granularity_ms")).filter(|ms| *ms <= 3.6e6);
        let interval = match given {
            Some(ms) if ms > 0.0 => Span::from_micros(scaled(ms * 1000.0)),
            _ => interval(self.before.get(&key).copied(), time, self.carrier.period),
        };
        if self.before.len() < MOST_UES || self.before.contains_key(&key) {
            self.before.insert(key, time);
        }
        let ue_id = UeId::new(key.1);
        let event = |what| Record::Event(Event { time, cell, ue: ue_id, temp_ue_id: None, what });
        let bits = |throughput: &str, volume: &str| {
            let rate = values.positive(throughput).map(|kbps| scaled(kbps * 1000.0 * interval.as_secs_f64()));
            rate.or_else(|| values.positive(volume).map(|kbit| scaled(kbit * 1000.0)))
        };
        let dl_bits = bits("DRB.UEThpDl", "DRB.RlcSduTransmittedVolumeDL");
        if ue.is_some()
            && let Some(acked_bits) = dl_bits
        {
            records.push(Record::Report(self.report(values, (time, interval), cell, ue_id, acked_bits)));
        }
        let layer2 = Layer2 {
            interval,
            dl_delay_ms: values.positive("DRB.RlcSduDelayDl"),
            dl_discard_percent: values.positive("DRB.RlcPacketDropRateDl").map(|ppm| (ppm / 1e4).min(100.0)),
            dl_bits,
            ul_bits: bits("DRB.UEThpUl", "DRB.RlcSduTransmittedVolumeUL"),
            cell_ul_prb_percent: values.positive("RRU.PrbTotUl").map(|percent| percent.min(100.0)),
            cell_dl_prb_percent: values.positive("RRU.PrbTotDl").map(|percent| percent.min(100.0)),
        };
        let nothing = Layer2 {
            interval,
            dl_delay_ms: None,
            dl_discard_percent: None,
            dl_bits: None,
            ul_bits: None,
            cell_ul_prb_percent: None,
            cell_dl_prb_percent: None,
        };
        if layer2 != nothing {
            records.push(event(What::Layer2(layer2)));
        }
        let serving = Signal { rsrp_dbm: values.get("RSRP"), rsrq_db: values.get("RSRQ"), sinr_db: values.get("SINR") };
        if ue.is_some() && serving != Signal::default() {
            records.push(event(What::Measurement(Measurement { trigger: PERIODICAL, serving, neighbours: vec![] })));
        }
    }

    fn report(
        &self,
        values: &Values,
        (time, interval): (Time, Span),
        cell: u64,
        ue: UeId,
        acked_bits: u64,
    ) -> RadioReport {
        let slots = self.carrier.slots(interval);
        let all = u64::from(self.carrier.n_prb) * u64::from(slots);
        let blocks = |per_slot: f64| scaled(per_slot * f64::from(slots)).min(all);
        let cell_prbs = match self.cells.get(&cell) {
            Some((used, total)) => Some(blocks(used / total * f64::from(self.carrier.n_prb))),
            None => values.positive("RRU.PrbTotDl").map(|percent| scaled(percent / 100.0 * all as f64).min(all)),
        };
        // Where the UE's own blocks are known, they also tell what one block carries.
        let prbs = values.positive("RRU.PrbUsedDl").filter(|_| values.get("RRU.PrbAvailDl").is_none()).map(blocks);
        RadioReport {
            time,
            interval,
            cell,
            ue,
            n_prb: self.carrier.n_prb,
            slots,
            cell_prbs,
            active_ues: None,
            prbs,
            acked_bits,
            blocks: 0,
            failed: 0,
            mcs: None,
            layers: None,
            cqi: values.whole("CQI").filter(|cqi| (1..=15).contains(cqi)),
            bits_per_prb: prbs.filter(|&prbs| prbs > 0).map(|prbs| (acked_bits as f64 / prbs as f64).min(1e6)),
            queue_bytes: None,
        }
    }
}
