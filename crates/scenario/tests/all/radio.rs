//! The table `[radio]`, and its older forms `[lte]` and `[nr]`.

use crate::common::load;
use insta::assert_snapshot;
use scenario::{Loaded, Scenario, Technology, builtin};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Keys of carriers, in the older table and in that of a technology.
pub(crate) const LTE: [&str; 5] = ["downlink_mhz", "uplink_mhz", "bandwidth", "secondary", "mac"];
pub(crate) const NR: [&str; 10] = [
    "frequency_mhz",
    "uplink_mhz",
    "bandwidth_mhz",
    "resource_blocks",
    "numerology",
    "duplex",
    "mcs_table",
    "uplink_mcs_table",
    "secondary",
    "mac",
];

/// Returns a file with `[radio]` for the older table, or with the older table for `[radio]`; `None` if it has neither.
fn other_form(text: &str) -> Option<String> {
    let mut file: Table = text.parse().expect("TOML");
    let take = |file: &mut Table, key: &str| match file.remove(key) {
        Some(Value::Table(table)) => Some(table),
        _ => None,
    };
    if let Some(mut radio) = take(&mut file, "radio") {
        let mut carriers = take(&mut radio, "carriers").unwrap_or_default();
        // A file without carriers adds to one that has them, as either older table does.
        let is_nr = carriers.contains_key("nr") || radio.contains_key("buildings");
        let (table, link) = if is_nr { ("nr", "n3") } else { ("lte", "s1") };
        radio.extend(take(&mut carriers, table).unwrap_or_default());
        radio.extend(carriers);
        for what in ["delay", "rate"] {
            let value = radio.remove(&format!("core_{what}"));
            radio.extend(value.map(|value| (format!("{link}_{what}"), value)));
        }
        file.insert(table.to_owned(), Value::Table(radio));
    } else {
        let (table, own, link) = if file.contains_key("nr") { ("nr", &NR[..], "n3") } else { ("lte", &LTE[..], "s1") };
        let older = take(&mut file, table)?;
        let (mut radio, mut carriers, mut of_carriers) = (Table::new(), Table::new(), Table::new());
        for (key, value) in older {
            match key.strip_prefix(link) {
                Some(what) => radio.insert(format!("core{what}"), value),
                None if key == "lte" => carriers.insert(key, value),
                None if own.contains(&key.as_str()) => of_carriers.insert(key, value),
                None => radio.insert(key, value),
            };
        }
        carriers.insert(table.to_owned(), Value::Table(of_carriers));
        radio.insert("carriers".to_owned(), Value::Table(carriers));
        file.insert("radio".to_owned(), Value::Table(radio));
    }
    Some(toml::to_string(&file).expect("TOML"))
}

/// The points by their labels: writing a file again changes the order of its keys, and so that of its points.
fn points(loaded: &Loaded) -> BTreeMap<String, &Scenario> {
    loaded.points().iter().map(|point| (format!("{:?}", point.label), &point.scenario)).collect()
}

fn toml_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().expect("a folder of the repository") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            toml_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            found.push(path);
        }
    }
}

#[test]
fn each_file_is_the_same_scenario_in_either_form() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["crates/scenario/builtin", "crates/ranway/starters", "docs/samples", "examples", "papers", "peers"] {
        toml_files(&root.join(folder), &mut files);
    }
    let read = |path: &str| std::fs::read_to_string(path);
    let mut compared = 0;
    for file in files {
        let path = file.to_str().expect("UTF-8");
        let text = read(path).expect("it can be read");
        let Some(other) = text.parse::<Table>().ok().and_then(|_| other_form(&text)) else { continue };
        let Ok(loaded) = Scenario::load_for_emulation(path, &[], &read) else {
            // Only a part of a scenario.
            continue;
        };
        let here = |asked: &str| if asked == path { Ok(other.clone()) } else { read(asked) };
        let again = Scenario::load_for_emulation(path, &[], &here).unwrap_or_else(|e| panic!("{e}\n{other}"));
        assert!(points(&again) == points(&loaded), "{path} differs from\n{other}");
        // Whatever the forms of the files that it includes are.
        let all = |asked: &str| {
            let text = read(asked)?;
            Ok(if asked.ends_with(".toml") { other_form(&text).unwrap_or(text) } else { text })
        };
        let again = Scenario::load_for_emulation(path, &[], &all).unwrap_or_else(|e| panic!("{path}: {e}"));
        assert!(points(&again) == points(&loaded), "{path} differs if all files are in the other form");
        compared += 1;
    }
    assert!(compared > 30, "{compared} files");
}

