//! What the keys of an NR scenario do to its results: each case runs a scenario with several values of a key.

use crate::common::{flow, near, run};
use channel::phy::nr::mcs_at;
use channel::tables::nr::{Allocation, McsTable, tbs};
use record::Tables;

/// The tables of `seconds` of `[nr]` with the lines `nr`, the UEs with the lines `ues` each, and the lines `flows`.
fn network(seconds: u32, nr: &str, ues: &[&str], flows: &str) -> Tables {
    let ues: String =
        ues.iter().enumerate().map(|(n, ue)| format!("[[nr.ues]]\nname = \"ue-{}\"\n{ue}\n", n + 1)).collect();
    run(&format!(
        "duration = \"{seconds} s\"\nwarmup = \"1 s\"\nrecord = {{ samples = \"20 ms\" }}\n[tcp]\nsend_buffer = \"16 MB\"\n\
         receive_buffer = \"32 MB\"\n[nr]\n{nr}\n{ues}\n{flows}\n"
    ))
}

/// A UE behind a path loss of `db`.
fn behind(db: f64) -> String {
    format!("channel = {{ kind = \"fixed\", loss_db = {db} }}")
}

/// More than a carrier carries, to each UE or from it.
const DOWN: &str = "[[flows]]\nname = \"f\"\nto = \"ue-*\"\ntraffic = { kind = \"cbr\", rate = \"500 Mbit/s\" }";
const UP: &str =
    "[[flows]]\nname = \"f\"\nfrom = \"ue-*\"\nto = \"server\"\ntraffic = { kind = \"cbr\", rate = \"500 Mbit/s\" }";

/// Mbit/s of transport blocks and the share of resource blocks of a UE in a direction, means from 1 s on.
fn uplink(tables: &Tables, ue: &str) -> (f64, f64) {
    let rows: Vec<(f64, f64)> = tables
        .radio
        .iter()
        .filter(|row| row.ue == ue && row.t_s > 1.01)
        .map(|row| (row.ul_mbps, row.ul_prbs))
        .collect();
    let mean = |of: fn(&(f64, f64)) -> f64| rows.iter().map(of).sum::<f64>() / rows.len() as f64;
    (mean(|row| row.0), mean(|row| row.1))
}

#[test]
fn a_ue_at_the_edge_sends_on_the_resource_blocks_that_its_power_suffices_for() {
    // 100 MHz, FDD: 273 resource blocks of 30 kHz, 14 symbols of which one is for control and one for reference signals.
    const PRBS: u16 = 273;
    // The code rate falls to a fifth at QPSK's MCS 2, -3.885 dB: on more resource blocks the same bits would be repeated.
    const REPEATING_DB: f64 = -3.885;
    let mut before = f64::INFINITY;
    for (ue_dbm, loss_db) in [(23.0, 80.0), (23.0, 95.0), (23.0, 110.0), (23.0, 120.0), (13.0, 120.0), (23.0, 130.0)] {
        let ue = format!("{}\npower_dbm = {ue_dbm}", behind(loss_db));
        let tables =
            network(2, "duplex = \"fdd\"\nmac = { outer_loop_db = 0 }\ncells = [{ power_dbm = 46 }]", &[&ue], UP);
        // All power on one resource block, over -174 dBm/Hz on 360 kHz with a noise figure of 5 dB.
        let one_db = ue_dbm - loss_db - (-174.0 + 10.0 * 360e3f64.log10() + 5.0);
        let prbs = 10f64.powf((one_db - REPEATING_DB) / 10.0).min(f64::from(PRBS)).floor() as u16;
        // Spread over all of them; each slot of 0.5 ms carries a block.
        let mcs = mcs_at(McsTable::Qam64, (one_db - 10.0 * f64::from(prbs).log10()) as f32);
        let data = Allocation { prbs, symbols: 13, dmrs: 12, overhead: 0, layers: 1 };
        let bits = tbs(McsTable::Qam64.schemes()[usize::from(mcs)], &data, 0);
        let (mbps, share) = uplink(&tables, "ue-1");
        let case = format!("{ue_dbm} dBm less {loss_db} dB");
        // The cell knows the power from headroom reports, in steps of a decibel, and nothing from the outer loop.
        near(&format!("{case}, resource blocks"), share * f64::from(PRBS), f64::from(prbs), 0.01);
        // Repetitions take slots of their own.
        near(&format!("{case}, Mbit/s"), mbps, f64::from(bits) * 2e-3, 0.2);
        // 10 dB less power are 10 dB more loss.
        assert!(mbps <= before, "{case}: {mbps} Mbit/s");
        before = mbps;
    }
}

