//! Reports over RabbitMQ, which the test starts in its own directory and on its own ports.
// Tests wait for real sockets and programs.

use crate::common::{report, start, until};
use futures_util::StreamExt;
use lapin::options::{BasicConsumeOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties};
use rnis::Record;
use services::rnis::{Input, Log, Options, unix_now};
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

/// A broker that ends with the test.
struct Broker {
    directory: TempDir,
    port: u16,
    distribution: u16,
    mapper: u16,
    child: Option<Child>,
}

fn server() -> Option<PathBuf> {
    // Debian's wrapper in /usr/sbin changes to another user; the server itself is below /usr/lib.
    let pattern = Path::new("/usr/lib/rabbitmq/lib");
    let versions = std::fs::read_dir(pattern).ok()?;
    versions.flatten().map(|entry| entry.path().join("sbin/rabbitmq-server")).find(|path| path.exists())
}

/// Returns three free ports below those that the kernel hands out, which other tests could take before the broker does.
fn free_ports() -> [u16; 3] {
    let first = 20_000 + (std::process::id() % 8_000) as u16;
    let free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let ports: Vec<u16> = (first..first + 4_000).filter(free).take(3).collect();
    ports.try_into().expect("ports are free")
}

impl Broker {
    fn new() -> Option<Broker> {
        server()?;
        let directory = tempfile::tempdir().expect("there is room");
        let [port, distribution, mapper] = free_ports();
        Some(Broker { directory, port, distribution, mapper, child: None })
    }

