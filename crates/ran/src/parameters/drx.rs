//! Discontinuous reception of connected UEs (C-DRX), with the values that 36.331 and 38.331 have in `DRX-Config`.

use super::MILLISECOND;
use crate::ShortCycle;
use core::ops::RangeInclusive;
use units::check::Check;
use units::{Span, parameters};

/// `onDurationTimer` of 36.331, in milliseconds, with those of release 13.
const ON: [u64; 24] =
    [1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 40, 50, 60, 80, 100, 200, 300, 400, 500, 600, 800, 1000, 1200, 1600];
/// `drx-InactivityTimer` of both; LTE's has no 0 in release 8.
const INACTIVITY: [u64; 23] =
    [0, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 40, 50, 60, 80, 100, 200, 300, 500, 750, 1280, 1920, 2560];
/// `drx-RetransmissionTimer` of 36.331 in subframes, and those of 38.331 in slots.
const RETRANSMISSION: [u16; 17] = [0, 1, 2, 4, 6, 8, 16, 24, 33, 40, 64, 80, 96, 112, 128, 160, 320];
/// `longDRX-CycleStartOffset`, and `drx-LongCycleStartOffset`.
const CYCLES: [u64; 18] = [10, 20, 32, 40, 60, 64, 70, 80, 128, 160, 256, 320, 512, 640, 1024, 1280, 2048, 2560];
const NR_CYCLES: [u64; 20] =
    [10, 20, 32, 40, 60, 64, 70, 80, 128, 160, 256, 320, 512, 640, 1024, 1280, 2048, 2560, 5120, 10_240];
/// `shortDRX-Cycle`, and `drx-ShortCycle`.
const SHORT: [u64; 17] = [2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 128, 160, 256, 320, 512, 640];
const NR_SHORT: [u64; 23] = [2, 3, 4, 5, 6, 7, 8, 10, 14, 16, 20, 30, 32, 35, 40, 64, 80, 128, 160, 256, 320, 512, 640];
/// `drxShortCycleTimer`, and `drx-ShortCycleTimer`.
const SHORT_CYCLES: RangeInclusive<u8> = 1..=16;
/// `drx-HARQ-RTT-TimerDL` and `drx-HARQ-RTT-TimerUL`.
const HARQ_RTT: RangeInclusive<u8> = 0..=56;

parameters! {
    /// Discontinuous reception in LTE cells (36.321 5.7): UEs listen in a part of the time only.
    pub struct Drx {
        /// Time at the beginning of each cycle in which a UE listens (`onDurationTimer`).
        pub on_duration: Span = Span::from_millis(10);
        /// Time for which it listens after a new block of either direction (`drx-InactivityTimer`).
        pub inactivity: Span = Span::from_millis(100);
        /// The long cycle, 10 ms to 2.56 s.
        pub cycle: Span = Span::from_millis(160);
        /// Beginning of the cycles of all UEs, less than `cycle` (`drxStartOffset`). Default: UEs are spread over the cycle.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub offset: Option<Span> = None;
        /// A short cycle, 2 to 640 ms, which is used after a UE has stopped listening for new blocks; `cycle` is a multiple of
        /// it. Default: none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub short_cycle: Option<Span> = None;
        /// Number of short cycles before the long one is used (`drxShortCycleTimer`), 1 to 16.
        pub short_cycles: u8 = 2, in SHORT_CYCLES;
        /// Time for which a UE listens for the retransmission of a block, from 8 ms after the block on
        /// (`drx-RetransmissionTimer`).
        pub retransmission: Span = Span::from_millis(8);
    } with check_times()
}

parameters! {
    /// Discontinuous reception in NR cells (38.321 5.7): UEs listen in a part of the time only.
    pub struct NrDrx {
        /// Time at the beginning of each cycle in which a UE listens (`drx-onDurationTimer`); with TDD, at least a pattern.
        pub on_duration: Span = Span::from_millis(10);
        /// Time for which it listens after a new block of either direction (`drx-InactivityTimer`).
        pub inactivity: Span = Span::from_millis(100);
        /// The long cycle, 10 ms to 10.24 s.
        pub cycle: Span = Span::from_millis(160);
        /// Beginning of the cycles of all UEs, less than `cycle` (`drx-StartOffset`). Default: UEs are spread over the cycle.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub offset: Option<Span> = None;
        /// A short cycle, 2 to 640 ms, which is used after a UE has stopped listening for new blocks; `cycle` is a multiple of
        /// it. Default: none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub short_cycle: Option<Span> = None;
        /// Number of short cycles before the long one is used (`drx-ShortCycleTimer`), 1 to 16.
        pub short_cycles: u8 = 2, in SHORT_CYCLES;
        /// Slots in which a UE listens for the retransmission of a downlink block (`drx-RetransmissionTimerDL`).
        pub retransmission: u16 = 8, in &RETRANSMISSION;
        /// Slots in which it listens for a grant to repeat an uplink block (`drx-RetransmissionTimerUL`).
        pub uplink_retransmission: u16 = 8, in &RETRANSMISSION;
        /// Symbols from the acknowledgement of a downlink block that failed until the UE listens for its retransmission
        /// (`drx-HARQ-RTT-TimerDL`), 0 to 56.
        pub harq_rtt: u8 = 56, in HARQ_RTT;
        /// Symbols from an uplink block until the UE listens for a grant to repeat it (`drx-HARQ-RTT-TimerUL`), 0 to 56.
        pub uplink_harq_rtt: u8 = 56, in HARQ_RTT;
    } with check_times(pattern: Option<Span>)
}

