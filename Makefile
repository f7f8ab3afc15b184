# Everything a newcomer types. Each target does all of its own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test quick lint coverage-powershell clean
help:
	@echo "make demo   three simulated boxes: plan, apply, no change, drift, repair"
	@echo "make test   lint, types and every test"
	@echo "make quick  the tests that need no Wine"
	@echo "make coverage-powershell  the share of the box commands that the tests run, on wine"
	@echo "make clean  stop the simulated boxes, remove .venv and caches"

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if v >= (3, 11) else "Python %d.%d found, 3.11 or newer wanted: make PYTHON=python3.11" % v)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY)
	$(BIN)/python demo/run.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

quick: $(READY)
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not wine"

coverage-powershell: $(READY)
	NINFER_FLEET_POWERSHELL_COVERAGE=build/powershell-coverage.txt \
	    $(BIN)/python -m pytest -n 3 --dist loadfile -m wine tests/contract -k "not zh_CN and not de_DE"

clean:
	-[ ! -x $(BIN)/ninfer-fleet ] || $(BIN)/ninfer-fleet sim down
	rm -rf $(VENV) .simbox build .pytest_cache .mypy_cache .ruff_cache .hypothesis
