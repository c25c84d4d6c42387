//! Networks of NR cells in the simulator: presets, buildings, both technologies in one network, and random places.

use crate::common::{flow, load, near, run, run_on};
use record::Tables;
use std::collections::BTreeSet;

/// A scenario of `seconds` that extends a preset by `more` and one flow with the lines `flow`.
fn preset(name: &str, seconds: u32, more: &str, flow: &str) -> Tables {
    run(&format!(
        "duration = \"{seconds} s\"\ninclude = [\"preset:{name}\"]\n{more}\n[[flows]]\nname = \"f\"\n{flow}\n"
    ))
}

const BUFFERS: &str = "[tcp]\nsend_buffer = \"16 MB\"\nreceive_buffer = \"32 MB\"";

#[test]
fn a_download_fills_rapids_carrier() {
    let tables = preset("nr-fr2-200mhz", 4, &format!("warmup = \"2 s\"\n{BUFFERS}"), "");
    // 852.608 Mbit/s of transport blocks; a packet of 1500 bytes costs 1510 in RLC. What waited behind a hole at the end of the
    // warm-up is goodput, and was carried before.
    near("throughput", flow(&tables, "f").throughput_mbps, 852.608 * 1500.0 / 1510.0, 0.01);
    // 10 MB of queue: RLC's limit.
    let held: Vec<u64> = tables.radio.iter().map(|row| row.dl_buffer_bytes).collect();
    assert!(held.iter().all(|bytes| *bytes <= 10_000_000) && held.iter().any(|bytes| *bytes > 5_000_000), "{held:?}");
}

#[test]
fn a_download_fills_the_buffer_of_its_bearer() {
    // Nothing but the documented default limits it, or what is set instead.
    for (bearer, most) in [("", 6028 * 1024), ("bearer = { nr = { buffer = \"2 MB\" } }", 2_000_000)] {
        let tables = run(&format!(
            "duration = \"4 s\"\n{BUFFERS}\n[nr]\nserver_delay = \"10 ms\"\n[[nr.ues]]\nname = \"ue\"\n\
             channel = {{ kind = \"fixed\", loss_db = 80 }}\n{bearer}\n[[flows]]\nname = \"f\"\n"
        ));
        let held = tables.radio.iter().map(|row| row.dl_buffer_bytes).max().expect("samples");
        assert!(held <= most && held > most * 9 / 10, "{bearer}: {held}");
    }
}

#[test]
fn a_download_is_as_fast_as_in_ns3s_mmwave_module_and_waits_as_long() {
    let more = format!("warmup = \"2 s\"\n{BUFFERS}\nmss = 1400");
    let tables = preset("nr-ns3-mmwave", 8, &more, "");
    let flow = flow(&tables, "f");
    // ns3-mmwave with CUBIC and 10 MB in RLC: 735 Mbit/s, and a median RTT of 91 ms.
    near("goodput", flow.goodput_mbps, 735.0, 0.03);
    near("RTT", flow.rtt_p50_ms.expect("packets were acknowledged"), 91.0, 0.05);
}

#[test]
fn one_building_takes_the_line_of_sight_and_most_of_the_rate() {
    let tables = preset("nr-street", 16, BUFFERS, "");
    let rows: Vec<_> = tables.radio.iter().collect();
    // 9.33 m at 2 m/s.
    let hidden: Vec<f64> = rows.iter().filter(|row| !row.los).map(|row| row.t_s).collect();
    assert!((4.6..4.9).contains(&hidden[0]), "{}", hidden[0]);
    assert!(rows.iter().all(|row| row.los == (row.t_s < hidden[0])), "it stays behind the corner");
    let mean = |from: f64, to: f64| {
        let these: Vec<f64> = rows.iter().filter(|r| r.t_s > from && r.t_s <= to).map(|r| r.dl_mbps).collect();
        these.iter().sum::<f64>() / these.len() as f64
    };
    let (seen, behind) = (mean(1.0, 4.6), mean(5.0, 16.0));
    assert!(seen > 400.0 && behind < 0.75 * seen, "{seen} Mbit/s, {behind} behind the corner");
    let beams: BTreeSet<Option<u64>> = rows.iter().map(|row| row.cell_beam).collect();
    assert!(beams.len() > 1 && !beams.contains(&None), "{beams:?}");
    let failed: Vec<f64> = rows.iter().filter(|row| row.t_s > 5.0).filter_map(|row| row.dl_bler).collect();
    let bler = failed.iter().sum::<f64>() / failed.len() as f64;
    near("the outer loop's target", bler, 0.1, 0.1);
}

