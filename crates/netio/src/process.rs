//! Signals to this process, and a command that runs as if it had been started without us: with its terminal, its signals
//! and its exit code.

use crate::{Error, sys};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, dup2_stderr, dup2_stdout};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// The signals that end a program, and the one that reports the end of a child.
const SIGNALS: [Signal; 5] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGCHLD];

/// The signals to this process, which are read here instead of having their default effect.
pub struct Signals(SignalFd);

/// Lets this process have as many open files as the system allows it, and returns how many that are.
pub fn allow_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { raised } else { limit };
    limit.current.unwrap_or(u64::MAX)
}

/// What [`Signals::wait`] returned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// The timeout passed.
    Nothing,
    /// A child ended, or something else that the caller should check.
    Child,
    /// A signal asks this process to end. One from the terminal went to all its processes.
    Asked {
        /// The signal.
        signal: Signal,
        /// Whether it came from the terminal.
        terminal: bool,
    },
}

impl Happened {
    /// Whether the terminal of this process was closed.
    pub fn is_hang_up(&self) -> bool {
        matches!(self, Happened::Asked { signal: Signal::SIGHUP, terminal: true })
    }
}

impl Signals {
    /// Blocks the signals and reads them from now on. Call it before the first thread starts: threads inherit the mask.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn take() -> Result<Signals, Error> {
        Signals::take_also(&[])
    }

    /// The same with more signals.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn take_also(more: &[Signal]) -> Result<Signals, Error> {
        let set: SigSet = SIGNALS.iter().chain(more).copied().collect();
        set.thread_block().map_err(Error::system("to block signals"))?;
        let fd = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC);
        Ok(Signals(fd.map_err(Error::system("to receive signals"))?))
    }

    /// Waits for a signal, at most for `timeout`.
    pub fn wait(&self, timeout: Duration) -> Happened {
        let millis = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        let _ = poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], millis);
        let Ok(Some(info)) = self.0.read_signal() else { return Happened::Nothing };
        match Signal::try_from(info.ssi_signo as i32) {
            Ok(Signal::SIGCHLD) | Err(_) => Happened::Child,
            Ok(signal) => Happened::Asked { signal, terminal: info.ssi_code == libc::SI_KERNEL },
        }
    }
}

/// Lets standard output and standard error fail instead of waiting ([`io::ErrorKind::WouldBlock`]) where they are pipes or
/// terminals whose readers stand still. Other processes that have them, too, write as before.
pub fn wait_for_no_reader() {
    let (stdout, stderr) = (io::stdout(), io::stderr());
    for (number, stream) in [(1, stdout.as_fd()), (2, stderr.as_fd())] {
        let waits = rustix::fs::fstat(stream).is_ok_and(|stat| {
            matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::CharacterDevice)
        });
        // Opening it anew makes a description of our own, which alone is changed. Where that is not allowed, it stays as it is.
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::APPEND | OFlags::CLOEXEC;
        if waits && let Ok(own) = rustix::fs::open(format!("/proc/self/fd/{number}"), flags, Mode::empty()) {
            let _ = if number == 1 { dup2_stdout(own) } else { dup2_stderr(own) };
        }
    }
}

/// Calls `act` while the calling thread blocks all signals. Threads started meanwhile inherit that, so that signals go to
/// the program's own threads: Python handles signals in its first thread only.
pub fn without_signals<T>(act: impl FnOnce() -> T) -> T {
    let mut all = SigSet::all();
    // Processes inherit it too, and shells need to hear of their children.
    all.remove(Signal::SIGCHLD);
    let before = all.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let done = act();
    if let Ok(before) = before {
        // It takes any mask that it has given.
        let _ = before.thread_set_mask();
    }
    done
}

/// A running command.
pub struct Attended {
    child: Child,
    program: String,
}

impl Attended {
    /// Starts `command`, named `program` in errors. Signals reach it, although this process blocks them.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn start(mut command: Command, program: &str) -> Result<Attended, Error> {
        let child =
            sys::with_signals(&mut command, signals()).spawn().map_err(Error::system(format!("to start {program}")))?;
        Ok(Attended { child, program: program.to_owned() })
    }

    /// Passes a signal on.
    pub fn signal(&self, signal: Signal) {
        // It may have ended just now.
        let _ = kill(Pid::from_raw(self.child.id() as i32), signal);
    }

    /// Tells it that its terminal is gone, and waits up to `patience` for its end. Dropping it kills it.
    pub fn hang_up(&mut self, patience: Duration) {
        self.signal(Signal::SIGHUP);
        // One that is stopped would not hear of it.
        self.signal(Signal::SIGCONT);
        let start = Instant::now();
        while start.elapsed() < patience && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns its exit code, as a shell reports it, once it has ended.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn ended(&mut self) -> Result<Option<u8>, Error> {
        let status = self.child.try_wait().map_err(Error::system(format!("to wait for {}", self.program)))?;
        Ok(status.map(code))
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn signals() -> SigSet {
    SIGNALS.into_iter().collect()
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}
