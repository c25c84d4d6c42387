//! The tests of radio network information, in one program: they share what starts and asks a service.

#![allow(clippy::disallowed_methods)] // Tests read files, start programs and measure time.

mod amqp;
mod client;
mod common;
mod delivery;
mod hostile;
mod http;
mod inputs;
mod security;
