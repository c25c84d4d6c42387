//! Results of runs: tables, summary, captures and the report, and reading them back.
//!
//! A driver fills [`Tables`] row by row, puts them with a [`Meta`] into [`Results`] and calls [`Results::write`]. The
//! directory that appears (whole, or not at all) holds
//!
//! | file | what |
//! | --- | --- |
//! | `flows.parquet`, `samples.parquet`, `rtts.parquet`, `owds.parquet`, `queues.parquet`, `links.parquet`, `events.parquet`, `transfers.parquet`, `ues.parquet`, `radio.parquet`, `mobility.parquet`, `transmissions.parquet`, … | the [`tables`], which `DuckDB`, Polars and pandas open as they are; a column's meaning and unit are in its field metadata |
//! | `summary.json` | [`Summary`]: means and confidence intervals per point |
//! | `meta.json` | [`Meta`]: scenario, points, seed, runs |
//! | `timing.json` | [`Timing`]: what depends on the machine and its clock |
//! | `captures/*.pcapng` | packets, on request ([`Capture`]) |
//! | `report.html` | the [`report`], which opens without a network |
//!
//! All but `timing.json` and `report.html` (which quotes it) are the same bytes for the same input on any machine.
//!
//! Results of disjoint lists of jobs ([`Job`]) become those of the whole scenario with [`merge()`], in memory. The jobs of a
//! large sweep have a file each in a [`SweepDir`], and [`assemble`] makes results of them in bounded memory.
//!
//! [`Results::write`] puts everything into a hidden directory beside the target, which one rename then puts in place. Each
//! table is defined once, in `tables/`: a macro generates the row type, the columns and the schema with each column's meaning
//! and unit.
//!
//! This crate touches files: it is the edge between the pure models and the disk.

mod capture;
mod caught;
mod durable;
mod error;
pub mod figures;
mod frame;
mod job;
pub mod means;
mod merge;
mod meta;
pub mod observed;
mod output;
pub mod report;
mod results;
mod summary;
mod sweep;
mod table;
pub mod tables;
pub mod told;

pub use arrow_schema::SchemaRef as Schema;
pub use capture::{Capture, PacketView, Transport};
pub use error::Error;
pub use frame::{summary_frame, write_summary_frame};
pub use job::{InvalidJob, Job};
pub use means::{Against, Means};
pub use merge::{MergeError, merge};
pub use meta::{Lateness, Meta, Partial, Point, Results, Timing};
pub use output::{Output, OutputFile};
pub use summary::{FlowSummary, Limited, LinkSummary, PointSummary, Stat, Summary, UeDirection, UeSummary};
pub use sweep::{SweepDir, Unfinished, assemble};
pub use table::{Blobs, Column, OptStrings, Strings, Table};
pub use tables::{Tables, ms};
pub use units::Distribution;