impl Drx {
    fn check_times(&self, c: &mut Check) {
        let on = one_of("on_duration", self.on_duration, &ON, c);
        one_of("inactivity", self.inactivity, &INACTIVITY, c);
        let cycle = one_of("cycle", self.cycle, &CYCLES, c);
        one_of("retransmission", self.retransmission, &RETRANSMISSION, c);
        let short = self.short_cycle.filter(|short| one_of("short_cycle", *short, &SHORT, c));
        if cycle {
            check_cycles(self.cycle, on.then_some(self.on_duration), short, self.offset, c);
        }
    }
}

impl NrDrx {
    /// Checks the times in a cell whose TDD pattern, if any, has this length.
    fn check_times(&self, pattern: Option<Span>, c: &mut Check) {
        let on = self.check_on(pattern, c);
        one_of("inactivity", self.inactivity, &INACTIVITY, c);
        let cycle = one_of("cycle", self.cycle, &NR_CYCLES, c);
        let short = self.short_cycle.filter(|short| one_of("short_cycle", *short, &NR_SHORT, c));
        if cycle {
            check_cycles(self.cycle, on.then_some(self.on_duration), short, self.offset, c);
        }
    }

    /// Checks the on-duration: below a millisecond, in 32nds of one.
    fn check_on(&self, pattern: Option<Span>, c: &mut Check) -> bool {
        let (on, part) = (self.on_duration, MILLISECOND / 32);
        let is_part = on < MILLISECOND && on > Span::ZERO && on.as_nanos().is_multiple_of(part.as_nanos());
        if !is_part && on < MILLISECOND {
            let message = format!("{on} is not one of 1 to 31 times 1/32 ms, which is {part}, or {} ms", list(&ON));
            c.key("on_duration", |c| c.wrong(message));
            return false;
        }
        if !is_part && !one_of("on_duration", on, &ON, c) {
            return false;
        }
        let Some(length) = pattern.filter(|length| on < *length) else { return true };
        let message = format!("{on} is shorter than the TDD pattern, {length}: it may have no downlink");
        c.key("on_duration", |c| c.wrong(message));
        false
    }
}

/// Checks that a time is one of these milliseconds.
fn one_of<T: Copy + Into<u64> + ToString>(key: &str, time: Span, of: &[T], c: &mut Check) -> bool {
    let is_one = of.iter().any(|ms| MILLISECOND * (*ms).into() == time);
    if !is_one {
        c.key(key, |c| c.wrong(format!("{time} is not one of {} ms", list(of))));
    }
    is_one
}

fn list<T: ToString>(of: &[T]) -> String {
    of.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
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

impl From<&Drx> for crate::Drx {
    fn from(of: &Drx) -> crate::Drx {
        crate::Drx {
            on_duration: of.on_duration,
            inactivity: of.inactivity,
            cycle: of.cycle,
            offset: of.offset,
            short: of.short_cycle.map(|cycle| ShortCycle { cycle, count: of.short_cycles }),
            // A checked time is whole milliseconds, which are LTE's slots.
            retransmission: (of.retransmission.as_nanos() / MILLISECOND.as_nanos()) as u16,
            ..crate::Drx::default()
        }
    }
}

impl From<&NrDrx> for crate::Drx {
    fn from(of: &NrDrx) -> crate::Drx {
        crate::Drx {
            on_duration: of.on_duration,
            inactivity: of.inactivity,
            cycle: of.cycle,
            offset: of.offset,
            short: of.short_cycle.map(|cycle| ShortCycle { cycle, count: of.short_cycles }),
            retransmission: of.retransmission,
            uplink_retransmission: of.uplink_retransmission,
            harq_rtt: of.harq_rtt,
            uplink_harq_rtt: of.uplink_harq_rtt,
        }
    }
}

impl Default for crate::Drx {
    fn default() -> crate::Drx {
        (&NrDrx::default()).into()
    }
}
