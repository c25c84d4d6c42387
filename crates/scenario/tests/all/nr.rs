//! Networks of NR cells: what they expand to, and what each wrong value is told.

use aqm::drop_tail;
use scenario::{Duplex, McsTable, Queue, Scenario, Technology};
use units::Bytes;

fn load(nr: &str) -> Result<Scenario, String> {
    let text = format!("duration = \"1 s\"\n{nr}\n[[flows]]\ncc = \"cubic\"\n");
    read(&text)
}

fn read(text: &str) -> Result<Scenario, String> {
    let loaded = crate::common::load(&[("s", text)], &[])?;
    Ok(loaded.points()[0].scenario.clone())
}

const UE: &str = "[[nr.ues]]\nname = \"ue\"\n";

#[test]
fn a_network_has_the_nodes_links_and_hops_of_an_lte_network_and_the_link_n3() {
    let scenario = load(&format!("[nr]\nn3_delay = \"2 ms\"\n{UE}count = 2")).unwrap();
    let links: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(links, ["internet-server", "internet-server-reverse", "n3", "n3-reverse"]);
    assert_eq!(scenario.flows[0].route, ["internet-server", "n3", "radio-ue-1"]);
    assert_eq!(scenario::hosts(&scenario), ["server", "ue-1", "ue-2"]);
    let nr = scenario.radio.as_ref().and_then(|radio| radio.carriers.nr.as_ref()).unwrap();
    assert_eq!((nr.carrier().blocks(), nr.mcs_table), (Some(273), McsTable::Qam64));
    assert!(matches!(&nr.duplex, Duplex::Tdd(tdd) if tdd.slots() == Some([3, 1, 1])));
}

#[test]
fn the_queue_of_a_bearer_follows_the_buffer_unless_it_is_set() {
    let queue = |bearer: &str| {
        let scenario = load(&format!("[nr]\n{UE}{bearer}")).unwrap();
        let bearer = &scenario.radio.as_ref().unwrap().ues[0].bearer;
        assert_eq!(bearer.queue.is_none(), bearer.queue(Technology::Lte) != bearer.queue(Technology::Nr), "{bearer:?}");
        (bearer.queue(Technology::Nr), bearer.nr.buffer)
    };
    let of = |bytes: u64| {
        Queue::DropTail(drop_tail::Config { bytes: Some(Bytes::new(bytes)), ..drop_tail::Config::default() })
    };
    assert_eq!(queue(""), (of(6028 * 1024), Bytes::new(6028 * 1024)));
    assert_eq!(queue("bearer = { nr = { buffer = \"2 MB\" } }"), (of(2_000_000), Bytes::new(2_000_000)));
    let set = "bearer = { queue = { kind = \"drop-tail\", bytes = \"1 MB\" } }";
    assert_eq!(queue(set), (of(1_000_000), Bytes::new(6028 * 1024)));
}

#[test]
fn scheduling_requests_have_a_period_that_fits_the_pattern_unless_it_is_set() {
    let slots = |nr: &str| {
        let scenario = load(&format!("[nr]\n{nr}\n{UE}")).unwrap();
        let nr = scenario.radio.and_then(|radio| radio.carriers.nr).unwrap();
        nr.mac.sr_slots(&nr.cell())
    };
    let tdd = |numerology: u8, pattern: &str| {
        slots(&format!(
            "numerology = {numerology}\nbandwidth_mhz = 20\nduplex = {{ kind = \"tdd\", pattern = \"{pattern}\" }}"
        ))
    };
    assert_eq!(slots("duplex = \"fdd\""), 10);
    // 2.5, 5 and 10 ms.
    assert_eq!([tdd(1, "DDDSU"), tdd(1, "DDDDDDDSUU"), tdd(0, "DDDDDDDSUU")], [10, 10, 10]);
    // 2, 3 and 4 ms: 4, 6 and 4 ms.
    assert_eq!([tdd(0, "DU"), tdd(1, "DDSU"), tdd(0, "DSU"), tdd(1, "DDDDSU"), tdd(0, "DDDU")], [4, 8, 6, 12, 4]);
    assert_eq!(slots("mac = { sr_period = \"6 ms\" }"), 12);
}

