//! A connection of RMBT.

use std::io::IoSlice;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use nix::poll::PollFlags;
use observe::kernel::Way;
use observe::progress::Samples;
use speedtest::http;
use speedtest::rmbt::Client;
use speedtest::rmbt::chunks::End;
use speedtest::rmbt::client::{Event, Need};
use speedtest::rmbt::server::{Framing, Transfer};
use units::{Span, Time};

use crate::fault::Fault;
use crate::flow::Shared;
use crate::line::Line;
use crate::plan::{Amount, Target};
use crate::upgrade::upgrade;

/// Bytes of one read.
const BLOCK: usize = 256 << 10;
/// Bytes of one write. The receiver reads what is still in the processor's caches; a whole burst is not.
const WRITE: usize = 128 << 10;
/// Bursts that are sent before the server's reports are read, if the kernel takes that many.
const BURSTS: u32 = 32;
/// Chunks of the first transfer of a warm connection; each further one has twice as many.
const FIRST_CHUNKS: u32 = 4;
/// Reads before the end of the measurement is looked for.
const READS: u32 = 256;
/// Size of chunks: large enough to cost little, and small enough that the last one does not prolong a slow transfer by much.
const CHUNK: usize = 64 << 10;
/// The same in a local network, whose round trips are shorter than [`NEAR`].
const LOCAL_CHUNK: usize = 256 << 10;
const NEAR: Duration = Duration::from_millis(2);
/// Time for a server to begin to speak.
const GREETING: Duration = Duration::from_secs(2);
/// Where servers of RMBT inside HTTP are.
const PATH: &str = "/rmbt";
/// How long a download may overrun its time: its end waits behind the data in the queues.
const GRACE: Span = Span::from_secs(15);
/// How long an upload may overrun its time, which may be longer: what was written waits in the queues and the kernel's buffer.
const LEAST_GRACE_UP: Span = Span::from_secs(300);
/// How long the bytes of a transfer may stand still while the server says something.
const STANDSTILL: Span = Span::from_secs(30);
/// Time for which a connection is warmed up.
const WARM: Span = Span::from_secs(2);

/// A connection that the server has admitted.
pub(crate) struct Rmbt {
    line: Line,
    client: Client,
    buffer: Vec<u8>,
    /// When a transfer by time is given up.
    limit: Option<Time>,
}

/// When a transfer last moved on.
#[derive(Debug)]
struct Progress {
    /// Bytes that this end has moved, and that the server says it has received.
    bytes: (u64, u64),
    at: Time,
}

impl Progress {
    /// Takes note of the bytes so far.
    ///
    /// # Errors
    /// They have not changed for too long.
    fn check(&mut self, bytes: (u64, u64), now: Time) -> Result<(), Fault> {
        if bytes != self.bytes {
            *self = Progress { bytes, at: now };
        }
        if now.saturating_since(self.at) <= STANDSTILL {
            return Ok(());
        }
        Err(Fault::Protocol(format!("the server answers, but no data has moved for {} s", STANDSTILL.as_secs_f64())))
    }
}

/// Replaces the moment at which a fault says that the connection was closed.
fn closed(at: &'static str) -> impl Fn(Fault) -> Fault {
    move |fault| if let Fault::Closed(_) = fault { Fault::Closed(at) } else { fault }
}

impl Rmbt {
    /// Waits until the server admits the connection. A server that does not begin to speak expects HTTP first; `inside_http`
    /// remembers that.
    pub(crate) fn admit(line: Line, target: &Target, inside_http: &OnceLock<bool>) -> Result<Rmbt, Fault> {
        let client = Client::new(&target.token, Framing::Plain);
        let mut rmbt = Rmbt { line, client, buffer: vec![0; BLOCK], limit: None };
        let inside = match inside_http.get() {
            Some(&known) => known,
            None => {
                let silent = !rmbt.is_greeted().map_err(closed("before it said anything"))?;
                *inside_http.get_or_init(|| silent)
            }
        };
        if inside {
            let rest = upgrade(&mut rmbt.line, &http::request_rmbt(&target.name, PATH), None, None)?;
            rmbt.take(&rest)?;
        }
        rmbt.drive(None, &[]).map_err(closed("after it was sent the token, which may be made with another key"))?;
        match rmbt.client.need() {
            Need::Command => Ok(rmbt),
            _ => Err(Fault::Closed("before it admitted the measurement")),
        }
    }

