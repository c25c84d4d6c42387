//! LTE in FDD: 36.211, 36.213, 36.321.

use aqm::{Drops, Packet};
use channel::{Direction, tables::lte as tables};
use units::Span;

use super::{Grid, Need, Sizes, Timing};
use crate::mac::blocks::Blocks;
use crate::mac::power::{self, HEADROOM_REPORT};
use crate::mac::requests::{Report, SHORT_BSR};
use crate::mac::sched::Candidate;
use crate::network::{Io, Ran};
use crate::ue::Ue;

/// The length of a subframe, which is a TTI.
pub(super) const SLOT: Span = Span::from_millis(1);

/// A request takes its own TTI and three more for decoding and scheduling; grants, data and feedback are four TTIs
/// apart (36.213 7.3, 8.0).
pub(super) const TIMING: Timing =
    Timing { request_to_grant: 4, grant_to_data: 4, data_to_nack: 4, data_to_reuse: 8, longest_decoding: 3 };

/// 36.321 5.3.2, 5.4.2.
pub(super) const PROCESSES: u8 = 8;

/// Maximum number of resource blocks in the tables of transport block sizes.
pub(super) const WIDEST: u16 = 110;

/// The MAC overhead of a grant: a subheader, a short buffer status report and a power headroom report.
const MAC_PART: u32 = 1 + SHORT_BSR + HEADROOM_REPORT;

/// Synchronous HARQ: the TTI number determines the process (36.321 5.4.2).
#[inline]
pub(super) fn uplink_process(tti: u64) -> u8 {
    (tti % u64::from(PROCESSES)) as u8
}

/// Downlink allocation of type 0 (36.213 7.1.6.1). The uplink's control channel occupies the edges: one block of 25 on
/// both sides together, an estimate of operators' configurations.
pub(super) fn grid(prbs: u16) -> Grid {
    let group = tables::rbg_size(prbs);
    let control = prbs / 25;
    Grid {
        prbs,
        group,
        groups: prbs.div_ceil(group),
        shared: Blocks::run(control / 2, prbs - control),
        sizes: Sizes::Smooth,
    }
}

#[inline]
pub(super) fn downlink_bits(mcs: u8, prbs: u16) -> u32 {
    tables::tbs(tables::dl_mcs(mcs).i_tbs, prbs)
}

#[inline]
pub(super) fn uplink_bits(mcs: u8, prbs: u16) -> u32 {
    tables::tbs(tables::ul_mcs(mcs).i_tbs, prbs)
}

/// I_TBS 6 has more bits than coded bits on one block (36.213 table 7.1.7.2.1-1). In both directions it corresponds to
/// MCS 6.
#[inline]
pub(super) fn usable(mcs: u8, prbs: u16) -> u8 {
    if mcs == 6 && prbs == 1 { 5 } else { mcs }
}

#[inline]
pub(super) fn uplink_need<P: Packet>(ue: &Ue<P>) -> Need {
    let estimate = &ue.estimate;
    if !estimate.wants() {
        return Need::Nothing;
    }
    Need::Bytes((estimate.waiting.max(estimate.asked) + MAC_PART).max(estimate.least().unwrap_or(0)))
}

#[inline]
pub(super) fn uplink_candidate<P: Packet>(
    ran: &mut Ran<P>,
    index: u32,
    (need, free): (u32, u16),
    tti: u64,
) -> Option<Candidate> {
    let ue = &mut ran.ues[index as usize];
    let cell = &ran.cells[ue.serving];
    let (rat, sizes) = (cell.mac.rat, cell.grid.sizes);
    let strength = ue.uplink.strength(tti);
    let most = strength.most_prbs();
    // A UE at its power limit has a better scheme on fewer blocks: try the number for the scheme of one block.
    let few = cell.grant_for(ue.uplink.scheme(rat, 1, tti), need).min(most);
    let mcs = ue.uplink.scheme(rat, few, tti);
    let want = cell.grant_for(mcs, need).min(sizes.up_to(most));
    let mut least = 1;
    if let Some(bytes) = ue.estimate.least() {
        let bits_at = |ue: &mut Ue<P>, prbs| rat.uplink_bits(ue.uplink.scheme(rat, prbs, tti), prbs);
        let enough = bytes.saturating_mul(8);
        if bits_at(ue, want) < enough {
            ue.estimate.give_up();
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
        Candidate::limited(index, weight, (least, want), strength, sizes)
    })
}

