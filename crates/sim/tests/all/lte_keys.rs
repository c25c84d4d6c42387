//! What the keys of an LTE scenario do to its results: each case runs a scenario with two values of a key.

use crate::common::{flow, load, near, run_on};
use channel::pathloss::{PathLoss, Sight};
use channel::tables::lte::{tbs, ul_mcs};
use channel::{Direction, Position};
use record::Tables;

/// The tables of `[lte]` with the lines `lte`, a UE with the lines `ue`, and a flow with the lines `flow`.
fn run(lte: &str, ue: &str, flow: &str, files: &[(&str, &str)]) -> Tables {
    let text = format!(
        "duration = \"5 s\"\nwarmup = \"1 s\"\nrecord = {{ samples = \"100 ms\" }}\n[lte]\nserver_delay = \"5 ms\"\n{lte}\n\
         [[lte.ues]]\nname = \"ue\"\n{ue}\n[[flows]]\nname = \"f\"\n{flow}\n"
    );
    run_on(&load(&text, files), 1).results.tables
}

/// More than a carrier of 10 MHz carries, in either direction.
const DOWN: &str = "traffic = { kind = \"cbr\", rate = \"60 Mbit/s\" }";
const UP: &str = "from = \"ue\"\nto = \"server\"\ntraffic = { kind = \"cbr\", rate = \"60 Mbit/s\" }";
/// Next to nothing.
const LITTLE: &str = "traffic = { kind = \"cbr\", rate = \"10 kbit/s\", packet = \"100 B\" }";

/// Mbit/s of IP packets that the uplink's best scheme at an SINR carries on the 48 resource blocks for data of 10 MHz.
fn uplink_mbps(sinr_db: f64) -> f64 {
    f64::from(tbs(ul_mcs(channel::phy::mcs_at(sinr_db as f32, Direction::Uplink)).i_tbs, 48)) / 1e3
}

/// Received power over noise in the uplink: -174 dBm/Hz, 180 kHz, and a noise figure of 5 dB.
fn uplink_sinr_db(received_dbm: f64) -> f64 {
    received_dbm - (-174.0 + 10.0 * 180e3f64.log10() + 5.0)
}

#[test]
fn power_control_decides_what_the_uplink_carries() {
    // Key, loss in dB, power received in a resource block in dBm.
    let cases = [
        ("p0_dbm = -104.0", 100.0, -104.0),
        ("p0_dbm = -98.0", 100.0, -98.0),
        ("p0_dbm = -88.0, alpha = 0.8", 100.0, -88.0 - 0.2 * 100.0),
        ("p0_dbm = -88.0, alpha = 0.9", 100.0, -88.0 - 0.1 * 100.0),
        ("p0_dbm = -88.0, alpha = 1.0", 120.0, 23.0 - 10.0 * 48f64.log10() - 120.0),
    ];
    for (keys, loss_db, received_dbm) in cases {
        let ue = format!("channel = {{ kind = \"fixed\", loss_db = {loss_db} }}");
        let tables = run(&format!("power_control = {{ {keys} }}\ncells = [{{ power_dbm = 46 }}]"), &ue, UP, &[]);
        // One first transmission in ten fails.
        near(keys, flow(&tables, "f").throughput_mbps, uplink_mbps(uplink_sinr_db(received_dbm)), 0.10);
    }
    let at_most = |dbm: f64| {
        let ue = format!("channel = {{ kind = \"fixed\", loss_db = 110 }}\npower_dbm = {dbm}");
        flow(&run("cells = [{ power_dbm = 46 }]", &ue, UP, &[]), "f").throughput_mbps
    };
    let (weak, strong) = (at_most(13.0), at_most(23.0));
    assert!(weak < 0.6 * strong, "{weak} Mbit/s with 13 dBm, {strong} with 23");
}

