//! What a proxy looks at from time to time, and tells its operator: room, obstacles, rules and routes.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::Proxy;
use super::listen::Listener;
use super::notice::Notice;
use super::obstacles::{Obstacles, State};

/// A connection that has been in its handshake for this long is a reason to look whether packets arrive.
const STUCK: Duration = Duration::from_millis(400);

impl Proxy {
    /// Tells once that the proxy has as many connections as it may have, and once that it has room again.
    pub(super) fn look_at_room(&mut self) {
        let is_full = self.gate.is_shut();
        if std::mem::replace(&mut self.is_full, is_full) == is_full {
            return;
        }
        self.notices.push_back(if is_full {
            let open = self.gate.count();
            Notice::Failed(
                format!("the proxy has {open} connections and takes no more (--max-connections, open files): new ones bypass it")
                    .into(),
            )
        } else {
            Notice::Repaired("the proxy has room again and splits new connections".into())
        });
    }

    /// Gives up connections in their handshake. Those whose client has no answer pass; other clients are strangers to the proxy from
    /// now on, and their server resets them. The thread for new connections listens again.
    pub(super) fn forsake(&self) {
        self.hall.listeners.iter().for_each(Listener::shut);
        self.hall.forsaken.fetch_add(1, Relaxed);
        self.gate.wake_all();
    }

    /// Lets new connections bypass the proxy while something keeps packets from it. Looks also at what takes a run of `ip` if
    /// `in_rules`, and at the counters of packets if connections begin.
    pub(super) fn look_at_obstacles(&mut self, now: Instant, in_rules: bool) {
        let before = self.obstructed.why();
        self.obstructed.by_setting = self.obstacles.in_settings().or_else(Obstacles::in_forwarding);
        // Without the proxy's own rule, others say nothing.
        if in_rules
            && !self.unchecked
            && let Ok(found) = self.obstacles.in_rules()
        {
            self.obstructed.by_routing = found;
        }
        if in_rules {
            // The guardian of a proxy that has handed over may have restored them.
            self.orders.settings.iter().for_each(|setting| drop(setting.change()));
        }
        if std::mem::take(&mut self.rules_changed) {
            self.obstructed.by_ruleset = Obstacles::in_ruleset();
        }
        let mut on_trial = self.gate.is_on_trial();
        if (in_rules || self.hall.book.half_open() > 0 || self.obstructed.somehow.is_some())
            && let Ok((counts, quic)) = self.steering.counts()
        {
            self.hall.admitted.quic.iter().zip(quic).for_each(|(of, bytes)| of.store(bytes, Relaxed));
            let accepted = self.hall.admitted.accepted.iter().map(|count| count.load(Relaxed)).sum();
            let state = self.divergence.look(now, counts, accepted, self.hall.book.handshakes(now, STUCK));
            on_trial = state == State::OnTrial;
            let is_new = matches!(state, State::Missing(_)) && self.obstructed.somehow.is_none();
            if is_new {
                // It may be no firewall but a rule or route that is gone.
                let notice = self.look_at_routes();
                self.notices.extend(notice);
                self.forsake();
            }
            self.obstructed.somehow = match state {
                State::Arriving => None,
                _ => Some(
                    "packets of the proxy's handshakes get lost in this machine, as with a firewall that drops what comes to it or \
                     what it sends: accept new connections in `output`, `lo`, and in `input` what belongs to connections (`ct \
                     state established`) and what has the mark 0x72610000/0xffff0000"
                        .into(),
                ),
            };
        }
        let why = self.obstructed.why();
        let is_shut = why.is_some() && !(on_trial && self.obstructed.known().is_none());
        self.gate.set_obstructed(is_shut, on_trial);
        if why == before {
            return;
        }
        self.notices.push_back(match why {
            Some(why) => Notice::Failed(format!("{why}; new connections bypass the proxy until then").into()),
            None => Notice::Repaired("this kernel leads new connections to the proxy again".into()),
        });
    }

    /// Adds rules and routes again that somebody has removed. That may fail for a while, for want of open files or because `ip`
    /// is being replaced: connections need not end for that.
    pub(super) fn look_at_routes(&mut self) -> Option<Notice> {
        let restored = self.plan.restore();
        let before = std::mem::replace(&mut self.unchecked, restored.is_err());
        match (restored, before) {
            (Err(_), false) => Some(Notice::Failed(
                "the proxy's routing rules and routes can be neither checked nor added again (`ip rule`, `ip route` and \
                 the limit of open files say more); it tries again every 5 s"
                    .into(),
            )),
            (Err(_), true) | (Ok(false), false) => None,
            (Ok(true), _) => {
                Some(Notice::Repaired("somebody removed the proxy's routing rule or route; it is there again".into()))
            }
            (Ok(false), true) => {
                Some(Notice::Repaired("the proxy's routing rules and routes can be checked again".into()))
            }
        }
    }
}
