//! Campaign files: TOML, checked as a whole before anything runs.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use speedtest::host_port::HostPort;
use units::{Bytes, Span};

use crate::Error;

/// The largest file, in bytes.
const LARGEST: usize = 1 << 20;
/// The most congestion controls, and flow counts.
const MOST_VALUES: usize = 64;
/// The most flows in a direction, as of a measurement.
const MOST_FLOWS: u32 = 64;
/// The most tests of a campaign.
const MOST_TESTS: u64 = 100_000;

/// A campaign file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The title.
    pub title: String,
    /// The network that is tested.
    #[serde(rename = "where")]
    pub place: Where,
    /// Congestion controls, by the names of scenarios: `cubic`, `bbr`, `new-reno`.
    pub cc: Vec<String>,
    /// Numbers of flows in each direction.
    #[serde(default = "one_flow")]
    pub flows: Vec<u32>,
    /// Directions of the flows.
    #[serde(default = "down")]
    pub directions: Vec<Direction>,
    /// Number of blocks. Each block has every combination once.
    #[serde(default = "one")]
    pub repetitions: u32,
    /// Length of each transfer; either this or `bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    /// Data of each flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// Seed of the order of the tests, and of simulations.
    #[serde(default = "one_seed")]
    pub seed: u64,
    /// Time between tests.
    #[serde(default)]
    pub pause: Span,
    /// The longest time of a test; a longer one has failed.
    #[serde(default = "timeout")]
    pub timeout: Span,
    /// Where the tests are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Place>,
    /// The folder for publication.
    #[serde(default)]
    pub publish: Publish,
}

/// The network that is tested: exactly one of `simulation`, `emulation` and `server`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Where {
    /// A scenario to simulate, relative to the campaign file, or the name of a built-in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<String>,
    /// A scenario to emulate, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<String>,
    /// A measurement server, `HOST` or `HOST:PORT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Changes to the scenario, `KEY=VALUE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// The protocol of the server. Default: `throughput1` if there are downloads, whose congestion control the client has to
    /// choose, else `rmbt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// The token that the server requires, in all tests; at most one of this, `control` and `key`. Like these and `ca`, it is
    /// never written to results, and may change before a campaign is resumed.
    #[serde(default, skip_serializing)]
    pub token: Option<String>,
    /// The control server that gives each test a token of its own, `http://HOST[:PORT]` or `https://HOST[:PORT]`.
    #[serde(default, skip_serializing)]
    pub control: Option<String>,
    /// A file with the server's key, with which each test makes a token, relative to the campaign file.
    #[serde(default, skip_serializing)]
    pub key: Option<PathBuf>,
    /// Whether the server is measured over TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tls: bool,
    /// A file with the authorities that are trusted instead of the system's, relative to the campaign file.
    #[serde(default, skip_serializing)]
    pub ca: Option<PathBuf>,
    /// Whether flows transfer data before they are measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warm: bool,
    /// Where metadata about the radio comes from, as of `ranway measure --modem`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modem: Option<String>,
    /// The network interfaces through which the server is measured, each in tests of its own; that of the route if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
}

/// One of the three kinds of networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhereKind<'a> {
    /// A scenario, in virtual time.
    Simulation(&'a str),
    /// A scenario, in real time.
    Emulation(&'a str),
    /// A server.
    Server(&'a str),
}

/// A protocol in which the congestion control can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// RTR Multithreaded Broadband Test: uploads.
    Rmbt,
    /// M-Lab's throughput1: both directions.
    Throughput1,
}

impl Protocol {
    /// Its name on the command line of `ranway measure`.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Rmbt => "rmbt",
            Protocol::Throughput1 => "throughput1",
        }
    }
}

/// The directions of a test's flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the server.
    Down,
    /// To the server.
    Up,
    /// Both at the same time.
    Both,
}

impl Direction {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Down => "down",
            Direction::Up => "up",
            Direction::Both => "both",
        }
    }

    /// The names of its flows in tables.
    pub fn flows(self) -> &'static [&'static str] {
        match self {
            Direction::Down => &["download"],
            Direction::Up => &["upload"],
            Direction::Both => &["download", "upload"],
        }
    }
}