#[test]
fn the_report_of_a_street_has_the_line_of_sight_and_the_beams_at_each_moment() {
    let text = format!("duration = \"16 s\"\ninclude = [\"preset:nr-street\"]\n{BUFFERS}\n[[flows]]\nname = \"f\"\n");
    let results = run_on(&load(&text, &[]), 1).results;
    let page = record::report::html(&results);
    let start = "<script type=\"application/json\" id=\"data\">";
    let data = &page[page.find(start).expect("the page has data") + start.len()..];
    let data = data.split("</script").next().expect("the data ends");
    let data: serde_json::Value = serde_json::from_str(data).expect("the data is JSON");
    let all = data["results"][0]["series"].as_array().expect("series");
    let radio = all.iter().find(|one| one["kind"] == "radio").expect("of the UE");
    let column = |name: &str| -> Vec<Option<f64>> {
        let values = radio["columns"][name].as_array().unwrap_or_else(|| panic!("no {name}"));
        values.iter().map(serde_json::Value::as_f64).collect()
    };
    // What the page draws as "Line of sight" and "Beams".
    let rows: Vec<_> = results.tables.radio.iter().collect();
    assert_eq!(column("t").len(), rows.len(), "all samples fit");
    assert_eq!(column("los"), rows.iter().map(|row| Some(f64::from(u8::from(row.los)))).collect::<Vec<_>>());
    let beams = |of: fn(&record::tables::RadioRow<'_>) -> Option<u64>| -> Vec<Option<f64>> {
        rows.iter().map(|row| of(row).map(|beam| beam as f64)).collect()
    };
    let [cell, ue] = [beams(|row| row.cell_beam), beams(|row| row.ue_beam)];
    assert!(column("cell_beam") == cell && column("ue_beam") == ue);
    for (name, column) in [("los", column("los")), ("cell_beam", cell)] {
        assert!(column.windows(2).any(|pair| pair[0] != pair[1]), "{name} changes");
    }
}

#[test]
fn a_ue_changes_between_nr_and_lte_and_back_without_loss() {
    let tables = preset("nr-lte", 60, "", "");
    let served: Vec<&str> = tables.mobility.iter().filter(|row| row.event == "connected").map(|row| row.cell).collect();
    assert!(served.contains(&"lte") && served.iter().any(|cell| cell.starts_with("nr-")), "{served:?}");
    assert!(tables.mobility.iter().all(|row| !row.event.contains("fail") && row.event != "link-lost"));
    assert!(flow(&tables, "f").goodput_mbps > 50.0);
    for row in tables.ues.iter() {
        let busy = row.utilisation.expect("a simulation knows it");
        assert!(busy > 0.0 && busy <= 1.0, "{}: {busy}", row.direction);
    }
    // The cells' carriers have different numbers of resource blocks.
    for row in tables.radio.iter() {
        let shares =
            [row.dl_prbs, Some(row.ul_prbs), row.dl_cell_prbs].map(|share| share.expect("a simulation knows it"));
        assert!(shares.iter().all(|share| *share <= 1.0 + 1e-9), "{} s: {shares:?}", row.t_s);
    }
}

