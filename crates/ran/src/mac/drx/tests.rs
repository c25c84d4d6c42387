//! The timers against a model that looks at each slot.

use super::*;
use bolero::check;

/// Number of HARQ processes that are used.
const USED: u8 = 4;
/// Slots for which random access is answered.
const ANSWER: u64 = 64;

/// What has happened, from which each slot is judged anew. All times are slots.
struct Model {
    config: Drx,
    offset: u64,
    began: u64,
    rtt: [u64; 2],
    retransmission: [u64; 2],
    /// New blocks.
    blocks: Vec<u64>,
    access: u64,
    rtt_ends: [u64; USED as usize],
    timers: [[(u64, u64); USED as usize]; 2],
}

impl Model {
    fn inactivity(&self) -> u64 {
        self.config.inactivity.as_millis()
    }

    /// Intervals in which drx-InactivityTimer ran without a pause.
    fn busy(&self) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for &block in &self.blocks {
            let end = block + 1 + self.inactivity();
            match runs.last_mut() {
                Some(run) if run.1 > block => run.1 = end,
                _ => runs.push((block + 1, end)),
            }
        }
        runs
    }

    /// Whether an on-duration begins in `slot`; `busy` as above.
    fn begins(&self, slot: u64, busy: &[(u64, u64)]) -> bool {
        let is_at = |cycle: u64| slot % cycle == self.offset % cycle;
        let is_short = |short: ShortCycle| {
            let cycle = short.cycle.as_millis();
            let length = cycle * u64::from(short.count);
            is_at(cycle) && busy.iter().any(|(_, end)| (*end..end + length).contains(&slot))
        };
        slot >= self.began && is_at(self.config.cycle.as_millis()) || self.config.short.is_some_and(is_short)
    }

    fn is_on(&self, slot: u64) -> bool {
        let on = self.config.on_duration.as_millis();
        let busy = self.busy();
        ((slot + 1).saturating_sub(on)..=slot).any(|start| self.begins(start, &busy))
    }

    fn is_busy(&self, slot: u64) -> bool {
        self.busy().iter().any(|(from, until)| (*from..*until).contains(&slot))
    }

    fn is_active(&self, slot: u64, requested: u64) -> bool {
        let runs = |(from, until): &(u64, u64)| (*from..*until).contains(&slot);
        // The slot of an assignment is in the Active Time already.
        self.blocks.contains(&slot)
            || self.is_busy(slot)
            || slot >= requested
            || slot < self.access
            || self.is_on(slot)
            || self.timers.iter().flatten().any(runs)
    }
}

fn ms(slots: u64) -> Span {
    Span::from_millis(slots)
}

/// Cycles of some slots, with or without a short one, and timers of a few slots.
fn config([on, inactivity, cycle, short, retransmission]: [u8; 5]) -> Drx {
    let count = short / 4 % 4;
    let cycle = u64::from(cycle % 8) + 1;
    let short = (count > 0).then(|| ShortCycle { cycle: ms(cycle), count });
    let long = cycle * (1 + u64::from(on / 16 % 4));
    Drx {
        on_duration: ms(u64::from(on % 6) + 1),
        inactivity: ms(u64::from(inactivity % 16)),
        cycle: ms(long),
        offset: Some(ms(u64::from(inactivity / 16) % long)),
        short,
        retransmission: u16::from(retransmission % 6),
        uplink_retransmission: u16::from(retransmission / 8 % 6),
        harq_rtt: retransmission / 64 * 14,
        uplink_harq_rtt: on / 64 * 14,
    }
}

/// An event and the slots until the next, as in a cell: what is known before a change is counted first.
fn event(state: &mut State, model: &mut Model, timing: Timing, kind: u8, slot: u64) {
    let process = kind / 8 % USED;
    let (down, up) = (Direction::Downlink as usize, Direction::Uplink as usize);
    let place = usize::from(process);
    match kind % 8 {
        0 | 1 => {
            let way = if kind.is_multiple_of(8) { Direction::Downlink } else { Direction::Uplink };
            state.new_block(slot, way);
            model.blocks.push(slot);
            if way == Direction::Uplink || model.access == NEVER {
                model.access = 0;
            }
        }
        2 => {
            state.assigned(timing, process, slot);
            model.rtt_ends[place] = timing.downlink_retransmission(slot, model.rtt[down]);
            model.timers[down][place].1 = model.timers[down][place].1.min(slot + 1);
        }
        3 => {
            state.failed(process, slot);
            let from = model.rtt_ends[place];
            model.timers[down][place] = (from.max(slot), from + model.retransmission[down]);
        }
        4 => {
            state.granted(process, slot);
            model.timers[up][place].1 = model.timers[up][place].1.min(slot + 1);
        }
        5 => {
            state.transmitted(timing, process, slot);
            let from = timing.uplink_retransmission(slot, model.rtt[up]);
            model.timers[up][place] = (from, from + model.retransmission[up]);
        }
        6 if kind & 64 == 0 => {
            state.accessed(slot, Slots::LTE);
            model.access = slot + ANSWER;
        }
        6 => {
            state.arrived();
            model.access = NEVER;
        }
        _ => {}
    }
}

