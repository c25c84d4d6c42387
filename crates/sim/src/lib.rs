//! The simulator: from a scenario to results, in virtual time.
//!
//! [`run`] takes a loaded scenario through all points of its sweep and all repetitions, on all cores, and gives back
//! [`record::Results`]. A single run is single-threaded and depends on nothing but the scenario, the seed and the traces
//! that it names: the same input gives the same tables on any machine, with any number of threads. Such a run is a [`Job`];
//! [`Batch`] runs any list of them, and [`record::merge`] puts the results of several lists together.
//!
//! | module | contents |
//! | --- | --- |
//! | `batch` | all jobs of a scenario, or a list of them, on all cores |
//! | `live` | one run in somebody else's time, with packets from outside |
//! | `build` | from a scenario to a world |
//! | `world` | one run: its parts, and the loop that calls them |
//! | `hosts` | applications and their connections |
//! | `network` | packets, routes, links and radio hops |
//! | `middlebox` | what stands between links and sees packets pass: PEPs, proxies |
//! | `reports` | a recording of the cells' reports |
//! | `reporting` | the cells' reports to the proxy |
//! | `rows` | counters of flows, links and UEs, and the rows that they become |
//! | `parts` | what the agenda's entries stand for |
//! | `error` | why a simulation cannot be run |
//!
//! # Path of a packet
//! Everything in one thread, and nothing allocates in the steady state.
//!
//! 1. `build::world` gives each copy of a flow an application and a part of the agenda. When the flow starts, the agenda calls
//!    `Hosts::call_flow`; `Hosts::drive` takes actions from `traffic::App`. `Action::Connect` makes two endpoints.
//! 2. `Hosts::settle` calls `Hosts::pump` for each ready endpoint, which takes segments until there are none. Each becomes a
//!    `Parcel` (header fields, owner, route), which stays in the `Store` until the packet arrives, and a `Packet`, the small
//!    descriptor that is copied from queue to queue.
//! 3. `hosts::node` draws when the packets of an event leave their host. A foreseen link to which only hosts give packets
//!    (`PlacedLink::is_entrance`) takes them ahead of time, so the delay costs no call of the agenda.
//! 4. `Network::send` passes the packet to the first hop of its route: a link, or a UE's radio hop; later hops may be
//!    middleboxes. A [`link::Foreseen`] says at once when the packet will be delivered, or when and why it is lost, and
//!    foreseen links in a row form a lane (`network`). A [`link::Link`] has a queue discipline; it computes departure, loss,
//!    delay and jitter when service begins. Whatever is lost has a reason, and `InTransit::lose` counts it and frees its
//!    parcel.
//! 5. The agenda calls the parts that are due: links, the radio network, its reports, endpoints, flows, middleboxes, the sampler
//!    (`parts`). A link returns the packets at its end (`Network::poll`), which enter their next hop, or reach a middlebox or
//!    the end of their route (`World::reach`).
//! 6. `World::deliver` passes the packet to `Hosts::handle_packet`, which counts it (`rows::meter`) and gives the segment to the
//!    endpoint. `Hosts::pump` takes the acknowledgement, which travels the return route in the same way.
//!
//! With `[radio]`, the route from the server is `internet-server`, `s1` or `n3`, `radio-UE`. One [`ran::Ran`] holds all
//! cells and UEs and is one part of the agenda (`network::medium::radio`).
//!
//! # Where values are measured
//!
//! | values | code |
//! | --- | --- |
//! | bytes, delays, round-trip times, windows and limits of a flow | `rows::meter`; `tcp::Stats` and `Endpoint::limited` at the ends of the warm-up and of the run |
//! | samples over time | `World::sample`, at the scenario's interval |
//! | counters and waiting times of a link | `link::Stats`; `PlacedLink`; `rows::links` |
//! | blocks, errors, delays and handovers of a UE | `ran::UeStats`; `UeMeters` and `Recorder` in `rows::radio` |
//! | single packets: events, captures | `network::watch`, only if the scenario requests them |
//! | the warm-up | `World::warmed_up` notes the counters; `World::finish` reports the difference |

mod batch;
mod build;
mod error;
mod hosts;
mod live;
mod middlebox;
mod network;
mod parts;
mod reporting;
pub mod reports;
mod rows;
mod world;

pub use batch::{Batch, JobsError, Options, Outcome, Progress, Watch, check, jobs, run, run_all, sweep_dir};
pub use error::Error;
pub use live::{LinkStatus, Live, Status};
pub use middlebox::interface::{Emission, External, FlowKey, Middlebox, NoVisitors, Passing, Verdict, Way};
pub use network::medium::radio::{UePlace, UeStatus};
pub use network::packet::{Arrival, Visitor};
pub use record::Job;
pub use rows::meta;
pub use world::Seen;

/// The version that results name.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