#[test]
fn every_built_in_scenario_and_preset_for_nr_runs() {
    for name in ["nr-fr2-200mhz", "nr-street", "nr-drive"] {
        let tables = run(&format!("include = [\"{name}\"]\nduration = \"3 s\"\nwarmup = \"1 s\"\n"));
        assert!(tables.flows.iter().all(|f| f.goodput_mbps > 0.01), "{name}");
    }
    let presets = scenario::builtin::presets().iter().filter(|p| p.name.starts_with("nr-") && p.name != "nr-like");
    let mut seen = 0;
    for of in presets {
        // Where the preset has no UE, the cell's default one is there.
        let goodput = flow(&preset(of.name, 3, "warmup = \"1 s\"", ""), "f").goodput_mbps;
        assert!(goodput > 20.0, "{}: {goodput}", of.name);
        seen += 1;
    }
    assert_eq!(seen, 6);
}

/// The events of the only UE's radio link: when, what, and with which cell.
fn story(tables: &Tables) -> Vec<(f64, &str, &str)> {
    tables.mobility.iter().map(|row| (row.t_s, row.event, row.cell)).collect()
}

#[test]
fn a_drive_past_nr_sites_is_handed_over_from_each_to_the_next_without_loss() {
    let tables = preset("nr-drive", 60, "", "");
    let story = story(&tables);
    let served: Vec<&str> =
        story.iter().filter(|(_, event, _)| *event == "connected").map(|(_, _, cell)| *cell).collect();
    assert_eq!(served, ["cell-2", "cell-3", "cell-4"], "{story:?}");
    assert!(story.iter().all(|(_, event, _)| *event != "link-lost" && !event.contains("fail")), "{story:?}");
    let flow = flow(&tables, "f");
    assert!(
        flow.goodput_mbps > 50.0 && flow.rtos.unwrap() == 0,
        "{} Mbit/s, {} RTOs",
        flow.goodput_mbps,
        flow.rtos.unwrap()
    );
}

#[test]
fn a_link_that_nr_loses_is_there_again_when_the_ue_comes_back() {
    let text = "duration = \"14 s\"\n[nr]\nserver_delay = \"10 ms\"\ncells = [{ name = \"mast\", position = [0, 0, 10], power_dbm = 10 }]\n\
                      [[nr.ues]]\nname = \"u\"\nchannel = { kind = \"umi\", sight = \"nlos\" }\n\
                      mobility = { kind = \"route\", points = [[20, 0, 1.5], [520, 0, 1.5], [20, 0, 1.5]], speeds = [100] }\n\
                      [[flows]]\nname = \"f\"\n";
    let tables = run(text);
    let story = story(&tables);
    // Where it is just found again, it may be lost once more.
    let [(lost, "link-lost", "mast"), (back, "connected", "mast"), ..] = story[..] else { panic!("{story:?}") };
    assert!(story.last().is_some_and(|(at, event, _)| *event == "connected" && *at < 9.5), "{story:?}");
    // It is lost on the way out, a second (T310) after it has become bad, and found on the way back.
    assert!(lost > 1.2 && lost < 5.0 && back > 6.0 && back < 9.5, "{story:?}");
    let received = |from: f64, to: f64| {
        let rows = tables.radio.iter().filter(|row| row.t_s > from && row.t_s <= to);
        rows.map(|row| row.dl_mbps).sum::<f64>()
    };
    assert!(received(0.0, lost - 1.0) > 0.0 && received(9.5, 10.2) > 0.0);
    assert_eq!(received(lost + 0.2, back - 0.2), 0.0);
    let without_samples = run(&format!("record = {{ samples = \"off\" }}\n{text}"));
    assert_eq!(self::story(&without_samples), story);
}

