"""What a sweep costs beside its simulations on this machine, and what that means for a cluster.

Needs a built `ranway` (`cargo build --release -p ranway`); for the last part the Python package with `dask`,
optimised (`maturin develop --release --manifest-path python/Cargo.toml`).

- `long`: 20 jobs of about a second. `ranway run` keeps all results in memory; `ranway sweep` writes a file for each job
  and merges them. The difference of their processor times is the overhead of a sweep; two processors instead of one
  show how it scales.
- `short`: 10,000 jobs of some milliseconds, as one shard, and the merge: seconds and peak memory for each job.
- `dask`: the 20 jobs on a LocalCluster of two processes, one job a task, beside `ranway sweep`.

From these follow the predictions for 1,000 processors: jobs run in parallel, the scheduler and the merge do not.
`target/bench/sweep.json` holds the figures. Timings are reported; no test depends on them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONG_JOBS, SHORT_JOBS = 20, 10_000
CLUSTER = 1_000
# A cluster's jobs: their number, and the seconds of each.
CLUSTER_JOBS, CLUSTER_JOB_S = 100_000, 30.0


def scenario(points: int, duration_s: int) -> str:
    losses = ", ".join(f"{1e-5 * (i + 1):.5f}" for i in range(points // 4))
    return f"""
title = "Losses and round-trip times"
duration = "{duration_s} s"
warmup = "1 s"
runs = 1
[sweep]
loss = [{losses}]
rtt = ["20 ms", "40 ms", "60 ms", "80 ms"]
[dumbbell]
rate = "10 Mbit/s"
rtt = "${{rtt}}"
loss = "${{loss}}"
queue = {{ kind = "drop-tail", packets = 100 }}
[[flows]]
name = "bulk"
"""


def measure(command: list[str | Path]) -> dict[str, float]:
    """Seconds, processor seconds and peak memory (MB) of a command."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"`{' '.join(map(str, command))}` exited with {process.returncode}")
    taken = time.monotonic() - start
    return {"s": taken, "cpu_s": usage.ru_utime + usage.ru_stime, "mb": usage.ru_maxrss / 1e3}


def dask(path: Path, out: Path) -> float:
    """Seconds of the sweep on a LocalCluster."""
    from distributed import Client, LocalCluster

    import ranway

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.wait_for_workers(2)
        start = time.monotonic()
        ranway.sweep(path, out=out, client=client, chunk_s=1e-3, progress=None)
        return time.monotonic() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--ranway", type=Path, default=target / "release" / "ranway")
    parser.add_argument("--dask", action="store_true", help="measure a LocalCluster, too")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "bench" / "sweep.json")
    arguments = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as directory:
        place = Path(directory)
        long, short = place / "long.toml", place / "short.toml"
        long.write_text(scenario(LONG_JOBS, 3000))
        short.write_text(scenario(SHORT_JOBS, 10))
        for jobs in (1, 2):
            for how in ("run", "sweep"):
                options = ["--quiet", "--jobs", str(jobs), "--out", place / f"{how}-{jobs}"]
                found[f"long, {how}, {jobs} processors"] = measure([arguments.ranway, how, long, *options])
        out = place / "short"
        shard = ["sweep", short, "--quiet", "--shard", "1/1", "--out", out]
        found["short, shard, all processors"] = measure([arguments.ranway, *shard])
        found["short, merge"] = measure([arguments.ranway, "merge", f"{out}.sweep", "--quiet"])
        if arguments.dask:
            found["long, dask, 2 processes"] = {"s": dask(long, place / "dask")}
    for what, of in found.items():
        print(f"{what:32}" + "".join(f"{value:10.2f} {unit}" for unit, value in of.items()))

    run, sweep = found["long, run, 1 processors"], found["long, sweep, 1 processors"]
    print(f"overhead of a sweep: {sweep['cpu_s'] / run['cpu_s'] - 1:.1%} of the processor time")
    print(f"two processors: {sweep['s'] / found['long, sweep, 2 processors']['s']:.2f} times as fast as one")
    merge_s = found["short, merge"]["s"] / SHORT_JOBS
    print(f"merge: {merge_s * 1e3:.2f} ms a job")
    work_s = CLUSTER_JOBS * CLUSTER_JOB_S / CLUSTER
    serial_s = CLUSTER_JOBS * merge_s
    share = work_s / (work_s + serial_s)
    print(
        f"{CLUSTER_JOBS:,} jobs of {CLUSTER_JOB_S:.0f} s on {CLUSTER:,} processors: {work_s:.0f} s and"
        f" {serial_s:.0f} s for the merge, {share:.0%} of the processors used"
    )
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
