//! The threads of a proxy.

use std::thread::{Builder, JoinHandle};

use netio::Error;

/// Starts a thread with a name.
///
/// # Errors
/// [`Error::System`].
pub(super) fn start<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Error> {
    Builder::new().name(name.to_owned()).spawn(run).map_err(Error::system("start a thread"))
}
