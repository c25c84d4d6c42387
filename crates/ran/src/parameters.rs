//! The parameters of cells and bearers, as scenario files write them.
//!
//! Each table is declared once, with documentation, defaults and ranges, and turns into what runs.

mod bearer;
mod drx;
mod handover;
mod mac;
mod nr;
mod power;

pub use bearer::{Am, NrAm, NrBearer, NrRlc, NrUm, Rlc, Um};
pub use drx::{Drx, NrDrx};
pub use handover::Handover;
pub use mac::{CqiOf, Mac};
pub use nr::{ConfiguredGrant, Duplex, NrCell, NrMac, Tdd};
pub use power::PowerControl;

use core::ops::RangeInclusive;
use units::Span;
use units::check::Check;

const MILLISECOND: Span = Span::from_millis(1);
/// Longer than any useful timer of the radio protocols.
const MAX_TIMER: Span = Span::from_secs(100);
/// Timers that may be off.
const TIMER: RangeInclusive<Span> = Span::ZERO..=MAX_TIMER;
/// Timers and intervals of at least a slot of LTE.
const POSITIVE_TIMER: RangeInclusive<Span> = MILLISECOND..=MAX_TIMER;
/// The longest averaging time of a scheduler: beyond it, the steps of a short slot are lost in a float.
const MAX_AVERAGE: Span = Span::from_secs(10);
/// Assignments and grants in a slot: one for each direction at least.
const ASSIGNMENTS: RangeInclusive<u16> = 2..=1000;
/// Steps of the outer loop in dB.
const OUTER_LOOP_DB: RangeInclusive<f64> = 0.0..=10.0;
/// Transmissions of a transport block.
const TRANSMISSIONS: RangeInclusive<u8> = 1..=8;
/// `sr-ProhibitTimer` (36.331 6.3.2).
const SR_PROHIBIT: RangeInclusive<u8> = 0..=7;
/// `dsr-TransMax` (36.331 6.3.2), `sr-TransMax` (38.331 6.3.2).
const SR_MAXIMUM: RangeInclusive<u8> = 4..=64;

/// Checks the age of channel reports: a cell keeps track of fifteen that are on their way.
fn check_delay(delay: Span, period: Span, least: Span, c: &mut Check) {
    let most = if period < least { MAX_TIMER } else { (period * 15).min(MAX_TIMER) };
    c.range("cqi_delay", delay, Span::ZERO..=most);
}
