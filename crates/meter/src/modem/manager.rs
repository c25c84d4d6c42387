//! ModemManager, over D-Bus.
//!
//! Read first: the introspection files of ModemManager 1.24, `org.freedesktop.ModemManager1.Modem`, `.Modem.Signal` and
//! `.Modem.Location`. Single properties are read: `GetManagedObjects` and `GetAll` would fetch the IMEI and the phone number too.
//!
//! - Signal quality is what ModemManager asked the modem for last, at an interval that `Setup` sets to 1 s, and that is set back in
//!   the end. Without the right to do this (polkit: `org.freedesktop.ModemManager1.Device.Control`) there is none, unless somebody
//!   else has set an interval.
//! - The interfaces of a modem's data are its ports and those of its bearers (`.Bearer`'s `Interface`), which are others where several
//!   connections share a port.
//! - The cell comes from `GetCellInfo`, with the same right, since ModemManager 1.20. Where that fails, its identity alone comes
//!   from `GetLocation`, if somebody has enabled the source.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use observe::modem::{CellSample, Technology, rssi_dbm};
use rnis::event::Signal;
use rnis::identity::{is_cell_identity, is_physical_identity};
use units::Span;
use zbus::connection::Builder;
use zbus::export::serde::de::DeserializeOwned;
use zbus::wire::Type;
use zbus::{Connection, OwnedObjectPath, OwnedVariant, Variant};

use super::carrier;
use crate::line::Clock;

const SERVICE: &str = "org.freedesktop.ModemManager1";
/// The path below which each modem has its number.
const MODEMS: &str = "/org/freedesktop/ModemManager1/Modem";
const MODEM: &str = "org.freedesktop.ModemManager1.Modem";
const SIGNAL: &str = "org.freedesktop.ModemManager1.Modem.Signal";
const LOCATION: &str = "org.freedesktop.ModemManager1.Modem.Location";
const BEARER: &str = "org.freedesktop.ModemManager1.Bearer";

/// Interval between samples.
const INTERVAL: Duration = Duration::from_millis(500);
/// Interval between looks at the flag that ends the measurement.
const TURN: Duration = Duration::from_millis(50);
/// Samples that are kept.
const MOST_SAMPLES: usize = 200_000;
/// Samples between two looks for new modems.
const LOOKS: u64 = 10;
/// Time for an answer of the bus, or of ModemManager.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Time to set the intervals of signals back.
const LAST_WORK: Duration = Duration::from_secs(3);
/// The most modems, and connections of a modem.
const MOST_MODEMS: usize = 8;
const MOST_BEARERS: usize = 8;
/// Failures in succession after which a modem is not asked for its cells again.
const MOST_FAILURES: u32 = 3;
/// The longest description of the objects below a path.
const LONGEST_DESCRIPTION: usize = 64 << 10;

/// `MM_MODEM_PORT_TYPE_NET`.
const PORT_NET: u32 = 2;
/// `MM_MODEM_LOCATION_SOURCE_3GPP_LAC_CI`.
const SOURCE_CELL: u32 = 1;

/// Flags of `MMModemAccessTechnology`.
const TECHNOLOGIES: [(Technology, u32); 4] = [
    (Technology::Lte, 1 << 14 | 1 << 16 | 1 << 17),
    (Technology::Nr, 1 << 15),
    (Technology::Umts, 0b1_1111 << 5),
    (Technology::Gsm, 0b1111 << 1),
];

/// A dictionary of D-Bus.
type Values = BTreeMap<String, OwnedVariant>;

/// What is wanted of ModemManager.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// The modem; all modems if there is none.
    pub(super) name: Option<&'a str>,
    /// The interface that the measured packets pass, if it is known.
    pub(super) through: Option<&'a str>,
}

/// Follows the modems until `end`. Returns what is missing and why.
pub(super) fn follow(
    bus: Option<&str>,
    wanted: Wanted<'_>,
    clock: Clock,
    end: &AtomicBool,
    samples: &mut Vec<CellSample>,
) -> Vec<String> {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return vec![why.to_string()],
    };
    runtime.block_on(async {
        let manager = tokio::select! {
            manager = Manager::connect(bus) => manager,
            () = ended(end) => return vec!["the system bus did not answer in time".into()],
        };
        let mut manager = match manager {
            Ok(manager) => manager,
            Err(why) => return vec![why],
        };
        tokio::select! {
            () = manager.run(wanted.name, clock, samples) => {}
            () = ended(end) => {}
        }
        let _ = tokio::time::timeout(LAST_WORK, manager.restore()).await;
        manager.missing(wanted, samples)
    })
}

