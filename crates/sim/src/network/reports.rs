//! The cells' reports on their UEs and what happens to these, made from the counters of the radio network.

use channel::Direction;
use ran::{DirectionStats, Ran};
use rnis::event::{Bearer, Event, HandoverStatus, Measurement, PERIODICAL, Signal, What};
use rnis::{RadioReport, UeId};
use units::{Span, Time};

use super::packet::Packet;
use crate::rows::radio::{FIRST_RNTI, carriers as carriers_of};

/// Interval of the UEs' measurement reports: the shortest of 36.331 and 38.331 (`ReportInterval`).
pub(crate) const MEASURED: Span = Span::from_millis(120);
/// The number of a default bearer (24.007, 11.2.3.1.5: 0 to 4 are not bearers).
const FIRST_ERAB: u8 = 5;
/// The distance in metres for which the timing advance grows by one step of 16 Ts: light goes to and fro.
const ADVANCE_M: f64 = channel::pathloss::LIGHT * 16.0 / (15_000.0 * 2048.0) / 2.0;

/// Makes reports at regular intervals, and events.
pub(crate) struct Reporter {
    /// The reported capacity as a multiple of the true one.
    factor: f64,
    /// By UE, its downlink's counters at the last report, and by carrier, the blocks that it had had and had used.
    ues: Vec<DirectionStats>,
    carriers: Vec<Blocks>,
    /// When the last report was made.
    since: Time,
    /// By UE, how many of the cells that have served it were told.
    told: Vec<usize>,
    /// By UE, the cell and the timing advance in it that were told last.
    advances: Vec<Option<(u32, u32)>>,
}

/// Block-slots of a carrier's downlink.
#[derive(Clone, Copy, Default)]
struct Blocks {
    all: u64,
    used: u64,
}

impl Reporter {
    /// Creates a reporter for `ues` UEs and `carriers` carriers: the cells and their secondary carriers.
    pub(crate) fn new(ues: usize, carriers: usize, factor: f64) -> Reporter {
        Reporter {
            factor,
            ues: vec![DirectionStats::default(); ues],
            carriers: vec![Blocks::default(); carriers],
            since: Time::ZERO,
            told: vec![0; ues],
            advances: vec![None; ues],
        }
    }

    /// Makes the reports on the interval that ends at `now`, of the served UEs that are `wanted`. The report on a UE that was
    /// connected during the interval counts what its cell did for it since then.
    pub(crate) fn make(
        &mut self,
        ran: &mut Ran<Packet>,
        now: Time,
        wanted: impl Fn(u32) -> bool,
        mut each: impl FnMut(u32, RadioReport),
    ) {
        let since = std::mem::replace(&mut self.since, now);
        let mut carriers = Vec::with_capacity(self.carriers.len());
        for (carrier, last) in (0..).zip(&mut self.carriers) {
            let all = ran.resource_blocks(carrier, Direction::Downlink, now);
            let had = Blocks { all, used: ran.used_blocks(carrier) };
            let before = std::mem::replace(last, had);
            carriers.push(Blocks { all: had.all - before.all, used: had.used - before.used });
        }
        // Of each cell, how many UEs had data.
        let mut active = vec![0; carriers.len()];
        let mut counted = Vec::with_capacity(self.ues.len());
        for (ue, last) in (0..).zip(&mut self.ues) {
            let before = std::mem::replace(last, ran.stats(ue).downlink);
            let new = ran.downlink_of_cell(ue, since, before);
            active[ran.last_serving(ue) as usize] +=
                u16::from(new.prbs > 0 || waiting(ran, ue, Direction::Downlink) > 0);
            counted.push(new);
        }
        for (ue, new) in (0..).zip(counted) {
            if !wanted(ue) {
                continue;
            }
            let Some(cell) = ran.serving(ue) else { continue };
            let scheme = ran.scheme(ue, now);
            let (mut prbs, mut blocks) = (0, Blocks::default());
            for carrier in carriers_of(ran, (ue, cell), Direction::Downlink) {
                prbs += ran.carrier_prbs(carrier);
                blocks.all += carriers[carrier as usize].all;
                blocks.used += carriers[carrier as usize].used;
            }
            let scaled = |bits: f64| bits * self.factor;
            each(
                ue,
                RadioReport {
                    time: now,
                    interval: now - since,
                    cell: cell.into(),
                    ue: id_of(ue),
                    n_prb: prbs,
                    slots: (blocks.all / u64::from(prbs.max(1))) as u32,
                    cell_prbs: Some(blocks.used),
                    active_ues: Some(active[cell as usize]),
                    prbs: Some(new.prbs),
                    acked_bits: scaled(new.bits as f64) as u64,
                    blocks: new.blocks as u32,
                    failed: new.first_failures as u32,
                    mcs: scheme.map(|s| s.mcs),
                    layers: scheme.map(|s| s.layers),
                    cqi: scheme.map(|s| s.cqi),
                    bits_per_prb: scheme.map(|s| scaled(s.bits_per_block)),
                    queue_bytes: Some(waiting(ran, ue, Direction::Downlink)),
                },
            );
        }
    }

