//! AMQP 0-9-1 as far as reports need it: a client that publishes or consumes on one channel, without I/O.
//!
//! Calling order: [`Client::new`]; whatever is in [`Client::output`] goes to the broker, after every call; bytes of the
//! broker go to [`Client::receive`], after which [`Client::poll`] is called until it returns `None`. After
//! [`Event::Ready`], reports may be published ([`Client::publish`], while [`Client::may_publish`]). [`Client::beat`] is
//! called at half of the interval that `Ready` gives. A [`Fault`] ends the connection.
//!
//! Nothing that a broker or a publisher sends is interpreted beyond what is used: field tables and the properties of messages are
//! skipped by their length, so they cannot be too deep or too many. A frame has at most [`MOST_FRAME`] bytes, a message
//! [`LONGEST_MESSAGE`]; the rest of a longer one is dropped as it arrives.
//!
//! Source: AMQP 0-9-1, sections 2.2 (connections), 2.3 (format of frames), 4.2 (grammar), and the reference of its methods.
//! Deviations: only the mechanism PLAIN; one channel; no transactions.

mod fault;
mod frame;
mod method;

use crate::feed::LONGEST_MESSAGE;
use core::fmt;
use core::time::Duration;
pub use fault::Fault;
use frame::{Frame, Writer, next_frame};
pub use frame::{MOST_FRAME, ShortText};
use method::{Deliver, Method};

/// What a client sends first (section 4.2.2).
const PROTOCOL: &[u8] = b"AMQP\0\0\x09\x01";
/// The channel that is used.
const CHANNEL: u16 = 1;
/// The longest interval between heartbeats that the client agrees to, in seconds. Old reports are worth little.
const HEARTBEAT: u16 = 15;
/// Messages that the broker sends ahead, and messages that wait there for this consumer.
const PREFETCH: u16 = 256;
/// See [`PREFETCH`].
const QUEUE_LENGTH: i32 = 4096;
/// Messages that are acknowledged together, at most.
const MOST_UNACKNOWLEDGED: u32 = 64;

/// Who logs in, and where.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user.
    pub user: ShortText,
    /// The password.
    pub password: ShortText,
    /// The virtual host.
    pub vhost: ShortText,
}

impl fmt::Debug for Login {
    /// Leaves out the password.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Login").field("user", &self.user).field("vhost", &self.vhost).finish_non_exhaustive()
    }
}

/// What the client does on its exchange, a topic exchange that it declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It publishes.
    Publish,
    /// It consumes what has a topic that matches this pattern, from a queue of its own.
    Consume(&'static str),
}

/// What has happened.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// The login was accepted, and everything is set up. Each side sends something in each of these intervals, if there are any.
    Ready {
        /// The interval.
        heartbeat: Option<Duration>,
    },
    /// A message arrived.
    Message(Vec<u8>),
    /// A message arrived that is longer than [`LONGEST_MESSAGE`]; it was dropped.
    TooLong,
}

/// What the client waits for, in the order in which a connection is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Tune,
    Open,
    Channel,
    Exchange,
    Queue,
    Bind,
    Qos,
    Consume,
    Ready,
}

/// A message that is arriving.
#[derive(Debug)]
enum Arriving {
    Nothing,
    Header { tag: u64 },
    Body { tag: u64, left: u64, body: Option<Vec<u8>> },
}

/// A connection to a broker. See the module for the calling order.
#[derive(Debug)]
pub struct Client {
    login: Login,
    role: Role,
    exchange: ShortText,
    state: State,
    /// What the broker has sent, of which the first `used` bytes were taken.
    input: Vec<u8>,
    used: usize,
    output: Vec<u8>,
    /// The longest frame that the broker accepts.
    most_frame: usize,
    heartbeat: u16,
    queue: ShortText,
    arriving: Arriving,
    /// The last message that is not acknowledged yet, and how many are not.
    unacknowledged: Option<(u64, u32)>,
    /// The broker has asked for a pause (`channel.flow`).
    is_paused: bool,
}

