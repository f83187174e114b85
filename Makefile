# Needs Python (>= 3.11) and make: `make demo` shows what pathnn does, `make test` checks the code.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PYTEST_ARGS ?= -m "not slow"

.PHONY: demo demo-csl test docs lint install clean

demo: install  # molecules: predictions with error bars and the paths that mattered, in about a minute
	GOMP_SPINCOUNT=1000 $(BIN)/python examples/demo.py

demo-csl: install  # graphs that message passing cannot distinguish, in minutes
	$(BIN)/python examples/demo_csl.py

test: lint  # without slow tests; make test PYTEST_ARGS= runs them all
	$(BIN)/python -m pytest -n 2 --dist worksteal -o faulthandler_exit_on_timeout=true $(PYTEST_ARGS)

docs: $(VENV)/installed-docs  # the website: site/index.html; executes the tutorials, checks every link
	GOMP_SPINCOUNT=1000 $(BIN)/python tools/website/pages.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	$(BIN)/python tools/website/check.py site

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml reproduction/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch==2.13.0
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]" --editable "./reproduction[bench]"
	touch $@

$(VENV)/installed-docs: $(VENV)/installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[docs]"
	touch $@

clean:
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache
