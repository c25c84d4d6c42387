//! Radio network information: what a cell reports of each UE, and the same report wherever it is used.
//!
//! A [`RadioReport`] covers one interval of one UE in one cell. The simulated cell makes it directly; parsers make it from
//! the records of real base stations, which leave fields out that they do not know. It is what RAPID estimates capacities
//! from, and what the radio network information service (ETSI MEC 012) answers from.
//!
//! A report is worth less the older it is. Consumers compare [`RadioReport::time`], the end of its interval, with the present.

mod report;

pub use report::{RadioReport, UeId};
