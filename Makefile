# Everything is installed into .venv, which is made at first use.

# The newest TensorFlow has wheels for these. `make test PYTHON=/path/to/python` chooses another.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.10 python3; do \
    $$python -c 'import sys; assert (3, 10) <= sys.version_info[:2] <= (3, 13)' 2>/dev/null \
    && echo $$python && break; done)
# One more than two cores: some tests wait. TensorFlow keeps each worker at about 1 GB.
WORKERS ?= 3
PYTEST_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
# Keras and Matplotlib would put their settings into the home directory.
export KERAS_HOME ?= $(CURDIR)/$(VENV)/keras
export MPLCONFIGDIR ?= $(CURDIR)/$(VENV)/matplotlib
export TF_CPP_MIN_LOG_LEVEL ?= 3

.DEFAULT_GOAL := help
.PHONY: help demo quick test lint unit slow format bench docs wheel clean
.NOTPARALLEL:

help:  ## this list
	@awk -F ':.*## *' '/^[a-z]+:.*##/ {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo  ## train an unchanged TF 1.x TPUEstimator program, draw a picture
	@$(BIN)/python examples/mnist_tpu/demo.py --out demo

quick: $(VENV)/.dev  ## an answer in some minutes: style, and a third of the tests
	@echo "ruff check, ruff format --check ..."
	@$(BIN)/ruff check --quiet && $(BIN)/ruff format --check --quiet
	@echo "pytest starts $(WORKERS) processes, each imports TensorFlow ..."
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m quick $(PYTEST_ARGS)

test: lint unit  ## style, types, and all tests but the slow ones

lint: $(VENV)/.dev  ## style and types
	@echo "ruff check ..." && $(BIN)/ruff check --quiet
	@echo "ruff format --check ..." && $(BIN)/ruff format --check --quiet
	@echo "mypy ..." && $(BIN)/mypy

unit: $(VENV)/.dev  ## tests only; PYTEST_ARGS="-k name" chooses some
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow" $(PYTEST_ARGS)

# Each of these may start four processes.
slow: WORKERS = 2
slow: $(VENV)/.dev  ## the slow tests: kills, clusters, whole programs of others
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m slow $(PYTEST_ARGS)

format: $(VENV)/.dev  ## put the code into shape
	@$(BIN)/ruff check --quiet --fix && $(BIN)/ruff format

bench: $(VENV)/.benchmark  ## speed, as ratios to Keras fit and to a hand-written loop
	@$(BIN)/python -m benchmarks.run $(BENCH_ARGS)

docs: $(VENV)/.docs  ## the migration guide as a site, in build/site
	@echo "mkdocs builds the site (some seconds) ..."
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo "build/site/index.html"

wheel: $(BIN)/pip  ## what can be installed elsewhere, in dist/
	@rm -rf dist && $(BIN)/python -m pip wheel -q --no-deps --wheel-dir dist . && ls dist/*.whl

clean:  ## remove all that was made here
	rm -rf $(VENV) demo build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The site is made of pages: it needs mkdocs, and neither this package nor TensorFlow.
$(VENV)/.docs: pyproject.toml | $(BIN)/pip
	@$(BIN)/python -m pip install -qq --disable-pip-version-check \
	    $$(sed -n 's/^docs = \[\(.*\)\]/\1/p' pyproject.toml | tr -d ' ' | sed 's/","/ /g; s/"//g')
	@touch $@

# One stamp per set of dependencies, so that an installation happens once.
$(VENV)/.%: pyproject.toml | $(BIN)/pip
	@echo "Installing TensorFlow and what '$*' needs into $(VENV) (about two minutes) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[$*]'
	@touch $@

$(BIN)/pip:
	@test -n "$(PYTHON)" || { \
	    echo "No Python from 3.10 to 3.13 found, and TensorFlow has no wheels for others."; \
	    echo "Install one (python3.11, say), or name it: make PYTHON=/path/to/python3.11 ..."; \
	    exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV) || { \
	    rm -rf $(VENV); \
	    echo "$(PYTHON) could not make a virtual environment."; \
	    echo "On Debian and Ubuntu its package is separate: apt install python3-venv"; \
	    exit 1; }
