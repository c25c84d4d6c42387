//! Checks of the tables `drx`: the values that 36.331 and 38.331 have in `DRX-Config`.

use super::radio::MILLISECOND;
use super::*;
use crate::nr::Duplex;

/// `onDurationTimer` of 36.331, in milliseconds, with those of release 13.
const ON: [u64; 24] =
    [1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 40, 50, 60, 80, 100, 200, 300, 400, 500, 600, 800, 1000, 1200, 1600];
/// `drx-InactivityTimer` of both; LTE's has no 0 in release 8.
const INACTIVITY: [u64; 23] =
    [0, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 40, 50, 60, 80, 100, 200, 300, 500, 750, 1280, 1920, 2560];
/// `drx-RetransmissionTimer` of 36.331 in subframes, and those of 38.331 in slots.
const RETRANSMISSION: [u64; 17] = [0, 1, 2, 4, 6, 8, 16, 24, 33, 40, 64, 80, 96, 112, 128, 160, 320];
/// `longDRX-CycleStartOffset`, and `drx-LongCycleStartOffset`.
const CYCLES: [u64; 18] = [10, 20, 32, 40, 60, 64, 70, 80, 128, 160, 256, 320, 512, 640, 1024, 1280, 2048, 2560];
const NR_CYCLES: [u64; 20] =
    [10, 20, 32, 40, 60, 64, 70, 80, 128, 160, 256, 320, 512, 640, 1024, 1280, 2048, 2560, 5120, 10_240];
/// `shortDRX-Cycle`, and `drx-ShortCycle`.
const SHORT: [u64; 17] = [2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 128, 160, 256, 320, 512, 640];
const NR_SHORT: [u64; 23] = [2, 3, 4, 5, 6, 7, 8, 10, 14, 16, 20, 30, 32, 35, 40, 64, 80, 128, 160, 256, 320, 512, 640];

pub(super) fn check_lte(mac: &Mac, c: &mut Check) {
    let Some(drx) = &mac.drx else { return };
    if mac.ideal {
        return c.key("drx", |c| c.wrong("UEs that send no scheduling requests (`ideal = true`) always listen"));
    }
    c.key("drx", |c| {
        one_of("on_duration", drx.on_duration, &ON, c);
        one_of("inactivity", drx.inactivity, &INACTIVITY, c);
        one_of("cycle", drx.cycle, &CYCLES, c);
        one_of("retransmission", drx.retransmission, &RETRANSMISSION, c);
        if let Some(short) = drx.short_cycle {
            one_of("short_cycle", short, &SHORT, c);
        }
        check_cycles((drx.on_duration, drx.cycle, drx.offset), (drx.short_cycle, drx.short_cycles), c);
    });
}

pub(super) fn check_nr(nr: &Nr, c: &mut Check) {
    let Some(drx) = &nr.mac.drx else { return };
    c.key("drx", |c| {
        let part = MILLISECOND / 32;
        if drx.on_duration < MILLISECOND {
            let ns = drx.on_duration.as_nanos();
            if ns == 0 || !ns.is_multiple_of(part.as_nanos()) {
                c.key("on_duration", |c| {
                    c.wrong(format!("{} is not a multiple of a 32nd of a millisecond, {part}", drx.on_duration));
                });
            }
        } else {
            one_of("on_duration", drx.on_duration, &ON, c);
        }
        one_of("inactivity", drx.inactivity, &INACTIVITY, c);
        one_of("cycle", drx.cycle, &NR_CYCLES, c);
        for (key, slots) in
            [("retransmission", drx.retransmission), ("uplink_retransmission", drx.uplink_retransmission)]
        {
            if !RETRANSMISSION.contains(&slots.into()) {
                c.key(key, |c| c.wrong(format!("{slots} is not one of {}", list(&RETRANSMISSION))));
            }
        }
        c.range("harq_rtt", drx.harq_rtt, 0..=56);
        c.range("uplink_harq_rtt", drx.uplink_harq_rtt, 0..=56);
        if let Some(short) = drx.short_cycle {
            one_of("short_cycle", short, &NR_SHORT, c);
        }
        check_cycles((drx.on_duration, drx.cycle, drx.offset), (drx.short_cycle, drx.short_cycles), c);
        if let Duplex::Tdd { pattern, .. } = &nr.duplex {
            let length = nr.numerology().slot() * pattern.len() as u64;
            if drx.on_duration < length && drx.on_duration > Span::ZERO {
                let message =
                    format!("{} is shorter than the TDD pattern, {length}: it may have no downlink", drx.on_duration);
                c.key("on_duration", |c| c.wrong(message));
            }
        }
    });
}

/// Checks that a time is one of these milliseconds.
fn one_of(key: &str, time: Span, of: &[u64], c: &mut Check) {
    if !of.iter().any(|ms| MILLISECOND * *ms == time) {
        c.key(key, |c| c.wrong(format!("{time} is not one of {} ms", list(of))));
    }
}

fn list(of: &[u64]) -> String {
    of.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// Checks how the times of a configuration fit each other.
fn check_cycles((on, cycle, offset): (Span, Span, Option<Span>), (short, count): (Option<Span>, u8), c: &mut Check) {
    if on > cycle {
        c.key("on_duration", |c| c.wrong(format!("{on} is longer than the cycle, {cycle}")));
    }
    if let Some(offset) = offset
        && (offset >= cycle || !offset.as_nanos().is_multiple_of(MILLISECOND.as_nanos()))
    {
        c.key("offset", |c| c.wrong(format!("{offset} must be whole milliseconds, and less than the cycle, {cycle}")));
    }
    if let Some(short) = short
        && (short >= cycle || short == Span::ZERO || !cycle.as_nanos().is_multiple_of(short.as_nanos()))
    {
        c.key("short_cycle", |c| c.wrong(format!("the cycle, {cycle}, is not a multiple of {short}")));
    }
    c.range("short_cycles", count, 1..=16);
}
