"""The picture of the README: CUBIC and BBR over the same made-up cellular downlink.

    python docs/figures/cellular.py

runs docs/samples/cellular.toml and writes docs/src/images/cellular.svg. Needs `pip install '.[plot]'`.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl

import ranway

DOCS = Path(__file__).resolve().parent.parent
COLOURS = {"cubic": "#0072B2", "bbr": "#D55E00"}
NAMES = {"cubic": "CUBIC", "bbr": "BBR"}

plt.rcParams.update(
    {
        "svg.hashsalt": "ranway",  # the same file each time
        "svg.fonttype": "path",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.6,
        "axes.grid": True,
        "grid.color": "#E6E6E6",
        "grid.linewidth": 0.6,
        "lines.linewidth": 1.2,
    }
)


def mean_of_bins(rows: pl.DataFrame, column: str, width: float) -> tuple[pl.Series, pl.Series]:
    """The mean of `column` over bins of `width` seconds, at the middle of each."""
    number = ((pl.col("t_s") - 1e-9) / width).floor()
    bins = rows.group_by(number.alias("bin"), maintain_order=True).agg(pl.col(column).mean())
    return (bins["bin"] + 0.5) * width, bins[column]


def main() -> None:
    """Runs, draws, saves."""
    scenario = ranway.Scenario(DOCS / "samples" / "cellular.toml")
    results = ranway.run(scenario, progress=False)
    # More than the link can carry: what it serves is then its capacity.
    flood = scenario.set({"cc": "cubic", "flows.download.traffic": {"kind": "cbr", "rate": "100 Mbit/s"}})
    capacity = ranway.run(flood, progress=False).queues.filter(pl.col("link") == "bottleneck")

    figure, axes = plt.subplots(3, 1, figsize=(8, 5.6), sharex=True, layout="constrained")
    times, served = mean_of_bins(capacity, "served_mbps", 0.2)
    axes[0].fill_between(times, served, color="#DDDDDD", linewidth=0, label="capacity")
    for cc, colour in COLOURS.items():
        samples = results.samples.filter(pl.col("cc") == cc)
        queue = results.queues.filter((pl.col("cc") == cc) & (pl.col("link") == "bottleneck"))
        # The later line is the thinner, so that where they agree both are seen.
        width = {"cubic": 2.2, "bbr": 1.1}[cc]
        axes[0].plot(*mean_of_bins(queue, "served_mbps", 0.2), color=colour, label=NAMES[cc], linewidth=width)
        axes[1].plot(samples["t_s"], samples["cwnd_bytes"] / 1e3, color=colour)
        axes[2].plot(queue["t_s"], queue["bytes"] / 1e3, color=colour)
    for ax, label in zip(axes, ["Throughput (Mbit/s)", "Congestion window (kB)", "Queue (kB)"], strict=True):
        ax.set_ylabel(label)
        ax.set_ylim(bottom=0)
    axes[2].set_xlabel("Time (s)")
    axes[2].set_xlim(0, 30)
    axes[0].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False, borderaxespad=0)
    figure.align_ylabels()
    path = DOCS / "src" / "images" / "cellular.svg"
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    print(path)


if __name__ == "__main__":
    main()