#[test]
fn the_path_to_the_server_loses_packets_in_either_direction() {
    for ends in ["from = \"ue\"\nto = \"server\"\n", ""] {
        let cbr = format!("{ends}traffic = {{ kind = \"cbr\", rate = \"4 Mbit/s\" }}");
        let at = |loss: f64| flow(&run(&format!("server_loss = {loss}"), "", &cbr, &[]), "f").throughput_mbps;
        near(ends, at(0.0), 4.0, 0.02);
        near(ends, at(0.2), 4.0 * 0.8, 0.03);
    }
}

#[test]
fn a_sleeping_ue_waits_for_its_on_duration() {
    // Packets 89 ms apart come at any time of a cycle.
    let sparse = "traffic = { kind = \"cbr\", rate = \"9 kbit/s\", packet = \"100 B\" }";
    let delays = |drx: &str| {
        let tables = run(&format!("mac = {{ {drx} }}"), "channel = { kind = \"fixed\", loss_db = 90 }", sparse, &[]);
        let flow = flow(&tables, "f");
        [flow.owd_p5_ms, flow.owd_p50_ms, flow.owd_p95_ms].map(|delay| delay.unwrap())
    };
    let awake = delays("");
    let asleep = delays("drx = { on_duration = \"1 ms\", inactivity = \"0 s\", cycle = \"64 ms\" }");
    for (part, (asleep, awake)) in [0.05, 0.5, 0.95].into_iter().zip(asleep.into_iter().zip(awake)) {
        assert!((asleep - awake - 63.0 * part).abs() < 4.0, "{part}: {asleep} ms, {awake} without DRX");
    }
    // It listens in one TTI of 64, in eight from each request for a STATUS PDU to its report, and in the one in which that
    // is acknowledged.
    let keys = "mac = { drx = { on_duration = \"1 ms\", inactivity = \"0 s\", cycle = \"64 ms\" } }";
    let tables = run(keys, "channel = { kind = \"fixed\", loss_db = 90 }", sparse, &[]);
    let requests: u64 = tables.ues.iter().map(|ue| ue.scheduling_requests).sum();
    let expected = 1.0 - 1.0 / 64.0 - 9.0 * requests as f64 / 4000.0;
    assert!(requests > 40);
    assert!(tables.ues.iter().all(|ue| (ue.asleep - expected).abs() < 0.004), "{:?}, not {expected}", tables.ues);
    let short = delays(
        "drx = { on_duration = \"1 ms\", inactivity = \"1 ms\", cycle = \"64 ms\", short_cycle = \"4 ms\", short_cycles = 16 }",
    );
    assert!(short[2] < asleep[2] && short[1] < asleep[1], "{short:?}, without a short cycle {asleep:?}");
    let busy = delays("drx = { inactivity = \"100 ms\" }");
    assert!(busy.iter().zip(awake).all(|(busy, awake)| (busy - awake).abs() < 0.2), "{busy:?}, without DRX {awake:?}");
}

/// When the UE's first `event` happened, in ms.
fn first(tables: &Tables, event: &str) -> Option<u64> {
    tables.mobility.iter().find(|m| m.event == event).map(|m| (m.t_s * 1e3).round() as u64)
}