    async fn start(&mut self) {
        let path = |name: &str| self.directory.path().join(name);
        std::fs::write(path("enabled_plugins"), "[].").expect("there is room");
        let name = format!("ranway{}@localhost", self.port);
        let mut command = Command::new(server().expect("it is installed"));
        command
            .env("HOME", self.directory.path())
            .env("RABBITMQ_NODENAME", &name)
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", self.port.to_string())
            .env("RABBITMQ_DIST_PORT", self.distribution.to_string())
            .env("RABBITMQ_MNESIA_BASE", path("mnesia"))
            .env("RABBITMQ_LOG_BASE", path("log"))
            .env("RABBITMQ_PID_FILE", path("pid"))
            .env("RABBITMQ_CONFIG_FILE", path("rabbitmq"))
            .env("RABBITMQ_CONF_ENV_FILE", path("environment"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", path("enabled_plugins"))
            // Erlang's port mapper becomes a daemon.
            .env("ERL_EPMD_PORT", self.mapper.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        self.child = Some(command.spawn().expect("the broker starts"));
        let started = Instant::now();
        while self.connect().await.is_none() {
            assert!(started.elapsed() < Duration::from_secs(60), "the broker did not start; logs: {}", self.logs());
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// Connects to the broker, which may accept a connection and be killed, or not be ready, before it answers.
    async fn connect(&self) -> Option<Connection> {
        let url = self.url();
        let connecting = Connection::connect(&url, ConnectionProperties::default());
        timeout(Duration::from_secs(5), connecting).await.ok()?.ok()
    }

    fn logs(&self) -> String {
        let files = std::fs::read_dir(self.directory.path().join("log")).into_iter().flatten().flatten();
        files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect()
    }

    fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/%2f", self.port)
    }

    /// Kills the broker without a chance to say goodbye.
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let group = nix::unistd::Pid::from_raw(child.id() as i32);
            let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
            let _ = child.wait();
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
        // The port mapper refuses to end until it has noticed that its node is gone.
        let port = self.mapper.to_string();
        let mapper = |action: &str| {
            let mut command = Command::new("epmd");
            let ran = command.args(["-port", &port, action]).stdout(Stdio::null()).stderr(Stdio::null()).status();
            ran.is_ok_and(|status| status.success())
        };
        for _ in 0..50 {
            mapper("-kill");
            if !mapper("-names") {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn logged() -> (Log, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = lines.clone();
    (Log::new(move |line| kept.lock().unwrap().push(line.to_owned())), lines)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_pass_a_broker_that_is_killed_and_restarted() {
    let broker = Broker::new();
    if !testkit::root::has_program(broker.is_some(), "rabbitmq-server") {
        return;
    }
    let mut broker = broker.expect("it is there");
    broker.start().await;
    let (log, lines) = logged();
    let publisher = start(Options { amqp: Some(broker.url()), log, ..Options::default() }).await;
    let input: Input = format!("amqp:{}", broker.url()).parse().expect("it is valid");
    let consumer = start(Options { inputs: vec![input], ..Options::default() }).await;
    let published = || lines.lock().unwrap().iter().filter(|line| line.starts_with("publishing")).count();
    until(|| published() == 1).await;

    // Another client sees the topic, and that messages expire and are not durable.
    let connection = broker.connect().await.expect("the broker runs");
    let channel = connection.create_channel().await.expect("the broker runs");
    let options = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
    let queue = channel.queue_declare("".into(), options, FieldTable::default()).await.expect("the broker runs");
    let topic = "rni.7.10-45-0-61".into();
    let bound = channel.queue_bind(
        queue.name().clone(),
        "rni".into(),
        topic,
        QueueBindOptions::default(),
        FieldTable::default(),
    );
    bound.await.expect("the exchange is there");
    let options = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
    let mut messages = channel
        .basic_consume(queue.name().clone(), "".into(), options, FieldTable::default())
        .await
        .expect("the broker runs");
    publisher.hub.feed(Record::Report(report(8, 62)));
    publisher.hub.feed(Record::Report(report(7, 61)));
    let message = timeout(Duration::from_secs(10), messages.next())
        .await
        .expect("it arrives")
        .expect("it arrives")
        .expect("it arrives");
    assert_eq!(message.routing_key.as_str(), "rni.7.10-45-0-61");
    assert_eq!(message.properties.expiration().as_ref().map(ToString::to_string), Some("100".to_owned()));
    assert_eq!(message.properties.delivery_mode(), &Some(1));
    let read = rnis::feed::recording::parse_line(&message.data).expect("it is a report");
    assert!(matches!(read, Record::Report(report) if report.cell == 7));

    let address = IpAddr::from([10, 45, 0, 61]);
    let arrives = async |reason: &str| {
        let sent = unix_now();
        let start = Instant::now();
        while consumer.hub.latest(address).is_none_or(|report| report.time < sent) {
            assert!(start.elapsed() < Duration::from_secs(60), "{reason}");
            publisher.hub.feed(Record::Report(report(7, 61)));
            sleep(Duration::from_millis(50)).await;
        }
    };
    arrives("the first report").await;
    broker.kill();
    // Without a broker the feed goes on at full speed.
    let before = Instant::now();
    for _ in 0..10_000 {
        publisher.hub.feed(Record::Report(report(7, 61)));
    }
    assert!(before.elapsed() < Duration::from_secs(2), "{:?}", before.elapsed());
    assert_eq!(publisher.get("/queries/layer2_meas").await.status, 200);
    sleep(Duration::from_secs(1)).await;
    broker.start().await;
    arrives("a report after the restart").await;
    assert!(published() >= 2, "{lines:?}");
    let lines = lines.lock().unwrap();
    assert!(lines.iter().all(|line| !line.contains("guest")), "{lines:?}");
}

#[tokio::test]
async fn a_missing_broker_does_not_hold_up_the_service() {
    let amqp = Some(format!("amqp://127.0.0.1:{}", free_ports()[0]));
    let (log, lines) = logged();
    let service = start(Options { amqp, log, ..Options::default() }).await;
    for n in 0..10_000 {
        service.hub.feed(Record::Report(report(n, 61)));
    }
    assert_eq!(service.get("/queries/layer2_meas").await.status, 200);
    until(|| lines.lock().unwrap().len() == 1).await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(lines.lock().unwrap().len(), 1, "{lines:?}");
}
