# Everything here needs python3 (3.11 or newer) and make, and nothing else.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: mission test check pictures clean

mission: .venv/.installed      ## set up, and run the lake mission
	$(BIN)/fieldbo run lake-level-set

test: .venv/.installed-dev     ## set up, and run lint, types and every test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

check: test

pictures: .venv/.installed     ## draw the README's pictures anew
	$(BIN)/fieldbo run lake-level-set --out build/pictures
	mkdir -p examples/pictures
	cp build/pictures/path.png build/pictures/map.png build/pictures/curve.png examples/pictures/
	rm -rf build/pictures

clean:                         ## remove what this Makefile made; runs/ is yours and stays
	rm -rf .venv build dist

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/.installed-dev: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ .venv/.installed
