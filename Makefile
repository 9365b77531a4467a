# Two commands do everything from a fresh clone: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
JOBS   ?= 2

.DEFAULT_GOAL := help
# Half a virtual environment (Debian without python3-venv) must not pass for a whole one the next time.
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-oldest test-plain lint bench package docs clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "napsets needs Python 3.10 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)

# A stamp a set of extras: installed anew only when what is to be installed changes.
$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[cli,gnn,report]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo  ## train a graph neural network on Amazon Computers, calibrate, compare, write the report
	$(BIN)/napsets demo

lint: $(VENV)/.dev  ## ruff and a strict type check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint  ## lint, types and all tests but the slow ones
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow"

test-all: lint  ## the slow tests too
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile

test-plain: $(VENV)/.dev  ## the tests with torch, as on a processor without vector instructions: other last digits
	ATEN_CPU_CAPABILITY=default $(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "gnn and not slow"

# The core alone, in an environment of its own; PyArrow and pandas only read and write what tests compare.
OLDEST := numpy==1.24.* scipy==1.10.* numba==0.59.* pyarrow==15.* pandas==2.2.*
CORE   := $(addprefix tests/,test_quantile.py test_graph.py test_sets.py test_levels.py test_randomness.py test_groups.py \
          test_validity.py localisers kernels scores properties methods/test_saving.py methods/test_auto.py)

test-oldest:  ## the tests of the core, with the oldest NumPy, SciPy and Numba that are supported
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet $(OLDEST) networkx pytest hypothesis
	PYTHONPATH=src:. $(VENV)-oldest/bin/python -m pytest -m "not slow" $(CORE)

bench: $(VENV)/.dev  ## measure speed; writes benchmarks/results/
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.living
	$(BIN)/python -m benchmarks.service

package: $(VENV)/.dev  ## build wheel and source archive, and use the wheel alone in an empty environment
	rm -rf dist
	$(BIN)/python -m build --outdir dist . >/dev/null
	$(BIN)/python .ci/try_wheel.py dist/*.whl $(PYTHONS)

docs: $(VENV)/.dev  ## build the documentation into site/, warnings are errors
	$(BIN)/python -m mkdocs build --strict --quiet  # from here, so that pages find `studies`

clean:  ## remove what is built, but not the virtual environment
	rm -rf build dist site artifacts .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