#[inline]
pub(super) fn uplink_payload(bytes: u32) -> u32 {
    bytes.saturating_sub(MAC_PART).max(1)
}

/// 36.321 5.4.3, 5.4.5.
#[inline]
pub(super) fn fill_uplink<P: Packet, D: Drops<P>, S>(
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
    let (before, _) = ue.uplink_groups(now);
    let everything = before.iter().fold(1u32, |sum, b| sum.saturating_add(*b));
    // A report that would displace the last of the data is not sent.
    let reports = ue.request_state.report_due && (everything > bytes || everything + SHORT_BSR <= bytes);
    if reports {
        bytes = bytes.saturating_sub(Report::size(&before));
    }
    // 36.321 5.4.3.1: after the buffer status report, before data.
    let mut headroom = None;
    let path_loss_db = ue.air.path_loss_db(ue.serving, now);
    if ue.reporting.is_due(&mac.power_reports, path_loss_db, tti) && bytes >= HEADROOM_REPORT {
        bytes -= HEADROOM_REPORT;
        headroom = Some(power::level(ue.air.headroom_db(ue.serving, now, prbs)));
        ue.reporting.reported(&mac.power_reports, path_loss_db, slots, tti);
    }
    let mut left = ue.fill(Direction::Uplink, process, bytes, true, now, io.drops);
    let (after, with_data) = ue.uplink_groups(now);
    let mut report = reports.then(|| Report::of(after));
    let size = Report::size(&after);
    if !reports && left >= size {
        // Room that would be padding is used for a report.
        report = Some(Report::of(after));
        left -= size;
    }
    if report.is_some() {
        ue.request_state.reported(&mac.requests, slots, tti);
    } else if with_data == 0 {
        ue.request_state.settled();
    }
    let transport = &mut ue.up.harq.processes[usize::from(process)];
    transport.report = report;
    transport.headroom = headroom;
    left
}

/// Returns the smallest valid number of blocks of an uplink grant from `n` on.
#[inline]
pub(super) fn uplink_size_from(n: u16) -> u16 {
    UPLINK_SIZES_FROM[usize::from(n.min(108))].into()
}

const UPLINK_SIZES_FROM: [u8; 109] = {
    let mut sizes = [108; 109];
    let mut n = 108;
    while n > 0 {
        n -= 1;
        sizes[n] = if UPLINK_SIZES[n] as usize == n && n > 0 { n as u8 } else { sizes[n + 1] };
    }
    sizes
};

/// Returns the largest valid number of blocks of an uplink grant up to `n` (36.211 5.3.3: 2^a 3^b 5^c).
#[inline]
pub(super) fn uplink_size(n: u16) -> u16 {
    UPLINK_SIZES[usize::from(n.min(110))].into()
}

const UPLINK_SIZES: [u8; 111] = {
    let mut sizes = [0; 111];
    let mut n = 1;
    while n < sizes.len() {
        let mut rest = n;
        while rest % 2 == 0 {
            rest /= 2;
        }
        while rest % 3 == 0 {
            rest /= 3;
        }
        while rest % 5 == 0 {
            rest /= 5;
        }
        sizes[n] = if rest == 1 { n as u8 } else { sizes[n - 1] };
        n += 1;
    }
    sizes
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uplink_sizes_have_the_factors_2_3_and_5_only() {
        for n in 1..=110u16 {
            let size = uplink_size(n);
            let allowed = |mut k: u16| {
                for p in [2, 3, 5] {
                    while k.is_multiple_of(p) {
                        k /= p;
                    }
                }
                k == 1
            };
            assert!(size <= n && allowed(size) && ((size + 1)..=n).all(|k| !allowed(k)), "{n}: {size}");
        }
    }
}
