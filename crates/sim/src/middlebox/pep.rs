//! The lightweight PEP as a middlebox.

use super::interface::{Emission, FlowKey, Middlebox, Passing, Verdict};
use crate::rows::RunId;
use ::pep::{Pep, Stats};
use record::tables::{PepRow, Peps};
use units::Time;

/// A PEP at a node, or one at each cell, and the loss of their reports.
pub(crate) struct PepBox {
    /// By cell, if there is one at each.
    peps: Vec<Pep<FlowKey>>,
    /// Probability that a report is lost, and its random stream.
    report_loss: f64,
    random: link::Random,
}

impl PepBox {
    /// Creates `count` PEPs whose reports are lost with the probability `report_loss`: one, or one for each cell.
    pub(crate) fn new(count: usize, report_loss: f64, random: link::Random) -> PepBox {
        let peps = (0..count).map(|_| Pep::new(::pep::Config::default())).collect();
        PepBox { peps, report_loss, random }
    }

    fn loses_report(&mut self) -> bool {
        self.report_loss > 0.0 && link::unit(&mut self.random) < self.report_loss
    }

    /// Writes the row of each PEP at the end. `cells` are the cells' names.
    pub(super) fn finish(&self, RunId { point, run }: RunId, node: &str, cells: &[String], table: &mut Peps) {
        for (cell, pep) in self.peps.iter().enumerate() {
            let node = if self.peps.len() > 1 { &cells[cell] } else { node };
            let Stats { data, data_bytes, reports, nacks, report_bytes, withheld, flows, evicted } = pep.stats();
            table.push(&PepRow {
                point,
                run,
                node,
                segments: data,
                bytes: data_bytes,
                reports,
                nacks,
                report_bytes,
                withheld,
                flows,
                evicted,
            });
        }
    }
}

impl Middlebox for PepBox {
    fn handle_packet(&mut self, packet: &Passing<'_>, now: Time) -> Verdict {
        let Passing { flow, segment, arrival, way, cell, .. } = packet;
        let at = if self.peps.len() > 1 { cell.unwrap_or(0) as usize } else { 0 };
        let pep = &mut self.peps[at];
        if !packet.towards_receiver {
            pep.on_reply(*flow, segment, now);
            return Verdict::Forward;
        }
        match pep.on_arrival(*flow, segment, arrival, now) {
            Some(segment) if !self.loses_report() => {
                Verdict::Emit(Emission { way: *way, onward: false, segment, ect: false, sent: None })
            }
            _ => Verdict::Forward,
        }
    }
}