#[test]
fn a_loaded_network_is_read_again_as_it_is() {
    let text = format!(
        "[nr]\nduplex = \"fdd\"\nuplink_mhz = 3400\nmac = {{ drx = {{ short_cycle = \"20 ms\" }} }}\nsecondary = {{ frequency_mhz = 3700 }}\nlte = {{ bandwidth = \"5 MHz\", secondary = {{ downlink_mhz = 1840 }} }}\ncells = [{{}}, {{ rat = \"lte\" }}]\n\
         buildings = [{{ x = [1, 2], y = [3, 4], height = 5 }}]\n{UE}layers = 4\n\
         bearer = {{ nr = {{ rlc = \"um\", buffer = \"1 MB\" }} }}\nblockage = \"indoor\"\ncar = \"metallised\"\n\
         array = {{ rows = 2 }}\nfading = {{ kind = \"tdl\", profile = \"c\", delay_spread = \"300 ns\" }}"
    );
    let scenario = load(&text).unwrap();
    let radio = scenario.radio.as_ref().unwrap();
    let technologies: Vec<Technology> = radio.cells.iter().map(|cell| radio.technology(cell)).collect();
    assert_eq!(technologies, [Technology::Nr, Technology::Lte]);
    let again = toml::to_string(&scenario).unwrap();
    assert_eq!(read(&again).unwrap(), scenario);
}

