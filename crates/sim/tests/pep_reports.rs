//! Facts about a PEP whose reports get lost, end to end.

#![allow(missing_docs, reason = "a test binary")]

mod common;

use common::{flow, near, run};
use record::Tables;

/// A flow over a wired link of 1 Gbit/s and 5 ms with `wired` in it, and a radio of 35 Mbit/s and 10 ms with `radio`.
fn two_domains(cc: &str, wired: &str, radio: &str) -> Tables {
    run(&format!(
        r#"
duration = "40 s"
warmup = "10 s"
record.samples = "off"
[[links]]
name = "internet"
from = "server"
to = "border"
rate = "1 Gbit/s"
delay = "5 ms"
{wired}
[[links]]
name = "radio"
from = "border"
to = "phone"
rate = "35 Mbit/s"
delay = "10 ms"
{radio}
[[flows]]
name = "f"
from = "server"
to = "phone"
cc = "{cc}"
"#
    ))
}

#[test]
fn a_pep_whose_reports_are_all_lost_is_no_pep() {
    let silent = two_domains("mdcc", "pep = true\npep_report_loss = 1.0", "loss = 1e-3");
    let absent = two_domains("mdcc", "", "loss = 1e-3");
    let cubic = two_domains("cubic", "", "loss = 1e-3");
    let bytes = |tables: &Tables| flow(tables, "f").bytes;
    assert_eq!(bytes(&silent), bytes(&absent));
    assert_eq!(bytes(&absent), bytes(&cubic));
}

#[test]
fn half_of_the_reports_do_where_the_radio_loses() {
    // CUBIC's Reno-friendly region at 1e-3 and 30 ms: about 15 Mbit/s. Scalable's a / (b p) with a segment for a hundred:
    // 80 segments in a round trip of 30 ms, 32 Mbit/s, held back a little by the bottleneck.
    let goodput = |cc: &str, lost: f64| {
        let wired = format!("pep = true\npep_report_loss = {lost}");
        flow(&two_domains(cc, &wired, "loss = 1e-3"), "f").goodput_mbps
    };
    let (cubic, all, half) = (goodput("cubic", 0.0), goodput("mdcc", 0.0), goodput("mdcc", 0.5));
    near("CUBIC", cubic, 14.5, 0.15);
    near("Multi-Domain", all, 28.0, 0.15);
    near("with half of the reports", half, all, 0.05);
}
