# make demo    set up what the main job needs and run it offline on the bundled web
# make test    set up what the tests need, check and test everything
# make setup   everything for working on Levada, benchmarks included
# make check   only the linters and the types
# make bench   the benchmarks (some minutes)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --constraint constraints.txt

.PHONY: setup demo test check bench clean

demo: $(VENV)/main.done
	$(BIN)/levada demo

test: $(VENV)/dev.done check
	$(BIN)/python -m pytest -n auto --dist worksteal

check: $(VENV)/dev.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy

bench: $(VENV)/bench.done
	$(BIN)/python benchmarks/frontier.py
	$(BIN)/python benchmarks/crawl.py

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
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis levada-demo-data
