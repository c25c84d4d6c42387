//! A measurement server and plans, for tests on loopback.

#![allow(dead_code, reason = "each test binary uses a part")]

use meter::{Amount, Fault, Modem, Outcome, Plan, Protocol, Target, measure};
use observe::kernel::{Flow, Way};
use services::measure::{Control, Open, Options, Service};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::runtime::Runtime;
use units::Span;

/// A server on its own threads, as long as it is not dropped.
pub(crate) struct Server {
    runtime: Runtime,
    service: Option<Service>,
}

impl Server {
    pub(crate) fn start(open: Open) -> Server {
        Server::with(Options { open, ..Options::default() })
    }

    /// A server on loopback with these options.
    pub(crate) fn with(options: Options) -> Server {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("threads");
        // Without a way to get a token, a server that requires one does not start.
        let control = Some(Control { name: None, seconds: 1, flows: 1 });
        let options = Options { control, listen: vec![([127, 0, 0, 1], 0).into()], ..options };
        let service = Some(runtime.block_on(Service::start(options)).expect("it starts"));
        Server { runtime, service }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.service.as_ref().expect("it runs").addresses()[0]
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(service) = self.service.take() {
            self.runtime.block_on(service.stop());
        }
    }
}

pub(crate) fn plan(address: SocketAddr, protocol: Protocol) -> Plan {
    Plan {
        target: Target {
            name: "localhost".into(),
            address,
            interface: None,
            protocol,
            tls: None,
            token: "none".into(),
        },
        loads: vec![vec![Way::Up], vec![Way::Down]],
        flows: 2,
        congestion: Vec::new(),
        amount: Amount::Time(Span::from_secs(1)),
        interval: Span::from_millis(10),
        idle: Span::from_millis(500),
        probing: Span::from_millis(50),
        hops: 2,
        warm: false,
        modem: Modem::None,
    }
}

pub(crate) fn run(plan: &Plan) -> Result<Outcome, Fault> {
    plan.check().expect("the plan is valid");
    measure(plan, &Arc::default(), &mut |_| ())
}

/// The bytes that a flow's connection had carried before the measured ones, and their framing.
pub(crate) fn earlier(flow: &Flow) -> u64 {
    let info = flow.samples.last().expect("the last one is of its end").info;
    let all = if flow.way == Way::Up { info.bytes_acked } else { info.bytes_received };
    all.saturating_sub(flow.total().expect("it is known"))
}
