//! The layering check: which of our crates may use which, and which libraries a pure crate may use.
//!
//! A crate may use only crates above it in the table. A pure crate also uses only libraries that touch no clock, file,
//! socket or entropy.

use crate::step::metadata;
use anyhow::{Result, bail};

/// Each crate, and the crates of the workspace that it may use.
pub(crate) const CRATES: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("des", &["units"]),
    ("wire", &[]),
    ("cc", &["units"]),
    ("aqm", &["units"]),
    ("backlog", &["units"]),
    ("channel", &["units"]),
    ("ran", &["units", "aqm", "channel"]),
    ("link", &["units", "aqm"]),
    ("tcp", &["units", "wire", "cc"]),
    ("pep", &["units", "wire"]),
    ("rnis", &["units", "channel"]),
    ("rapid", &["units", "channel", "rnis"]),
    ("traffic", &["units"]),
    ("observe", &["units", "wire"]),
    ("speedtest", &["units", "wire", "observe"]),
    ("testkit", &["units", "cc", "aqm"]),
    ("netio", &["units", "wire"]),
    ("scenario", &["units", "cc", "aqm", "link", "channel", "ran", "tcp", "rapid", "traffic"]),
    ("disk", &[]),
    ("record", &["units", "wire", "observe", "disk"]),
    ("meter", &["units", "wire", "rnis", "netio", "observe", "speedtest", "disk", "record"]),
    ("campaign", &["units", "des", "observe", "speedtest", "disk", "record"]),
    (
        "sim",
        &[
            "units", "des", "wire", "cc", "aqm", "link", "channel", "ran", "tcp", "pep", "rnis", "rapid", "traffic",
            "scenario", "disk", "record",
        ],
    ),
    ("import", &["units", "wire", "link", "channel", "rnis"]),
    ("analyse", &["units", "wire", "cc", "rnis", "observe", "speedtest", "channel", "record", "import"]),
    ("reproduce", &["units", "observe", "scenario", "record", "sim"]),
    (
        "emulate",
        &[
            "units", "wire", "cc", "aqm", "pep", "rnis", "observe", "traffic", "netio", "scenario", "disk", "record",
            "sim",
        ],
    ),
    (
        "services",
        &["units", "wire", "aqm", "backlog", "rnis", "rapid", "observe", "speedtest", "netio", "disk", "record"],
    ),
    ("oracle", &["units", "scenario", "record", "sim", "emulate"]),
    ("ebpf", &[]),
    (
        "ranway",
        &[
            "units",
            "backlog",
            "netio",
            "scenario",
            "campaign",
            "disk",
            "record",
            "sim",
            "import",
            "analyse",
            "reproduce",
            "rapid",
            "rnis",
            "speedtest",
            "meter",
            "observe",
            "emulate",
            "services",
            "oracle",
            "ebpf",
        ],
    ),
    ("ranway-python", &["units", "netio", "scenario", "record", "sim", "emulate"]),
    ("benches", &[]),
    ("xtask", &[]),
];

/// Crates whose results depend on their arguments alone.
const PURE: &[&str] = &[
    "units",
    "des",
    "wire",
    "cc",
    "aqm",
    "backlog",
    "channel",
    "ran",
    "link",
    "tcp",
    "pep",
    "rnis",
    "rapid",
    "traffic",
    "observe",
    "speedtest",
];

/// Libraries that a pure crate may use.
const PURE_LIBRARIES: &[&str] = &[
    "arrayvec",
    "base64",
    "etherparse",
    "form_urlencoded",
    "hashbrown",
    "hmac",
    "httparse",
    "libm",
    "rand_core",
    "rand_xoshiro",
    "schemars",
    "serde",
    "serde_json",
    "sha1",
    "sha2",
    "slab",
    "thiserror",
];

/// Checks the workspace against the table.
pub(crate) fn check() -> Result<()> {
    println!("==> layers");
    let metadata = metadata(&["--no-deps"])?;
    let packages = metadata["packages"].as_array().map_or(&[][..], |p| p);
    let mut wrong = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(place) = CRATES.iter().position(|(name_of, _)| *name_of == name) else {
            wrong.push(format!("{name} is not in the table of xtask/src/layers.rs"));
            continue;
        };
        if package["publish"] != serde_json::json!([]) {
            wrong.push(format!("{name} lacks `publish.workspace = true`"));
        }
        for dependency in package["dependencies"].as_array().map_or(&[][..], |d| d) {
            // Test-only dependencies may point anywhere: the suites live in testkit.
            if dependency["kind"] == "dev" {
                continue;
            }
            let used = dependency["name"].as_str().unwrap_or_default();
            match CRATES.iter().position(|(name_of, _)| *name_of == used) {
                Some(other) if other >= place => {
                    wrong.push(format!("{name} uses {used}, which is not above it in the table"));
                }
                Some(_) if !CRATES[place].1.contains(&used) => wrong.push(format!("{name} may not use {used}")),
                None if PURE.contains(&name) && !PURE_LIBRARIES.contains(&used) => {
                    wrong.push(format!("{name} is pure and may not use the library {used}"));
                }
                _ => {}
            }
        }
    }
    if packages.is_empty() {
        wrong.push("cargo metadata named no package".to_owned());
    }
    if !wrong.is_empty() {
        bail!("layers:\n  {}", wrong.join("\n  "));
    }
    Ok(())
}
