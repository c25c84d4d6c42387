//! A queue above RLC with flow control: it shortens the wait and costs no throughput.

use crate::common::{load, run_on};
use record::Tables;

const CELL: &str = include_str!("../../../../papers/backlog/cell.toml");

/// The paper's cell for 12 s, with its parameters set to `more`.
fn cell(more: &str) -> Tables {
    let text = format!("include = [\"cell\"]\nduration = \"12 s\"\nwarmup = \"4 s\"\n[parameters]\n{more}\n");
    run_on(&load(&text, &[("cell", CELL)]), 1).results.tables
}

/// The goodput of all flows of a direction, Mbit/s.
fn goodput(tables: &Tables, way: &str) -> f64 {
    tables.flows.iter().filter(|f| f.flow.contains(way)).map(|f| f.goodput_mbps).sum()
}

#[test]
fn byte_queue_limits_do_not_starve_rlc() {
    let fifo = "ues = 3\nreports_host = true\nqueue = { kind = \"drop-tail\", bytes = \"500 kB\" }";
    for scheduler in ["round-robin", "proportional-fair"] {
        for (rlc, completed) in [("um", "sent"), ("am", "sent"), ("am", "acknowledged")] {
            for ideal in [true, false] {
                let case = format!("{fifo}\nscheduler = \"{scheduler}\"\nrlc = \"{rlc}\"\nideal = {ideal}\n");
                let none = cell(&case);
                let bql = cell(&format!("{case}limit = {{ kind = \"bql\", completed = \"{completed}\" }}"));
                for way in ["-down-", "-up-"] {
                    let (with, without) = (goodput(&bql, way), goodput(&none, way));
                    let change = (with / without - 1.0).abs();
                    assert!(without > 10.0 && change < 0.03, "{case}{completed} {way}: {with} for {without}");
                }
                let (starved, blocks) =
                    bql.ues.iter().fold((0, 0), |(a, b), row| (a + row.starved_blocks, b + row.blocks));
                assert!(blocks > 1000 && starved * 100 <= blocks, "{case}{completed}: {starved} of {blocks}");
            }
        }
    }
}

#[test]
fn marks_above_a_threshold_shorten_the_queue() {
    let median = |queue: &str| {
        let tables = cell(&format!("ecn = true\nlimit = \"bql\"\nqueue = {queue}"));
        let bulk = tables.flows.iter().find(|f| f.flow == "bulk-down-ue").unwrap();
        assert!(bulk.ce_marks.unwrap() > 0, "{queue}");
        bulk.owd_p50_ms.unwrap()
    };
    let (control, threshold) = (median("\"fq-codel\""), median("{ kind = \"fq-codel\", ce_threshold = \"1 ms\" }"));
    assert!(threshold < control, "{threshold} ms for {control}");
}
