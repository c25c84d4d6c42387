//! The three state machines of an endpoint, and the one gate through which each of them moves.
//!
//! [`State`] is RFC 9293's (section 3.3.2), [`Phase`] is Linux's congestion state (`tcp_ca_state`), [`Timer`] is what the
//! sender's one timer waits for (`icsk_pending`). A transition that is not in its table is a defect of this crate. The test
//! below prints the tables.

use cc::{Controller, Phase};

use crate::endpoint::{Endpoint, State};
use crate::sender::{Sender, Timer};

impl State {
    /// The states that may follow this one. Every connection may be over at once, by a reset or a time-out.
    const fn successors(self) -> &'static [State] {
        use State::*;
        match self {
            Closed => &[Listen, SynSent],
            Listen => &[SynReceived, Closed],
            // A connection that is closed before it is open sends its FIN once it is.
            SynSent => &[SynReceived, Established, FinWait1, Closed],
            SynReceived => &[Established, FinWait1, Closed],
            Established => &[FinWait1, CloseWait, Closed],
            FinWait1 => &[FinWait2, Closing, Closed],
            FinWait2 => &[TimeWait, Closed],
            CloseWait => &[LastAck, Closed],
            Closing => &[TimeWait, Closed],
            LastAck | TimeWait => &[Closed],
        }
    }
}

/// The phases that may follow `phase`.
const fn next_phases(phase: Phase) -> &'static [Phase] {
    use Phase::*;
    match phase {
        Open => &[Disorder, Cwr, Recovery, Loss],
        Disorder => &[Open, Cwr, Recovery, Loss],
        Cwr => &[Open, Disorder, Recovery, Loss],
        // A tail loss probe that was armed before and sent within recovery may tell of another loss (`tcp_process_tlp_ack`).
        Recovery => &[Open, Disorder, Cwr, Loss],
        Loss => &[Open, Recovery],
    }
}

impl Timer {
    /// What the timer may wait for next.
    const fn successors(self) -> &'static [Timer] {
        use Timer::*;
        match self {
            Idle => &[Retransmit, Reorder, LossProbe, WindowProbe],
            Retransmit => &[Idle, Reorder, LossProbe],
            Reorder => &[Idle, Retransmit, LossProbe],
            LossProbe => &[Idle, Retransmit, Reorder],
            WindowProbe => &[Idle, Retransmit],
        }
    }
}

/// Asserts that a machine may go from `from` to `to`; staying is no transition.
fn assert_legal<T: Copy + PartialEq + core::fmt::Debug>(from: T, to: T, successors: &[T]) {
    debug_assert!(from == to || successors.contains(&to), "{from:?} is not followed by {to:?}");
}

impl<C: Controller> Endpoint<C> {
    /// The connection is in `state` from now on.
    pub(crate) fn enter(&mut self, state: State) {
        assert_legal(self.state, state, self.state.successors());
        self.state = state;
    }
}

impl<C: Controller> Sender<C> {
    /// The sender is in `phase` from now on.
    #[inline]
    pub(crate) fn enter_phase(&mut self, phase: Phase) {
        assert_legal(self.recovery.phase, phase, next_phases(self.recovery.phase));
        self.recovery.phase = phase;
    }

    /// The timer waits for `timer` from now on, until a deadline that the caller sets.
    #[inline]
    pub(crate) fn set_timer(&mut self, timer: Timer) {
        assert_legal(self.timer, timer, self.timer.successors());
        self.timer = timer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::fmt::{Debug, Write};
    use std::string::String;

    fn table<T: Copy + Debug + 'static>(title: &str, states: &[T], successors: impl Fn(T) -> &'static [T]) -> String {
        let mut table = String::from(title);
        for &state in states {
            write!(table, "\n  {:<12}", std::format!("{state:?}")).unwrap();
            successors(state).iter().for_each(|next| write!(table, " {next:?}").unwrap());
        }
        table + "\n"
    }

    /// Prints the tables (`cargo nextest run -E 'test(the_transition_tables)' --no-capture`), and fails if one changed.
    #[test]
    fn the_transition_tables() {
        use State::*;
        let states = [
            Closed,
            Listen,
            SynSent,
            SynReceived,
            Established,
            FinWait1,
            FinWait2,
            CloseWait,
            Closing,
            LastAck,
            TimeWait,
        ];
        let phases = [Phase::Open, Phase::Disorder, Phase::Cwr, Phase::Recovery, Phase::Loss];
        let timers = [Timer::Idle, Timer::Retransmit, Timer::Reorder, Timer::LossProbe, Timer::WindowProbe];
        let tables = table("State", &states, State::successors)
            + &table("Phase", &phases, next_phases)
            + &table("Timer", &timers, Timer::successors);
        std::println!("{tables}");
        assert_eq!(
            tables,
            "\
State
  Closed       Listen SynSent
  Listen       SynReceived Closed
  SynSent      SynReceived Established FinWait1 Closed
  SynReceived  Established FinWait1 Closed
  Established  FinWait1 CloseWait Closed
  FinWait1     FinWait2 Closing Closed
  FinWait2     TimeWait Closed
  CloseWait    LastAck Closed
  Closing      TimeWait Closed
  LastAck      Closed
  TimeWait     Closed
Phase
  Open         Disorder Cwr Recovery Loss
  Disorder     Open Cwr Recovery Loss
  Cwr          Open Disorder Recovery Loss
  Recovery     Open Disorder Cwr Loss
  Loss         Open Recovery
Timer
  Idle         Retransmit Reorder LossProbe WindowProbe
  Retransmit   Idle Reorder LossProbe
  Reorder      Idle Retransmit LossProbe
  LossProbe    Idle Retransmit Reorder
  WindowProbe  Idle Retransmit
"
        );
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "Listen is not followed by Established")]
    fn a_transition_outside_the_table_is_a_defect() {
        assert_legal(State::Listen, State::Established, State::Listen.successors());
    }
}
