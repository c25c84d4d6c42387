//! Queues in hosts (`queue_in_host`): a `tbf` on the interface of a real host, in front of the link.
//!
//! TUN orphans a packet before it is read here (`skb_orphan` in `tun_net_xmit`), so nothing behind it counts against a socket.
//! What waits in a queue discipline does. So the discipline has the link's rate and limit, and the link, which serves at that
//! rate too, receives packets about as fast as it serves them.
//!
//! `tbf` cuts a packet that exceeds its burst into segments (`tbf_segment`), and its segments wait one by one, as in the
//! simulated link.

use crate::Error;
use crate::lab::{INTERFACE, Lab};
use aqm::drop_tail::{self, Victim};
use netio::program::find_program;
use scenario::{Capacity, Link, Queue, Scenario};
use std::process::Command;
use units::{Rate, Span};

/// How late the timer that releases the next packet may be without a loss of capacity, since what it missed may follow at
/// once. By so much the host may also be ahead of the link. Fitted: on a virtual machine with two processors, timers are late
/// by some tens of microseconds.
const LATENESS: Span = Span::from_micros(100);

/// The queue of a host, in front of a link.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HostQueue {
    /// The host's number.
    host: usize,
    rate: Rate,
    /// Bytes added to each packet.
    overhead: u64,
    limit: Limit,
}

/// The most that waits.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    Bytes(u64),
    Packets(u32),
}

/// Returns the queues of those of a scenario's links whose queue is in one of `hosts`.
///
/// # Errors
/// [`Error::Wrong`] for a queue that a real host cannot have, [`Error::Missing`] without `tc`.
pub(crate) fn plan(scenario: &Scenario, hosts: &[String]) -> Result<Vec<HostQueue>, Error> {
    let queues = queues(scenario, hosts)?;
    if !queues.is_empty() && find_program("tc".as_ref()).is_none() {
        return Err(Error::Missing("a queue in a host needs `tc`, which is missing: install iproute2".to_owned()));
    }
    Ok(queues)
}

fn queues(scenario: &Scenario, hosts: &[String]) -> Result<Vec<HostQueue>, Error> {
    let links = scenario.links.iter().filter(|link| link.queue_in_host);
    let placed = links.filter_map(|link| Some((link, hosts.iter().position(|host| *host == link.from)?)));
    let queues = placed.map(|(link, host)| {
        let queue = of(link, host).and_then(|queue| alone(scenario, link, hosts).map(|()| queue));
        queue.map_err(|why| {
            Error::Wrong(format!("link `{}`: its queue is in the host `{}`, {why}", link.name, link.from))
        })
    });
    queues.collect()
}

/// Returns the queue in front of `link` in the host with the number `host`, or why there cannot be one.
fn of(link: &Link, host: usize) -> Result<HostQueue, &'static str> {
    let Some(Capacity::Constant { rate }) = link.rate else {
        return Err("where `tbf` serves it at a constant rate; give the link one, or remove `queue_in_host`");
    };
    let limit = match link.queue {
        Queue::DropTail(drop_tail::Config { packets: None, bytes: Some(bytes), victim: Victim::Arriving }) => {
            Limit::Bytes(bytes.get())
        }
        Queue::DropTail(drop_tail::Config { packets: Some(packets), bytes: None, victim: Victim::Arriving }) => {
            Limit::Packets(packets)
        }
        _ => {
            return Err(
                "where it is a FIFO; use `drop-tail` with either `bytes` or `packets` and `drop = \"tail\"`, or \
                        remove `queue_in_host`",
            );
        }
    };
    Ok(HostQueue { host, rate, overhead: link.overhead.get(), limit })
}

/// Checks that all packets of the host leave it over `link`, since it has a single interface.
fn alone(scenario: &Scenario, link: &Link, hosts: &[String]) -> Result<(), &'static str> {
    let mut routes = hosts.iter().filter_map(|other| scenario::route(scenario, &link.from, other));
    match routes.all(|route| route.first() == Some(&link.name)) {
        true => Ok(()),
        false => Err("which has a single interface, but also sends over another link; remove `queue_in_host`"),
    }
}

impl HostQueue {
    /// Gives the host this queue, until the lab ends.
    ///
    /// # Errors
    /// [`Error::Missing`] if the kernel lacks the queue disciplines.
    pub(crate) fn install(&self, lab: &Lab, mtu: u32) -> Result<(), Error> {
        let netns = &lab.hosts()[self.host].netns;
        for command in self.commands(mtu) {
            tc(netns, &command)?;
        }
        Ok(())
    }

    /// The commands of `tc`.
    fn commands(&self, mtu: u32) -> Vec<String> {
        let (rate, overhead) = (self.rate.bits_per_sec(), self.overhead);
        let burst = self.burst(mtu);
        let bytes = match self.limit {
            Limit::Bytes(bytes) => bytes,
            // The FIFO inside has the limit.
            Limit::Packets(packets) => u64::from(packets) * u64::from(mtu),
        };
        let limit = bytes.min(u32::MAX.into());
        let overhead = if overhead > 0 { format!(" overhead {overhead}") } else { String::new() };
        let tbf = format!(
            "qdisc add dev {INTERFACE} root handle 1: tbf rate {rate}bit burst {burst} limit {limit}{overhead}"
        );
        let fifo = match self.limit {
            Limit::Bytes(_) => None,
            Limit::Packets(packets) => {
                Some(format!("qdisc add dev {INTERFACE} parent 1:1 handle 10: pfifo limit {packets}"))
            }
        };
        std::iter::once(tbf).chain(fifo).collect()
    }

    /// The most bytes that leave at once: a packet, and what leaves late.
    fn burst(&self, mtu: u32) -> u64 {
        let late = self.rate.bytes_per_sec().saturating_mul(LATENESS.as_micros()) / 1_000_000;
        u64::from(mtu) + self.overhead + late
    }
}

/// Runs `tc` in a namespace.
fn tc(netns: &str, command: &str) -> Result<(), Error> {
    let line = format!("tc -netns {netns} {command}");
    let mut tc = Command::new("tc");
    let output = tc.args(["-netns", netns]).args(command.split(' ')).output().map_err(Error::system(&line))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(Error::Missing(format!("{line}: {}", text.trim())));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
