//! A RabbitMQ broker of a test's own.

#![allow(clippy::disallowed_methods, reason = "starts a program and waits for it")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::root::has_program;

/// Longest time until the broker answers.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// What a client sends first: AMQP 0-9-1.
const GREETING: &[u8] = b"AMQP\0\0\x09\x01";

/// A broker on its own ports of 127.0.0.1, which ends with the test.
#[derive(Debug)]
pub struct Broker {
    directory: PathBuf,
    port: u16,
    distribution: u16,
    mapper_port: u16,
    server: Option<Child>,
    mapper: Option<Child>,
}

/// Returns three free ports below those that the kernel hands out, which other tests could take before the broker does.
///
/// # Panics
/// If there are none.
pub fn free_ports() -> [u16; 3] {
    let first = 20_000 + (std::process::id() % 8_000) as u16;
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let ports: Vec<u16> = (first..first + 4_000).filter(free).take(3).collect();
    ports.try_into().expect("ports are free")
}

fn program() -> Option<PathBuf> {
    // Debian's wrapper in /usr/sbin changes to another user; the server itself is below /usr/lib.
    let versions = fs::read_dir("/usr/lib/rabbitmq/lib").ok()?;
    versions.flatten().map(|entry| entry.path().join("sbin/rabbitmq-server")).find(|path| path.exists())
}

fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).spawn().unwrap_or_else(|why| panic!("{command:?}: {why}"))
}

impl Broker {
    /// Returns a broker that keeps its files in `directory` and does not run yet, or `None` after saying why the test is skipped.
    pub fn new(directory: &Path) -> Option<Broker> {
        let [port, distribution, mapper_port] = free_ports();
        let directory = directory.to_owned();
        has_program(program().is_some(), "rabbitmq-server").then_some(Broker {
            directory,
            port,
            distribution,
            mapper_port,
            server: None,
            mapper: None,
        })
    }

    /// Starts the broker in the network of this thread, and waits until it answers.
    ///
    /// # Panics
    /// If it does not.
    pub fn start(&mut self) {
        // Otherwise the server starts one that outlives it.
        self.mapper.get_or_insert_with(|| {
            spawn(Command::new("epmd").args(["-address", "127.0.0.1", "-port", &self.mapper_port.to_string()]))
        });
        let path = |name: &str| self.directory.join(name);
        fs::write(path("enabled_plugins"), "[].").expect("there is room");
        let mut command = Command::new(program().expect("it is installed"));
        command
            .env("HOME", &self.directory)
            .env("RABBITMQ_NODENAME", format!("ranway{}@localhost", self.port))
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", self.port.to_string())
            .env("RABBITMQ_DIST_PORT", self.distribution.to_string())
            .env("RABBITMQ_MNESIA_BASE", path("mnesia"))
            .env("RABBITMQ_LOG_BASE", path("log"))
            .env("RABBITMQ_PID_FILE", path("pid"))
            .env("RABBITMQ_CONFIG_FILE", path("rabbitmq"))
            .env("RABBITMQ_CONF_ENV_FILE", path("environment"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", path("enabled_plugins"))
            .env("ERL_EPMD_PORT", self.mapper_port.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1");
        self.server = Some(spawn(&mut command));
        let start = Instant::now();
        while !self.answers() {
            assert!(start.elapsed() < TEST_TIMEOUT, "the broker did not start; logs: {}", self.logs());
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
        stream.write_all(GREETING).is_ok() && stream.read_exact(&mut [0]).is_ok()
    }

    fn logs(&self) -> String {
        let files = fs::read_dir(self.directory.join("log")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_to_string(file.path()).ok()).collect()
    }

    /// Returns the URL; the user is `guest`, whom clients assume.
    pub fn url(&self) -> String {
        format!("amqp://127.0.0.1:{}/%2f", self.port)
    }

    /// Kills the broker, which says no goodbye.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.server.take() {
            // The server is a script that has started others.
            let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
            let _ = child.wait();
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
        if let Some(mut mapper) = self.mapper.take() {
            let _ = mapper.kill();
            let _ = mapper.wait();
        }
    }
}
