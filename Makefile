# Every target sets up what it needs in .venv/ and can be run twice.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
# not empty if the caller chose a PYTHON
CHOSEN := $(filter-out file,$(origin PYTHON))
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# less: what a query needs on one machine, without Spark, tests and tools; a quarter of the download
RUNS := $(VENV)/.runs
export PYTHONHASHSEED ?= 0
# compiled modules are kept (`clean` takes them away): a process starts in three quarters of the time
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help venv python run test lint docs bench bench-peers figures simulate chaos soak cluster cluster-build cluster-down test-cluster lock clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

venv: $(READY) ## the virtual environment, from hashed locks

python: # the Python that is asked for must be there, and be the one of .venv
	@test -z "$(CHOSEN)" -a -x $(BIN)/python || $(PYTHON) -V >/dev/null 2>&1 || { echo "PYTHON=$(PYTHON) is not there; install Python 3.11 or newer, or say PYTHON=/path/to/python3.11"; exit 1; }
	@test -z "$(CHOSEN)" -o ! -x $(BIN)/python || test "$$($(BIN)/python -V)" = "$$($(PYTHON) -V 2>&1)" || { echo "$(VENV) was made by $$($(BIN)/python -V), but PYTHON=$(PYTHON) is $$($(PYTHON) -V 2>&1): make clean first"; exit 1; }

define install # $(1): the lock, $(2): how long it takes
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "found $$($(PYTHON) -V 2>&1), want Python 3.11 or newer: install it, or say PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing the packages of $(1) into $(VENV) ($(2))"
	@set -o pipefail; $(BIN)/python -m pip install --progress-bar off --disable-pip-version-check --require-hashes --requirement $(1) | awk -v all=$$(grep -c '==' $(1)) \
		'/^Collecting/ && ++n % 10 == 0 {print "  " n " of " all; fflush()} /^Installing/ {print "  all " n " are here: unpacking them"; fflush()}'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
endef

$(READY): requirements/dev.lock pyproject.toml | python
	$(call install,requirements/dev.lock,one to two minutes)
	@touch $(RUNS) $@

$(RUNS): requirements/run.lock pyproject.toml | python
	$(call install,requirements/run.lock,about half a minute)
	@touch $@

run: $(RUNS) ## the quickstart: a join whose workers follow the load up and down, checked row by row (two minutes)
	$(BIN)/joinery run examples/quickstart/query.yaml --verify

test: $(READY) ## every test (about a quarter of an hour on 2 cores; tests with real processes mostly wait, so there are more of them than cores)
	@$(BIN)/python -m pytest -n 3 --dist worksteal

lint: $(READY) ## ruff, mypy strict, import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

docs: $(READY) ## the documentation as a site, into build/site/
	@set -o pipefail; NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict 2>&1 | { grep -v '^INFO' || true; } # --quiet would also unmake --strict
	@echo "build/site/index.html"

bench: $(READY) ## the core beside a C program, and the service, into build/bench.json (about fifteen minutes; a quick look: make bench ARGS=--quick)
	@$(BIN)/python -m bench $(ARGS)

bench-peers: $(READY) ## the service beside Flink, Spark and DataFusion, into build/bench.json (first time 20 minutes; a quick look: ARGS=--quick)
	@$(BIN)/python -m bench.peers $(ARGS)

figures: $(READY) ## the papers' figures, simulated and with real processes, as PNG and CSV, into build/figures/ (about ten minutes; ARGS="--only real-*")
	@$(BIN)/python -m bench.figures $(ARGS)

N ?= 10000
simulate: $(READY) ## N=10000 seeded schedules of the whole protocol with faults (20 minutes); one of them again, told: SEED=123
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),$(N)) $(ARGS)

chaos: $(READY) ## N=10 seeded runs of real processes that are killed and stopped under load (20 s each); one of them again, told: SEED=7
	@$(BIN)/python -m tests.chaos $(if $(SEED),--seed $(SEED),$(if $(filter file,$(origin N)),10,$(N))) $(ARGS)

soak: $(READY) ## ten minutes under load with groups moving all the time: does any process grow? into build/soak.txt and .png (shorter than 5 tells little: ARGS="--minutes 5")
	@$(BIN)/python -m tests.chaos.soak $(ARGS)

COMPILE = $(BIN)/pip-compile --quiet --strip-extras --allow-unsafe --generate-hashes --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header
lock: | python ## make the locks anew from pyproject.toml
	@test -x $(BIN)/pip-compile || { $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet pip-tools; }
	@$(COMPILE) --extra dev --output-file requirements/dev.lock pyproject.toml requirements/build.in
	@$(COMPILE) --extra service --extra operator --constraint requirements/dev.lock --output-file requirements/image.lock pyproject.toml requirements/image.in
	@$(COMPILE) --extra service --extra embedded --constraint requirements/dev.lock --output-file requirements/run.lock pyproject.toml requirements/build.in requirements/image.in
	@$(COMPILE) --constraint requirements/dev.lock --output-file requirements/build.lock requirements/build.in
	@$(COMPILE) --constraint requirements/dev.lock --output-file requirements/spark.lock requirements/spark.in

cluster: $(READY) ## a Kubernetes with our images: yours (KUBECONFIG), kind's, or one of 2 nodes built here (as root; first time 15 minutes); the image of Spark, too: ARGS=--spark
	@$(BIN)/python -m tests.cluster up $(ARGS)

cluster-build: $(READY) ## what takes long of `make cluster`, and nothing else: programs and images into the cache
	@$(BIN)/python -m tests.cluster build

cluster-down: $(READY) ## end the cluster that `make cluster` started
	@$(BIN)/python -m tests.cluster down

test-cluster: $(READY) ## the tests that need a Kubernetes; brings one up as `make cluster` does, and ends it if it was not there before; some of them: ARGS=tests/cluster/test_first.py
	@$(BIN)/python -m pytest $(if $(filter tests/%,$(ARGS)),,tests/cluster) $(ARGS)

clean: ## all that the targets made
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