/// When a transfer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// After this time.
    Time(Span),
    /// After so much data of each flow.
    Bytes(Bytes),
}

/// A place, in degrees of WGS 84.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
}

/// How results are published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Publish {
    /// The licence of the data, an SPDX identifier.
    pub licence: String,
    /// The width of the cells to which places are coarsened, in metres.
    pub grid_m: f64,
    /// Further words to remove, such as the name of an operator.
    pub remove: Vec<String>,
    /// Whether cells of real modems keep their identities, which tell where the modem was.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep_cells: bool,
}

impl Default for Publish {
    fn default() -> Publish {
        Publish { licence: "CC-BY-4.0".to_owned(), grid_m: 1000.0, remove: Vec::new(), keep_cells: false }
    }
}

impl File {
    /// Whether the transfers of valid tests have ended: those of a simulation over a time never end.
    pub fn is_complete(&self) -> bool {
        let is_simulation = matches!(self.kind(), WhereKind::Simulation(_));
        !(is_simulation && matches!(self.amount(), Amount::Time(_)))
    }

    /// Reads a campaign file; `name` is its name in errors.
    ///
    /// # Errors
    /// One line: where, what, and what would be valid.
    pub fn parse(name: &str, text: &str) -> Result<File, Error> {
        let invalid = |what: String| Error::Invalid(format!("{name}: {what}"));
        if text.len() > LARGEST {
            return Err(invalid(format!("{} bytes, at most {LARGEST} are allowed", text.len())));
        }
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .map(|span| 1 + text.as_bytes()[..span.start.min(text.len())].iter().filter(|&&b| b == b'\n').count());
            let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            let what = error.message().split('\n').map(str::trim).collect::<Vec<_>>().join(", ");
            invalid(format!("{line}{what}"))
        })?;
        file.check().map_err(invalid)?;
        Ok(file)
    }

    /// The network that is tested.
    pub fn kind(&self) -> WhereKind<'_> {
        match (&self.place.simulation, &self.place.emulation, &self.place.server) {
            (Some(scenario), _, _) => WhereKind::Simulation(scenario),
            (_, Some(scenario), _) => WhereKind::Emulation(scenario),
            (_, _, server) => WhereKind::Server(server.as_deref().unwrap_or_default()),
        }
    }

    /// When transfers end.
    pub fn amount(&self) -> Amount {
        match (self.time, self.bytes) {
            (Some(time), _) => Amount::Time(time),
            (None, bytes) => Amount::Bytes(bytes.unwrap_or_default()),
        }
    }

    /// The protocol of real tests.
    pub fn protocol(&self) -> Protocol {
        let only_up = self.directions.iter().all(|&direction| direction == Direction::Up);
        self.place.protocol.unwrap_or(if only_up { Protocol::Rmbt } else { Protocol::Throughput1 })
    }

    fn check(&self) -> Result<(), String> {
        let place = &self.place;
        let given = [&place.simulation, &place.emulation, &place.server].into_iter().flatten();
        if given.count() != 1 {
            return Err("where: expected exactly one of `simulation`, `emulation` and `server`".into());
        }
        if let WhereKind::Server(server) = self.kind() {
            // It becomes an argument of a command.
            if server.is_empty()
                || server.starts_with('-')
                || server.chars().any(|c| c.is_whitespace() || c.is_control())
            {
                return Err("where.server: expected HOST or HOST:PORT".into());
            }
            check_server(server)?;
            if !place.set.is_empty() {
                return Err("where.set: it changes scenarios, and a server has none".into());
            }
        }
        if matches!(self.kind(), WhereKind::Simulation(_)) && place.protocol.is_some() {
            return Err("where.protocol: only `server` and `emulation` have a protocol".into());
        }
        self.check_access()?;
        list("cc", &self.cc)?;
        list("flows", &self.flows)?;
        list("directions", &self.directions)?;
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if let Some(name) = self
            .cc
            .iter()
            .find(|name| !(1..=15).contains(&name.len()) || !name.chars().all(is_plain) || name.starts_with('-'))
        {
            return Err(format!(
                "cc: invalid name {name:?}; valid are names of congestion controls, such as \"cubic\" or \"new-reno\""
            ));
        }
        let kernel: Vec<&str> = self.cc.iter().map(|name| if name == "reno" { "new-reno" } else { name }).collect();
        list("cc", &kernel)?;
        if let Some(count) = self.flows.iter().find(|count| !(1..=MOST_FLOWS).contains(count)) {
            return Err(format!("flows: {count}: expected 1 to {MOST_FLOWS}"));
        }
        if self.tests() > MOST_TESTS || self.repetitions == 0 {
            return Err(format!("repetitions: {} tests in all, expected 1 to {MOST_TESTS}", self.tests()));
        }
        if self.seed > i64::MAX as u64 {
            return Err(format!("seed: expected 0 to {}", i64::MAX));
        }
        match (self.time, self.bytes) {
            (Some(_), Some(_)) | (None, None) => {
                return Err("expected either `time` or `bytes`, the length of each transfer".into());
            }
            (Some(time), None) if !(Span::from_millis(100)..=Span::from_secs(3600)).contains(&time) => {
                return Err(format!("time: {time}: expected 100 ms to 3600 s"));
            }
            (Some(time), None) if time > self.timeout => {
                return Err(format!("timeout: {}: expected at least `time`, {time}", self.timeout));
            }
            (None, Some(bytes)) if bytes.get() == 0 => return Err("bytes: expected at least 1 B".into()),
            _ => {}
        }
        if !(Span::from_millis(100)..=Span::from_secs(86_400)).contains(&self.timeout) {
            return Err(format!("timeout: {}: expected 100 ms to 86400 s", self.timeout));
        }
        if self.pause > Span::from_secs(86_400) {
            return Err(format!("pause: {}: expected at most 86400 s", self.pause));
        }
        if let Some(at) = self.location
            && !((-90.0..=90.0).contains(&at.latitude) && (-180.0..=180.0).contains(&at.longitude))
        {
            return Err(
                "location: expected a latitude from -90 to 90 and a longitude from -180 to 180, in degrees".into()
            );
        }
        let publish = &self.publish;
        if !(100.0..=1e6).contains(&publish.grid_m) {
            return Err("publish.grid_m: expected 100 to 1000000 (m)".into());
        }
        let is_spdx = |c: char| c.is_ascii_alphanumeric() || "-.+ ()".contains(c);
        if publish.licence.is_empty() || publish.licence.len() > 100 || !publish.licence.chars().all(is_spdx) {
            return Err("publish.licence: expected an SPDX identifier, such as \"CC-BY-4.0\"".into());
        }
        if publish.remove.len() > MOST_VALUES
            || publish.remove.iter().any(|word| word.trim().len() < 2 || word.len() > 200)
        {
            return Err(format!("publish.remove: expected at most {MOST_VALUES} words of 2 to 200 characters"));
        }
        Ok(())
    }

    /// Checks how a server is reached, and what goes with its measurements.
    fn check_access(&self) -> Result<(), String> {
        let place = &self.place;
        let of_servers = [
            ("token", place.token.is_some()),
            ("control", place.control.is_some()),
            ("key", place.key.is_some()),
            ("tls", place.tls),
            ("ca", place.ca.is_some()),
            ("modem", place.modem.is_some()),
            ("interfaces", !place.interfaces.is_empty()),
        ];
        let given: Vec<&str> = of_servers.into_iter().filter(|&(_, is_given)| is_given).map(|(key, _)| key).collect();
        if !matches!(self.kind(), WhereKind::Server(_))
            && let Some(key) = given.first()
        {
            return Err(format!("where.{key}: only valid with `server`"));
        }
        let is_token = |key: &&str| ["token", "control", "key"].contains(key);
        if given.iter().copied().filter(is_token).count() > 1 {
            return Err("where: expected at most one of `token`, `control` and `key`, which all give tokens".into());
        }
        if let Some(token) = &place.token
            && (token.is_empty()
                || token.starts_with('-')
                || token.chars().any(|c| c.is_whitespace() || c.is_control()))
        {
            return Err("where.token: a token has no spaces and does not begin with `-`".into());
        }
        for (key, file) in [("key", &place.key), ("ca", &place.ca)] {
            if file.as_ref().is_some_and(|file| file.as_os_str().is_empty()) {
                return Err(format!("where.{key}: expected the name of a file"));
            }
        }
        let has_tls = place.tls || place.control.as_ref().is_some_and(|url| url.starts_with("https://"));
        if place.ca.is_some() && !has_tls {
            return Err("where.ca: there is no TLS: add `tls = true`, or use a control server of https://".into());
        }
        if place.warm && matches!(self.kind(), WhereKind::Simulation(_)) {
            return Err("where.warm: only valid with `server` and `emulation`".into());
        }
        if place.warm && self.protocol() != Protocol::Rmbt {
            return Err("where.warm: only RMBT can: use protocol = \"rmbt\", and directions = [\"up\"]".into());
        }
        if place.modem.as_ref().is_some_and(|name| !is_modem(name)) {
            return Err(
                "where.modem: expected \"auto\", \"none\", or a modem by its network interface, port or number".into(),
            );
        }
        if !place.interfaces.is_empty() {
            list("where.interfaces", &place.interfaces)?;
        }
        place.interfaces.iter().find(|name| !is_interface(name)).map_or(Ok(()), |name| {
            Err(format!(
                "where.interfaces: {name:?}: expected the name of an interface, of 1 to 15 letters, digits, `-`, `_` and `.`"
            ))
        })
    }

    /// The number of tests.
    fn tests(&self) -> u64 {
        let interfaces = self.place.interfaces.len().max(1);
        let combinations = self.cc.len() * self.flows.len() * self.directions.len() * interfaces;
        combinations as u64 * u64::from(self.repetitions)
    }
}