#[test]
fn a_sleeping_ue_waits_for_its_on_duration() {
    let delays = |mac: &str| {
        let tables = run(&format!(
            "duration = \"20 s\"\n[nr]\nmac = {{ {mac} }}\n[[nr.ues]]\nname = \"ue\"\n\
             channel = {{ kind = \"fixed\", loss_db = 90 }}\n[[flows]]\nname = \"f\"\n\
             traffic = {{ kind = \"cbr\", rate = \"9 kbit/s\", packet = \"100 B\" }}\n"
        ));
        let flow = flow(&tables, "f");
        [flow.owd_p50_ms, flow.owd_p95_ms].map(|delay| delay.unwrap())
    };
    let awake = delays("");
    // A fifth of the cycle, ten slots of 0.5 ms, is awake.
    let drx = |keys: &str| {
        delays(&format!(
            "drx = {{ on_duration = \"5 ms\", inactivity = \"0 s\", cycle = \"64 ms\", offset = \"3 ms\"{keys} }}"
        ))
    };
    let asleep = drx("");
    near("median", asleep[0], awake[0] + 64.0 * 0.5 - 5.0, 0.15);
    near("95 %", asleep[1], awake[1] + 64.0 * 0.95 - 5.0, 0.15);
    let short = drx(", short_cycle = \"8 ms\", short_cycles = 16");
    assert!(short[1] < awake[1] + 8.0, "{short:?}");
}

#[test]
fn ues_at_random_places_are_elsewhere_in_another_run_and_not_in_the_same() {
    let text = |mobility: &str, seed: u32| {
        format!(
            "duration = \"2 s\"\nseed = {seed}\n[nr]\n[[nr.ues]]\nname = \"ue\"\ncount = 20\nmobility = {{ {mobility} }}\n\
             channel = {{ kind = \"umi\", sight = \"los\", shadowing = false }}\n[[flows]]\n\
             traffic = {{ kind = \"cbr\", rate = \"1 Mbit/s\" }}\n"
        )
    };
    for (mobility, moves) in [
        ("kind = \"disc\", centre = [0, 0, 1.5], radius_m = 200", false),
        ("kind = \"streets\", x = [-200, 200], y = [-200, 200], block_m = 50", false),
        ("kind = \"random-waypoint\", x = [-200, 200], y = [-100, 100], kmh = [30, 60]", true),
        ("kind = \"manhattan\", x = [-200, 200], y = [-200, 200], block_m = 50, kmh = [30, 60]", true),
    ] {
        let powers = |seed: u32, at: f64| -> Vec<f64> {
            let tables = run(&text(mobility, seed));
            let rows = tables.radio.iter().filter(|row| (row.t_s - at).abs() < 0.01);
            rows.map(|row| row.rsrp_dbm).collect()
        };
        let first = powers(1, 0.1);
        assert_eq!((first.len(), &first), (20, &powers(1, 0.1)), "{mobility}");
        assert_ne!(first, powers(2, 0.1), "{mobility}");
        let different: BTreeSet<u64> = first.iter().map(|dbm| dbm.to_bits()).collect();
        assert!(different.len() > 15, "{mobility}: {first:?}");
        assert_eq!(first != powers(1, 2.0), moves, "{mobility}");
    }
}

