//! Privileges: whether a process has enough, and what a thread that reads other people's packets gives up.
//!
//! Setting up needs root; moving packets does not. Once everything is open, such a thread calls [`confine`]: it gives up
//! its capabilities for good, a program that it starts cannot gain any (`no_new_privs`), and the kernel refuses every
//! system call but those on descriptors, memory, time and thread exit (seccomp). These are properties of a thread: the
//! threads that start programs, clean up and write results keep their privileges. `docs/src/security.md` has the whole
//! picture.
//!
//! A refused system call returns `EPERM`, so a library that tries something new fails in one call and does not end the run.

use std::collections::BTreeMap;
use std::io;

pub use rustix::thread::CapabilitySet;
use rustix::thread::{CapabilitySets, set_capabilities, set_no_new_privs};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use crate::Error;

/// Checks that this process has the rights to set up interfaces and namespaces.
///
/// # Errors
/// [`Error::Missing`] if it has not.
pub fn check_rights() -> Result<(), Error> {
    if has(CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN) {
        return Ok(());
    }
    Err(Error::Missing("real hosts need root (CAP_SYS_ADMIN and CAP_NET_ADMIN): use sudo".into()))
}

/// Whether the calling thread has these capabilities.
pub fn has(capabilities: CapabilitySet) -> bool {
    rustix::thread::capabilities(None).is_ok_and(|had| had.effective.contains(capabilities))
}

/// System calls on open descriptors, memory and time, and to exit.
const ALLOWED: &[libc::c_long] = &[
    // Packets, the control socket, files.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_accept4,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_getsockname,
    libc::SYS_ppoll,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_statx,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    // The control socket's own name, in the end.
    libc::SYS_unlinkat,
    // Memory.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_munlockall,
    libc::SYS_getrandom,
    // Time, and other threads of ours.
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrusage,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_futex,
    libc::SYS_membarrier,
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_prctl,
    // Signals, and the end.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
];

/// The system call that renews a diversion's eBPF map.
pub const BPF: &[libc::c_long] = &[libc::SYS_bpf];

/// Gives up all capabilities of the calling thread, and of threads that it starts, but the one to lock memory: allocation
/// needs it in a process with locked memory ([`crate::realtime::Resident`]). Programs that they start have no more.
///
/// # Errors
/// [`Error::System`].
pub fn give_up() -> Result<(), Error> {
    keep_only(CapabilitySet::IPC_LOCK)
}

/// Gives up all capabilities of the calling thread but `kept`, as far as it has them. Programs that it starts have no more.
///
/// # Errors
/// [`Error::System`].
pub fn keep_only(kept: CapabilitySet) -> Result<(), Error> {
    let set = || -> io::Result<()> {
        set_no_new_privs(true)?;
        let left = rustix::thread::capabilities(None)?.permitted & kept;
        let sets = CapabilitySets { effective: left, permitted: left, inheritable: CapabilitySet::empty() };
        Ok(set_capabilities(None, sets)?)
    };
    set().map_err(Error::system("give up capabilities"))
}

/// Does what [`give_up`] does, and lets the kernel refuse all system calls but those that moving packets takes and those in
/// `also`.
///
/// # Errors
/// [`Error::System`].
pub fn confine(also: &[libc::c_long]) -> Result<(), Error> {
    give_up()?;
    // Where the library has no filters for the processor, there is none.
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else { return Ok(()) };
    let install = || -> Result<(), Box<dyn std::error::Error>> {
        seccompiler::apply_filter(&filter(also, arch)?)?;
        Ok(())
    };
    install().map_err(|error| Error::System {
        what: "confine the thread that moves packets".to_owned(),
        source: io::Error::other(error.to_string()),
    })
}

fn filter(also: &[libc::c_long], arch: TargetArch) -> Result<BpfProgram, seccompiler::BackendError> {
    let allowed = ALLOWED.iter().chain(also).map(|&call| (call, Vec::new()));
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = allowed.collect();
    // By which it is asked whether an interface is still there; with it nobody else can be reached.
    let local = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, libc::AF_UNIX as u64)?;
    rules.insert(libc::SYS_socket, vec![SeccompRule::new(vec![local])?]);
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules, refused, SeccompAction::Allow, arch)?.try_into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Acts in a thread of its own, which is confined.
    fn confined<T: Send>(act: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                confine(&[]).expect("it can be confined");
                act()
            });
            thread.join().expect("it ends")
        })
    }

    #[test]
    fn a_confined_thread_opens_nothing_and_starts_nothing() {
        let kind = |error: io::Error| error.kind();
        let denied = Err(io::ErrorKind::PermissionDenied);
        assert_eq!(confined(|| std::fs::File::open("/etc/hostname").map(drop).map_err(kind)), denied);
        assert_eq!(confined(|| std::process::Command::new("true").status().map(drop).map_err(kind)), denied);
        assert_eq!(confined(|| std::net::TcpStream::connect("127.0.0.1:9").map(drop).map_err(kind)), denied);
        // Only this thread: the others are as they were.
        assert!(std::fs::File::open("/proc/self/status").is_ok());
    }

    #[test]
    fn a_confined_thread_can_do_its_work() {
        let (pair, started) = (std::os::unix::net::UnixStream::pair().expect("a pair"), std::time::Instant::now());
        let sum = confined(move || {
            use std::io::{Read, Write};
            let (mut one, mut other) = pair;
            let much: Vec<u64> = (0..1 << 20).collect();
            one.write_all(b"text").expect("it is sent");
            let mut text = [0; 4];
            other.read_exact(&mut text).expect("it comes");
            std::thread::sleep(std::time::Duration::from_millis(1));
            (much.iter().sum::<u64>(), started.elapsed())
        });
        assert_eq!(sum.0, (1 << 19) * ((1 << 20) - 1));
    }

    #[test]
    fn nothing_is_left_of_roots_rights() {
        let about = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                give_up().expect("they can be given up");
                rustix::thread::capabilities(None).expect("it is told")
            });
            thread.join().expect("it ends")
        });
        let none = CapabilitySet::empty();
        assert_eq!(about.permitted - CapabilitySet::IPC_LOCK, none);
        assert_eq!(about.effective - CapabilitySet::IPC_LOCK, none);
        assert_eq!(about.inheritable, none);
        assert!(confined(|| rustix::thread::no_new_privs().expect("it is told")));
    }
}
