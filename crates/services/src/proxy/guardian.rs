//! A process that undoes what a proxy changed when the proxy dies, and shuts its listeners when it hangs.
//!
//! The guardian shares the proxy's listening sockets. The proxy sends it a message several times a second. If none comes for
//! [`LOST`], because the proxy was stopped, hangs or gets no processor, the guardian shuts the sockets, which resets those who wait
//! there. When the proxy has ended in any way, the guardian removes its rules and routes and the socket of its reports, and ends.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use netio::program::ip;
use netio::{Error, sys};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, send, socketpair};
use serde::{Deserialize, Serialize};

use super::listen::{HANGS, LOST, Listener, shut};
use super::passing;
use super::sysctl::Setting;
use crate::socket_file::SocketFile;

/// Time that the guardian has to end after the proxy.
const LAST_WORK: Duration = Duration::from_secs(3);
/// Longest message; a path in it takes at most 17 KiB.
const LONGEST: usize = 32 << 10;

/// What the guardian does in the end.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Orders {
    /// For each family, lines for `ip -batch`.
    pub(super) undo: Vec<(String, String)>,
    /// Settings of the kernel that the proxy has changed.
    pub(super) settings: Vec<Setting>,
    /// The socket of the reports, if the proxy has made one.
    pub(super) reports: Option<SocketFile>,
    /// Whether another proxy goes on with the listeners.
    pub(super) has_heir: bool,
}

/// The proxy's end.
#[derive(Debug)]
pub(super) struct Guardian {
    socket: Option<OwnedFd>,
    child: Child,
}

impl Guardian {
    /// Starts the guardian by `command`, which calls [`guard`] with its standard input.
    pub(super) fn start(mut command: Command, orders: &Orders, listeners: &[Listener]) -> Result<Guardian, Error> {
        let what = "start a process that cleans up in the end";
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (ours, theirs) = pair.map_err(Error::system(what))?;
        command.stdin(Stdio::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
        let child = sys::in_own_session(&mut command).spawn().map_err(Error::system(what))?;
        // Until it has a socket, dropping it waits for its end.
        let guardian = Guardian { socket: Some(ours), child };
        guardian.order(orders).map_err(Error::system(what))?;
        guardian.watch(listeners).map_err(Error::system(what))?;
        Ok(guardian)
    }

    /// Has the guardian shut these listeners, too, when the proxy hangs.
    pub(super) fn watch(&self, listeners: &[Listener]) -> Result<(), Errno> {
        for some in listeners.chunks(passing::MOST) {
            let sockets: Vec<BorrowedFd> = some.iter().map(|listener| listener.socket.as_fd()).collect();
            self.send(&[0], &sockets)?;
        }
        Ok(())
    }

    /// Replaces what the guardian does in the end.
    pub(super) fn order(&self, orders: &Orders) -> Result<(), Errno> {
        self.send(&serde_json::to_vec(orders).expect("strings and numbers can be written as JSON"), &[])
    }

    fn send(&self, bytes: &[u8], sockets: &[BorrowedFd]) -> Result<(), Errno> {
        let Some(socket) = &self.socket else { return Err(Errno::PIPE) };
        passing::send(socket.as_fd(), &[IoSlice::new(bytes)], sockets, SendFlags::NOSIGNAL)
    }

    /// Tells the guardian that the proxy runs. Returns whether the guardian does.
    pub(super) fn beat(&self) -> bool {
        let Some(socket) = &self.socket else { return false };
        // If its queue is full, it has not run for a while, and will read one of the others.
        match send(socket, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => true,
            Err(_) => false,
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        // The end of its input, which one that somebody has stopped would not see.
        self.socket = None;
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGCONT);
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if start.elapsed() > LAST_WORK {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Runs the guardian on its standard input until the proxy has ended.
///
/// # Errors
/// Nobody has started this as a guardian.
pub fn guard() -> Result<(), Error> {
    let socket = std::io::stdin();
    let mut listeners: Vec<OwnedFd> = Vec::new();
    let mut orders = None;
    // How often in a row no message came. Time would also pass while the guardian itself does not run.
    let mut silent = 0;
    loop {
        match wait(socket.as_fd()) {
            Ok(true) => {}
            Ok(false) => {
                silent += 1;
                if HANGS * silent >= LOST {
                    listeners.iter().for_each(|listener| shut(listener.as_fd()));
                }
                continue;
            }
            Err(Errno::INTR) => continue,
            Err(error) => return Err(Error::system("wait for the proxy")(error)),
        }
        let mut buffer = vec![0; LONGEST];
        let (count, new) = match passing::receive(socket.as_fd(), &mut buffer, RecvFlags::empty()) {
            Ok((0, _)) => break,
            Ok(received) => received,
            Err(Errno::INTR) => continue,
            Err(Errno::CONNRESET) => break,
            Err(error) => return Err(Error::system("hear the proxy")(error)),
        };
        silent = 0;
        listeners.extend(new);
        // Any other message has one byte.
        if orders.is_none() || count > 1 {
            let read: Result<Orders, _> = serde_json::from_slice(&buffer[..count]);
            orders = Some(read.map_err(|why| Error::Wrong(format!("not started by a proxy: {why}")))?);
        }
    }
    let Orders { undo, settings, reports, has_heir } = orders.unwrap_or_default();
    if !has_heir {
        listeners.iter().for_each(|listener| shut(listener.as_fd()));
    }
    settings.into_iter().for_each(Setting::restore);
    for (family, lines) in undo {
        // What is gone is fine.
        let _ = ip(&[&family, "-force"], &lines);
    }
    reports.iter().for_each(SocketFile::remove);
    Ok(())
}

fn wait(socket: BorrowedFd) -> Result<bool, Errno> {
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(HANGS.subsec_nanos()) };
    Ok(poll(&mut [PollFd::from_borrowed_fd(socket, PollFlags::IN)], Some(&timeout))? > 0)
}
