# Every word of this file is a target a person types; `make` alone lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Anything but "yes" leaves out what reports need: Spark, a Java, PyArrow, Plotly: 800 MB.
REPORTS ?= yes

# What takes over half a second, or needs more than Python and SQLite.
LONGER := journey or crash or simulation or sweep or slow or java or postgres or browser or spark
# A test that fails once in a while is among those that start processes. How often `make rounds` runs them all.
WITH_PROCESSES := tests/journeys tests/crash tests/consumer/hosting
ROUNDS ?= 20
# Several processes, each with its share of the files. Folders in which there is nothing else are not even read.
QUICK := -m tests.support.shares -q --hypothesis-profile=quick \
	--ignore=tests/journeys --ignore=tests/crash --ignore=tests/simulation
# tests/support/parallel.py says how many workers that are and what each gets.
PARALLEL := -n auto --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help install run test check lint style types unit database format words bench torture rounds clean

help:
	@echo "make run      install what is missing, start everything with the example shop"
	@echo "make test     install what is missing, run the whole test suite"
	@echo "make install  .venv with the pinned, hash-checked requirements"
	@echo "make check    format, lint, types, architecture and unit tests; make database: those that use SQLite"
	@echo "make words    bring the catalogue of the pages' texts up to date, and compile it"
	@echo "make bench    the benchmarks, beside what a user would pick instead"
	@echo "make torture  the long forms of the crash and simulation tests"
	@echo "make rounds   journeys, crash and hosting tests ROUNDS times (20), until one fails"

$(VENV)/core.done: requirements/core.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/core.txt
	touch $@

$(VENV)/reports.done: $(VENV)/core.done requirements/reports.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/reports.txt
	touch $@

$(VENV)/dev.done: $(VENV)/core.done requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	touch $@

INSTALLED := $(VENV)/core.done $(if $(filter yes,$(REPORTS)),$(VENV)/reports.done)

install: $(INSTALLED)

run: $(INSTALLED)
	$(BIN)/python manage.py up --demo

test: $(VENV)/dev.done
	$(BIN)/python -m pytest $(PARALLEL) $(PYTEST_ARGS)

lint: style types

style: $(VENV)/dev.done
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/dev.done
	$(BIN)/mypy

unit: $(VENV)/dev.done
	$(BIN)/python $(QUICK) -m "not (database or $(LONGER))"

database: $(VENV)/dev.done
	$(BIN)/python $(QUICK) -m "database and not ($(LONGER))"

# mypy works on one core, half a minute where nothing is cached; the tests take what it leaves.
check: style
	@$(MAKE) --no-print-directory -j2 types unit

format: $(VENV)/dev.done
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

words: $(VENV)/dev.done
	$(BIN)/python manage.py words

bench: $(VENV)/dev.done
	$(BIN)/python -m bench

torture: $(VENV)/dev.done
	TORTURE=1 $(BIN)/python -m pytest $(PARALLEL) -m "crash or simulation or hypothesis"

rounds: $(VENV)/dev.done
	for round in $$(seq $(ROUNDS)); do \
		echo "round $$round of $(ROUNDS)"; \
		$(BIN)/python -m pytest -q $(PARALLEL) $(PYTEST_ARGS) $(WITH_PROCESSES) || exit 1; \
	done

clean:
	rm -rf $(VENV) var .mypy_cache .ruff_cache .pytest_cache