/// A modem that is followed.
#[derive(Debug)]
struct Followed {
    path: String,
    name: String,
    /// The interval of signals in seconds; 0 if there is none.
    rate: u32,
    /// Failures in succession of `GetCellInfo`.
    failures: u32,
    /// The latest serving cells.
    cells: Vec<Cell>,
}

/// The connection to ModemManager, and what it knows.
struct Manager {
    bus: Connection,
    modems: Vec<Followed>,
    /// Modems whose interval of signals was changed, with the one before. `modems` may be empty when sampling is cut short.
    changed: Vec<(String, u32)>,
    /// The names of all modems that were seen.
    names: Vec<String>,
    /// The interfaces that carry the data of modems that were followed.
    interfaces: Vec<String>,
    refused: Option<&'static str>,
}

impl Manager {
    async fn connect(bus: Option<&str>) -> Result<Manager, String> {
        let builder = bus.map_or_else(Builder::system, Builder::address);
        let bus =
            builder.method_timeout(ANSWER_TIMEOUT).build().await.map_err(|why| format!("no system bus: {why}"))?;
        let manager = Manager {
            bus,
            modems: Vec::new(),
            changed: Vec::new(),
            names: Vec::new(),
            interfaces: Vec::new(),
            refused: None,
        };
        let bus = "org.freedesktop.DBus";
        let is_there = manager.bus.call_method(Some(bus), "/org/freedesktop/DBus", Some(bus), "NameHasOwner", &SERVICE);
        let is_there: Result<bool, _> = is_there.await.and_then(|answer| answer.body().deserialize());
        match is_there {
            Ok(true) => Ok(manager),
            Ok(false) => Err("ModemManager does not run".into()),
            Err(why) => Err(format!("the system bus: {why}")),
        }
    }

    /// Calls a method without arguments.
    async fn call<T>(&self, path: &str, interface: &str, method: &str) -> zbus::Result<T>
    where
        T: DeserializeOwned + Type,
    {
        let answer = self.bus.call_method(Some(SERVICE), path, Some(interface), method, &()).await?;
        answer.body().deserialize_ignore_signature()
    }

    async fn property(&self, path: &str, interface: &str, name: &str) -> zbus::Result<OwnedVariant> {
        let properties = "org.freedesktop.DBus.Properties";
        let answer = self.bus.call_method(Some(SERVICE), path, Some(properties), "Get", &(interface, name)).await?;
        answer.body().deserialize()
    }

    async fn number(&self, path: &str, interface: &str, name: &str) -> Option<u32> {
        u32::try_from(self.property(path, interface, name).await.ok()?).ok()
    }

    /// Samples the modems until it is dropped.
    async fn run(&mut self, name: Option<&str>, clock: Clock, samples: &mut Vec<CellSample>) {
        let mut turns = tokio::time::interval(INTERVAL);
        turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for turn in 0u64.. {
            turns.tick().await;
            if turn % LOOKS == 0 || self.modems.is_empty() {
                self.look(name).await;
            }
            let mut modems = std::mem::take(&mut self.modems);
            let mut gone = Vec::new();
            for (number, modem) in modems.iter_mut().enumerate() {
                let asked = clock.now();
                let Some(found) = self.sample(modem, turn % 2 == 0).await else {
                    gone.push(number);
                    continue;
                };
                let at = clock.now();
                let interval = (modem.rate > 0).then(|| Span::from_secs(modem.rate.into()));
                let lag = interval.map(|interval| interval + at.saturating_since(asked));
                samples.extend(found.into_iter().map(|sample| CellSample { at, lag, ..sample }));
                samples.truncate(MOST_SAMPLES);
            }
            for number in gone.into_iter().rev() {
                modems.remove(number);
            }
            self.modems = modems;
        }
    }