impl Client {
    /// Begins a connection for a role on an exchange.
    pub fn new(login: Login, role: Role, exchange: ShortText) -> Client {
        Client {
            login,
            role,
            exchange,
            state: State::Start,
            input: Vec::new(),
            used: 0,
            output: PROTOCOL.to_vec(),
            most_frame: MOST_FRAME,
            heartbeat: 0,
            queue: ShortText::default(),
            arriving: Arriving::Nothing,
            unacknowledged: None,
            is_paused: false,
        }
    }

    /// Takes in bytes of the broker.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Returns the bytes that go to the broker. The caller removes what it has sent.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Returns the next event, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// The connection cannot go on. What is in the output still goes to the broker.
    pub fn poll(&mut self) -> Result<Option<Event>, Fault> {
        let input = core::mem::take(&mut self.input);
        let mut rest = &input[self.used..];
        let event = loop {
            if self.state == State::Start && rest.first() == Some(&b'A') {
                // A broker for another version answers with its own protocol header (section 4.2.2).
                break Err(Fault::NotAmqp);
            }
            match next_frame(&mut rest) {
                Ok(Some(frame)) => match self.take(frame) {
                    Ok(None) => {}
                    other => break other,
                },
                Ok(None) => {
                    self.acknowledge();
                    break Ok(None);
                }
                Err(_) if self.state == State::Start => break Err(Fault::NotAmqp),
                Err(fault) => break Err(fault),
            }
        };
        self.used = input.len() - rest.len();
        self.input = input;
        if !matches!(event, Ok(Some(_))) {
            self.input.drain(..self.used);
            self.used = 0;
        }
        event
    }

    /// Returns whether the broker takes messages now.
    pub fn may_publish(&self) -> bool {
        self.state == State::Ready && self.role == Role::Publish && !self.is_paused
    }

    /// Publishes a message that expires after a time, if [`Client::may_publish`].
    pub fn publish(&mut self, topic: &ShortText, body: &[u8], expires: Duration) {
        if !self.may_publish() {
            return;
        }
        let mut method = Writer::method(60, 40);
        method.short(0).text(&self.exchange).text(topic).byte(0);
        method.send(1, CHANNEL, &mut self.output);
        let mut header = Writer::default();
        // Content type, delivery mode (1: not persistent) and expiration, in ms as text (the class basic).
        header.short(60).short(0).long_long(body.len() as u64).short(1 << 15 | 1 << 12 | 1 << 8);
        header.text(&ShortText::of("application/json")).byte(1);
        header.text(&ShortText::of(&expires.as_millis().max(1).to_string()));
        header.send(2, CHANNEL, &mut self.output);
        // The most of a frame is without its head and its end.
        for part in body.chunks(self.most_frame - frame::OVERHEAD) {
            let mut writer = Writer::default();
            writer.bytes(part);
            writer.send(3, CHANNEL, &mut self.output);
        }
    }

    /// Shows the broker that this side is alive.
    pub fn beat(&mut self) {
        Writer::default().send(8, 0, &mut self.output);
    }

    fn take(&mut self, frame: Frame<'_>) -> Result<Option<Event>, Fault> {
        let Frame { kind, channel, payload } = frame;
        match (kind, channel) {
            (8, 0) if payload.is_empty() => Ok(None),
            (1, 0 | CHANNEL) => self.take_method(channel, Method::parse(payload)?),
            (2, CHANNEL) => self.take_header(payload),
            (3, CHANNEL) => self.take_body(payload),
            (1..=3, _) => Err(Fault::Protocol("a frame on a channel that is not open")),
            _ => Err(Fault::Protocol("an unknown frame")),
        }
    }

