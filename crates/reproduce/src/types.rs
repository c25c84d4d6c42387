//! The TypeScript types of reproductions in the report, generated from the Rust types.

use ts_rs::{Config, TS};

use crate::check::{Origin, Published};
use crate::compare::{Row, Verdict};
use crate::drawn::{Drawn, Kind, Line};

#[test]
fn the_page_types_are_those_of_the_rust_types() {
    let config = &Config::new();
    let declarations = testkit::declarations!(config, Verdict, Origin, Published, Row, Kind, Line, Drawn);
    testkit::page::check_types("reproduction.ts", "reproduce", &declarations);
}
