"""Table I and the capacity step of the multi-domain paper, on this machine's kernel.

Needs root and a built `ranway` (`cargo build --release -p ranway`). The paper's scenarios
(papers/mdcc-towards) run twice: simulated, and with `ranway emulate --kernel`, where the
kernel sends with its own CUBIC and with `ranway mdcc` over the same network, and the
scenario's PEP watches the kernel's packets and reports to it. The kernel's `mdcc` counts
acknowledged segments and the paper's kernel counted acknowledgements, so the simulator
runs both ways.

Means over the runs and the standard error of that. `target/bench/mdcc-kernel.json` holds
the rows. An emulation that was late is left out, and says so.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parent.parent.parent
PAPER = ROOT / "papers" / "mdcc-towards"
LOSSES = (1e-4, 5e-4, 1e-3, 5e-3)
# Table I; section V-C.
PUBLISHED = {"cubic": (34.34, 20.99, 13.64, 6.11), "mdcc": (35.00, 34.94, 28.48, 11.16)}
PUBLISHED_FILL_S = {"cubic": 17.0, "mdcc": 7.0}
STEP_S = 40.0
FULL_MBPS = 350 * 0.95 * 1448 / 1500
CC = {
    "cubic": '"cubic"',
    "mdcc, per acknowledgement": '"mdcc"',
    "mdcc, per segment": '{ kind = "mdcc", per_acknowledgement = false }',
}
LATE = 3


@contextmanager
def loaded(ranway: Path) -> Iterator[None]:
    """`mdcc` is in the kernel, and gone afterwards."""
    subprocess.run([ranway, "mdcc", "load", "--announce-all"], check=True, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        subprocess.run([ranway, "mdcc", "unload"], check=True, stdout=subprocess.DEVNULL)


def results(ranway: Path, what: list[str], scenario: str, keys: dict[str, str], out: Path) -> Path | None:
    """Runs a scenario; the folder of its results, or none if it was late."""
    sets = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
    command = [ranway, *what, PAPER / scenario, *sets, "--quiet", "--out", out]
    ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if ended.returncode == LATE:
        return None
    if ended.returncode:
        sys.exit(f"{scenario}: {ended.stderr.strip()}")
    return out


def throughput(folder: Path) -> list[float]:
    """Mbit/s of IP bytes, by run."""
    return pl.read_parquet(folder / "flows.parquet")["throughput_mbps"].to_list()


def fill(folder: Path) -> list[float]:
    """When the first second after the step ended that was full, in s after the step, by run."""
    samples = pl.read_parquet(folder / "samples.parquet").filter(pl.col("t_s") > STEP_S)
    times = []
    for (_run,), of in samples.group_by("run", maintain_order=True):
        second = of.with_columns(mean=pl.col("goodput_mbps").rolling_mean(10)).filter(pl.col("mean") >= FULL_MBPS)
        times.append(float(second["t_s"][0]) - STEP_S if second.height else float("inf"))
    return times


def say(values: list[float]) -> str:
    if not values:
        return "late"
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.2f} ± {error:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranway", type=Path, default=ROOT / "target" / "release" / "ranway")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=40, help="of each run of Table I, 10 of them warm-up")
    parser.add_argument("--what", choices=("loss", "step"), help="Table I or the capacity step alone")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("this needs root: namespaces and eBPF")
    table = {"loss": ("wireless-loss.toml", [{"loss": str(loss)} for loss in LOSSES], throughput)}
    table["step"] = ("capacity-step.toml", [{"radio_delay": '"10 ms"', "to": '"350 Mbit/s"'}], fill)
    rows = []
    with tempfile.TemporaryDirectory() as scratch, loaded(args.ranway):
        for name, (scenario, points, measure) in table.items():
            if args.what not in (None, name):
                continue
            # The kernel's flows start when the scenario says.
            real = {"flows.0.start_jitter": '"0 s"'} if name == "step" else {}
            length = {"duration": f'"{args.seconds} s"'} if name == "loss" else {"duration": '"75 s"'}
            for number, point in enumerate(points):
                for cc, written in CC.items():
                    kind = cc.split(",")[0]
                    keys = point | length | {"cc": written}
                    simulated = results(
                        args.ranway, ["run"], scenario, keys | {"runs": str(args.runs)}, Path(scratch) / "simulated"
                    )
                    kernel: list[float] = []
                    for _ in range(args.runs if cc != "mdcc, per acknowledgement" else 0):
                        out = results(
                            args.ranway, ["emulate", "--kernel"], scenario, keys | real, Path(scratch) / "emulated"
                        )
                        kernel += measure(out) if out else []
                    published = PUBLISHED[kind][number] if name == "loss" else PUBLISHED_FILL_S[kind]
                    row = {
                        "what": f"{name} {point.get('loss', '')}".strip(),
                        "cc": cc,
                        "published": published,
                        "simulated": measure(simulated) if simulated else [],
                        "kernel": kernel,
                    }
                    rows.append(row)
                    beside = say(kernel) if cc != "mdcc, per acknowledgement" else "-"
                    print(f"| {row['what']} | {cc} | {published} | {say(row['simulated'])} | {beside} |", flush=True)
    out = ROOT / "target" / "bench" / "mdcc-kernel.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"written: {out.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
