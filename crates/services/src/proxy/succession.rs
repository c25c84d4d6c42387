//! What a proxy does to give its connections to another process, or to take them; see [`super::handover`].

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use netio::Error;
use netio::reservation::Reservation;

use super::handover::{Due, Inheritance, Offer};
use super::listen::Listener;
use super::worker::Worker;
use super::{Proxy, thread};

impl Proxy {
    /// Looks after a process that wants to go on with the connections. Call it as often as [`Proxy::tick`]. Returns whether it is time
    /// for [`Proxy::hand_over`].
    ///
    /// # Errors
    /// That process has given up, and the proxy goes on.
    pub fn look_at_heir(&mut self) -> Result<bool, Error> {
        let Proxy { testament, plan, interfaces, settings, orders, hall, reservations, .. } = self;
        let Some(testament) = testament else { return Ok(false) };
        let offer = || {
            let offer =
                Offer::new(plan.slot(), interfaces, settings.get().port, &orders.settings, hall.listeners.len());
            let listeners = hall.listeners.iter().map(Listener::descriptor);
            (offer, listeners.chain(reservations.iter().map(Reservation::descriptor)).collect())
        };
        match testament.look(Instant::now(), hall.book.half_open(), offer) {
            Due::Nothing => Ok(false),
            Due::Ready => {
                self.gate.set_draining(true);
                Ok(false)
            }
            Due::HandOver => Ok(true),
            Due::GaveUp(error) => {
                self.gate.set_draining(false);
                Err(error)
            }
        }
    }

    /// Gives the connections to the process that waits for them. Returns how many there were. Drop the proxy then: they stay. The
    /// other process hears of that, and takes what else this one has, such as the address of the metrics, once this process has ended.
    ///
    /// # Errors
    /// The other process has not taken them, and the proxy goes on, without a governor.
    pub fn hand_over(&mut self) -> Result<u64, Error> {
        self.end_control();
        self.stop_threads();
        let admission = self.admission.take().and_then(|thread| thread.join().ok()?);
        let threads = self.workers.iter_mut().filter_map(|running| running.thread.take());
        let mut workers: Vec<Worker> = threads.filter_map(|thread| thread.join().ok()?).collect();
        workers.iter_mut().for_each(Worker::forsake);
        self.set_heir(true);
        let handed = match &mut self.testament {
            Some(testament) => testament.hand_over(&self.hall.book.passed(), &workers),
            None => Err(Error::Missing("nobody waits for them".into())),
        };
        match handed {
            Ok((count, line)) => {
                // The other one has them by now.
                self.orders.settings.clear();
                let _ = self.guardian.order(&self.orders);
                self.workers.iter().for_each(|running| running.shared.registry.clear());
                self.handed = Some(line);
                Ok(count)
            }
            Err(error) => {
                self.set_heir(false);
                self.hall.stop.store(false, Relaxed);
                for (running, worker) in self.workers.iter_mut().zip(workers) {
                    running.shared.stop.store(false, Relaxed);
                    let name = format!("proxy-{}", running.shared.number);
                    running.thread = Some(thread::start(&name, move || Some(worker.run()))?);
                }
                if let Some(admission) = admission {
                    self.admission = Some(thread::start("proxy-admission", move || Some(admission.run()))?);
                }
                self.gate.set_draining(false);
                Err(error)
            }
        }
    }

    /// Says whether another proxy goes on with the listeners.
    fn set_heir(&mut self, has_heir: bool) {
        self.orders.has_heir = has_heir;
        // A guardian that somebody has killed is replaced in the next turn.
        let _ = self.guardian.order(&self.orders);
    }

    /// Goes on with the connections of another process, by workers that do not run yet.
    ///
    /// # Errors
    /// The other process goes on.
    pub(super) fn inherit(&mut self, left: &Inheritance, workers: &mut [Worker]) -> Result<(), Error> {
        let book = Arc::clone(&self.hall.book);
        let note = |ends, ago| {
            let now = Instant::now();
            book.remember(ends, now.checked_sub(ago).unwrap_or(now));
        };
        let mut turn = (0..workers.len()).cycle();
        let count = left.take(note, |record, descriptors, bytes| {
            let worker = turn.next().ok_or_else(|| Error::Missing("there is no worker".into()))?;
            workers[worker].adopt(record, descriptors, bytes)
        })?;
        // Whichever process is killed now, somebody restores the settings; the other one sees to it that they stay.
        let own = self.orders.settings.len();
        self.orders.settings.extend(left.settings());
        let _ = self.guardian.order(&self.orders);
        if let Err(error) = left.confirm() {
            self.orders.settings.truncate(own);
            let _ = self.guardian.order(&self.orders);
            return Err(error);
        }
        self.inherited = Some(count);
        // A guardian that somebody has killed is replaced in the next turn.
        let _ = self.guardian.watch(&self.hall.listeners);
        self.set_heir(false);
        let settings = self.settings.get();
        // What the listeners were, they can be.
        self.hall.listeners.iter().for_each(|listener| drop(listener.prepare(&settings)));
        Ok(())
    }

    /// The number of connections that another process had before; `None` if there was none.
    pub fn inherited(&self) -> Option<u64> {
        self.inherited
    }
}