#[test]
fn the_radio_links_keys_decide_when_it_is_lost() {
    /// In sync, 2 s later not.
    const FALL: &str = "time_s,sinr_db\n0,20\n2,-6\n";
    /// For 120 ms in between it is.
    const TWO_FALLS: &str = "time_s,sinr_db\n0,20\n2,-6\n2.6,20\n2.72,-6\n";
    /// At the end neither.
    const HALF: &str = "time_s,sinr_db\n0,20\n2,-6\n2.6,-4.5\n";
    // Measurements are 40 ms apart, at multiples of it; N310 is 6, N311 is 2, T310 is 1 s unless given.
    let cases: [(&str, &str, Option<u64>); 15] = [
        ("", FALL, Some(2000 + 5 * 40 + 1000)),
        ("q_out_db = -5.9", FALL, Some(3200)),
        ("q_out_db = -6.1", FALL, None),
        ("n310 = 1", FALL, Some(2000 + 1000)),
        ("n310 = 20", FALL, Some(2000 + 19 * 40 + 1000)),
        ("t310 = \"200 ms\"", FALL, Some(2200 + 200)),
        ("t310 = \"2 s\"", FALL, Some(2200 + 2000)),
        ("measurement_period = \"80 ms\"", FALL, Some(2000 + 5 * 80 + 1040)),
        ("", TWO_FALLS, Some(2720 + 200 + 1000)),
        ("n311 = 3", TWO_FALLS, Some(3920)),
        ("n311 = 4", TWO_FALLS, Some(3200)),
        ("q_in_db = 21.0", TWO_FALLS, Some(3200)),
        ("", HALF, Some(3200)),
        ("q_in_db = -4.4", HALF, Some(3200)),
        ("q_in_db = -4.6", HALF, None),
    ];
    for (key, channel, lost) in cases {
        let ue = "channel = { kind = \"recorded\", files = { cell-1 = \"c.csv\" }, loss_db = 100 }";
        let tables = run(&format!("handover = {{ {key} }}"), ue, LITTLE, &[("c.csv", channel)]);
        assert_eq!(first(&tables, "link-lost"), lost, "{key} {channel:?}");
    }
}

#[test]
fn the_keys_of_event_a3_decide_when_and_whether_a_ue_is_handed_over() {
    const A: &str = "time_s,rsrp_dbm\n0,-90\n";
    /// 20 dB better from 2 s on: 10 dB better than the other.
    const B: &str = "time_s,rsrp_dbm\n0,-100\n2,-80\n";
    // A filter of coefficient k leaves (1 - 2^(-k/4))^(1/5) of the step after each measurement, and 35 % is too much
    // unless given otherwise; the time to trigger ends at the next measurement.
    let passed = |k: f64, share: f64| {
        let old = 1.0 - (-k / 4.0f64).exp2();
        (0..).find(|i| old.powf((f64::from(*i) + 1.0) / 5.0) < share).unwrap() as u64 * 40 + 2000
    };
    let cases = [
        ("filter = 0", Some(2000 + 280)),
        ("", Some(passed(4.0, 0.35) + 280)),
        ("filter = 8", Some(passed(8.0, 0.35) + 280)),
        ("filter = 13", Some(passed(13.0, 0.35) + 280)),
        ("filter = 0, time_to_trigger = \"40 ms\"", Some(2040)),
        ("filter = 0, time_to_trigger = \"1024 ms\"", Some(2000 + 1040)),
        ("hysteresis_db = 0.0", Some(passed(4.0, 0.5) + 280)),
        ("hysteresis_db = 9.9, filter = 0", Some(2280)),
        ("hysteresis_db = 10.0, filter = 0", None),
        ("offset_db = 2.0", Some(passed(4.0, 0.25) + 280)),
        ("offset_db = 7.1, filter = 0", None),
        ("filter = 0, measurement_period = \"200 ms\"", Some(2000 + 400)),
        ("enabled = false", None),
    ];
    for (key, triggered) in cases {
        let ue = "channel = { kind = \"recorded\", files = { a = \"a.csv\", b = \"b.csv\" } }";
        let lte = format!("cells = [{{ name = \"a\" }}, {{ name = \"b\" }}]\nhandover = {{ {key} }}");
        let tables = run(&lte, ue, LITTLE, &[("a.csv", A), ("b.csv", B)]);
        assert_eq!(first(&tables, "triggered"), triggered, "{key}");
        assert_eq!(first(&tables, "connected").is_some(), triggered.is_some(), "{key}");
    }
    // The parts of a handover: preparation, the command's way, interruption.
    let parts = |key: &str| {
        let ue = "channel = { kind = \"recorded\", files = { a = \"a.csv\", b = \"b.csv\" } }";
        let lte = format!("cells = [{{ name = \"a\" }}, {{ name = \"b\" }}]\nhandover = {{ filter = 0, {key} }}");
        let tables = run(&lte, ue, LITTLE, &[("a.csv", A), ("b.csv", B)]);
        let at = |event| first(&tables, event).unwrap();
        (at("left") - at("preparing"), at("connected") - at("left"))
    };
    let (prepared, interrupted) = parts("");
    assert_eq!(parts("preparation = \"90 ms\""), (prepared + 60, interrupted));
    assert_eq!(parts("interruption = \"45 ms\""), (prepared, 45));
    assert_eq!(interrupted, 30);
}

#[test]
fn a_category_limits_both_directions() {
    let mbps = |category: &str, flow_lines: &str| {
        let ue = format!("channel = {{ kind = \"fixed\", loss_db = 60 }}\nlayers = 1\n{category}");
        let tables = run("bandwidth = \"20 MHz\"", &ue, &flow_lines.replace("60 Mbit/s", "90 Mbit/s"), &[]);
        flow(&tables, "f").throughput_mbps
    };
    // 36.306 Tables 4.1-1 and 4.1-2; without 64QAM the uplink's last scheme on 96 resource blocks has 48.9 kbit.
    let cases = [
        ("category = 1", 10.296, 5.160),
        ("category = 2", 51.024, 25.456),
        ("category = 3", 75.376, 48.936),
        ("category = 5", 75.376, 71.112),
        ("", 75.376, 71.112),
    ];
    for (category, down, up) in cases {
        let (got_down, got_up) = (mbps(category, DOWN), mbps(category, UP));
        println!("{category}: {got_down} of {down}, {got_up} of {up} Mbit/s");
        // Blocks have headers, and sizes in steps.
        assert!(got_down <= down && got_down > 0.94 * down, "{category}: {got_down} of {down} Mbit/s");
        assert!(got_up <= up && got_up > 0.93 * up, "{category}: {got_up} of {up} Mbit/s");
    }
}

#[test]
fn each_path_loss_model_gives_the_power_and_the_rate_of_its_formula() {
    let (place, hz) = (Position::new(1500.0, 0.0, 1.5), 1.8e9);
    let rural = |sight, building_m| PathLoss::RuralMacro { sight, building_m, street_m: 20.0 };
    let cases = [
        ("kind = \"friis\"", PathLoss::Friis),
        ("kind = \"rma\", sight = \"los\"", rural(Sight::Los, 5.0)),
        ("kind = \"uma\", sight = \"los\"", PathLoss::UrbanMacro(Sight::Los)),
        ("kind = \"umi\", sight = \"los\"", PathLoss::UmiStreetCanyon(Sight::Los)),
        (
            "kind = \"log-distance\", exponent = 3.2, at_1m_db = 30",
            PathLoss::LogDistance { exponent: 3.2, reference_m: 1.0, reference_db: 30.0 },
        ),
        ("kind = \"rma\", sight = \"nlos\"", rural(Sight::Nlos, 5.0)),
        ("kind = \"rma\", sight = \"nlos\", building_m = 10", rural(Sight::Nlos, 10.0)),
        ("kind = \"uma\", sight = \"nlos\"", PathLoss::UrbanMacro(Sight::Nlos)),
        ("kind = \"cost-231\"", PathLoss::Cost231Hata { metropolitan: false }),
        ("kind = \"cost-231\", metropolitan = true", PathLoss::Cost231Hata { metropolitan: true }),
        ("kind = \"umi\", sight = \"nlos\"", PathLoss::UmiStreetCanyon(Sight::Nlos)),
        ("kind = \"fixed\", loss_db = 152", PathLoss::Fixed(152.0)),
    ];
    let element_dbm = 46.0 - 10.0 * 600f64.log10();
    let mut rates = Vec::new();
    for (keys, model) in cases {
        let shadowing =
            if ["uma", "umi", "rma"].iter().any(|kind| keys.contains(kind)) { ", shadowing = false" } else { "" };
        // The heights that the models hold for.
        let height =
            [("uma", 25.0), ("umi", 10.0)].iter().find(|(kind, _)| keys.contains(kind)).map_or(30.0, |(_, m)| *m);
        let ue = format!("mobility = [1500, 0, 1.5]\nchannel = {{ {keys}{shadowing} }}");
        let cell = format!("cells = [{{ power_dbm = 46, position = [0, 0, {height}] }}]");
        let tables = run(&format!("downlink_mhz = 1800\nuplink_mhz = 1710\n{cell}"), &ue, DOWN, &[]);
        let loss_db = model.loss_db(Position::new(0.0, 0.0, height), place, hz, model.sight() == Sight::Los);
        for row in tables.radio.iter() {
            assert!(
                (row.rsrp_dbm - (element_dbm - loss_db)).abs() < 1e-6,
                "{keys}: {} dBm, {loss_db} dB",
                row.rsrp_dbm
            );
        }
        let mbps = flow(&tables, "f").throughput_mbps;
        println!("{keys}: {loss_db:.1} dB, {mbps:.2} Mbit/s");
        rates.push((loss_db, mbps));
    }
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(rates.is_sorted_by(|(loss, rate), (more, less)| loss < more && less <= rate), "{rates:?}");
    assert!(rates[0].1 > 35.0 && rates[rates.len() - 1].1 < 8.0, "{rates:?}");
}

