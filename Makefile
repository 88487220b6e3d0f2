# What people type. `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
RUN_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup build run test test-all lint format bench install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what the build needs and is missing (Debian), or say what is missing (elsewhere)
	@scripts/setup

build: setup ## the release binaries: build/monolock and build/monolockctl
	@mkdir -p build && cmake --preset release -Wno-dev > build/configure-release.log 2>&1 || { cat build/configure-release.log; exit 1; }
	@cmake --build --preset release -j $(JOBS)

run: build ## build, then start the server (RUN_ARGS='-listen :7071' for flags)
	@exec build/monolock $(RUN_ARGS)

test: setup ## every test, in the dev build and under AddressSanitizer with UBSan
	@scripts/test dev asan

test-all: setup ## the whole matrix: dev, asan, tsan, and clang
	@scripts/test dev asan tsan tidy

lint: setup ## format, clang-tidy, purity of the pure folders, headers that stand alone
	@scripts/lint

format: ## rewrite the sources as .clang-format says
	@git ls-files '*.hpp' '*.cpp' | xargs clang-format-14 -i

bench: build ## measure the server against the floor; the report lands in build/bench/
	@bench/run

install: build ## install programs, library, headers and documents below PREFIX (default /usr/local)
	@cmake --install build/release --prefix $(PREFIX)

clean: ## remove the build folder
	@rm -rf build
