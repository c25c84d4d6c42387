//! HARQ: transport blocks are retransmitted until they are decoded or abandoned.
//!
//! The technology determines the number of processes in each direction; each process has one transport block. In the
//! downlink a process can be reused, or retransmitted with any later assignment, once its ACK or NACK is known (LTE,
//! 36.213 7.3: sent 4 TTIs after the block, and known to the scheduler 8 TTIs after it). NR's uplink does the same
//! (38.321 5.4.2). In LTE's uplink the process is the TTI's number modulo 8, and a retransmission repeats the same
//! resources 8 TTIs later without a grant (36.321 5.4.2).
//!
//! Deviations: acknowledgements are free of errors; all transmissions of a block carry the same number of coded bits
//! regardless of their redundancy version, and soft information accumulates as in [`channel::Soft`].

use channel::{Direction, Soft};

use crate::mac::outer_loop::Chosen;
use crate::mac::requests::Report;
use crate::rat::Formats;
use crate::rlc::Block;

/// Number of carriers that a UE can receive.
pub(crate) const CARRIERS: usize = 2;
/// Maximum number of HARQ processes of a carrier.
pub(crate) const PROCESSES: u8 = 16;

/// Returns the number of a downlink process in its UE: those of the second carrier follow those of the first.
#[inline]
pub(crate) fn number(carrier: usize, process: u8) -> u8 {
    carrier as u8 * PROCESSES + process
}

/// Returns the carrier and the process with this number.
#[inline]
pub(crate) fn carrier_of(number: u8) -> (usize, u8) {
    (usize::from(number / PROCESSES), number % PROCESSES)
}

/// The part of a transport block that belongs to one bearer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parcel {
    pub(crate) bearer: u8,
    pub(crate) block: Block,
}

/// One transport block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transport {
    /// Total bits of all code words.
    pub(crate) bits: u32,
    pub(crate) mcs: u8,
    /// How its scheme compares with link adaptation's choice.
    pub(crate) chosen: Chosen,
    /// Number of layers, each with a code word.
    pub(crate) layers: u8,
    pub(crate) prbs: u16,
    /// Resource elements for data of its first transmission; resource blocks if all slots are alike.
    pub(crate) elements: u32,
    /// The first resource block (uplink).
    pub(crate) first_prb: u16,
    /// Transmissions so far.
    pub(crate) attempts: u8,
    /// Whether the last transmission was decoded.
    pub(crate) decoded: bool,
    /// Bytes that reports which were due left for data (uplink).
    pub(crate) room: u32,
    /// Unused bytes.
    pub(crate) padding: u32,
    /// The slot of the first transmission.
    pub(crate) built: u64,
    pub(crate) soft: Soft,
    /// The buffer status report it carries.
    pub(crate) report: Option<Report>,
    /// The level of the power headroom report it carries, and the resource blocks of its first transmission, for which the
    /// UE wrote it.
    pub(crate) headroom: Option<(u8, u16)>,
    /// Only the first `filled` are in use: the others keep their memory for reuse.
    parcels: Vec<Parcel>,
    filled: usize,
}

impl Transport {
    /// Returns its contents.
    #[inline]
    pub(crate) fn parcels(&self) -> &[Parcel] {
        &self.parcels[..self.filled]
    }

    /// Returns the resource blocks that it needs in a slot with this many resource elements in each, not 0.
    #[inline]
    pub(crate) fn prbs_in(&self, elements: u32) -> u16 {
        self.elements.div_ceil(elements) as u16
    }

    /// Returns whether it is sent again in a slot of `formats`, of whose resource blocks it can have `most`, and the sender's power
    /// suffices for `full_power`, to a UE or by one with `waiting` bytes of further data.
    ///
    /// A UE has one block in a slot. A small block would displace the data that a long slot can hold, and waits for a short
    /// one. A block waits for a longer slot if that gives it more than twice the energy.
    pub(crate) fn is_repeated_in(
        &self,
        formats: &Formats,
        way: Direction,
        (most, full_power): (u16, u16),
        waiting: impl FnOnce() -> u32,
    ) -> bool {
        let (elements, longest) = (formats.elements(way), formats.most_elements(way));
        let energy = |prbs: u16, elements: u32| u32::from(prbs.min(full_power)) * elements;
        match (self.chosen, formats.is_short(way)) {
            (Chosen::Small, is_short) => is_short || waiting() <= self.bits / 8,
            _ if elements >= longest => true,
            _ => 2 * energy(self.prbs_in(elements).min(most), elements) >= energy(self.prbs_in(longest), longest),
        }
    }

