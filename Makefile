# Everything here needs python3 (3.11 or newer) and make. Setting up needs a network, the first time and whenever
# pyproject.toml has changed.
PYTHON ?= python3
BIN := .venv/bin
# Copies, not links: what edits an installed file must not change uv's cache.
INSTALL = $(1)/bin/uv pip install --quiet --link-mode copy --python $(1)/bin/python
# Bytecode on disk, whatever the caller's settings: without it, each of hundreds of processes compiles its imports.
unexport PYTHONDONTWRITEBYTECODE
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

DOCS := build/docs
PYTEST := $(BIN)/python -m pytest
FORMATTED := $(BIN)/ruff format --check . || { echo 'mend this with $(BIN)/ruff format .'; exit 1; }
# Whatever worker is free takes the next case.
WORKERS := -n auto --dist worksteal
# Tests of robots mostly wait for them.
SIDE_BY_SIDE := -n 10

.PHONY: mission test test-all test-peers test-qgis test-peers-ros2 test-peers-others quick lint fast-tests all-tests docs check pictures bench bench-peers papers svm-grid mlp-breast-cancer cell-pipeline lake-places clean

mission: .venv/.installed      ## set up, and run the lake mission
	$(BIN)/fieldbo run lake-level-set

test: .venv/.installed-dev     ## set up, and run lint, types and the fast tests: each property once
	$(MAKE) --jobs 2 --keep-going lint fast-tests

test-all: .venv/.installed-dev ## set up, and run lint, types and every test
	$(MAKE) --jobs 2 --keep-going lint all-tests

quick: .venv/.installed-dev    ## run ruff, and the tests of the packages that you changed
	$(BIN)/ruff check .
	$(FORMATTED)
	$(PYTEST) $(WORKERS) -m "not slow and not sweep" $$($(BIN)/python tests/shared/touched.py)

lint: .venv/.installed-dev     ## check style, types, and which package imports which
	$(BIN)/ruff check .
	$(FORMATTED)
	$(BIN)/lint-imports
	$(BIN)/mypy

fast-tests: .venv/.compiled
	$(PYTEST) $(WORKERS) -m "not slow and not sweep"

# The day's samples are those of day 1, so that the same tests run every day.
all-tests: .venv/.compiled
	$(PYTEST) $(WORKERS) --day 1 --slowest 30 --doctest-modules tests fieldbo

.venv/.compiled: .venv/.installed-dev $(wildcard fieldbo/*/_*loops.py fieldbo/*/*/_*loops.py)
	$(BIN)/python tests/shared/compile_loops.py
	touch $@

test-peers: .venv/.installed-peers .venv-ros/.installed .venv/.compiled   ## set up, run missions against real robots' programs, and open exports
	+$(MAKE) --no-print-directory --jobs 2 --keep-going --output-sync=target test-peers-ros2 test-peers-others

test-peers-ros2:
	.venv-ros/bin/python -m pytest $(SIDE_BY_SIDE) tests/peers/test_ros2.py

test-peers-others:
	$(PYTEST) $(SIDE_BY_SIDE) tests/peers/programs.py -k "not qgis"
	$(PYTEST) $(SIDE_BY_SIDE) tests/peers --ignore tests/peers/test_ros2.py

test-qgis: .venv/.installed-peers .venv/.compiled   ## open exports in QGIS, which takes minutes to install
	/usr/bin/python3 -c 'import qgis' || $(SUDO) sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-qgis'
	$(PYTEST) tests/peers/programs.py -k qgis

docs: .venv/.installed-docs    ## build the documentation into build/docs/html, offline, warnings as errors
	$(BIN)/python -m sphinx -q -W --keep-going -j 2 -d $(DOCS)/doctrees docs $(DOCS)/html
	@echo "$(DOCS)/html/index.html"

check: test

pictures: .venv/.installed     ## draw the README's pictures anew
	$(BIN)/fieldbo run lake-level-set --out build/pictures
	mkdir -p examples/pictures
	cp build/pictures/path.png build/pictures/map.png build/pictures/curve.png examples/pictures/
	rm -rf build/pictures
	$(BIN)/fieldbo run wall-worst-crack --out build/pictures
	cp build/pictures/path.png examples/pictures/wall-path.png
	rm -rf build/pictures
	$(BIN)/fieldbo run lake-places-path --out build/pictures
	cp build/pictures/path.png examples/pictures/informative-path.png
	rm -rf build/pictures
	$(BIN)/fieldbo run cell-pipeline --out build/pictures
	cp build/pictures/path.png examples/pictures/cell-path.png
	cp build/pictures/curve.png examples/pictures/cell-curve.png
	rm -rf build/pictures
	$(BIN)/python -c "import runpy; runpy.run_path('examples/13_plan_a_tour.py')['figure'].savefig('examples/pictures/tour.png', dpi=120)"
	$(BIN)/python -c "import runpy; runpy.run_path('examples/14_plan_a_search.py')['figure'].savefig('examples/pictures/search-tour.png', dpi=120)"
	$(BIN)/python -c "import runpy; runpy.run_path('examples/15_draw_your_own_pictures.py')['figure'].savefig('examples/pictures/own-pictures.png', dpi=120)"

