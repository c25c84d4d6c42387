//! Where slow start ends, beside the kernel.

use crate::common::run;

/// The slow-start threshold that CUBIC begins with after slow start over 10 Mbit/s, in kB, and the time of the first sample
/// with it, in s.
fn end(rtt: &str, queue: &str, tcp: &str) -> (f64, f64) {
    let tables = run(&format!(
        r#"
duration = "8 s"
record = {{ samples = "10 ms" }}
[dumbbell]
rate = "10 Mbit/s"
rtt = "{rtt}"
queue = {{ kind = "drop-tail", bytes = "{queue}" }}
[tcp]
{tcp}
[[flows]]
name = "f"
cc = "cubic"
"#
    ));
    let row = tables.samples.iter().find(|row| row.ssthresh_bytes.is_some()).expect("slow start ends");
    (row.ssthresh_bytes.unwrap() as f64 / 1e3, row.t_s)
}

#[test]
fn slow_start_at_10_mbit_ends_with_the_kernels_window() {
    // Linux 6.18 with headers of 192 bytes, as `ranway oracle` measured it in each of three runs (docs/oracle-table.md).
    for (rtt, queue, kernel) in [("10 ms", "50 kB", 37.648), ("50 ms", "62.5 kB", 91.224), ("50 ms", "250 kB", 91.224)]
    {
        let (window, at) = end(rtt, queue, "max_header = 192");
        let (old, old_at) = end(
            rtt,
            queue,
            "linux = \"6.1\"\nsmall_queues = false\nsend_autotuning = false\nsend_buffer = \"64 MB\"\nreceive_buffer = \"64 MB\"",
        );
        println!("{rtt}, {queue}: {window} kB at {at} s, kernel {kernel}; with earlier buffers {old} at {old_at}");
        assert!((window / kernel - 1.0).abs() < 0.05, "{rtt}, {queue}: {window} kB at {at} s, kernel {kernel}");
    }
}
