# The two to know: `make demo` and `make test`. Each target sets up what it needs in .venv; a second run is quick.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# pip would compile one module after the other; this takes all cores, and leaves out what is hardly ever imported.
COMPILE := $(BIN)/python -m compileall -qq -j 0 -x '/(tests?|transformers/models)/' $(VENV)/lib || true
VENV_IS_THERE := test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
FOR_TESTS := report,tables,text,search,onnx,dask,test
# Two BLAS processes at once crawl: tests keep to one thread each, one process per core.
# With SCIPY_ARRAY_API scikit-learn's array checks run instead of being skipped.
ONE_THREAD := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE SCIPY_ARRAY_API=1

# Databases, and files that are written atomically, wait for the disk at each commit: in memory, if it has room, they do
# not. One process more than there are cores works while others wait.
IN_MEMORY := $(shell [ -w /dev/shm ] && [ $$(df -Pk /dev/shm | awk 'END {print $$4}') -gt 8000000 ] && echo TMPDIR=/dev/shm)
PROCESSES := $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) < 4 ? $$(getconf _NPROCESSORS_ONLN) + 1 : 4 )))
PYTEST := $(ONE_THREAD) $(IN_MEMORY) $(BIN)/python -m pytest -n $(PROCESSES) --dist worksteal --durations=10
# The wings and the papers import the library, and nothing imports them: each is tested alone.
SEARCH := tests/search src/firstk/search
UPGRADE := tests/upgrade src/firstk/upgrade
PAPERS := tests/papers tests/evidence src/firstk_papers
WINGS := $(SEARCH) $(UPGRADE) $(PAPERS)
# Where else tests need the packages of the wings, or several processes: they are marked 'wings' one by one, those of a
# wing by their folder.
NEAR_WINGS := tests/cli/test_reproduce.py tests/cli/test_transform_bytes.py tests/contracts/test_integrations.py tests/data \
	tests/docs tests/integrations tests/losses/functional/test_sweep_triton.py tests/processors
KERNELS := $(IN_MEMORY) $(BIN)/python tests/processors/kernels_matrix.py

.PHONY: help demo style types test test-core test-wings test-search test-upgrade test-papers test-engines test-full test-kernels lint bench docs dist clean

help:
	@echo "make demo          learn ordered codes on embedded data and write a page to open"
	@echo "make test          lint, types, layers, doctests, README code and the tests of the core"
	@echo "make test-wings    the tests of firstk.search, firstk.upgrade and the papers; test-search, ... one alone"
	@echo "make test-engines  fits and transforms on Spark (which needs Java 17) and Ray"
	@echo "make test-full     everything, with the tests that take long (marked 'full')"
	@echo "make test-kernels  the numeric tests under the arithmetic of other processors, in turn"
	@echo "make lint          ruff, mypy and import-linter alone"
	@echo "make docs          the documentation site in docs/_build/html, examples included; warnings are errors"
	@echo "make dist          wheel and sdist in dist/, checked as an index would check them"
	@echo "make bench         speed against named peers, as ratios"

$(VENV)/.base: pyproject.toml constraints.txt
	@$(VENV_IS_THERE)
	@echo "installing firstk into $(VENV) (first run only) ..."
	@$(PIP) -e .
	@$(COMPILE)
	@touch $@

# Each installs in one go, whatever was there before: pip takes longest to find out what goes together.
$(VENV)/.docs: pyproject.toml constraints.txt
	@$(VENV_IS_THERE)
	@echo "installing what the documentation needs (first run only) ..."
	@$(PIP) -e '.[docs]'
	@$(COMPILE)
	@touch $(VENV)/.base $@

$(VENV)/.test: pyproject.toml constraints.txt
	@$(VENV_IS_THERE)
	@echo "installing what the tests need (first run only) ..."
	@$(PIP) -e '.[$(FOR_TESTS)]'
	@$(COMPILE)
	@touch $(VENV)/.base $@

$(VENV)/.wings: pyproject.toml constraints.txt
	@$(VENV_IS_THERE)
	@echo "installing databases and emulators for the tests of the wings (first run only) ..."
	@$(PIP) -e '.[$(FOR_TESTS),triton,stores,cloud,test-wings]'
	@$(COMPILE)
	@touch $(VENV)/.base $(VENV)/.test $@

# A few thousand rows: a second thread of BLAS waits more than it helps.
demo: $(VENV)/.base
	@OMP_NUM_THREADS=1 $(BIN)/firstk demo

lint: style types

style: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy
	$(BIN)/lint-imports

# Types and layers are checked while the tests run, by one process.
test: style
	$(MAKE) --no-print-directory -j 2 types test-core

test-core: $(VENV)/.test
	$(PYTEST) -m 'not full and not wings and not engines' $(foreach part,$(WINGS),--ignore=$(part))

test-wings: $(VENV)/.wings
	$(PYTEST) -m 'wings and not full' $(WINGS) $(NEAR_WINGS)
	$(KERNELS) --short

test-search: $(VENV)/.wings
	$(PYTEST) $(SEARCH)

test-upgrade: $(VENV)/.test
	$(PYTEST) $(UPGRADE)

test-papers: $(VENV)/.test
	$(PYTEST) $(PAPERS)

test-engines: $(VENV)/.test
	@$(PIP) -e '.[spark,ray]' 'pyspark[connect]'
	$(ONE_THREAD) $(BIN)/python -m pytest -m engines tests/engines

test-full: $(VENV)/.wings lint
	$(PYTEST) -m 'not engines'
	$(KERNELS)

test-kernels: $(VENV)/.test
	$(KERNELS)

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks

# Examples and pages run one at a time: two BLAS processes at once crawl.
docs: $(VENV)/.docs
	OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html
	@echo "open docs/_build/html/index.html"

dist: $(VENV)/.docs
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/python -m twine check --strict dist/*

clean:
	rm -rf $(VENV) firstk-demo dist build docs/_build docs/gallery docs/api .pytest_cache .mypy_cache .ruff_cache
