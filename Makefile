# Every target sets up what it needs in .venv/ and can be run twice.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export PYTHONHASHSEED ?= 0

.PHONY: help venv run test lint bench lock clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

venv: $(READY) ## the virtual environment, from hashed locks

$(READY): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "found $$($(PYTHON) -V 2>&1), want Python 3.11 or newer: install it, or say PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing the locked packages into $(VENV) (about a minute)"
	@$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements/dev.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

run: $(READY) ## join two generated streams with every method and check each result
	@$(BIN)/python examples/00-core-join/join.py

test: $(READY) ## every test (about four minutes on 2 cores)
	@$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(READY) ## ruff, mypy strict, import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

bench: $(READY) ## the core beside the C program, in one run, into build/bench.json
	@command -v gcc >/dev/null || { echo "gcc is missing: install it (Debian: apt-get install gcc)"; exit 1; }
	@$(BIN)/python -m bench

lock: ## make the locks anew from pyproject.toml
	@test -x $(BIN)/pip-compile || { $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet pip-tools; }
	@$(BIN)/pip-compile --quiet --strip-extras --allow-unsafe --generate-hashes --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --extra dev --output-file requirements/dev.lock pyproject.toml requirements/build.in

clean: ## all that the targets made
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
