//! All tables together.

use super::measured::*;
use super::simulated::*;
use crate::Job;
use crate::table::Table;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use units::Distribution;

/// Calls `$do!(field)` for each table.
macro_rules! each_table {
    ($do:ident) => {
        $do!(flows);
        $do!(samples);
        $do!(rtts);
        $do!(owds);
        $do!(queues);
        $do!(links);
        $do!(events);
        $do!(transfers);
        $do!(ues);
        $do!(radio);
        $do!(mobility);
        $do!(commands);
        $do!(transmissions);
        $do!(peps);
        $do!(proxies);
        $do!(latencies);
        $do!(passages);
        $do!(tcp_info);
        $do!(modem);
        $do!(waits);
        $do!(responsiveness);
        $do!(tcp_flows);
        $do!(tcp_samples);
        $do!(segments);
        $do!(clocks);
    };
}
pub(crate) use each_table;

/// All tables of some runs. Each is written even if it is empty, so that a reader always finds it; but those of captures,
/// measurements and changes from outside ([`Tables::OPTIONAL`]) only if they have rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tables {
    /// One row a flow's copy.
    pub flows: Flows,
    /// One row a flow's copy and sampling moment.
    pub samples: Samples,
    /// Round-trip time distributions.
    pub rtts: Rtts,
    /// Distributions of one-way delays.
    pub owds: Owds,
    /// One row a queue and sampling moment.
    pub queues: Queues,
    /// One row a link.
    pub links: Links,
    /// What happened to packets, on request.
    pub events: Events,
    /// One row a transfer.
    pub transfers: Transfers,
    /// One row a UE and direction.
    pub ues: Ues,
    /// One row a UE and sampling moment.
    pub radio: Radio,
    /// Handovers and lost links.
    pub mobility: Mobility,
    /// What was changed while an emulation ran.
    pub commands: Commands,
    /// What was sent over the air, on request.
    pub transmissions: Transmissions,
    /// One row a PEP.
    pub peps: Peps,
    /// One row a split connection and sampling moment.
    pub proxies: Proxies,
    /// One row a probe of a measurement.
    pub latencies: Latencies,
    /// One row a stamped write of a real flow.
    pub passages: Passages,
    /// One row a real flow and sampling moment.
    pub tcp_info: TcpInfos,
    /// One row a serving cell of a real modem and sampling moment.
    pub modem: Modems,
    /// One row a second of a measurement.
    pub waits: Waits,
    /// One row a load of a measurement.
    pub responsiveness: Responsiveness,
    /// What packets tell of TCP flows, of captures.
    pub tcp_flows: TcpFlows,
    /// The same at sampling moments.
    pub tcp_samples: TcpSamples,
    /// Segments for time–sequence plots, of captures.
    pub segments: Segments,
    /// Two captures' clocks.
    pub clocks: Clocks,
}

impl Tables {
    /// The tables' names, which are their files' stems.
    pub const NAMES: [&'static str; 25] = [
        Flows::NAME,
        Samples::NAME,
        Rtts::NAME,
        Owds::NAME,
        Queues::NAME,
        Links::NAME,
        Events::NAME,
        Transfers::NAME,
        Ues::NAME,
        Radio::NAME,
        Mobility::NAME,
        Commands::NAME,
        Transmissions::NAME,
        Peps::NAME,
        Proxies::NAME,
        Latencies::NAME,
        Passages::NAME,
        TcpInfos::NAME,
        Modems::NAME,
        Waits::NAME,
        Responsiveness::NAME,
        TcpFlows::NAME,
        TcpSamples::NAME,
        Segments::NAME,
        Clocks::NAME,
    ];

    /// The names of the tables that only captures, measurements and changes from outside fill. Results without them have none.
    pub const OPTIONAL: [&'static str; 11] = [
        Commands::NAME,
        Latencies::NAME,
        Passages::NAME,
        TcpInfos::NAME,
        Modems::NAME,
        Waits::NAME,
        Responsiveness::NAME,
        TcpFlows::NAME,
        TcpSamples::NAME,
        Segments::NAME,
        Clocks::NAME,
    ];

    /// Appends the rows of `other`. A driver that runs in parallel appends in the order of (point, run), so that the
    /// tables do not depend on which run finished first.
    pub fn append(&mut self, other: Tables) {
        macro_rules! append {
            ($table:ident) => {
                if self.$table.is_empty() {
                    self.$table = other.$table;
                } else {
                    self.$table.append(&other.$table);
                }
            };
        }
        each_table!(append);
    }

    /// The number of rows in all tables together.
    pub fn row_count(&self) -> usize {
        let mut rows = 0;
        macro_rules! count {
            ($table:ident) => {
                rows += self.$table.len()
            };
        }
        each_table!(count);
        rows
    }

    /// The number of rows of each job, in all tables together.
    pub(crate) fn rows_of_jobs(&self) -> BTreeMap<Job, u64> {
        let mut rows = BTreeMap::new();
        macro_rules! count {
            ($table:ident) => {
                self.$table.stretches().for_each(|(job, of)| *rows.entry(job).or_default() += of.len() as u64)
            };
        }
        each_table!(count);
        rows
    }

