# The front door. `make demo` shows what assay does; `make check` is what CI runs for each change.
BUILD := build/release
JOBS ?= $(shell nproc)
CMAKE := /usr/bin/cmake
# Unity builds halve the time of a build from nothing. While you work on one file: make build UNITY=OFF.
UNITY ?= ON

# What `configure` depends on. tools/check installs the packages itself and sets this to nothing.
INSTALLED ?= setup
# What `make build` builds.
TARGETS ?= all

.PHONY: help setup configure build demo check check-all test lint analyze format bench sanitize fuzz wheel coverage clean

help: ## this text
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

setup: ## install what is missing: Debian packages, two framework environments
	@tools/setup paddle torch

configure: $(INSTALLED)
	@mkdir -p build
	@$(CMAKE) --preset release -DCMAKE_UNITY_BUILD=$(UNITY) >build/configure.log 2>&1 || \
	  { cat build/configure.log; exit 1; }

build: configure ## build everything but the benchmarks and the slow tests
	@$(if $(INSTALLED),tools/setup --environments dev)
	@$(CMAKE) --build --preset release -j $(JOBS) --target $(TARGETS)

# assay-api compiles in a third of the time of assay. A clone that has built assay keeps it up to date instead.
demo: configure ## run the main job on real cases and show the results
	@$(CMAKE) --build --preset release -j $(JOBS) --target $(if $(wildcard $(BUILD)/bin/assay),assay,assay-api)
	@tools/demo

# PART=timeline: builds and tests what is in tests/timeline.
check: ## build, lint and pass every quick test (PART=FOLDER: one folder of tests/)
	@PART=$(PART) tools/check

check-all: ## check, and the slow tests, clang-tidy, sanitizers, fuzzers, wheel (or PART)
	@PART=$(PART) tools/check all

test: build ## only the quick tests of the C++ part
	@ctest --preset release -LE '^slow$$' -j $(JOBS)

lint: setup ## formatting, clang-tidy, ruff
	@tools/setup dev
	@tools/lint
	@tools/tidy

analyze: setup ## clang-tidy with clang's path-sensitive analyzer as well (slow)
	@tools/setup dev
	@tools/tidy 'clang-analyzer-*,-clang-analyzer-cplusplus.NewDeleteLeaks'

format: ## format all sources
	@git ls-files '*.h' '*.cc' '*.cu*' | xargs clang-format-16 -i

bench: TARGETS = all bench/all
bench: build ## the figures of docs/benchmarks.md
	@tools/bench

sanitize: setup ## every C++ unit test under address, undefined and thread sanitizers
	@tools/sanitize

fuzz: setup ## every fuzzer for SECONDS (60) each
	@tools/setup dev
	@tools/fuzz $(or $(SECONDS),60)

.PHONY: docs
docs: ## the site of docs/, in build/site
	@tools/setup docs
	@NO_MKDOCS_2_WARNING=1 .venv/docs/bin/mkdocs build --strict

wheel: configure ## one file for pip: any CPython >= 3.10, glibc >= 2.31 (docs/how-to/build-the-wheel.md)
	@tools/setup wheel
	@JOBS=$(JOBS) tools/wheel/build

coverage: setup ## which lines the tests run, of C++ and Python: build/coverage
	@tools/setup dev paddle torch
	@tools/coverage

clean: ## remove what was built
	@rm -rf build