#[test]
fn each_wrong_value_is_told_what_would_be_valid() {
    let mut wrong = String::new();
    for (keys, ue, message) in [
        (
            "frequency_mhz = 10000",
            "",
            "nr.frequency_mhz: 10000 is out of range: must be 410 to 7125 (FR1) or 24250 to 52600 (FR2)",
        ),
        (
            "mac = { configured_grant = { period = \"7 ms\" } }",
            "",
            "nr.mac.configured_grant.period: 7 ms is not one of 1, 2, 4, 5, 8, 10, 16, 20, 32,",
        ),
        (
            "mac = { configured_grant = { period = \"4 ms\" } }",
            "",
            "nr.mac.configured_grant.period: 4 ms, 8 slots, is not a multiple of the TDD pattern, 5 slots",
        ),
        (
            "duplex = \"flexible\"\nmac = { configured_grant = {} }",
            "",
            "nr.mac.configured_grant: flexible slots are divided by demand: use `fdd` or a TDD pattern",
        ),
        (
            "mac = { configured_grant = { resource_blocks = 137 } }",
            "",
            "nr.mac.configured_grant.resource_blocks: 137 is out of range: must be from 1 to 136",
        ),
        (
            "resource_blocks = 1\nmac = { configured_grant = { resource_blocks = 1 } }",
            "",
            "nr.mac.configured_grant: a carrier of one resource block has no room for repetitions",
        ),
        (
            "mac = { harq_processes = 4, configured_grant = { mcs = 28 } }",
            "",
            "nr.mac.configured_grant.processes: 4 is out of range: must be from 1 to 3",
        ),
        (
            "mac = { harq_processes = 1, configured_grant = { processes = 1 } }",
            "",
            "nr.mac.configured_grant.processes: one HARQ process is needed for other blocks: raise `harq_processes`",
        ),
        (
            "secondary = { frequency_mhz = 10000 }",
            "",
            "nr.secondary.frequency_mhz: 10000 is out of range: must be 410 to 7125 (FR1) or 24250 to 52600 (FR2)",
        ),
        (
            "secondary = { frequency_mhz = 3560, bandwidth_mhz = 40 }",
            "",
            "nr.secondary.frequency_mhz: 3560 overlaps the first carrier at 3500: they must be at least 70 MHz apart",
        ),
        (
            "secondary = { frequency_mhz = 3600, bandwidth_mhz = 7 }",
            "",
            "nr.secondary.bandwidth_mhz: 7 is not one of 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90, 100 (FR1, 30 kHz)",
        ),
        (
            "",
            "interference_fading = true",
            "nr.ues[0].interference_fading: interference fades as the UE's own link does",
        ),
        ("", "carriers = 3", "nr.ues[0].carriers: 3 is out of range: must be from 1 to 2"),
        ("", "carriers = 2", "nr.ues[0].carriers: the cells have one carrier: add `secondary`"),
        (
            "lte = { secondary = { downlink_mhz = 2125 } }",
            "",
            "nr.lte.secondary.downlink_mhz: 2125 overlaps the first carrier at 2120: they must be at least 10 MHz apart",
        ),
        (
            "bandwidth_mhz = 7",
            "",
            "nr.bandwidth_mhz: 7 is not one of 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90, 100 (FR1, 30 kHz)",
        ),
        (
            "numerology = 4\nduplex = \"fdd\"",
            "",
            "nr.bandwidth_mhz: FR1 has no carriers with subcarriers of 240 kHz; set `resource_blocks`",
        ),
        ("numerology = 5", "", "nr.numerology: 5 is out of range: must be from 0 to 4"),
        ("resource_blocks = 276", "", "nr.resource_blocks: 276 is out of range: must be from 1 to 275"),
        ("uplink_mhz = 3600", "", "only FDD has a carrier for each direction"),
        ("duplex = { kind = \"tdd\", pattern = \"DSDU\" }", "", "nr.duplex.pattern: `DSDU` is not a pattern"),
        ("duplex = { kind = \"tdd\", pattern = \"\" }", "", "nr.duplex.pattern: `` is not a pattern"),
        ("duplex = { kind = \"tdd\", pattern = \"DDDDDDU\" }", "", "7 slots take 3.5 ms with this numerology"),
        (
            "duplex = { kind = \"tdd\", pattern = \"DDDDD\" }",
            "",
            "nr.duplex.pattern: `DDDDD` carries no data up: it has no `U`, and an `S` would need uplink_symbols = 3, 1 of them for \
             control",
        ),
        ("duplex = { kind = \"tdd\", pattern = \"DDDDS\" }", "", "`DDDDS` carries no data up: "),
        (
            "duplex = { kind = \"tdd\", pattern = \"SUUUU\", downlink_symbols = 2 }",
            "",
            "an `S` would need downlink_symbols = 3, 1 of them for control",
        ),
        (
            "duplex = { kind = \"tdd\", pattern = \"SUUUU\", downlink_symbols = 3, uplink_symbols = 3 }\nmac = { dmrs_symbols = 3 }",
            "",
            "an `S` would need downlink_symbols = 5, 1 of them for control",
        ),
        ("duplex = { kind = \"tdd\", downlink_symbols = 13 }", "", "a special slot has 14 symbols, not 15"),
        ("uplink_mcs_table = \"1024qam\"", "", "1024QAM is for the downlink only"),
        (
            "mac = { cqi_period = \"1 ms\", cqi_delay = \"16 ms\" }",
            "",
            "nr.mac.cqi_delay: 16 ms is out of range: must be from 0 ns to 15 ms",
        ),
        ("mac = { k1 = 0 }", "", "nr.mac.k1: 0 is out of range: must be from 1 to 15"),
        ("mac = { overhead = 5 }", "", "nr.mac.overhead: 5 is not one of 0, 6, 12, 18"),
        ("mac = { decoding = \"1 ms\" }", "", "nr.mac.decoding: 1 ms is out of range: must be from 0 ns to 500 us"),
        ("mac = { harq_processes = 17 }", "", "nr.mac.harq_processes: 17 is out of range: must be from 1 to 16"),
        ("mac = { sr_period = \"1 us\" }", "", "nr.mac.sr_period: 1 us is out of range"),
        (
            "mac = { drx = { on_duration = \"9 ms\" } }",
            "",
            "nr.mac.drx.on_duration: 9 ms is not one of 1, 2, 3, 4, 5, 6, 8, 10,",
        ),
        (
            "duplex = \"fdd\"\nmac = { drx = { on_duration = \"100 us\" } }",
            "",
            "nr.mac.drx.on_duration: 100 us is not one of 1 to 31 times 1/32 ms, which is 31.25 us, or 1, 2, 3, 4, 5, 6, 8,",
        ),
        (
            "mac = { drx = { on_duration = \"2 ms\" } }",
            "",
            "nr.mac.drx.on_duration: 2 ms is shorter than the TDD pattern, 2.5 ms: it may have no downlink",
        ),
        (
            "mac = { drx = { inactivity = \"7 ms\" } }",
            "",
            "nr.mac.drx.inactivity: 7 ms is not one of 0, 1, 2, 3, 4, 5, 6, 8,",
        ),
        ("mac = { drx = { cycle = \"15 ms\" } }", "", "nr.mac.drx.cycle: 15 ms is not one of 10, 20, 32,"),
        ("mac = { drx = { cycle = \"10 ms\", on_duration = \"20 ms\" } }", "", "20 ms is longer than the cycle, 10 ms"),
        ("mac = { drx = { short_cycle = \"9 ms\" } }", "", "nr.mac.drx.short_cycle: 9 ms is not one of 2, 3, 4,"),
        (
            "mac = { drx = { short_cycle = \"7 ms\" } }",
            "",
            "nr.mac.drx.short_cycle: the cycle, 160 ms, is not a multiple of 7 ms",
        ),
        ("mac = { drx = { short_cycle = \"160 ms\" } }", "", "the cycle, 160 ms, is not a multiple of 160 ms"),
        (
            "mac = { drx = { short_cycles = 0 } }",
            "",
            "nr.mac.drx.short_cycles: 0 is out of range: must be from 1 to 16",
        ),
        (
            "mac = { drx = { offset = \"160 ms\" } }",
            "",
            "nr.mac.drx.offset: 160 ms must be whole milliseconds, and less than the cycle, 160 ms",
        ),
        ("mac = { drx = { offset = \"1.5 ms\" } }", "", "nr.mac.drx.offset: 1.5 ms must be whole milliseconds"),
        ("mac = { drx = { retransmission = 3 } }", "", "nr.mac.drx.retransmission: 3 is not one of 0, 1, 2, 4, 6, 8,"),
        (
            "mac = { drx = { uplink_retransmission = 321 } }",
            "",
            "nr.mac.drx.uplink_retransmission: 321 is not one of 0, 1,",
        ),
        ("mac = { drx = { harq_rtt = 57 } }", "", "nr.mac.drx.harq_rtt: 57 is out of range: must be from 0 to 56"),
        ("mac = { drx = { uplink_harq_rtt = 57 } }", "", "nr.mac.drx.uplink_harq_rtt: 57 is out of range"),
        ("cells = [{ rat = \"lte\" }]", "", "an LTE cell in a 5G network needs its carriers: add `[nr.lte]`"),
        ("cells = [{ array = { rows = 0 } }]", "", "nr.cells[0].array.rows: 0 is out of range: must be from 1 to 64"),
        ("cells = [{ sector_deg = 0, array = {} }]", "", "an array has a direction of its own"),
        (
            "buildings = [{ x = [2, 1], y = [3, 4], height = 5 }]",
            "",
            "nr.buildings[0].x: the second side, 1, must be greater than the first, 2",
        ),
        ("beam_sweep = \"1 ms\"", "", "nr.beam_sweep: 1 ms is out of range: must be from 5 ms to 160 ms"),
        (
            "",
            "mobility = { kind = \"disc\", centre = [0, 0, 1.5], radius_m = 0 }",
            "nr.ues[0].mobility.radius_m: 0 is out of range",
        ),
        (
            "",
            "mobility = { kind = \"random-waypoint\", x = [0, 9], y = [0, 9], kmh = [0, 5] }",
            "nr.ues[0].mobility.kmh[0]: 0 is out of range: must be from 0.1 to 1000",
        ),
        (
            "",
            "mobility = { kind = \"manhattan\", x = [9, 0], y = [0, 9], block_m = 3, kmh = [5, 5] }",
            "nr.ues[0].mobility.x: the second side, 0, must be greater than the first, 9",
        ),
        (
            "",
            "mobility = { kind = \"manhattan\", x = [0, 9], y = [0, 9], block_m = 0, kmh = [5, 5] }",
            "nr.ues[0].mobility.block_m: 0 is out of range: must be from 1 to 10000",
        ),
        (
            "cells = [{ layout = { kind = \"hexagonal\", sites = 200, spacing_m = 500 } }]",
            "",
            "nr.cells: more than 400 cells",
        ),
        (
            "cells = [{ layout = { kind = \"hexagonal\", sites = 7, spacing_m = 0 } }]",
            "",
            "nr.cells[0].layout.spacing_m: 0 is out of range: must be greater than 0",
        ),
        (
            "cells = [{ layout = { kind = \"hexagonal\", sites = 7, spacing_m = 9, sectors = 7 } }]",
            "",
            "nr.cells[0].layout.sectors: 7 is out of range: must be from 1 to 6",
        ),
        (
            "cells = [{ layout = { kind = \"row\", sites = 0, spacing_m = 9 } }]",
            "",
            "nr.cells[0].layout.sites: 0 is out of range: must be from 1 to 400",
        ),
        (
            "cells = [{ name = \"a-2\" }, { name = \"a\", layout = { kind = \"row\", sites = 3, spacing_m = 9 } }]",
            "",
            "nr.cells[1].name: duplicate cell `a-2`",
        ),
        (
            "cells = [{ layout = { kind = \"row\", sites = 2, spacing_m = 9 } }, { layout = { kind = \"row\", sites = 3, spacing_m = 9 } }]",
            "",
            "nr.cells[1].layout: duplicate cell `cell-1`, which `cells[0]` has too: give each layout a `name` of its own",
        ),
        (
            "cells = [{ position = [0, 0, 25] }]",
            "mobility = { kind = \"disc\", centre = [0, 0, 1.5], radius_m = 5001 }\nchannel = \"uma\"",
            "the nearest cell, `cell-1`, is 5001 m from (5001, 0)",
        ),
        ("", "layers = 5", "nr.ues[0].layers: 5 is out of range: must be from 1 to 4"),
        ("", "category = 4", "nr.ues[0].category: UEs have categories in LTE only: leave it out"),
        (
            "frequency_mhz = 700\nnumerology = 3\nresource_blocks = 275",
            "",
            "nr.resource_blocks: 275 resource blocks of 120 kHz are 396 MHz wide, and carriers of FR1 at most 100 MHz: must be \
             from 1 to 69",
        ),
        (
            "numerology = 2\nsecondary = { frequency_mhz = 4000, resource_blocks = 139 }",
            "",
            "nr.secondary.resource_blocks: 139 resource blocks of 60 kHz are 100.08 MHz wide, and carriers of FR1 at most \
             100 MHz: must be from 1 to 138",
        ),
        (
            "duplex = \"fdd\"\nuplink_mhz = 3510",
            "",
            "nr.uplink_mhz: 3510 overlaps the downlink carrier at 3500: they must be at least 100 MHz apart",
        ),
        (
            "duplex = \"fdd\"\nuplink_mhz = 3400\nsecondary = { frequency_mhz = 3350, bandwidth_mhz = 50 }",
            "",
            "nr.secondary.frequency_mhz: 3350 overlaps the uplink carrier at 3400: they must be at least 75 MHz apart",
        ),
        (
            "duplex = { kind = \"tdd\", downlink_symbols = 12, uplink_symbols = 2 }",
            "",
            "nr.duplex.uplink_symbols: the special slot has no symbol of guard between downlink and uplink: `downlink_symbols` \
             and `uplink_symbols` must be 13 together at most",
        ),
        (
            "resource_blocks = 1\nduplex = { kind = \"tdd\", pattern = \"DDDDS\", uplink_symbols = 3 }",
            "",
            "nr.resource_blocks: the uplink's largest block has 64 bits, and headers and data need 80: use at least 2 resource \
             blocks, or more uplink symbols",
        ),
        (
            "resource_blocks = 1\nduplex = { kind = \"tdd\", pattern = \"SUUUU\", downlink_symbols = 4 }\nmac = { control_symbols = 2 }",
            "",
            "nr.resource_blocks: the downlink's largest block has",
        ),
        ("mac = { control_symbols = 255 }", "", "nr.mac.control_symbols: 255 is out of range: must be from 1 to 3"),
        (
            "duplex = \"flexible\"\nmac = { control_symbols = 255 }",
            "",
            "nr.mac.control_symbols: 255 is out of range: must be from 1 to 3",
        ),
        ("mac = { dmrs_symbols = 255 }", "", "nr.mac.dmrs_symbols: 255 is out of range: must be from 0 to 4"),
        ("", "channel = { kind = \"umi\", sight = \"buildings\" }", "there are no buildings: add `[[nr.buildings]]`"),
        (
            "",
            "bearer = { nr = { rlc = { kind = \"am\", sn = 10 } } }",
            "nr.ues[0].bearer.nr.rlc.sn: 10 is not one of 12, 18",
        ),
        ("", "bearer = { nr = { pdcp_sn = 7 } }", "nr.ues[0].bearer.nr.pdcp_sn: 7 is not one of 12, 18"),
        (
            "",
            "bearer = { nr = { buffer = \"1 B\" } }",
            "nr.ues[0].bearer.nr.buffer: 1 B is too small for a packet of 1.5 kB: must be at least 1.5 kB",
        ),
        (
            "",
            "fading = { kind = \"tdl\", profile = \"a\", delay_spread = \"1 s\" }",
            "nr.ues[0].fading.delay_spread: 1 s is out of range",
        ),
    ] {
        let told = load(&format!("[nr]\n{keys}\n{UE}{ue}")).expect_err(keys);
        if !told.contains(message) || told.lines().count() > 1 {
            wrong += &format!("{keys}{ue}: {told}\n    not {message}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let both = load(&format!("[nr]\n{UE}[lte]\n[[lte.ues]]\nname = \"x\"")).unwrap_err();
    assert!(both.contains("a scenario has either `[lte]` or `[nr]`, not both"), "{both}");
    let foreign = load("[lte]\ncells = [{ rat = \"nr\" }]\n[[lte.ues]]\nname = \"x\"").unwrap_err();
    assert!(foreign.contains("an NR cell needs its carriers: add `[radio.carriers.nr]`"), "{foreign}");
}

#[test]
fn a_layout_stands_for_its_cells() {
    let text = "duration = \"1 s\"\n[nr]\nues = [{ name = \"a\", cell = \"h-7-3\" }, { name = \"b\", cell = \"cell-23\" }]\n\
                [[nr.cells]]\nname = \"h\"\nposition = [100, 0, 25]\nsector_deg = 350\n\
                layout = { kind = \"hexagonal\", sites = 7, spacing_m = 200 }\n\
                [[nr.cells]]\nname = \"r\"\narray = { azimuth_deg = 10 }\n\
                layout = { kind = \"row\", sites = 1, spacing_m = 50, bearing_deg = 90 }\n[[nr.cells]]\n[[flows]]\nto = \"a\"\n";
    let scenario = read(text).unwrap();
    let cells = &scenario.radio.as_ref().unwrap().cells;
    let names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(names.len(), 23);
    assert_eq!((names[0], names[20], names[21], names[22]), ("h-1-1", "h-7-3", "r-1", "cell-23"));
    assert!(cells.iter().all(|cell| cell.layout.is_none()));
    let at = |name: &str| cells.iter().find(|cell| cell.name == name).unwrap();
    assert_eq!(at("h-1-2").position, [100.0, 0.0, 25.0]);
    assert_eq!(
        [1, 2, 3].map(|sector| at(&format!("h-2-{sector}")).sector_deg),
        [Some(350.0), Some(110.0), Some(230.0)]
    );
    let [x, y, z] = at("h-3-1").position;
    assert!((x - 200.0).abs() < 1e-9 && (y - 200.0 * 0.75f64.sqrt()).abs() < 1e-9 && z == 25.0);
    assert_eq!(at("r-1").array.unwrap().azimuth_deg, 10.0);
}