#[test]
fn the_active_time_is_that_of_a_model_slot_by_slot() {
    check!().with_type::<([u8; 5], bool, Vec<(u8, u8)>)>().for_each(|(numbers, is_nr, events)| {
        let config = config(*numbers);
        assert!(config.is_valid(), "{config:?}");
        let timing = if *is_nr {
            crate::Rat::Nr(crate::Nr::new(channel::tables::nr::Numerology::Khz15, crate::Duplex::Fdd)).timing()
        } else {
            Timing::Lte
        };
        let began = u64::from(numbers[3] % 32);
        let mut state = State::new(&config, (timing, Slots::LTE), 0, began);
        let symbols = |symbols: u8| u64::from(symbols / 14);
        let uplink = if *is_nr { config.uplink_retransmission.into() } else { 1 };
        let mut model = Model {
            config,
            offset: config.offset.expect("it is set").as_millis(),
            began,
            rtt: [symbols(config.harq_rtt), symbols(config.uplink_harq_rtt)],
            retransmission: [config.retransmission.into(), uplink],
            blocks: Vec::new(),
            access: 0,
            rtt_ends: [0; USED as usize],
            timers: [[(0, 0); USED as usize]; 2],
        };
        let (mut slot, mut asleep, mut requested) = (began, 0, NEVER);
        for &(kind, pause) in events.iter().take(40) {
            state.count(slot, requested);
            assert_eq!(state.asleep(), asleep, "up to slot {slot}");
            if kind % 8 == 7 {
                requested = if kind & 64 == 0 { NEVER } else { slot + u64::from(kind / 8 % 4) };
            }
            event(&mut state, &mut model, timing, kind, slot);
            let next = (slot..).find(|slot| model.is_active(*slot, requested)).expect("a cycle is not long");
            assert_eq!(state.next_active(slot, requested), next, "from slot {slot} on");
            let end = slot + u64::from(pause % 32);
            while slot < end {
                let is_active = model.is_active(slot, requested);
                assert_eq!(state.is_active(slot, requested), is_active, "slot {slot}");
                asleep += u64::from(!is_active);
                slot += 1;
            }
        }
        state.count(slot, requested);
        assert_eq!(state.asleep(), asleep, "up to slot {slot}");
        // Of long ago, only the last two intervals of inactivity are known.
        if model.config.short.is_none() {
            let known = model.blocks.iter().rev().take(2).min().copied();
            let first = known.map_or(began, |block| block + 1).max(slot.saturating_sub(40));
            let reports = |slot: u64| model.is_on(slot) || model.is_busy(slot);
            for slot in first..=slot {
                assert_eq!(state.reports_in(slot), reports(slot), "slot {slot}");
            }
            for period in 1..6 {
                let newest = (first..=slot).rev().find(|slot| slot % period == 3 % period && reports(*slot));
                if let Some(newest) = newest.filter(|newest| slot - newest < 15 * period) {
                    assert_eq!(state.newest_report(slot, period, 3), Some(newest), "up to slot {slot}, {period}");
                }
            }
        }
    });
}

/// By a multiplicative hash of the UE's number, unless an offset is set.
#[test]
fn cycles_begin_at_different_slots_of_different_ues() {
    let config = Drx { cycle: ms(160), ..Drx::default() };
    let offset = |index| State::new(&config, (Timing::Lte, Slots::LTE), index, 0).offset;
    let mut offsets: Vec<u64> = (0..16).map(offset).collect();
    offsets.sort_unstable();
    assert!(offsets[15] < 160 && offsets[0] < 10, "{offsets:?}");
    assert!(offsets.windows(2).all(|pair| (4..=20).contains(&(pair[1] - pair[0]))), "{offsets:?}");
    let set = Drx { offset: Some(ms(7)), ..config };
    assert_eq!(State::new(&set, (Timing::Lte, Slots::LTE), 5, 0).offset, 7);
}

#[test]
fn cycles_are_whole_milliseconds_that_fit_each_other() {
    let valid = Drx { short: Some(ShortCycle { cycle: ms(40), count: 2 }), offset: Some(ms(159)), ..Drx::default() };
    assert!(valid.is_valid());
    let half = Span::from_micros(500);
    let short = |cycle, count| Some(ShortCycle { cycle, count });
    for invalid in [
        Drx { on_duration: Span::ZERO, ..valid },
        Drx { cycle: Span::ZERO, ..valid },
        Drx { cycle: Span::ZERO, short: None, offset: None, ..valid },
        Drx { cycle: ms(160) + half, short: None, ..valid },
        Drx { offset: Some(ms(160)), ..valid },
        Drx { offset: Some(half), ..valid },
        Drx { short: short(ms(30), 2), ..valid },
        Drx { short: short(ms(40), 0), ..valid },
        Drx { short: short(Span::ZERO, 2), ..valid },
        Drx { short: short(half, 2), ..valid },
    ] {
        assert!(!invalid.is_valid(), "{invalid:?}");
    }
    assert!(Drx { on_duration: Span::from_nanos(1), ..valid }.is_valid(), "it is rounded up to a slot");
}
