//! The lightweight PEP as a middlebox.

use super::interface::{Emission, FlowKey, Middlebox, Passing, Verdict};
use crate::rows::RunId;
use ::pep::{Pep, Stats};
use record::tables::{PepRow, Peps};
use units::Time;

/// A PEP, and the loss of its reports.
pub(crate) struct PepBox {
    pep: Pep<FlowKey>,
    /// Probability that a report is lost, and its random stream.
    report_loss: f64,
    random: link::Random,
}

impl PepBox {
    /// Creates a PEP whose reports are lost with the probability `report_loss`.
    pub(crate) fn new(report_loss: f64, random: link::Random) -> PepBox {
        PepBox { pep: Pep::new(::pep::Config::default()), report_loss, random }
    }

    fn loses_report(&mut self) -> bool {
        self.report_loss > 0.0 && link::unit(&mut self.random) < self.report_loss
    }

    /// Writes its row at the end.
    pub(super) fn finish(&self, RunId { point, run }: RunId, node: &str, table: &mut Peps) {
        let Stats { data, data_bytes, reports, nacks, report_bytes, withheld, flows, evicted } = self.pep.stats();
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

impl Middlebox for PepBox {
    fn handle_packet(&mut self, packet: &Passing<'_>, now: Time) -> Verdict {
        let Passing { flow, segment, arrival, way, .. } = packet;
        if !packet.towards_receiver {
            self.pep.on_reply(*flow, segment, now);
            return Verdict::Forward;
        }
        match self.pep.on_arrival(*flow, segment, arrival, now) {
            Some(segment) if !self.loses_report() => {
                Verdict::Emit(Emission { way: *way, onward: false, segment, ect: false, sent: None })
            }
            _ => Verdict::Forward,
        }
    }
}
