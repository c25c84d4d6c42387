//! The settings of the PEP.

use crate::{Error, Key};

/// Between what, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The interface to the senders.
    pub wan: String,
    /// The interface to the receivers.
    pub ran: String,
    /// Report to senders that have not announced that they understand it, too.
    pub all: bool,
    /// A report for so many segments of data, unless something is missing or a burst ends.
    pub every: u32,
    /// Flows that are remembered at most.
    pub flows: u32,
    /// Shows senders with the same key that reports are from here.
    pub key: Option<Key>,
    /// Take the place of the PEP that is at work there, with what it remembers, if there is one.
    pub take_over: bool,
    /// Attach the programs, and have them look at nothing: for measuring.
    pub blind: bool,
}

impl Options {
    /// The usual, between these interfaces.
    pub fn new(wan: &str, ran: &str) -> Options {
        Options {
            wan: wan.into(),
            ran: ran.into(),
            all: false,
            every: 2,
            flows: 65_536,
            key: None,
            take_over: false,
            blind: false,
        }
    }

    /// Whether they make sense.
    ///
    /// # Errors
    /// [`Error::Wrong`].
    pub fn check(&self) -> Result<(), Error> {
        if self.wan == self.ran {
            return Err(Error::Wrong(format!("`{}` is on one side only: --wan and --ran differ", self.wan)));
        }
        if !(1..=64).contains(&self.every) || self.flows == 0 {
            return Err(Error::Wrong("a report is for 1 to 64 segments, and at least one flow is remembered".into()));
        }
        Ok(())
    }
}
