//! What the thread for new connections and the workers share.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::book::{Book, Ends, Place, Reason};
use super::export;
use super::gate::Gate;
use super::listen::Listener;
use super::records::Records;
use super::settings::Current;
use super::syn::{Held, Injector, Syn};

/// What a worker is told.
#[derive(Debug)]
pub(super) enum Message {
    /// Connect to the server of a SYN.
    Connect(Syn, Place),
    /// The client of such a connection has completed its handshake.
    Accepted(Ends, OwnedFd),
    /// The client of a connection that there is begins one again.
    Again(Syn),
    /// Let the SYN of a connection pass whose server has not answered.
    GiveUp(Ends),
}

/// Messages for a worker.
#[derive(Debug, Default)]
pub(super) struct Mailbox(Mutex<VecDeque<Message>>);

impl Mailbox {
    pub(super) fn put(&self, message: Message) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(message);
    }

    pub(super) fn take(&self) -> VecDeque<Message> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Counters of new connections.
#[derive(Debug, Default)]
pub(super) struct Admitted {
    /// By side.
    pub(super) accepted: [AtomicU64; 2],
    /// By reason, in the order of [`Reason::ALL`].
    pub(super) passed: [AtomicU64; Reason::ALL.len()],
    /// SYNs that found no room before they came here. Their clients send them again.
    pub(super) lost: AtomicU64,
    /// Connections to the listener that nobody waits for.
    pub(super) not_ours: AtomicU64,
    /// SYNs that could not be sent on.
    pub(super) failed: AtomicU64,
    /// Bytes of QUIC to UEs and from them, as of a few seconds ago.
    pub(super) quic: [AtomicU64; 2],
}

/// What the thread and the workers share.
#[derive(Debug)]
pub(super) struct Hall {
    pub(super) settings: Arc<Current>,
    pub(super) gate: Arc<Gate>,
    pub(super) book: Arc<Book>,
    pub(super) injector: Injector,
    pub(super) admitted: Admitted,
    pub(super) listeners: Vec<Listener>,
    /// Where what is known of connections goes that have ended, and the counters of flow records.
    pub(super) records: Records,
    pub(super) exports: Arc<export::Counts>,
    /// SYNs to decide about once more.
    pub(super) again: Mutex<Vec<Syn>>,
    /// The number of the thread's waker.
    pub(super) waker: usize,
    /// Whether the proxy has its lease, as of the last beat.
    pub(super) leased: AtomicBool,
    /// How often connections in their handshake were given up together.
    pub(super) forsaken: AtomicU64,
    /// Changes as long as the thread runs, and as long as [`super::Proxy::tick`] is called.
    pub(super) beat: AtomicU64,
    pub(super) ticks: AtomicU64,
    pub(super) stop: AtomicBool,
}

impl Hall {
    /// Lets a SYN pass. That takes no part of the proxy's resources for longer than this call.
    pub(super) fn pass(&self, held: &Held, reason: Reason) {
        self.admitted.passed[reason as usize].fetch_add(1, Relaxed);
        if self.injector.pass(held).is_err() {
            // The client sends it again, and it is remembered that it passes.
            self.admitted.failed.fetch_add(1, Relaxed);
        }
    }

    /// Lets the thread decide about a SYN once more.
    pub(super) fn ask_again(&self, syn: Syn) {
        self.again.lock().unwrap_or_else(PoisonError::into_inner).push(syn);
        self.gate.waker(self.waker).wake();
    }

    /// Gives a SYN to the listener.
    pub(super) fn deliver(&self, syn: &Syn) {
        if self.injector.deliver(syn).is_err() {
            self.admitted.failed.fetch_add(1, Relaxed);
        }
    }
}
