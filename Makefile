# What one types. Each target sets up what it needs; the build itself is CMake's (CMakePresets.json).
.NOTPARALLEL:
.DEFAULT_GOAL := help

JOBS ?= $(shell nproc)
MINUTES ?= 60
BENCH_ARGS ?= --shape kev-0.8b --rows 94,380,1518 --questions 1,6

.PHONY: help demo build test test-release test-asan test-lint test-tsan test-full check lint format format-check bench fuzz clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## build the program, answer an example ticket, run the gate
	@scripts/setup.sh run
	@scripts/demo.sh $(JOBS)

build: ## the program alone: build/release/cli/assay
	@scripts/setup.sh run
	@scripts/configure.sh release
	@cmake --build --preset release --target assay -j $(JOBS)

test: ## everything: checks, unit and end-to-end tests, sanitizers, fuzz corpora
	@scripts/setup.sh dev
	@$(MAKE) --no-print-directory check test-asan test-tsan test-release
	@echo "test: all passed"

# GCC, optimised: every unit test and the end-to-end tests of the program.
test-release:
	@scripts/configure.sh release -DASSAY_BUILD_TESTS=ON
	@cmake --build --preset release -j $(JOBS)
	@ctest --preset release -j $(JOBS)

# Clang, AddressSanitizer and UndefinedBehaviorSanitizer: unit tests, and every fuzz target over its corpus.
test-asan:
	@scripts/configure.sh asan
	@cmake --build --preset asan -j $(JOBS)
	@ctest --preset asan -j $(JOBS)

# clang-tidy on what no earlier run found clean (make lint records).
test-lint:
	@scripts/lint.py --jobs $(JOBS)

# GCC, ThreadSanitizer: what runs on several threads.
test-tsan:
	@scripts/configure.sh tsan
	@cmake --build --preset tsan -j $(JOBS) --target device_tests backbone_tests
	@scripts/without_aslr.sh ctest --preset tsan -j $(JOBS)

test-full: ## make test, then the tokenizer against the real Qwen3 vocabulary (npm), then lint
	@$(MAKE) --no-print-directory test lint
	@scripts/setup.sh full
	@tests/peers/tokenizer/run.sh build/release

check: format-check
	@python3 scripts/check_tree.py

lint: ## clang-tidy on every source that is not on record as clean (scripts/lint.sums), and record those that are
	@scripts/setup.sh dev
	@scripts/configure.sh asan
	@scripts/lint.py --jobs $(JOBS) --record

format: ## clang-format every source in place
	@scripts/setup.sh dev
	@scripts/format.sh -i

format-check: ## fail where clang-format would change something
	@scripts/setup.sh dev
	@scripts/format.sh --dry-run --Werror

bench: ## the benchmarks under bench/ beside their peers, then a decision at a real model's shape
	@scripts/setup.sh bench
	@scripts/bench.sh $(JOBS) $(BENCH_ARGS)

fuzz: ## fuzz every parser for MINUTES in all (60)
	@scripts/setup.sh dev
	@scripts/configure.sh asan
	@scripts/fuzz.sh $(MINUTES)

clean: ## remove build/
	@rm -rf build