#[test]
fn only_the_scheduler_for_throughput_starves_the_ue_with_the_worse_channel() {
    // 20 and 8 dB in the downlink; in the uplink, power control that compensates for 0.8 of the loss leaves 15 and 12.6 dB.
    let ues = [behind(95.0), behind(107.0)];
    let ues = [ues[0].as_str(), ues[1].as_str()];
    for flows in [DOWN, UP] {
        let rates = |scheduler: &str, ues: &[&str]| -> Vec<f64> {
            let nr = format!(
                "duplex = \"fdd\"\nbandwidth_mhz = 20\npower_control = {{ p0_dbm = -82.0, alpha = 0.8 }}\n\
                 cells = [{{ scheduler = \"{scheduler}\", uplink_scheduler = \"{scheduler}\" }}]"
            );
            network(2, &nr, ues, flows).flows.iter().map(|flow| flow.throughput_mbps).collect()
        };
        let (good, bad) = (rates("round-robin", &ues[..1])[0], rates("round-robin", &ues[1..])[0]);
        assert!(bad < 0.85 * good, "{good} and {bad} Mbit/s alone");
        let most = rates("max-throughput", &ues);
        assert!(most[0] > 0.98 * good && most[1] < 0.01 * bad, "{most:?} of {good} and {bad} Mbit/s");
        // The channels are constant: either gives each UE half of the carrier.
        for scheduler in ["round-robin", "proportional-fair"] {
            let both = rates(scheduler, &ues);
            near(&format!("{scheduler}, better"), both[0], 0.5 * good, 0.15);
            near(&format!("{scheduler}, worse"), both[1], 0.5 * bad, 0.15);
        }
    }
}

#[test]
fn where_power_limits_the_better_ue_its_rest_of_the_uplink_is_for_the_other() {
    // 41 dB on one resource block, but 24 dB on all 51: the last ones carry more bits from the other UE.
    let ues = [behind(95.0), behind(107.0)];
    let ues = [ues[0].as_str(), ues[1].as_str()];
    let rates = |scheduler: &str| -> f64 {
        let cell = format!("cells = [{{ uplink_scheduler = \"{scheduler}\" }}]");
        let tables = network(2, &format!("duplex = \"fdd\"\nbandwidth_mhz = 20\n{cell}"), &ues, UP);
        assert!(tables.flows.iter().all(|flow| flow.throughput_mbps > 5.0), "{scheduler}");
        tables.flows.iter().map(|flow| flow.throughput_mbps).sum()
    };
    let [most, turns, fair] = ["max-throughput", "round-robin", "proportional-fair"].map(rates);
    assert!(most > 1.1 * turns && most > 1.1 * fair, "{most} Mbit/s, {turns} and {fair}");
}

