//! The carrier, the MAC and the bearers of NR cells.

use channel::Carrier;
use ran::pdcp::{self, PdcpSn};
use ran::rlc::{AmSn, Mode, NrAm, NrUm, UmSn};
use ran::{ConfiguredGrant, Drx, Duplex, LinkAdaptation, MacConfig, Nr, Pattern, Rat, Requests, ShortCycle};
use scenario::{CqiOf, McsTable, NrBearer, NrCarrier, NrRlc};
use units::Span;

/// The carrier of NR cells, and the second one.
pub(super) fn carriers(nr: &scenario::Nr) -> (Carrier, Option<Carrier>) {
    let second = nr.secondary.as_ref().map(|second| second.carrier(nr.numerology));
    (carrier(nr.carrier(), nr.uplink_mhz()), second.map(|second| carrier(second, second.frequency_mhz)))
}

fn carrier(of: NrCarrier, uplink_mhz: f64) -> Carrier {
    Carrier {
        downlink_hz: of.frequency_mhz * 1e6,
        uplink_hz: uplink_mhz * 1e6,
        prbs: of.blocks().expect("a checked carrier has resource blocks"),
        subcarrier_hz: of.numerology().subcarrier_hz(),
    }
}

pub(super) fn mac(nr: &scenario::Nr) -> MacConfig {
    let of = &nr.mac;
    let mut rat = Nr::new(nr.numerology(), duplex(nr)).with_control(of.control_symbols, of.uplink_control_symbols);
    rat.tables = [nr.mcs_table, nr.uplink_mcs_table].map(McsTable::table);
    (rat.dmrs, rat.overhead) = (of.dmrs_symbols, of.overhead);
    (rat.k1, rat.k2) = (of.k1.unwrap_or(rat.k1), of.k2.unwrap_or(rat.k2));
    rat.processes = of.harq_processes;
    let slot = nr.numerology().slot();
    MacConfig {
        rat: Rat::Nr(rat),
        transmissions: of.harq_transmissions,
        decoding: of.decoding,
        link: LinkAdaptation {
            period: of.cqi_period,
            delay: of.cqi_delay,
            step_db: of.outer_loop_db as f32,
            worst_group: of.cqi == CqiOf::WorstGroup,
        },
        fairness: of.fairness,
        requests: Requests {
            sr_period: nr.sr_slots() as u16,
            sr_prohibit: of.sr_prohibit,
            sr_maximum: of.sr_maximum,
            bsr_periodic: Some(of.bsr_period),
            bsr_retx: of.bsr_retx,
            first_grant: of.first_grant.get() as u32,
            ..Requests::default()
        },
        assignments: of.assignments,
        drx: of.drx.as_ref().map(drx),
        configured: of.configured_grant.as_ref().map(|grant| configured_grant(grant, slot)),
        ..MacConfig::default()
    }
}

fn configured_grant(of: &scenario::ConfiguredGrant, slot: Span) -> ConfiguredGrant {
    ConfiguredGrant {
        period: (of.period.as_nanos() / slot.as_nanos()) as u16,
        prbs: of.resource_blocks,
        mcs: of.mcs,
        processes: of.processes,
        timer: of.timer,
    }
}

fn drx(of: &scenario::NrDrx) -> Drx {
    Drx {
        on_duration: of.on_duration,
        inactivity: of.inactivity,
        cycle: of.cycle,
        offset: of.offset,
        short: of.short_cycle.map(|cycle| ShortCycle { cycle, count: of.short_cycles }),
        retransmission: of.retransmission,
        uplink_retransmission: of.uplink_retransmission,
        harq_rtt: of.harq_rtt,
        uplink_harq_rtt: of.uplink_harq_rtt,
    }
}

fn duplex(nr: &scenario::Nr) -> Duplex {
    match &nr.duplex {
        scenario::Duplex::Fdd => Duplex::Fdd,
        scenario::Duplex::Flexible => Duplex::Flexible,
        scenario::Duplex::Tdd { downlink_symbols, uplink_symbols, .. } => {
            let [downlink, special, uplink] = nr.pattern().expect("a checked pattern is valid").map(|n| n as u8);
            let symbols = |symbols: u8| if special > 0 { symbols } else { 0 };
            Duplex::Tdd(Pattern {
                slots: downlink + special + uplink,
                downlink_slots: downlink,
                downlink_symbols: symbols(*downlink_symbols),
                uplink_symbols: symbols(*uplink_symbols),
                uplink_slots: uplink,
            })
        }
    }
}

/// The RLC mode of a bearer in NR cells.
pub(super) fn mode(of: &NrBearer) -> Mode {
    let pdcp = pdcp::Nr {
        sn: if of.pdcp_sn == 12 { PdcpSn::Twelve } else { PdcpSn::Eighteen },
        t_reordering: Some(of.t_reordering),
        sdap: of.sdap,
        limit: [Some(of.buffer.get()); 2],
    };
    match of.rlc {
        NrRlc::Um { sn, t_reassembly } => {
            Mode::NrUm(NrUm { sn: if sn == 6 { UmSn::Six } else { UmSn::Twelve }, t_reassembly, pdcp })
        }
        NrRlc::Am { sn, t_poll_retransmit, t_reassembly, t_status_prohibit, poll_pdu, poll_byte, max_retx } => {
            Mode::NrAm(NrAm {
                sn: if sn == 12 { AmSn::Twelve } else { AmSn::Eighteen },
                t_poll_retransmit,
                poll_pdu: Some(poll_pdu),
                poll_byte: Some(poll_byte.get() as u32),
                max_retx,
                t_reassembly,
                t_status_prohibit,
                pdcp,
            })
        }
    }
}