#[test]
fn sectors_of_a_hexagonal_layout_share_their_carrier_with_each_other() {
    let text = |to: &str, technology: &str| {
        format!(
            "duration = \"3 s\"\nwarmup = \"1 s\"\n[{technology}]\n[[{technology}.cells]]\nname = \"site\"\n\
             position = [0, 0, 25]\npower_dbm = 46\n\
             layout = {{ kind = \"hexagonal\", sites = 7, spacing_m = 500 }}\n[[{technology}.ues]]\nname = \"ue\"\n\
             count = 40\nmobility = {{ kind = \"disc\", centre = [0, 0, 1.5], radius_m = 600 }}\n\
             channel = {{ kind = \"uma\", sight = \"nlos\" }}\n[[flows]]\nname = \"f\"\nto = \"{to}\"\n\
             traffic = {{ kind = \"cbr\", rate = \"100 Mbit/s\" }}\n"
        )
    };
    for technology in ["lte", "nr"] {
        let tables = run(&text("ue-*", technology));
        let cells: BTreeSet<&str> = tables.radio.iter().map(|row| row.cell).collect();
        assert!(cells.len() > 12 && cells.contains("site-1-1"), "{cells:?}");
        let alone = run(&text("ue-1", technology));
        let sinr = |tables: &Tables| {
            let rows = tables.radio.iter().filter(|row| row.ue == "ue-1");
            rows.filter(|row| row.t_s > 2.0).filter_map(|row| row.sinr_db).last().expect("it is served")
        };
        // Where the others transmit nothing there is only noise.
        assert!(sinr(&tables) + 5.0 < sinr(&alone), "{} and {} dB", sinr(&tables), sinr(&alone));
    }
}

#[test]
fn a_second_carrier_adds_its_rate_and_counts_in_the_utilisation() {
    let download = |second: &str, carriers: &str| {
        let tables = run(&format!(
            "duration = \"3 s\"\nwarmup = \"1 s\"\nrecord = {{ radio = true, samples = \"100 ms\" }}\n{BUFFERS}\n[nr]\nbandwidth_mhz = 40\n{second}\n\
             [[nr.ues]]\nname = \"ue\"\n{carriers}\nchannel = {{ kind = \"fixed\", loss_db = 70 }}\n[[flows]]\nname = \"f\"\n"
        ));
        let cells: BTreeSet<String> =
            tables.transmissions.iter().filter(|t| t.direction == "downlink").map(|t| t.cell.to_owned()).collect();
        let utilisation = tables.ues.iter().find(|row| row.direction == "downlink").expect("a UE").utilisation;
        let utilisation = utilisation.expect("a simulation knows it");
        let shares = tables.radio.iter().filter(|row| row.t_s > 1.0).filter_map(|row| row.dl_prbs);
        let (least, most) = shares.fold((f64::MAX, 0.0f64), |(least, most), one| (least.min(one), most.max(one)));
        assert!(least > 0.97 && most < 1.01, "{least} {most}");
        (flow(&tables, "f").goodput_mbps, utilisation, cells.into_iter().collect::<Vec<_>>().join(" "))
    };
    let second = "secondary = { frequency_mhz = 3600, bandwidth_mhz = 20 }";
    let (one, busy, cells) = download("", "");
    assert!(busy > 0.99 && busy <= 1.0 && cells == "cell-1", "{busy} {cells}");
    let (both, busy, cells) = download(second, "");
    // 40 MHz of 30 kHz have 106 resource blocks, 20 MHz have 51.
    near("goodput", both / one, 157.0 / 106.0, 0.01);
    assert!(busy > 0.99 && busy <= 1.0 && cells == "cell-1 cell-1/2", "{busy} {cells}");
    let (alone, busy, cells) = download(second, "carriers = 1");
    assert!(alone == one && busy > 0.99 && cells == "cell-1", "{alone} {one} {busy} {cells}");
}

#[test]
fn the_shares_of_a_cells_ues_add_up_to_its_load_whichever_carriers_they_receive() {
    let tables = run(&format!(
        "duration = \"2 s\"\nrecord = {{ samples = \"100 ms\" }}\n{BUFFERS}\n[nr]\nbandwidth_mhz = 40\n\
         secondary = {{ frequency_mhz = 3600, bandwidth_mhz = 20 }}\n[[nr.ues]]\nname = \"one\"\ncarriers = 1\n\
         channel = {{ kind = \"fixed\", loss_db = 70 }}\n[[nr.ues]]\nname = \"both\"\n\
         channel = {{ kind = \"fixed\", loss_db = 70 }}\n[[flows]]\nname = \"f\"\nto = \"*\"\n"
    ));
    let mut moments: std::collections::BTreeMap<u64, [f64; 2]> = Default::default();
    for row in tables.radio.iter().filter(|row| row.t_s > 1.0) {
        let [own, cell] = moments.entry(row.t_s.to_bits()).or_default();
        *own += row.dl_prbs.expect("a simulation knows it");
        *cell += row.dl_cell_prbs.expect("a simulation knows it");
    }
    // Shares of other carriers do not add up.
    assert!(moments.len() == 10 && moments.values().all(|[own, _]| *own > 1.1), "{moments:?}");
    assert!(moments.values().all(|[_, cell]| *cell > 0.97 && *cell < 1.01), "{moments:?}");
}

