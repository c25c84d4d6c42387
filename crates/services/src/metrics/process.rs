//! Metrics of this program and its process, which all services have.
//!
//! Their names are those that Prometheus' client libraries share, so that dashboards and rules of others know them:
//! <https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics>.

use super::page::Page;
use nix::unistd::{SysconfVar, sysconf};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// The version of the program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the kernel tells of this process. What it does not tell is missing.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let mut page = Page(encoder);
        page.gauges(
            "ranway_build_info",
            "The program, whose version is in the label",
            [([("version", VERSION)], 1.0)],
        )?;
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let cpu_s = time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9;
        page.counter("process_cpu_seconds", "Processor time of this process", cpu_s)?;
        let limit = getrlimit(Resource::Nofile).current;
        for (name, help, value) in [
            (
                "process_resident_memory_bytes",
                "Memory of this process, without what the kernel has for its sockets",
                resident(),
            ),
            ("process_open_fds", "Open files of this process", open_files()),
            ("process_max_fds", "Files that this process may open", limit.map(|limit| limit as f64)),
            ("process_start_time_seconds", "Start of this process, in Unix time", started()),
        ] {
            value.map_or(Ok(()), |value| page.gauge(name, help, value))?;
        }
        Ok(())
    }
}

/// Returns a field of a file in `/proc`, by its number from 0.
fn field(text: &str, number: usize) -> Option<f64> {
    text.split_ascii_whitespace().nth(number)?.parse().ok()
}

/// Returns the resident memory in bytes (proc(5), `/proc/pid/statm`: pages).
fn resident() -> Option<f64> {
    Some(field(&fs::read_to_string("/proc/self/statm").ok()?, 1)? * netio::sys::page_size() as f64)
}

fn open_files() -> Option<f64> {
    // Since Linux 6.2, the size of the folder is their number.
    let size = fs::metadata("/proc/self/fd").ok()?.len();
    Some(if size > 0 { size as f64 } else { fs::read_dir("/proc/self/fd").ok()?.count() as f64 })
}

/// Returns the start in Unix time, which is read once (proc(5), `/proc/pid/stat`: field 22, in ticks since the machine's start).
fn started() -> Option<f64> {
    static START: LazyLock<Option<f64>> = LazyLock::new(|| {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The second field is the name, in parentheses, with anything in it.
        let ticks = field(stat.rsplit_once(')')?.1, 19)?;
        let ticks_per_second = sysconf(SysconfVar::CLK_TCK).ok()??;
        let since = clock_gettime(ClockId::Boottime);
        let age_s = since.tv_sec as f64 + since.tv_nsec as f64 * 1e-9 - ticks / ticks_per_second as f64;
        Some(SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs_f64() - age_s)
    });
    *START
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_of_this_process() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later").as_secs_f64();
        let age = now - started().expect("it is told");
        assert!((-1.0..3600.0).contains(&age), "{age} s");
        let before = open_files().expect("it is told");
        let _file = fs::File::open("/dev/null").expect("it is there");
        // Other tests of this process open files, too.
        assert!(before >= 3.0, "{before}");
        let resident = resident().expect("it is told");
        let large = vec![1_u8; 64 << 20];
        assert!(super::resident().expect("it is told") > resident + 32e6, "{}", large.len());
    }
}
