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
        let on = one_of("on_duration", drx.on_duration, &ON, c);
        one_of("inactivity", drx.inactivity, &INACTIVITY, c);
        let cycle = one_of("cycle", drx.cycle, &CYCLES, c);
        one_of("retransmission", drx.retransmission, &RETRANSMISSION, c);
        let short = drx.short_cycle.filter(|short| one_of("short_cycle", *short, &SHORT, c));
        c.range("short_cycles", drx.short_cycles, 1..=16);
        if cycle {
            check_cycles(drx.cycle, on.then_some(drx.on_duration), short, drx.offset, c);
        }
    });
}

pub(super) fn check_nr(nr: &Nr, c: &mut Check) {
    let Some(drx) = &nr.mac.drx else { return };
    c.key("drx", |c| {
        let on = check_nr_on(nr, drx.on_duration, c);
        one_of("inactivity", drx.inactivity, &INACTIVITY, c);
        let cycle = one_of("cycle", drx.cycle, &NR_CYCLES, c);
        for (key, slots) in
            [("retransmission", drx.retransmission), ("uplink_retransmission", drx.uplink_retransmission)]
        {
            if !RETRANSMISSION.contains(&slots.into()) {
                c.key(key, |c| c.wrong(format!("{slots} is not one of {}", list(&RETRANSMISSION))));
            }
        }
        c.range("harq_rtt", drx.harq_rtt, 0..=56);
        c.range("uplink_harq_rtt", drx.uplink_harq_rtt, 0..=56);
        let short = drx.short_cycle.filter(|short| one_of("short_cycle", *short, &NR_SHORT, c));
        c.range("short_cycles", drx.short_cycles, 1..=16);
        if cycle {
            check_cycles(drx.cycle, on.then_some(drx.on_duration), short, drx.offset, c);
        }
    });
}

/// Checks an on-duration: below a millisecond, in 32nds of one.
fn check_nr_on(nr: &Nr, on: Span, c: &mut Check) -> bool {
    let part = MILLISECOND / 32;
    let is_part = on < MILLISECOND && on > Span::ZERO && on.as_nanos().is_multiple_of(part.as_nanos());
    if !is_part && on < MILLISECOND {
        let message = format!("{on} is not one of 1 to 31 times 1/32 ms, which is {part}, or {} ms", list(&ON));
        c.key("on_duration", |c| c.wrong(message));
        return false;
    }
    if !is_part && !one_of("on_duration", on, &ON, c) {
        return false;
    }
    if let Duplex::Tdd { pattern, .. } = &nr.duplex {
        let length = nr.numerology().slot() * pattern.len() as u64;
        if on < length {
            let message = format!("{on} is shorter than the TDD pattern, {length}: it may have no downlink");
            c.key("on_duration", |c| c.wrong(message));
            return false;
        }
    }
    true
}

/// Checks that a time is one of these milliseconds.
fn one_of(key: &str, time: Span, of: &[u64], c: &mut Check) -> bool {
    let is_one = of.iter().any(|ms| MILLISECOND * *ms == time);
    if !is_one {
        c.key(key, |c| c.wrong(format!("{time} is not one of {} ms", list(of))));
    }
    is_one
}

fn list(of: &[u64]) -> String {
    of.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// Checks how valid times fit a valid cycle.
fn check_cycles(cycle: Span, on: Option<Span>, short: Option<Span>, offset: Option<Span>, c: &mut Check) {
    if let Some(on) = on.filter(|on| *on > cycle) {
        c.key("on_duration", |c| c.wrong(format!("{on} is longer than the cycle, {cycle}")));
    }
    if let Some(offset) = offset
        && (offset >= cycle || !offset.as_nanos().is_multiple_of(MILLISECOND.as_nanos()))
    {
        c.key("offset", |c| c.wrong(format!("{offset} must be whole milliseconds, and less than the cycle, {cycle}")));
    }
    if let Some(short) = short
        && (short >= cycle || !cycle.as_nanos().is_multiple_of(short.as_nanos()))
    {
        c.key("short_cycle", |c| c.wrong(format!("the cycle, {cycle}, is not a multiple of {short}")));
    }
}
