//! The page's TypeScript types, generated from the Rust types that are embedded in it.

use ts_rs::{Config, TS};

use super::{Embedded, EmbeddedSummary, Shown, live, rows, series};
use crate::{
    FlowSummary, Lateness, Limited, LinkSummary, Meta, Partial, PointSummary, Stat, Timing, UeDirection, UeSummary,
};

#[test]
fn the_page_types_are_those_of_the_rust_types() {
    // A number of the page is a double: JSON.parse gives no bigint.
    let config = &Config::new().with_large_int("number");
    let declarations = testkit::declarations!(
        config,
        Stat,
        Limited,
        FlowSummary,
        LinkSummary,
        UeDirection,
        UeSummary,
        PointSummary,
        EmbeddedSummary,
        Partial,
        Meta,
        Lateness,
        Timing,
        rows::FlowRow<'static>,
        rows::LinkRow<'static>,
        rows::UeRow<'static>,
        rows::MobilityRow<'static>,
        rows::CommandRow<'static>,
        series::Kind,
        series::Embedded<'static>,
        Shown,
        Embedded<'static>,
        live::Progress,
        live::Place,
        live::Places,
        live::Controls,
        live::Counter,
        live::Live,
        live::Event,
        live::Gone,
    );
    testkit::page::check_types("report.ts", "record", &declarations);
}