    /// The rows of some jobs.
    pub(crate) fn of_jobs(&self, jobs: &BTreeSet<Job>) -> Tables {
        let mut some = Tables::default();
        macro_rules! copy {
            ($table:ident) => {
                for (_, rows) in self.$table.stretches().filter(|(job, _)| jobs.contains(job)) {
                    some.$table.push_rows(&self.$table, rows);
                }
            };
        }
        each_table!(copy);
        some
    }

    /// Appends the rows of `other` in the tables that the summary is made of.
    pub(crate) fn append_summarised(&mut self, other: &Tables) {
        self.flows.append(&other.flows);
        self.rtts.append(&other.rtts);
        self.owds.append(&other.owds);
        self.links.append(&other.links);
        self.transfers.append(&other.transfers);
        self.ues.append(&other.ues);
    }

    /// Replaces each text in all tables, as to publish results without addresses.
    pub fn map_texts(&mut self, map: &dyn Fn(&str) -> String) {
        macro_rules! map_texts {
            ($table:ident) => {
                self.$table.map_texts(map)
            };
        }
        each_table!(map_texts);
    }

    /// Adds `by` to the number of each row's point, as to put results of `points` points beside others.
    ///
    /// # Errors
    /// The table that has a row of none of these points, and why.
    pub fn shift_points(&mut self, by: u32, points: u32) -> Result<(), String> {
        macro_rules! shift {
            ($table:ident) => {
                let shifted = Table::shift_points(&mut self.$table, by, points);
                shifted.map_err(|error| format!("{}.parquet: {error}", stringify!($table)))?;
            };
        }
        each_table!(shift);
        Ok(())
    }

    /// Gives the rows of all tables to a job, as to put results of single runs together.
    pub fn set_job(&mut self, point: u32, run: u32) {
        macro_rules! set {
            ($table:ident) => {
                Table::set_job(&mut self.$table, point, run)
            };
        }
        each_table!(set);
    }

    /// The names of the tables with their schemas, which give each column's meaning and unit.
    pub fn schemas() -> Vec<(&'static str, arrow_schema::SchemaRef)> {
        fn schema<T: Table>(_: fn(&Tables) -> &T) -> (&'static str, arrow_schema::SchemaRef) {
            (T::NAME, T::schema())
        }
        let mut schemas = Vec::new();
        macro_rules! add {
            ($table:ident) => {
                schemas.push(schema(|tables| &tables.$table))
            };
        }
        each_table!(add);
        schemas
    }

    /// Writes the table of this name (one of [`Tables::NAMES`]) as Parquet.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if there is no such table; `to` could not be written.
    pub fn write_parquet(&self, name: &str, to: impl Write + Send) -> io::Result<()> {
        macro_rules! write {
            ($table:ident) => {
                if name == stringify!($table) {
                    return self.$table.write_parquet(to);
                }
            };
        }
        each_table!(write);
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("unknown table `{name}`")))
    }

    /// Whether no table has a row.
    pub fn is_empty(&self) -> bool {
        let mut empty = true;
        macro_rules! look {
            ($table:ident) => {
                empty &= self.$table.is_empty()
            };
        }
        each_table!(look);
        empty
    }

    /// Puts the distributions of a flow's copy into [`Tables::rtts`] and [`Tables::owds`].
    pub fn push_delays(
        &mut self,
        (point, run): (u32, u32),
        (flow, conn): (&str, u32),
        rtts: &Distribution,
        owds: &Distribution,
    ) {
        for (rtt, count) in rtts.iter() {
            self.rtts.push(&RttRow { point, run, flow, conn, rtt_ms: ms(rtt), count });
        }
        for (owd, count) in owds.iter() {
            self.owds.push(&OwdRow { point, run, flow, conn, owd_ms: ms(owd), count });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_texts_replace_those_of_every_row_and_no_number() {
        let mut tables = Tables::default();
        for (flow, conn) in [("a", 0), ("b", 1), ("a", 2), ("c", 3)] {
            tables.flows.push(&FlowRow { flow, conn, ..FlowRow::default() });
        }
        tables.map_texts(&|text| if text == "b" { "a".to_owned() } else { text.to_uppercase() });
        let rows: Vec<_> = tables.flows.iter().map(|row| (row.flow.to_owned(), row.conn)).collect();
        let expected = [("A", 0), ("a", 1), ("A", 2), ("C", 3)].map(|(flow, conn)| (flow.to_owned(), conn));
        assert_eq!(rows, expected);
    }

    #[test]
    fn every_table_has_a_schema_with_a_meaning_for_each_column() {
        let schemas = Tables::schemas();
        assert_eq!(schemas.iter().map(|(name, _)| *name).collect::<Vec<_>>(), Tables::NAMES);
        let fields = schemas.iter().flat_map(|(_, schema)| schema.fields());
        assert!(fields.clone().count() > 200);
        assert!(fields.into_iter().all(|field| field.metadata().contains_key("doc")));
    }
}
