//! A run whose time is controlled from outside, with packets from outside beside the scenario's own traffic.
//!
//! The network is that of a simulation, and so are its tables. The emulator calls it in wall-clock time.

use crate::build::{self, recordings};
use crate::error::Error;
use crate::middlebox::interface::{External, Middlebox};
use crate::network::link::PlacedLink;
use crate::network::medium::radio::{Radio, UePlace, UeStatus};
use crate::network::packet::{Arrival, Visitor};
use crate::reporting::Reports;
use crate::rows::{RunId, meta};
use crate::world::{Most, Seen, World};
use rapid::Control;
use record::{Output, Results, Tables, Timing};
use rnis::Record;
use scenario::{Loaded, Scenario};
use units::{Rate, Span, Time};

/// The state of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkStatus {
    /// Its name.
    pub link: String,
    /// Queued packets,
    pub packets: u64,
    /// and their bytes.
    pub bytes: u64,
}

/// The state of the network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// The links, in the scenario's order.
    pub links: Vec<LinkStatus>,
    /// The UEs, in the scenario's order.
    pub ues: Vec<UeStatus>,
}

/// A run whose time is controlled from outside.
///
/// Order of calls: [`Live::advance`] to the present before anything else at that moment; then [`Live::send`] and the
/// commands; [`Live::poll_arrival`], [`Live::poll_lost`] and [`Live::poll_report`] until they return `None`; then
/// [`Live::poll_timeout`]. Time never goes back. Each tag that is sent comes back once, from `poll_arrival`, `poll_lost` or [`External::consumed`], or
/// never if the run ends before.
pub struct Live<'a> {
    loaded: &'a Loaded,
    world: World<'a>,
}