    fn take_method(&mut self, channel: u16, method: Method) -> Result<Option<Event>, Fault> {
        let is_of_connection = channel == 0;
        if method.is_of_connection() != is_of_connection {
            return Err(Fault::Protocol("a method on the wrong channel"));
        }
        match method {
            Method::ConnectionClose { code, text } => {
                Writer::method(10, 51).send(1, 0, &mut self.output);
                return Err(Fault::Closed { code, text });
            }
            Method::Blocked | Method::Unblocked => return Ok(None),
            _ => {}
        }
        if !is_of_connection && !matches!(self.arriving, Arriving::Nothing) {
            return Err(Fault::Protocol("a method in the middle of a message"));
        }
        match method {
            Method::ChannelClose { code, text } => {
                Writer::method(20, 41).send(1, CHANNEL, &mut self.output);
                return Err(Fault::Closed { code, text });
            }
            Method::Cancel => return Err(Fault::Cancelled),
            Method::Flow { active } => {
                self.is_paused = !active;
                Writer::method(20, 21).byte(u8::from(active)).send(1, CHANNEL, &mut self.output);
                return Ok(None);
            }
            _ => {}
        }
        self.advance(method)
    }

    /// Takes the one method that is due next, and sends what follows it.
    fn advance(&mut self, method: Method) -> Result<Option<Event>, Fault> {
        match (self.state, method) {
            (State::Start, Method::Start { has_plain }) => {
                if !has_plain {
                    return Err(Fault::NoPlain);
                }
                self.start_ok();
                self.state = State::Tune;
            }
            (State::Tune, Method::Tune { most_frame, heartbeat }) => self.tune(most_frame, heartbeat),
            (State::Open, Method::OpenOk) => {
                Writer::method(20, 10).byte(0).send(1, CHANNEL, &mut self.output);
                self.state = State::Channel;
            }
            (State::Channel, Method::ChannelOpenOk) => {
                let mut declare = Writer::method(40, 10);
                declare.short(0).text(&self.exchange).text(&ShortText::of("topic")).byte(0).table(&Writer::default());
                declare.send(1, CHANNEL, &mut self.output);
                self.state = State::Exchange;
            }
            (State::Exchange, Method::ExchangeDeclareOk) => match self.role {
                Role::Publish => return Ok(Some(self.ready())),
                Role::Consume(_) => {
                    let mut arguments = Writer::default();
                    arguments.text(&ShortText::of("x-max-length")).byte(b'I').long(QUEUE_LENGTH.cast_unsigned());
                    arguments.text(&ShortText::of("x-overflow")).byte(b'S').long_text(b"drop-head");
                    let mut declare = Writer::method(50, 10);
                    // Exclusive and deleted automatically.
                    declare.short(0).byte(0).byte(1 << 2 | 1 << 3).table(&arguments);
                    declare.send(1, CHANNEL, &mut self.output);
                    self.state = State::Queue;
                }
            },
            (State::Queue, Method::QueueDeclareOk { queue }) => {
                let Role::Consume(pattern) = self.role else { return Err(Fault::Protocol("an unknown queue")) };
                let mut bind = Writer::method(50, 20);
                bind.short(0).text(&queue).text(&self.exchange).text(&ShortText::of(pattern));
                bind.byte(0).table(&Writer::default());
                bind.send(1, CHANNEL, &mut self.output);
                (self.queue, self.state) = (queue, State::Bind);
            }
            (State::Bind, Method::BindOk) => {
                Writer::method(60, 10).long(0).short(PREFETCH).byte(0).send(1, CHANNEL, &mut self.output);
                self.state = State::Qos;
            }
            (State::Qos, Method::QosOk) => {
                let mut consume = Writer::method(60, 20);
                consume.short(0).text(&self.queue).byte(0).byte(0).table(&Writer::default());
                consume.send(1, CHANNEL, &mut self.output);
                self.state = State::Consume;
            }
            (State::Consume, Method::ConsumeOk) => return Ok(Some(self.ready())),
            // The first messages may precede the answer.
            (State::Consume | State::Ready, Method::Deliver(Deliver { tag })) if self.role != Role::Publish => {
                self.arriving = Arriving::Header { tag };
            }
            _ => return Err(Fault::Protocol("a method that is not due")),
        }
        Ok(None)
    }

