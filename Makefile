# One command list for people and for CI. `make quickstart` and `make test` each do all the set-up they need.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTHON ?= python3

.PHONY: help quickstart test setup every-assembly servers mysql tools format lint types test-rust test-python test-machine test-programs test-clusters test-time-series test-alone test-drbd test-faults fuzz benchmarks lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

quickstart: $(STAMP) ## set everything up and run the quickstart study (about two minutes after set-up)
	$(BIN)/dyno run studies/quickstart.yaml

test: setup lint types test-rust test-python ## set everything up and pass all checks and tests

setup: $(STAMP) servers ## a virtual environment with dyno, dyno-core and everything that tests need

servers: ## the servers of others that tests start, from Debian's packages where they are missing (as root)
	@tests/install-servers

tools: $(STAMP) servers ## the tools of others that tests start, built once into the user's cache
	$(BIN)/dyno get go-ycsb
	$(BIN)/dyno get tsbs
	$(BIN)/dyno get questdb

# Whatever the installed package is made of; a change to any of it installs anew.
SOURCES := $(shell find python crates -type f -not -name '*.pyc') Cargo.toml Cargo.lock pyproject.toml MANIFEST.in

$(STAMP): requirements-dev.lock $(SOURCES)
	@command -v cargo >/dev/null || { echo "make: cargo is missing: install Rust (rustup.rs, or Debian's rustup)" >&2; exit 2; }
	@command -v cc >/dev/null || { echo "make: a C compiler is missing: apt-get install build-essential" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: Python 3.11 or newer is needed: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "make: no virtual environments: apt-get install python3-venv" >&2; exit 2; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --force-reinstall .
	@touch $(STAMP)

every-assembly: setup ## dyno-core with all 80 assemblies of glass, for studies/looking-glass-orders.yaml (some ten minutes)
	cargo install --locked --force --quiet --path crates/core --features every-assembly --root $(VENV)

format: setup ## put every source file into its form
	$(BIN)/ruff format python tests benchmarks
	$(BIN)/ruff check --fix --quiet python tests benchmarks || true
	cargo fmt

lint: setup ## form and lints, warnings denied
	$(BIN)/ruff format --check python tests benchmarks
	$(BIN)/ruff check python tests benchmarks
	cargo fmt --check
	cargo clippy --locked --all-targets --quiet -- -D warnings

types: setup ## types, strictly
	$(BIN)/mypy

mysql: $(STAMP) servers ## MySQL and its router for the tests, in the user's cache; Debian has it in a newer release only
	@$(BIN)/dyno get mysql

test-rust: mysql ## tests of the Rust workspace, on real servers
	cargo test --locked --quiet
# Not optimised: it compiles 80 engines and runs each for a moment.
	CARGO_PROFILE_DEV_OPT_LEVEL=0 cargo test --locked --quiet -p dyno-glass-tpcc --features every-assembly --test assemblies

test-python: setup tools mysql ## tests of the Python package, on real systems
	@rm -rf build/tests
	@$(MAKE) --no-print-directory --keep-going --jobs 4 --output-sync=target test-machine test-programs test-clusters test-time-series || { tests/tell-failed; exit 2; }
	@$(MAKE) --no-print-directory test-alone

test-machine: # those that start servers, watch the machine and change it
	$(BIN)/pytest -m machine --junitxml=build/tests/machine.xml

test-programs: # all others, which have to wait for nobody
	$(BIN)/pytest -m "not machine and not clusters and not time_series and not alone and not apart" --junitxml=build/tests/programs.xml

test-clusters: # those whose servers have networks of their own, and mostly wait for one another
	$(BIN)/pytest -m clusters --junitxml=build/tests/clusters.xml

test-time-series: # those that load rows into stores of time series
	$(BIN)/pytest -m time_series --junitxml=build/tests/time-series.xml

test-alone: # those that whoever else is busy on the machine would prove wrong
	$(BIN)/pytest -m alone

test-drbd: mysql ## DRBD between two virtual machines: builds their image at first, takes half an hour without hardware acceleration
	@tests/install-servers qemu-system-x86
	$(BIN)/dyno get drbd-vm
	$(BIN)/pytest -m apart -s tests/contract/test_drbd.py tests/contract/test_replicated_disk.py

test-faults: setup mysql ## every kind of fault in every kind of cluster, some twenty minutes
	$(BIN)/pytest -m apart -s tests/contract/test_every_fault.py

fuzz: setup ## 100,000 generated study files through `dyno check`
	$(BIN)/python benchmarks/check_fuzz.py

benchmarks: setup ## dyno measures itself
	$(BIN)/python benchmarks/lab_overhead.py
	$(BIN)/python benchmarks/report_scale.py
	$(BIN)/python benchmarks/driver_cost.py
	$(BIN)/python benchmarks/watch_cost.py
	$(BIN)/python benchmarks/freeze.py
	$(BIN)/python benchmarks/forecast.py
	$(BIN)/python benchmarks/tpcc_conditions.py
	$(BIN)/python benchmarks/planted_bottlenecks.py
	$(BIN)/python benchmarks/client_libraries.py
	$(BIN)/python benchmarks/glass.py
	$(BIN)/python benchmarks/ingest.py

lock: ## pin anew what is installed (needs uv; records hashes and no addresses)
	$(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements.lock
	$(BIN)/uv pip compile pyproject.toml --group dev --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements-dev.lock

clean: ## remove what was built; results stay
	rm -rf $(VENV) target dist build python/*.egg-info
