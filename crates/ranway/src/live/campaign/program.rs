//! Tests over emulated and real networks: `ranway measure`, as a program of its own.

use super::failed::{Failed, TICK, one_line};
use super::simulation::Network;
use crate::failure::Failure;
use crate::interrupt;
use crate::live::measure::read_key;
use ::campaign::{Amount, Combination, Direction, File, Protocol, Store, Test, Where, WhereKind};
use meter::{TOKEN_VARIABLE, Tls, Trust};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};
use units::Span;

/// The exit code of an emulation that was late.
const LATE: i32 = 3;
/// How long a program may take to end in order.
const GRACE: Duration = Duration::from_secs(10);
/// The longest line of a program that is kept, in bytes.
const LINE: u64 = 4096;
/// The port of the server in an emulation.
const PORT: u16 = 5231;

/// Checks what the protocol can do.
pub(super) fn check(file: &File, combination: &Combination) -> Result<(), Failure> {
    let (protocol, direction) = (file.protocol(), combination.direction);
    let invalid = |what: &str| Err(Failure::Invalid(what.to_owned()));
    match (protocol, file.amount()) {
        (Protocol::Rmbt, _) if direction != Direction::Up => invalid(
            "where.protocol: with rmbt, the server chooses the congestion control of downloads: use \"throughput1\", or directions = \
             [\"up\"]",
        ),
        (Protocol::Throughput1, Amount::Bytes(_)) => {
            invalid("bytes: transfers of an amount of data need where.protocol = \"rmbt\", and directions = [\"up\"]")
        }
        (Protocol::Throughput1, Amount::Time(time)) if time > meter::Protocol::Throughput1.longest() => {
            let most = meter::Protocol::Throughput1.longest();
            Err(Failure::Invalid(format!("time: {time}: expected at most {most} with throughput1")))
        }
        _ => Ok(()),
    }
}

/// Checks that this kernel has the congestion controls: those of uploads to a server, and all of an emulation, which has both ends.
pub(super) fn check_congestion(path: &str, file: &File) -> Result<(), Failure> {
    let is_needed = match file.kind() {
        WhereKind::Simulation(_) => false,
        // Others cannot emulate, and the kernel loads no modules for them.
        WhereKind::Emulation(_) => geteuid().is_root(),
        WhereKind::Server(_) => file.directions.iter().any(|&direction| direction != Direction::Down),
    };
    for name in file.cc.iter().filter(|_| is_needed) {
        meter::check_congestion(meter::kernel_name(name))
            .map_err(|why| Failure::Invalid(format!("{path}: cc: {why}")))?;
    }
    Ok(())
}

/// Checks what gives a server's tokens and who is trusted. Nothing goes over the network.
pub(super) fn check_access(place: &Where) -> Result<(), Failure> {
    if let Some(url) = &place.control {
        meter::check_url(url).map_err(|why| Failure::Invalid(format!("where.control: {why}")))?;
    }
    if let Some(file) = &place.key {
        // Only the file matters here: each test makes a token of its own.
        read_key("where.key", file)?;
    }
    if let Some(file) = &place.ca {
        let invalid = |why: meter::Fault| Failure::Invalid(why.to_string().replacen("--ca", "where.ca", 1));
        Tls::new(&Trust::File(file.clone())).map_err(invalid)?;
    }
    Ok(())
}

/// Checks that there are the interfaces through which a server is measured, and that this process may choose them.
pub(super) fn check_interfaces(path: &str, place: &Where) -> Result<(), Failure> {
    let invalid = |why: String| Failure::Invalid(format!("{path}: where.interfaces: {why}"));
    place.interfaces.iter().try_for_each(|name| meter::check_interface(name).map_err(invalid))
}

/// The arguments of `ranway measure` for a test.
fn arguments(file: &File, server: &str, test: &Test, out: &Path) -> Vec<String> {
    let Combination { cc, flows, direction, interface } = &test.combination;
    let amount = match file.amount() {
        Amount::Time(time) => ["--time".to_owned(), time.to_string()],
        Amount::Bytes(bytes) => ["--bytes".to_owned(), format!("{} B", bytes.get())],
    };
    let mut all: Vec<String> =
        ["measure", server, "--quiet", "--direction", direction.name(), "--cc", cc].map(str::to_owned).into();
    all.extend(amount);
    all.extend(["--flows".into(), flows.to_string(), "--protocol".into(), file.protocol().name().into()]);
    let place = &file.place;
    let path = |path: &Path| path.display().to_string();
    let modem = match file.kind() {
        // This machine's modem has nothing to do with an emulated network.
        WhereKind::Emulation(_) => Some("none".to_owned()),
        _ => place.modem.clone(),
    };
    for (name, value) in [
        ("--control", place.control.clone()),
        ("--key", place.key.as_deref().map(path)),
        ("--ca", place.ca.as_deref().map(path)),
        ("--modem", modem),
        ("--interface", interface.clone()),
    ] {
        all.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
    }
    let flags = [("--tls", place.tls), ("--warm", place.warm)];
    all.extend(flags.into_iter().filter(|&(_, is_given)| is_given).map(|(name, _)| name.to_owned()));
    all.extend(["--out".into(), path(out)]);
    all
}

