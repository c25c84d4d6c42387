//! The contents of an uplink block: data, buffer status and power headroom.

use aqm::{Drops, Packet};
use channel::Direction;

use crate::mac::cell::Cell;
use crate::mac::requests::{GROUPS, SHORT_BSR};
use crate::ue::Ue;

/// Builds the uplink block of `process` of `ue`: data and, where they are reported to `cell`, buffer status and power
/// headroom. Returns the bytes that nothing was left for.
#[inline]
pub(crate) fn fill<P: Packet>(cell: &Cell, ue: &mut Ue<P>, process: u8, tti: u64, drops: &mut impl Drops<P>) -> u32 {
    if cell.reports.include_buffers() {
        return fill_reporting(cell, ue, process, tti, drops);
    }
    let bytes = ue.mac.up.harq.processes[usize::from(process)].bits / 8;
    ue.fill(Direction::Uplink, process, (bytes, false), ue.slots.start(tti), drops)
}

/// 36.321 5.4.3, 5.4.5.
#[inline]
fn fill_reporting<P: Packet>(cell: &Cell, ue: &mut Ue<P>, process: u8, tti: u64, drops: &mut impl Drops<P>) -> u32 {
    let (slots, mac, reports) = (cell.slots, &cell.mac, cell.reports);
    let now = slots.start(tti);
    let transport = &ue.mac.up.harq.processes[usize::from(process)];
    let (mut bytes, prbs) = (transport.bits / 8, transport.prbs);
    ue.mac.request_state.granted(&mac.requests, slots, tti);
    let before = ue.bearers.uplink_groups(now);
    let everything = before.iter().fold(1u32, |sum, b| sum.saturating_add(*b));
    // A report that would displace the last of the data is not sent.
    let is_reported = ue.mac.request_state.report_due && (everything > bytes || everything + SHORT_BSR <= bytes);
    if is_reported {
        bytes = bytes.saturating_sub(reports.report_size(&before));
    }
    // 36.321 5.4.3.1: after the buffer status report, before data.
    let mut headroom = None;
    let path_loss_db = ue.phy.air.path_loss_db(ue.serving, now);
    if ue.mac.reporting.is_due(&mac.power_reports, path_loss_db, tti) && bytes >= reports.headroom_report() {
        bytes -= reports.headroom_report();
        headroom = Some((reports.headroom_level(ue.phy.air.headroom_db(ue.serving, now, prbs)), prbs));
        ue.mac.reporting.reported(&mac.power_reports, path_loss_db, slots, tti);
    }
    ue.mac.up.harq.processes[usize::from(process)].room = bytes;
    let mut left = ue.fill(Direction::Uplink, process, (bytes, reports.adds_headers()), now, drops);
    let after = ue.bearers.uplink_groups(now);
    let mut report = is_reported.then(|| reports.report(after));
    let size = reports.report_size(&after);
    if !is_reported && left >= size {
        // Room that would be padding is used for a report.
        report = Some(reports.report(after));
        left -= size;
    }
    if report.is_some() {
        ue.mac.request_state.reported(&mac.requests, slots, tti);
    } else if after == [0; GROUPS] {
        ue.mac.request_state.settled();
    }
    let transport = &mut ue.mac.up.harq.processes[usize::from(process)];
    transport.report = report;
    transport.headroom = headroom;
    left
}
