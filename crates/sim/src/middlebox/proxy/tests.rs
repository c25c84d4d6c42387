//! What the proxy does with segments of connections that it does not have.

use super::super::interface::{Origin, Way};
use super::*;
use pep::Arrival;
use rand_xoshiro::rand_core::SeedableRng;
use wire::{Sack, Segment};

/// What the proxy does with a segment of an unknown connection with these flags.
fn verdict(flags: Flags) -> Verdict {
    let mut proxy = ProxyBox::new(&Proxy::default(), Random::seed_from_u64(1));
    let segment = Segment {
        seq: 1000,
        ack: 77,
        window: 500,
        len: 100,
        flags,
        timestamps: None,
        options: Options::Sack(Sack::NONE),
    };
    let packet = Passing {
        flow: FlowKey::Simulated(3, 1),
        towards_receiver: true,
        segment: &segment,
        arrival: Arrival { packets: 1, packet_len: 140, via: 0 },
        sent: Time::ZERO,
        ce: false,
        towards: Some(Towards { number: 0, ue: true }),
        cell: Some(0),
        way: Way { tap: 0, origin: Origin::Visitor(0) },
    };
    proxy.handle_packet(&packet, Time::ZERO)
}

#[test]
fn who_sends_on_a_connection_that_is_over_is_told() {
    let Verdict::Answer(Emission { onward: false, segment, .. }) = verdict(Flags::ACK | Flags::FIN) else {
        panic!("it is not told");
    };
    assert_eq!((segment.flags, segment.seq, segment.seq_len()), (Flags::RST, 77, 0));
    // Nobody answers a reset.
    assert!(matches!(verdict(Flags::RST | Flags::ACK), Verdict::Consume));
}