#[test]
fn interference_fades_on_request() {
    // As far from one cell as from the other, which sends at all times, on a carrier so narrow that all of it fades alike.
    let spread = |interference_fading: bool| {
        let text = format!(
            "duration = \"100 s\"\nrecord = {{ samples = \"50 ms\" }}\n[lte]\nserver_delay = \"5 ms\"\nbandwidth = \"1.4 MHz\"\n\
             handover = {{ enabled = false }}\ncells = [{{}}, {{ position = [400, 0, 30], load = 1 }}]\n\
             [[lte.ues]]\nname = \"ue\"\nmobility = [200, 0, 1.5]\ncell = \"cell-1\"\n\
             fading = {{ kind = \"epa\", kmh = 60 }}\ninterference_fading = {interference_fading}\n\
             [[flows]]\nname = \"f\"\n{DOWN}\n"
        );
        let tables = run_on(&load(&text, &[]), 1).results.tables;
        let sinr: Vec<f64> = tables.radio.iter().filter_map(|row| row.sinr_db).collect();
        let mean = sinr.iter().sum::<f64>() / sinr.len() as f64;
        let deviation = (sinr.iter().map(|db| (db - mean).powi(2)).sum::<f64>() / sinr.len() as f64).sqrt();
        let rsrp: Vec<f64> = tables.radio.iter().map(|row| row.rsrp_dbm).collect();
        println!("{} of {mean:.3} and {deviation:.3} dB", sinr.len());
        (mean, deviation, rsrp, flow(&tables, "f").throughput_mbps)
    };
    let (steady, faded) = (spread(false), spread(true));
    assert_eq!(steady.2, faded.2, "RSRP does not fade");
    // A Rayleigh-fading power is exponential: its decibels have a mean of -10 log10(e) times Euler's constant and a deviation of
    // 10 log10(e) pi/sqrt(6). The quotient of two has a mean of 0 dB and a deviation of sqrt(2) times as much.
    let decibels = 10.0 * std::f64::consts::LOG10_E;
    let deviation = decibels * std::f64::consts::PI / 6f64.sqrt();
    // 1.08 MHz are a little more than a block: the mean over them varies less.
    near("deviation of one, dB", steady.1, deviation, 0.10);
    near("deviation of a quotient, dB", faded.1, deviation * 2f64.sqrt(), 0.05);
    near("mean of one, dB", steady.0 - faded.0, -0.577_216 * decibels, 0.15);
    println!("{} and {} Mbit/s", steady.3, faded.3);
    assert!(faded.3 > steady.3, "{} and {} Mbit/s", steady.3, faded.3);
}
