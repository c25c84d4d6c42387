//! The radio network information service: feeds in, ETSI MEC 012 over HTTP and reports on AMQP out.
//!
//! Path of a report: an input (`input.rs`) parses it and calls [`Hub::feed`], which updates the state, hands the report to the
//! in-process feed ([`Hub::records`]) and to the AMQP publisher (`amqp.rs`), and puts notifications of what it tells into the
//! outboxes of subscriptions (`outbox.rs`). Tasks empty the outboxes, by callback (`callback.rs`) or WebSocket
//! (`websocket.rs`). Queries (`http.rs`) are answered from the state. Inputs wait for readers of the in-process feed that lag,
//! up to 2 s for one that stands still, and for no other consumer.
//!
//! What others send is bounded: connections, heads and bodies of requests, subscriptions, notifications that wait, replies to
//! callbacks, lines and messages of feeds, UEs and cells.

mod amqp;
mod callback;
mod counts;
mod faults;
mod follower;
mod http;
mod hub;
mod input;
mod intake;
pub(crate) mod metrics;
mod outbox;
mod problem;
mod query;
mod settings;
mod websocket;

pub use amqp::{Broker, Credentials};
pub use callback::CallbackPolicy;
pub use follower::Follower;
pub use hub::Hub;
pub use input::Input;
pub use settings::{Error, Limits};

use crate::log::Log;
use crate::metrics::{MetricsAccess, MetricsListener};
use crate::server::{Hosts, Most, Network as Addresses, refused, serve};
use futures_util::future::OptionFuture;
use rnis::feed::Carrier;
use rnis::{AddressMap, Network, Record};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::net::TcpListener;
use tokio::signal::unix::SignalKind;
use tokio::task::JoinSet;

/// The most HTTP connections, WebSockets included.
const MOST_CONNECTIONS: Most = Most { connections: 1024, of_site: 128 };

/// The configuration of a service.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where HTTP is served.
    pub listen: SocketAddr,
    /// The API root as clients see it, such as `http://mec.example/lab`, if it is not the host that they name.
    pub root: Option<String>,
    /// The network that the cells belong to.
    pub network: Network,
    /// Addresses of UEs that their cells do not know.
    pub addresses: AddressMap,
    /// What base stations leave out.
    pub carrier: Carrier,
    /// The feeds.
    pub inputs: Vec<Input>,
    /// The broker that reports are published to.
    pub amqp: Option<Broker>,
    /// Names of this service, beside addresses, `localhost` and that of the API root.
    pub hosts: Vec<String>,
    /// Reverse proxies, which tell the addresses of clients (`X-Forwarded-For`).
    pub proxies: Vec<Addresses>,
    /// Which networks notifications may be posted to.
    pub callbacks: CallbackPolicy,
    /// Limits of delivery.
    pub limits: Limits,
    /// Where metrics are served over HTTP, and who may read them, if they are.
    pub metrics: Option<MetricsAccess>,
    /// Where messages go.
    pub log: Log,
}

impl Default for Options {
    /// Serves on a free port of the loopback interface, without inputs.
    fn default() -> Options {
        Options {
            listen: ([127, 0, 0, 1], 0).into(),
            root: None,
            network: Network::default(),
            addresses: AddressMap::default(),
            carrier: Carrier::default(),
            inputs: Vec::new(),
            amqp: None,
            hosts: Vec::new(),
            proxies: Vec::new(),
            callbacks: CallbackPolicy::default(),
            limits: Limits::default(),
            metrics: None,
            log: Log::default(),
        }
    }
}

/// A running service.
#[derive(Debug)]
pub struct Service {
    hub: Arc<Hub>,
    address: SocketAddr,
    metrics: Option<SocketAddr>,
    inputs: Vec<input::Opened>,
    tasks: JoinSet<Result<(), Error>>,
}

