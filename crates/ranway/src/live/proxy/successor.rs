//! Another process goes on with the connections of a proxy.

use super::args::{ProxyArgs, refusal};
use super::beside::{Beside, go_without, show};
use crate::{failure::Failure, terminal};
use netio::manager::Manager;
use services::proxy::{Inheritance, Proxy, Settings};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Time for a process that has handed over its connections to end, and the interval between looks.
const PREDECESSOR: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

/// Starts a proxy that takes over what another one has `left`. From the moment that it has the connections, nothing ends it that it can
/// do without.
pub(super) fn take_over(
    args: &ProxyArgs,
    settings: Settings,
    mut left: Inheritance,
    guardian: impl Fn() -> Command + Send + 'static,
) -> Result<(Proxy, Beside), Failure> {
    Beside::check(args)?;
    let mut proxy = Proxy::start(settings, None, Some(&mut left), guardian).map_err(refusal)?;
    tell_manager(Manager::ready_as_main).or_else(go_without)?;
    left.release();
    let start = Instant::now();
    while !left.is_complete() && start.elapsed() < PREDECESSOR {
        show(proxy.tick()?, args.quiet);
        std::thread::sleep(LOOK);
    }
    let mut beside = Beside::open(args, go_without)?;
    proxy.set_governor(beside.governor.take()).map_err(Failure::from).or_else(go_without)?;
    beside.attach(args, &mut proxy, go_without)?;
    Ok((proxy, beside))
}

/// Tells the service manager, if there is one.
pub(super) fn tell_manager(tell: impl FnOnce(&Manager) -> io::Result<()>) -> Result<(), Failure> {
    let Some(manager) = Manager::find()? else { return Ok(()) };
    Ok(tell(&manager).map_err(|why| anyhow::anyhow!("the service manager cannot be told: {why}"))?)
}

/// The process that is to take over, if there is one.
pub(super) struct Successor {
    program: PathBuf,
    child: Option<Child>,
}

impl Successor {
    /// There is none yet. It will run this program.
    pub(super) fn of(program: PathBuf) -> Successor {
        Successor { program, child: None }
    }

    /// Starts it, with the options of this process.
    pub(super) fn start(&mut self) {
        const TAKE_OVER: &str = "--take-over";
        if self.child.is_some() {
            return;
        }
        let options = std::env::args_os().skip(1).filter(|option| option != TAKE_OVER);
        match Command::new(&self.program).args(options).arg(TAKE_OVER).spawn() {
            Ok(child) => self.child = Some(child),
            Err(why) => {
                terminal::message!("error: {} cannot be started ({why}); this process goes on", self.program.display());
            }
        }
    }

    /// Looks after it, or after another process that asks for the connections, and hands them over when it is time.
    pub(super) fn look(&mut self, proxy: &mut Proxy) -> Succession {
        let failed = match proxy.look_at_heir() {
            Ok(false) => None,
            Ok(true) => match proxy.hand_over() {
                Ok(count) => return Succession::Complete(count),
                Err(why) => Some((Succession::Failed, why)),
            },
            Err(why) => Some((Succession::None, why)),
        };
        if let Some((outcome, why)) = failed {
            terminal::message!("error: the process that was to take over has not ({why}); this one goes on");
            if let Some(mut child) = self.child.take() {
                // It may only stand still.
                let _ = child.kill();
                let _ = child.wait();
            }
            return outcome;
        }
        if let Some(child) = &mut self.child
            && let Ok(Some(status)) = child.try_wait()
        {
            terminal::message!("error: the process that was to take over has ended ({status}); this one goes on");
            self.child = None;
        }
        Succession::None
    }
}

/// What has become of a hand-over.
pub(super) enum Succession {
    /// There was none, or it was given up before it began.
    None,
    /// So many connections are another process's.
    Complete(u64),
    /// The proxy goes on, without a governor.
    Failed,
}