#[test]
fn byte_queue_limits_and_codel_above_rlc_shorten_the_round_trip_in_both_directions() {
    let down = "[[flows]]\nname = \"f\"\ncount = 4";
    let up = "[[flows]]\nname = \"f\"\ncount = 4\nfrom = \"ue-1\"\nto = \"server\"";
    let large = "modem = \"3 MB\"\nbearer = { queue = { kind = \"drop-tail\", bytes = \"6 MB\" } }";
    let managed = "modem = \"3 MB\"\nbearer = { queue = { kind = \"drop-tail\", bytes = \"6 MB\" }, above = {} }\n\
                   host_queue = \"fq-codel\"\nmodem_limit = \"bql\"\nreports_host = true";
    let run = |flows: &str, keys: &str| {
        let ue = format!("{}\n{keys}", behind(90.0));
        let tables = network(10, "bandwidth_mhz = 20\nserver_delay = \"10 ms\"", &[&ue], flows);
        let goodput: f64 = tables.flows.iter().map(|flow| flow.goodput_mbps).sum();
        (flow(&tables, "f").rtt_p50_ms.expect("packets were acknowledged"), goodput)
    };
    for flows in [down, up] {
        let ((slow, all), (quick, same)) = (run(flows, large), run(flows, managed));
        println!("{slow} ms, {all} Mbit/s; {quick} ms, {same} Mbit/s");
        assert!(quick < slow / 8.0, "{quick} ms, without limits {slow}");
        near("goodput", same, all, 0.03);
        // 20 ms of wire, CoDel's target of 5 ms, and the slots of the pattern.
        assert!(quick < 45.0, "{quick} ms");
    }
    // Grants for what a small modem's queue holds leave resource blocks unused.
    let alone = run(up, &managed.replace("reports_host = true", "reports_host = false"));
    assert!(alone.0 < 45.0 && alone.1 < 0.95 * run(up, managed).1, "{alone:?}");
}

#[test]
fn uplink_symbols_in_a_special_slot_take_nothing_from_the_uploads_of_many_ues() {
    let upload = "[[flows]]\nname = \"f\"\nfrom = \"ue-*\"\nto = \"server\"";
    let small = format!("{upload}\ntraffic = {{ kind = \"cbr\", rate = \"1 Mbit/s\", packet = \"300 B\" }}");
    for (pattern, ues, loss_db, flows) in
        [("DDDSUU", 10, 110.0, upload), ("DDDDDDDSUU", 30, 122.0, upload), ("DDDDDDDSUU", 40, 126.0, &small)]
    {
        let [none, four] = [2, 4].map(|symbols| {
            let nr = format!(
                "bandwidth_mhz = 20\nserver_delay = \"10 ms\"\ncells = [{{ power_dbm = 49 }}]\nduplex = {{ kind = \"tdd\", \
                 pattern = \"{pattern}\", downlink_symbols = 6, uplink_symbols = {symbols} }}"
            );
            let ue = behind(loss_db);
            let tables = network(6, &nr, &vec![ue.as_str(); ues], flows);
            tables.flows.iter().map(|flow| flow.goodput_mbps).sum::<f64>()
        });
        println!("{pattern}, {ues} UEs, {loss_db} dB: {none:.2} Mbit/s with two symbols, {four:.2} with four");
        assert!(four >= 0.95 * none, "{pattern}, {ues} UEs, {loss_db} dB: {none} and {four} Mbit/s");
    }
}

#[test]
fn an_lte_cell_has_the_same_queue_beside_nr_as_without() {
    let median = |network: &str, table: &str, keys: &str| {
        let tables = run(&format!(
            "duration = \"10 s\"\nwarmup = \"4 s\"\n[{table}]\nserver_delay = \"10 ms\"\n{network}\n\
             [[{table}.ues]]\nname = \"ue-1\"\n{}\n{keys}\n[[flows]]\nname = \"f\"\n[[flows]]\nname = \"ping\"\n\
             traffic = {{ kind = \"cbr\", rate = \"8 kbit/s\", packet = \"100 B\" }}",
            behind(130.0)
        ));
        flow(&tables, "ping").owd_p50_ms.expect("packets arrived")
    };
    for keys in ["", "bearer = { above = {} }"] {
        let alone = median("cells = [{}]", "lte", keys);
        let beside = median("lte = {}\ncells = [{ rat = \"lte\" }]", "nr", keys);
        println!("{keys}: {alone} ms alone, {beside} ms in a network with [nr]");
        near("one-way delay", beside, alone, 0.05);
    }
}

