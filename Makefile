# A thin front of meson and ninja. `make help` lists what there is.
#
# Debian's own tools are called by their full path where they exist: a meson or Python from
# elsewhere that comes first in PATH may lack modules, or be of another age.

first = $(firstword $(wildcard /usr/bin/$(1)) $(1))
PYTHON = $(call first,python3)
MESON = $(call first,meson)
NINJA = $(call first,ninja)
export MESON NINJA PYTHON

SETUP ?=
C_FILES = $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h')

.PHONY: all build deps demo test test-torch2 wheel sdist test-wheel deb test-deb truth compare-bars kills power-cuts faults fuzz bench firmware firmware-table format check install clean help

all: build

build: ## builds build/nrg
	@tools/deps.sh --check build
	@$(PYTHON) tools/configure build $(SETUP)
	@$(NINJA) -C build

deps: ## installs the Debian packages for building, testing and the demo (as root)
	@tools/deps.sh build test demo

# The tools may only exist after deps: a second make finds them.
demo: ## trains a small network and shows the energy that it took
	@tools/deps.sh build demo
	@$(MAKE) --no-print-directory build
	@examples/demo.sh

test: ## all tests, with sanitizers; ends in a line that counts them
	@tools/deps.sh build test
	@$(MAKE) --no-print-directory build
	@$(PYTHON) tests/run_all

test-torch2: ## the training example under a current PyTorch from PyPI
	@tools/deps.sh build test
	@$(MAKE) --no-print-directory build
	@$(PYTHON) tests/run_all --only torch2

wheel: ## dist/nrg-….whl for pip, with all that it needs inside (docs/install.md)
	@tools/deps.sh build wheel
	@$(PYTHON) tools/wheel dist

sdist: ## dist/nrg-….tar.gz, from which pip builds
	@mkdir -p dist
	@$(PYTHON) python/build_backend.py dist sdist

test-wheel: ## builds the wheel twice, and uses it in a fresh Debian (minutes, as root)
	@tools/deps.sh build wheel fresh
	@$(PYTHON) tests/support/unittest_tap.py tests/packages/check_wheel.py

deb: ## dist/*.deb: nrg, libnrg0, libnrg-dev, python3-nrg, nrgd
	@tools/deps.sh build deb
	@tools/deb dist

test-deb: deb ## installs, uses, upgrades and purges the packages in a fresh Debian (minutes, as root)
	@tools/deps.sh deb fresh
	@tests/packages/check_deb.sh dist

SEEDS ?= 100
truth: ## how true attribution is where the joules are known (SEEDS=100 of each scenario)
	@$(MAKE) --no-print-directory build
	@NRG_BIN=build/nrg $(PYTHON) tests/truth/truth --seeds $(SEEDS)

EACH ?= 500
compare-bars: ## how true nrg compare is where the ratio is known (EACH=500 comparisons for 3 to 30 runs; minutes)
	@$(MAKE) --no-print-directory build
	@NRG_BIN=build/nrg $(PYTHON) tests/truth/compare_bars --each $(EACH)

KILLS ?= 300
kills: ## kill -9 at KILLS random moments of a recording (300)
	@$(MAKE) --no-print-directory build
	@NRG_BIN=build/nrg NRG_TOOLS=build/tests NRG_TEST_KILLS=$(KILLS) $(PYTHON) tests/support/unittest_tap.py tests/cli/test_kills.py

CUTS ?= 1000
SEED ?= 1
power-cuts: ## opens CUTS states (1000) that a disk may show after a power cut, of each of five recordings (SEED=1)
	@$(MAKE) --no-print-directory build
	@NRG_BIN=build/nrg NRG_TOOLS=build/tests NRG_TEST_CUTS=$(CUTS) NRG_TEST_SEED=$(SEED) $(PYTHON) tests/support/unittest_tap.py tests/cli/test_power_cut.py

faults: build ## lets every allocation, open, read, write and sync fail (an hour)
	@NRG_BUILD=build $(PYTHON) tests/faults/faults.py --all
	@NRG_TEST_FAULTS_ALL=1 NRG_BIN=build/nrg $(PYTHON) tests/support/unittest_tap.py tests/cli/test_fail_nth.py

CONNECTIONS ?= 10000
hostile: ## CONNECTIONS hostile clients (10000) of nrgd, under AddressSanitizer
	@tools/deps.sh build test
	@$(PYTHON) tools/configure build-asan --werror -Doptimization=1 -Db_lundef=false -Dc_args=-g1 -Db_sanitize=address,undefined -Dtests=enabled
	@$(NINJA) -C build-asan nrg daemon/nrgd
	@NRG_BIN=build-asan/nrg NRG_TOOLS=build-asan/tests NRG_TEST_CONNECTIONS=$(CONNECTIONS) $(PYTHON) tests/support/unittest_tap.py tests/cli/test_nrgd_hostile.py

FUZZ_S ?= 600
fuzz: ## fuzzes every parser for FUZZ_S seconds each (600)
	@tools/deps.sh build test
	@$(PYTHON) tests/run_all --only fuzz --fuzz-s $(FUZZ_S)

bench: build ## measures nrg's own cost
	@if [ -x bench/run ]; then NRG_BIN=build/nrg bench/run; else echo "there is no bench/run"; fi
	@bench/python $(PYTHON)
	@bench/torch $(PYTHON)

firmware: ## builds the emonPi's side for an ATmega328P (docs/firmware.md)
	@tools/deps.sh firmware
	@$(MAKE) --no-print-directory -C firmware

firmware-table: ## the tables of docs/firmware.md, from a simulator (minutes)
	@tools/deps.sh firmware
	@$(MAKE) --no-print-directory -C firmware table

format: ## formats all C files
	@clang-format -i $(C_FILES)

check: build ## cppcheck (clean) and clang-tidy (minutes; its analyzer still guesses)
	@tools/static_check.sh

install: build ## installs, in DESTDIR; make SETUP=--prefix=/usr sets where
	@$(MESON) install -C build --no-rebuild

clean: ## removes everything that was built
	@rm -rf build build-asan build-tsan build-clang build-fuzz build-firmware build*.old

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  make \1 :\2/p' Makefile | \
	    awk -F' :' '{printf "%-20s %s\n", $$1, $$2}'
