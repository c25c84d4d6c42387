//! What an emulation takes of the process that it is in, it gives back. Alone in its process, because that is what is
//! measured.

#![allow(clippy::disallowed_methods)] // This test reads what the kernel says of its process.

use emulate::{Emulation, Options};
use scenario::Scenario;
use testkit::root::granted;

const LINK: &str = r#"
duration = "2 s"
[[links]]
name = "wire"
from = "a"
to = "b"
duplex = true
delay = "10 ms"
"#;

fn start() -> Emulation {
    let loaded = Scenario::load_for_emulation("net.toml", &[], &|_: &str| Ok(LINK.to_owned())).unwrap();
    Emulation::start(loaded, Options::default()).unwrap()
}

/// Memory of this process that is locked, in kB.
fn locked() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
    line.trim_end_matches("kB").trim().parse().unwrap()
}

#[test]
fn root_memory_is_locked_until_the_last_emulation_of_the_process_ends() {
    if granted(emulate::lab::check()).is_none() {
        return;
    }
    assert_eq!(locked(), 0);
    let (first, last) = (start(), start());
    if locked() == 0 {
        eprintln!("SKIPPED: memory cannot be locked here");
        return;
    }
    first.finish().unwrap();
    assert!(locked() > 0, "the other one still runs");
    last.finish().unwrap();
    assert_eq!(locked(), 0);
    drop(start());
    assert_eq!(locked(), 0);
}
