//! Whatever a file or an override says: an answer, no panic, and soon.

use scenario::{Point, Scenario, builtin, hosts, route};
use std::io;

/// The input is files, each after a line `=== NAME`, and then overrides, each after `=== --set`.
fn load(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut parts = text.split("=== ").map(|part| part.split_once('\n').unwrap_or((part, "")));
    let main = parts.next().map_or("", |(_, text)| text).to_owned();
    let (mut set, mut files) = (Vec::new(), vec![("main", main.as_str())]);
    for (name, text) in parts {
        if name == "--set" { set.push(text.trim_end().to_owned()) } else { files.push((name, text)) }
    }
    let read = |path: &str| {
        let file = files.iter().find(|(name, _)| *name == path);
        file.map(|(_, text)| (*text).to_owned()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    };
    match Scenario::load_for_emulation("main", &set, &read) {
        Ok(loaded) => {
            for Point { scenario, .. } in loaded.points() {
                assert!(scenario.flows.iter().all(|f| !f.route.is_empty() && !f.return_route.is_empty()));
                let hosts = hosts(scenario);
                for pair in hosts.windows(2).take(9) {
                    let route = route(scenario, &pair[0], &pair[1]);
                    assert!(route.is_none_or(|route| !route.is_empty()));
                }
            }
            let flows = loaded.points().iter().all(|point| !point.scenario.flows.is_empty());
            assert_eq!(Scenario::load("main", &set, &read).is_ok(), flows);
        }
        Err(e) => {
            assert!(!e.faults().is_empty());
            assert!(e.faults().iter().all(|f| !f.message.is_empty()));
        }
    }
}

#[test]
fn any_bytes_give_a_scenario_or_an_error() {
    bolero::check!().with_iterations(5_000).for_each(load);
}

#[test]
fn any_edit_of_a_good_scenario_gives_a_scenario_or_an_error() {
    bolero::check!().with_type::<(u8, Vec<(u16, u8, bool)>)>().with_iterations(3_000).for_each(|(which, edits)| {
        let texts: Vec<_> = builtin::list().iter().chain(builtin::presets()).map(|b| b.text).collect();
        let mut text = b"\n".to_vec();
        text.extend(texts[usize::from(*which) % texts.len()].bytes());
        for &(at, byte, insert) in edits.iter().take(8) {
            let at = usize::from(at) % text.len();
            // Mostly what TOML is made of.
            let byte = if byte < 128 { byte } else { b"[]{}=\"\n.,0"[usize::from(byte) % 10] };
            if insert { text.insert(at, byte) } else { text[at] = byte }
        }
        load(&text);
    });
}
