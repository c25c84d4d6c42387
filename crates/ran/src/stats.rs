//! What happens in a network, as typed events for whoever listens, and the counts that are always kept.

use channel::Direction;
use units::{Span, Time};

/// Receives events. Nothing is computed for a sink that does not listen.
pub trait Sink {
    /// Whether anybody listens.
    const LISTENS: bool = true;
    /// `event` happens at `now`.
    fn event(&mut self, now: Time, event: &Event);
}

/// Nobody listens.
impl Sink for () {
    const LISTENS: bool = false;
    fn event(&mut self, _: Time, _: &Event) {}
}

/// A closure listens.
impl<F: FnMut(Time, &Event)> Sink for F {
    fn event(&mut self, now: Time, event: &Event) {
        self(now, event);
    }
}

/// Both listen, one after the other.
impl<A: Sink, B: Sink> Sink for (A, B) {
    const LISTENS: bool = A::LISTENS || B::LISTENS;
    fn event(&mut self, now: Time, event: &Event) {
        self.0.event(now, event);
        self.1.event(now, event);
    }
}

/// Something that a radio information service would want to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// A transport block is sent, for the first time or again.
    Transmission(Transmission),
    /// A buffer status report is read by a cell.
    BufferStatus {
        /// The UE.
        ue: u32,
        /// The level of each logical channel group (36.321 table 6.1.3.1-1).
        levels: [u8; 4],
    },
    /// A power headroom report is read by a cell.
    PowerHeadroom {
        /// The UE.
        ue: u32,
        /// Its level, 0 to 63 (36.133 9.1.8.4): so many dB above -23 dB.
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
        /// Its reference signals' power in dBm.
        rsrp_dbm: f64,
        /// Their quality in dB.
        rsrq_db: f64,
        /// Whether it serves the UE.
        serving: bool,
    },
    /// A UE's connection changes.
    Mobility {
        /// The UE.
        ue: u32,
        /// How.
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
    /// From whom to whom.
    pub direction: Direction,
    /// The HARQ process.
    pub process: u8,
    /// Which transmission of the block it is, from 1.
    pub attempt: u8,
    /// Whether it is decoded.
    pub decoded: bool,
    /// The modulation and coding scheme.
    pub mcs: u8,
    /// Layers (rank).
    pub layers: u8,
    /// The quality that the UE reported last; 0 in the uplink.
    pub cqi: u8,
    /// The linear mean SINR of the carrier in hundredths of a dB.
    pub sinr_cdb: i32,
    /// The first of its resource blocks,
    pub first_prb: u16,
    /// and how many they are.
    pub prbs: u16,
    /// Size of the block in bits.
    pub bits: u32,
    /// Bytes of it that carry nothing.
    pub padding: u32,
    /// Bytes that wait in RLC and above it at the sender, after the block was filled.
    pub queued: u64,
}

/// How a UE's connection changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Event A3 has triggered, for the first time or again: the UE sends a measurement report.
    Triggered {
        /// The neighbour that it receives best.
        target: u32,
    },
    /// The cell that serves the UE prepares a handover: it has a report, or was told to.
    Preparing {
        /// To this cell.
        target: u32,
    },
    /// RLC has given up the command: the handover is off.
    CommandLost,
    /// The UE has the command and has left its cell for another.
    Left {
        /// The cell that served it.
        source: u32,
        /// The cell to come.
        target: u32,
    },
    /// T304 ended before the target was reached.
    Failed,
    /// The radio link is lost.
    LinkLost {
        /// The cell that served it.
        source: u32,
    },
    /// A cell serves the UE again.
    Connected {
        /// The cell.
        cell: u32,
        /// For how long none did.
        interruption: Span,
    },
}

/// Counts of one direction of one UE.
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
    /// Blocks that were given up.
    pub residual_errors: u64,
    /// Resource blocks, of all transmissions.
    pub prbs: u64,
    /// Bytes that carried nothing: padding of grants.
    pub padding: u64,
    /// Blocks with room left while packets waited above RLC.
    pub starved: u64,
}

/// Counts of one UE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UeStats {
    /// To the UE.
    pub downlink: DirectionStats,
    /// From the UE.
    pub uplink: DirectionStats,
    /// Scheduling requests.
    pub scheduling_requests: u64,
    /// Random accesses because too many scheduling requests went unanswered.
    pub random_accesses: u64,
    /// Handovers that reached their target.
    pub handovers: u64,
    /// Handovers that did not.
    pub handover_failures: u64,
    /// Radio links lost.
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
    fn a_recorder_and_a_second_listener_hear_the_same() {
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