    /// Looks for modems that are not followed yet.
    async fn look(&mut self, wanted: Option<&str>) {
        let introspectable = "org.freedesktop.DBus.Introspectable";
        let Ok(description) = self.call::<String>(MODEMS, introspectable, "Introspect").await else { return };
        for number in children(&description).into_iter().take(MOST_MODEMS) {
            let path = format!("{MODEMS}/{number}");
            if self.modems.iter().any(|modem| modem.path == path) || self.modems.len() == MOST_MODEMS {
                continue;
            }
            let ports = self.property(&path, MODEM, "Ports").await.ok();
            let ports: Vec<(String, u32)> = ports.and_then(|ports| Vec::try_from(ports).ok()).unwrap_or_default();
            let net = ports.iter().find(|port| port.1 == PORT_NET).or(ports.first());
            let name: String = net.map_or_else(|| format!("modem{number}"), |port| port.0.clone());
            let name = clean(&name);
            if !self.names.contains(&name) && self.names.len() < MOST_MODEMS {
                self.names.push(name.clone());
            }
            let is_meant = |wanted: &str| wanted == number || ports.iter().any(|port| port.0 == wanted);
            if wanted.is_some_and(|wanted| !is_meant(wanted)) {
                continue;
            }
            let mut modem = Followed { path, name, rate: 0, failures: 0, cells: Vec::new() };
            self.set_up(&mut modem).await;
            let interfaces = self.interfaces_of(&modem.path, &ports).await;
            self.interfaces.extend(interfaces);
            self.modems.push(modem);
        }
    }

    /// Returns the interfaces that carry a modem's data: its own ones, and those of its connections, which may be others above them.
    async fn interfaces_of(&self, path: &str, ports: &[(String, u32)]) -> Vec<String> {
        let mut found: Vec<String> =
            ports.iter().filter(|port| port.1 == PORT_NET).map(|port| clean(&port.0)).collect();
        let bearers = self.property(path, MODEM, "Bearers").await.ok();
        let bearers: Vec<OwnedObjectPath> = bearers.and_then(|bearers| Vec::try_from(bearers).ok()).unwrap_or_default();
        for bearer in bearers.iter().take(MOST_BEARERS) {
            let name = self.property(bearer.as_str(), BEARER, "Interface").await.ok();
            let name = name.and_then(|name| String::try_from(name).ok()).map(|name| clean(&name));
            found.extend(name.filter(|name| !name.is_empty()));
        }
        found
    }

    /// Lets the modem be asked for its signal every second, if nobody has it asked as often.
    async fn set_up(&mut self, modem: &mut Followed) {
        modem.rate = self.number(&modem.path, SIGNAL, "Rate").await.unwrap_or(0);
        if modem.rate == 1 {
            return;
        }
        let path = modem.path.as_str();
        match self.bus.call_method(Some(SERVICE), path, Some(SIGNAL), "Setup", &1u32).await {
            Ok(_) => {
                self.changed.push((modem.path.clone(), modem.rate));
                modem.rate = 1;
            }
            Err(_) => self.refused = Some("ModemManager does not let this user set the interval of signals"),
        }
    }

    /// Sets the intervals of signals back.
    async fn restore(&mut self) {
        for (path, rate) in &self.changed {
            let _ = self.bus.call_method(Some(SERVICE), path.as_str(), Some(SIGNAL), "Setup", rate).await;
        }
    }

    /// Reads what is known about a modem's cells; `None` if the modem is gone.
    async fn sample(&self, modem: &mut Followed, with_cells: bool) -> Option<Vec<CellSample>> {
        let technologies = self.number(&modem.path, MODEM, "AccessTechnologies").await?;
        let mut signals = BTreeMap::new();
        for (technology, name) in
            [(Technology::Lte, "Lte"), (Technology::Nr, "Nr5g"), (Technology::Umts, "Umts"), (Technology::Gsm, "Gsm")]
        {
            // Older versions have no NR.
            let Ok(values) = self.property(&modem.path, SIGNAL, name).await else { continue };
            let values = Values::try_from(values).unwrap_or_default();
            let values: BTreeMap<String, f64> =
                values.into_iter().filter_map(|(key, value)| Some((key, f64::try_from(value).ok()?))).collect();
            if !values.is_empty() {
                signals.insert(technology, values);
            }
        }
        if with_cells {
            modem.cells = self.cells(modem).await;
        }
        let mut samples = legs(technologies, &signals, &modem.cells);
        samples.iter_mut().for_each(|sample| sample.modem.clone_from(&modem.name));
        Some(samples)
    }

