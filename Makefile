# What people type. `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
RUN_ARGS ?=
FUZZ_SECONDS ?= 60
export JOBS

.DEFAULT_GOAL := help
.PHONY: help setup build run test test-all lint format fuzz planted bench install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install all that any target needs (Debian), or say what is missing (elsewhere)
	@scripts/setup

build: ## the release binaries: build/monolock and build/monolockctl
	@scripts/setup build
	@mkdir -p build
	@cmake --preset release > build/configure-release.log 2>&1 || { cat build/configure-release.log; exit 1; }
	@cmake --build --preset release -j $(JOBS)

run: build ## build, then start the server (RUN_ARGS='-listen :7071' for flags)
	@exec build/monolock $(RUN_ARGS)

test: ## every test, in the dev build and under AddressSanitizer with UBSan
	@scripts/setup build test
	@scripts/test dev asan

test-all: ## the whole matrix: dev, asan, tsan, clang, and a brief fuzz
	@scripts/setup build test lint
	@scripts/test dev asan tsan tidy fuzz

lint: ## layout, clang-tidy, purity of the pure folders, headers that stand alone
	@scripts/setup build test lint
	@scripts/lint

format: ## rewrite the sources as .clang-format says
	@scripts/setup lint
	@git ls-files '*.hpp' '*.cpp' | xargs clang-format-14 -i

fuzz: ## FUZZ_SECONDS (60) of fuzzing for each target
	@scripts/setup build test lint
	@scripts/fuzz $(FUZZ_SECONDS)

planted: ## plant each known bug, one at a time, and see that the simulator catches it
	@scripts/setup build test
	@tests/simulation/planted/run

bench: ## measure the server against the floor and its peers; the report lands in build/bench/
	@scripts/setup build bench
	@scripts/setup peers || echo "bench: goes on without the peers that are missing" >&2
	@$(MAKE) --no-print-directory build
	@cmake --build --preset release -j $(JOBS) --target bench_peers -- -k 0 || \
		echo "bench: goes on without the peers whose drivers do not build" >&2
	@bench/run

install: build ## install programs, library, headers and documents below PREFIX (default /usr/local)
	@cmake --install build/release --prefix $(PREFIX)

clean: ## remove the build folder
	@rm -rf build
