//! What to measure.

use std::net::SocketAddr;

use observe::kernel::Way;
use units::Span;

use crate::fault::Fault;
use crate::line;
use crate::modem::Modem;
use crate::tls::Tls;

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RTR Multithreaded Broadband Test.
    Rmbt,
    /// M-Lab's throughput1.
    Throughput1,
    /// M-Lab's ndt7: one flow.
    Ndt7,
}

impl Protocol {
    /// The longest transfer of one command.
    pub fn longest(self) -> Span {
        match self {
            Protocol::Rmbt => Span::from_secs(30),
            Protocol::Throughput1 => speedtest::throughput1::LONGEST,
            Protocol::Ndt7 => speedtest::ndt7::DURATION,
        }
    }
}

/// A server.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name, as the user gave it.
    pub name: String,
    /// Its address and port.
    pub address: SocketAddr,
    /// The interface that all packets to and from it pass; that of the route if there is none.
    pub interface: Option<String>,
    /// Its protocol.
    pub protocol: Protocol,
    /// TLS, if the connections have it.
    pub tls: Option<Tls>,
    /// The token that it requires; any text for a server that checks none.
    pub token: String,
}

/// When a transfer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// After this time.
    Time(Span),
    /// After so many bytes of each flow.
    Bytes(u64),
}

/// A measurement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server.
    pub target: Target,
    /// The loads, one after the other. In each, all flows of its directions run at the same time.
    pub loads: Vec<Vec<Way>>,
    /// The number of flows in each direction.
    pub flows: usize,
    /// The congestion controls of the flows, by their names in Linux, which take turns; the kernel's default if there is none. Of
    /// downloads, the server's end has them, if the protocol lets a client choose.
    pub congestion: Vec<String>,
    /// When the transfers end.
    pub amount: Amount,
    /// Interval between samples of each flow.
    pub interval: Span,
    /// Time for the probes alone, before and after each load.
    pub idle: Span,
    /// Interval between probes of each kind.
    pub probing: Span,
    /// Hop limits up to which routers are probed.
    pub hops: u8,
    /// Whether flows transfer something before the measured time, so that their windows are open.
    pub warm: bool,
    /// Where metadata about the radio comes from.
    pub modem: Modem,
}

impl Plan {
    /// The most flows in a direction.
    pub const MOST_FLOWS: usize = 64;

    /// Checks that the protocol can do what is asked for.
    ///
    /// # Errors
    /// What it cannot, and what would be possible.
    pub fn check(&self) -> Result<(), String> {
        let protocol = self.target.protocol;
        let has = |way: Way| self.loads.iter().flatten().any(|&other| other == way);
        if self.flows == 0 || self.flows > Plan::MOST_FLOWS {
            return Err(format!("the number of flows must be from 1 to {}", Plan::MOST_FLOWS));
        }
        if protocol == Protocol::Ndt7 && self.flows > 1 {
            return Err("ndt7 has one flow: use --flows 1, or --protocol rmbt or throughput1 for more".into());
        }
        if has(Way::Down) && protocol != Protocol::Throughput1 && !self.congestion.is_empty() {
            return Err("the server chooses the congestion control of downloads, unless it speaks throughput1: use \
                        --direction up, or --protocol throughput1"
                .into());
        }
        if self.congestion.len() > self.flows {
            let (names, flows) = (self.congestion.len(), self.flows);
            return Err(format!("--cc names {names} congestion controls for --flows {flows}: each needs a flow"));
        }
        if self.warm && protocol != Protocol::Rmbt {
            return Err("connections are warmed up with --protocol rmbt alone".into());
        }
        match self.amount {
            Amount::Time(span) if span > self.longest() => {
                Err(format!("a transfer lasts at most {} with this protocol", self.longest()))
            }
            Amount::Time(span) if span < Span::from_millis(100) => Err("a transfer lasts at least 100 ms".into()),
            Amount::Bytes(0) => Err("a transfer has at least one byte".into()),
            Amount::Bytes(_) if protocol != Protocol::Rmbt => {
                Err("transfers of an amount of data need --protocol rmbt".into())
            }
            _ => Ok(()),
        }
    }

    /// Checks that this kernel has the congestion controls of uploads, and lets this process use them. Sends nothing.
    ///
    /// # Errors
    /// [`Fault::Option`]: which of them cannot be used, and which ones there are.
    pub fn check_kernel(&self) -> Result<(), Fault> {
        if !self.loads.iter().flatten().any(|&way| way == Way::Up) {
            return Ok(());
        }
        self.congestion.iter().try_for_each(|name| line::check_congestion(name))
    }

    /// The longest transfer that the protocol has in the directions asked for.
    fn longest(&self) -> Span {
        let only_up = self.loads.iter().flatten().all(|&way| way == Way::Up);
        match self.target.protocol {
            // The client ends an upload.
            Protocol::Rmbt if only_up => Span::from_secs(3_600),
            protocol => protocol.longest(),
        }
    }

    /// Returns the congestion control of a flow, if one was chosen.
    pub(crate) fn congestion_of(&self, flow: usize) -> Option<&str> {
        let count = self.congestion.len();
        (count > 0).then(|| self.congestion[flow % count].as_str())
    }
}