/// Checks that a list has some values, and none twice.
fn list<T: PartialEq + Serialize>(key: &str, values: &[T]) -> Result<(), String> {
    if values.is_empty() || values.len() > MOST_VALUES {
        return Err(format!("{key}: expected 1 to {MOST_VALUES} values"));
    }
    let repeated = values.iter().enumerate().find(|(i, value)| values[..*i].contains(value));
    let written = |value: &T| serde_json::to_string(value).unwrap_or_default();
    repeated.map_or(Ok(()), |(_, value)| Err(format!("{key}: {} is listed twice", written(value))))
}

/// Checks that a server is no URL, and that its port is one if it has one, as `ranway measure` does.
fn check_server(server: &str) -> Result<(), String> {
    if server.contains("://") {
        return Err("where.server: expected HOST or HOST:PORT, not a URL; `tls = true` uses TLS".into());
    }
    HostPort::parse(server).map(drop).map_err(|why| format!("where.server: {server}: {why}"))
}

/// Whether a text can be a value of `ranway measure --modem`.
fn is_modem(name: &str) -> bool {
    (1..=32).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(|b| b.is_ascii_graphic())
}

/// Whether a text can be the name of an interface, of an argument's value and of a part of a directory's name.
fn is_interface(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=15).contains(&name.len()) && !name.starts_with(['-', '.']) && name.bytes().all(is_plain)
}

