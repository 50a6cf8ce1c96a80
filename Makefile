# The tasks of the vram repository. Needed: Go, gcc (for the race detector), git, make and bash.
# Developer tools are built from source at pinned versions into .bin, which git ignores.
#
# GOFLAGS, GOPROXY and the rest of Go's environment are taken as they come.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go

# The modules that go.work names, and the packages of all of them: ./... alone leaves out those of the modules below.
MODULES  := $(shell sed -n 's/^\t\(\..*\)$$/\1/p' go.work)
PACKAGES := $(MODULES:%=%/...)
# What runs actors itself: tested also with the tag vram_builtin, which links our own framework in the place of protoactor.
ACTORS   := . ./actors ./pool ./streams ./lab/simulation

# How long `make fuzz` gives each fuzz target, and how many inputs `make check` does: a few seconds' worth. A count, since Go
# before 1.27 now and then fails a target at the end of a time, with "context deadline exceeded": go.dev/issue/75804.
FUZZTIME       ?= 10s
CHECK_FUZZTIME ?= 2000x
# How long the tests of one package may take. lab/replay plays for a minute under the race detector where two processors are its
# own, and for ten where it shares them with others; only a hang takes all of it.
TIMEOUT  ?= 45m
# What `make bench-gpu` runs: scenarios, traces or all. Two calls of under eight minutes each, or one of both. kernels is a part by itself,
# of under four minutes.
PART     ?= all
# What `make bench` runs: benchmarks by name, and scenarios of `vram bench`.
BENCH    ?= .
SCENARIO ?= all
# What `make frontier` plays: files with traces; the embedded traces without any.
TRACES   ?= $(patsubst internal/trace/data/%.csv.gz,%,$(wildcard internal/trace/data/*.csv.gz))
# What `make planted` plants: bugs whose names contain it; all without it.
BUG      ?=
# What `make sim` plays: a second or so.
SEED  ?= 0
# One seed where it, or the number of steps, is named; else many.
SEEDS ?= $(if $(filter command line environment,$(origin SEED) $(origin STEPS)),1,100)
STEPS ?= 3000

GOLANGCI_VERSION := v2.12.2
GOFUMPT_VERSION  := v0.12.0
DEADCODE_VERSION := v0.52.0

# A tool's file name carries its version, so a new pin builds anew.
TOOLS    := $(CURDIR)/.bin
GOLANGCI := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
GOFUMPT  := $(TOOLS)/gofumpt-$(GOFUMPT_VERSION)
DEADCODE := $(TOOLS)/deadcode-$(DEADCODE_VERSION)

# The steps of `make check` share the build cache and the processors: one after the other, cheap ones first.
.NOTPARALLEL:

.PHONY: help demo page browser test test-builtin race sim planted bench frontier soak soak-service bench-gpu bench-gpu-carry test-gpu test-gpu-carry build-gorgonia test-gorgonia gorgonia-carry exhaustive fuzz kernels lint check build clean vet arch tidy deadcode deps vuln release release-check platforms

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' Makefile

# ARGS are flags of the demo: make demo ARGS='-steps 1000 -speed 4 -footprint lean -limit 12GB'. It is built and then
# run by itself, so that an interrupt reaches it alone and its exit code is seen.
demo: ## train with four pipeline stages, on a GPU or the simulated device, some ten seconds (ARGS=flags)
	@$(GO) build -o bin/pipeline ./examples/pipeline
	@bin/pipeline $(ARGS)

# ARGS are flags: make page ARGS='-trace gpt2_train -addr 127.0.0.1:8080'.
page: ## serve the live page over a demonstration, on a GPU or the simulated device (ARGS=flags)
	@$(GO) build -o bin/vram ./cmd/vram
	@bin/vram serve $(ARGS)

browser: ## test the live page in a Chromium, which is installed where it is missing; pictures come to lab/browser/pictures
	@GO='$(GO)' lab/browser/run.sh

test: ## run all tests
	$(GO) test -timeout $(TIMEOUT) $(PACKAGES)

test-builtin: ## test what runs actors with the built-in framework (build tag vram_builtin), and the framework under the race detector
	$(GO) test -tags vram_builtin -timeout $(TIMEOUT) $(ACTORS)
	CGO_ENABLED=1 $(GO) test -race -tags vram_builtin -timeout $(TIMEOUT) ./actors ./pool ./streams

# Packages that compute alone, without goroutines in them or in their tests: internal/archtest holds them to that. The race detector could find nothing
# there, and takes ten times as long; `make race` runs them without it, or takes the answer of `make test` from the cache.
SEQUENTIAL := compute/kernel/plan internal/pool/core internal/pool/admission internal/pool/memory compute/ptx compute/ptx/interp
# Tests that read sources, or build and run other programs: the race detector does not see those, and would only slow them.
WITHOUT_RACE := api lab/peers internal/archtest lab/planted $(SEQUENTIAL)

race: ## run the tests under the race detector, but for those that have no goroutines of their own
	packages=$$($(GO) list $(PACKAGES) | grep -vxF $(WITHOUT_RACE:%=-e github.com/go-vram/vram/%)); \
	CGO_ENABLED=1 $(GO) test -race -timeout $(TIMEOUT) $$packages
	$(GO) test -timeout $(TIMEOUT) $(SEQUENTIAL:%=./%)

exhaustive: ## walk every state of the models of magazines; make test walks a part
	$(GO) test -count=1 -tags exhaustive -run '^TestEvery' -timeout $(TIMEOUT) ./internal/stream/magazine

sim: ## play the whole allocator from seeds (SEED=first SEEDS=count STEPS=each); a failure prints its shortest history
	@$(GO) run ./cmd/vram sim -seed $(SEED) -seeds $(SEEDS) -steps $(STEPS)

# Not in parallel with other steps: what runs out of time is not found.
planted: ## plant every bug of lab/planted, and print which test found it (BUG=part of a name)
	@$(GO) run ./lab/planted/table -bug '$(BUG)'

bench: ## run the Go benchmarks (BENCH=regexp) and vram bench (SCENARIO=name)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem $(PACKAGES)
	$(GO) run ./cmd/vram bench -scenario $(SCENARIO)

# A trace and mode takes a second or so, most of it for the limits.
frontier: ## play traces in each footprint mode: memory against time, and the least limits (TRACES=files)
	@for mode in fast balanced lean; do $(GO) run ./cmd/vram replay -driver sim -min-capacity -footprint $$mode $(TRACES); done

soak: ## allocate and free ten million times on eight streams, under a hard limit of 1.10 times what lives at most
	@$(GO) test ./lab/soak -count=1 -run TestSoak -timeout 0 -v -ops 10000000
soak-service: ## open and close streams, tenants, tags and graphs for ten minutes: neither heap nor goroutines grow
	@$(GO) test ./lab/soak -count=1 -run TestService -timeout 0 -v -service 10m

bench-gpu: ## run vram and its peers in turns on a GPU, and print tables (PART=scenarios|traces|all|kernels)
	@lab/peers/run.sh $(PART)

# A machine with a GPU may have no Go: what bench-gpu needs there fits in one folder that git ignores.
bench-gpu-carry: ## put the command for a machine with a GPU and without Go at .dev/vram
	CGO_ENABLED=0 GOOS=linux GOARCH=amd64 $(GO) build -trimpath -ldflags '-s -w' -o .dev/vram ./cmd/vram

# The binary needs no file beside it: bin/dynamic.test can be carried to a machine with a GPU and run there.
test-gpu: ## run the driver's tests on the GPU of this machine
	CGO_ENABLED=0 $(GO) test -c -tags gpu -o bin/dynamic.test ./cudadrv/dynamic
	bin/dynamic.test -test.v -test.run Hardware -test.bench Hardware

# Each of these runs from any folder, with no file beside it: .dev/answers.test alone, the others with -test.run Hardware.
# Their symbols stay behind: that is a third of what is carried.
CARRIED := dynamic:./cudadrv/dynamic answers:./internal/fakecuda bytecheck:./lab/bytecheck sleep:./cuda/sleep matmul:./compute/kernel/matmul kernel:./compute/kernel elementary:./compute/kernel/elementary

test-gpu-carry: ## put the tests for a machine with a GPU and without Go into .dev
	@for item in $(CARRIED); do \
		echo "test-gpu-carry: .dev/$${item%%:*}.test"; \
		CGO_ENABLED=0 GOOS=linux GOARCH=amd64 $(GO) test -c -tags gpu -ldflags '-s -w' -o ".dev/$${item%%:*}.test" "$${item#*:}"; \
	done

# What is built with the tag gorgonia, and what it is tested on without a GPU.
GORGONIA := ./cudadrv/gorgonia ./examples/gorgonia ./cmd/vram
TOOLKIT  := cudadrv/gorgonia/toolkit.sh
FAKE     := $(CURDIR)/bin/fakecuda

build-gorgonia: ## compile the driver through gorgonia.org/cu, its example and the command with it (CUDA_HOME=toolkit)
	$(TOOLKIT) $(GO) build -tags gorgonia -o bin/gorgonia/ $(GORGONIA)

test-gorgonia: ## test the driver through gorgonia.org/cu on the fake library
	@$(GO) run ./internal/fakecuda/make $(FAKE)
	@if [ ! -e $(FAKE)/libcuda.so.1 ]; then echo "test-gorgonia: skipped"; exit 0; fi; \
	$(TOOLKIT) -fake $(FAKE) $(GO) vet -tags gorgonia $(GORGONIA); \
	$(TOOLKIT) -fake $(FAKE) $(GO) test -count=1 -race -tags gorgonia ./cudadrv/gorgonia ./examples/gorgonia; \
	$(TOOLKIT) -fake $(FAKE) $(GO) build -tags gorgonia -o bin/gorgonia/ ./cmd/vram; \
	$(TOOLKIT) -fake $(FAKE) bin/gorgonia/vram info --driver gorgonia

# A binary that was compiled with the fake's header and linked with the fake asks the loader for libcuda.so.1 and names no
# folder: on a machine with a GPU that is the real library. It needs the C library of this machine or a later one.
# There: .dev/gorgonia.test -test.v -test.run Hardware, .dev/gorgonia, and .dev/vram-gorgonia info -driver gorgonia; with
# LD_BIND_NOW=1 the loader names a function that the library lacks.
gorgonia-carry: ## put the tests, the example and the command through gorgonia.org/cu into .dev, built without CUDA
	@$(GO) run ./internal/fakecuda/make $(FAKE)
	@[ -e $(FAKE)/libcuda.so.1 ] || { echo "gorgonia-carry: cgo needs a C compiler" >&2; exit 1; }
	$(TOOLKIT) -fake $(FAKE) $(GO) test -c -tags gpu,gorgonia -ldflags '-s -w' -o .dev/gorgonia.test ./cudadrv/gorgonia
	$(TOOLKIT) -fake $(FAKE) $(GO) build -tags gorgonia -ldflags '-s -w' -o .dev/gorgonia ./examples/gorgonia
	$(TOOLKIT) -fake $(FAKE) $(GO) build -tags gorgonia -ldflags '-s -w' -o .dev/vram-gorgonia ./cmd/vram

# `go test -list` prints the targets of a package and then "ok", the package and the time.
fuzz: ## run each fuzz target for FUZZTIME
	@targets=$$($(GO) test -list '^Fuzz' $(PACKAGES) | awk '/^Fuzz/ { names[++n] = $$1 } \
		$$1 == "ok" { for (i = 1; i <= n; i++) print $$2, names[i]; n = 0 }'); \
	[ -n "$$targets" ] || { echo "fuzz: no fuzz target found" >&2; exit 1; }; \
	while read -r package name; do \
		echo "fuzz: $$package $$name for $(FUZZTIME)"; \
		$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime '$(FUZZTIME)' "$$package" </dev/null; \
	done <<<"$$targets"

kernels: ## compile the CUDA C++ of compute/kernel/matmul to PTX again: clang-19
	$(GO) run ./compute/kernel/matmul/compile

lint: $(GOLANGCI) $(GOFUMPT) ## run golangci-lint and look for files that gofumpt would change
	@files=$$($(GOFUMPT) -l .); \
	[ -z "$$files" ] || { echo "lint: gofumpt would change:" >&2; echo "$$files" >&2; exit 1; }
	GOLANGCI_LINT_CACHE=$(CURDIR)/.bin/lint-cache $(GOLANGCI) run --allow-parallel-runners $(PACKAGES)
	GOLANGCI_LINT_CACHE=$(CURDIR)/.bin/lint-cache $(GOLANGCI) run --allow-parallel-runners --build-tags vram_builtin ./actors

check: FUZZTIME := $(CHECK_FUZZTIME)
check: build vet arch tidy lint deadcode race browser test-builtin exhaustive planted test-gorgonia fuzz ## everything a change must pass: build, vet, layers, module files, lint, dead code, race, the page in a browser, the built-in framework, models, planted bugs, a short fuzz
	@echo "check: passed"

build: ## compile every package and put the command at bin/vram
	$(GO) build $(PACKAGES)
	$(GO) build -o bin/vram ./cmd/vram

clean: ## remove what the targets built; tools in .bin stay
	rm -rf bin
	find . -name '*.test' -type f -delete

vet:
	$(GO) vet $(PACKAGES)
	$(GO) vet -tags vram_builtin $(PACKAGES)

arch:
	$(GO) test -count=1 ./internal/archtest

# A module is tidied by itself, as go.work did not exist.
tidy:
	@for module in $(MODULES); do \
		echo "tidy: $$module"; \
		(cd $$module && $(GO) mod tidy -diff); \
	done
	$(GO) mod verify

deadcode: $(DEADCODE)
	@dead=$$($(DEADCODE) -test $(PACKAGES)); \
	[ -z "$$dead" ] || { echo "deadcode: no command and no test reaches:" >&2; echo "$$dead" >&2; exit 1; }

# What a release needs. All but platforms need the module proxy.
GOVULNCHECK_VERSION := v1.9.0
CYCLONEDX_VERSION   := v1.10.0
GOVULNCHECK := $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)
CYCLONEDX   := $(TOOLS)/cyclonedx-gomod-$(CYCLONEDX_VERSION)
# The platforms that docs/platforms.md promises.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/arm64 windows/amd64

deps: ## name direct dependencies that are older than 18 months, and fail if one has no reason
	@$(GO) run ./lab/supply deps $(MODULES)

vuln: $(GOVULNCHECK) ## look for known vulnerabilities, and fail if code calls one outside the standard library
	@$(GO) run ./lab/supply vuln $(GOVULNCHECK) $(MODULES)

release: $(CYCLONEDX) ## build binaries, source archive, bills of materials and checksums of the last commit in bin/release (VERSION=v0.1.0)
	@rm -rf bin/release
	@GO='$(GO)' CYCLONEDX=$(CYCLONEDX) PLATFORMS='$(PLATFORMS)' .ci/release '$(VERSION)' bin/release

release-check: $(CYCLONEDX) ## build a release twice, and fail if a file differs
	@GO='$(GO)' CYCLONEDX=$(CYCLONEDX) PLATFORMS='$(PLATFORMS)' .ci/release-check

platforms: ## build and vet all packages for each promised platform (PLATFORMS=os/arch)
	@GO='$(GO)' PLATFORMS='$(PLATFORMS)' .ci/platforms $(PACKAGES)

# install builds the command $(1) at the version $(2) and moves it to the target's name.
define install
	@echo "tools: building $(notdir $(1)) $(2)"
	@mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS)/new $(GO) install $(1)@$(2)
	@mv $(TOOLS)/new/$(notdir $(1)) $@
	@rmdir $(TOOLS)/new
endef

$(GOLANGCI):
	$(call install,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,$(GOLANGCI_VERSION))

$(GOFUMPT):
	$(call install,mvdan.cc/gofumpt,$(GOFUMPT_VERSION))

$(DEADCODE):
	$(call install,golang.org/x/tools/cmd/deadcode,$(DEADCODE_VERSION))

$(GOVULNCHECK):
	$(call install,golang.org/x/vuln/cmd/govulncheck,$(GOVULNCHECK_VERSION))

$(CYCLONEDX):
	$(call install,github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod,$(CYCLONEDX_VERSION))
