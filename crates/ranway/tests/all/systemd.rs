//! The units under a real systemd: this machine's own, booted in namespaces above an overlay of the file system.
//! `make package-test` installs, upgrades and purges the package in a clean system; this needs neither packages nor a download.

use std::fs;
use std::path::Path;
use std::process::Command;
use testkit::root::{granted, has_program};

const SYSTEMD: &str = "/usr/lib/systemd/systemd";

#[test]
fn root_systemd_runs_each_unit_and_replaces_pep_and_proxy_without_a_gap() {
    let allowed = granted(emulate::lab::check()).is_some() && granted(ebpf::pep::check()).is_some();
    if !allowed || !has_program(Path::new(SYSTEMD).exists(), SYSTEMD) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let [folder, findings] = ["folder", "findings"].map(|name| dir.path().join(name));
    for place in [&folder, &findings] {
        fs::create_dir(place).expect("it is made");
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = ["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child"];
    let booted = Command::new("timeout")
        .args(["200", "unshare"])
        .args(own)
        .arg("bash")
        .arg(here.join("tests/systemd/boot.sh"))
        .args([&folder, &findings])
        .arg(env!("CARGO_BIN_EXE_ranway"))
        .arg(here.join("../../packaging"))
        .output();
    let booted = booted.expect("it runs");
    let Ok(said) = fs::read_to_string(findings.join("out")) else {
        let why = String::from_utf8_lossy(&booted.stderr).into_owned();
        granted(Err::<(), _>(format!("systemd does not boot here: {why}")));
        return;
    };
    assert!(said.ends_with("PASSED\n"), "{said}");
}
