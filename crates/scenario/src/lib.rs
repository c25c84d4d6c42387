//! Scenario files: TOML with units, includes, parameters, and errors with line numbers.
//!
//! A file describes a network, its flows, the duration and what to record. [`Scenario::load`] reads it in these steps:
//!
//! 1. `include`: the named files (relative to this one), built-in scenarios and presets (`preset:NAME`) are merged in
//!    order, this file last. Tables are merged key by key; any other value is replaced, and so is a table with a
//!    `kind`.
//! 2. Overrides (`--set KEY=VALUE`): a parameter, or a dotted path such as `dumbbell.rate` or `flows.a.cc` (an element
//!    of an array by its name or index, or `*` for all). A key that is overridden is no longer swept.
//! 3. `[sweep]`: the Cartesian product of its arrays gives the points; each key is a parameter or a dotted path.
//! 4. `[parameters]`: `"${name}"` becomes the parameter's value, or its text inside a longer string; `"${name.key}"` the
//!    value of a key of one that is a table.
//! 5. The table `[tcp]` provides the defaults of the table `tcp` of each flow.
//! 6. The dumbbell, the radio network and duplex links are expanded to one-way links and radio hops, flows get their
//!    routes, and everything is checked.
//!
//! A choice is written `"name"`, or `{ kind = "name", ... }` if it has keys of its own. Quantities are strings with a
//! unit. Every error is one line: position, key, problem, valid values. Limits bound the time that a file can take:
//! 1 MiB per file, 256 files, nested 16 deep; 10,000 points; 10,000 links; 400 cells; 10,000 UEs; 100,000 flows; 64
//! links on a route.
//!
//! The crate itself reads no files: [`Files`] is an argument, and [`read_file`] implements it for real files.

pub mod builtin;
mod carrier;

mod check;
mod de;
mod error;
mod faults;
mod flows;
mod host;
mod layout;
mod load;
mod lte;
mod mobility;
mod model;
mod network;
mod nr;
mod older;
mod placement;
mod policy_text;
mod priorities;
mod propagation;
mod proxy;
mod radio;
mod reference;
mod replicates;
mod schema;
mod surroundings;
mod technology;
mod topology;
mod tree;
mod without_effect;

pub use aqm::{Config as Queue, Limit};
pub use carrier::{Bandwidth, LteSecondary, NrCarrier, NrSecondary};
pub use cc::Config as Cc;
pub use error::{Error, Fault, Origin, nearest};
pub use flows::{Flow, Reader, Repeat};
pub use host::{Hosts, NamedHost, Processing};
pub use layout::Layout;
pub use link::{Jitter, Loss, Reordering};
pub use load::{Files, Loaded, Point, read_file};
pub use lte::{Above, Bearer, Cell, Dedicated, LteCarriers, ModemFull, Ue};
pub use mobility::Mobility;
pub use model::{Record, Samples, Scenario};
pub use network::{Capacity, Delay, Dumbbell, Link, PepAt, Reverse};
pub use nr::{McsTable, NrCarriers};
pub use policy_text::{policy_of, policy_text};
pub use propagation::{Channel, Fading, Office, Sight, Tdl};
pub use proxy::{Proxy, Reports};
pub use radio::{Carriers, Radio};
pub use ran::Discipline as Scheduler;
pub use ran::parameters::{
    ConfiguredGrant, CqiOf, Drx, Duplex, Handover, Mac, NrBearer, NrDrx, NrMac, NrRlc, PowerControl, Rlc,
};
pub use rapid::policies::{BlockTable, Code, ProxyPolicy};
pub use reference::reference_markdown;
pub use schema::{keys, schema};
pub use surroundings::{Array, Beams, Blockage, Building, Car, Grip, Penetration, Wall};
pub use tcp::Parameters as Tcp;
pub use technology::Technology;
pub use topology::{CORE, RAN, host_addresses, hosts, route};
pub use traffic::{Config as Traffic, Transport};
