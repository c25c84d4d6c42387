//! The namespaces of the flows' ends.

use std::net::Ipv4Addr;

use crate::Error;
use crate::lab::Lab;

/// Where the flows' ends are.
pub(super) trait Hosts {
    fn address(&self, host: usize) -> Ipv4Addr;
    /// Does something in a host's namespace. Sockets that it makes stay there.
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