/// Runs a test.
pub(super) fn run(file: &File, network: Option<&Network>, store: &Store, test: &Test) -> Result<(), Failed> {
    let failed = |why: std::io::Error| Failed::Test(why.to_string());
    let program = std::env::current_exe().map_err(failed)?;
    let absolute = std::path::absolute(store.work(test)).map_err(failed)?;
    let mut command = Command::new(&program);
    // Every user of this machine can read arguments.
    match &file.place.token {
        Some(token) => command.env(TOKEN_VARIABLE, token),
        None => command.env_remove(TOKEN_VARIABLE),
    };
    match (file.kind(), network) {
        (WhereKind::Server(server), _) => {
            command.args(arguments(file, server, test, &absolute));
        }
        (_, network) => {
            let (source, set) = network.map(Network::source).unwrap_or_default();
            let (address, _) = scenario::host_addresses(0);
            let quoted = format!("'{}'", program.display().to_string().replace('\'', "'\\''"));
            let serve = format!("exec {quoted} measure serve --quiet --open --listen {address}:{PORT}");
            command.args(["emulate", source, "--quiet"]).args(set.iter().flat_map(|change| ["--set", change]));
            command.arg("--out").arg(store.path().join("emulations").join(test.name()));
            command.args(["--server", &serve, "--", "sh", "-c", "sleep 1; exec \"$0\" \"$@\""]).arg(&program);
            command.args(arguments(file, &format!("{address}:{PORT}"), test, &absolute));
        }
    }
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let errors = child.stderr.take().map(|stream| thread::spawn(move || last_line(stream)));
    let ended = wait(&mut child, file.timeout);
    let said = errors.and_then(|thread| thread.join().ok()).unwrap_or_default();
    match ended? {
        Some(0) => Ok(()),
        Some(LATE) => Err(Failed::Test(format!("the emulation missed its deadlines: {said}"))),
        Some(130) if interrupt::flag().load(Relaxed) => Err(Failed::Interrupted),
        code => {
            let code = code.map_or_else(|| "it was killed".to_owned(), |code| format!("exit code {code}"));
            Err(Failed::Test(if said.is_empty() { code } else { format!("{code}: {said}") }))
        }
    }
}

/// Waits for the end of a program, and ends it itself after an interruption or the timeout.
fn wait(child: &mut Child, timeout: Span) -> Result<Option<i32>, Failed> {
    let (start, timeout) = (Instant::now(), Duration::from_nanos(timeout.as_nanos()));
    let mut asked = None;
    loop {
        match child.try_wait() {
            Ok(Some(_)) if asked.is_some() && interrupt::flag().load(Relaxed) => return Err(Failed::Interrupted),
            Ok(Some(_)) if asked.is_some() => return Err(Failed::Test("it took longer than `timeout`".into())),
            Ok(Some(status)) => return Ok(status.code()),
            Ok(None) => {}
            Err(why) => return Err(Failed::Test(why.to_string())),
        }
        let is_over = interrupt::flag().load(Relaxed) || start.elapsed() > timeout;
        match asked {
            None if is_over => {
                asked = Some(Instant::now());
                // It may have ended just now.
                let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
            }
            Some(since) if since.elapsed() > GRACE => {
                let _ = child.kill();
            }
            _ => {}
        }
        thread::sleep(TICK);
    }
}

/// Reads a stream to its end. Returns the last line that is an error, or else the last line.
fn last_line(stream: impl Read) -> String {
    let mut stream = BufReader::new(stream);
    let (mut last, mut bytes) = (VecDeque::from([String::new()]), Vec::new());
    loop {
        bytes.clear();
        match stream.by_ref().take(LINE).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let line = one_line(&String::from_utf8_lossy(&bytes));
        if !line.is_empty() {
            last.push_back(line);
            if last.len() > 8 {
                last.pop_front();
            }
        }
    }
    let error = last.iter().rev().find_map(|line| line.strip_prefix("error: "));
    error.map(str::to_owned).or_else(|| last.pop_back()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments after the protocol's, of the first test in a campaign with these lines in its table `where`.
    fn arguments_of(place: &str) -> String {
        let text = format!("title = 't'\ncc = ['cubic']\ndirections = ['up']\ntime = '1 s'\n[where]\n{place}");
        let file = File::parse("c.toml", &text).expect("valid");
        let interface = file.place.interfaces.first().cloned();
        let combination = Combination { cc: "cubic".into(), flows: 1, direction: Direction::Up, interface };
        let all = arguments(&file, "192.0.2.1", &Test { number: 1, block: 1, combination }, Path::new("/out"));
        all.join(" ").split_once(" --protocol rmbt ").expect("a protocol").1.to_owned()
    }

    #[test]
    fn a_measurement_has_the_access_that_the_campaign_names_and_no_token_among_its_arguments() {
        let server = "server = '192.0.2.1'";
        assert_eq!(arguments_of(server), "--out /out");
        assert_eq!(arguments_of(&format!("{server}\ntoken = 'secret'\ntls = true")), "--tls --out /out");
        let control = format!("{server}\ncontrol = 'https://h'\nca = '/a.pem'\nwarm = true\nmodem = 'wwan0'");
        assert_eq!(arguments_of(&control), "--control https://h --ca /a.pem --modem wwan0 --warm --out /out");
        assert_eq!(arguments_of(&format!("{server}\nkey = '/keys'")), "--key /keys --out /out");
        let interfaces = format!("{server}\ninterfaces = ['wwan0', 'wwan1']");
        assert_eq!(arguments_of(&interfaces), "--interface wwan0 --out /out");
        assert_eq!(arguments_of("emulation = 'x'\nwarm = true"), "--modem none --warm --out /out");
    }
}