impl<'a> Live<'a> {
    /// Creates a run of a point of `loaded` at time zero. `scenario` is that point's, possibly without some of its flows.
    ///
    /// # Errors
    /// As [`crate::run`].
    pub fn new(
        loaded: &'a Loaded,
        scenario: &'a Scenario,
        (point, run): (u32, u32),
        output: Option<&Output>,
    ) -> Result<Live<'a>, Error> {
        let world = build::world(scenario, RunId { point, run }, &recordings::load(loaded)?, output, true)?;
        Ok(Live { loaded, world })
    }

    /// Returns the number of a route over links and radio hops, for [`Live::send`].
    ///
    /// # Panics
    /// If one of them does not exist.
    pub fn route(&mut self, links: &[String]) -> u32 {
        self.world.network.add_route(links)
    }

    /// Returns the routes of a flow's data and of its acknowledgements, or `None` if there is no such flow.
    pub fn routes_of(&self, flow: &str) -> Option<(u32, u32)> {
        self.world.hosts.routes_of(flow)
    }

    /// Puts the scenario's PEPs on two routes between the same hosts, before anything travels on them.
    pub fn place_peps(&mut self, there: u32, back: u32) {
        self.world.place_peps(there, back);
    }

    /// Puts a middlebox at `node` on a route for data and the route back, before anything travels on them. What is attached
    /// to the node directly does not pass it. A node has one middlebox: if it has one already, that sees these routes, too.
    ///
    /// # Errors
    /// If not both routes lead through the node.
    pub fn place(&mut self, node: &str, middlebox: Box<dyn Middlebox>, there: u32, back: u32) -> Result<(), String> {
        let World { scenario, parts, network, middleboxes, .. } = &mut self.world;
        let routes = &mut network.routes;
        if middleboxes.place_custom(node, middlebox, &scenario.links, routes, (there, back), parts) {
            return Ok(());
        }
        Err(format!("not both routes lead through `{node}`"))
    }

    /// Puts a control in the place of the policy of the scenario's proxy, at time zero. Connections and UEs have numbers.
    /// Returns whether there is a proxy.
    pub fn set_control(&mut self, control: Box<dyn Control<usize, u32>>) -> bool {
        let proxy = self.world.middleboxes.proxy();
        proxy.map(|(proxy, _)| proxy.set_control(control)).is_some()
    }

    /// Has the cells report on all UEs from now on, for [`Live::poll_report`]. Call it at time zero. Returns whether there are
    /// cells.
    pub fn open_reports(&mut self) -> bool {
        self.world.open_reports()
    }

    /// Returns the next report or event that has arrived, and the number of its UE. Its time is that of the run.
    pub fn poll_report(&mut self) -> Option<(u32, Record)> {
        let now = self.world.now();
        self.world.reports.as_mut()?.poll(now)
    }

    /// Processes everything due until `now`, each at its time. `external` holds the packets of the visitors.
    pub fn advance(&mut self, now: Time, external: &mut impl External) {
        self.world.advance(now, external);
    }

    /// Sends a packet on `route` now.
    pub fn send(&mut self, route: u32, visitor: Visitor) {
        self.world.enter(route, visitor);
    }

    /// Returns the next visitor that has arrived.
    pub fn poll_arrival(&mut self) -> Option<Arrival> {
        self.world.arrived.pop_front()
    }

    /// Returns the tag of the next lost visitor.
    pub fn poll_lost(&mut self) -> Option<u32> {
        self.world.network.traffic.lost_visitors.pop()
    }

    /// Returns when to advance it again.
    pub fn poll_timeout(&self) -> Option<Time> {
        let report = self.world.reports.as_ref().and_then(Reports::poll_timeout);
        [self.world.poll_timeout(), report].into_iter().flatten().min()
    }

    /// Returns the state of the network at `now`, the current time.
    pub fn status(&mut self, now: Time) -> Status {
        let network = &mut self.world.network;
        let link = |link: &mut PlacedLink| {
            let backlog = link.backlog(now);
            LinkStatus { link: link.name.clone(), packets: backlog.packets, bytes: backlog.bytes }
        };
        Status {
            links: network.links.iter_mut().map(link).collect(),
            ues: network.radio_mut().map_or_else(Vec::new, |radio| radio.status(now)),
        }
    }

    /// Returns the rows since the last call with `seen`: new ones of samples, queues, radio, proxies and mobility, and of flows, links and
    /// UEs those so far. Of many flows and links, each call covers a few in turn; of too many new rows, the newest.
    pub fn rows_since(&mut self, seen: &mut Seen) -> Tables {
        let now = self.world.now();
        self.world.rows_since(seen, Most::IN_REAL_TIME, now)
    }

    /// Returns where each UE is.
    pub fn places(&self) -> Vec<UePlace> {
        self.world.places(self.world.now())
    }

    /// Sets the mean SINR in dB of a UE from now on; `None` restores the scenario's channel.
    ///
    /// # Errors
    /// A message for an unknown name or an impossible change.
    pub fn set_sinr(&mut self, ue: &str, sinr_db: Option<f64>) -> Result<(), String> {
        let (now, radio) = self.radio()?;
        radio.set_sinr(ue, sinr_db, now)?;
        self.world.wake_radio();
        let value = sinr_db.map_or_else(|| "off".to_owned(), |db| format!("{db} dB"));
        self.world.record_command("sinr", ue, &value, None);
        Ok(())
    }

    /// Hands a UE over to a cell.
    pub fn hand_over(&mut self, ue: &str, cell: &str) -> Result<(), String> {
        let (now, radio) = self.radio()?;
        radio.hand_over(ue, cell, now)?;
        self.world.wake_radio();
        self.world.record_command("handover", ue, cell, None);
        Ok(())
    }

    /// Sets the share, 0 to 1, of a cell's resource blocks without data that interferes with UEs of other cells from now on.
    pub fn set_load(&mut self, cell: &str, load: f32) -> Result<(), String> {
        let (now, radio) = self.radio()?;
        radio.set_load(cell, load, now)?;
        self.world.wake_radio();
        self.world.record_command("load", cell, &load.to_string(), None);
        Ok(())
    }

    /// Changes the rate of a link from now on; at rate zero, packets wait until it is changed again.
    ///
    /// # Errors
    /// A message for an unknown name, or a link whose rate is that of a trace.
    pub fn set_rate(&mut self, link: &str, rate: Rate) -> Result<(), String> {
        self.world.set_rate(link, rate)?;
        let value = if rate == Rate::default() { "off".to_owned() } else { rate.to_string() };
        self.world.record_command("rate", link, &value, None);
        Ok(())
    }

    /// Stops the service of a link, or of all links, for `span`: packets wait, and what exceeds the limits of queues is lost. Returns
    /// when it ends. Within another outage, it changes nothing.
    ///
    /// # Errors
    /// A message for an unknown name.
    pub fn pause(&mut self, link: Option<&str>, span: Span) -> Result<Time, String> {
        self.world.pause(link, span)?;
        let until = self.world.now() + span;
        self.world.record_command("outage", link.unwrap_or_default(), &span.to_string(), Some(until));
        Ok(until)
    }

    /// Changes the probability, 0 to 1, that a packet is lost on a link from now on.
    ///
    /// # Errors
    /// A message for an unknown name.
    pub fn set_loss(&mut self, link: &str, probability: f64) -> Result<(), String> {
        self.world.set_loss(link, probability)?;
        self.world.record_command("loss", link, &probability.to_string(), None);
        Ok(())
    }

    fn radio(&mut self) -> Result<(Time, &mut Radio), String> {
        let now = self.world.now();
        let radio = self.world.network.radio_mut().ok_or("the scenario has no radio network")?;
        Ok((now, radio))
    }

    /// Ends the run at `end`, the current time.
    ///
    /// # Errors
    /// [`Error::Record`] if a capture could not be written.
    pub fn finish(self, end: Time) -> Result<Results, Error> {
        let done = self.world.finish(end)?;
        let timing = Timing {
            simulated_s: done.simulated.as_secs_f64(),
            events: done.events,
            packets: done.packets,
            threads: 1,
            ..Timing::default()
        };
        Ok(Results { meta: meta(self.loaded), timing, tables: done.tables })
    }
}
