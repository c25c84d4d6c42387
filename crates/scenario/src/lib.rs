//! Scenario files: TOML with units, includes, parameters and errors that point at the line.
//!
//! A file says what network, which flows, how long and what to record. [`Scenario::load`] reads it in these steps:
//!
//! 1. `include`: the files (relative to this one), built-in scenarios and presets (`preset:NAME`) that are named there,
//!    in order, each laid on those before it, this file last. Tables are joined key by key; anything else is replaced,
//!    and so is a table that says its `kind`.
//! 2. Overrides (`--set KEY=VALUE`): a parameter, or a dotted path such as `dumbbell.rate` or `flows.a.cc` (an element of an
//!    array by its name or number, or `*` for all of them). What is set is no longer swept.
//! 3. `[sweep]`: the product of its arrays gives the points; each key is a parameter or a dotted path.
//! 4. `[parameters]`: `"${name}"` becomes the parameter's value, or its text inside a longer text.
//! 5. The table `[tcp]` is laid under the table `tcp` of each flow.
//! 6. The dumbbell, the LTE network and duplex links become one-way links and radio hops, flows get their routes, and
//!    everything is checked.
//!
//! A choice is written `"name"`, or `{ kind = "name", ... }` if it has keys of its own. Amounts are texts with a unit.
//! Every error is one line: where, which key, what is wrong, what would be right. Limits, against files that would take
//! for ever: 1 MiB a file, 256 files, 16 deep; 10,000 points; 10,000 links; 100 cells; 10,000 UEs; 100,000 flows; 64
//! links on a route.
//!
//! The crate reads no files by itself: [`Files`] is an argument, and [`read_file`] is the one for real files.

pub mod builtin;

mod check;
mod de;
mod error;
mod faults;
mod flows;
mod handover;
mod kinds;
mod load;
mod lte;
mod model;
mod network;
mod reference;
mod replicates;
mod schema;
mod topology;
mod tree;

pub use error::{Error, Fault, Origin, nearest};
pub use flows::{Cc, Flow, Gap, Size, Tcp, Traffic, Transport};
pub use handover::Handover;
pub use load::{Files, Loaded, Point, read_file};
pub use lte::{
    Above, Bandwidth, Bearer, Cell, Channel, Completed, CqiOf, Dedicated, Fading, Limit, Lte, Mac, Mobility,
    PowerControl, Rlc, Scheduler, Sight, Ue,
};
pub use model::{Record, Samples, Scenario};
pub use network::{Capacity, Drop, Dumbbell, Jitter, Link, Loss, Queue, Reverse, Service};
pub use reference::reference_markdown;
pub use schema::schema;
pub use topology::{hosts, route};
