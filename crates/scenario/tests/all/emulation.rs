//! What real hosts need to know of a scenario: who they are, and which way their packets go.

use scenario::{Scenario, builtin, hosts, route};
use std::io;

fn no_files(_: &str) -> io::Result<String> {
    Err(io::ErrorKind::NotFound.into())
}

fn emulated(text: &str) -> Scenario {
    let loaded = Scenario::load_for_emulation("s", &[], &|path: &str| match path {
        "s" => Ok(format!("duration = \"9 s\"\n{text}")),
        _ => no_files(path),
    });
    loaded.unwrap_or_else(|e| panic!("{e}")).points()[0].scenario.clone()
}

fn says(text: &str) -> Vec<String> {
    hosts(&emulated(text))
}

const LTE: &str = "
[lte]
bandwidth = \"5 MHz\"
server_delay = \"10 ms\"
servers = [\"near\", \"far\"]
[[lte.ues]]
name = \"phone\"
count = 2
";

const LINE: &str = "
[[links]]
name = \"ab\"
from = \"a\"
to = \"b\"
[[links]]
name = \"bc\"
from = \"b\"
to = \"c\"
delay = \"1 ms\"
";

#[test]
fn routes_are_those_that_flows_take() {
    let mut compared = 0;
    for b in builtin::list() {
        let loaded = Scenario::load_for_emulation(b.name, &[], &no_files).unwrap();
        let scenario = &loaded.points()[0].scenario;
        for flow in &scenario.flows {
            assert_eq!(route(scenario, &flow.from, &flow.to), Some(flow.route.clone()), "{}", b.name);
            assert_eq!(route(scenario, &flow.to, &flow.from), Some(flow.return_route.clone()), "{}", b.name);
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn ues_reach_each_other_through_the_core() {
    let scenario = emulated(LTE);
    let route = |from, to| route(&scenario, from, to).map(|route| route.join(" "));
    assert_eq!(route("near", "phone-2").as_deref(), Some("internet-near s1 radio-phone-2"));
    assert_eq!(route("phone-2", "near").as_deref(), Some("radio-phone-2-reverse s1-reverse internet-near-reverse"));
    assert_eq!(route("phone-1", "phone-2").as_deref(), Some("radio-phone-1-reverse s1-reverse s1 radio-phone-2"));
    assert_eq!(route("near", "far").as_deref(), Some("internet-near internet-far-reverse"));
}

#[test]
fn there_is_no_route_to_oneself_or_to_nobody_or_where_no_link_leads() {
    let scenario = emulated("[[links]]\nname = \"ab\"\nfrom = \"a\"\nto = \"b\"\nduplex = false");
    assert_eq!(route(&scenario, "a", "b"), Some(vec!["ab".to_owned()]));
    for (from, to) in [("b", "a"), ("a", "a"), ("b", "b"), ("a", "x"), ("x", "a"), ("x", "x"), ("", "")] {
        assert_eq!(route(&scenario, from, to), None, "{from} {to}");
    }
}

#[test]
fn hosts_of_an_lte_network_are_a_server_and_the_ues() {
    assert_eq!(says(LTE), ["near", "phone-1", "phone-2"]);
    assert_eq!(says(&format!("{LTE}[[flows]]\nfrom = \"far\"\nto = \"phone-2\"")), ["near", "phone-1", "phone-2"]);
}

#[test]
fn hosts_of_another_network_are_where_its_flows_end() {
    let dumbbell =
        "[dumbbell]\nrate = \"1 Mbit/s\"\nrtt = \"9 ms\"\nsenders = [\"s\", \"t\"]\nreceivers = [\"r\", \"q\"]\n";
    let flows =
        "[[flows]]\nfrom = \"t\"\nto = \"q\"\n[[flows]]\nfrom = \"s\"\nto = \"q\"\n[[flows]]\nfrom = \"t\"\nto = \"r\"";
    assert_eq!(says(&format!("{dumbbell}{flows}")), ["t", "q", "r", "s"]);
    assert_eq!(says(&format!("{LINE}[[flows]]\nfrom = \"c\"\nto = \"b\"")), ["c", "b"]);
}

#[test]
fn a_tcp_flow_needs_a_round_trip_that_takes_time() {
    let loads = |text: &str| {
        let read = |path: &str| if path == "s" { Ok(text.to_owned()) } else { no_files(path) };
        Scenario::load("s", &[], &read).map(|_| ()).map_err(|e| e.to_string())
    };
    let lan = "duration = \"1 s\"\n[[links]]\nname = \"lan\"\nfrom = \"a\"\nto = \"b\"\n";
    let flow = "[[flows]]\nfrom = \"a\"\nto = \"b\"\n";
    let why =
        "a round trip between `a` and `b` takes no time; give one of the links between them a `rate` or a `delay`";
    let between = "duration = \"1 s\"\n[dumbbell]\nrate = \"1 Mbit/s\"\nrtt = \"9 ms\"\nsenders = [\"a\", \"b\"]\n";
    for text in [format!("{lan}{flow}"), format!("{between}{flow}")] {
        assert!(loads(&text).unwrap_err().contains(why), "{text}");
    }
    for text in [
        format!("{lan}delay = \"1 us\"\n{flow}"),
        format!("{lan}rate = \"1 Gbit/s\"\n{flow}"),
        format!("{lan}{flow}traffic = {{ kind = \"cbr\", rate = \"1 Mbit/s\" }}\n"),
        format!("{between}access_rate = \"1 Gbit/s\"\n{flow}"),
    ] {
        assert_eq!(loads(&text), Ok(()), "{text}");
    }
}

#[test]
fn hosts_of_a_network_without_flows_are_its_ends() {
    assert_eq!(says("[dumbbell]\nrate = \"1 Mbit/s\"\nrtt = \"9 ms\""), ["sender", "receiver"]);
    assert_eq!(says(LINE), ["a", "c"]);
    assert_eq!(says(""), [""; 0]);
}

#[test]
fn a_network_for_real_hosts_is_checked_as_any_other() {
    let loads = |text: &str| {
        let read = |path: &str| if path == "s" { Ok(text.to_owned()) } else { no_files(path) };
        Scenario::load_for_emulation("s", &[], &read).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(loads(&format!("duration = \"1 s\"{LTE}")), Ok(()));
    let wrong = loads("duration = \"1 s\"\n[dumbbell]\nrate = \"1 MB\"\nrtt = \"9 ms\"").unwrap_err();
    assert!(wrong.starts_with("s:3:8: dumbbell.rate: "), "{wrong}");
}
