# Two commands need nothing but Python >= 3.11 and make: `make claims` and `make test`.
# The first call sets up .venv (that needs the network); later calls work offline.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# One thread per process: small linear algebra is 4-20 times slower on two, and workers use the cores.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export NUMBA_NUM_THREADS ?= 1
# An inherited PYTHONPATH or user site must not leak other packages into the checks.
export PYTHONPATH :=
export PYTHONNOUSERSITE := 1

.PHONY: help claims test lint format bench clean

help:  ## say what each target does
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

claims: $(READY)  ## check every claim of the quick tier and leave the report in report/
	$(BIN)/marginlab check --tier quick --jobs 2 --report report

test: $(READY)  ## run the whole test suite, the quick claims among it
	$(BIN)/python -m pytest -n 2 --dist loadgroup -q

lint: $(READY)  ## ruff, pyright, and the floors that imports must keep
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(READY)  ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## time our ways beside the ways a user would pick instead
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

clean:  ## remove the environment and everything that was made
	rm -rf $(VENV) report build dist *.egg-info src/*.egg-info

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "marginlab needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) --version 2>&1); set PYTHON=..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test,dev]'
	$(BIN)/marginlab warm-up
	@touch $@