    async fn cells(&self, modem: &mut Followed) -> Vec<Cell> {
        if modem.failures < MOST_FAILURES {
            match self.call::<Vec<Values>>(&modem.path, MODEM, "GetCellInfo").await {
                Ok(cells) => {
                    modem.failures = 0;
                    return cells.iter().filter_map(Cell::of).collect();
                }
                Err(_) => modem.failures += 1,
            }
        }
        let is_enabled = self.number(&modem.path, LOCATION, "Enabled").await.is_some_and(|it| it & SOURCE_CELL != 0);
        if !is_enabled {
            return Vec::new();
        }
        let places = self.call::<BTreeMap<u32, OwnedVariant>>(&modem.path, LOCATION, "GetLocation").await;
        // There may be a position beside it, which is nobody's business here.
        let text = places.ok().and_then(|mut places| String::try_from(places.remove(&SOURCE_CELL)?).ok());
        text.and_then(|text| Cell::of_location(&text)).into_iter().collect()
    }

    fn missing(&self, wanted: Wanted<'_>, samples: &[CellSample]) -> Vec<String> {
        let mut missing = Vec::new();
        match (wanted.name, samples.is_empty()) {
            (Some(wanted), true) if !self.names.is_empty() => {
                missing.push(format!("ModemManager has no modem `{wanted}`; it has {}", self.names.join(", ")));
            }
            (_, true) => missing.push("ModemManager has no modem".into()),
            _ => {
                missing.extend(self.refused.map(str::to_owned));
                if samples.iter().all(|sample| sample.rsrp_dbm.is_none() && sample.rssi_dbm.is_none()) {
                    missing.push("ModemManager told no signal strength".into());
                }
                if samples.iter().all(|sample| sample.cell.is_none()) {
                    missing.push("ModemManager told no cell identity".into());
                }
                missing.extend(elsewhere(wanted.through, &self.interfaces));
            }
        }
        missing
    }
}

/// Returns a name that can be printed.
fn clean(name: &str) -> String {
    name.chars().filter(char::is_ascii_graphic).take(32).collect()
}

/// Tells that the measured packets pass none of the modems' `interfaces`; `None` if they do, or if one of both is not known.
fn elsewhere(through: Option<&str>, interfaces: &[String]) -> Option<String> {
    let (through, own) = (through?, interfaces.first()?);
    let passes = interfaces.iter().any(|interface| interface == through);
    (!passes).then(|| {
        format!(
            "the cell of the measured packets: they pass `{through}`, and `{own}` is the modem's; --interface {own} sends them there"
        )
    })
}

/// Returns the numbers of a path's children in its description, `<node name="0"/>` each.
fn children(description: &str) -> Vec<&str> {
    let Some(description) = description.get(..description.len().min(LONGEST_DESCRIPTION)) else { return Vec::new() };
    let nodes = description.split("<node").skip(1).filter_map(|node| node.split('>').next());
    let names = nodes.filter_map(|node| {
        let value = node.split("name=").nth(1)?;
        value.split(['"', '\'']).nth(1)
    });
    names.filter(|name| (1..=9).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_digit())).collect()
}

/// A serving cell as ModemManager tells it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Cell {
    /// Missing if its identity alone is known.
    technology: Option<Technology>,
    identity: Option<u64>,
    pci: Option<u32>,
    channel: Option<u32>,
    signal: Signal,
}

impl Cell {
    /// Reads an element of `GetCellInfo`; `None` unless it is the cell through which everything goes.
    fn of(values: &Values) -> Option<Cell> {
        let number = |key: &str| values.get(key).and_then(|value| u32::try_from(value).ok());
        let real = |key: &str| values.get(key).and_then(|value| f64::try_from(value).ok());
        let hex = |key: &str| match values.get(key).map(|value| &**value) {
            Some(Variant::Str(text)) => u64::from_str_radix(text, 16).ok(),
            _ => None,
        };
        // MMCellType.
        let technology = match number("cell-type")? {
            2 => Technology::Gsm,
            3 | 4 => Technology::Umts,
            5 => Technology::Lte,
            6 => Technology::Nr,
            _ => return None,
        };
        // MMServingCellType: secondary cells of carrier aggregation add capacity only.
        let is_added = matches!(number("serving-cell-type"), Some(2 | 4));
        if values.get("serving").and_then(|value| bool::try_from(value).ok()) != Some(true) || is_added {
            return None;
        }
        let channel = if technology == Technology::Nr { "nrarfcn" } else { "earfcn" };
        Some(Cell {
            technology: Some(technology),
            identity: hex("ci").and_then(|identity| known_identity(technology, identity)),
            pci: hex("physical-ci").filter(|&pci| is_physical_identity(pci)).map(|pci| pci as u32),
            channel: number(channel),
            signal: Signal::of_modem(real("rsrp"), real("rsrq"), real("sinr")),
        })
    }