    /// Tells of the changes of cells since the last call, in order of time, and of the bearers and carriers that UEs have in the
    /// cells that serve them first or next. `served` has, of each UE, since when which cells have served it.
    pub(crate) fn tell_changes(
        &mut self,
        ran: &Ran<Packet>,
        served: &[Vec<(Time, u32)>],
        mut each: impl FnMut(u32, Event),
    ) {
        let mut changes = Vec::new();
        for ((ue, served), told) in (0..).zip(served).zip(&mut self.told) {
            for at in *told..served.len() {
                let (time, target) = served[at];
                let source = at.checked_sub(1).map(|before| served[before].1);
                if source == Some(target) {
                    continue;
                }
                if let Some(source) = source {
                    let what = What::CellChange { status: HandoverStatus::Completed, targets: vec![target.into()] };
                    changes.push((ue, event(time, (ue, source), what)));
                }
                let bearers = (FIRST_ERAB..).zip(ran.classes(ue)).map(|(erab, qci)| Bearer { erab, qci, rates: None });
                let second = ran.secondary(ue, target).map(|carrier| vec![carrier.into()]);
                let carriers = second.map(|added| What::CarrierReconfigured { added, removed: Vec::new() });
                let begins = bearers.map(What::BearerEstablished).chain(carriers);
                changes.extend(begins.map(|what| (ue, event(time, (ue, target), what))));
            }
            *told = served.len();
        }
        changes.sort_by_key(|(_, change)| change.time);
        changes.into_iter().for_each(|(ue, change)| each(ue, change));
    }

    /// Makes the measurement reports of the served UEs at `now`, and tells of timing advances that have changed.
    pub(crate) fn measure(&mut self, ran: &mut Ran<Packet>, now: Time, mut each: impl FnMut(u32, Event)) {
        for (ue, told) in (0..).zip(&mut self.advances) {
            let Some(cell) = ran.serving(ue) else { continue };
            let heard = ran.hears(ue, now);
            let serving =
                Signal { rsrp_dbm: Some(heard.rsrp_dbm), rsrq_db: Some(heard.rsrq_db), sinr_db: heard.sinr_db };
            let measurement = Measurement { trigger: PERIODICAL, serving, neighbours: Vec::new() };
            each(ue, event(now, (ue, cell), What::Measurement(measurement)));
            let timing_advance = (ran.distance_m(ue, now) / ADVANCE_M).round() as u32;
            if told.replace((cell, timing_advance)) != Some((cell, timing_advance)) {
                each(ue, event(now, (ue, cell), What::TimingAdvance { timing_advance }));
            }
        }
    }
}

fn event(time: Time, (ue, cell): (u32, u32), what: What) -> Event {
    Event { time, cell: cell.into(), ue: id_of(ue), temp_ue_id: None, what }
}

fn id_of(ue: u32) -> UeId {
    UeId::new((FIRST_RNTI + ue) as u16)
}

/// Returns the bytes that wait for their first transmission to or from a UE.
pub(super) fn waiting(ran: &Ran<Packet>, ue: u32, direction: Direction) -> u64 {
    ran.rlc_backlog(ue, direction).bytes + ran.above_backlog(ue, direction).bytes
}
