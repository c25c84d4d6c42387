//! The schema and the reference, against what loads.

use crate::common::load;
use scenario::{builtin, reference_markdown, schema};
use serde_json::Value;
use units::{Bytes, Rate, Span};

/// The part of JSON Schema that ours uses. An unknown keyword panics, so that none goes unchecked.
struct Validator(Value);

fn validator() -> Validator {
    Validator(schema())
}

impl Validator {
    fn is_valid(&self, value: &Value) -> bool {
        self.fits(&self.0, value)
    }

    fn fits(&self, schema: &Value, value: &Value) -> bool {
        let keywords = schema.as_object().expect("a schema is an object");
        keywords.iter().all(|(keyword, rule)| match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" | "examples" | "format" | "deprecated" => true,
            "$ref" => {
                let name = rule.as_str().and_then(|r| r.strip_prefix("#/$defs/")).expect("a reference into $defs");
                let text = value.as_str().unwrap_or_default();
                // The patterns of amounts and parameters, without an engine for regular expressions.
                match name {
                    "Span" => text.parse::<Span>().is_ok(),
                    "Bytes" => text.parse::<Bytes>().is_ok(),
                    "Rate" => text.parse::<Rate>().is_ok(),
                    "Parameter" => text.contains("${"),
                    _ => self.fits(&self.0["$defs"][name], value),
                }
            }
            "type" => match rule.as_str().expect("one type") {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "integer" => value.is_i64() || value.is_u64(),
                "number" => value.is_number(),
                other => panic!("type {other}"),
            },
            "enum" => rule.as_array().expect("values").contains(value),
            "const" => rule == value,
            "anyOf" => rule.as_array().expect("schemas").iter().any(|s| self.fits(s, value)),
            "oneOf" => rule.as_array().expect("schemas").iter().filter(|s| self.fits(s, value)).count() == 1,
            "minimum" => value.as_f64().is_none_or(|x| x >= rule.as_f64().expect("a number")),
            "exclusiveMinimum" => value.as_f64().is_none_or(|x| x > rule.as_f64().expect("a number")),
            "exclusiveMaximum" => value.as_f64().is_none_or(|x| x < rule.as_f64().expect("a number")),
            "maximum" => value.as_f64().is_none_or(|x| x <= rule.as_f64().expect("a number")),
            "minItems" => value.as_array().is_none_or(|a| a.len() as u64 >= rule.as_u64().expect("a count")),
            "maxItems" => value.as_array().is_none_or(|a| a.len() as u64 <= rule.as_u64().expect("a count")),
            "items" => value.as_array().is_none_or(|a| a.iter().all(|v| self.fits(rule, v))),
            "prefixItems" => {
                let rules = rule.as_array().expect("schemas");
                value.as_array().is_none_or(|a| a.iter().zip(rules).all(|(v, s)| self.fits(s, v)))
            }
            "required" => {
                let mut keys = rule.as_array().expect("keys").iter().filter_map(Value::as_str);
                value.as_object().is_none_or(|o| keys.all(|key| o.contains_key(key)))
            }
            "properties" => {
                value.as_object().is_none_or(|o| o.iter().all(|(key, v)| rule.get(key).is_none_or(|s| self.fits(s, v))))
            }
            "additionalProperties" if *rule == true => true,
            // A table of texts.
            "additionalProperties" if rule.is_object() => {
                value.as_object().is_none_or(|o| o.values().all(|v| self.fits(rule, v)))
            }
            "additionalProperties" => {
                assert_eq!(*rule, false);
                value.as_object().is_none_or(|o| o.keys().all(|key| schema["properties"].get(key).is_some()))
            }
            other => panic!("the schema uses `{other}`, which this test does not know"),
        })
    }
}

fn json(text: &str) -> serde_json::Value {
    toml::from_str(text).expect("TOML")
}

