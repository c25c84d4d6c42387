//! Radio network information: what a cell reports of each UE, and the same report wherever it is used.
//!
//! A [`RadioReport`] covers one interval of one UE in one cell. The simulated cell makes it directly; parsers make it from
//! the records of real base stations, which leave fields out that they do not know. It is what RAPID estimates capacities
//! from, and what the radio network information service (ETSI MEC 012) answers from.
//!
//! A report is worth less the older it is. Consumers compare [`RadioReport::time`], the end of its interval, with the present.
//!
//! | module | contents |
//! | --- | --- |
//! | `report` | the report |
//! | [`identity`] | identities of networks, cells and UEs |
//! | [`addresses`] | the operator's table of the UEs' addresses |
//! | [`event`] | what else happens to a UE: measurements, handovers, bearers |
//! | [`feed`] | parsers of recordings and of the records of base stations and modems |
//! | [`state`] | the latest values of each UE and cell |
//! | [`amqp`] | a client of AMQP 0-9-1 brokers, through which reports pass |
//! | [`mec`] | MEC 012: answers, subscriptions and notifications, derived from the state |
//! | `error` | faults of feeds |
//!
//! No module does I/O or reads a clock; `services::rnis` connects them to sockets.

pub mod addresses;
pub mod amqp;
mod error;
pub mod event;
pub mod feed;
pub mod identity;
pub mod mec;
mod report;
pub mod state;

pub use addresses::AddressMap;
pub use error::FeedError;
pub use event::{Event, Record};
pub use identity::{AssociateId, Network};
pub use report::{RadioReport, UeId};
pub use state::State;
