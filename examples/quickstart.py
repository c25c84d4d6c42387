"""Why a download through a deep queue slows down everything else, in one figure with four plots.

    python examples/quickstart.py --out bufferbloat.png

Needs `pip install '.[plot]'`. Cells are marked with `# %%` for editors that run them one by one.
"""

# %% A download and small transfers share a link, with a deep queue and with FQ-CoDel.
import argparse

import matplotlib.pyplot as plt
import polars as pl

import ranway

parser = argparse.ArgumentParser(description="What one run shows")
parser.add_argument("--out", default="bufferbloat.png", help="where the figure goes")
args = parser.parse_args()

scenario = ranway.Scenario("bufferbloat").set(duration="30 s").sweep(queue=["drop-tail", "fq-codel"])
results = ranway.run(scenario, seed=1)

# %% The tables are DataFrames, with a column for each swept key.
times = results.transfers.group_by("queue", maintain_order=True).agg(
    pl.col("completion_s").median().alias("median s"), pl.col("completion_s").max().alias("worst s")
)
print("Small transfers of 30 kB, completion time:", times, sep="\n")

# %% Four plots in one figure.
figure, axes = plt.subplots(2, 2, figsize=(10, 6), layout="constrained")
ranway.plot.throughput(results, ax=axes[0, 0], flow="download")
ranway.plot.cwnd(results, ax=axes[0, 1], flow="download")
ranway.plot.queue(results, ax=axes[1, 0])
ranway.plot.rtt_cdf(results, ax=axes[1, 1], flow="small")
figure.savefig(args.out, dpi=150)
print("figure:", args.out)
