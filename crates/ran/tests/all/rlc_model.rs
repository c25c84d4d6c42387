//! Bearers of LTE under any grants, losses and reordering of HARQ, and re-establishments.

use crate::bearer_world::{Op, config, lte_am, plain, play, without_loss};
use aqm::{codel, drop_tail};
use bolero::check;
use ran::rlc::{Mode, SnLength, Um};
use units::{Bytes, Span};

fn um(sn: SnLength) -> Mode {
    Mode::Um(Um { sn, t_reordering: Span::from_millis(15) })
}

#[test]
fn am_delivers_everything_once_and_in_order() {
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&[plain(lte_am())], &without_loss(ops), true));
}

#[test]
fn am_delivers_what_queues_and_handovers_leave_once_and_in_order() {
    let limit =
        drop_tail::Config { packets: Some(40), bytes: Some(Bytes::new(60_000)), victim: drop_tail::Victim::Oldest };
    let queue = aqm::Config::DropTail(limit);
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&[config(lte_am(), queue, Some(50))], ops, false));
}

#[test]
fn am_delivers_what_codel_leaves_once_and_in_order() {
    let interval = Span::from_millis(20);
    let queue = aqm::Config::Codel(codel::Config { packets: 100, interval, ..codel::Config::default() });
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&[config(lte_am(), queue, Some(100))], ops, false));
}

#[test]
fn um_with_long_numbers_never_reorders() {
    let configs = [config(um(SnLength::Ten), aqm::Config::UNLIMITED, Some(100))];
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, ops, false));
}

#[test]
fn um_with_short_numbers_never_reorders() {
    let configs = [config(um(SnLength::Five), aqm::Config::UNLIMITED, None)];
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, ops, false));
}

#[test]
fn tm_conserves() {
    let configs = [config(Mode::Tm, aqm::Config::UNLIMITED, Some(100))];
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, ops, false));
}

#[test]
fn what_a_discard_leaves_without_a_poll_is_acknowledged() {
    // The last SDU is discarded while another one is on its way without a poll, and before the poll of an earlier one is answered.
    let limit =
        drop_tail::Config { packets: Some(40), bytes: Some(Bytes::new(60_000)), victim: drop_tail::Victim::Oldest };
    let configs = [config(lte_am(), aqm::Config::DropTail(limit), Some(50))];
    play(&configs, &[Op::Arrive { uplink: true, count: 13, len: 2560 }, Op::Wait { ms: 37 }], false);
}