fn one_flow() -> Vec<u32> {
    vec![1]
}
fn down() -> Vec<Direction> {
    vec![Direction::Down]
}
fn one() -> u32 {
    1
}
fn one_seed() -> u64 {
    1
}
fn timeout() -> Span {
    Span::from_secs(300)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str =
        "title = 't'\ncc = ['cubic', 'bbr']\nflows = [1, 4]\ntime = '10 s'\n[where]\nsimulation = 'dumbbell'\n";

    fn error(text: &str) -> String {
        File::parse("c.toml", text).expect_err(text).to_string()
    }

    #[test]
    fn a_valid_file_is_read_with_its_defaults() {
        let file = File::parse("c.toml", VALID).expect("valid");
        assert_eq!(file.kind(), WhereKind::Simulation("dumbbell"));
        assert_eq!((file.repetitions, file.seed, file.directions.as_slice()), (1, 1, &[Direction::Down][..]));
        assert_eq!(file.amount(), Amount::Time(Span::from_secs(10)));
        assert_eq!(file.protocol(), Protocol::Throughput1);
        assert_eq!(file.publish.licence, "CC-BY-4.0");
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_what_would_be_valid() {
        let with = |from: &str, to: &str| error(&VALID.replace(from, to));
        let unknown = with("flows =", "flwos =");
        assert!(
            unknown.starts_with("c.toml: line 3: unknown field `flwos`, expected one of `title`, `where`"),
            "{unknown}"
        );
        assert!(!unknown.contains('\n'));
        assert_eq!(
            with("simulation", "server = 'a'\nsimulation"),
            "c.toml: where: expected exactly one of `simulation`, `emulation` and `server`"
        );
        assert_eq!(with("time = '10 s'", ""), "c.toml: expected either `time` or `bytes`, the length of each transfer");
        assert_eq!(
            with("'10 s'", "'1 s'\nbytes = '1 MB'"),
            "c.toml: expected either `time` or `bytes`, the length of each transfer"
        );
        assert_eq!(with("[1, 4]", "[1, 0]"), "c.toml: flows: 0: expected 1 to 64");
        assert_eq!(with("[1, 4]", "[]"), "c.toml: flows: expected 1 to 64 values");
        assert_eq!(with("'bbr'", "'cubic'"), "c.toml: cc: \"cubic\" is listed twice");
        assert!(with("'bbr'", "'../x'").contains("cc: invalid name \"../x\"; valid are"));
        assert!(with("'cubic', 'bbr'", "'reno', 'new-reno'").contains("listed twice"));
        assert!(
            with("flows = [1, 4]", "directions = ['sideways']")
                .contains("unknown variant `sideways`, expected one of `down`, `up`, `both`")
        );
        assert!(with("'10 s'", "'10 parsecs'").starts_with("c.toml: line 4: "));
        assert!(with("'10 s'", "'400 s'").contains(": expected at least `time`"));
        assert!(with("flows = [1, 4]", "repetitions = 100000").contains("expected 1 to 100000"));
        assert!(with("simulation = 'dumbbell'", "server = '-x'").contains("where.server: expected HOST"));
        assert!(error("title = [").starts_with("c.toml: line 1: "));
    }

    /// A campaign file with these lines in its last table, `where`.
    fn at(lines: &str) -> String {
        VALID.replace("simulation = 'dumbbell'", lines)
    }

    #[test]
    fn tokens_keys_and_the_names_of_control_servers_and_files_are_never_written() {
        for (key, value) in
            [("token", "secret"), ("control", "https://secret.example"), ("key", "secret"), ("ca", "secret.pem")]
        {
            let text = at(&format!("server = 'a'\ntls = true\nmodem = 'wwan0'\n{key} = '{value}'"));
            let file = File::parse("c.toml", &text).expect("valid");
            let path = |path: &PathBuf| path.display().to_string();
            let place = &file.place;
            let given =
                [place.token.clone(), place.control.clone(), place.key.as_ref().map(path), place.ca.as_ref().map(path)];
            assert_eq!(given.into_iter().flatten().collect::<Vec<_>>(), [value]);
            let written = serde_json::to_value(&file).expect("JSON");
            assert!(!written.to_string().contains("secret"), "{written}");
            // What affects the measurement is.
            let expected = serde_json::json!({ "server": "a", "tls": true, "modem": "wwan0" });
            assert_eq!(written["where"], expected);
        }
        // Campaigns that began before there were these keys can be resumed.
        let written = serde_json::to_value(File::parse("c.toml", &at("server = 'a'")).expect("valid")).expect("JSON");
        assert_eq!(written["where"], serde_json::json!({ "server": "a" }));
    }

    #[test]
    fn a_server_has_a_port_that_there_is_and_is_no_url() {
        for port in ["0", "99999", "x", ""] {
            let expected = format!("c.toml: where.server: a:{port}: invalid port; expected 1 to 65535");
            assert_eq!(error(&at(&format!("server = 'a:{port}'"))), expected);
        }
        let url = "c.toml: where.server: expected HOST or HOST:PORT, not a URL; `tls = true` uses TLS";
        assert_eq!(error(&at("server = 'http://127.0.0.1'")), url);
        for server in ["a", "a:65535", "192.0.2.1:1", "::1", "[::1]", "[::1]:5231", "[fe80::1%eth0]:5231"] {
            File::parse("c.toml", &at(&format!("server = '{server}'"))).expect(server);
        }
    }

    #[test]
    fn access_to_a_server_that_cannot_work_is_refused_with_what_would() {
        let why = |lines: &str| error(&at(lines)).strip_prefix("c.toml: ").expect("its file").to_owned();
        for key in [
            "token = 't'",
            "control = 'https://h'",
            "key = 'k'",
            "tls = true",
            "ca = 'a'",
            "modem = 'auto'",
            "interfaces = ['a']",
        ] {
            let name = key.split(' ').next().expect("a key");
            for kind in ["simulation", "emulation"] {
                let expected = format!("where.{name}: only valid with `server`");
                assert_eq!(why(&format!("{kind} = 'dumbbell'\n{key}")), expected);
            }
        }
        let one = "where: expected at most one of `token`, `control` and `key`, which all give tokens";
        assert_eq!(why("server = 'a'\ntoken = 't'\nkey = 'k'"), one);
        assert_eq!(why("server = 'a'\ncontrol = 'https://h'\nkey = 'k'"), one);
        assert_eq!(
            why("server = 'a'\ntoken = 'a b'"),
            "where.token: a token has no spaces and does not begin with `-`"
        );
        assert_eq!(why("server = 'a'\nkey = ''"), "where.key: expected the name of a file");
        let no_tls = "where.ca: there is no TLS: add `tls = true`, or use a control server of https://";
        assert_eq!(why("server = 'a'\nca = 'a.pem'"), no_tls);
        assert_eq!(why("server = 'a'\ncontrol = 'http://h'\nca = 'a.pem'"), no_tls);
        for modem in ["", "-x", "wwan 0"] {
            let why = why(&format!("server = 'a'\nmodem = '{modem}'"));
            assert!(why.starts_with("where.modem: expected \"auto\", \"none\", "), "{modem}: {why}");
        }
        for modem in ["auto", "none", "cdc-wdm0", "0"] {
            File::parse("c.toml", &at(&format!("server = 'a'\nmodem = '{modem}'"))).expect(modem);
        }
        let twice = "where.interfaces: \"wwan0\" is listed twice";
        assert_eq!(why("server = 'a'\ninterfaces = ['wwan0', 'wwan0']"), twice);
        for name in ["", "-x", "..", "a b", "a/b", "sixteen-letters-"] {
            let why = why(&format!("server = 'a'\ninterfaces = ['{name}']"));
            assert!(
                why.starts_with("where.interfaces: ") && why.contains(": expected the name of an interface"),
                "{why}"
            );
        }
        // Downloads are measured by throughput1.
        let rmbt = "where.warm: only RMBT can: use protocol = \"rmbt\", and directions = [\"up\"]";
        assert_eq!(why("server = 'a'\nwarm = true"), rmbt);
        assert_eq!(why("emulation = 'dumbbell'\nwarm = true"), rmbt);
        assert_eq!(why("simulation = 'dumbbell'\nwarm = true"), "where.warm: only valid with `server` and `emulation`");
        let up = at("emulation = 'dumbbell'\nwarm = true").replace("flows = [1, 4]", "directions = ['up']");
        File::parse("c.toml", &up).expect("valid");
    }
}
