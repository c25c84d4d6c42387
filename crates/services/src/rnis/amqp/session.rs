//! A connection to a broker: bytes between a socket, with or without TLS, and the protocol.

use super::broker::Broker;
use rnis::amqp::{Client, Event, Fault, Role, ShortText};
use std::fmt;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

/// The exchange of reports.
pub(super) const EXCHANGE: &str = "rni";
/// The longest time to connect and to log in, and the longest time for which a broker may take nothing.
const STEP: Duration = Duration::from_secs(5);

/// A socket, with or without TLS.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The reason why a session ended.
pub(super) enum Failure {
    Io(io::Error),
    Protocol(Fault),
    TimedOut(&'static str),
}

impl fmt::Display for Failure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Io(why) if why.kind() == io::ErrorKind::UnexpectedEof => {
                to.write_str("the broker closed the connection")
            }
            Failure::Io(why) => {
                // Some of it may come from a certificate.
                let text: String = why.to_string().chars().filter(|c| !c.is_control()).take(300).collect();
                to.write_str(&text)
            }
            Failure::Protocol(why) => why.fmt(to),
            Failure::TimedOut(what) => write!(to, "the broker {what} within {} s", STEP.as_secs()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(why: io::Error) -> Failure {
        Failure::Io(why)
    }
}

/// What a session has waited for.
pub(super) enum Happened {
    Read(io::Result<usize>),
    /// A heartbeat is due.
    Beat,
    /// The broker has been silent for two intervals of heartbeats (section 4.2.7).
    Silence,
}

/// A session whose setup is complete.
pub(super) struct Session {
    stream: Box<dyn Stream>,
    pub(super) client: Client,
    buffer: Box<[u8]>,
    heartbeat: Option<Duration>,
    next_beat: Instant,
    heard: Instant,
}

impl Session {
    /// Connects and sets up everything for a role.
    pub(super) async fn open(broker: &Broker, role: Role) -> Result<Session, Failure> {
        let opened = timeout(STEP, async {
            let stream = TcpStream::connect((broker.host.as_str(), broker.port)).await?;
            stream.set_nodelay(true)?;
            let stream: Box<dyn Stream> = match &broker.tls {
                None => Box::new(stream),
                Some((connector, name)) => Box::new(connector.connect(name.clone(), stream).await?),
            };
            let exchange = ShortText::new(EXCHANGE).unwrap_or_default();
            let now = Instant::now();
            let mut session = Session {
                stream,
                client: Client::new(broker.login.clone(), role, exchange),
                buffer: vec![0; 16 << 10].into(),
                heartbeat: None,
                next_beat: now,
                heard: now,
            };
            loop {
                match session.next() {
                    Some(Ok(Event::Ready { heartbeat })) => {
                        session.heartbeat = heartbeat;
                        (session.next_beat, session.heard) = (Instant::now(), Instant::now());
                        session.flush().await?;
                        return Ok(session);
                    }
                    Some(Ok(_)) => {}
                    Some(Err(why)) => {
                        // It may be waiting for the confirmation of its close.
                        let _ = session.flush().await;
                        return Err(why);
                    }
                    None => {
                        session.flush().await?;
                        let read = session.stream.read(&mut session.buffer).await;
                        session.receive(read)?;
                    }
                }
            }
        });
        opened.await.unwrap_or(Err(Failure::TimedOut("does not answer")))
    }

    /// Returns the next event of what has been received.
    pub(super) fn next(&mut self) -> Option<Result<Event, Failure>> {
        self.client.poll().map_err(Failure::Protocol).transpose()
    }

    /// Waits for bytes of the broker, or for the time of a heartbeat. Nothing is lost if the future is dropped.
    pub(super) async fn wait(&mut self) -> Happened {
        let (next_beat, silence) = match self.heartbeat {
            Some(interval) => (Some(self.next_beat), Some(self.heard + 2 * interval)),
            None => (None, None),
        };
        let until = async |at: Option<Instant>| match at {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        };
        tokio::select! {
            read = self.stream.read(&mut self.buffer) => Happened::Read(read),
            () = until(silence) => Happened::Silence,
            () = until(next_beat) => Happened::Beat,
        }
    }

    /// Takes in what has happened.
    pub(super) async fn settle(&mut self, happened: Happened) -> Result<(), Failure> {
        match happened {
            Happened::Read(read) => self.receive(read),
            Happened::Beat => {
                self.client.beat();
                self.next_beat = Instant::now() + self.heartbeat.unwrap_or(STEP) / 2;
                self.flush().await
            }
            Happened::Silence => Err(Failure::Io(io::Error::new(io::ErrorKind::TimedOut, "the broker is silent"))),
        }
    }

    fn receive(&mut self, read: io::Result<usize>) -> Result<(), Failure> {
        let length = read?;
        if length == 0 {
            return Err(Failure::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        self.heard = Instant::now();
        self.client.receive(&self.buffer[..length]);
        Ok(())
    }

    /// Sends what the client has for the broker.
    pub(super) async fn flush(&mut self) -> Result<(), Failure> {
        let output = self.client.output();
        if output.is_empty() {
            return Ok(());
        }
        let sent = timeout(STEP, async {
            self.stream.write_all(output).await?;
            self.stream.flush().await
        });
        sent.await.map_err(|_| Failure::TimedOut("takes nothing"))??;
        output.clear();
        Ok(())
    }
}
