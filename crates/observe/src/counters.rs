//! Counters of one direction of a connection.

/// Where packets that entered the network are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packets {
    /// All that entered.
    pub entered: u64,
    /// Of these, those that arrived.
    pub arrived: u64,
    /// Of these, those that were lost.
    pub lost: u64,
}

impl Packets {
    /// Those that are still in the network.
    pub fn inside(&self) -> u64 {
        self.entered - self.arrived - self.lost
    }
}

impl std::iter::Sum for Packets {
    fn sum<I: Iterator<Item = Packets>>(all: I) -> Packets {
        all.fold(Packets::default(), |sum, one| Packets {
            entered: sum.entered + one.entered,
            arrived: sum.arrived + one.arrived,
            lost: sum.lost + one.lost,
        })
    }
}

/// Counters that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Where its packets are.
    pub packets: Packets,
    /// Bytes of IP packets that arrived.
    pub arrived: u64,
    /// Bytes of payload that arrived; of TCP, in order.
    pub delivered: u64,
    /// Packets with payload that were sent.
    pub segments: u64,
    /// Of these, those whose payload was sent before, at least in part; only TCP has them.
    pub retransmitted: u64,
    /// SYN, SYN-ACK and FIN without payload that were sent before.
    pub retransmitted_control: u64,
    /// Duplicate acknowledgements (RFC 5681) that its sender received.
    pub dup_acks: u64,
    /// Packets that arrived with a congestion mark.
    pub marked: u64,
    /// Packets that arrived and could be marked on their way: ECN-capable (RFC 3168), or marked.
    pub markable: u64,
    /// The integral of the bytes in flight over time, in byte-seconds, until the connection is over.
    pub flight_area: f64,
}

impl Counters {
    /// Returns what was counted since `before`.
    pub(crate) fn since(&self, before: &Counters) -> Counters {
        Counters {
            packets: Packets {
                entered: self.packets.entered - before.packets.entered,
                arrived: self.packets.arrived - before.packets.arrived,
                lost: self.packets.lost - before.packets.lost,
            },
            arrived: self.arrived - before.arrived,
            delivered: self.delivered - before.delivered,
            segments: self.segments - before.segments,
            retransmitted: self.retransmitted - before.retransmitted,
            retransmitted_control: self.retransmitted_control - before.retransmitted_control,
            dup_acks: self.dup_acks - before.dup_acks,
            marked: self.marked - before.marked,
            markable: self.markable - before.markable,
            flight_area: self.flight_area - before.flight_area,
        }
    }
}
