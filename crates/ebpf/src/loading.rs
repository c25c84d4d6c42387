//! Functions shared by all loaders: requirements of the machine, and error messages of the kernel.

use crate::Error;
use crate::sys::{self, Tcx};
use libbpf_rs::btf::{Btf, types};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::time::{ClockId, clock_gettime};
use std::fs;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// The kernel's type information.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// `CAP_NET_ADMIN`, `CAP_SYS_ADMIN`, `CAP_PERFMON` and `CAP_BPF`, by capability(7).
const NET_ADMIN: u64 = 1 << 12;
const SYS_ADMIN: u64 = 1 << 21;
const PERFMON_AND_BPF: u64 = 1 << 38 | 1 << 39;

/// libbpf's messages since the current operation began.
static SAID: Mutex<String> = Mutex::new(String::new());
/// Held by the operation whose messages are collected.
static LISTENING: Mutex<()> = Mutex::new(());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Checks that this user may load programs, and that the kernel has type information, for the purpose `what`.
pub(crate) fn check(what: &str) -> Result<(), Error> {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    let effective = effective.unwrap_or(0);
    let may_load = effective & SYS_ADMIN != 0 || effective & PERFMON_AND_BPF == PERFMON_AND_BPF;
    if effective & NET_ADMIN == 0 || !may_load {
        let needed = "CAP_NET_ADMIN, and CAP_SYS_ADMIN or CAP_BPF with CAP_PERFMON";
        return Err(Error::Missing(format!("{what} needs root ({needed}): use sudo")));
    }
    if !Path::new(BTF).exists() {
        let why = "the kernel does not describe its types (CONFIG_DEBUG_INFO_BTF)";
        return Err(Error::Missing(format!("{what} cannot run here: {why}; there is no {BTF}")));
    }
    Ok(())
}

/// Checks that the kernel supports TCP congestion controls as programs, with the operations that these programs
/// implement.
pub(crate) fn check_struct_ops() -> Result<(), Error> {
    let refused = |why: &str| Error::Missing(format!("this kernel takes no congestion control from outside: {why}"));
    let btf = Btf::from_vmlinux().map_err(|e| refused(&format!("its types cannot be read: {e}")))?;
    if btf.type_by_name::<types::Struct<'_>>("bpf_struct_ops_tcp_congestion_ops").is_none() {
        return Err(refused("it lacks struct_ops (CONFIG_BPF_JIT, Linux 5.6)"));
    }
    let ops = btf.type_by_name::<types::Struct<'_>>("tcp_congestion_ops");
    let asks = ops.is_some_and(|ops| ops.iter().any(|member| member.name.is_some_and(|n| n == "min_tso_segs")));
    if !asks {
        return Err(refused(
            "its congestion controls have no `min_tso_segs`, where a window opens between acknowledgements",
        ));
    }
    Ok(())
}

/// Performs an operation of libbpf; includes the kernel's messages if it fails.
pub(crate) fn attempt<T>(what: &str, act: impl FnOnce() -> libbpf_rs::Result<T>) -> Result<T, Error> {
    let _listening = lock(&LISTENING);
    lock(&SAID).clear();
    let before = libbpf_rs::set_print(Some((libbpf_rs::PrintLevel::Warn, |_, said| lock(&SAID).push_str(&said))));
    let result = act();
    libbpf_rs::set_print(before);
    result.map_err(|e| Error::Refused { what: what.to_owned(), why: explain(&e.to_string(), &lock(&SAID)) })
}

/// Attaches a program, described by `what`, with [`sys::attach_tcx`].
pub(crate) fn attach_tcx(program: BorrowedFd<'_>, interface: u32, place: Tcx, what: &str) -> Result<OwnedFd, Error> {
    sys::attach_tcx(program, interface, place).map_err(|e| match e.raw_os_error() {
        Some(libc::EINVAL) => Error::Missing("this kernel has no tcx (Linux 6.6)".into()),
        _ => Error::System { what: format!("attach {what}"), source: e },
    })
}

/// Writes the end of a time that begins now to a program's `until`, in nanoseconds of `CLOCK_MONOTONIC`; zero is in the past.
pub(crate) fn renew(until: &MapHandle, time: Duration) -> Result<(), Error> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(Error::system("read the clock"))?;
    let end = if time.is_zero() { Duration::ZERO } else { Duration::from(now) + time };
    let end = u64::try_from(end.as_nanos()).unwrap_or(u64::MAX);
    let updated = until.update(&0_u32.to_ne_bytes(), &end.to_ne_bytes(), MapFlags::ANY);
    updated.map_err(Error::refused("set a time"))
}