#[test]
fn every_built_in_file_fits_the_schema() {
    let validator = validator();
    for b in builtin::list().iter().chain(builtin::presets()) {
        assert!(validator.is_valid(&json(b.text)), "{}", b.name);
    }
}

#[test]
fn a_resolved_scenario_fits_the_schema_and_loads_as_itself() {
    let none = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    let validator = validator();
    for b in builtin::list() {
        for point in scenario::Scenario::load_for_emulation(b.name, &[], &none).unwrap().points() {
            if point.scenario.flows.is_empty() {
                // It does not load as itself, for it is not simulated.
                continue;
            }
            let resolved = serde_json::to_value(&point.scenario).unwrap();
            assert!(validator.is_valid(&resolved), "{}: {resolved}", b.name);
            let text = toml::to_string(&resolved).unwrap();
            let again = scenario::Scenario::parse(&text).unwrap_or_else(|e| panic!("{}: {e}\n{text}", b.name));
            assert_eq!(again, point.scenario);
        }
    }
}

/// What a file says after the lines that each needs.
const KEYS: &[(&str, bool)] = &[
    ("loss = 1e-3", true),
    ("loss = \"${loss}\"", true),
    ("loss = { kind = \"gilbert-elliott\", good_to_bad = 0.1, bad_to_good = 0.5 }", true),
    ("loss = { kind = \"gilbert-elliott\", good_to_bad = 0.1 }", false),
    ("loss = \"much\"", false),
    ("queue = \"codel\"", true),
    ("queue = \"red\"", false),
    ("queue = 100", false),
    ("queue = { kind = \"codel\", target = \"7 ms\" }", true),
    ("queue = { kind = \"codel\", packets = \"${n}\" }", true),
    ("queue = { kind = \"codel\", quantum = \"7 B\" }", false),
    ("queue = { target = \"7 ms\" }", false),
    ("jitter = \"1 ms\"", true),
    ("jitter = \"1 mm\"", false),
    ("jitter = 1", false),
    ("overhead = \"38 B\"", true),
    ("hops = 3", false),
    ("reverse = { rate = \"1 Mbit/s\" }", true),
    ("reverse = { rtt = \"1 s\" }", false),
    ("senders = [\"a\", \"b\"]\n[[flows]]\ncc = \"reno\"", true),
    ("[[flows]]\ncc = { kind = \"scalable\", step = 0.02 }", true),
    ("[[flows]]\ncc = { kind = \"bbr\", step = 0.02 }", false),
    ("[[flows]]\ntraffic = \"transfer\"", false),
    ("[[flows]]\ntraffic = { kind = \"transfer\", size = \"1 MB\" }", true),
    ("[[flows]]\ntcp = { ecn = true, mss = 1200 }", true),
    ("[[flows]]\ntcp = { ecn = 1 }", false),
    ("[record]\nsamples = \"off\"", true),
    ("[record]\nsamples = \"10 ms\"\nevents = \"${yes}\"", true),
    ("[record]\nsamples = \"never\"", false),
    ("[[links]]\nname = \"x\"\nfrom = \"r1\"", false),
];

