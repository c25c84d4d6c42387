//! The scenario's bulk flows, sent by the kernel's own TCP between namespaces: the reference for the simulated TCP.
//!
//! | file | what |
//! | --- | --- |
//! | `flow` | a flow that the kernel carries |
//! | `flows` | which of a scenario's flows the kernel can carry, and how |
//! | `hosts` | the namespaces of the flows' ends |
//! | `settings` | settings of a whole namespace: sysctls and routes |
//! | `carry` | the thread that connects, writes and reads |
//! | `sample` | the thread that samples each connection's state |
//!
//! Two threads, whatever the number of flows, because the network's own thread needs the processor too.
//!
//! Where the kernel differs from what the scenario says:
//! 1. `send_buffer` is the bound of the kernel's buffer in bytes of memory; the data that fits is somewhat less. What leaves a full
//!    buffer is replaced once a third of it is free (`sk_stream_is_writeable`); the simulator's sender writes at once.
//! 2. With a `window_clamp` the receive buffer is fixed at `receive_buffer`, because the kernel forgets a clamp when it
//!    grows the buffer.
//! 3. At `stop` what the socket has accepted and not sent is still sent; the simulator's sender drops it.

mod carry;
mod flow;
mod flows;
mod hosts;
mod sample;
mod settings;

pub use flow::Flow;
pub(crate) use flows::congestion_control;
pub use flows::{flows, unheeded};
pub use sample::Sample;
pub use settings::sysctls;

use crate::Error;
use crate::lab::Lab;
use carry::Carried;
use hosts::Hosts;
use netio::sys;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;
use units::Span;

/// The priority of the threads, below that of the thread which is the network.
const PRIORITY: i32 = 30;
/// The first receiver's port; each flow adds its number. Captures of the simulator have the same.
const PORT_TO: u16 = 5_000;
/// The first sender's port.
const PORT_FROM: u16 = 10_000;

/// The receivers' ports of the flows, in their order.
pub(crate) fn receivers_ports() -> impl Iterator<Item = u16> {
    PORT_TO..
}

/// The flows that the kernel carries, while they run.
pub struct Kernel {
    flows: Vec<Flow>,
    addresses: Vec<[SocketAddr; 2]>,
    carrier: (Stop, JoinHandle<Vec<Carried>>),
    sampler: (Stop, JoinHandle<Vec<Vec<Sample>>>),
}

/// The outcome of a flow.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The flow.
    pub flow: Flow,
    /// The sender's address.
    pub sender: SocketAddr,
    /// The receiver's address.
    pub receiver: SocketAddr,
    /// Its state at the sampling times from its start until the first after its end.
    pub samples: Vec<Sample>,
    /// When the sender's handshake was complete, since the epoch.
    pub established: Option<Span>,
    /// Bytes that the receiver had read by its end.
    pub received: u64,
    /// When the receiver had read the last byte, since the epoch, if the sender ended and all arrived.
    pub completed: Option<Span>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

impl Measured {
    /// The time from the start of a transfer, when its connection was asked for, until its receiver had read the last
    /// byte; missing if it is no transfer, or was not finished. It is what the simulator's transfers count.
    pub fn completion(&self) -> Option<Span> {
        let whole = self.flow.bytes.is_some_and(|bytes| self.received >= bytes);
        self.completed.filter(|_| whole).map(|completed| completed.saturating_sub(self.flow.start))
    }

    /// Whether its sender keeps to a pacing rate.
    pub fn is_paced(&self) -> bool {
        self.flow.tcp.pacing.unwrap_or(self.flow.cc == "bbr")
    }
}

impl Kernel {
    /// Prepares the namespaces and starts the flows: each starts at its time after `epoch`, and is sampled at the multiples of
    /// `interval` after it.
    ///
    /// # Errors
    /// A sysctl, a route or a socket option is refused, or a port is taken.
    pub fn start(lab: &Lab, flows: Vec<Flow>, epoch: Instant, interval: Span) -> Result<Kernel, Error> {
        start(lab, flows, epoch, interval)
    }

    /// Stops the flows that still run, at once. Returns the outcome of each flow, in the order in which they were given.
    ///
    /// # Panics
    /// If one of its threads panicked, which would be a bug.
    pub fn finish(self) -> Vec<Measured> {
        fn end<T>((stop, thread): (Stop, JoinHandle<T>)) -> T {
            drop(stop);
            thread.join().expect("the threads do not panic")
        }
        // In this order: the carrier breaks off what is open, and the last samples are of what is open.
        let samples = end(self.sampler);
        let carried = end(self.carrier);
        let flows = self.flows.into_iter().zip(self.addresses).zip(samples.into_iter().zip(carried));
        flows
            .map(|((flow, [sender, receiver]), (samples, carried))| Measured {
                flow,
                sender,
                receiver,
                samples,
                established: carried.established,
                received: carried.received,
                completed: carried.completed,
                failure: carried.failure,
            })
            .collect()
    }
}

fn start(hosts: &impl Hosts, flows: Vec<Flow>, epoch: Instant, interval: Span) -> Result<Kernel, Error> {
    settings::apply(hosts, &flows)?;
    let addresses: Vec<[SocketAddr; 2]> = flows
        .iter()
        .zip(0..)
        .map(|(flow, i)| {
            let at = |host, port| SocketAddr::from((hosts.address(host), port));
            [at(flow.from, PORT_FROM + i), at(flow.to, PORT_TO + i)]
        })
        .collect();
    let mut connections = Vec::with_capacity(flows.len());
    for (flow, &[from, to]) in flows.iter().zip(&addresses) {
        let listener = hosts.inside(flow.to, || carry::listener(flow, to))?;
        let sender = hosts.inside(flow.from, || carry::sender(flow, from))?;
        connections.push(carry::Connection::new(flow, [from, to], sender, listener));
    }
    let sources: Vec<_> = connections.iter().map(|connection| Arc::clone(&connection.shared)).collect();
    let carrier = spawn("kernel-flows", move |stop| carry::run(connections, epoch, stop))?;
    let sampler = spawn("kernel-samples", move |stop| sample::run(&sources, epoch, interval, stop))?;
    Ok(Kernel { flows, addresses, carrier, sampler })
}

/// Starts a real-time thread. Returns it with what ends it.
fn spawn<T: Send + 'static>(
    name: &str,
    act: impl FnOnce(&EventFd) -> T + Send + 'static,
) -> Result<(Stop, JoinHandle<T>), Error> {
    let stop = Stop::new()?;
    let event = Arc::clone(&stop.0);
    let run = move || {
        // An application that waits for its turn reads late, and its host acknowledges late: that would be this machine's
        // load, and not TCP. Without the right to it, it has to do without.
        let _ = sys::be_realtime(PRIORITY);
        act(&event)
    };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    Ok((stop, thread.map_err(Error::system("start a thread"))?))
}

/// Ends a thread when dropped: a descriptor that becomes readable then, and stays so.
struct Stop(Arc<EventFd>);

impl Stop {
    fn new() -> Result<Stop, Error> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Stop(Arc::new(EventFd::from_value_and_flags(0, flags).map_err(Error::system("make an event descriptor"))?)))
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        // It fails only when 2^64 - 2 signals have not been read.
        let _ = self.0.write(1);
    }
}

#[cfg(test)]
mod tests;
