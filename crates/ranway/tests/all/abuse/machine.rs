//! What an emulation could leave behind on the machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The variable by which all processes of an emulation are known, for they inherit it.
pub(crate) const MARK: &str = "RANWAY_TEST_MARK";

/// How long cleaning up may take after a death.
const TEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Everything but the processes, by what it is, line by line. Other emulations may come and go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine(BTreeMap<&'static str, Vec<String>>);

impl Machine {
    /// As it is, without what belongs to emulations.
    pub(crate) fn now() -> Machine {
        Machine::with("-")
    }

    /// As it is, with what belongs to the emulation `id`.
    fn with(id: &str) -> Machine {
        let ours = format!("ranway-{id}-");
        let not_others = |line: &String| !line.contains("ranway-") || line.contains(&ours);
        let mut all: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for directory in ["/run/netns", "/etc/netns"] {
            all.insert(directory, names(directory));
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("every Linux has it");
        all.insert("mounts", mounts.lines().map(str::to_owned).collect());
        for (what, line) in [
            ("interfaces", "ip -oneline link"),
            ("addresses", "ip -oneline address"),
            ("routes", "ip route show table all"),
            ("routes of IPv6", "ip -6 route show table all"),
            ("rules", "ip rule"),
            ("packet filters", "nft list ruleset"),
        ] {
            all.insert(what, lines(line));
        }
        all.values_mut().for_each(|lines| lines.retain(not_others));
        all.insert("/run/ranway", names("/run/ranway").into_iter().filter(|name| name == id).collect());
        let mut settings = Vec::new();
        read_all(Path::new("/proc/sys/net"), &mut settings);
        read_all(Path::new("/proc/sys/kernel/sched_rt_runtime_us"), &mut settings);
        all.insert("settings", settings);
        for file in ["/etc/hosts", "/etc/resolv.conf"] {
            all.insert(file, vec![fs::read_to_string(file).unwrap_or_default()]);
        }
        Machine(all)
    }

    /// Checks that the machine is as it was then, and that the emulation `id`, whose processes carry `mark`, is gone.
    pub(crate) fn is_back(&self, id: &str, mark: &str, after: &str) {
        let start = Instant::now();
        let (machine, left) = loop {
            let found = (Machine::with(id), processes(mark));
            if found == (self.clone(), BTreeMap::new()) || start.elapsed() > TEST_TIMEOUT {
                break found;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        for (what, then) in &self.0 {
            let now = &machine.0[what];
            let [added, gone] = [(now, then), (then, now)]
                .map(|(of, without)| of.iter().filter(|line| !without.contains(line)).collect::<Vec<_>>());
            assert!(now == then, "{after}: {what}: added {added:?}, gone {gone:?}");
        }
        assert_eq!(left, BTreeMap::new(), "{after}: processes");
    }
}

/// The processes that carry a mark, with their command lines.
pub(crate) fn processes(mark: &str) -> BTreeMap<u32, String> {
    let wanted = format!("{MARK}={mark}").into_bytes();
    let of = |name: String| {
        let pid: u32 = name.parse().ok()?;
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        environment.split(|&byte| byte == 0).find(|variable| *variable == wanted)?;
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        Some((pid, String::from_utf8_lossy(&line).replace('\0', " ")))
    };
    names("/proc").into_iter().filter_map(of).collect()
}

/// The names in a directory in order; none if there is no such directory.
fn names(directory: &str) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What a program prints, without what counts down; nothing if it is not installed.
fn lines(line: &str) -> Vec<String> {
    let mut words = line.split(' ');
    let output = Command::new(words.next().expect("a program")).args(words).output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let lasting = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let counts = |at: usize| at > 0 && ["expires", "valid_lft", "preferred_lft"].contains(&words[at - 1]);
        let words = words.iter().enumerate().filter(|&(at, _)| !counts(at)).map(|(_, word)| *word);
        words.collect::<Vec<_>>().join(" ")
    };
    said.lines().map(lasting).collect()
}

/// All settings in a directory that can be read and do not count something.
fn read_all(path: &Path, settings: &mut Vec<String>) {
    if path.is_dir() {
        for name in names(&path.to_string_lossy()) {
            read_all(&path.join(name), settings);
        }
    } else if !path.ends_with("nf_conntrack_count") {
        let value = fs::read(path).unwrap_or_default();
        let mut value = String::from_utf8_lossy(&value).into_owned();
        if path.ends_with("tcp_available_congestion_control") {
            // All networks share this list, and each proxy of another test has a congestion control in it.
            let words = value.split_whitespace().filter(|word| !word.starts_with("rapid"));
            value = words.collect::<Vec<_>>().join(" ");
        }
        settings.push(format!("{} = {value}", path.display()));
    }
}
