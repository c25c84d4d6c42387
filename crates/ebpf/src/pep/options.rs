//! The options of the PEP.

use crate::{Error, Key};

/// The interfaces and options of a PEP.
#[derive(Clone, Debug)]
pub struct Options {
    /// The interface towards the senders.
    pub wan: String,
    /// The interface towards the receivers.
    pub ran: String,
    /// Report to senders that have not announced support for reports, too.
    pub all: bool,
    /// Data segments per report, unless data is missing or a burst ends.
    pub every: u32,
    /// Maximum number of flows tracked.
    pub flows: u32,
    /// Authenticates reports to senders with the same key.
    pub key: Option<Key>,
    /// Take over from the PEP running there, with its state, if there is one.
    pub take_over: bool,
    /// Attach the programs without processing packets, for measurements.
    pub blind: bool,
}

impl Options {
    /// Returns the default options for these interfaces.
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

    /// Checks that the options are valid.
    ///
    /// # Errors
    /// [`Error::Wrong`].
    pub fn check(&self) -> Result<(), Error> {
        if self.wan == self.ran {
            return Err(Error::Wrong(format!("--wan and --ran must differ, but both are `{}`", self.wan)));
        }
        if !(1..=64).contains(&self.every) || self.flows == 0 {
            return Err(Error::Wrong("--every must be from 1 to 64, and --flows at least 1".into()));
        }
        Ok(())
    }
}