impl Service {
    /// Starts a service on the current tokio runtime. Nothing is served if an address or a file cannot be opened. The inputs
    /// are read once the service runs, so whoever asks for reports before that receives all of them.
    pub async fn start(options: Options) -> Result<Service, Error> {
        // Clients, callbacks, feeds and a broker together may have more than a shell allows.
        netio::process::allow_files();
        let Options { network, addresses, callbacks, limits, log, .. } = options;
        let prefix = match &options.root {
            Some(root) => root_path(root)?,
            None => String::new(),
        };
        let broker = options.amqp;
        let listen = options.listen;
        let hub = Hub::new(network, addresses, callbacks, limits, log.clone());
        let mut inputs = Vec::new();
        for input in options.inputs {
            inputs.push(input.open(options.carrier).await?);
        }
        let wrong = |why: std::io::Error| Error(format!("cannot listen on {listen}: {}", refused(&why, "--listen")));
        let listener = TcpListener::bind(listen).await.map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        let root = options.root.map(|root| root.trim_end_matches('/').to_owned());
        let proxies = options.proxies;
        let app = http::App {
            hub: hub.clone(),
            address,
            hosts: Hosts::new(&options.hosts, root.as_deref()),
            root,
            requests: AtomicU64::new(0),
            proxies: proxies.clone(),
            sockets: Arc::default(),
        };
        let router = http::router(Arc::new(app), &prefix);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            serve(listener, router, MOST_CONNECTIONS, proxies).await;
            Ok(())
        });
        let expiring = hub.clone();
        tasks.spawn(async move {
            expiring.expire().await;
            Ok(())
        });
        if let Some(broker) = broker {
            let (mailbox, log) = (hub.mailbox(), log.clone());
            tasks.spawn(async move {
                broker.publish(&mailbox, &log).await;
                Ok(())
            });
        }
        let mut metrics = None;
        if let Some(access) = options.metrics {
            let listener = MetricsListener::bind(access).map_err(|why| Error(why.to_string()))?;
            metrics = Some(listener.address());
            let of_pages = hub.clone();
            tasks.spawn(async move {
                listener.run(move || metrics::text(&of_pages)).await;
                Ok(())
            });
        }
        Ok(Service { hub, address, metrics, inputs, tasks })
    }

    /// Returns where metrics are served.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Returns where HTTP is served.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the state and the in-process feed.
    pub fn hub(&self) -> Arc<Hub> {
        self.hub.clone()
    }

    /// Ends all parts, and waits until they have removed what they created.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }

    /// Runs until an input fails. An input that ends, such as a file, ends nothing else.
    pub async fn run(&mut self) -> Result<(), Error> {
        for input in self.inputs.drain(..) {
            let hub = self.hub.clone();
            self.tasks.spawn(async move { input.run(&hub, &hub.log).await });
        }
        while let Some(ended) = self.tasks.join_next().await {
            match ended {
                Ok(result) => result?,
                Err(why) => return Err(Error(format!("a task of the service failed: {why}"))),
            }
        }
        Ok(())
    }
}

/// Returns the path of an API root.
fn root_path(root: &str) -> Result<String, Error> {
    let invalid = || Error(format!("invalid API root `{root}`: expected http://HOST[:PORT][/PATH]"));
    let uri: axum::http::Uri = root.parse().map_err(|_| invalid())?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let path = uri.path().trim_end_matches('/');
    let has_host = uri.authority().is_some_and(|host| !host.as_str().contains('@'));
    let valid = matches!(uri.scheme_str(), Some("http" | "https")) && has_host && uri.query().is_none();
    if valid && path.bytes().all(is_plain) { Ok(path.to_owned()) } else { Err(invalid()) }
}

/// Takes each report and event of a service, and returns whether it wants more.
pub type TakeRecord = Box<dyn FnMut(&Record) -> bool + Send>;

/// Runs a service until Ctrl-C or SIGTERM. `started` learns where HTTP is served; `take` is called for each report and event, if
/// there is one, and ends the service by returning `false`.
pub fn run(options: Options, started: impl FnOnce(&Service), take: Option<TakeRecord>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|why| Error(format!("cannot start: {why}")))?;
    let result = runtime.block_on(async {
        let signal =
            |kind| tokio::signal::unix::signal(kind).map_err(|why| Error(format!("cannot catch signals: {why}")));
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let mut service = Service::start(options).await?;
        let records = take.map(|take| service.hub().for_each_record(take));
        started(&service);
        let result = tokio::select! {
            result = service.run() => result,
            Some(()) = OptionFuture::from(records) => Ok(()),
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
        };
        service.stop().await;
        result
    });
    // A read of standard input cannot be cancelled, so it is not waited for.
    runtime.shutdown_background();
    result
}
