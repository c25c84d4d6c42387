//! The radio network between links: the first of the media.
//!
//! A packet enters it at a radio hop of its route, and goes on from there when the [`Ran`] has delivered it ([`crate::network`]).

use super::interface::{Medium, Port};
use crate::error::unknown_name;
use crate::network::packet::{Packet, Store};
use crate::network::reports::{Reporter, waiting};
use crate::rows::radio::{Recorder, UeMeters};
use aqm::{Backlog, DropReason, Packet as _};
use channel::Direction;
use ran::Ran;
use record::Tables;
use record::tables::Mobility;
use rnis::{Event, RadioReport};
use units::{Span, Time};

/// The state of a UE.
#[derive(Clone, Debug, PartialEq)]
pub struct UeStatus {
    /// Its name.
    pub ue: String,
    /// The cell that serves it; none during a handover.
    pub cell: Option<String>,
    /// Its latest CQI report.
    pub cqi: u8,
    /// Bytes queued for it at the cell,
    pub downlink_bytes: u64,
    /// and at itself for the cell, in the modem and in the host's queue.
    pub uplink_bytes: u64,
}

/// Where a UE is.
#[derive(Clone, Debug, PartialEq)]
pub struct UePlace {
    /// Its name.
    pub ue: String,
    /// Metres east, metres north and metres above ground.
    pub position: [f64; 3],
    /// The cell that serves it; none during a handover.
    pub cell: Option<String>,
}

/// The network and its meters.
pub(crate) struct Radio {
    ran: Ran<Packet>,
    meters: UeMeters,
    recorder: Recorder,
    /// UEs of which it is noted what leaves the host's queue.
    tracked: Vec<u32>,
}

/// Each UE has two ports: downlink and uplink.
impl Port {
    /// Returns the UE, and the direction.
    #[inline]
    pub(crate) fn ue(self) -> (u32, Direction) {
        (self.0 / 2, if self.0.is_multiple_of(2) { Direction::Downlink } else { Direction::Uplink })
    }
}

impl Medium for Radio {
    /// Two a UE, downlink first.
    fn ports(&self) -> Vec<String> {
        let ports = |ue: &String| [format!("radio-{ue}"), format!("radio-{ue}-reverse")];
        self.recorder.ues().iter().flat_map(ports).collect()
    }

    #[inline]
    fn enter(&mut self, port: Port, packet: Packet, now: Time, drops: &mut impl FnMut(Packet, DropReason)) {
        self.handle_timeout(now, drops);
        match port.ue() {
            (ue, Direction::Downlink) => self.ran.handle_downlink(ue, packet, now, drops),
            (ue, Direction::Uplink) => self.ran.handle_uplink(ue, packet, now, drops),
        }
    }

    #[inline]
    fn handle_timeout(&mut self, now: Time, drops: &mut impl FnMut(Packet, DropReason)) {
        self.ran.handle_timeout(now, drops, &mut self.recorder);
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Time> {
        self.ran.poll_timeout()
    }

    fn track_host(&mut self, port: Port) -> bool {
        let (ue, Direction::Uplink) = port.ue() else { return false };
        if !self.tracked.contains(&ue) {
            self.ran.note_released(ue);
            self.tracked.push(ue);
        }
        true
    }

    #[inline]
    fn poll_released(&mut self) -> Option<u64> {
        self.tracked.iter().find_map(|&ue| self.ran.poll_released(ue))
    }

    fn is_host_full(&self, port: Port, len: u32, priority: u8, ahead: Backlog) -> bool {
        self.ran.is_host_full(port.ue().0, len, priority, ahead)
    }

    #[inline]
    fn poll(&mut self, now: Time, store: &mut Store) -> Option<Packet> {
        let delivery = self.ran.poll_delivery()?;
        let (packet, ue, direction) = (delivery.packet, delivery.ue, delivery.direction);
        let parcel = store.get(&packet);
        // A UE's own packets came to the host's queue when they were sent, and later to the modem's.
        let arrived = match direction {
            Direction::Uplink if packet.hop() == 0 => parcel.sent,
            _ => packet.enqueued(),
        };
        match direction {
            // From another UE, the core is on that one's account.
            Direction::Downlink => match parcel.aired.take() {
                Some((from, left)) => self.meters.uplink_core(from, arrived.saturating_since(left)),
                None => self.meters.downlink_core(ue, arrived.saturating_since(parcel.sent)),
            },
            Direction::Uplink => parcel.aired = Some((ue, now)),
        }
        self.meters.deliver(&delivery, arrived, now);
        Some(packet)
    }

    fn warmed_up(&mut self, now: Time) {
        self.meters.warmed_up(&mut self.ran, now);
    }

    fn sample(&mut self, now: Time, interval: Span, tables: &mut Tables) {
        self.meters.sample(&mut self.ran, &mut self.recorder, now, interval, &mut tables.radio);
    }

    fn rows_so_far(&mut self, now: Time, tables: &mut Tables) {
        self.meters.finish(&mut self.ran, &self.recorder, now, &mut tables.ues);
    }

    /// Writes the rows of the UEs, and the collected tables.
    fn finish(mut self, end: Time, tables: &mut Tables) {
        self.meters.finish(&mut self.ran, &self.recorder, end, &mut tables.ues);
        (tables.mobility, tables.transmissions) = self.recorder.finish();
    }
}

impl Radio {
    /// Creates the hop over `ran`.
    pub(crate) fn new(ran: Ran<Packet>, recorder: Recorder) -> Radio {
        let meters = UeMeters::new(recorder.ues().len(), recorder.cells().len());
        Radio { ran, meters, recorder, tracked: Vec::new() }
    }

