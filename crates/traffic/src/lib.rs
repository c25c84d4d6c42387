//! What applications offer to the transport, and when.
//!
//! An [`App`] is one application of a scenario: it runs between two hosts, called [`Side::From`] and [`Side::To`] since
//! its data goes mainly from the first to the second, and it plays the parts of both. It has no sockets. The driver owns
//! those, carries out the application's [`Action`]s and tells it by [`Notice`]s what came of them:
//!
//! 1. [`App::handle`] whenever something happened to one of its connections;
//! 2. [`App::poll_action`] until it returns `None`, after each notice and at each [`App::poll_timeout`];
//! 3. [`App::poll_timeout`] says when it wants to be polled next if nothing happens before. Time never goes back.
//!
//! At its stop time an application begins nothing new. Transfers and pages that it has begun are finished and reported.
//!
//! Not modelled: the size of the socket's send buffer. A write is taken whole, so an application whose rate the network
//! does not carry builds its backlog in the sender's socket.

mod action;
mod app;
mod bulk;
mod cbr;
mod draw;
mod on_off;
mod pages;
mod ppbp;
mod short_flows;
#[cfg(test)]
mod story;
mod ticker;

pub use action::{Action, BadConfig, Notice, RETRY_AFTER, Random, Side, Transfer, Transport, UDP_HEADERS};
pub use app::{App, Config};
pub use bulk::Bulk;
pub use cbr::Cbr;
pub use draw::{Length, Size};
pub use on_off::OnOff;
pub use pages::Pages;
pub use ppbp::Ppbp;
pub use short_flows::{Gap, ShortFlows};
