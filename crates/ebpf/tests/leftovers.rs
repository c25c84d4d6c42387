//! That nothing of what is loaded outlives its end. Needs root; says so loudly if it is skipped.

#![allow(clippy::disallowed_methods)] // Tests read files and wait.

use ebpf::{Error, mdcc, pep};
use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo, ProgInfoIter};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use testkit::root::granted;

/// Names of our programs in the kernel, and how many links lead to interfaces.
fn traces() -> Vec<String> {
    let names = ProgInfoIter::default().map(|program| program.name.to_string_lossy().into_owned());
    let mut traces: Vec<String> = names.filter(|n| n.starts_with("mdcc_") || n.starts_with("pep_")).collect();
    let tcx = LinkInfoIter::default().filter(|link| matches!(link.info, LinkTypeInfo::Tcx(_))).count();
    traces.extend((0..tcx).map(|_| "a link".to_owned()));
    for path in ["/sys/fs/bpf/ranway", "/run/ranway-bpf", "/run/ranway-mdcc-default", "/run/ranway-mdcc.lock"] {
        traces.extend(Path::new(path).exists().then(|| path.to_owned()));
    }
    let controls = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    traces.extend(controls.split_whitespace().filter(|&name| name == "mdcc").map(str::to_owned));
    traces
}

/// The kernel frees programs a moment after the last that refers to them is gone.
fn no_traces() {
    for _ in 0..100 {
        if traces().is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(traces(), [""; 0]);
}

/// Mounts of this test's own, so that nothing is left of it either if it is killed; whether nothing was there before.
fn alone() -> bool {
    let none = None::<&str>;
    unshare(CloneFlags::CLONE_NEWNS).expect("mounts of its own");
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).expect("nobody else sees them");
    mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), none).expect("a /run of its own");
    let alone = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        traces().is_empty()
    });
    if !alone {
        eprintln!("SKIPPED: somebody else's are on this machine: {:?}", traces());
    }
    alone
}

#[test]
fn root_unloading_mdcc_leaves_nothing() {
    if granted(mdcc::check()).is_none() {
        return;
    }
    if !alone() {
        return;
    }
    let default = || fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").expect("there is one");
    let before = default();
    // In a namespace of its own, so that nobody else's connections choose it.
    let thread = std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).expect("a namespace");
        mdcc::load(&mdcc::Options::default()).expect("it loads");
        assert!(mdcc::is_loaded() && traces().len() > 5, "{:?}", traces());
        assert_eq!(mdcc::status().expect("it answers"), []);
        let again = mdcc::load(&mdcc::Options::default());
        assert!(matches!(&again, Err(Error::Wrong(why)) if why.starts_with("mdcc is already loaded")), "{again:?}");
        assert_eq!(mdcc::unload().expect("it unloads"), 0);
    });
    thread.join().expect("it does not panic");
    no_traces();
    assert_eq!(default(), before);

    // What cannot be loaded to its end leaves nothing either.
    let options = mdcc::Options { cgroup: Some("/proc".into()), ..mdcc::Options::default() };
    let refused = mdcc::load(&options);
    assert!(matches!(&refused, Err(Error::Refused { what, .. }) if what == "attach mdcc"), "{refused:?}");
    no_traces();
}

#[test]
fn root_mdcc_that_is_held_goes_with_who_holds_it() {
    if granted(mdcc::check()).is_none() {
        return;
    }
    if !alone() {
        return;
    }
    let held = mdcc::Held::load(mdcc::Parameters::default()).expect("it loads");
    assert!(traces().contains(&"mdcc".to_owned()), "{:?}", traces());
    assert!(!mdcc::is_loaded() && !traces().iter().any(|trace| trace.starts_with('/')), "{:?}", traces());
    let second = mdcc::Held::load(mdcc::Parameters::default());
    assert!(matches!(&second, Err(Error::Wrong(why)) if why.starts_with("another program")), "{second:?}");
    assert!(traces().contains(&"mdcc".to_owned()), "the first is still there: {:?}", traces());
    drop(held);
    no_traces();
    // What the user has loaded is left alone.
    mdcc::load(&mdcc::Options::default()).expect("it loads");
    let refused = mdcc::Held::load(mdcc::Parameters::default());
    assert!(matches!(&refused, Err(Error::Wrong(why)) if why.contains("ranway mdcc unload")), "{refused:?}");
    assert!(mdcc::is_loaded());
    mdcc::unload().expect("it unloads");
    no_traces();
}

#[test]
fn root_a_pep_that_ends_leaves_nothing() {
    if granted(pep::check()).is_none() {
        return;
    }
    if !alone() {
        return;
    }
    let thread = std::thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).expect("a namespace");
        let pair = |one: &str, other: &str| {
            let made = Command::new("ip").args(["link", "add", one, "type", "veth", "peer", "name", other]).status();
            made.is_ok_and(|status| status.success())
        };
        if !pair("wan", "ran") || !pair("other", "end") {
            testkit::root::has_program(false, "ip");
            return;
        }
        let options = pep::Options::new("wan", "ran");
        let pep = pep::Pep::start(&options, vec![]).expect("it starts");
        assert!(traces().len() >= 6, "{:?}", traces());
        assert_eq!(pep.counters(), pep::Counters::default());
        let second = pep::Pep::start(&options, vec![]);
        assert!(
            matches!(&second, Err(Error::Wrong(why)) if why.starts_with("a PEP is already running at `wan`; use --take-over")),
            "{second:?}"
        );

        let options = pep::Options { take_over: true, ..options };
        let heir = pep::Pep::start(&options, vec![]).expect("it takes over");
        assert!(heir.took_over() == pep::TookOver::All && pep.is_replaced() && !heir.is_replaced());
        drop(pep);
        assert!(traces().len() >= 6, "{:?}", traces());
        // Its other side has to be the same.
        let elsewhere = pep::Pep::start(&pep::Options { ran: "other".into(), ..options.clone() }, vec![]);
        let why = "a PEP is already running at `wan`, and `other` is not its other interface";
        assert!(matches!(&elsewhere, Err(Error::Wrong(said)) if said == why), "{elsewhere:?}");
        assert!(!heir.is_replaced());
        drop(heir);
        // The kernel lets go of links a moment later.
        let alone = (0..100).find_map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            pep::Pep::start(&options, vec![]).ok().filter(|pep| pep.took_over() == pep::TookOver::Nothing)
        });
        assert!(alone.is_some(), "without one there it starts");
    });
    thread.join().expect("it does not panic");
    no_traces();
}
