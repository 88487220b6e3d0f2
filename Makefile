# What people type. `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
RUN_ARGS ?=
FENCED_MINUTES ?= 5
SOAK_MINUTES ?= 60
SOAK_SESSIONS ?= 10000
FUZZ_RUNS ?= 0
export JOBS

.DEFAULT_GOAL := help
.PHONY: help setup build run test test-all lint format fuzz fuzz-deep faults failover planted bench install clean fenced coverage soak simulate-long mutation matrix docs containers-test consume page-test deb deb-test examples

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install all that any target needs (Debian), or say what is missing (elsewhere)
	@scripts/setup

build: ## the release binaries: build/monolock and build/monolockctl
	@scripts/setup build
	@mkdir -p build
	@cmake --preset release > build/configure-release.log 2>&1 || { cat build/configure-release.log; exit 1; }
	@cmake --build --preset release -j $(JOBS)

run: build ## build, then start the server (RUN_ARGS='-listen :7071' for flags)
	@exec build/monolock $(RUN_ARGS)

test: ## every test, in the dev build and under AddressSanitizer with UBSan, and FUZZ_SECONDS (20) of each fuzz target
	@scripts/setup build test fuzz page
	@scripts/test --beside fuzz dev asan

test-all: ## the whole matrix: dev, asan, tsan, clang, and a brief fuzz
	@scripts/setup build test lint fuzz page
	@scripts/test dev asan tsan tidy fuzz

lint: ## layout, clang-tidy, purity of the pure folders, headers that stand alone, the documents
	@scripts/setup build test lint docs
	@scripts/lint

docs: ## the book and the library's reference as pages: build/docs/index.html; any warning or wrong link fails
	@scripts/setup docs
	@scripts/docs

format: ## rewrite the sources as .clang-format says
	@scripts/setup lint
	@git ls-files '*.hpp' '*.cpp' | xargs clang-format-14 -i

fuzz: ## FUZZ_SECONDS (60) of fuzzing for each target, or FUZZ_RUNS inputs over all runs
	@scripts/setup build fuzz
	@FUZZ_RUNS=$(FUZZ_RUNS) scripts/fuzz

fuzz-deep: ## a hundred million inputs for each target without sanitizers, then under them each that reached something new (a day)
	@scripts/setup build fuzz
	@FUZZ_RUNS=$(FUZZ_RUNS) scripts/fuzz --deep

faults: ## every scenario of tests/faults for FAULT_SECONDS (600) altogether, with a table of what happened
	@scripts/setup build test
	@cmake --preset dev > /dev/null && cmake --build --preset dev -j $(JOBS) --target faults

failover: ## several servers with etcd, struck in every way for FAILOVER_SECONDS (600), with a table of the seconds that each costs
	@scripts/setup build test
	@cmake --preset dev > /dev/null && cmake --build --preset dev -j $(JOBS) --target failover

page-test: ## the operator's page in a real browser, at every size, with 100,000 locks; its pictures land in build/page/
	@scripts/setup build test page
	@cmake --preset dev > /dev/null && cmake --build --preset dev -j $(JOBS) --target monolock -- --quiet
	@tests/page/run long_test.mjs page_test.mjs

planted: ## plant each known bug, one at a time, and see that the simulator catches it (PLANTED='lifo …' for some, within SEEDS, 20000)
	@scripts/setup build test
	@tests/simulation/planted/run $(if $(SEEDS),--seeds $(SEEDS)) $(PLANTED)

consume: ## the client library in somebody else's build: installed, as a part of it, fetched; by CMake and pkg-config
	@scripts/setup build test
	@cmake --preset dev > /dev/null && cmake --build --preset dev -j $(JOBS) --target consume

deb: ## the Debian packages, from the sources as they are committed, into build/deb/
	@scripts/setup build deb
	@scripts/deb

deb-test: deb ## install, try, upgrade, remove and purge them in a clean debootstrap tree (as root)
	@scripts/deb-test

fenced: ## FENCED_MINUTES (5) of owners that are struck while they write to PostgreSQL, with and without a check of the token
	@scripts/setup build test
	@cmake --preset dev > /dev/null && cmake --build --preset dev -j $(JOBS) -- --quiet
	@tests/fenced/run --minutes $(FENCED_MINUTES)

mutation: ## plant mistakes in the pure parts, one at a time (MUTATION_FILES='src/core/lock_*' for some)
	@scripts/setup build test lint fuzz
	@tests/mutation/run $(if $(MUTATION_FILES),--files $(MUTATION_FILES))

coverage: ## lines and branches of the pure parts that their tests execute; the report lands in build/coverage/
	@scripts/setup build test lint fuzz matrix
	@tests/coverage/run

soak: ## SOAK_MINUTES (60, at least 2) of SOAK_SESSIONS (10000) and everything else at once, and a million names; the report lands in build/soak/
	@scripts/setup build test bench
	@$(MAKE) --no-print-directory build
	@tests/soak/run --minutes $(SOAK_MINUTES) --sessions $(SOAK_SESSIONS)

simulate-long: build ## a million simulated worlds or an hour of them, on all cores; the report lands in build/
	@{ git describe --always --dirty; build/simulate --seeds 1000000 --seconds 3600 --jobs $(JOBS) --progress 60; } 2>&1 | tee build/simulate-long.txt

matrix: ## the suite by both compilers, under every sanitizer and valgrind, with one and many shards (hours; MATRIX_CELLS='gcc asan' for some)
	@scripts/setup build test lint fuzz page matrix
	@tests/matrix/run $(MATRIX_CELLS)

containers-test: ## build the container image and run it; lint, render and validate the chart and the manifests (as root, minutes)
	@scripts/setup build test containers
	@tests/containers/run

bench: ## measure the server against the floor and its peers; the report lands in build/bench/
	@scripts/setup build bench
	@scripts/setup peers || echo "bench: goes on without the peers that are missing" >&2
	@$(MAKE) --no-print-directory build
	@cmake --build --preset release -j $(JOBS) --target bench_peers -- -k 0 || \
		echo "bench: goes on without the peers whose drivers do not build" >&2
	@bench/run

examples: build ## the programs of examples/, as build/example_*
	@scripts/setup build test
	@cmake --build --preset release -j $(JOBS) --target examples

install: build ## install programs, library, headers and documents below PREFIX (default /usr/local)
	@cmake --install build/release --prefix $(PREFIX)

clean: ## remove the build folder
	@rm -rf build
