//! `ranway measure --pcap`.

use crate::failure::Failure;
use crate::terminal;
use disk::Draft;
use meter::{Capture, Captured};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// The hidden command of the process that captures.
pub(crate) const HELPER: &str = "measure-capture";
/// This program, whatever is at its path meanwhile.
const THIS: &str = "/proc/self/exe";

/// A capture that was asked for: it goes on, or there is a reason why not.
pub(super) struct Running(Result<Capture, String>);

/// Starts a capture of the packets of connections with a server, on an interface or on that of the route. Without the right to, the
/// measurement goes on without it.
pub(super) fn start(file: &Path, server: SocketAddr, interface: Option<&str>) -> Result<Running, Failure> {
    let draft = Draft::create(file)?;
    let mut command = Command::new(THIS);
    command.arg(HELPER).arg(server.to_string()).args(interface);
    let capture = Capture::start(command, draft.handle()?);
    match &capture {
        // It has its name from the beginning, so that it is found if this process is killed.
        Ok(_) => draft.commit()?,
        Err(why) => {
            let hint = if is_permitted() { String::new() } else { hint() };
            terminal::message!("warning: packets are not captured: {why}{hint}");
        }
    }
    Ok(Running(capture))
}

impl Running {
    /// Ends it.
    pub(super) fn finish(self) -> Result<Captured, String> {
        let captured = self.0?.finish();
        match &captured {
            Ok(captured) if captured.dropped > 0 => {
                terminal::message!(
                    "warning: {} packets are missing in the capture: the kernel dropped them",
                    captured.dropped
                );
            }
            Ok(_) => {}
            Err(why) => terminal::message!("warning: the capture is not complete: {why}"),
        }
        captured
    }
}

/// Whether this process could capture.
fn is_permitted() -> bool {
    netio::rights::has(netio::rights::CapabilitySet::NET_RAW)
}

/// How to permit it.
fn hint() -> String {
    let this = std::env::current_exe().unwrap_or_else(|_| "ranway".into());
    format!("; to permit it: sudo setcap cap_net_raw=ep {}", this.display())
}

/// What was captured, for people.
pub(super) fn describe(captured: &Captured) -> String {
    let dropped = if captured.dropped > 0 { format!(", {} dropped", captured.dropped) } else { String::new() };
    format!("{} packets on {}{dropped}", captured.packets, captured.interface)
}

/// What was captured, for programs. The file's name is not in the results, which are for publication.
pub(super) fn json(captured: &Captured) -> Value {
    json!({
        "packets": captured.packets,
        "dropped": captured.dropped,
        "snap_bytes": netio::sys::SNAP,
    })
}

/// Runs the process that captures, which a measurement starts.
pub(crate) fn help(server: SocketAddr, interface: Option<String>) -> Result<(), Failure> {
    meter::run_helper(server, interface);
    Ok(())
}