    /// Waits for the server's first words.
    fn is_greeted(&mut self) -> Result<bool, Fault> {
        let (start, limit) = (Instant::now(), GREETING.max(3 * self.line.handshake));
        while start.elapsed() < limit {
            let length = self.line.read(&mut self.buffer)?;
            if length > 0 {
                let first = self.buffer[..length].to_vec();
                return self.take(&first).map(|()| true);
            }
            self.line.wait_once(PollFlags::POLLIN, None)?;
        }
        Ok(false)
    }

    fn take(&mut self, input: &[u8]) -> Result<(), Fault> {
        self.client.handle_input(input, self.line.now()).map_err(|why| Fault::Protocol(why.to_string()))
    }

    pub(crate) fn line(&mut self) -> &mut Line {
        &mut self.line
    }

    /// Measures a round trip of a request and its answer. Returns it, and that of the answer and its confirmation as the server
    /// measured it.
    pub(crate) fn ping(&mut self) -> Result<(Span, Span), Fault> {
        self.client.ping(self.line.now());
        self.drive(None, &[])?
            .into_iter()
            .find_map(|event| match event {
                Event::Pinged { client, server } => Some((client, server)),
                _ => None,
            })
            .ok_or_else(|| Fault::Protocol("the server does not answer pings".into()))
    }

    /// Transfers data until its window is open: twice as much each time, for two seconds or until a transfer takes half as long.
    pub(crate) fn warm(&mut self, way: Way, random: &[u8]) -> Result<(), Fault> {
        let start = self.line.now();
        let mut chunks = FIRST_CHUNKS;
        loop {
            let before = self.line.now();
            match way {
                Way::Down => self.client.get_chunks(chunks, None, before),
                Way::Up => self.client.put(End::Chunks(chunks.into()), None, false, before),
            }
            transferred(self.drive(None, random)?)?;
            let now = self.line.now();
            if now.saturating_since(start) >= WARM || now.saturating_since(before) * 2 >= WARM {
                return Ok(());
            }
            chunks = chunks.saturating_mul(2).min(speedtest::rmbt::MOST_CHUNKS);
        }
    }

    /// Transfers data. Returns the samples of an upload as the server reports them, those of a download as they arrived here, and the
    /// time of their beginning.
    pub(crate) fn transfer(
        &mut self,
        amount: Amount,
        shared: &Shared,
        random: &[u8],
    ) -> Result<(Time, Samples), Fault> {
        if shared.way == Way::Up {
            // Without stamps the host's queue is unknown, and nothing else.
            let _ = self.line.stamp();
        }
        let start = self.line.now();
        let (smallest, largest) = self.client.chunk_range();
        let usual = if self.line.handshake < NEAR { LOCAL_CHUNK } else { CHUNK };
        let usual = Some(usual.clamp(smallest, largest.max(smallest)));
        match (shared.way, amount) {
            (Way::Up, Amount::Time(span)) => {
                self.client.put(End::After(span), usual, true, start);
                self.limit = Some(start + span + span.max(LEAST_GRACE_UP));
            }
            (Way::Up, Amount::Bytes(bytes)) => {
                let chunk = bytes.div_ceil(2).clamp(speedtest::rmbt::SMALLEST_CHUNK as u64, CHUNK as u64) as usize;
                let chunk = chunk.min(largest);
                self.client.put(End::Chunks(bytes.div_ceil(chunk as u64)), Some(chunk), true, start);
            }
            (Way::Down, Amount::Time(span)) => {
                let seconds = span.as_nanos().div_ceil(1_000_000_000).min(30) as u32;
                self.client.get_time(seconds, usual, start);
                self.limit = Some(start + Span::from_secs(seconds.into()) + GRACE);
            }
            (Way::Down, Amount::Bytes(bytes)) => {
                let most = u64::from(speedtest::rmbt::MOST_CHUNKS);
                let chunk = bytes.div_ceil(most).max(CHUNK as u64).min(largest as u64);
                let count = bytes.div_ceil(chunk).min(most) as u32;
                self.client.get_chunks(count, Some(chunk as usize), start);
            }
        }
        shared.begin(start);
        let events = self.drive(Some(shared), random);
        self.limit = None;
        shared.end(self.line.now());
        let transfer = transferred(events?)?;
        if shared.way == Way::Up {
            shared.confirmed.fetch_max(transfer.bytes, Relaxed);
        }
        Ok((start, transfer.samples))
    }

    /// Ends the connection.
    pub(crate) fn quit(mut self) {
        self.client.quit();
        let _ = self.drive(None, &[]);
    }

