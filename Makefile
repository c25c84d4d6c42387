# `make help` lists all targets. Every target installs what it needs; later runs are quick.

SHELL := /bin/bash
export PATH := $(CURDIR)/.venv/bin:$(HOME)/.cargo/bin:$(PATH)
TRACES ?= ../shared/data/traces
OUT ?= target/demo

.PHONY: help setup build demo test lint pure root python web optimised package package-test bench bench-emulate oracle reproduce reproduce-grid docs clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install everything needed to build and test (Debian packages, Python, npm, cargo)
	@tools/setup all

build: ## build the command, target/release/ranway
	@tools/setup build
	cargo build --release --locked -p ranway

demo: ## build the simulator, compare congestion controls over a cellular trace, reproduce a paper's table, write a report
	@tools/setup simulate
	cargo build --release --locked -p ranway --no-default-features
	target/release/ranway demo $(if $(wildcard $(TRACES)),--traces "$(TRACES)") --out "$(OUT)"

test: ## run all checks and tests, as CI does
	@tools/setup all
	cargo xtask ci

lint: ## a part of `make test`: format, lints, layers, licences, spelling
pure: ## a part of `make test`: tests of crates that need neither clang nor npm nor root
root: ## a part of `make test`: the other Rust tests, and generated pages (as root, or tests with real hosts are skipped)
python: ## a part of `make test`: types and tests of the Python package (the same)
web: ## a part of `make test`: types and tests of the report's page
lint pure root python web:
	@tools/setup $@
	cargo xtask $@

optimised: ## build target/optimised/ranway, optimised by profiles of simulations
	@tools/build-optimised

package: ## build the wheel, the source distribution and the Debian package in target/package
	@tools/setup package
	@cargo xtask package

package-test: ## install the packages of `make package` in clean systems without toolchains, and run them there (as root)
	@tools/setup package
	target/package-tools/bin/python -m pytest packaging

bench: ## measure against ns-3 on this machine; writes target/bench/results.json
	@tools/setup bench
	cargo build --release --locked -p ranway
	python3 peers/bench.py

bench-emulate: ## measure the capacity of emulation on this machine (as root); writes target/bench/emulate.json
	@tools/setup emulate
	python3 peers/emulate.py

oracle: ## compare the simulator's TCP with this machine's kernel (root; over an hour); writes the docs' table
	@tools/setup build
	cargo build --release --locked -p ranway
	target/release/ranway oracle --recordings "$(TRACES)" --out target/oracle
	cp target/oracle/oracle.md docs/oracle-table.md

reproduce: ## run every reproduction at full length; writes the docs' tables
	@tools/setup build
	cargo build --release --locked -p ranway
	target/release/ranway reproduce --out target/reproduce
	cp target/reproduce/tables.md docs/reproduced.md
	cp target/reproduce/counts.md docs/reproduced-counts.md

reproduce-grid: ## run the papers' variants in every setting of the parameters left open; writes the docs' tables
	@tools/setup build
	cargo build --release --locked -p ranway
	target/release/ranway reproduce mdcc-lte@as-run --grid --quiet --out target/reproduce
	cp target/reproduce/mdcc-lte@as-run/grid.md docs/mdcc-grid.md
	target/release/ranway reproduce uplink@loss --grid --runs 1 --quiet --out target/reproduce
	python3 papers/uplink/findings.py --grid target/reproduce > docs/uplink-grid.md

docs: ## regenerate the generated pages of docs/, and build the book and the documentation of both APIs in target/book
	@tools/setup docs
	cargo xtask docs
	mdbook build docs
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" \
		cargo doc --quiet --locked --no-deps --workspace --document-private-items
	rm -rf target/book/rust
	cp -r target/doc target/book/rust
	maturin develop --locked --release --manifest-path python/Cargo.toml
	pdoc --output-directory target/book/python ranway
	node web/scripts/book.mjs target/book Prometheus dashboard.html

clean: ## remove everything that was built
	rm -rf target .venv web/node_modules
