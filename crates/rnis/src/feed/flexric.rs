//! FlexRIC's MAC (142) and RLC (143) service models as CSV, with the fields' names in the head: the best input of all, each
//! 1 to 10 ms.
//!
//! Counters grow from the UE's attachment, so a report needs two rows of its UE. A counter that went back, or grew by more than
//! the carrier has, was reset (the UE attached again, the gNB restarted); then the next row begins anew. Columns used:
//!
//! | column | contents |
//! | --- | --- |
//! | `tstamp` or `time_us` | the time in us; otherwise the arrival |
//! | `cell` | the cell; otherwise [`Carrier::cell`] |
//! | `rnti` | the UE |
//! | `dl_aggr_tbs` | bytes of transport blocks sent for the first time (OpenAirInterface's `total_bytes`) |
//! | `dl_aggr_prb`, `dl_aggr_retx_prb` | blocks of first transmissions and of retransmissions |
//! | `dl_harq[0]`, `dl_harq[1]` | first transmissions, and first retransmissions: those not decoded at once |
//! | `dl_mcs1`, `wb_cqi` | the latest values |
//! | `txbuf_occ_bytes`, `rbid` | RLC: bytes waiting in a bearer |

use super::carrier::{Carrier, LONGEST_INTERVAL, MOST_UES};
use super::table::{Row, Table};
use crate::error::FeedError;
use crate::event::{Event, Layer2, Record, What};
use crate::report::{RadioReport, UeId};
use std::collections::BTreeMap;
use units::{Span, Time};

/// The most bearers of a UE.
const MOST_BEARERS: usize = 32;

/// The parser.
#[derive(Clone, Debug)]
pub struct Flexric {
    carrier: Carrier,
    table: Table,
    ues: BTreeMap<(u64, u16), Ue>,
}

/// The last row of a UE.
#[derive(Clone, Debug, Default)]
struct Ue {
    mac: Option<(Time, Counters)>,
    /// Blocks used in the last interval, and its end.
    used: Option<(Time, u64)>,
    /// Bytes waiting in each bearer.
    bearers: BTreeMap<u8, u64>,
}

/// Counters that grow.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counters {
    dl_bytes: u64,
    ul_bytes: Option<u64>,
    first_prbs: u32,
    again_prbs: u32,
    blocks: Option<(u32, u32)>,
}

/// The differences of two [`Counters`].
struct Growth {
    dl_bytes: u64,
    ul_bytes: Option<u64>,
    first_prbs: u64,
    again_prbs: u64,
    blocks: u32,
    failed: u32,
}

impl Flexric {
    /// Creates a parser for a carrier.
    pub fn new(carrier: Carrier) -> Flexric {
        Flexric { carrier, table: Table::default(), ues: BTreeMap::new() }
    }

    /// Parses one line that arrived at `now`.
    pub fn parse(&mut self, line: &[u8], now: Time) -> Result<Vec<Record>, FeedError> {
        let Some(row) = self.table.line(line)? else { return Ok(Vec::new()) };
        let micros = match row.integer::<u64>("tstamp")? {
            Some(micros) => Some(micros),
            None => row.integer("time_us")?,
        };
        let time = match micros {
            Some(micros) => micros.checked_mul(1000).map(Time::from_nanos),
            None => Some(now),
        };
        let time = time.ok_or_else(|| FeedError::new("the time is beyond the year 2554"))?;
        let key = (row.integer("cell")?.unwrap_or(self.carrier.cell), row.required("rnti")?);
        if !self.ues.contains_key(&key) && self.ues.len() >= MOST_UES {
            // Prefer UEs that are there over those that are long gone; without any of these, start anew.
            self.ues.retain(|_, ue| ue.mac.is_some_and(|(last, _)| time.saturating_since(last) < LONGEST_INTERVAL));
            if self.ues.len() >= MOST_UES {
                self.ues.clear();
            }
        }
        if row.has("dl_aggr_tbs") {
            let counters = Counters {
                dl_bytes: row.required("dl_aggr_tbs")?,
                ul_bytes: row.integer("ul_aggr_tbs")?,
                first_prbs: row.required("dl_aggr_prb")?,
                again_prbs: row.integer("dl_aggr_retx_prb")?.unwrap_or(0),
                blocks: match (row.integer("dl_harq[0]")?, row.integer("dl_harq[1]")?) {
                    (Some(first), Some(again)) => Some((first, again)),
                    _ => None,
                },
            };
            return mac(&mut self.ues, self.carrier, &row, key, (time, counters));
        }
        if let Some(bytes) = row.integer::<u64>("txbuf_occ_bytes")? {
            let bearer = row.integer("rbid")?.unwrap_or(0);
            let bearers = &mut self.ues.entry(key).or_default().bearers;
            if bearers.len() < MOST_BEARERS || bearers.contains_key(&bearer) {
                bearers.insert(bearer, bytes);
            }
            return Ok(Vec::new());
        }
        Err(FeedError::new("neither dl_aggr_tbs nor txbuf_occ_bytes is a column"))
    }
}