    /// Reads `MCC,MNC,LAC,CI,TAC`, of which only the fourth is wanted.
    fn of_location(text: &str) -> Option<Cell> {
        let identity = u64::from_str_radix(text.split(',').nth(3)?, 16).ok()?;
        let identity = Some(identity).filter(|&identity| identity > 0 && identity < 1 << 36);
        Some(Cell { identity, ..Cell::default() })
    }
}

/// Returns an identity that a technology has, and that does not mean that it is unknown.
fn known_identity(technology: Technology, identity: u64) -> Option<u64> {
    let bits = match technology {
        Technology::Lte | Technology::Umts => 28,
        Technology::Nr => 36,
        Technology::Gsm => 16,
    };
    (is_cell_identity(identity) && identity < 1 << bits).then_some(identity)
}

/// Returns a sample of each technology that serves the modem, or one of none.
fn legs(technologies: u32, signals: &BTreeMap<Technology, BTreeMap<String, f64>>, cells: &[Cell]) -> Vec<CellSample> {
    let serves = |&(technology, flags): &(Technology, u32)| {
        // A modem in EN-DC may tell LTE alone, and the signal of both.
        let is_beside = technology == Technology::Nr && signals.contains_key(&Technology::Nr);
        technologies & flags != 0 || is_beside || (technologies == 0 && signals.contains_key(&technology))
    };
    let serving: Vec<Technology> = TECHNOLOGIES.iter().filter(|one| serves(one)).map(|one| one.0).collect();
    if serving.is_empty() {
        return vec![CellSample { source: "modemmanager", ..CellSample::default() }];
    }
    let of = |(number, technology): (usize, Technology)| {
        let cell = cells.iter().find(|cell| cell.technology == Some(technology));
        let alone = cells.iter().find(|cell| cell.technology.is_none() && number == 0);
        let cell = cell.or(alone).cloned().unwrap_or_default();
        let signal = |key: &str| signals.get(&technology).and_then(|values| values.get(key)).copied();
        let told = Signal::of_modem(signal("rsrp"), signal("rsrq"), signal("snr"));
        let (band, frequency_mhz) = match (technology, cell.channel) {
            (Technology::Lte, Some(channel)) => carrier::lte(channel).unzip(),
            (Technology::Nr, Some(channel)) => (None, carrier::nr(channel)),
            _ => (None, None),
        };
        CellSample {
            source: "modemmanager",
            technology: Some(technology),
            secondary: number > 0,
            cell: cell.identity,
            pci: cell.pci,
            band,
            frequency_mhz,
            rsrp_dbm: told.rsrp_dbm.or(cell.signal.rsrp_dbm),
            rsrq_db: told.rsrq_db.or(cell.signal.rsrq_db),
            rssi_dbm: signal("rssi").and_then(rssi_dbm),
            sinr_db: told.sinr_db.or(cell.signal.sinr_db),
            ..CellSample::default()
        }
    };
    serving.into_iter().enumerate().map(of).collect()
}