#[test]
fn a_configured_grant_takes_the_request_out_of_the_uplinks_delay() {
    let delay = |mac: &str| {
        let tables = run(&format!(
            "duration = \"20 s\"\n[nr]\nmac = {{ {mac} }}\n[[nr.ues]]\nname = \"ue\"\n\
             channel = {{ kind = \"fixed\", loss_db = 80 }}\n[[flows]]\nname = \"f\"\nfrom = \"ue\"\nto = \"server\"\n\
             traffic = {{ kind = \"cbr\", rate = \"9 kbit/s\", packet = \"100 B\" }}\n"
        ));
        let requests: u64 = tables.ues.iter().map(|row| row.scheduling_requests).sum();
        (flow(&tables, "f").owd_p50_ms.expect("packets arrived"), requests)
    };
    // Each 2.5 ms: 1.25 ms on average, the slot, and 100 us to decode it in.
    let (configured, none) = delay("configured_grant = { period = \"2.5 ms\" }");
    near("with a grant", configured, 1.25 + 0.5 + 0.1, 0.15);
    let (requested, all) = delay("");
    assert!(none == 0 && all > 150 && requested > configured + 3.0, "{configured} {requested} {all}");
}

/// The goodput in Mbit/s of bulk transfers of UEs `u` and `v`, halfway between two cells, that begin at once.
fn between_two_cells(keys: &str, ends: impl Fn(&str) -> String) -> [f64; 2] {
    let ue = |name: &str, x: u32| {
        format!(
            "[[nr.ues]]\nname = \"{name}\"\nchannel = {{ kind = \"umi\", sight = \"los\", shadowing = false }}\n\
             mobility = {{ kind = \"still\", position = [{x}, 0, 1.5] }}\n"
        )
    };
    let flow_of = |name: &str| format!("[[flows]]\nname = \"{name}\"\n{}\n", ends(name));
    let tables = run(&format!(
        "duration = \"4 s\"\n[nr]\n{keys}\ncells = [{{ name = \"a\", position = [0, 0, 10] }},\n\
         {{ name = \"b\", position = [200, 0, 10] }}]\n{}{}{}{}",
        ue("u", 95),
        ue("v", 105),
        flow_of("u"),
        flow_of("v")
    ));
    ["u", "v"].map(|name| flow(&tables, name).goodput_mbps)
}

#[test]
fn cells_whose_few_busy_blocks_begin_in_the_same_slots_do_not_block_each_other() {
    for keys in ["", "duplex = \"flexible\"", "numerology = 3\nfrequency_mhz = 28000\nbandwidth_mhz = 100"] {
        let up = between_two_cells(keys, |ue| format!("from = \"{ue}\"\nto = \"server\""));
        let down = between_two_cells(keys, |ue| format!("to = \"{ue}\""));
        assert!(up.iter().all(|mbps| *mbps > 2.0) && down.iter().all(|mbps| *mbps > 10.0), "{keys}: {up:?} {down:?}");
    }
}