fn mac(
    ues: &mut BTreeMap<(u64, u16), Ue>,
    carrier: Carrier,
    row: &Row<'_>,
    key: (u64, u16),
    (time, counters): (Time, Counters),
) -> Result<Vec<Record>, FeedError> {
    let ue = ues.entry(key).or_default();
    let before = ue.mac.replace((time, counters));
    let Some((since, before)) = before.filter(|&(since, _)| since < time && time - since <= LONGEST_INTERVAL) else {
        return Ok(Vec::new());
    };
    let interval = time - since;
    let slots = carrier.slots(interval).max(1);
    let all = u64::from(carrier.n_prb) * u64::from(slots);
    let Some(growth) = counters.since(&before, all) else {
        (ue.used, ue.bearers) = (None, BTreeMap::new());
        return Ok(Vec::new());
    };
    let prbs = (growth.first_prbs + growth.again_prbs).min(all);
    ue.used = Some((time, prbs));
    let queue_bytes = (!ue.bearers.is_empty()).then(|| ue.bearers.values().fold(0u64, |sum, n| sum.saturating_add(*n)));
    // Other UEs of the cell whose last interval overlaps this one.
    let recent = |used: &Option<(Time, u64)>| used.filter(|(end, _)| time.saturating_since(*end) < interval);
    let cell = ues.range((key.0, 0)..=(key.0, u16::MAX)).filter_map(|(_, ue)| recent(&ue.used));
    let (cell_prbs, active) =
        cell.fold((0u64, 0u16), |(sum, active), (_, used)| (sum.saturating_add(used), active + u16::from(used > 0)));
    let ue_id = UeId::new(key.1);
    let bits = growth.dl_bytes.saturating_mul(8);
    let per_block = (growth.first_prbs > 0).then(|| (bits as f64 / growth.first_prbs as f64).min(1e6));
    let report = RadioReport {
        time,
        interval,
        cell: key.0,
        ue: ue_id,
        n_prb: carrier.n_prb,
        slots,
        cell_prbs: Some(cell_prbs.min(all)),
        active_ues: Some(active),
        prbs: Some(prbs),
        acked_bits: bits,
        blocks: growth.blocks,
        failed: growth.failed,
        mcs: row.integer("dl_mcs1")?.filter(|mcs| *mcs <= 31),
        layers: None,
        cqi: row.integer("wb_cqi")?.filter(|cqi| (1..=15).contains(cqi)),
        bits_per_prb: per_block,
        queue_bytes,
    };
    let layer2 = layer2(interval, growth.ul_bytes.map(|bytes| bytes.saturating_mul(8)));
    let uplink = Event { time, cell: key.0, ue: ue_id, temp_ue_id: None, what: What::Layer2(layer2) };
    Ok(vec![Record::Report(report), Record::Event(uplink)])
}

fn layer2(interval: Span, ul_bits: Option<u64>) -> Layer2 {
    Layer2 {
        interval,
        dl_delay_ms: None,
        dl_discard_percent: None,
        dl_bits: None,
        ul_bits,
        cell_ul_prb_percent: None,
        cell_dl_prb_percent: None,
    }
}

impl Counters {
    /// Returns what the counters grew by, or `None` if one was reset. 32-bit counters may wrap around.
    fn since(&self, before: &Counters, all_prbs: u64) -> Option<Growth> {
        let dl_bytes = self.dl_bytes.checked_sub(before.dl_bytes)?;
        let first_prbs = u64::from(self.first_prbs.wrapping_sub(before.first_prbs));
        let again_prbs = u64::from(self.again_prbs.wrapping_sub(before.again_prbs));
        // Reports are not exactly periodic, so a few slots more than expected are no reset.
        let possible = all_prbs.saturating_mul(2);
        // One block carries at most 12 subcarriers, 14 symbols, 10 bits and 8 layers.
        let most_bytes = possible.saturating_mul(12 * 14 * 10 * 8 / 8);
        if first_prbs + again_prbs > possible || dl_bytes > most_bytes {
            return None;
        }
        let (blocks, failed) = match (self.blocks, before.blocks) {
            (Some(now), Some(then)) => (now.0.wrapping_sub(then.0), now.1.wrapping_sub(then.1)),
            _ => (0, 0),
        };
        if u64::from(blocks) > possible {
            return None;
        }
        let ul_bytes = match (self.ul_bytes, before.ul_bytes) {
            (Some(now), Some(then)) => Some(now.checked_sub(then)?),
            _ => None,
        };
        // A retransmission may belong to a block of the interval before.
        Some(Growth { dl_bytes, ul_bytes, first_prbs, again_prbs, blocks, failed: failed.min(blocks) })
    }
}
