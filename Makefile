# A fresh clone needs Python >= 3.11 and make, nothing else: the first target that runs makes .venv
# and installs the package in it. A stamp remembers that, so the second time is quick.

# The first Python that is new enough and can make environments. Or say which: make test PYTHON=...
CANDIDATES := python3 python3.13 python3.12 python3.11 python3.14 python
PYTHON ?= $(firstword $(foreach p,$(CANDIDATES),$(shell command -v $(p) >/dev/null 2>&1 && \
    $(p) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
    2>/dev/null && echo $(p))))

BIN := .venv/bin
READY := .venv/.ready
YEARS := 1991 2020

.DEFAULT_GOAL := help
.PHONY: help demo ladder test lint types contracts format clean

help:
	@echo 'make demo    make a small archive, run the job on it, draw pictures (in demo/)'
	@echo 'make ladder  the ladder of optimisation strategies, small, on the processor (in demo/ladder)'
	@echo 'make test    style, types, import contracts, tests'
	@echo 'make format  put the code into shape'
	@echo 'make clean   remove .venv, demo/ and caches'

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { \
	  echo 'No usable Python was found (tried: $(CANDIDATES)).'; \
	  echo 'Needed: Python 3.11 or newer with its venv and ensurepip modules.'; \
	  echo 'On Debian and Ubuntu: apt install python3-venv. Or name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3.12'; \
	  exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[plot,dask,test]'
	@touch $@

# The archive is kept: 30 years of daily files on a 2-degree grid, made once.
demo/.archive: | $(READY)
	@mkdir -p demo && rm -rf demo/archive
	$(BIN)/kuroshio synth demo/archive --grid 2 --years 1991-2020
	@touch $@

demo: $(READY) demo/.archive
	$(BIN)/kuroshio climatology demo/archive --baseline $(YEARS) -o demo/clim.nc --overwrite
	$(BIN)/kuroshio info demo/clim.nc
	$(BIN)/kuroshio plot demo/clim.nc -o demo --point 30 -40 --archive demo/archive
	@echo 'Made demo/clim.nc and the pictures named above.'

ladder: $(READY)
	$(BIN)/kuroshio ladder -o demo/ladder

test: lint types contracts
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

contracts: $(READY)
	$(BIN)/lint-imports --no-logo

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv demo .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
