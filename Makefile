# `make` lists the targets. No target needs another one to run first.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
ALL ?=
ROUNDS ?= 20
SECONDS ?= 60
KILLS ?= 200
SIZE ?= 3
NET ?= proxy
SEED ?=
STAY ?=
NO_FENCE ?=
SEEDS ?= 1000
FIRST_SEED ?= 1
FOLDERS ?= src tests examples

# Packages of tenured, and of tenure with every scheme of URLs.
PROGRAMS = server cluster redis etcd zookeeper cli

# C++ sources of this project.
SOURCES = $(shell find include src tests bench examples -name '*.hpp' -o -name '*.cpp')

# Colour on a terminal only.
step = @if [[ -t 1 ]]; then printf '\033[1m==> %s\033[0m\n' $(1); else printf '==> %s\n' $(1); fi

##@ Daily use
.PHONY: help setup build run cluster demo docs web screenshots man examples test chaos sim fuzz check bench bench-local bench-service bench-cluster bench-redis bench-backends fmt clean install package

help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install all Debian packages that the targets need, and offer the git hook for commit messages
	@tools/setup.sh
	@git config --get core.hooksPath >/dev/null || \
	  echo "To check commit messages: git config core.hooksPath tools/hooks"

build: ## build the library, the tests and the examples into build/dev
	@tools/setup.sh build server test
	$(call step,"build")
	@$(call build_preset,dev)

run: ## build and start a lock server with its dashboard in ./var, and print three commands to try
	@tools/setup.sh build $(PROGRAMS) run
	$(call step,"build")
	@$(call build_preset,run,--target tenured tenure_cli)
	@tools/run_server.sh build/run/tenured

cluster: ## build and start a cluster of three lock servers (./var/cluster), until Ctrl-C
	@tools/setup.sh build $(PROGRAMS) run
	$(call step,"build")
	@$(call build_preset,run,--target tenured tenure_cli)
	@tools/run_cluster.sh build/run/tenured

demo: ## show how a fence rejects a worker that was paused beyond its lease, on three lock servers (STAY=1: until Ctrl-C)
	@tools/setup.sh build server run demo
	$(call step,"build")
	@$(call build_preset,run,--target tenured demo_worker)
	@tools/demo.py build/run $(if $(STAY),--stay) $(if $(NO_FENCE),--no-fence)

docs: ## make the API reference by Doxygen (build/docs/html/index.html)
	@tools/setup.sh docs
	$(call step,"docs")
	@tools/api_docs.sh build/docs

web: ## build the dashboard (web/src -> web/dist, which is committed)
	@tools/setup.sh web
	$(call step,"web")
	@tools/web.sh build

screenshots: ## take the screenshots of the dashboard for the documents (docs/screenshots)
	@tools/setup.sh build server run screenshots
	$(call step,"build")
	@$(call build_preset,run,--target tenured)
	@tools/web.sh modules
	@TENURED=build/run/tenured node tools/screenshots.mjs docs/screenshots

man: ## write the manual pages into build/man
	@tools/setup.sh build server run
	$(call step,"man")
	@$(call build_preset,run,--target tenured tenure_cli)
	@tools/man_pages.sh build/run build/man

examples: build ## run the examples of the library
	@tools/run_examples.sh build/dev/examples

test: build ## build and run all tests; the last line has the counts
	@$(call build_preset,fuzz)
	$(call step,"test")
	@rm -f build/dev/tests.xml
	@ctest --preset dev -j $(JOBS) --output-junit tests.xml || true
	@python3 tools/count_tests.py build/dev/tests.xml

chaos: build ## inject faults into a cluster under load: ROUNDS=20 of SECONDS=60, and KILLS=200 of one server; SEED=n repeats a round
	@TENURED=build/dev/tenured /usr/bin/python3 tests/daemon/crash_test.py --rounds $(KILLS)
	@TENURED=build/dev/tenured TENURE_BUILD=build/dev /usr/bin/python3 tests/fault/run.py \
	  --rounds $(ROUNDS) --seconds $(SECONDS) --size $(SIZE) --net $(NET) $(if $(SEED),--seed $(SEED))

sim: ## simulate SEEDS=1000 faulty clusters of a minute each from FIRST_SEED=1, and check their histories
	@tools/setup.sh build server test
	$(call step,"build")
	@$(call build_preset,dev,--target tenure_simulation tenure_history)
	$(call step,"sim")
	@build/dev/tests/tenure_simulation --first $(FIRST_SEED) --seeds $(SEEDS) --jobs $(JOBS)

fuzz: ## fuzz every target of tests/fuzz for SECONDS=60; findings are in build/fuzz/findings
	@tools/setup.sh build server test
	$(call step,"build")
	@$(call build_preset,fuzz)
	$(call step,"fuzz")
	@ls tests/fuzz/corpus | xargs -P $(JOBS) -I {} bash -c \
	  'tests/fuzz/run.sh build/fuzz {} $(SECONDS) >build/fuzz/{}.log 2>&1 && echo "good  {}" || \
	   { tail -40 build/fuzz/{}.log; echo "FAILED  {}"; exit 1; }'

