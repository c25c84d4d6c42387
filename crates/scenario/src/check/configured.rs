//! Checks of configured grants: the values that 38.331 has in `ConfiguredGrantConfig`.

use super::*;
use crate::nr::{Duplex, McsTable};

/// `periodicity` in slots.
const PERIODS: [u64; 22] =
    [1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 128, 160, 256, 320, 512, 640, 1024, 1280, 2560, 5120];

pub(super) fn check(nr: &Nr, c: &mut Check) {
    let Some(grant) = &nr.mac.configured_grant else { return };
    c.key("configured_grant", |c| {
        let slot = nr.numerology().slot();
        let slots = grant.period.as_nanos() / slot.as_nanos();
        let is_whole = grant.period.as_nanos().is_multiple_of(slot.as_nanos());
        match &nr.duplex {
            Duplex::Flexible => c.wrong("flexible slots are divided by demand: use `fdd` or a TDD pattern"),
            _ if !is_whole || !PERIODS.contains(&slots) => {
                let list = PERIODS.map(|n| n.to_string()).join(", ");
                let message = format!("{} is not one of {list} slots of {slot}", grant.period);
                c.key("period", |c| c.wrong(message));
            }
            Duplex::Tdd { pattern, .. } if !slots.is_multiple_of(pattern.len().max(1) as u64) => {
                let (own, period) = (pattern.len(), grant.period);
                let message = format!("{period}, {slots} slots, is not a multiple of the TDD pattern, {own} slots");
                c.key("period", |c| c.wrong(message));
            }
            Duplex::Tdd { pattern, .. } if !pattern.contains('U') => c.wrong("the TDD pattern has no uplink slot"),
            _ => {}
        }
        match nr.carrier().blocks() {
            Some(1) => c.wrong("a carrier of one resource block has no room for repetitions"),
            Some(blocks) => c.range("resource_blocks", grant.resource_blocks, 1..=(blocks / 2).max(1)),
            None => {}
        }
        let most = if nr.uplink_mcs_table == McsTable::Qam256 { 27 } else { 28 };
        c.range("mcs", grant.mcs, 0..=most);
        c.range("timer", grant.timer, 1..=64);
        if nr.mac.harq_processes < 2 {
            return c.key("processes", |c| {
                c.wrong("one HARQ process is needed for other blocks: raise `harq_processes`");
            });
        }
        c.range("processes", grant.processes, 1..=(nr.mac.harq_processes - 1).min(15));
    });
}