    fn ready(&mut self) -> Event {
        self.state = State::Ready;
        let heartbeat = (self.heartbeat > 0).then(|| Duration::from_secs(self.heartbeat.into()));
        Event::Ready { heartbeat }
    }

    fn start_ok(&mut self) {
        let mut capabilities = Writer::default();
        // Without the first, a broker answers a wrong password by closing the connection without a word.
        for name in ["authentication_failure_close", "consumer_cancel_notify"] {
            capabilities.text(&ShortText::of(name)).byte(b't').byte(1);
        }
        let mut properties = Writer::default();
        properties.text(&ShortText::of("product")).byte(b'S').long_text(b"ranway");
        properties.text(&ShortText::of("capabilities")).byte(b'F').table(&capabilities);
        // RFC 4616, section 2.
        let response = [b"\0", self.login.user.as_bytes(), b"\0", self.login.password.as_bytes()].concat();
        let mut start = Writer::method(10, 11);
        start.table(&properties).text(&ShortText::of("PLAIN")).long_text(&response).text(&ShortText::of("en_US"));
        start.send(1, 0, &mut self.output);
    }

    /// Agrees to the lower of both sides' limits, 0 being none (method `tune-ok`).
    fn tune(&mut self, most_frame: u32, heartbeat: u16) {
        if most_frame > 0 {
            // A frame of 4096 bytes is always permitted (section 4.2.3).
            self.most_frame = (most_frame as usize).clamp(4096, MOST_FRAME);
        }
        self.heartbeat = if heartbeat == 0 { HEARTBEAT } else { heartbeat.min(HEARTBEAT) };
        let mut tune = Writer::method(10, 31);
        tune.short(CHANNEL).long(self.most_frame as u32).short(self.heartbeat);
        tune.send(1, 0, &mut self.output);
        let mut open = Writer::method(10, 40);
        open.text(&self.login.vhost).byte(0).byte(0);
        open.send(1, 0, &mut self.output);
        self.state = State::Open;
    }

    fn take_header(&mut self, payload: &[u8]) -> Result<Option<Event>, Fault> {
        let Arriving::Header { tag } = self.arriving else {
            return Err(Fault::Protocol("the header of a message that was not announced"));
        };
        // Class, weight, size; the properties behind them are not used (section 4.2.6.1).
        let size = match payload {
            [0, 60, _, _, rest @ ..] => rest.first_chunk().map(|size| u64::from_be_bytes(*size)),
            _ => None,
        };
        let left = size.ok_or(Fault::Protocol("a header that is too short, or of another class"))?;
        let body = (left <= LONGEST_MESSAGE as u64).then(Vec::new);
        self.arriving = Arriving::Body { tag, left, body };
        Ok(self.complete())
    }

    fn take_body(&mut self, payload: &[u8]) -> Result<Option<Event>, Fault> {
        let Arriving::Body { left, body, .. } = &mut self.arriving else {
            return Err(Fault::Protocol("the body of a message without a header"));
        };
        *left = left.checked_sub(payload.len() as u64).ok_or(Fault::Protocol("a message longer than announced"))?;
        if let Some(body) = body {
            body.extend_from_slice(payload);
        }
        Ok(self.complete())
    }

    /// Returns the message if all of it has arrived.
    fn complete(&mut self) -> Option<Event> {
        let Arriving::Body { tag, left: 0, body } = &mut self.arriving else { return None };
        let (tag, body) = (*tag, body.take());
        self.arriving = Arriving::Nothing;
        let waiting = self.unacknowledged.map_or(0, |(_, waiting)| waiting) + 1;
        self.unacknowledged = Some((tag, waiting));
        if waiting >= MOST_UNACKNOWLEDGED {
            self.acknowledge();
        }
        Some(body.map_or(Event::TooLong, Event::Message))
    }

    /// Acknowledges the messages so far.
    fn acknowledge(&mut self) {
        if let Some((tag, _)) = self.unacknowledged.take() {
            Writer::method(60, 80).long_long(tag).byte(1).send(1, CHANNEL, &mut self.output);
        }
    }
}
