//! How long a UE takes to send a packet after it was idle: steps of the standards worked by hand, with the periods and
//! delays that scenarios have by default.

use crate::support::{World, ue, um};
use channel::tables::nr::Numerology;
use channel::{Bandwidth, Carrier, Direction, Site};
use ran::rlc::{Mode, NrAm};
use ran::{CellConfig, Config, Duplex, LinkAdaptation, MacConfig, Nr, Pattern, Rat, Requests};
use units::{Span, Time};

/// A cell with the default MAC of scenarios: requests each 5 ms, and 100 us for decoding.
fn network(nr: Nr, prbs: u16, ues: usize) -> Config {
    let carrier = Carrier { downlink_hz: 3.5e9, uplink_hz: 3.5e9, prbs, subcarrier_hz: nr.numerology.subcarrier_hz() };
    let slot = Rat::Nr(nr).slot();
    let mac = MacConfig {
        rat: Rat::Nr(nr),
        decoding: Span::from_micros(100),
        link: LinkAdaptation { delay: Span::from_millis(2), ..LinkAdaptation::default() },
        requests: Requests { sr_period: (5_000_000 / slot.as_nanos()) as u16, ..Requests::default() },
        ..MacConfig::default()
    };
    let cell = CellConfig { site: Site { carrier, ..Site::default() }, mac, ..CellConfig::default() };
    Config { cells: vec![cell], ues: vec![ue(Mode::NrAm(NrAm::default()), 60.0); ues], ..Config::default() }
}

/// When a packet of 100 bytes is delivered that `ue` sends `after` the beginning of a period, since that beginning.
fn delivered(config: &Config, direction: Direction, ue: u32, after: Span) -> Span {
    let mut world = World::new(config);
    let start = Time::ZERO + Span::from_secs(1);
    world.run(start + after);
    world.send(direction, ue, 100);
    world.run(start + Span::from_millis(200));
    assert_eq!((world.arrivals.len(), world.drops.len()), (1, 0));
    world.arrivals[0].at - start
}

fn tdd(numerology: Numerology, pattern: Pattern) -> Nr {
    Nr::new(numerology, Duplex::Tdd(pattern))
}

/// DDDDDDDSUU with the symbols that special slots have by default.
const LONG: Pattern = Pattern { downlink_symbols: 10, uplink_symbols: 2, ..Pattern::DDDDDDDSUU };

#[test]
fn an_uplink_packet_after_idle_waits_for_a_request_a_grant_and_its_block() {
    use Numerology::{Khz15, Khz30, Khz60, Khz120};
    // The UE's offset in the period of requests; the slot in which the block is sent after a request at that offset. A
    // request is known two slots later: it ends, and 100 us are begun.
    let cases = [
        // Granted in 2 with K2 = 1.
        (Nr::new(Khz15, Duplex::Fdd), 0, 3),
        (Nr::new(Khz30, Duplex::Fdd), 0, 3),
        // Granted in 2 with K2 = 2 and 3.
        (Nr::new(Khz60, Duplex::Fdd), 0, 4),
        (Nr::new(Khz120, Duplex::Fdd), 0, 5),
        (Nr::new(Khz120, Duplex::Flexible), 0, 5),
        // Request in the special slot 3, known in 5, and granted in 8 for 9 (K2 = 1): the data symbol of the special slot 8
        // is too few.
        (tdd(Khz15, Pattern::DDDSU), 3, 9),
        (tdd(Khz30, Pattern::DDDSU), 3, 9),
        // K2 = 2: granted in 7 for 9.
        (tdd(Khz60, Pattern::DDDSU), 3, 9),
        // K2 = 3: granted in 6 for 9.
        (tdd(Khz120, Pattern::DDDSU), 3, 9),
        // Request in the special slot 7, known in 9, and granted in 16 for the special slot 17, which has three symbols.
        (tdd(Khz30, Pattern::DDDDDDDSUU), 7, 17),
        // The special slot has one symbol for data, which is too few: granted in 17 for 18.
        (tdd(Khz30, LONG), 7, 18),
    ];
    for (nr, offset, sent) in cases {
        let slot = Rat::Nr(nr).slot();
        let config = network(nr, 106, 1);
        let period = u64::from(config.cells[0].mac.requests.sr_period);
        for arrival in 0..=period {
            // The first slot at the offset from the arrival on.
            let request = if arrival <= offset { 0 } else { period };
            let expected = slot * (request + sent + 1) + Span::from_micros(100);
            let at = delivered(&config, Direction::Uplink, 0, slot * arrival);
            assert_eq!(at, expected, "{nr:?}, slot {arrival}");
        }
    }
}

#[test]
fn an_uplink_packet_of_lte_takes_twelve_milliseconds_from_its_request() {
    // Requests each 10 ms; request 1 ms, decoding and grant 3 ms, on the air 1 ms, UE 3 ms, data 1 ms, decoding 3 ms.
    let config = crate::support::network(Bandwidth::Mhz10, vec![ue(um(), 60.0); 3]);
    for ue in 0..3 {
        let times =
            [0, 2, 3, 10].map(|ms| delivered(&config, Direction::Uplink, ue, Span::from_millis(ms)).as_millis());
        let next = |arrival: u64| if arrival <= ue.into() { u64::from(ue) } else { 10 + u64::from(ue) };
        assert_eq!(times, [0, 2, 3, 10].map(|arrival| next(arrival) + 12), "UE {ue}");
    }
}

#[test]
fn a_ues_delay_depends_on_its_place_only_by_what_follows_its_offset() {
    // The slots from the request to the end of the block for the offsets 3, 4, 8 and 9, and 7, 8 and 9, of which UE 3 has
    // the first again.
    for (pattern, waits) in [(Pattern::DDDSU, [7, 6, 7, 6]), (Pattern::DDDDDDDSUU, [11, 10, 9, 11])] {
        let nr = tdd(Numerology::Khz30, pattern);
        let (config, slot) = (network(nr, 106, 4), Rat::Nr(nr).slot());
        for (ue, wait) in (0..).zip(waits) {
            let delay = |n: u64| delivered(&config, Direction::Uplink, ue, slot * n / 10) - slot * n / 10;
            let mut delays: Vec<Span> = (0..100).map(delay).collect();
            delays.sort();
            // Half a period, the way from the request on, and decoding.
            let median = slot * 5 + slot * wait + Span::from_micros(100);
            let apart = delays[49].as_nanos().abs_diff(median.as_nanos());
            assert!(apart <= slot.as_nanos() / 10, "{pattern:?}, UE {ue}: {} and {median}", delays[49]);
        }
    }
}

#[test]
fn a_downlink_packet_is_delivered_when_its_block_is_decoded_between_slots() {
    for numerology in Numerology::ALL {
        let nr = Nr::new(numerology, Duplex::Fdd);
        let slot = Rat::Nr(nr).slot();
        for decoding in [Span::ZERO, Span::from_micros(1), Span::from_nanos(12_345), slot / 2, slot] {
            let mut config = network(nr, 24, 1);
            config.cells[0].mac.decoding = decoding;
            let at = delivered(&config, Direction::Downlink, 0, slot * 3);
            assert_eq!(at, slot * 4 + decoding, "{numerology:?}");
        }
    }
}
