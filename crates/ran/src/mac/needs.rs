//! What UEs need of the grants of a slot: 36.321 and 38.321, 5.4.3 to 5.4.6.
//!
//! A cell whose UEs report their buffers and their power grants what its estimates of them say. In
//! [`crate::Rat::LteIdeal`] it knows both.

use aqm::Packet;
use channel::Direction;

use crate::mac::cell::Cell;
use crate::mac::power::Spread;
use crate::mac::requests::SHORT_BSR;
use crate::mac::sched::Candidate;
use crate::rat::{Formats, Reports};
use crate::ue::Ue;

/// A UE's demand for the uplink scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// None, until it is activated again.
    Nothing,
    /// None in this slot.
    Later,
    /// A block for this many bytes.
    Bytes(u32),
}

/// Returns the MAC overhead of a grant: the subheader of its data, a short buffer status report and a power headroom
/// report.
#[inline]
fn mac_part(reports: Reports) -> u32 {
    u32::from(reports.adds_headers()) + SHORT_BSR + reports.headroom_report()
}

/// Returns what `ue` needs of the grants that are made in `slot`.
#[inline]
pub(crate) fn need<P: Packet>(reports: Reports, ue: &mut Ue<P>, slot: u64) -> Need {
    if !reports.include_buffers() {
        return known_need(reports, ue, slot);
    }
    let estimate = &ue.mac.estimate;
    if !estimate.wants() {
        return Need::Nothing;
    }
    Need::Bytes(estimate.waiting.max(estimate.asked).max(estimate.least().unwrap_or(0)) + mac_part(reports))
}

/// Returns the known backlog minus pending grants.
#[inline]
fn known_need<P: Packet>(reports: Reports, ue: &mut Ue<P>, slot: u64) -> Need {
    let known = reports.report(ue.bearers.uplink_groups(ue.slots.start(slot))).bytes;
    if known == 0 {
        return Need::Nothing;
    }
    match known.saturating_sub(ue.mac.estimate.granted_from_now(slot)) {
        0 => Need::Later,
        bytes => Need::Bytes(bytes),
    }
}

/// Returns the bytes of an uplink grant of `bytes` that are left for data.
#[inline]
pub(crate) fn payload(reports: Reports, bytes: u32) -> u32 {
    if reports.include_buffers() { bytes.saturating_sub(mac_part(reports)).max(1) } else { bytes }
}

/// Returns `ue`, of this `index`, as a candidate for one of `free` uplink resource blocks of a slot of `cell` with these
/// `formats`, to carry `need` bytes; `None` if no block can carry what it has.
#[inline]
pub(crate) fn candidate<P: Packet>(
    formats: &Formats,
    cell: &Cell,
    (index, ue): (u32, &mut Ue<P>),
    (need, free): (u32, u16),
    tti: u64,
) -> Option<Candidate> {
    if cell.wants.has_equal_uplink() {
        return Some(Candidate::new(index, 0.0, free));
    }
    let sizes = cell.grid.sizes;
    let strength = ue.mac.uplink.strength(tti);
    let spread = Spread { strength, rates: formats.uplink_rates() };
    let most = spread.most_prbs();
    // A UE at its power limit has a better scheme on fewer blocks: try the number for the scheme of one block. In a slot
    // of a few symbols, one block is too small for the channel's scheme.
    let one = if formats.slots_differ() {
        ue.mac.uplink.scheme_at(formats, 1, tti)
    } else {
        ue.mac.uplink.scheme(formats, 1, tti)
    };
    let need = need.max(formats.least_bytes(Direction::Uplink));
    let mut few = cell.grant_for(formats, one, need).min(most);
    if formats.slots_differ() {
        match ue.mac.uplink.carrying(formats, (few, most.min(cell.grid.prbs)), tti) {
            Some(enough) => few = enough,
            // It waits for a slot with more symbols.
            None if !formats.is_longest(Direction::Uplink) => return None,
            // There is no longer slot: repetitions must do the rest.
            None => {}
        }
    }
    let mcs = ue.mac.uplink.scheme(formats, few, tti);
    let want = cell.grant_for(formats, mcs, need).min(sizes.up_to(most));
    let holds_all = formats.uplink_bits(mcs, want) >= need.saturating_mul(8);
    if ue.mac.estimate.waiting == 0 && formats.is_short(Direction::Uplink) && !holds_all {
        // The answer to a request waits for a longer slot: what a part of it leaves could be granted only after a report.
        return None;
    }
    let fits_one = formats.uplink_bits(mcs, 1) >= formats.least_bytes(Direction::Uplink) * 8;
    let mut least =
        if fits_one { 1 } else { cell.grant_for(formats, mcs, formats.least_bytes(Direction::Uplink)).min(want) };
    if let Some(bytes) = ue.mac.estimate.least() {
        let bits_at = |ue: &mut Ue<P>, prbs| formats.uplink_bits(ue.mac.uplink.scheme(formats, prbs, tti), prbs);
        let enough = bytes.saturating_mul(8);
        if bits_at(ue, want) < enough {
            let is_whole = formats.elements(Direction::Uplink) >= cell.formats.elements(Direction::Uplink);
            if is_whole {
                ue.mac.estimate.give_up();
            }
            // Otherwise it waits for a slot with more symbols.
            return None;
        }
        least = (1..want).find(|prbs| bits_at(ue, *prbs) >= enough).map_or(want, |prbs| sizes.from(prbs)).min(want);
    }
    let weight = cell.uplink.scheduler.weight(&mut ue.mac.up.past, tti);
    Some(if want <= strength.full_power_prbs() {
        let whole = sizes.up_to(free).max(1);
        let rate = formats.uplink_bits(mcs, whole) as f32 / f32::from(whole);
        Candidate { least, ..Candidate::new(index, weight * rate, want) }
    } else {
        Candidate::limited(index, weight, (least, want), spread, sizes)
    })
}
