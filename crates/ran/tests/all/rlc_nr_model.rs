//! Bearers of NR under any grants, losses and reordering of HARQ, and handovers, also between NR and LTE.

use crate::bearer_world::{Op, config, lte_am, plain, play, without_loss};
use aqm::{codel, drop_tail};
use bolero::check;
use ran::pdcp::{Nr, PdcpSn};
use ran::rlc::{AmSn, Mode, NrAm, NrUm, Um, UmSn};
use units::{Bytes, Span};

/// Maximum occupancy by direction, where it is limited.
const LIMIT: [Option<u64>; 2] = [Some(20_000), Some(9_000)];

fn am() -> NrAm {
    NrAm {
        sn: AmSn::Twelve,
        t_poll_retransmit: Span::from_millis(20),
        poll_pdu: Some(4),
        poll_byte: Some(5000),
        max_retx: u32::MAX,
        t_reassembly: Span::from_millis(15),
        t_status_prohibit: Span::from_millis(10),
        pdcp: Nr { t_reordering: None, sdap: true, ..Nr::default() },
    }
}

fn um(sn: UmSn, t_reordering: u64) -> Mode {
    let pdcp = Nr { t_reordering: Some(Span::from_millis(t_reordering)), ..Nr::default() };
    Mode::NrUm(NrUm { sn, t_reassembly: Span::from_millis(15), pdcp })
}

/// Another length of everything that has several, and timers that expire at once.
fn hasty_am() -> NrAm {
    NrAm {
        sn: AmSn::Eighteen,
        t_poll_retransmit: Span::ZERO,
        poll_pdu: None,
        poll_byte: Some(1),
        t_reassembly: Span::ZERO,
        t_status_prohibit: Span::ZERO,
        pdcp: Nr { sn: PdcpSn::Eighteen, sdap: false, ..am().pdcp },
        ..am()
    }
}

#[test]
fn am_delivers_everything_once_and_in_order() {
    let configs = [plain(Mode::NrAm(am()))];
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, &without_loss(ops), true));
}

#[test]
fn am_without_patience_delivers_everything_once_and_in_order() {
    let configs = [plain(Mode::NrAm(hasty_am()))];
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, &without_loss(ops), true));
}

#[test]
fn handovers_between_lte_and_nr_lose_nothing_in_am() {
    let configs = [plain(Mode::NrAm(am())), plain(lte_am()), plain(Mode::NrAm(hasty_am()))];
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, &without_loss(ops), true));
}

#[test]
fn handovers_between_all_modes_keep_order_and_conserve() {
    let short = NrAm { pdcp: Nr { t_reordering: Some(Span::from_millis(10)), ..am().pdcp }, ..am() };
    let interval = Span::from_millis(20);
    let codel = aqm::Config::Codel(codel::Config { packets: 100, interval, ..codel::Config::default() });
    let configs = [
        plain(Mode::NrAm(am())),
        config(Mode::NrAm(short), codel, Some(100)),
        plain(um(UmSn::Twelve, 30)),
        config(um(UmSn::Six, 0), codel, Some(50)),
        plain(lte_am()),
        plain(Mode::Um(Um::default())),
    ];
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, ops, false));
}

#[test]
fn am_delivers_what_queues_and_handovers_leave_once_and_in_order() {
    let limit =
        drop_tail::Config { packets: Some(40), bytes: Some(Bytes::new(60_000)), victim: drop_tail::Victim::Oldest };
    let queue = aqm::Config::DropTail(limit);
    let configs = [config(Mode::NrAm(am()), queue, Some(50))];
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, ops, false));
}

#[test]
fn am_gives_up_in_order_when_t_reordering_is_short() {
    for t_reordering in [0, 10, 80] {
        let pdcp = Nr { t_reordering: Some(Span::from_millis(t_reordering)), ..am().pdcp };
        let configs = [plain(Mode::NrAm(NrAm { pdcp, ..am() }))];
        check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, ops, false));
    }
}

#[test]
fn a_limit_holds_for_pdcp_and_rlc_together() {
    for mode in [Mode::NrAm(am()), um(UmSn::Twelve, 20)] {
        let mode = match mode {
            Mode::NrAm(am) => Mode::NrAm(NrAm { pdcp: Nr { limit: LIMIT, ..am.pdcp }, ..am }),
            Mode::NrUm(um) => Mode::NrUm(NrUm { pdcp: Nr { limit: LIMIT, ..um.pdcp }, ..um }),
            mode => mode,
        };
        let configs = [plain(mode)];
        check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, ops, false));
    }
}

#[test]
fn um_with_long_numbers_never_reorders() {
    let configs = [config(um(UmSn::Twelve, 30), aqm::Config::UNLIMITED, Some(100))];
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, ops, false));
}

#[test]
fn um_with_short_numbers_never_reorders() {
    let configs = [plain(um(UmSn::Six, 10))];
    check!().with_type::<Vec<Op>>().for_each(|ops| play(&configs, ops, false));
}

#[test]
fn what_a_discard_leaves_without_a_poll_is_acknowledged() {
    // Others wait, so that the last SDU has no poll. They are discarded before the poll of an earlier one is answered.
    let interval = Span::from_millis(20);
    let codel = aqm::Config::Codel(codel::Config { packets: 100, interval, ..codel::Config::default() });
    let configs = [config(Mode::NrAm(am()), codel, Some(100))];
    let grant = |downlink| Op::Grant { downlink, uplink: 0, lost: [false; 2], late: [3; 2] };
    for wait in 60..110 {
        let ops = [
            Op::Arrive { uplink: false, count: 30, len: 4316 },
            grant(126),
            grant(839),
            Op::Wait { ms: wait },
            Op::HandOver { keep: [0; 2], to: 0 },
        ];
        play(&configs, &ops, false);
    }
}