bench: .venv/.installed-dev    ## measure the speed of fieldbo alone
	$(BIN)/python benchmarks/run.py --no-peers

bench-peers: .venv/.installed-dev .venv-peers/.installed .venv-gpcam/.installed    ## measure it beside its peers
	$(BIN)/python benchmarks/run.py

papers: .venv/.installed       ## make the papers' tables anew, or go on with them: some hours on two idle cores
	$(BIN)/python benchmarks/papers/switching_cost.py
	$(BIN)/python benchmarks/papers/modular_systems.py
	$(BIN)/python benchmarks/papers/control_sets.py
	$(BIN)/python benchmarks/papers/level_sets.py
	$(BIN)/python benchmarks/papers/optimum_before_battery.py
	$(BIN)/python benchmarks/papers/informative_paths.py

svm-grid: .venv/.installed-dev ## compute the table of worlds/svm-grid anew
	$(BIN)/python makers/svm_grid.py

mlp-breast-cancer: .venv/.installed ## compute the table of worlds/mlp-breast-cancer anew
	$(BIN)/python makers/mlp_breast_cancer.py

cell-pipeline: .venv/.installed ## compute the table of worlds/cell-pipeline anew
	$(BIN)/python makers/cell_pipeline.py

lake-places: .venv/.installed  ## compute the files of worlds/lake-places anew
	$(BIN)/python makers/lake_places.py

clean:                         ## remove what this Makefile made; runs/ is yours and stays
	rm -rf .venv .venv-peers .venv-gpcam .venv-ros build dist docs/_examples docs/gallery docs/reference/generated

.venv/bin/uv:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

.venv/.installed: pyproject.toml | .venv/bin/uv
	$(call INSTALL,.venv) --editable .
	touch $@

.venv/.installed-dev: pyproject.toml | .venv/bin/uv
	$(call INSTALL,.venv) --editable '.[dev]'
	touch $@ .venv/.installed

.venv/.installed-docs: pyproject.toml | .venv/bin/uv
	$(call INSTALL,.venv) --editable '.[docs]'
	touch $@ .venv/.installed

.venv/.installed-peers: pyproject.toml tests/peers/requirements.txt | .venv/bin/uv
	$(call INSTALL,.venv) --editable '.[dev,mqtt,mavlink]' --requirement tests/peers/requirements.txt
	command -v mosquitto || PATH="$$PATH:/usr/sbin" command -v mosquitto || $(SUDO) sh -c 'apt-get update -qq && apt-get install -y -qq mosquitto'
	command -v chromium || $(SUDO) sh -c 'apt-get update -qq && apt-get install -y -qq chromium'
	for program in ogr2ogr gpsbabel ncwa cdo ncdump udunits2; do command -v $$program || exit 1; done || \
	    $(SUDO) sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends \
	    gdal-bin gpsbabel nco cdo netcdf-bin udunits-bin'
	touch $@ .venv/.installed .venv/.installed-dev

# ROS 2 fixes the versions of its own wheels, and so has an environment of its own.
MESSAGES := ros/fieldbo_msgs tests/peers/nav2_msgs
.venv-ros/.installed: pyproject.toml ros/requirements-build.txt ros/build.py $(wildcard $(MESSAGES:%=%/action/*))
	$(PYTHON) -m venv .venv-ros
	.venv-ros/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(call INSTALL,.venv-ros) --editable '.[ros2]' --requirement ros/requirements-build.txt pytest pytest-xdist hypothesis
	.venv-ros/bin/python ros/build.py $(MESSAGES)
	touch $@

.venv-peers/.installed: benchmarks/peers.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --requirement benchmarks/peers.txt
	touch $@

# Trieste wants an older NumPy than gpCAM.
.venv-gpcam/.installed: Makefile
	$(PYTHON) -m venv .venv-gpcam
	.venv-gpcam/bin/python -m pip install --quiet --disable-pip-version-check gpcam==8.6.1
	touch $@
