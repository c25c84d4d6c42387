//! What a machine can do at most: two real hosts, and between them a loop that gives each the packets of the other, with
//! no network in it. `peers/emulate.py` puts an emulation beside it.
//!
//! `forward COMMAND...` runs the command at the second host; the first, `server`, has iperf3. Needs root.

use emulate::lab::Lab;
use emulate::serve;
use netio::realtime::{Resident, hurry};
use netio::tun::Tun;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// As many as the emulation reads in a row.
const BATCH: usize = 32;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let program = words.next().ok_or("usage: forward COMMAND...")?;
    let mut lab = Lab::new(&["server".to_owned(), "client".to_owned()], None, 1500, None)?;
    let ports = [lab.tun(0), lab.tun(1)];
    let _iperf3 = serve::iperf3(&lab, 0);
    let stop = AtomicBool::new(false);
    let status = std::thread::scope(|scope| {
        scope.spawn(|| forward(&ports, &stop));
        let status = lab.command(1, &program).args(words).status();
        stop.store(true, Ordering::Relaxed);
        status
    })?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

fn forward(ports: &[Tun; 2], stop: &AtomicBool) {
    let _resident = Resident::hold();
    hurry();
    let mut buffer = vec![0; 1 << 16];
    while !stop.load(Ordering::Relaxed) {
        let mut fds = [0, 1].map(|port: usize| PollFd::new(ports[port].as_fd(), PollFlags::POLLIN));
        // Interrupted is as good as woken.
        let _ = poll(&mut fds, PollTimeout::from(50_u8));
        for port in [0, 1].into_iter().filter(|&port| fds[port].any() == Some(true)) {
            for _ in 0..BATCH {
                let Ok(Some(len)) = ports[port].read(&mut buffer) else { break };
                let _ = ports[1 - port].write(&buffer[..len]);
            }
        }
    }
}