    /// Records the delay of a packet of `ue` from the cell to its end.
    #[inline]
    pub(crate) fn beyond(&mut self, ue: u32, span: Span) {
        self.meters.uplink_core(ue, span);
    }

    /// Makes the reports on the UEs that are `wanted`.
    pub(crate) fn report(
        &mut self,
        reporter: &mut Reporter,
        now: Time,
        wanted: impl Fn(u32) -> bool,
        each: impl FnMut(u32, RadioReport),
    ) {
        reporter.make(&mut self.ran, now, wanted, each);
    }

    /// Counts a report on `ue` that is sent to the proxy.
    pub(crate) fn count_report(&mut self, ue: u32, report: &RadioReport) {
        self.meters.report(ue, report);
    }

    /// Tells of the cells that have come to serve UEs since the last call.
    pub(crate) fn tell_changes(&self, reporter: &mut Reporter, each: impl FnMut(u32, Event)) {
        reporter.tell_changes(&self.ran, self.recorder.served(), each);
    }

    /// Makes the measurement reports of the UEs.
    pub(crate) fn measure(&mut self, reporter: &mut Reporter, now: Time, each: impl FnMut(u32, Event)) {
        reporter.measure(&mut self.ran, now, each);
    }

    /// Returns the name of a UE.
    pub(crate) fn ue(&self, ue: u32) -> &str {
        &self.recorder.ues()[ue as usize]
    }

    /// Returns the numbers of UEs and of carriers.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.recorder.ues().len(), self.recorder.cells().len())
    }

    /// What has happened to UEs so far.
    pub(crate) fn mobility(&self) -> &Mobility {
        self.recorder.mobility()
    }

    /// Returns the cells' names.
    pub(crate) fn cells(&self) -> &[String] {
        self.recorder.cells()
    }

    /// Returns the cell that serves a UE, or served it last.
    pub(crate) fn cell_of(&self, ue: u32) -> u32 {
        self.ran.last_serving(ue)
    }

    /// Returns where each UE is, and the cell that serves it.
    pub(crate) fn places(&self, now: Time) -> Vec<UePlace> {
        let place = |(ue, name): (u32, &String)| UePlace {
            ue: name.clone(),
            position: self.ran.position(ue, now),
            cell: self.ran.serving(ue).map(|cell| self.recorder.cells()[cell as usize].clone()),
        };
        (0..).zip(self.recorder.ues()).map(place).collect()
    }

    /// As [`crate::Live::set_sinr`].
    pub(crate) fn set_sinr(&mut self, ue: &str, sinr_db: Option<f64>, now: Time) -> Result<(), String> {
        self.ran.set_sinr(index_of("UE", ue, self.recorder.ues())?, sinr_db, now);
        Ok(())
    }

    /// As [`crate::Live::hand_over`].
    pub(crate) fn hand_over(&mut self, ue: &str, cell: &str, now: Time) -> Result<(), String> {
        let (ue, cell) = (index_of("UE", ue, self.recorder.ues())?, index_of("cell", cell, self.recorder.cells())?);
        self.ran.hand_over(ue, cell, now, &mut self.recorder).map_err(|refused| refused.to_string())
    }

    /// As [`crate::Live::set_load`].
    pub(crate) fn set_load(&mut self, cell: &str, load: f32, now: Time) -> Result<(), String> {
        self.ran.set_load(index_of("cell", cell, self.recorder.cells())?, load, now);
        Ok(())
    }

    /// The state of the UEs.
    pub(crate) fn status(&mut self, now: Time) -> Vec<UeStatus> {
        let names = self.recorder.ues().iter();
        (0..)
            .zip(names)
            .map(|(ue, name)| UeStatus {
                ue: name.clone(),
                cell: self.ran.serving(ue).map(|cell| self.recorder.cells()[cell as usize].clone()),
                cqi: self.ran.hears(ue, now).cqi,
                downlink_bytes: waiting(&self.ran, ue, Direction::Downlink),
                uplink_bytes: waiting(&self.ran, ue, Direction::Uplink),
            })
            .collect()
    }
}

/// Returns the index of the element with this name.
fn index_of(what: &str, name: &str, known: &[String]) -> Result<u32, String> {
    let found = known.iter().position(|known| known == name).map(|at| at as u32);
    found.ok_or_else(|| unknown_name(what, name, known.iter().map(String::as_str)))
}