#[test]
fn interference_fades_in_an_nr_cell_only_on_request() {
    // As far from one cell as from the other, which sends at all times; next to no noise, and a channel so narrow and short
    // that it fades as a whole.
    let cells = "resource_blocks = 4\nhandover = { enabled = false }\n\
                 cells = [{ power_dbm = 40 }, { position = [400, 0, 30], load = 1, power_dbm = 40 }]";
    let little = "[[flows]]\ntraffic = { kind = \"cbr\", rate = \"10 kbit/s\", packet = \"100 B\" }";
    let spread = |keys: &str| {
        let ue = format!("mobility = [200, 0, 1.5]\ncell = \"cell-1\"\n{keys}");
        let tables = network(40, cells, &[&ue], little);
        let sinr: Vec<f64> = tables.radio.iter().filter_map(|row| row.sinr_db).collect();
        let mean = sinr.iter().sum::<f64>() / sinr.len() as f64;
        let deviation = (sinr.iter().map(|db| (db - mean).powi(2)).sum::<f64>() / sinr.len() as f64).sqrt();
        assert!(
            sinr.len() > 1900
                && tables.radio.iter().all(|row| row.rsrp_dbm == tables.radio.iter().next().unwrap().rsrp_dbm)
        );
        (mean, deviation)
    };
    let fading = "fading = { kind = \"tdl\", profile = \"a\", delay_spread = \"10 ns\", kmh = 60 }";
    let ((still, none), own) = (spread(""), spread(fading));
    let both = spread(&format!("{fading}\ninterference_fading = true"));
    assert!(still.abs() < 0.01 && none < 1e-9, "{still} {none}");
    // Decibels of an exponential variable deviate by 10 pi / (ln 10 sqrt 6) = 5.57, with a mean 2.51 dB below that of the
    // power; those of the quotient of two by sqrt 2 times as much, around zero.
    near("own link", own.1, 5.57, 0.06);
    near("both", both.1, 5.57 * 2f64.sqrt(), 0.06);
    assert!((own.0 + 2.51).abs() < 0.4 && both.0.abs() < 0.5, "{own:?} {both:?}");
}

#[test]
fn the_period_of_scheduling_requests_is_what_an_uplink_packet_waits_for() {
    // Slots of 125 us. A packet of 100 bytes at the beginning of slot 0, with an opportunity there: request in 0, grant in
    // 2 for 5 (K2 = 3), decoded 100 us after its end. Packets come at any time between opportunities, of which those of
    // each two symbols are used once a slot.
    let flow_lines = "[[flows]]\nname = \"f\"\nfrom = \"ue-1\"\nto = \"server\"\n\
                      traffic = { kind = \"cbr\", rate = \"9.07 kbit/s\", packet = \"100 B\" }";
    for (period, slots) in [("17.86 us", 1.0), ("1 ms", 8.0), ("80 ms", 640.0)] {
        let nr = format!(
            "duplex = \"fdd\"\nnumerology = 3\nfrequency_mhz = 28000\nbandwidth_mhz = 100\nmac = {{ sr_period = \"{period}\" }}"
        );
        let tables = network(60, &nr, &[&behind(70.0)], flow_lines);
        let flow = flow(&tables, "f");
        for (share, delay) in [(0.05, flow.owd_p5_ms), (0.5, flow.owd_p50_ms), (0.95, flow.owd_p95_ms)] {
            let expected = 0.125 * (6.0 + share * slots) + 0.1;
            let delay = delay.expect("packets arrived");
            assert!(
                (delay - expected).abs() < 0.004 + 0.01 * 0.125 * slots,
                "{period}, {share}: {delay}, not {expected} ms"
            );
        }
    }
}
