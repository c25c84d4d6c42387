//! Table rows as the report embeds them: the columns that the page shows, with numbers as short as it needs them.

use serde::Serialize;

use super::series::short;
use crate::tables;

/// A value of a column, shortened for the page.
trait Shorten {
    fn shorten(self) -> Self;
}

impl Shorten for u32 {
    fn shorten(self) -> Self {
        self
    }
}

impl Shorten for u64 {
    fn shorten(self) -> Self {
        self
    }
}

impl Shorten for &str {
    fn shorten(self) -> Self {
        self
    }
}

impl Shorten for f64 {
    fn shorten(self) -> Self {
        short(self)
    }
}

impl<T: Shorten> Shorten for Option<T> {
    fn shorten(self) -> Self {
        self.map(T::shorten)
    }
}

/// Declares a row as a selection of the columns of the table row of the same name, and of what is made of it.
macro_rules! row {
    (
        $(#[$meta:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? }
        $(and { $($made:ident: $made_type:ty = $make:expr),* $(,)? })?
    ) => {
        $(#[$meta])*
        #[derive(Serialize)]
        #[cfg_attr(test, derive(ts_rs::TS))]
        pub(super) struct $name<'a> {
            $($field: $type,)*
            $($($made: $made_type,)*)?
        }

        impl<'a> From<tables::$name<'a>> for $name<'a> {
            fn from(row: tables::$name<'a>) -> Self {
                $(let ($($made,)*) = ($($make(&row).shorten(),)*);)?
                $name { $($field: row.$field.shorten(),)* $($($made,)*)? }
            }
        }
    };
}

row! {
    /// A copy of a flow in a run.
    FlowRow {
        point: u32, run: u32, flow: &'a str, conn: u32, transport: &'a str, cc: Option<&'a str>,
        from: &'a str, to: &'a str,
        start_s: f64, measured_from_s: f64, completion_s: Option<f64>, bytes: u64, goodput_mbps: f64,
        throughput_mbps: f64, rtt_min_ms: Option<f64>, rtt_p50_ms: Option<f64>, rtt_p95_ms: Option<f64>,
        rtt_max_ms: Option<f64>, owd_p50_ms: Option<f64>, owd_p95_ms: Option<f64>, rtos: Option<u64>,
        ce_marks: Option<u64>, lost_packets: Option<u64>,
    } and {
        retransmitted_share: Option<f64> = tables::FlowRow::retransmitted_share,
    }
}

row! {
    /// A link in a run.
    LinkRow {
        point: u32, run: u32, link: &'a str, packets_in: u64, packets_out: u64, bytes_out: u64, dropped_overflow: u64,
        dropped_control: u64, dropped_loss: u64, marked: u64, utilisation: f64, sojourn_p50_ms: Option<f64>,
        sojourn_p95_ms: Option<f64>, sojourn_p99_ms: Option<f64>,
    }
}

row! {
    /// A direction of a UE in a run.
    UeRow {
        point: u32, run: u32, ue: &'a str, direction: &'a str, measured_s: f64, blocks: u64, mbits: f64,
        retransmissions: u64, block_error_rate: f64, residual_errors: u64, prbs: u64, utilisation: Option<f64>,
        padding_bytes: u64, starved_blocks: u64, rlc_retx_pdus: u64, rlc_retx_bytes: u64, scheduling_requests: u64,
        random_accesses: u64, handovers: u64, handover_failures: u64, link_failures: u64, asleep: f64, core_ms: f64,
        queue_ms: f64, air_ms: f64, harq_ms: f64, rlc_ms: f64, packets: u64,
    }
}

row! {
    /// An event of a UE's mobility.
    MobilityRow {
        point: u32, run: u32, t_s: f64, ue: &'a str, event: &'a str, cell: &'a str, interruption_ms: Option<f64>,
    }
}

row! {
    /// Something that was changed from outside.
    CommandRow {
        point: u32, run: u32, t_s: f64, command: &'a str, subject: &'a str, value: &'a str, until_s: Option<f64>,
    }
}
