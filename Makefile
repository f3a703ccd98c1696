# The two commands that a newcomer needs: `make demo` and `make test`. Everything happens in .venv, build/ and demo/.

PYTHON ?= python3
WORKERS ?= 2

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
DEMO_DB := demo/trackr.db

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench wheel-smoke constraints migration first-migration ddl readme clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

demo: $(VENV)/installed demo/made ## install, make example runs, ingest them, print the ceiling analysis
	$(BIN)/trackr ingest demo/runs --db $(DEMO_DB)
	$(BIN)/trackr analyze ceiling --cutoff 0.2 --db $(DEMO_DB)
	@printf '\nAsk on: . %s/bin/activate; export TRACKR_DB=%s; trackr query "select * from cells limit 5"\n' $(VENV) $(CURDIR)/$(DEMO_DB)

test: $(VENV)/installed-dev ## install what tests need and run them all, on SQLite and PostgreSQL
	$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

lint: $(VENV)/installed-dev ## format, style, types, direction of imports
	@failed=0; for tool in "ruff format --check --quiet ." "ruff check ." "mypy" "lint-imports"; do \
	  echo "$(BIN)/$$tool"; $(BIN)/$$tool || failed=1; done; exit $$failed

format: $(VENV)/installed-dev ## let ruff format and fix what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/installed-dev ## measure the targets and print JSON (BENCH_ARGS are passed on)
	@$(BIN)/python benchmarks/run.py $(BENCH_ARGS)

wheel-smoke: $(VENV)/installed-dev ## build the wheel and use it in a new environment without development packages
	$(BIN)/python tests/packaging/wheel_smoke.py build/wheel-smoke

constraints: ## try the newest versions that pyproject.toml allows, in a new environment, and pin them (then run make test)
	rm -rf build/constraints
	$(PYTHON) -m venv build/constraints
	build/constraints/bin/python -m pip install --quiet --upgrade pip
	build/constraints/bin/python -m pip install --quiet --upgrade --editable '.[dev,mlflow]'
	{ echo '# Tested versions, written by `make constraints`; pyproject.toml says which ones may be used.'; \
	  build/constraints/bin/python -m pip freeze --exclude-editable; } > constraints.txt
	rm -rf build/constraints

migration: $(VENV)/installed-dev ## write the revision that leads to tracker/schema.py: make migration MESSAGE="What it does"
	$(BIN)/python -m migrations.new "$(MESSAGE)"
	$(BIN)/ruff format --quiet migrations/versions

first-migration: $(VENV)/installed-dev ## write the first revision again; only before the first release
	$(BIN)/python -m migrations.new --first "The tables"
	$(BIN)/ruff format --quiet migrations/versions

ddl: $(VENV)/installed-dev ## write tests/data/schema.*.sql again; read the diff before you commit it
	$(BIN)/python -m tests.migrations.ddl

readme: $(VENV)/installed-dev ## write the outputs in README.md again; read the diff before you commit it
	$(BIN)/python -m tests.packaging.readme

clean: ## remove what the targets made, the demo included
	rm -rf $(VENV) build dist demo

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "trackr needs Python 3.11 to 3.13; choose one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable '.[charts,postgres]'
	touch $@

$(VENV)/installed-dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@ $(VENV)/installed

demo/made: | $(VENV)/installed
	$(BIN)/trackr simulate --preset demo --out demo/runs --force
	touch $@
