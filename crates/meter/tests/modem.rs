//! Metadata about the radio from a ModemManager that this test provides on a bus of its own, with the real names.

#![allow(clippy::disallowed_methods)] // Tests start programs and measure time.
#![allow(clippy::disallowed_types)] // The macros of zbus write `HashMap`.

use meter::{Amount, Modem, Outcome, Plan, Protocol, Target, measure};
use observe::kernel::Way;
use observe::modem::Technology;
use services::measure::{Open, Options, Service};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use units::Span;
use zbus::{Connection, ObjectPath, OwnedVariant, Variant, fdo};

/// A bus, as long as it is not dropped.
struct Bus {
    daemon: Child,
    address: String,
    _directory: TempDir,
}

impl Bus {
    /// Starts a bus; `None` where there is no program for it.
    fn start() -> Option<Bus> {
        let directory = tempfile::tempdir().expect("a directory");
        let address = format!("--address=unix:path={}/bus", directory.path().display());
        let daemon = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--nopidfile", "--print-address", &address])
            .current_dir(directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        testkit::root::has_program(daemon.is_ok(), "dbus-daemon");
        let mut daemon = daemon.ok()?;
        let mut address = String::new();
        BufReader::new(daemon.stdout.take().expect("it is piped"))
            .read_line(&mut address)
            .expect("it tells its address");
        Some(Bus { daemon, address: address.trim().to_owned(), _directory: directory })
    }

    fn modem(&self, name: Option<&str>) -> Modem {
        Modem::Manager { bus: Some(self.address.clone()), name: name.map(str::to_owned) }
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// What happened to the modem of the tests.
#[derive(Debug, Default)]
struct Seen {
    /// The intervals that were set.
    intervals: Vec<u32>,
    rate: u32,
    /// How often its cells were asked for.
    cells: u32,
    /// Whether its identities were read.
    identities: bool,
    /// Whether it refuses what changes it.
    refuses: bool,
    /// Whether it carries the packets of loopback.
    carries: bool,
}

type Shared = Arc<Mutex<Seen>>;

fn refuse(seen: &Seen) -> fdo::Result<()> {
    if seen.refuses { Err(fdo::Error::AccessDenied("not authorized".into())) } else { Ok(()) }
}

struct MockModem(Shared);

#[zbus::interface(name = "org.freedesktop.ModemManager1.Modem")]
impl MockModem {
    #[zbus(property)]
    fn ports(&self) -> Vec<(String, u32)> {
        vec![("cdc-wdm0".into(), 6), ("wwan0".into(), 2), ("ttyUSB2".into(), 3)]
    }

    #[zbus(property)]
    fn bearers(&self) -> Vec<ObjectPath<'static>> {
        let bearer = ObjectPath::try_from(BEARER).expect("a path");
        if self.0.lock().unwrap().carries { vec![bearer] } else { Vec::new() }
    }

    #[zbus(property)]
    fn access_technologies(&self) -> u32 {
        1 << 14
    }

    #[zbus(property)]
    fn equipment_identifier(&self) -> String {
        self.0.lock().unwrap().identities = true;
        "866948011255141".into()
    }

    #[zbus(property)]
    fn own_numbers(&self) -> Vec<String> {
        self.0.lock().unwrap().identities = true;
        vec!["+46700000000".into()]
    }

    fn get_cell_info(&self) -> fdo::Result<Vec<BTreeMap<String, OwnedVariant>>> {
        let mut seen = self.0.lock().unwrap();
        refuse(&seen)?;
        seen.cells += 1;
        let identity = if seen.cells > 2 { "31C8302" } else { "31C8301" };
        let of = |serving: bool, identity: &str, physical: &str| {
            [
                ("cell-type", Variant::from(5u32)),
                ("serving", serving.into()),
                ("operator-id", "24001".into()),
                ("ci", identity.to_owned().into()),
                ("physical-ci", physical.to_owned().into()),
                ("earfcn", 1575u32.into()),
            ]
            .map(|(key, value)| (key.to_owned(), OwnedVariant::try_from(value).expect("no descriptor")))
            .into()
        };
        Ok(vec![of(false, "31C83FF", "7"), of(true, identity, "1A0")])
    }
}

const BEARER: &str = "/org/freedesktop/ModemManager1/Bearer/5";

/// A connection of the modem, as above an interface that several share.
struct MockBearer;

#[zbus::interface(name = "org.freedesktop.ModemManager1.Bearer")]
impl MockBearer {
    #[zbus(property)]
    fn interface(&self) -> String {
        "lo".into()
    }
}

struct MockSignal(Shared);

#[zbus::interface(name = "org.freedesktop.ModemManager1.Modem.Signal")]
impl MockSignal {
    fn setup(&self, rate: u32) -> fdo::Result<()> {
        let mut seen = self.0.lock().unwrap();
        refuse(&seen)?;
        seen.intervals.push(rate);
        seen.rate = rate;
        Ok(())
    }

    #[zbus(property)]
    fn rate(&self) -> u32 {
        self.0.lock().unwrap().rate
    }

    #[zbus(property)]
    fn lte(&self) -> BTreeMap<String, OwnedVariant> {
        if self.0.lock().unwrap().rate == 0 {
            return BTreeMap::new();
        }
        [("rssi", -67.0), ("rsrp", -96.5), ("rsrq", -10.0), ("snr", 12.5)]
            .map(|(key, value)| (key.to_owned(), OwnedVariant::try_from(Variant::from(value)).expect("no descriptor")))
            .into()
    }

    #[zbus(property, name = "Nr5g")]
    fn nr5g(&self) -> BTreeMap<String, OwnedVariant> {
        BTreeMap::new()
    }
}

struct MockLocation;

#[zbus::interface(name = "org.freedesktop.ModemManager1.Modem.Location")]
impl MockLocation {
    #[zbus(property)]
    fn enabled(&self) -> u32 {
        1
    }

    fn get_location(&self) -> BTreeMap<u32, OwnedVariant> {
        let of = |value: Variant<'static>| OwnedVariant::try_from(value).expect("no descriptor");
        [(1, of("240,01,FFFE,31C8309,65".into())), (4, of("$GPGGA,123519,5924.1,N".into()))].into()
    }
}

async fn mock(address: &str, seen: &Shared) -> Connection {
    let path = "/org/freedesktop/ModemManager1/Modem/3";
    let builder = zbus::connection::Builder::address(address).serve_at(path, MockModem(Arc::clone(seen)));
    let builder = builder.serve_at(path, MockSignal(Arc::clone(seen))).serve_at(path, MockLocation);
    let builder = builder.serve_at(BEARER, MockBearer);
    builder.name("org.freedesktop.ModemManager1").build().await.expect("the bus takes it")
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads")
}

/// Measures loopback for some seconds, with metadata from `modem`.
fn measured(runtime: &Runtime, modem: Modem) -> Outcome {
    let options = Options { open: Open::Private, listen: vec![([127, 0, 0, 1], 0).into()], ..Options::default() };
    let service = runtime.block_on(Service::start(options)).expect("it starts");
    let address = service.addresses()[0];
    let plan = Plan {
        target: Target {
            name: "localhost".into(),
            address,
            interface: None,
            protocol: Protocol::Rmbt,
            tls: None,
            token: "none".into(),
        },
        loads: vec![vec![Way::Up]],
        flows: 1,
        congestion: Vec::new(),
        amount: Amount::Time(Span::from_secs(2)),
        interval: Span::from_millis(100),
        idle: Span::from_secs(1),
        probing: Span::from_millis(100),
        hops: 0,
        warm: false,
        modem,
    };
    let outcome = measure(&plan, &Arc::default(), &mut |_| ()).expect("it succeeds");
    runtime.block_on(service.stop());
    outcome
}

/// What is missing of the radio.
fn missing(outcome: &Outcome) -> Vec<&str> {
    outcome.missing.iter().filter_map(|why| why.strip_prefix("radio: ")).collect()
}

#[test]
fn a_modem_is_followed_and_left_as_it_was_and_nobody_asks_who_it_is() {
    let Some(bus) = Bus::start() else { return };
    let (runtime, seen) = (runtime(), Shared::default());
    seen.lock().unwrap().carries = true;
    let _mock = runtime.block_on(mock(&bus.address, &seen));
    let outcome = measured(&runtime, bus.modem(None));
    assert_eq!(missing(&outcome), Vec::<&str>::new());
    let first = &outcome.cells[0];
    assert_eq!((first.modem.as_str(), first.technology), ("wwan0", Some(Technology::Lte)));
    assert_eq!((first.cell, first.pci), (Some(0x31c_8301), Some(0x1a0)));
    assert_eq!((first.band, first.frequency_mhz), (Some(3), Some(1842.5)));
    assert_eq!((first.rsrp_dbm, first.rsrq_db), (Some(-96.5), Some(-10.0)));
    assert_eq!((first.rssi_dbm, first.sinr_db), (Some(-67.0), Some(12.5)));
    let second = Span::from_secs(1);
    assert!(first.lag.is_some_and(|lag| (second..second * 3).contains(&lag)), "{:?}", first.lag);
    assert!(outcome.cells.len() >= 5, "{}", outcome.cells.len());
    let tables = outcome.tables();
    assert!(tables.modem.iter().all(|row| row.source == "modemmanager" && row.rsrp_dbm == Some(-96.5)));
    let changes: Vec<_> =
        tables.mobility.iter().map(|row| (row.ue.to_owned(), row.event, row.cell.to_owned())).collect();
    assert_eq!(changes, [("wwan0".to_owned(), "changed", 0x31c_8302.to_string())]);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.intervals, [1, 0]);
    assert!(!seen.identities);
}

#[test]
fn what_modem_manager_refuses_is_a_reason_and_the_rest_is_measured() {
    let Some(bus) = Bus::start() else { return };
    let (runtime, seen) = (runtime(), Shared::default());
    seen.lock().unwrap().refuses = true;
    let _mock = runtime.block_on(mock(&bus.address, &seen));
    let outcome = measured(&runtime, bus.modem(Some("cdc-wdm0")));
    let expected = [
        "ModemManager does not let this user set the interval of signals",
        "ModemManager told no signal strength",
        "the cell of the measured packets: they pass `lo`, and `wwan0` is the modem's; --interface wwan0 sends them there",
    ];
    assert_eq!(missing(&outcome), expected);
    let last = outcome.cells.last().expect("the cell is known");
    assert_eq!((last.cell, last.rsrp_dbm, last.lag), (Some(0x31c_8309), None, None));
    assert_eq!(last.modem, "wwan0");
}

#[test]
fn a_bus_a_manager_or_a_modem_that_is_absent_is_a_reason() {
    let Some(bus) = Bus::start() else { return };
    let (runtime, seen) = (runtime(), Shared::default());
    let outcome = measured(&runtime, bus.modem(None));
    assert_eq!(missing(&outcome), ["ModemManager does not run"]);
    let _mock = runtime.block_on(mock(&bus.address, &seen));
    let outcome = measured(&runtime, bus.modem(Some("wwan7")));
    assert_eq!(missing(&outcome), ["ModemManager has no modem `wwan7`; it has wwan0"]);
    assert_eq!(seen.lock().unwrap().intervals, Vec::<u32>::new());
    let absent = Modem::Manager { bus: Some("unix:path=/nonexistent/bus".into()), name: None };
    let outcome = measured(&runtime, absent);
    let missing = missing(&outcome);
    assert!(
        missing.len() == 1 && missing[0].starts_with("no system bus: ") && !missing[0].contains('\n'),
        "{missing:?}"
    );
    assert!(outcome.tables().modem.iter().next().is_none());
}
