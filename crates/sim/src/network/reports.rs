//! The cells' reports on their UEs and what happens to these, made from the counters of the radio network.

use channel::Direction;
use ran::{DirectionStats, Ran};
use rnis::event::{Event, HandoverStatus, Measurement, PERIODICAL, Signal, What};
use rnis::{RadioReport, Record, UeId};
use units::{Span, Time};

use super::packet::Packet;
use crate::rows::radio::{FIRST_RNTI, carriers};

/// Interval of the UEs' measurement reports: the shortest of 36.331 and 38.331 (`ReportInterval`).
const MEASURED: Span = Span::from_millis(120);

/// What was told of a UE.
#[derive(Clone, Copy, Default)]
struct Told {
    /// The cell that served it.
    cell: Option<u32>,
    /// When its next measurement report is due.
    measures: Time,
}

/// Makes reports at regular intervals.
pub(crate) struct Reporter {
    /// The reported capacity as a multiple of the true one.
    factor: f64,
    /// By UE and by cell, what had been counted in the downlink at the last report, and its time.
    ues: Vec<DirectionStats>,
    cells: Vec<u64>,
    since: Time,
    told: Vec<Told>,
}

impl Reporter {
    /// Creates a reporter for `ues` UEs and `cells` cells with their secondary carriers.
    pub(crate) fn new(ues: usize, cells: usize, factor: f64) -> Reporter {
        let counted = vec![DirectionStats::default(); ues];
        Reporter { factor, ues: counted, cells: vec![0; cells], since: Time::ZERO, told: vec![Told::default(); ues] }
    }

    /// Makes the reports on the interval that ends at `now`, of the served UEs that are `wanted`, and before each, if `events`
    /// are, what has happened to the UE.
    pub(crate) fn make(
        &mut self,
        ran: &mut Ran<Packet>,
        (now, events): (Time, bool),
        wanted: impl Fn(u32) -> bool,
        mut each: impl FnMut(u32, Record),
    ) {
        let interval = now - std::mem::replace(&mut self.since, now);
        let blocks = |ran: &Ran<Packet>, cell: u32| ran.resource_blocks(cell, Direction::Downlink, now);
        let had: Vec<u64> = (0..self.cells.len() as u32).map(|cell| blocks(ran, cell)).collect();
        let before = std::mem::replace(&mut self.cells, had);
        // Of each cell, the blocks that its UEs used, and how many UEs had data.
        let mut used = vec![(0, 0); self.cells.len()];
        let mut counted = Vec::with_capacity(self.ues.len());
        for (ue, last) in (0..).zip(&mut self.ues) {
            let all = ran.stats(ue).downlink;
            let new = all - std::mem::replace(last, all);
            let (prbs, active) = &mut used[ran.last_serving(ue) as usize];
            *prbs += new.prbs;
            *active += u16::from(new.prbs > 0 || waiting(ran, ue, Direction::Downlink) > 0);
            counted.push(new);
        }
        for (ue, new) in (0..).zip(counted) {
            if !wanted(ue) {
                continue;
            }
            let Some(cell) = ran.serving(ue) else { continue };
            if events {
                self.tell(ran, (ue, cell), now, |what| each(ue, Record::Event(what)));
            }
            let scheme = ran.scheme(ue, now);
            let (mut prbs, mut all) = (0, 0);
            for carrier in carriers(ran, (ue, cell), Direction::Downlink) {
                prbs += ran.carrier_prbs(carrier);
                all += self.cells[carrier as usize] - before[carrier as usize];
            }
            let (cell_prbs, active) = used[cell as usize];
            let scaled = |bits: f64| bits * self.factor;
            each(
                ue,
                Record::Report(RadioReport {
                    time: now,
                    interval,
                    cell: cell.into(),
                    ue: UeId::new((FIRST_RNTI + ue) as u16),
                    n_prb: prbs,
                    slots: (all / u64::from(prbs.max(1))) as u32,
                    cell_prbs: Some(cell_prbs),
                    active_ues: Some(active),
                    prbs: Some(new.prbs),
                    acked_bits: scaled(new.bits as f64) as u64,
                    blocks: new.blocks as u32,
                    failed: new.first_failures as u32,
                    mcs: scheme.map(|s| s.mcs),
                    layers: scheme.map(|s| s.layers),
                    cqi: scheme.map(|s| s.cqi),
                    bits_per_prb: scheme.map(|s| scaled(s.bits_per_block)),
                    queue_bytes: Some(waiting(ran, ue, Direction::Downlink)),
                }),
            );
        }
    }

    /// Tells of a UE that `cell` serves: that it came from another one, and what it measures.
    fn tell(&mut self, ran: &mut Ran<Packet>, (ue, cell): (u32, u32), now: Time, mut each: impl FnMut(Event)) {
        let told = &mut self.told[ue as usize];
        let mut event = |cell: u32, what| {
            let ue = UeId::new((FIRST_RNTI + ue) as u16);
            each(Event { time: now, cell: cell.into(), ue, temp_ue_id: None, what });
        };
        if let Some(source) = told.cell.replace(cell).filter(|&source| source != cell) {
            event(source, What::CellChange { status: HandoverStatus::Completed, targets: vec![cell.into()] });
        }
        if now >= told.measures {
            told.measures = now + MEASURED;
            let heard = ran.hears(ue, now);
            let serving =
                Signal { rsrp_dbm: Some(heard.rsrp_dbm), rsrq_db: Some(heard.rsrq_db), sinr_db: heard.sinr_db };
            let measurement = Measurement { trigger: PERIODICAL, serving, neighbours: Vec::new() };
            event(cell, What::Measurement(measurement));
        }
    }
}

/// Returns the bytes that wait for their first transmission to or from a UE.
pub(super) fn waiting(ran: &Ran<Packet>, ue: u32, direction: Direction) -> u64 {
    ran.rlc_backlog(ue, direction).bytes + ran.above_backlog(ue, direction).bytes
}
