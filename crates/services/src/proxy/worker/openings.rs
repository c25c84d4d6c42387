//! What a worker does with connections whose client's handshake is not complete.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use netio::sys;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt;

use super::super::book::{Ends, LATE, Place, Reason};
use super::super::flow::Flow;
use super::super::label::set_priority;
use super::super::listen::{connect_as, control};
use super::super::liveness::Liveness;
use super::super::opening::{FIRST_HANDSHAKE, HANDSHAKE, Opening};
use super::super::relay::Direction;
use super::super::samples::Sampled;
use super::super::syn::Syn;
use super::{Connection, End, INTEREST, OPENING, Phase, SWEEP, TCP_CLOSE, Worker, is_exhaustion};

impl Worker {
    /// Begins to connect to the server of a SYN.
    pub(super) fn connect(&mut self, syn: Syn, place: Place) {
        let settings = self.shared.settings.get();
        // A leg of an earlier connection still needs what comes for these ends; this one will have another port.
        if !self.shared.hall.book.has_left(&syn.ends) {
            self.shared.hall.injector.announce(syn.ends);
        }
        let outgoing = match connect_as(&settings, &syn) {
            Ok(outgoing) => outgoing,
            Err(error) => {
                let is_want = Errno::from_io_error(&error).is_some_and(is_exhaustion);
                if is_want {
                    self.on_exhausted();
                }
                return self.let_pass(&syn, place, if is_want { Reason::Exhausted } else { Reason::Refused });
            }
        };
        if !outgoing.same_port {
            self.shared.counters.other_port.fetch_add(1, Relaxed);
        }
        self.generation = (self.generation + 1) & 0x7fff_ffff;
        let generation = self.generation;
        let opening =
            Opening { syn, place, outgoing: outgoing.socket, is_connected: false, since: self.now, generation };
        let ends = opening.place.ends();
        let key = self.openings.insert(opening);
        self.by_ends.insert(ends, key);
        let token = EventData::new_u64(OPENING | u64::from(generation) << 32 | key as u64);
        if epoll::add(&self.epoll, &self.openings[key].outgoing, token, EventFlags::OUT | EventFlags::ET).is_err() {
            self.on_exhausted();
            self.give_up(key, Reason::Exhausted);
        }
    }

    /// Lets a SYN pass whose connection the proxy cannot serve, unless its client has an answer already.
    fn let_pass(&self, syn: &Syn, place: Place, reason: Reason) {
        let hall = &self.shared.hall;
        match reason {
            Reason::Silent => self.shared.counters.connect_timeouts.fetch_add(1, Relaxed),
            _ => self.shared.counters.connect_failed.fetch_add(1, Relaxed),
        };
        let is_early = syn.is_early(&self.shared.settings.get().early);
        if !is_early {
            hall.book.remember(syn.ends, self.now);
        }
        // After that, the same SYN is a stranger.
        drop(place);
        if !is_early {
            hall.pass(&syn.held, reason);
        }
    }

    fn remove_opening(&mut self, key: usize) -> Opening {
        let opening = self.openings.remove(key);
        self.by_ends.remove(&opening.place.ends());
        opening
    }

    fn give_up(&mut self, key: usize, reason: Reason) {
        let Opening { syn, place, outgoing, .. } = self.remove_opening(key);
        drop(outgoing);
        self.let_pass(&syn, place, reason);
    }

    /// Lets a connection pass if its server has not answered.
    pub(super) fn give_up_waiting(&mut self, ends: Ends) {
        if let Some(&key) = self.by_ends.get(&ends)
            && !self.openings[key].is_connected
        {
            self.give_up(key, Reason::Refused);
        }
    }

    /// Lets connections pass whose client has no answer yet, and ends those that it does not get on with.
    pub(in crate::proxy) fn forsake(&mut self) {
        for key in self.openings.iter().map(|(key, _)| key).collect::<Vec<usize>>() {
            if self.openings[key].is_connected {
                drop(self.remove_opening(key));
                self.shared.counters.reset.fetch_add(1, Relaxed);
            } else {
                self.give_up(key, Reason::Closed);
            }
        }
    }

