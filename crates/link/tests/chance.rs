//! What is drawn by chance, at the very number that decides.

mod common;

use common::{Driver, at, ms, random};
use link::{Config, Loss, Random, Reordering, unit};
use units::Span;

/// The first numbers of a link's loss, or of its reordering, whose stream is two jumps ahead.
fn drawn(jumps: u32) -> [f64; 2] {
    let mut random: Random = random(1);
    (0..jumps).for_each(|_| random.jump());
    [unit(&mut random), unit(&mut random)]
}

/// Whether the first and the second packet are lost.
fn lost(loss: Option<Loss>) -> [bool; 2] {
    let driver = Driver::new(Config { loss, ..Config::default() }).run((0..2).map(|n| (ms(n), 100)));
    [0, 1].map(|id| driver.lost.iter().any(|(lost, _)| *lost == id))
}

#[test]
fn a_packet_is_lost_if_its_number_is_below_the_probability() {
    let [first, second] = drawn(0);
    let independent = |probability| lost(Some(Loss::Random { probability }))[0];
    assert_eq!([independent(first), independent(first.next_up())], [false, true]);
    let bursts = |loss_good, to_bad| {
        lost(Some(Loss::GilbertElliott { good_to_bad: to_bad, bad_to_good: 0.0, loss_good, loss_bad: 1.0 }))
    };
    assert_eq!([bursts(first, 0.0)[0], bursts(first.next_up(), 0.0)[0]], [false, true]);
    // The second number may change the state, to one in which all are lost.
    assert_eq!([bursts(0.0, second), bursts(0.0, second.next_up())], [[false; 2], [false, true]]);
}

#[test]
fn a_packet_is_late_if_its_number_is_below_the_share() {
    let [number, _] = drawn(2);
    let arrives = |share| {
        let reordering = Some(Reordering { share, delay: Span::from_millis(5), spread: Span::ZERO });
        Driver::new(Config { reordering, ..Config::default() }).run([(at(7), 100)]).times()[0]
    };
    assert_eq!([arrives(number), arrives(number.next_up())], [at(7), at(5_000_007)]);
}
