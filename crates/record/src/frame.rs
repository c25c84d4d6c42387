//! The summary of each flow in each run as a table, which Python has as `summary_frame()`.
//!
//! Figures are those of the [catalogue](crate::figures), and texts and counts those of the table `flows`: names, meanings and units
//! are written there. Only the quantiles that the summary does not have are defined here.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use units::stats::rank_of_weighted;

use crate::figures::of_flows;
use crate::summary::{FlowInRun, flows_by_run};
use crate::table::{self, Column, OptStrings, Strings, Table};
use crate::tables::{FlowRow, Flows};
use crate::{FlowSummary, Results};

/// A column of the table, by its name.
enum Of {
    /// A number of the point or the run.
    Number(&'static str, fn(&FlowInRun<'_>) -> u32),
    /// A text of the flow's first copy.
    Text(&'static str, for<'a> fn(&FlowRow<'a>) -> &'a str),
    /// The same, which may be missing.
    OptText(&'static str, for<'a> fn(&FlowRow<'a>) -> Option<&'a str>),
    /// A figure of the catalogue.
    Figure(&'static str),
    /// A count, summed over the copies; missing if that of a copy is.
    Sum(&'static str, fn(&FlowRow<'_>) -> Option<u64>),
    /// The quantile of this share of the round-trip times of all copies together.
    Rtt(&'static str, f64),
    /// The same of the one-way delays.
    Owd(&'static str, f64),
}

const COLUMNS: [Of; 33] = [
    Of::Number("point", |flow| flow.point),
    Of::Number("run", |flow| flow.run),
    Of::Text("flow", |row| row.flow),
    Of::Text("transport", |row| row.transport),
    Of::OptText("cc", |row| row.cc),
    Of::Text("from", |row| row.from),
    Of::Text("to", |row| row.to),
    Of::Figure("copies"),
    Of::Figure("goodput_mbps"),
    Of::Figure("throughput_mbps"),
    Of::Figure("retransmission_rate"),
    Of::Figure("loss"),
    Of::Sum("bytes", |row| Some(row.bytes)),
    Of::Sum("segments_sent", |row| row.segments_sent),
    Of::Sum("retransmitted", |row| row.retransmitted),
    Of::Sum("rtos", |row| row.rtos),
    Of::Sum("ce_marks", |row| row.ce_marks),
    Of::Sum("lost_packets", |row| row.lost_packets),
    Of::Rtt("rtt_p5_ms", 0.05),
    Of::Figure("rtt_p50_ms"),
    Of::Figure("rtt_p95_ms"),
    Of::Rtt("rtt_p99_ms", 0.99),
    Of::Rtt("rtt_max_ms", 1.0),
    Of::Owd("owd_p5_ms", 0.05),
    Of::Figure("owd_p50_ms"),
    Of::Figure("owd_p95_ms"),
    Of::Owd("owd_p99_ms", 0.99),
    Of::Owd("owd_max_ms", 1.0),
    Of::Figure("transfers"),
    Of::Figure("transfers_finished"),
    Of::Figure("completion_s"),
    Of::Figure("completion_p50_s"),
    Of::Figure("completion_p95_s"),
];

/// Returns the table: a row for each flow of each run, by point, run and first appearance.
pub fn summary_frame(results: &Results) -> RecordBatch {
    let flows = flows_by_run(results);
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = COLUMNS.iter().map(|of| of.column(&flows)).unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("each column has a value for each flow")
}

/// Writes the table as Parquet.
///
/// # Errors
/// `to` could not be written.
pub fn write_summary_frame(results: &Results, to: impl Write + Send) -> io::Result<()> {
    table::write_batch(to, &summary_frame(results))
}

impl Of {
    fn column(&self, flows: &[FlowInRun<'_>]) -> (Field, ArrayRef) {
        match *self {
            Of::Number(name, of) => known::<Vec<u32>>(name, flows.iter().map(of)),
            Of::Text(name, of) => known::<Strings>(name, flows.iter().map(|flow| of(&flow.copies[0]))),
            Of::OptText(name, of) => known::<OptStrings>(name, flows.iter().map(|flow| of(&flow.copies[0]))),
            Of::Figure(name) => figure(name, flows),
            Of::Sum(name, of) => {
                known::<Vec<Option<u64>>>(name, flows.iter().map(|flow| flow.copies.iter().map(of).sum()))
            }
            Of::Rtt(name, share) => {
                let doc = format!("{} of the round-trip times.", quantile(share));
                column::<Vec<Option<f64>>>(
                    name,
                    &doc,
                    "ms",
                    flows.iter().map(|flow| rank_of_weighted(&flow.rtts, share)),
                )
            }
            Of::Owd(name, share) => {
                let doc = format!("{} of the data packets' one-way delays.", quantile(share));
                column::<Vec<Option<f64>>>(
                    name,
                    &doc,
                    "ms",
                    flows.iter().map(|flow| rank_of_weighted(&flow.owds, share)),
                )
            }
        }
    }
}

fn quantile(share: f64) -> String {
    if share < 1.0 { format!("{:.0}th percentile", share * 100.0) } else { "Largest".to_owned() }
}

/// The column of a figure of the catalogue: whole numbers of a count.
fn figure(name: &str, flows: &[FlowInRun<'_>]) -> (Field, ArrayRef) {
    let figure = of_flows(name).expect("the catalogue has it");
    let value = |flow: &FlowSummary| (figure.of)(flow).map(|stat| stat.mean);
    let values = flows.iter().map(|flow| value(&flow.summary));
    if figure.unit.is_empty() {
        return column::<Vec<Option<u32>>>(
            name,
            figure.meaning,
            "",
            values.map(|count| count.map(|count| count as u32)),
        );
    }
    column::<Vec<Option<f64>>>(name, figure.meaning, figure.unit, values)
}

/// The column of a text or a number that the table `flows` has, too.
fn known<'v, C: Column>(name: &str, values: impl Iterator<Item = C::Item<'v>>) -> (Field, ArrayRef) {
    let schema = Flows::schema();
    let metadata = schema.field_with_name(name).expect("the table has it").metadata();
    let of = |key| metadata.get(key).map_or("", String::as_str);
    column::<C>(name, of("doc"), of("unit"), values)
}

fn column<'v, C: Column>(
    name: &str,
    doc: &str,
    unit: &str,
    values: impl Iterator<Item = C::Item<'v>>,
) -> (Field, ArrayRef) {
    let (mut column, mut rows) = (C::default(), 0);
    for value in values {
        column.push(value);
        rows += 1;
    }
    (table::field::<C>(name, &[doc], unit), column.array(0..rows))
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};

    use super::*;
    use crate::figures::OF_FLOWS;

    #[test]
    fn the_frame_has_every_figure_of_the_catalogue_with_its_unit() {
        let frame = summary_frame(&Results::default());
        for figure in &OF_FLOWS {
            let field = frame.schema_ref().field_with_name(figure.name).expect(figure.name).clone();
            assert_eq!(field.metadata().get("unit").map_or("", String::as_str), figure.unit, "{}", figure.name);
        }
        for field in frame.schema_ref().fields() {
            assert!(field.metadata().get("doc").is_some_and(|doc| doc.len() > 5), "{}", field.name());
        }
    }

    #[test]
    fn copies_are_combined_and_a_count_that_one_does_not_tell_is_missing() {
        let mut results = Results::default();
        for conn in [0, 1] {
            let row = FlowRow { flow: "f", transport: "tcp", conn, measured_to_s: 2.0, ..FlowRow::default() };
            let sent = FlowRow { bytes: 250_000, segments_sent: Some(200), retransmitted: Some(5), ..row };
            results.tables.flows.push(&FlowRow { rtos: (conn == 0).then_some(1), ..sent });
            results.tables.rtts.push(&crate::tables::RttRow {
                flow: "f",
                conn,
                rtt_ms: 20.0 - f64::from(conn),
                count: 1,
                ..Default::default()
            });
        }
        let frame = summary_frame(&results);
        let column = |name: &str| frame.column_by_name(name).expect(name);
        assert_eq!(frame.num_rows(), 1);
        assert_eq!(column("copies").as_primitive::<UInt32Type>().value(0), 2);
        assert_eq!(column("segments_sent").as_primitive::<UInt64Type>().value(0), 400);
        assert!(column("rtos").is_null(0) && column("lost_packets").is_null(0) && column("owd_p5_ms").is_null(0));
        for (name, value) in
            [("goodput_mbps", 2.0), ("retransmission_rate", 0.025), ("rtt_p50_ms", 19.0), ("rtt_max_ms", 20.0)]
        {
            assert_eq!(column(name).as_primitive::<Float64Type>().value(0), value, "{name}");
        }
    }
}