/// What a file with an LTE network says after the lines that each needs.
const LTE_KEYS: &[(&str, bool)] = &[
    ("bandwidth = \"1.4 MHz\"", true),
    ("bandwidth = \"7 MHz\"", false),
    ("cells = [{}, { name = \"b\", position = [0, 500, 30.5], scheduler = \"max-throughput\" }]", true),
    ("cells = [{ position = [0, 500] }]", false),
    ("mac = { ideal = true, sr_period = \"${n}\" }", true),
    ("mac = { sr_period = 1.5 }", false),
    ("mac = { drx = { cycle = \"40 ms\" } }", true),
    ("mac = { drx = { cycle = 40 } }", false),
    ("handover.time_to_trigger = \"100 ms\"", true),
    ("handover.time_to_trigger = 100", false),
    ("[[lte.ues]]\nname = \"b\"\nmobility = [1, 2, 3]\nfading = \"epa\"", true),
    ("[[lte.ues]]\nname = \"b\"\nmobility = \"route\"", false),
    ("[[lte.ues]]\nname = \"b\"\nmobility = { kind = \"route\", points = [[0, 0, 0], [1, 0, 0]], speeds = [1] }", true),
    ("[[lte.ues]]\nname = \"b\"\nchannel = { kind = \"umi\", sight = \"los\" }", true),
    ("[[lte.ues]]\nname = \"b\"\nchannel = { kind = \"recorded\", files = { cell-1 = \"r.csv\" } }", true),
    ("[[lte.ues]]\nname = \"b\"\nchannel = { kind = \"recorded\", files = { cell-1 = 1 } }", false),
    (
        "[[lte.ues]]\nname = \"b\"\nbearer = { qci = 7, rlc = \"um\", queue = { kind = \"codel\", target = \"20 ms\" } }",
        true,
    ),
    ("[[lte.ues]]\nname = \"b\"\nbearer = { rlc = \"xm\" }", false),
    ("[[lte.ues]]\nname = \"b\"\ndedicated = [{ priorities = [6] }]", true),
    ("[[lte.ues]]\nname = \"b\"\ndedicated = [{ bearer = {} }]", false),
    ("[[lte.ues]]\ncount = 2", false),
];

#[test]
fn the_schema_accepts_what_loads_and_refuses_what_does_not() {
    let validator = validator();
    for (keys, good) in KEYS {
        let parameters = "loss = 0.5\nn = 7\nyes = true\n";
        let flow = if keys.contains("[[flows]]") { "" } else { "[[flows]]\n" };
        let text = format!(
            "duration = \"9 s\"\n[parameters]\n{parameters}[dumbbell]\nrate = \"9 Mbit/s\"\nrtt = \"30 ms\"\n{keys}\n{flow}"
        );
        let loaded = load(&[("s", &text)], &[]);
        assert_eq!(loaded.is_ok(), *good, "loading {keys}: {:?}", loaded.err());
        assert_eq!(validator.is_valid(&json(&text)), *good, "the schema on {keys}");
    }
}

#[test]
fn the_schema_accepts_what_loads_of_an_lte_network_and_refuses_what_does_not() {
    let validator = validator();
    for (keys, good) in LTE_KEYS {
        let ue = if keys.contains("lte.ues") { "" } else { "[[lte.ues]]\nname = \"a\"\n" };
        let n = if keys.contains("${n}") { "parameters.n = 20\n" } else { "" };
        let text = format!("duration = \"9 s\"\n{n}[[flows]]\npriority = 6\n[lte]\n{keys}\n{ue}");
        let loaded = load(&[("s", &text), ("r.csv", "")], &[]);
        assert_eq!(loaded.is_ok(), *good, "loading {keys}: {:?}", loaded.err());
        assert_eq!(validator.is_valid(&json(&text)), *good, "the schema on {keys}");
    }
}

#[test]
fn the_reference_names_every_key_with_its_meaning() {
    let page = reference_markdown();
    for line in [
        "| `warmup` | time | `\"0 ns\"` | Time at which summary statistics start. |",
        "| `duration` | time | required | Simulated time. |",
        "    - `target` (time, `\"5 ms\"`): Target: the acceptable standing delay.",
        "- `new-reno`: `NewReno` (RFC 6582); also called `reno`.",
        "| `position` | [number, number, number] | `[0.0,0.0,30.0]` | Position of the antenna: metres east, north, and above ground. |",
        "| `cells` | array of [Cell](#cell) | see below | The cells. Default: one at the origin. |",
        "- `1.4 MHz`: 6 resource blocks.",
    ] {
        assert!(page.contains(line), "`{line}` is missing from\n{page}");
    }
    let empty: Vec<_> = page.lines().filter(|l| l.ends_with(": ") || l.ends_with("|  |")).collect();
    assert_eq!(empty, [""; 0], "keys without a meaning");
}
