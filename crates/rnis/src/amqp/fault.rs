//! Why a connection ends.

use core::fmt;

/// The reason why a connection cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The broker closed the connection or the channel.
    Closed {
        /// The reply code.
        code: u16,
        /// The broker's explanation, without control characters.
        text: String,
    },
    /// The broker ended the subscription, for example because its queue was deleted.
    Cancelled,
    /// It speaks another version of AMQP, or no AMQP.
    NotAmqp,
    /// It does not accept a user name and a password.
    NoPlain,
    /// It sent something that does not belong there, or is longer than permitted.
    Protocol(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Closed { code, text } => write!(to, "the broker closed the connection: {code} {text}"),
            Fault::Cancelled => to.write_str("the broker ended the subscription"),
            Fault::NotAmqp => to.write_str("the peer is not a broker for AMQP 0-9-1"),
            Fault::NoPlain => to.write_str("the broker does not accept a user name and a password (PLAIN)"),
            Fault::Protocol(what) => write!(to, "the broker violates the protocol: {what}"),
        }
    }
}

impl core::error::Error for Fault {}
