# Everything a newcomer needs: `make demo` shows what ppspeech does, `make test` checks that it does it.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
FULL := .venv/.full
READY := .venv/.ready
UV := $(BIN)/uv
# Processes that the tests are spread over: one more than cores, as some wait for one another.
WORKERS ?= 3
export MPLBACKEND := Agg
# A waiting thread must not burn a core that another needs.
export OMP_WAIT_POLICY := PASSIVE
# What is compiled once need not be compiled by each of some hundred processes, also where a shell asks for that.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test test-slow mutants fuzz lint format bench docs web lock clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY)  ## make the virtual environment and install the locked versions

# What users have: `pip install "ppspeech[full]"`, in the versions of the lock.
$(FULL): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "ppspeech needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep -oE '^uv==[^ ]+' requirements.lock)"
	@$(UV) pip install --quiet --python $(BIN)/python --constraint requirements.lock hatchling editables
	$(UV) pip install --python $(BIN)/python --constraint requirements.lock --no-build-isolation --compile-bytecode --editable ".[full]"
	@touch $(FULL)

# What developers have besides: peers, tests, documentation.
$(READY): $(FULL)
	$(UV) pip install --python $(BIN)/python --require-hashes --compile-bytecode --requirement requirements.lock
	@touch $(READY)

demo: $(FULL)  ## the main job, end to end, on the built-in voices
	$(BIN)/ppspeech demo

test: setup  ## the whole test suite but the slow experiments
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

test-slow: setup  ## the slow experiments
	$(BIN)/python -m pytest -m slow

mutants: setup  ## whether the tests notice each of some fifty security mutants; takes its time
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutants
	@test ! -d web/node_modules || (cd web && npm run mutants)

fuzz: setup  ## coverage-guided inputs into every door by which bytes of others come in; takes its time
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz

lint: setup  ## ruff (lint and format) and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup  ## rewrite the sources as `make lint` wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## every benchmark, beside its peers
	$(BIN)/ppspeech bench --all

docs: setup  ## the documentation as a site, in build/docs; nothing is fetched
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -b html docs build/docs

web:  ## the client of the page, built from web/ with node and npm
	cd web && npm ci --no-audit --no-fund && npm run build

lock: setup  ## choose new versions within pyproject.toml's bounds
	$(UV) pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --upgrade --quiet --custom-compile-command "make lock" \
		--output-file requirements.lock

clean:  ## remove the environment and everything generated
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist demo_output lightning_logs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
