//! The namespaces of the flows' ends.

use std::net::Ipv4Addr;

use crate::Error;
use crate::lab::Lab;

/// The hosts of the flows.
pub(super) trait Hosts {
    fn address(&self, host: usize) -> Ipv4Addr;
    /// Calls `act` in a host's namespace. Sockets made there stay there.
    fn inside<T: Send>(&self, host: usize, act: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error>;
}

impl Hosts for Lab {
    fn address(&self, host: usize) -> Ipv4Addr {
        self.hosts()[host].v4
    }

    fn inside<T: Send>(&self, host: usize, act: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
        Lab::inside(self, host, act)?
    }
}
