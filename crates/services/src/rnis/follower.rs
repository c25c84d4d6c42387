//! Reports of an input for a program that has no runtime of its own, such as the proxy.

use super::callback::CallbackPolicy;
use super::faults::Losses;
use super::hub::Hub;
use super::input::Input;
use super::settings::{Error, Limits};
use crate::log::Log;
use crate::socket_file::SocketFile;
use rnis::feed::Carrier;
use rnis::{AddressMap, Network, RadioReport};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

/// Time for an input to end.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Follows an input in a thread of its own until it is dropped.
#[derive(Debug)]
pub struct Follower {
    runtime: Option<Runtime>,
    reading: JoinHandle<()>,
    socket_file: Option<SocketFile>,
}

impl Follower {
    /// Opens an input and calls `report` with each of its reports as soon as it has arrived. It must not wait, and returns how
    /// many reports it lost for lack of room. These losses and later failures of the input are logged.
    ///
    /// # Errors
    /// The input cannot be opened.
    pub fn start(
        input: Input,
        log: Log,
        mut report: impl FnMut(&RadioReport) -> u64 + Send + 'static,
    ) -> Result<Follower, Error> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("reports").enable_all().build();
        let runtime = runtime.map_err(|why| Error(format!("cannot start: {why}")))?;
        let (reading, socket_file) = runtime.block_on(async {
            let (network, addresses) = (Network::default(), AddressMap::default());
            let hub = Hub::new(network, addresses, CallbackPolicy::default(), Limits::default(), log.clone());
            let mut losses = Losses::new(log.clone(), format!("input {input}"));
            let input_name = input.to_string();
            let opened = input.open(Carrier::default()).await?;
            hub.for_each_report(move |next| losses.add(report(next)));
            tokio::spawn(hub.clone().expire());
            let socket_file = opened.socket_file();
            let reading = tokio::spawn(async move {
                // In a task of its own, so that a panic is told; the task ends with this one.
                let mut running = JoinSet::new();
                let of_run = log.clone();
                running.spawn(async move { opened.run(&hub, &of_run).await });
                match running.join_next().await {
                    Some(Ok(Err(why))) => log.line(format_args!("{}", why.0)),
                    Some(Err(_)) => log.line(format_args!("input {input_name}: failed by an error of this program")),
                    _ => {}
                }
            });
            Ok((reading, socket_file))
        })?;
        Ok(Follower { runtime: Some(runtime), reading, socket_file })
    }

    /// Returns the file of the input's socket, if it has one. It is removed with the follower, unless the process is killed.
    pub fn socket_file(&self) -> Option<SocketFile> {
        self.socket_file.clone()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.reading.abort();
        if let Some(runtime) = self.runtime.take() {
            // It removes its socket.
            let _ = runtime.block_on(async { timeout(END_TIMEOUT, &mut self.reading).await });
            // A read of standard input cannot be cancelled, so it is not waited for.
            runtime.shutdown_background();
        }
    }
}
