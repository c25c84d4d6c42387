//! Typed events of a network for observers, and counters.

use channel::Direction;
use std::ops::Sub;
use units::{Span, Time};

/// Receives events. Events are not computed for a sink that does not listen.
pub trait Sink {
    /// Whether the sink receives events.
    const LISTENS: bool = true;
    /// Whether [`Event::Measured`] is among them.
    const MEASURES: bool = Self::LISTENS;
    /// Called for `event` at `now`.
    fn event(&mut self, now: Time, event: &Event);
}

/// No observer.
impl Sink for () {
    const LISTENS: bool = false;
    fn event(&mut self, _: Time, _: &Event) {}
}

/// A closure as observer.
impl<F: FnMut(Time, &Event)> Sink for F {
    fn event(&mut self, now: Time, event: &Event) {
        self(now, event);
    }
}

/// Two observers, called one after the other.
impl<A: Sink, B: Sink> Sink for (A, B) {
    const LISTENS: bool = A::LISTENS || B::LISTENS;
    const MEASURES: bool = A::MEASURES || B::MEASURES;
    fn event(&mut self, now: Time, event: &Event) {
        self.0.event(now, event);
        self.1.event(now, event);
    }
}

/// An event of interest to a radio information service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// A transport block is transmitted or retransmitted.
    Transmission(Transmission),
    /// A cell receives a buffer status report.
    BufferStatus {
        /// The UE.
        ue: u32,
        /// The level of each logical channel group (36.321 table 6.1.3.1-1, 38.321 tables 6.1.3.1-1 and -2); LTE has the
        /// first four.
        levels: [u8; 8],
    },
    /// A cell receives a power headroom report.
    PowerHeadroom {
        /// The UE.
        ue: u32,
        /// Its level, 0 to 63: in LTE dB above -23 dB (36.133 9.1.8.4), in NR those of 38.133 table 10.1.17.1-1.
        level: u8,
    },
    /// A UE sends a scheduling request.
    SchedulingRequest {
        /// The UE.
        ue: u32,
    },
    /// A UE has measured a cell.
    Measured {
        /// The UE.
        ue: u32,
        /// The cell.
        cell: u32,
        /// RSRP in dBm.
        rsrp_dbm: f64,
        /// RSRQ in dB.
        rsrq_db: f64,
        /// Whether it serves the UE.
        serving: bool,
    },
    /// A UE's connection changes.
    Mobility {
        /// The UE.
        ue: u32,
        /// The step.
        step: Step,
    },
}

/// One transmission of a transport block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// The cell.
    pub cell: u32,
    /// The UE.
    pub ue: u32,
    /// The direction.
    pub direction: Direction,
    /// The HARQ process.
    pub process: u8,
    /// The number of this transmission of the block, from 1.
    pub attempt: u8,
    /// Whether it is decoded.
    pub decoded: bool,
    /// The modulation and coding scheme.
    pub mcs: u8,
    /// Layers (rank).
    pub layers: u8,
    /// The quality that the UE reported last; 0 in the uplink.
    pub cqi: u8,
    /// The linear mean of the SINR over its resource blocks, in hundredths of a dB.
    pub sinr_cdb: i32,
    /// The first resource block.
    pub first_prb: u16,
    /// The number of resource blocks.
    pub prbs: u16,
    /// Size of the block in bits.
    pub bits: u32,
    /// Unused bytes.
    pub padding: u32,
    /// Bytes waiting at the sender in RLC and above it after the block was filled.
    pub queued: u64,
}

/// A step of a UE's mobility procedures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Event A3 has triggered, for the first time or again: the UE sends a measurement report.
    Triggered {
        /// The neighbour received best.
        target: u32,
    },
    /// The serving cell prepares a handover, because of a report or a request.
    Preparing {
        /// The target cell.
        target: u32,
    },
    /// RLC has abandoned the command: the handover is cancelled.
    CommandLost,
    /// The UE has received the command and has left its cell.
    Left {
        /// The cell that served it.
        source: u32,
        /// The target cell.
        target: u32,
    },
    /// T304 expired before the target was reached.
    Failed,
    /// The radio link has failed.
    LinkLost {
        /// The cell that served it.
        source: u32,
    },
    /// A cell serves the UE again.
    Connected {
        /// The cell.
        cell: u32,
        /// How long no cell served the UE.
        interruption: Span,
    },
}

/// Counters of one direction of one UE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionStats {
    /// Transport blocks.
    pub blocks: u64,
    /// Their sizes in bits, each counted once.
    pub bits: u64,
    /// Transmissions beyond the first.
    pub retransmissions: u64,
    /// First transmissions that were not decoded.
    pub first_failures: u64,
    /// Blocks that HARQ abandoned.
    pub residual_errors: u64,
    /// Resource blocks in all transmissions.
    pub prbs: u64,
    /// Unused bytes: padding of grants.
    pub padding: u64,
    /// Blocks with unused room while packets waited above RLC.
    pub starved: u64,
}

impl Sub for DirectionStats {
    type Output = DirectionStats;

    /// Returns what was counted since `earlier`.
    fn sub(self, earlier: DirectionStats) -> DirectionStats {
        DirectionStats {
            blocks: self.blocks - earlier.blocks,
            bits: self.bits - earlier.bits,
            retransmissions: self.retransmissions - earlier.retransmissions,
            first_failures: self.first_failures - earlier.first_failures,
            residual_errors: self.residual_errors - earlier.residual_errors,
            prbs: self.prbs - earlier.prbs,
            padding: self.padding - earlier.padding,
            starved: self.starved - earlier.starved,
        }
    }
}

/// Counters of one UE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UeStats {
    /// To the UE.
    pub downlink: DirectionStats,
    /// From the UE.
    pub uplink: DirectionStats,
    /// Scheduling requests.
    pub scheduling_requests: u64,
    /// Random accesses after too many unanswered scheduling requests.
    pub random_accesses: u64,
    /// Successful handovers.
    pub handovers: u64,
    /// Failed handovers.
    pub handover_failures: u64,
    /// Radio link failures.
    pub link_failures: u64,
}

impl UeStats {
    #[inline]
    pub(crate) fn of(&mut self, direction: Direction) -> &mut DirectionStats {
        match direction {
            Direction::Downlink => &mut self.downlink,
            Direction::Uplink => &mut self.uplink,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sinks_of_a_pair_receive_the_same_events() {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let event = Event::SchedulingRequest { ue: 3 };
        let mut both = (
            |now: Time, event: &Event| first.push((now, *event)),
            |now: Time, event: &Event| second.push((now, *event)),
        );
        both.event(Time::from_nanos(7), &event);
        assert_eq!((first, second), (vec![(Time::from_nanos(7), event)], vec![(Time::from_nanos(7), event)]));
    }

    #[test]
    fn a_pair_listens_if_one_of_them_does() {
        fn listens<S: Sink>(_: &S) -> bool {
            S::LISTENS
        }
        let one = |_: Time, _: &Event| {};
        assert_eq!((listens(&((), ())), listens(&((), one)), listens(&(one, ()))), (false, true, true));
    }
}