#[test]
fn each_preset_is_the_same_network_in_either_form() {
    for preset in builtin::presets() {
        let Some(other) = other_form(preset.text) else { continue };
        let file = format!("duration = \"1 s\"\ninclude = [\"preset:{}\"]\n[[flows]]\n", preset.name);
        let include = "duration = \"1 s\"\ninclude = [\"other\"]\n[[flows]]\n";
        let [one, two] = [load(&[("s", &file)], &[]), load(&[("s", include), ("other", &other)], &[])];
        assert!(points(&one.unwrap()) == points(&two.unwrap()), "{}:\n{other}", preset.name);
    }
}

const START: &str = "duration = \"1 s\"\nflows = [{}]\n";

fn one(text: &str, set: &[&str]) -> Result<Scenario, String> {
    Ok(load(&[("s", &format!("{START}{text}"))], set)?.points()[0].scenario.clone())
}

#[test]
fn a_network_of_both_technologies_has_carriers_of_both() {
    let text = "[radio]\ncarriers = { lte = { bandwidth = \"5 MHz\" }, nr = {} }\ncells = [{}, { rat = \"lte\" }]\n\
                ues = [{ name = \"ue\" }]\n";
    let scenario = one(text, &[]).unwrap();
    let radio = scenario.radio.as_ref().unwrap();
    assert_eq!(radio.core_link(), "n3");
    let technologies: Vec<Technology> = radio.cells.iter().map(|cell| radio.technology(cell)).collect();
    assert_eq!(technologies, [Technology::Nr, Technology::Lte]);
    let older = "[nr]\nlte = { bandwidth = \"5 MHz\" }\ncells = [{}, { rat = \"lte\" }]\nues = [{ name = \"ue\" }]\n";
    assert_eq!(one(older, &[]), Ok(scenario));
}

#[test]
fn keys_are_set_under_the_names_of_either_form() {
    let older = "[lte]\nues = [{ name = \"ue\" }]\ns1_delay = \"1 ms\"\n";
    let newer = "[radio]\ncarriers = { lte = {} }\nues = [{ name = \"ue\" }]\ncore_delay = \"1 ms\"\n";
    for (short, long) in [
        ("lte.bandwidth=5 MHz", "radio.carriers.lte.bandwidth=5 MHz"),
        ("lte.mac.drx.cycle=40 ms", "radio.carriers.lte.mac.drx.cycle=40 ms"),
        ("lte.s1_delay=3 ms", "radio.core_delay=3 ms"),
        ("lte.ues.ue.count=3", "radio.ues.ue.count=3"),
        ("lte.ues[0].channel=umi", "radio.ues[0].channel=umi"),
        ("lte={ ues = [{ name = \"ue\" }] }", "radio={ carriers = { lte = {} }, ues = [{ name = \"ue\" }] }"),
    ] {
        let wanted = one(older, &[short]).unwrap_or_else(|e| panic!("{e}"));
        assert_ne!(Ok(&wanted), one(older, &[]).as_ref(), "{short}");
        for (text, set) in [(older, long), (newer, short), (newer, long)] {
            assert_eq!(one(text, &[set]).as_ref(), Ok(&wanted), "{set}\n{text}");
        }
    }
    let whole = ["lte={ ues = [{ name = \"ue\" }] }", "lte.ues.ue.count=2"];
    assert_eq!(one(older, &whole).unwrap().radio.unwrap().ues.len(), 2);
}

#[test]
fn keys_are_swept_under_the_names_of_either_form() {
    let older = "[lte]\nues = [{ name = \"ue\" }]\n";
    let newer = "[radio]\ncarriers = { lte = {} }\nues = [{ name = \"ue\" }]\n";
    let load = |network: &str, sweep: &str, set: &[&str]| {
        let loaded =
            load(&[("s", &format!("{START}{network}[sweep]\n{sweep}\n"))], set).unwrap_or_else(|e| panic!("{e}"));
        loaded.points().iter().map(|point| point.scenario.clone()).collect::<Vec<_>>()
    };
    let (short, long) = ("lte.ues.ue.count = [1, 2]", "\"radio.ues.*.count\" = [1, 2]");
    let wanted = load(older, short, &[]);
    assert_eq!(wanted.iter().map(|point| point.radio.as_ref().unwrap().ues.len()).collect::<Vec<_>>(), [1, 2]);
    for (network, sweep) in [(older, long), (newer, short), (newer, long)] {
        assert_eq!(load(network, sweep, &[]), wanted, "{sweep}\n{network}");
    }
    for (sweep, set) in [(short, "radio.ues.ue.count=2"), ("radio.ues.ue.count = [1, 2, 3]", "lte.ues[ue].count=2")] {
        assert_eq!(load(newer, sweep, &[set]), wanted[1..], "{set} replaces {sweep}");
    }
}

