//! Applications: what they send, and when.
//!
//! An [`App`] is one application of a scenario: it runs between two hosts, called [`Side::From`] and [`Side::To`]
//! because data flows mainly from the first to the second, and it implements both ends. It has no sockets. The driver
//! owns them, carries out the application's [`Action`]s and reports the results as [`Notice`]s:
//!
//! 1. [`App::handle`] for every event of its connections;
//! 2. [`App::poll_action`] until it returns `None`, after each notice and at each [`App::poll_timeout`];
//! 3. [`App::poll_timeout`] returns when it has to be polled next if nothing happens before. Time never goes back.
//!
//! After its stop time an application begins nothing new. Transfers and pages in progress are completed and reported.
//!
//! Not modelled: the size of the socket's send buffer. Writes are accepted whole, so an application with a higher rate
//! than the network's builds up a backlog in the sender's socket.

mod action;
mod app;
mod bulk;
pub mod cbr;
mod draw;
mod limits;
pub mod on_off;
pub mod pages;
pub mod ppbp;
mod reader;
pub mod short_flows;
pub mod steps;
#[cfg(test)]
mod story;
mod ticker;

pub use action::{Action, Notice, RETRY_AFTER, Random, Side, Transfer, Transport, UDP_HEADERS};
pub use app::{App, Config};
pub use bulk::Bulk;
pub use cbr::Cbr;
pub use draw::{Gap, Size};
pub use limits::PERIODS;
pub use on_off::OnOff;
pub use pages::Pages;
pub use ppbp::Ppbp;
pub use reader::Reader;
pub use short_flows::ShortFlows;
pub use steps::Steps;