#[test]
fn an_uplink_at_its_power_limit_has_less_on_a_weaker_link_but_not_nothing() {
    for (technology, keys, losses, least) in [
        ("nr", "", [130, 133, 136, 138], 0.002),
        ("nr", "duplex = \"flexible\"", [130, 133, 136, 138], 0.02),
        ("lte", "", [136, 140, 142, 144], 0.005),
    ] {
        let goodput = losses.map(|loss_db| {
            let tables = run(&format!(
                "duration = \"20 s\"\n[{technology}]\n{keys}\ncells = [{{ name = \"mast\", power_dbm = 56 }}]\n\
                 [[{technology}.ues]]\nname = \"ue\"\nchannel = {{ kind = \"fixed\", loss_db = {loss_db} }}\n\
                 [[flows]]\nname = \"f\"\nfrom = \"ue\"\nto = \"server\"\n"
            ));
            flow(&tables, "f").goodput_mbps
        });
        assert!(goodput.is_sorted_by(|a, b| a > b) && goodput[3] > least, "{technology} {keys}: {goodput:?}");
    }
}

#[test]
fn round_robin_serves_ues_for_which_an_equal_part_of_the_carrier_is_too_small() {
    for (network, kind, count, loss_db) in [
        ("bandwidth = \"1.4 MHz\"", "lte", 6, 138),
        ("bandwidth = \"1.4 MHz\"", "lte", 10, 135),
        ("bandwidth_mhz = 5\nnumerology = 0\nduplex = \"fdd\"", "nr", 25, 131),
        ("bandwidth_mhz = 20", "nr", 51, 125),
    ] {
        let goodputs = |scheduler: &str| {
            let tables = run(&format!(
                "duration = \"6 s\"\nwarmup = \"2 s\"\n[{kind}]\n{network}\ncells = [{{ scheduler = \"{scheduler}\" }}]\n\
                 [[{kind}.ues]]\nname = \"u\"\ncount = {count}\npower_dbm = 30\n\
                 channel = {{ kind = \"fixed\", loss_db = {loss_db} }}\n\
                 [[flows]]\nname = \"d\"\nfrom = \"server\"\nto = \"u-*\"\n\
                 traffic = {{ kind = \"cbr\", rate = \"200 kbit/s\", packet = \"300 B\" }}\n"
            ));
            tables.flows.iter().map(|row| row.goodput_mbps).collect::<Vec<_>>()
        };
        let [equal, fair] = ["round-robin", "proportional-fair"].map(goodputs);
        let [all, of_fair] = [&equal, &fair].map(|rates| rates.iter().sum::<f64>());
        println!("{kind}, {count} UEs at {loss_db} dB: {all:.2} of {of_fair:.2} Mbit/s");
        assert!(all > 0.5 * of_fair, "{kind}: {equal:?} {fair:?}");
        let least = equal.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(least > 0.5 * all / equal.len() as f64, "{kind}: {equal:?}");
    }
}

#[test]
fn a_carrier_whose_blocks_are_too_small_at_its_quality_carries_data_with_repetitions() {
    for (network, loss_db) in [
        ("resource_blocks = 1\nnumerology = 0\nduplex = \"fdd\"", 144),
        ("resource_blocks = 2\nnumerology = 0\nduplex = \"fdd\"\nmcs_table = \"low-rate\"", 144),
        ("resource_blocks = 6\nduplex = { kind = \"tdd\", pattern = \"SU\", downlink_symbols = 3 }", 134),
    ] {
        let tables = run(&format!(
            "duration = \"5 s\"\n[nr]\n{network}\n[[nr.ues]]\nname = \"u\"\npower_dbm = 30\n\
             channel = {{ kind = \"fixed\", loss_db = {loss_db} }}\n\
             [[flows]]\nname = \"d\"\nfrom = \"server\"\nto = \"u\"\n\
             traffic = {{ kind = \"cbr\", rate = \"5 kbit/s\", packet = \"100 B\" }}\n"
        ));
        let goodput = flow(&tables, "d").goodput_mbps;
        println!("{network:?}: {goodput}");
        assert!(goodput > 0.003, "{network:?}: {goodput}");
    }
}