/// Waits until the end.
async fn ended(end: &AtomicBool) {
    while !end.load(Relaxed) {
        tokio::time::sleep(TURN).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(values: &[(&str, f64)]) -> BTreeMap<String, f64> {
        values.iter().map(|&(key, value)| (key.to_owned(), value)).collect()
    }

    fn cell(values: &[(&str, Variant<'_>)]) -> Option<Cell> {
        let owned =
            |value: &Variant<'_>| OwnedVariant::try_from(value.try_clone().expect("no descriptor")).expect("the same");
        Cell::of(&values.iter().map(|(key, value)| ((*key).to_owned(), owned(value))).collect())
    }

    #[test]
    fn a_serving_cell_is_read_as_its_specification_says() {
        let lte = [
            ("cell-type", Variant::from(5u32)),
            ("serving", true.into()),
            ("operator-id", "24001".into()),
            ("tac", "65".into()),
            ("ci", "31C83F8".into()),
            ("physical-ci", "1A0".into()),
            ("earfcn", 1575u32.into()),
            ("rsrp", (-97.5).into()),
            ("rsrq", (-11.0).into()),
            ("serving-cell-type", 1u32.into()),
        ];
        let expected = Cell {
            technology: Some(Technology::Lte),
            identity: Some(0x31c_83f8),
            pci: Some(0x1a0),
            channel: Some(1575),
            signal: Signal { rsrp_dbm: Some(-97.5), rsrq_db: Some(-11.0), sinr_db: None },
        };
        assert_eq!(cell(&lte), Some(expected.clone()));
        let with = |key: &'static str, value: Variant<'static>| {
            let mut values = lte.to_vec();
            values.retain(|one| one.0 != key);
            values.push((key, value));
            cell(&values)
        };
        assert_eq!(with("serving", false.into()), None);
        assert_eq!(with("serving-cell-type", 2u32.into()), None);
        for unknown in ["FFFFFFFF", "FFFFFFF", "0", "", "no"] {
            assert_eq!(with("ci", unknown.into()), Some(Cell { identity: None, ..expected.clone() }), "{unknown}");
        }
        assert_eq!(
            with("rsrp", (-32768.0).into()),
            Some(Cell { signal: Signal { rsrp_dbm: None, ..expected.signal }, ..expected.clone() })
        );
        assert_eq!(with("physical-ci", 5u32.into()), Some(Cell { pci: None, ..expected }));
        let located = Cell::of_location("310,26,FFFE,31C83F8,65").expect("an identity");
        assert_eq!(located, Cell { identity: Some(0x31c_83f8), ..Cell::default() });
        assert_eq!((Cell::of_location("310,26"), Cell::of_location("")), (None, None));
    }

    #[test]
    fn each_technology_that_serves_has_a_sample() {
        let lte = signal(&[("rssi", -67.0), ("rsrp", -96.0), ("rsrq", -10.0), ("snr", 12.4)]);
        let nr = signal(&[("rsrp", -99.0), ("snr", -32768.0)]);
        let anchor = Cell { technology: Some(Technology::Lte), channel: Some(6300), ..Cell::default() };
        let beside = Cell { technology: Some(Technology::Nr), channel: Some(620_000), ..Cell::default() };
        let both = BTreeMap::from([(Technology::Lte, lte.clone()), (Technology::Nr, nr)]);
        // A modem in EN-DC that tells LTE alone, and one that tells both.
        for technologies in [1 << 14, 1 << 14 | 1 << 15] {
            let found = legs(technologies, &both, &[anchor.clone(), beside.clone()]);
            let [first, second] = &found[..] else { panic!("{found:?}") };
            assert_eq!((first.technology, first.secondary), (Some(Technology::Lte), false));
            assert_eq!((first.rssi_dbm, first.rsrp_dbm, first.sinr_db), (Some(-67.0), Some(-96.0), Some(12.4)));
            assert_eq!((first.band, first.frequency_mhz), (Some(20), Some(806.0)));
            assert_eq!((second.technology, second.secondary), (Some(Technology::Nr), true));
            assert_eq!((second.rsrp_dbm, second.sinr_db, second.frequency_mhz), (Some(-99.0), None, Some(3300.0)));
        }
        let alone = Cell { identity: Some(7), ..Cell::default() };
        let found = legs(1 << 9, &BTreeMap::new(), &[alone]);
        assert_eq!((found.len(), found[0].technology, found[0].cell), (1, Some(Technology::Umts), Some(7)));
        assert_eq!(legs(0, &BTreeMap::from([(Technology::Lte, lte)]), &[])[0].technology, Some(Technology::Lte));
        let none = legs(0, &BTreeMap::new(), &[]);
        assert_eq!((none.len(), none[0].technology), (1, None));
    }

    #[test]
    fn packets_that_pass_no_modem_are_told() {
        let own = ["wwan0".to_owned(), "qmapmux0.0".to_owned()];
        assert_eq!((elsewhere(Some("qmapmux0.0"), &own), elsewhere(None, &own)), (None, None));
        assert_eq!(elsewhere(Some("eth0"), &[]), None);
        let why = "the cell of the measured packets: they pass `eth0`, and `wwan0` is the modem's; --interface wwan0 sends them there";
        assert_eq!(elsewhere(Some("eth0"), &own).as_deref(), Some(why));
    }

    #[test]
    fn children_of_a_path_are_numbers_and_any_description_is_read() {
        let description = "<!DOCTYPE node PUBLIC \"-//freedesktop\" \"x\">\n<node>\n <node name=\"0\"/>\n <node name='12'></node>\
                           <node name=\"Sim\"/><interface name=\"7\"/><node name=\"../../1\"/></node>";
        assert_eq!(children(description), ["0", "12"]);
        bolero::check!().for_each(|bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            assert!(children(&text).iter().all(|name| name.parse::<u32>().is_ok()));
            let _ = children(&format!("<node name=\"{text}\"/>"));
            let _ = Cell::of_location(&text);
        });
    }
}