    /// Does what the client needs until it needs a command. Returns what has happened.
    fn drive(&mut self, shared: Option<&Shared>, random: &[u8]) -> Result<Vec<Event>, Fault> {
        let (mut events, mut received) = (Vec::new(), Ok(()));
        let mut progress = Progress { bytes: (0, 0), at: self.line.now() };
        loop {
            events.extend(std::iter::from_fn(|| self.client.poll_event()));
            if let Some(Event::Refused(why)) = events.iter().find(|event| matches!(event, Event::Refused(_))) {
                return Err(Fault::Refused(why.clone()));
            }
            // What the server has said before it closed the connection comes first.
            received?;
            let now = self.line.now();
            if self.limit.is_some_and(|limit| now > limit) {
                let way = shared.map_or(Way::Down, |shared| shared.way);
                return Err(Fault::Protocol(format!("the server does not end the {}", way.name())));
            }
            if let Some(shared) = shared {
                progress.check((shared.moved.load(Relaxed), shared.confirmed.load(Relaxed)), now)?;
            }
            let has_output = !self.client.output().is_empty();
            if has_output {
                let sent = self.line.write(&[IoSlice::new(self.client.output())], None)?;
                self.client.consume_output(sent);
            }
            match self.client.need() {
                Need::Command | Need::Close if self.client.output().is_empty() => return Ok(events),
                Need::Send if self.client.output().is_empty() => {
                    received = self.send(shared, random);
                    continue;
                }
                _ => {
                    let blocked = !self.client.output().is_empty();
                    let wanted = if blocked { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN };
                    self.line.wait(wanted, shared)?;
                    received = self.receive(shared);
                    continue;
                }
            }
        }
    }

    /// Sends bursts until the kernel's buffer is full, then waits, and reads in between.
    fn send(&mut self, shared: Option<&Shared>, random: &[u8]) -> Result<(), Fault> {
        for _ in 0..BURSTS {
            let burst = self.client.burst(random, self.line.now());
            if burst.is_empty() {
                return Ok(());
            }
            let sent = self.line.write(within(&burst, WRITE), shared)?;
            drop(burst);
            if sent == 0 {
                self.line.wait(PollFlags::POLLIN | PollFlags::POLLOUT, shared)?;
                break;
            }
            self.client.sent(sent);
            if let Some(shared) = shared {
                shared.moved.fetch_add(sent as u64, Relaxed);
            }
        }
        self.receive(shared)
    }

    fn receive(&mut self, shared: Option<&Shared>) -> Result<(), Fault> {
        for _ in 0..READS {
            // Of large chunks only the last byte matters; TLS has to decrypt the others, too.
            let skippable = self.client.skippable().filter(|_| !self.line.is_tls());
            let length = match skippable {
                Some(most) if most > 0 => {
                    let length = self.line.discard(most)?;
                    self.client.skipped(length, self.line.now());
                    length
                }
                _ => {
                    let most = if skippable.is_some() { 1 } else { self.buffer.len() };
                    let length = self.line.read(&mut self.buffer[..most])?;
                    let (input, now) = (&self.buffer[..length], self.line.now());
                    self.client.handle_input(input, now).map_err(|why| Fault::Protocol(why.to_string()))?;
                    length
                }
            };
            if length == 0 {
                return Ok(());
            }
            if let (Some(shared), Some((_, bytes))) = (shared, self.client.progress()) {
                match shared.way {
                    Way::Down => shared.moved.store(bytes, Relaxed),
                    Way::Up => shared.confirmed.store(bytes, Relaxed),
                }
            }
        }
        Ok(())
    }
}

/// Returns the first slices with at most `most` bytes together, at least one of them.
fn within<'a, 'b>(slices: &'a [IoSlice<'b>], most: usize) -> &'a [IoSlice<'b>] {
    let mut total = 0;
    let count = slices.iter().take_while(|slice| {
        total += slice.len();
        total <= most
    });
    &slices[..count.count().max(1).min(slices.len())]
}

fn transferred(events: Vec<Event>) -> Result<Transfer, Fault> {
    let found = events.into_iter().find_map(|event| match event {
        Event::Transferred(transfer) => Some(transfer),
        _ => None,
    });
    found.ok_or(Fault::Closed("before the transfer was complete"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_goes_on_as_long_as_either_end_moves_data() {
        let at = |secs: u64| Time::ZERO + Span::from_secs(secs);
        let mut progress = Progress { bytes: (0, 0), at: at(100) };
        for (secs, bytes) in [(101, (5, 0)), (130, (5, 0)), (131, (5, 5)), (160, (5, 5)), (161, (6, 5)), (191, (6, 5))]
        {
            assert!(progress.check(bytes, at(secs)).is_ok(), "{secs}");
        }
        let fault = progress.check((6, 5), at(192)).expect_err("31 s without data").to_string();
        assert_eq!(fault, "the server answers, but no data has moved for 30 s");
    }
}