/// Extracts one line from the messages of the kernel's verifier, if it rejected the program.
fn explain(error: &str, said: &str) -> String {
    let program = said.lines().find_map(|line| line.strip_prefix("libbpf: prog '")?.split('\'').next());
    let log = said.split_once("BEGIN PROG LOAD LOG --").and_then(|(_, log)| log.split("processed ").next());
    // The last line that is neither an instruction, nor a source line, nor a summary.
    let reason = log.and_then(|log| {
        let is_reason = |line: &&str| {
            let instruction = line.split_once(':').is_some_and(|(n, _)| n.parse::<u32>().is_ok());
            !line.is_empty() && !line.starts_with(';') && !instruction
        };
        log.lines().map(str::trim).rfind(is_reason)
    });
    match (program, reason) {
        (Some(program), Some(reason)) => format!("the verifier rejects `{program}`: {reason} ({error})"),
        (Some(program), None) => format!("`{program}`: {error}"),
        _ => match said.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("{error} ({})", line.trim_start_matches("libbpf: ").trim()),
            None => error.to_owned(),
        },
    }
}

/// Returns the mount point of cgroups (v2).
pub(crate) fn cgroup_root() -> Result<PathBuf, Error> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let root = mounts.lines().find_map(|line| {
        let mut field = line.split(' ').skip(1);
        let (at, kind) = (field.next()?, field.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(at.replace("\\040", " ")))
    });
    root.ok_or_else(|| {
        Error::Missing(
            "cgroups (v2) are not mounted: `mount -t cgroup2 none /sys/fs/cgroup/unified`, or --cgroup".into(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::root::granted;

    #[test]
    fn what_the_verifier_says_becomes_one_line() {
        let said = "libbpf: prog 'mdcc_options': BPF program load failed: -EACCES\n\
                    libbpf: prog 'mdcc_options': -- BEGIN PROG LOAD LOG --\n\
                    0: R1=ctx() R10=fp0\n; tp = bpf_skc_to_tcp_sock(ctx->sk); @ mdcc.bpf.c:578\n\
                    12: (85) call bpf_skc_to_tcp_sock#137\nR1 type=sock_or_null expected=sock\n\
                    processed 211 insns (limit 1000000)\n-- END PROG LOAD LOG --\n";
        let line = explain("Permission denied (os error 13)", said);
        assert_eq!(
            line,
            "the verifier rejects `mdcc_options`: R1 type=sock_or_null expected=sock (Permission denied (os error 13))"
        );
        assert_eq!(explain("No such file", ""), "No such file");
        assert_eq!(explain("Bad", "libbpf: failed to find BTF\n"), "Bad (failed to find BTF)");
    }

    #[test]
    fn root_a_program_that_the_verifier_rejects_is_named_with_the_reason() {
        if granted(check("this test")).is_none() {
            return;
        }
        // Reads through a pointer that may be null.
        let source = "typedef unsigned int u32;\n\
                      struct { int (*type)[1]; int (*max_entries)[1]; u32 *key; u32 *value; } numbers\n\
                      __attribute__((section(\".maps\"), used));\n\
                      static void *(*const lookup)(void *, const void *) = (void *)1;\n\
                      __attribute__((section(\"tc\"), used)) int careless(void *ctx) {\n\
                      u32 zero = 0; return *(u32 *)lookup(&numbers, &zero); }\n\
                      char _license[] __attribute__((section(\"license\"), used)) = \"GPL\";\n";
        let directory = tempfile::tempdir().expect("a directory");
        let (c, o) = (directory.path().join("careless.c"), directory.path().join("careless.o"));
        fs::write(&c, source).expect("it is written");
        let mut clang = std::process::Command::new("clang");
        clang.args(["-g", "-O2", "-target", "bpf", "-c"]).arg(&c).arg("-o").arg(&o);
        assert!(clang.status().expect("clang").success());
        let refused = attempt("load it", || libbpf_rs::ObjectBuilder::default().open_file(&o)?.load()).map(drop);
        let said = refused.expect_err("it is rejected").to_string();
        assert!(said.starts_with("cannot load it: the verifier rejects `careless`: R0 invalid mem access"), "{said}");
        assert_eq!(said.lines().count(), 1);
    }
}
