//! What technologies share whose UEs report their buffers and their power: 36.321 and 38.321, 5.4.3 to 5.4.6.

use aqm::{Drops, Packet};
use channel::Direction;

use super::grid::Need;
use super::kind::Rat;
use crate::mac::power::Spread;
use crate::mac::requests::{GROUPS, SHORT_BSR};
use crate::mac::sched::Candidate;
use crate::network::{Io, Ran};
use crate::ue::Ue;

/// Returns the MAC overhead of a grant: the subheader of its data, a short buffer status report and a power headroom
/// report.
#[inline]
fn mac_part(rat: &Rat) -> u32 {
    u32::from(rat.adds_headers()) + SHORT_BSR + rat.headroom_report()
}

#[inline]
pub(super) fn uplink_need<P: Packet>(rat: &Rat, ue: &Ue<P>) -> Need {
    let estimate = &ue.estimate;
    if !estimate.wants() {
        return Need::Nothing;
    }
    Need::Bytes(estimate.waiting.max(estimate.asked).max(estimate.least().unwrap_or(0)) + mac_part(rat))
}

#[inline]
pub(super) fn uplink_candidate<P: Packet>(
    rat: &Rat,
    ran: &mut Ran<P>,
    index: u32,
    (need, free): (u32, u16),
    tti: u64,
) -> Option<Candidate> {
    let ue = &mut ran.ues[index as usize];
    let cell = &ran.cells[ue.serving];
    let sizes = cell.grid.sizes;
    let strength = ue.uplink.strength(tti);
    let spread = Spread { strength, rates: rat.uplink_rates() };
    let most = spread.most_prbs();
    // A UE at its power limit has a better scheme on fewer blocks: try the number for the scheme of one block. In a slot
    // of a few symbols, one block is too small for the channel's scheme.
    let one = if rat.is_nr() { ue.uplink.scheme_at(rat, 1, tti) } else { ue.uplink.scheme(rat, 1, tti) };
    let need = need.max(rat.least_bytes(Direction::Uplink));
    let mut few = cell.grant_for(rat, one, need).min(most);
    if rat.is_nr() {
        match ue.uplink.carrying(rat, (few, most.min(cell.grid.prbs)), tti) {
            Some(enough) => few = enough,
            // It waits for a slot with more symbols.
            None if !rat.is_longest(Direction::Uplink) => return None,
            // There is no longer slot: repetitions must do the rest.
            None => {}
        }
    }
    let mcs = ue.uplink.scheme(rat, few, tti);
    let want = cell.grant_for(rat, mcs, need).min(sizes.up_to(most));
    let holds_all = rat.uplink_bits(mcs, want) >= need.saturating_mul(8);
    if ue.estimate.waiting == 0 && rat.is_short(Direction::Uplink) && !holds_all {
        // The answer to a request waits for a longer slot: what a part of it leaves could be granted only after a report.
        return None;
    }
    let fits_one = rat.uplink_bits(mcs, 1) >= rat.least_bytes(Direction::Uplink) * 8;
    let mut least = if fits_one { 1 } else { cell.grant_for(rat, mcs, rat.least_bytes(Direction::Uplink)).min(want) };
    if let Some(bytes) = ue.estimate.least() {
        let bits_at = |ue: &mut Ue<P>, prbs| rat.uplink_bits(ue.uplink.scheme(rat, prbs, tti), prbs);
        let enough = bytes.saturating_mul(8);
        if bits_at(ue, want) < enough {
            let is_whole = rat.elements(Direction::Uplink) >= cell.mac.rat.elements(Direction::Uplink);
            if is_whole {
                ue.estimate.give_up();
            }
            // Otherwise it waits for a slot with more symbols.
            return None;
        }
        least = (1..want).find(|prbs| bits_at(ue, *prbs) >= enough).map_or(want, |prbs| sizes.from(prbs)).min(want);
    }
    let weight = cell.uplink.scheduler.weight(&mut ue.up.past, tti);
    Some(if want <= strength.full_power_prbs() {
        let whole = sizes.up_to(free).max(1);
        let rate = rat.uplink_bits(mcs, whole) as f32 / f32::from(whole);
        Candidate { least, ..Candidate::new(index, weight * rate, want) }
    } else {
        Candidate::limited(index, weight, (least, want), spread, sizes)
    })
}

#[inline]
pub(super) fn uplink_payload(rat: &Rat, bytes: u32) -> u32 {
    bytes.saturating_sub(mac_part(rat)).max(1)
}

/// 36.321 5.4.3, 5.4.5.
#[inline]
pub(super) fn fill_uplink<P: Packet, D: Drops<P>, S>(
    rat: &Rat,
    ran: &mut Ran<P>,
    index: u32,
    process: u8,
    tti: u64,
    io: &mut Io<'_, D, S>,
) -> u32 {
    let ue = &mut ran.ues[index as usize];
    let cell = &ran.cells[ue.serving];
    let (slots, mac) = (cell.slots, &cell.mac);
    let now = slots.start(tti);
    let transport = &ue.up.harq.processes[usize::from(process)];
    let (mut bytes, prbs) = (transport.bits / 8, transport.prbs);
    ue.request_state.granted(&mac.requests, slots, tti);
    let before = ue.uplink_groups(now);
    let everything = before.iter().fold(1u32, |sum, b| sum.saturating_add(*b));
    // A report that would displace the last of the data is not sent.
    let reports = ue.request_state.report_due && (everything > bytes || everything + SHORT_BSR <= bytes);
    if reports {
        bytes = bytes.saturating_sub(rat.report_size(&before));
    }
    // 36.321 5.4.3.1: after the buffer status report, before data.
    let mut headroom = None;
    let path_loss_db = ue.air.path_loss_db(ue.serving, now);
    if ue.reporting.is_due(&mac.power_reports, path_loss_db, tti) && bytes >= rat.headroom_report() {
        bytes -= rat.headroom_report();
        headroom = Some((rat.headroom_level(ue.air.headroom_db(ue.serving, now, prbs)), prbs));
        ue.reporting.reported(&mac.power_reports, path_loss_db, slots, tti);
    }
    ue.up.harq.processes[usize::from(process)].room = bytes;
    let mut left = ue.fill(Direction::Uplink, process, bytes, rat.adds_headers(), now, io.drops);
    let after = ue.uplink_groups(now);
    let mut report = reports.then(|| rat.report(after));
    let size = rat.report_size(&after);
    if !reports && left >= size {
        // Room that would be padding is used for a report.
        report = Some(rat.report(after));
        left -= size;
    }
    if report.is_some() {
        ue.request_state.reported(&mac.requests, slots, tti);
    } else if after == [0; GROUPS] {
        ue.request_state.settled();
    }
    let transport = &mut ue.up.harq.processes[usize::from(process)];
    transport.report = report;
    transport.headroom = headroom;
    left
}