    /// Starts a new block.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.filled = 0;
        self.attempts = 0;
        self.decoded = false;
        self.soft = Soft::default();
        self.report = None;
        self.headroom = None;
    }

    /// Starts a new uplink block in `slot` on `prbs` resource blocks from the first one on.
    pub(crate) fn begin_uplink(&mut self, formats: &Formats, mcs: u8, (first, prbs): (u16, u16), slot: u64) {
        self.clear();
        self.mcs = mcs;
        (self.first_prb, self.prbs) = (first, prbs);
        self.elements = formats.elements(Direction::Uplink) * u32::from(prbs);
        self.bits = formats.uplink_bits(mcs, prbs);
        self.built = slot;
    }

    /// Returns the memory for the next parcel; [`Transport::keep`] adds it.
    #[inline]
    pub(crate) fn spare(&mut self) -> &mut Parcel {
        if self.filled == self.parcels.len() {
            self.parcels.push(Parcel::default());
        }
        &mut self.parcels[self.filled]
    }

    /// Adds the spare parcel, which has been filled.
    #[inline]
    pub(crate) fn keep(&mut self) {
        self.filled += 1;
    }
}

/// The processes of one direction of one UE.
#[derive(Clone, Debug)]
pub(crate) struct Harq {
    pub(crate) processes: Box<[Transport]>,
    /// Bit p: process p has no block.
    idle: u16,
    /// Bit p: process p waits for a retransmission.
    again: u16,
}

impl Harq {
    /// Creates `count` processes, up to 16, without blocks.
    pub(crate) fn new(count: u8) -> Harq {
        debug_assert!(count <= 16, "{count} processes");
        let processes = vec![Transport::default(); usize::from(count)].into_boxed_slice();
        let mut harq = Harq { processes, idle: 0, again: 0 };
        harq.flush();
        harq
    }

    /// Returns a process without a block.
    #[inline]
    pub(crate) fn idle(&self) -> Option<u8> {
        (self.idle != 0).then(|| self.idle.trailing_zeros() as u8)
    }

    /// Returns the process with the oldest block waiting for a retransmission.
    #[inline]
    pub(crate) fn again(&self) -> Option<u8> {
        if self.again == 0 {
            return None;
        }
        (0..self.processes.len() as u8)
            .filter(|p| self.again & (1 << p) != 0)
            .min_by_key(|p| self.processes[usize::from(*p)].built)
    }

    /// Returns the same of those whose blocks may be sent.
    pub(crate) fn again_if(&self, may_send: impl Fn(&Transport) -> bool) -> Option<u8> {
        let waits = |p: &u8| self.again & (1 << p) != 0 && may_send(&self.processes[usize::from(*p)]);
        let built = |p: &u8| self.processes[usize::from(*p)].built;
        (0..self.processes.len() as u8).filter(waits).min_by_key(built)
    }

    /// Returns a process without a block that is not one of the first `reserved`.
    #[inline]
    pub(crate) fn idle_after(&self, reserved: u8) -> Option<u8> {
        let idle = self.idle & !((1u32 << reserved) - 1) as u16;
        (idle != 0).then(|| idle.trailing_zeros() as u8)
    }

    #[inline]
    pub(crate) fn is_busy(&self, process: u8) -> bool {
        self.idle & (1 << process) == 0
    }

    /// Called when the process's block was sent.
    #[inline]
    pub(crate) fn sent(&mut self, process: u8) {
        self.idle &= !(1 << process);
        self.again &= !(1 << process);
    }

    /// Called when the process's block has to be retransmitted.
    #[inline]
    pub(crate) fn failed(&mut self, process: u8) {
        self.again |= 1 << process;
    }

    /// Called when the process's block was decoded or abandoned.
    #[inline]
    pub(crate) fn finished(&mut self, process: u8) {
        self.idle |= 1 << process;
        self.again &= !(1 << process);
    }

    /// Discards all blocks.
    pub(crate) fn flush(&mut self) {
        self.idle = ((1u32 << self.processes.len()) - 1) as u16;
        self.again = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_blocks_may_be_under_way_and_the_oldest_is_repeated_first() {
        let mut harq = Harq::new(8);
        for built in 0..8 {
            let process = harq.idle().unwrap();
            harq.processes[usize::from(process)].built = 100 - built;
            harq.sent(process);
        }
        assert_eq!((harq.idle(), harq.again()), (None, None));
        harq.failed(2);
        harq.failed(5);
        assert_eq!(harq.again(), Some(5), "built at 95, before 98");
        harq.sent(5);
        assert_eq!((harq.again(), harq.idle()), (Some(2), None));
        harq.finished(5);
        assert_eq!(harq.idle(), Some(5));
        harq.flush();
        assert_eq!((harq.again(), harq.idle()), (None, Some(0)));
    }

    #[test]
    fn each_process_of_each_carrier_has_its_number() {
        for carrier in 0..CARRIERS {
            for process in 0..PROCESSES {
                assert_eq!(carrier_of(number(carrier, process)), (carrier, process));
            }
        }
        assert_eq!(number(1, 0), number(0, PROCESSES - 1) + 1);
    }

    #[test]
    fn a_cleared_block_holds_nothing() {
        let mut transport = Transport::default();
        transport.spare().bearer = 3;
        transport.keep();
        assert_eq!(transport.parcels().len(), 1);
        transport.soft.add(1.0, 100);
        transport.clear();
        assert!(transport.parcels().is_empty() && transport.soft == Soft::default());
    }
}