    /// The server of a connection without a client has answered.
    pub(super) fn on_opening(&mut self, token: u64, flags: EventFlags) {
        let key = (token & 0xffff_ffff) as usize;
        let now = self.now;
        let Some(opening) = self.openings.get_mut(key) else { return };
        if OPENING | u64::from(opening.generation) << 32 | key as u64 != token {
            return;
        }
        // Without an error, room to write means that it is connected.
        let has_failed =
            flags.contains(EventFlags::ERR) || !matches!(sockopt::socket_error(&opening.outgoing), Ok(Ok(())));
        if has_failed && !opening.is_connected {
            let ends = opening.place.ends();
            self.shared.hall.book.refuses(ends, now);
            return self.give_up(key, Reason::Refused);
        }
        if has_failed || opening.is_connected || !flags.contains(EventFlags::OUT) {
            // Its client learns that as soon as it has one.
            return;
        }
        // From now on its packets are as any others. It cannot fail.
        let _ = set_priority(&opening.outgoing, 0);
        opening.is_connected = true;
        self.shared.counters.samples.handshakes.add(now.saturating_duration_since(opening.since));
        opening.since = now;
        if !opening.syn.is_early(&self.shared.settings.get().early) {
            opening.place.deliver();
            self.shared.hall.deliver(&opening.syn);
        }
    }

    /// A client begins a connection from the port of one that there is. If that one is over for the client, the new one is as any
    /// other; otherwise its socket answers (RFC 5961, section 4).
    pub(super) fn check(&mut self, syn: Syn) {
        let found = self.joined.get(&syn.ends).copied();
        let is_over = found.is_none_or(|key| {
            sys::tcp_info(self.connections[key].flow.legs()[0]).is_ok_and(|info| info.state == TCP_CLOSE)
        });
        if !is_over {
            return self.shared.hall.deliver(&syn);
        }
        if let Some(key) = found {
            self.fail(key, 0, None);
        }
        self.shared.hall.ask_again(syn);
    }

    /// Joins a client whose handshake is complete with its server.
    pub(super) fn join(&mut self, ends: Ends, accepted: OwnedFd) {
        // If it is gone, closing resets the client.
        let Some(&key) = self.by_ends.get(&ends) else { return };
        let Opening { syn, place, outgoing, is_connected, since, generation } = self.remove_opening(key);
        let settings = &*self.shared.settings.get();
        // The kernel's default is as good.
        let _ = control(accepted.as_fd(), settings, syn.side, syn.held.mark);
        self.shared.hall.admitted.accepted[syn.side as usize].fetch_add(1, Relaxed);
        let flow = Flow::new(syn.side, ends, [accepted, outgoing], settings, syn.held.mark, self.now);
        let flow = Arc::new(flow.between(syn.interfaces));
        self.opened += 1;
        let id = self.opened;
        let key = self.connections.insert(Connection {
            flow: Arc::clone(&flow),
            id,
            place,
            directions: [(); 2].map(|()| Direction::new(!settings.is_tuned())),
            sizes: Default::default(),
            liveness: Liveness::default(),
            phase: if is_connected { Phase::Open } else { Phase::Connecting },
            generation,
            queued: false,
            active: if is_connected { self.now } else { since },
            sampled: Sampled::default(),
        });
        self.joined.insert(ends, key);
        self.shared.registry.insert(id, &flow);
        if is_connected {
            self.on_established(key);
        }
        let [client, server] = flow.legs();
        let token = |leg| EventData::new_u64(self.token(key) | leg);
        let added = epoll::add(&self.epoll, client, token(0), INTEREST);
        // It tells at once what the leg has had to tell before.
        if added.and_then(|()| epoll::modify(&self.epoll, server, token(1), INTEREST)).is_err() {
            self.on_exhausted();
            self.end(key, End::ConnectFailed);
        }
    }

    /// Ends what took too long. The last time was `since` ago.
    pub(super) fn sweep_openings(&mut self, connect_timeout: Duration, since: Duration) {
        let over = |opening: &Opening| {
            let timeout = match (opening.is_connected, opening.place.is_proven()) {
                (false, _) => connect_timeout,
                (true, false) => FIRST_HANDSHAKE,
                (true, true) => HANDSHAKE,
            };
            self.now.saturating_duration_since(opening.since) >= timeout
        };
        for (_, opening) in &mut self.openings {
            if opening.is_connected && self.now.saturating_duration_since(opening.since) >= LATE {
                opening.place.is_late(self.now);
            }
        }
        let over: Vec<usize> = self.openings.iter().filter(|(_, opening)| over(opening)).map(|(key, _)| key).collect();
        for key in over {
            if self.openings[key].is_connected {
                // The client does not go on with its handshake. Its server learns that it is gone.
                let opening = self.remove_opening(key);
                // Unless it was the proxy that did not hear it, because it stood still.
                if since < 3 * SWEEP {
                    opening.place.is_unheard(self.now);
                }
                self.shared.counters.reset.fetch_add(1, Relaxed);
            } else {
                self.give_up(key, Reason::Silent);
            }
        }
    }
}
