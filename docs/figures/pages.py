"""The figure of the tutorial: page load time and download goodput over four queues in an LTE base station.

    python docs/figures/pages.py

runs docs/samples/pages-sweep.toml, writes docs/src/images/pages.svg and prints how much each point differs from the
first. Needs `pip install '.[plot]'`.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl

import ranway

DOCS = Path(__file__).resolve().parent.parent
QUEUES = ["drop-tail\n1 MB", "drop-tail\n200 kB", "FQ-CoDel\n5 ms", "FQ-CoDel\n20 ms"]
SENDERS = {"cubic": ("CUBIC", "#0072B2", "o"), "bbr": ("BBR", "#D55E00", "s")}
T95 = 2.776  # Student's t for a 95 % interval over five runs

results = ranway.run(ranway.Scenario(DOCS / "samples" / "pages-sweep.toml"), progress=False)
runs = results.summary_frame()  # a row for each point, run and flow


def interval(values: pl.Expr) -> list[pl.Expr]:
    """The mean over the runs and the half-width of its 95 % interval."""
    return [values.mean().alias("mean"), (T95 * values.std() / values.len().sqrt()).alias("ci95")]


# The figure: each point with the interval of its mean.
plt.rcParams.update({"svg.hashsalt": "ranway", "svg.fonttype": "path", "font.size": 9})
figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
panels = [("browser", "completion_s", "Page load time (s)"), ("download", "goodput_mbps", "Download goodput (Mbit/s)")]
for ax, (flow, column, label) in zip(axes, panels, strict=True):
    for shift, (cc, (name, colour, marker)) in zip((-0.08, 0.08), SENDERS.items(), strict=True):
        # The flows have a column `cc` of their own, so the swept key is `sweep.cc`.
        chosen = runs.filter(pl.col("flow") == flow, pl.col("sweep.cc") == cc)
        points = chosen.group_by("queue", maintain_order=True).agg(interval(pl.col(column)))
        x = [i + shift for i in range(len(QUEUES))]
        ax.errorbar(x, points["mean"], points["ci95"], fmt=marker, color=colour, capsize=3, label=name)
    ax.set(ylabel=label, ylim=(0, None))
    ax.set_xticks(range(len(QUEUES)), QUEUES)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(title="Download", frameon=False)
figure.savefig(DOCS / "src" / "images" / "pages.svg", metadata={"Date": None})

# The comparison: run by run, because a run has the same channel in all points.
figures = {"browser": "completion_s", "download": "goodput_mbps"}
print("change from point 0 in per cent, paired by run")
for flow, column in figures.items():
    own = runs.filter(pl.col("flow") == flow)
    first = own.filter(pl.col("point") == 0).select("run", first=pl.col(column))
    change = own.join(first, on="run").with_columns(change=100 * (pl.col(column) / pl.col("first") - 1))
    for (cc, queue), rows in change.filter(pl.col("point") > 0).group_by("sweep.cc", "queue", maintain_order=True):
        mean, ci95 = rows.select(interval(pl.col("change"))).row(0)
        print(f"{column:13} {cc:6} {queue:23} {mean:+6.1f} ± {ci95:4.1f}")