#[test]
fn a_table_may_be_a_parameter() {
    let text = "lte = \"${network}\"\n[parameters]\nnetwork = { s1_delay = \"2 ms\", ues = [{ name = \"ue\" }] }\n";
    let radio = one(text, &[]).unwrap().radio.unwrap();
    assert_eq!((radio.core_delay.to_string(), radio.ues.len()), ("2 ms".to_owned(), 1));
    assert_snapshot!(one("lte = \"${network}\"\nparameters = { network = 1 }", &[]).unwrap_err(), @"s:4:26: lte: expected a table, found the number 1");
    assert_snapshot!(one("lte = 1", &[]).unwrap_err(), @"s:3:7: lte: expected a table, found the number 1");
}

#[test]
fn faults_have_the_keys_and_the_positions_of_the_file() {
    let mut told = String::new();
    for text in [
        "[lte]\nues = [{ name = \"u\" }]\nbandwidth = \"7 MHz\"",
        "[radio]\nues = [{ name = \"u\" }]\ncarriers.lte.bandwidth = \"7 MHz\"",
        "[lte]\nues = [{ name = \"u\" }]\ns1_delay = \"2000 h\"\nmac = { sr_period = 3 }",
        "[radio]\ncarriers = { lte = { mac = { sr_period = 3 } } }\nues = [{ name = \"u\" }]\ncore_delay = \"2000 h\"",
        "[nr]\nues = [{ name = \"u\" }]\nn3_rate = 1\nlte = { mac = { sr_period = 3 } }",
        "[nr]\nues = [{ name = \"u\" }]\nnumerology = 9\nlte = { mac = { sr_period = 3 } }",
        "[lte]\nbandwidth = \"5 MHz\"",
        "[radio]\ncarriers.lte = {}",
        "[radio]\nues = [{ name = \"u\" }]",
        "[radio]\nues = [{ name = \"u\" }]\ncarriers = {}",
        "[radio]\nues = [{ name = \"u\" }]\ncarriers = { lt = {} }",
        "[radio]\nues = [{ name = \"u\" }]\ncarriers = { umts = {} }",
        "[radio]\nues = [{ name = \"u\" }]\ncarrier = { lte = {} }",
        "[lte]\nues = [{ name = \"u\" }]\ns1_dely = \"1 ms\"",
        "[nr]\nues = [{ name = \"u\" }]\nbanwidth_mhz = 20",
        "[lte]\nues = [{ name = \"u\" }]\nbuildings = []",
        "[radio]\nues = [{ name = \"u\" }]\ncarriers.nr = {}\ncells = [{ rat = \"lte\" }]",
        "[nr]\nues = [{ name = \"u\" }]\ncells = [{ rat = \"lte\" }]",
        "[radio]\nues = [{ name = \"u\", channel = { kind = \"umi\", sight = \"buildings\" } }]\ncarriers.lte = {}",
        "[lte]\nues = [{ name = \"u\" }]\n[dumbbell]\nrate = \"1 Mbit/s\"\nrtt = \"1 ms\"",
        "[radio]\ncarriers.lte = {}\nues = [{ name = \"u\" }]\n[dumbbell]\nrate = \"1 Mbit/s\"\nrtt = \"1 ms\"",
    ] {
        told += &format!("{}\n", one(text, &[]).unwrap_err());
    }
    assert_snapshot!(told, @r#"
s:5:13: lte.bandwidth: unknown value `7 MHz`; did you mean `3 MHz`?
s:5:26: radio.carriers.lte.bandwidth: unknown value `7 MHz`; did you mean `3 MHz`?
s:5:12: lte.s1_delay: 2000 h is out of range: must be from 0 ns to 1000 h
s:6:21: lte.mac.sr_period: 3 is not one of 1, 2, 5, 10, 20, 40, 80
s:6:14: radio.core_delay: 2000 h is out of range: must be from 0 ns to 1000 h
s:4:42: radio.carriers.lte.mac.sr_period: 3 is not one of 1, 2, 5, 10, 20, 40, 80
s:5:11: nr.n3_rate: expected a string with a unit, such as "35 Mbit/s", found the number 1
s:5:14: nr.numerology: 9 is out of range: must be from 0 to 4
s:6:29: nr.lte.mac.sr_period: 3 is not one of 1, 2, 5, 10, 20, 40, 80
s:3:1: lte: missing key `ues`
s:3:1: radio: missing key `ues`
s:3:1: radio: missing key `carriers`
s:5:12: radio.carriers: at least one technology is required: `lte = {}` or `nr = {}`
s:5:14: radio.carriers.lt: unknown key; did you mean `lte`?
s:5:14: radio.carriers.umts: unknown key; valid keys are lte, nr
s:5:1: radio.carrier: unknown key; did you mean `carriers`?
s:5:1: lte.s1_dely: unknown key; did you mean `s1_delay`?
s:5:1: nr.banwidth_mhz: unknown key; did you mean `bandwidth_mhz`?
s:5:1: lte.buildings: unknown key; valid keys are servers, server_delay, server_rate, server_loss, pep, pep_report_loss, pep_at, proxy, s1_delay, s1_rate, cells, ues, power_control, handover, downlink_mhz, uplink_mhz, bandwidth, secondary, mac
s:6:18: radio.cells[0].rat: an LTE cell in a 5G network needs its carriers: add `[radio.carriers.lte]`
s:5:18: nr.cells[0].rat: an LTE cell in a 5G network needs its carriers: add `[nr.lte]`
s:4:56: radio.ues[0].channel.sight: there are no buildings: add `[[radio.buildings]]`
s:3:1: lte: a scenario has either `[dumbbell]` or `[lte]`, not both
s:3:1: radio: a scenario has either `[dumbbell]` or `[radio]`, not both
"#);
}

#[test]
fn a_file_has_one_form() {
    let ues = "ues = [{ name = \"u\" }]\n";
    let (lte, nr) = (format!("[lte]\n{ues}"), format!("[nr]\n{ues}"));
    let radio = |carriers: &str| format!("[radio]\n{ues}carriers = {carriers}\n");
    let include = "include = [\"other\"]\n";
    let mut told = String::new();
    for (text, other, set) in [
        (format!("{lte}{}", radio("{ lte = {} }")), "", ""),
        (format!("{}{nr}", radio("{ nr = {} }")), "", ""),
        (format!("{lte}{nr}"), "", ""),
        (format!("{include}{lte}"), nr.as_str(), ""),
        (format!("{include}{nr}"), lte.as_str(), ""),
        (format!("{include}{lte}"), &radio("{ nr = {} }"), ""),
        (format!("{include}{nr}"), &radio("{ lte = {} }"), ""),
        (lte.clone(), "", "nr.numerology=1"),
        (nr.clone(), "", "lte.bandwidth=5 MHz"),
        (radio("{ lte = {} }"), "", "nr.numerology=1"),
        (radio("{ nr = {} }"), "", "lte.bandwidth=5 MHz"),
    ] {
        let set: Vec<&str> = Some(set).into_iter().filter(|set| !set.is_empty()).collect();
        let told_here = load(&[("s", &format!("{START}{text}")), ("other", other)], &set).unwrap_err();
        told += &format!("{told_here}\n");
    }
    assert_snapshot!(told, @r#"
s:3:2: lte: `[lte]` is the older form of `[radio]`, and a file has one of them: keep `[radio]`, and move the keys of `[lte]` there
s:6:2: nr: `[nr]` is the older form of `[radio]`, and a file has one of them: keep `[radio]`, and move the keys of `[nr]` there
s:5:2: nr: a scenario has either `[lte]` or `[nr]`, not both
other:1:2: nr: a scenario has either `[lte]` or `[nr]`, not both
s:4:2: nr: a scenario has either `[lte]` or `[nr]`, not both
s:4:2: lte: `[lte]` is for networks of LTE cells alone, and this one has NR cells; use the keys of `radio`
s:4:2: nr: `[nr]` is for networks with NR cells, and this one has LTE cells alone; use the keys of `radio`
--set nr.numerology=1: nr: a scenario has either `[lte]` or `[nr]`, not both
s:3:2: nr: a scenario has either `[lte]` or `[nr]`, not both
--set nr.numerology=1: nr: `[nr]` is for networks with NR cells, and this one has LTE cells alone; use the keys of `radio`
--set lte.bandwidth=5 MHz: lte: `[lte]` is for networks of LTE cells alone, and this one has NR cells; use the keys of `radio`
"#);
}

#[test]
fn a_key_is_swept_once() {
    let text = "[lte]\nues = [{ name = \"u\" }]\n[sweep]\n\"lte.bandwidth\" = [\"5 MHz\"]\n\"radio.carriers.lte.bandwidth\" = [\"10 MHz\"]";
    assert_snapshot!(one(text, &[]).unwrap_err(), @"s:7:35: sweep.radio.carriers.lte.bandwidth: `lte.bandwidth` is the same key, and is swept too");
}

#[test]
fn files_of_either_form_include_one_another() {
    let base = "[lte]\nbandwidth = \"5 MHz\"\nues = [{ name = \"u\" }]\nmac = { ideal = true }\n";
    let newer =
        "[radio]\ncarriers.lte.bandwidth = \"5 MHz\"\nues = [{ name = \"u\" }]\ncarriers.lte.mac = { ideal = true }\n";
    let over = ["[lte]\nmac.cqi = \"worst-group\"\n", "[radio.carriers.lte.mac]\ncqi = \"worst-group\"\n"];
    let load = |base: &str, over: &str| {
        let text = format!("{START}include = [\"base\"]\n{over}");
        let loaded = load(&[("s", &text), ("base", base)], &[]).unwrap_or_else(|e: String| panic!("{e}"));
        loaded.points()[0].scenario.clone()
    };
    let wanted = load(base, over[0]);
    assert!(wanted.radio.as_ref().unwrap().carriers.lte.as_ref().unwrap().mac.ideal);
    for (base, over) in [(base, over[1]), (newer, over[0]), (newer, over[1])] {
        assert_eq!(load(base, over), wanted);
    }
}

#[test]
fn a_table_for_which_a_parameter_stands_is_one_value() {
    let network = "[parameters]\nnet = { bandwidth = \"20 MHz\", ues = [{ name = \"u\" }] }\n";
    let text = format!("lte = \"${{net}}\"\n{network}");
    for set in ["lte.bandwidth=5 MHz", "radio.core_delay=5 ms", "radio .core_delay=5 ms"] {
        let told = one(&text, &[set]).unwrap_err();
        assert!(told.contains("a parameter stands for all of `lte`; set its keys in `[parameters]`"), "{told}");
    }
    assert!(one(&text, &["radio={ ues = [{ name = \"u\" }], carriers = { lte = {} } }"]).is_ok());
    let swept = format!("{text}[sweep]\n\"lte.bandwidth\" = [\"5 MHz\"]\n");
    assert!(one(&swept, &[]).unwrap_err().contains("a parameter stands for all of `lte`"));
    let plain = one(&text, &[]).unwrap();
    for base in ["[lte]\ns1_delay = \"3 ms\"\n", "[radio]\ncore_delay = \"3 ms\"\n"] {
        let text = format!("{START}include = [\"base\"]\n{text}");
        let loaded = load(&[("s", &text), ("base", base)], &[]).unwrap();
        assert_eq!(loaded.points()[0].scenario, plain, "nothing of the other network is left");
    }
}

#[test]
fn keys_of_lte_cells_in_a_network_of_both_have_either_form() {
    let text = "[nr]\nlte = {}\nues = [{ name = \"u\" }]\ncells = [{ rat = \"lte\" }]\n";
    let [older, newer] =
        ["nr.lte.bandwidth=5 MHz", "radio.carriers.lte.bandwidth=5 MHz"].map(|set| one(text, &[set]).unwrap());
    assert_eq!(older, newer);
}

#[test]
fn a_file_sweeps_instead_of_those_it_includes_in_either_form() {
    let base =
        "[radio]\nues = [{ name = \"u\" }]\ncarriers.lte = {}\n[sweep]\n\"radio.core_delay\" = [\"1 ms\", \"2 ms\"]\n";
    let text = format!("include = [\"base\"]\n{START}[sweep]\nlte.s1_delay = [\"3 ms\"]\n");
    let loaded = load(&[("s", &text), ("base", base)], &[]).unwrap();
    assert_eq!(loaded.points().len(), 1);
    let loaded = load(&[("s", &format!("{START}{base}"))], &["sweep.lte.s1_delay=[\"3 ms\"]"]).unwrap();
    assert_eq!(loaded.points().len(), 1);
}