##@ Before a commit
check: check-format check-tidy check-models check-headers check-clang check-clang-tidy check-asan check-tsan ## format, layers, headers, clang, clang-tidy on changed files (ALL=1: on all), sanitizers
	$(call step,"check: passed")

fmt: ## format all C++ files
	@tools/setup.sh check
	@clang-format-19 -i $(SOURCES)

##@ Speed
bench: bench-local bench-service bench-cluster bench-redis bench-backends ## run all benchmarks

bench-local: ## compare the in-process lock manager with its peers; writes docs/benchmarks.md
	@tools/setup.sh
	$(call step,"bench-local")
	@$(call build_preset,release,--target bench_local bench_memory)
	@python3 bench/run_local.py --write docs/benchmarks.md

bench-service: ## compare the lock service with etcd and ZooKeeper; writes docs/benchmarks.md
	@tools/setup.sh
	$(call step,"bench-service")
	@$(call build_preset,release,--target tenured service_load library_load zookeeper_load bench_client)
	@python3 bench/run_service.py --write docs/benchmarks.md

bench-cluster: ## compare three nodes with three of etcd and ZooKeeper; writes docs/benchmarks.md
	@tools/setup.sh
	$(call step,"bench-cluster")
	@$(call build_preset,release,--target tenured service_load library_load zookeeper_load)
	@python3 bench/run_cluster.py --write docs/benchmarks.md

bench-redis: ## compare redis:// with hand-written clients of Redis; writes docs/benchmarks.md
	@tools/setup.sh
	$(call step,"bench-redis")
	@$(call build_preset,release,--target redis_load redlock_load)
	@python3 bench/run_redis.py --write docs/benchmarks.md

bench-backends: ## compare the library on etcd and ZooKeeper with their own locks; writes docs/benchmarks.md
	@tools/setup.sh
	$(call step,"bench-backends")
	@$(call build_preset,release,--target library_load service_load zookeeper_load)
	@python3 bench/run_backends.py --write docs/benchmarks.md

##@ Other
install: ## build the release and install libraries, tenured and tenure below PREFIX (default /usr/local)
	@tools/setup.sh build $(PROGRAMS)
	@mkdir -p build
	@cmake --preset release -DTENURE_BENCH=OFF -DTENURE_TESTS=OFF -DTENURE_EXAMPLES=OFF \
	  -B build/install -DCMAKE_INSTALL_PREFIX=$(PREFIX) >build/.install.log || \
	  { cat build/.install.log; exit 1; }
	@cmake --build build/install -j $(JOBS)
	@cmake --install build/install

package: ## build .debs of the libraries, tenured and tenure into build/packages
	@tools/setup.sh build $(PROGRAMS) package
	$(call step,"build")
	@$(call build_preset,package,--target tenured tenure_cli)
	@$(call build_preset,package-libraries)
	$(call step,"package")
	@tools/package.sh build/package build/package-libraries build/packages

clean: ## remove all build folders
	@rm -rf build

# The parts of check -------------------------------------------------------------------------------
.PHONY: check-format check-tidy check-models check-headers check-clang check-clang-tidy check-asan check-tsan

check-format:
	@tools/setup.sh check
	$(call step,"check: format")
	@clang-format-19 --dry-run -Werror $(SOURCES)

check-tidy:
	@tools/setup.sh test
	$(call step,"check: layers$(,) sizes$(,) names")
	@python3 tools/tidy.py

check-models:
	@tools/setup.sh check
	$(call step,"check: models of the protocols")
	@tools/check_models.sh

check-headers:
	@tools/setup.sh build server test
	$(call step,"check: every header compiles alone")
	@$(call build_preset,dev,--target tenure_headers)

check-clang:
	@tools/setup.sh build server test check
	$(call step,"check: clang with -Wthread-safety$(,) each source alone")
	@$(call build_preset,clang,--target tenure_proto tenure_etcd_proto tenure_stubs)
	@python3 tools/clang_syntax.py build/clang --jobs $(JOBS) $(FOLDERS)

check-clang-tidy: check-clang
	$(call step,"check: clang-tidy")
	@ALL=$(ALL) JOBS=$(JOBS) tools/clang_tidy.sh build/clang

check-asan check-tsan: check-%:
	@tools/setup.sh build server test
	$(call step,"check: suites with $*")
	@$(call build_preset,$*,--target tenure_suites)
	@ctest --preset $* -j $(JOBS)

# $(call build_preset,name,more arguments): configure quietly, then build with progress.
define build_preset
mkdir -p build && { cmake --preset $(1) >build/.$(1).log 2>&1 || { cat build/.$(1).log; exit 1; }; } && \
cmake --build --preset $(1) -j $(JOBS) $(2)
endef

, := ,
