# The tasks of the vram repository. Needed: Go, gcc (for the race detector), git, make and bash.
# Developer tools are built from source at pinned versions into .bin, which git ignores.
#
# GOFLAGS, GOPROXY and the rest of Go's environment are taken as they come; checks add a flag to GOFLAGS.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go

# The folder of our own tools, and the module's path.
LAB    := lab
MODULE := github.com/go-vram/vram

# The modules that go.work names, and the packages of all of them: ./... alone leaves out the packages of the other modules.
MODULES  := $(shell sed -n 's/^\t\(\..*\)$$/\1/p' go.work)
PACKAGES := $(MODULES:%=%/...)
# Packages with long tests. The go command begins with those that are named first, so that no processor waits for one at the end.
LONGEST  := ./compute/kernel/attention ./internal/acceptance ./compute/ops ./compute/kernel/matmul ./examples/gpt/model ./cudadrv/dynamic ./cuda/sleep ./compute/ptx/interp ./internal/stream/magazine \
	./internal/pool/admission ./cuda ./compute/kernel/plan ./examples/digits
# Packages whose dependencies are as large as all of vram: a server of etcd, arrow and gonum, the protocol of Chromium. The short form tests,
# and compiles, those for which a file changed that matches their CONCERNS (make large); `make nightly` all.
LARGE            := fleet/etcd bridge/gorgonia $(LAB)/browser
CONCERNS         := go.work api/%
fleet/etcd_CONCERNS       := fleet/%
bridge/gorgonia_CONCERNS  := bridge/% compute/tensor/% cuda/%
$(LAB)/browser_CONCERNS   := $(LAB)/browser/% monitor/page/%
LARGE_CHANGED     = $(if $(CHANGED_SINCE),$(foreach large,$(LARGE),$(if $(filter $(CONCERNS) $($(large)_CONCERNS),$(CHANGED_FILES)),$(large))),$(LARGE))
# The others, as patterns of the go command.
USUAL            := $(filter-out $(LARGE:%=./%/...),$(PACKAGES))
# The product, the command and the examples, without the laboratory.
PRODUCT           = $(filter-out ./$(LAB)/%,$(if $(SHORT),$(USUAL),$(PACKAGES)))
# Packages that run actors: nightly tests them with the tag vram_builtin, which links our own framework instead of protoactor. Those with
# concurrent tests of the framework are short, and those of actors part of every check.
CONCURRENT_ACTORS := ./actors ./pool ./streams
ACTORS            := . $(CONCURRENT_ACTORS) ./$(LAB)/simulation

# The form of the tests: -short leaves out long plays, sweeps and documented outputs. `make nightly` empties it.
SHORT ?= -short
# Flags of all test runs. `make vet` vets, so tests do not; nobody debugs their programs, so they are linked without symbols.
# Some packages wait for processes and timers, so there is one more at a time than there are processors.
TESTFLAGS = $(SHORT) -vet=off -ldflags='-s -w' -timeout $(TIMEOUT) -p $$(($$(getconf _NPROCESSORS_ONLN) + 1))
# Short tests have small heaps, which the collector would go through every few milliseconds: a fifth of their processor time.
test test-lab large test-builtin-short race: export GOGC = $(if $(SHORT),400,100)
# The race detector holds up the end of each process for a second, so that goroutines which still run may race. Tests wait for theirs, and some
# run many processes: the short form holds them up for a moment.
CALLERS_GORACE := $(GORACE)
test-builtin-short race: export GORACE = $(strip $(if $(SHORT),atexit_sleep_ms=20) $(CALLERS_GORACE))
# How long the tests of one package may take. Only a hang takes all of it.
TIMEOUT ?= 45m

# Checks compile without DWARF, which nobody reads there: three quarters of the compiler's time. All go commands of a check have the same
# flags, also those that tests run, and so share the build cache. A release is built with the flags of its caller.
CALLERS_GOFLAGS := $(GOFLAGS)
test test-lab large test-builtin test-builtin-short yields race stress vet arch lint deadcode sim models planted planted-changed mutate programs exhaustive fuzz check nightly: \
	export GOFLAGS := $(strip $(GOFLAGS) -gcflags=all=-dwarf=false)
release release-check: export GOFLAGS := $(CALLERS_GOFLAGS)
# They test the form without cgo, which a machine without a C compiler builds, and link it without one: a third less work. The race detector
# needs cgo, and tests the other form.
test test-lab large test-builtin yields stress vet arch lint deadcode sim models planted planted-changed mutate programs exhaustive fuzz check nightly: \
	export CGO_ENABLED := 0
# Where tests keep the fakes of NVIDIA's libraries that they compile from C, for each other.
export VRAM_FAKES := $(CURDIR)/bin/fakes

# Which folders `make fuzz` fuzzes, and how long each target. Go before 1.27 now and then fails a target at the end of a time, with
# "context deadline exceeded": go.dev/issue/75804.
FUZZED   ?= .
FUZZTIME ?= 10s
# How often Go tries to shorten one input, which a new path in the code and a failure both cause: up to a minute without a bound.
MINIMIZETIME   ?= 60s

# git refuses to read a checkout of another user, such as a container's, unless the command says that it may.
GIT := git -c safe.directory='*'
# A number that every commit has, for searches that differ from commit to commit; the date where git knows no commit.
COMMIT_SEED = $(shell hash=$$($(GIT) rev-parse --short=8 HEAD 2>/dev/null) && printf '%d' "0x$$hash" || date +%Y%m%d)
# The commit with which `make check` compares: the one where the branch left origin/main, on main itself the one before; empty where
# neither is in the clone.
CHANGED_SINCE ?= $(shell base=$$($(GIT) merge-base HEAD origin/main 2>/dev/null) && [ "$$base" != "$$($(GIT) rev-parse HEAD)" ] && echo "$$base" || \
	$(GIT) rev-parse --quiet --verify HEAD~1 2>/dev/null || true)
# How long `make check` plants bugs.
PLANT_BUDGET ?= 30s
# How long `make programs` plays random programs of each kind, and from which seed.
PROGRAMS ?= 1m
# How many histories `make models` plays of each model; the short form plays a fifth. `make test` plays 20 from other seeds each time.
MODELS ?= 2500
CORES  := ./internal/pool/core ./internal/stream/core ./internal/heap
# How often `make stress` repeats the tests of each package, and of which packages.
STRESS_COUNT ?= 2
STRESS       ?= $(RACED)
# What `make bench-gpu` runs: scenarios, traces or all. Two calls of under eight minutes each, or one of both. kernels is a part by itself,
# of under four minutes.
PART     ?= all
# What `make bench` runs: benchmarks by name, and scenarios of `vram bench`.
BENCH    ?= .
SCENARIO ?= all
# What `make frontier` plays: files with traces; the embedded traces without any.
TRACES   ?= $(patsubst internal/trace/data/%.csv.gz,%,$(wildcard internal/trace/data/*.csv.gz))
# Which bugs `make planted` plants: those whose names contain it; all without it.
BUG      ?=
# What `make mutate` changes: MUTANTS of these packages, a sample that SEED gives, until MUTATE_BUDGET is over; all mutants if MUTANTS is 0.
PACKAGES_MUTATED ?= ./...
MUTANTS          ?= 200
MUTATE_BUDGET    ?= 1h
# What `make sim` plays: a second or so.
SEED  ?= 0
# One seed where it, or the number of steps, is named; else many.
SEEDS ?= $(if $(filter command line environment,$(origin SEED) $(origin STEPS)),1,100)
STEPS ?= 3000

GOLANGCI_SOURCE  := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
GOLANGCI_VERSION := v2.12.2
GOFUMPT_SOURCE   := mvdan.cc/gofumpt
GOFUMPT_VERSION  := v0.12.0
DEADCODE_VERSION := v0.52.0

# A tool's file name carries its version, so a new pin builds anew.
TOOLS    := $(CURDIR)/.bin
GOLANGCI := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
GOFUMPT  := $(TOOLS)/gofumpt-$(GOFUMPT_VERSION)
DEADCODE := $(TOOLS)/deadcode-$(DEADCODE_VERSION)

# The steps of `make check` share the build cache and the processors: one after the other, cheap ones first.
.NOTPARALLEL:

.PHONY: help demo fleet page download chromium browser test test-lab large test-builtin test-builtin-short yields race sim planted planted-changed mutate programs stress bench frontier soak soak-service \
	bench-gpu bench-gpu-carry test-gpu test-gpu-carry build-gorgonia test-gorgonia gorgonia-carry exhaustive fuzz models kernels lint check nightly \
	build clean vet arch tidy deadcode deps vuln release release-check platforms

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' Makefile

# ARGS are flags of the recorded pipeline: make demo ARGS='-steps 1000 -speed 4 -footprint lean -limit 12GB'. The programs are built and then
# run by themselves, so that an interrupt reaches them alone and their exit codes are seen.
demo: ## train with pipeline stages, on a GPU or without one: a recorded loop, some ten seconds, and a small GPT (ARGS=flags of the first)
	@$(GO) build -o bin/pipeline ./examples/pipeline
	@$(GO) build -o bin/gpt ./examples/gpt
	@bin/pipeline $(ARGS)
	@bin/gpt -demo

fleet: ## reserve memory for gangs across four processes, one of which is killed, on GPUs or without one (ARGS=flags)
	@$(GO) build -o bin/fleet ./examples/fleet
	@bin/fleet $(ARGS)

# ARGS are flags: make page ARGS='-trace gpt2_train -addr 127.0.0.1:8080'.
page: ## serve the live page over a demonstration, on a GPU or the simulated device (ARGS=flags)
	@$(GO) build -o bin/vram ./cmd/vram
	@bin/vram serve $(ARGS)

# The go command downloads what it would build.
download: ## download what make check builds and runs, and make test does not need
	@$(if $(filter $(LAB)/browser,$(LARGE_CHANGED)),$(LAB)/browser/install.sh)
	@$(GO) install -n $(GOLANGCI_SOURCE)@$(GOLANGCI_VERSION) >/dev/null 2>&1
	@$(GO) install -n $(GOFUMPT_SOURCE)@$(GOFUMPT_VERSION) >/dev/null 2>&1

chromium: ## install the browser that the tests of the live page need, where there is none
	@$(LAB)/browser/install.sh

browser: ## test the live page in a Chromium, which is installed where it is missing; with pictures in the folder pictures of its package
	@GO='$(GO)' $(LAB)/browser/run.sh

test: ## run the tests of the product, the command and the examples in their short form, in less than 3 minutes on two cores
	$(GO) test $(TESTFLAGS) $(LONGEST) $(PRODUCT)

# The tools of the laboratory that check uses, and a short soak. The others measure vram, GPUs and PyTorch, in tests against stand-ins: `make nightly` tests them.
CHECKING := $(LAB)/mutate $(LAB)/planted $(LAB)/simulation $(LAB)/soak

# The long form has the checks of turns that builds for the race detector have, and compiles everything again for them.
test-lab: ## run the tests of the laboratory that make race leaves out; in the short form only of the tools that make check uses
	$(GO) test $(if $(SHORT),,-tags invariants) $(TESTFLAGS) $(filter $(if $(SHORT),$(CHECKING:%=$(MODULE)/%),$(MODULE)/$(LAB)/%),$(UNRACED))

# Check runs the tests of the page in a browser: one that is missing is a failure there.
large: export VRAM_BROWSER := required
large: ## test the packages with large dependencies for which something changed since CHANGED_SINCE (all of them: CHANGED_SINCE=)
	@$(if $(filter $(LAB)/browser,$(LARGE_CHANGED)),$(LAB)/browser/install.sh)
	@large='$(LARGE_CHANGED:%=./%)'; \
	[ -n "$$large" ] || { echo "large: nothing changed for $(LARGE) since $(CHANGED_SINCE)"; exit 0; }; \
	$(GO) test $(TESTFLAGS) $$large

test-builtin-short:
	CGO_ENABLED=1 $(GO) test -race -tags vram_builtin $(TESTFLAGS) $(if $(SHORT),./actors,$(CONCURRENT_ACTORS))

test-builtin: test-builtin-short ## test the packages that run actors with the built-in framework (build tag vram_builtin), and that under the race detector
	$(GO) test -tags vram_builtin $(TESTFLAGS) $(ACTORS)

# Packages whose sources or tests have a line that starts a goroutine. In the others the race detector could see only the goroutines of what they
# call, which it sees in their own tests.
STARTS     := ^[[:space:]]*go [a-z(]|[.]Go[(]
CONCURRENT  = $(sort $(patsubst %/,%,$(dir $(shell grep -rlE --include='*.go' '$(STARTS)' .))))
# Tests that read sources, or build and run other programs: the race detector does not see those, and would only slow them.
FOREIGN := api lab/peers internal/archtest internal/fakecuda $(LAB)/planted $(LAB)/supply
# Packages that take long under the race detector, and programs, whose goroutines other packages test as well or run one at a time: `make nightly`
# runs all their tests there. The short form has their tests of goroutines.
SLOW_UNDER_RACE := cmd/vram compute/kernel/attention compute/kernel/elementary compute/kernel/matmul compute/ops compute/ptx/interp examples/digits examples/fleet examples/gpt \
	examples/gpt/model examples/kernels examples/pipeline examples/service
# Those of them that have such tests.
WITH_GOROUTINES  = $(sort $(dir $(shell grep -l '^func Test.*Goroutines' $(SLOW_UNDER_RACE:%=./%/*_test.go))))
# Tests of one goroutine in the other packages that take seconds there: by night, too.
SLOW_TESTS := TestRecordedProgramsPlay TestFiguresOfRandomPrograms TestTheListOfFiguresIsWhole TestALoopWithPausesKeepsItsMemory TestMemoryOfASpikeIsReleased \
	TestEachCallOfAMeasurementFails TestProgramsDoWhatTheirWorkDoes TestProgramsOfReadersAndWritersAreInOrder \
	TestTheWantedSizeOfAnArgument TestConformanceOfLesser TestConformanceOfALesser TestManyRecordedBuffersShareFences TestSamplesEstimate TestSlackEnds \
	TestUsesFollowTheirBooks TestTheBoundBetweenItsSteps TestBlocksAreAsRequested TestSamplesBetweenTicksAreBounded TestConformanceOnTheFake \
	TestAFailedCallLeavesNothing TestNothingLeaksWhereACallFails TestCopiesOfParts TestAModelOnALibrary \
	TestABatchIsWhatWasAskedFor TestReductionsRun TestTheBooksOfEachAllocator TestContentsComeBack TestReplacedArgumentsLeaveEachKernel
# Check runs LARGE without the detector's code.
WITHOUT_RACE     = $(FOREIGN) $(if $(SHORT),$(SLOW_UNDER_RACE) $(LARGE))
# Packages with long tests under the race detector, besides LONGEST.
LONGEST_RACED   := ./streams ./compute/kernel ./fleet
# The laboratory measures and plays what the product's packages test: `make nightly` runs it under the detector, too.
RACED            = $(filter-out $(WITHOUT_RACE:%=$(MODULE)/%) $(if $(SHORT),$(MODULE)/$(LAB)/%),$(filter $(CONCURRENT:.%=$(MODULE)%),$(shell $(GO) list $(LONGEST) $(LONGEST_RACED) $(PACKAGES))))
UNRACED          = $(filter-out $(RACED),$(shell $(GO) list $(PACKAGES)))

# Packages that only compute for one caller at a time, most of the work of the tests above them: check leaves them without the detector's code,
# which makes them ten times slower. They have no atomic operation that would order what others do. Nightly compiles all with it.
COMPUTING := compute/ptx compute/ptx/interp compute/kernel/plan compute/tensor/internal/reference
RACEFLAGS = -race $(if $(SHORT),$(COMPUTING:%=-gcflags='$(MODULE)/%=-race=false -dwarf=false'))

# The source with yields before and after uses of atomic variables and locks: goroutines then meet in the middle of each other's operations, which they
# rarely do on two processors.
YIELDS := $(CURDIR)/bin/yields
yields:
	@$(GO) run ./$(LAB)/mutate/yields -into $(YIELDS) ./... ./fleet/... >/dev/null
race stress: TESTFLAGS += -overlay $(YIELDS)/overlay.json

# Tests of goroutines that meet. The short form runs all tests of RACED without yields, and then these with them, from one build.
MEETING := Goroutines|Among|Meet

race: yields ## run the tests of the product's packages that have goroutines under the race detector, those of goroutines that meet with yields, in their short form
	$(if $(SHORT),VRAM_YIELDS=off) CGO_ENABLED=1 $(GO) test $(RACEFLAGS) $(TESTFLAGS) $(if $(SHORT),-skip '$(shell echo '$(SLOW_TESTS)' | tr ' ' '|')') $(RACED)
	$(if $(SHORT),CGO_ENABLED=1 $(GO) test $(RACEFLAGS) $(TESTFLAGS) -run '$(MEETING)' $(RACED) $(WITH_GOROUTINES))

# Twice as many packages at a time as there are processors, each stopped at random, so that goroutines stop in unusual places.
stress: yields ## repeat the tests with goroutines STRESS_COUNT times with one, two and four threads, with yields, under load and stopped at random (STRESS=packages)
	$(GO) test $(TESTFLAGS) -exec '$(CURDIR)/$(LAB)/stress/halting.sh' -count=$(STRESS_COUNT) -cpu 1,2,4 -p $$((2 * $$(getconf _NPROCESSORS_ONLN))) $(STRESS)

exhaustive: ## walk every state of the models of magazines, and a million of each small fleet; make test walks a part
	$(GO) test -count=1 -tags exhaustive -run '^TestEvery' -timeout $(TIMEOUT) ./internal/stream/magazine ./fleet/core

programs: ## play random programs of tensors, streams and operations for PROGRAMS each, from SEED on
	VRAM_PROGRAMS=$(PROGRAMS) VRAM_SEED=$(SEED) $(GO) test -count=1 -timeout $(TIMEOUT) ./cuda ./compute/ops ./compute/tensor

sim: ## play the whole allocator from seeds (SEED=first SEEDS=count STEPS=each); a failure prints its shortest history
	@$(GO) run ./cmd/vram sim -seed $(SEED) -seeds $(SEEDS) -steps $(STEPS)

# Not in parallel with other steps: tests that run out of time find nothing.
planted: ## plant every bug of the list, half an hour, and print which test found it (BUG=part of a name)
	@$(GO) run ./$(LAB)/planted/table -bug '$(BUG)'

planted-changed: ## plant bugs of packages that changed since CHANGED_SINCE, of all without one, for PLANT_BUDGET
	@echo "planted-changed: packages that changed since $(or $(CHANGED_SINCE),the beginning)"
	@$(GO) run ./$(LAB)/planted/table -since '$(CHANGED_SINCE)' -budget $(PLANT_BUDGET) -seed $(COMMIT_SEED)

mutate: ## change the source in small ways, and print the changes that no test notices (PACKAGES_MUTATED=packages MUTANTS=count SEED=sample ARGS=flags)
	@nice $(GO) run ./$(LAB)/mutate/table -packages '$(PACKAGES_MUTATED)' -sample $(MUTANTS) -seed $(SEED) -budget $(MUTATE_BUDGET) $(ARGS)

bench: ## run the Go benchmarks (BENCH=regexp) and vram bench (SCENARIO=name)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem $(PACKAGES)
	$(GO) run ./cmd/vram bench -scenario $(SCENARIO)

# A trace and mode takes a second or so, most of it for the limits.
frontier: ## play traces in each footprint mode: memory against time, and the least limits (TRACES=files)
	@for mode in fast balanced lean; do $(GO) run ./cmd/vram replay -driver sim -min-capacity -footprint $$mode $(TRACES); done

soak: ## allocate and free ten million times on eight streams, under a hard limit of 1.10 times what lives at most
	@$(GO) test ./$(LAB)/soak -count=1 -run TestSoak -timeout 0 -v -ops 10000000
soak-service: ## open and close streams, tenants, tags and graphs for ten minutes: neither heap nor goroutines grow
	@$(GO) test ./$(LAB)/soak -count=1 -run TestService -timeout 0 -v -service 10m

bench-gpu: ## run vram and its peers in turns on a GPU, and print tables (PART=scenarios|traces|all|kernels)
	@lab/peers/run.sh $(PART)

# A machine with a GPU may have no Go: what bench-gpu needs there fits in one folder that git ignores.
bench-gpu-carry: ## put the command for a machine with a GPU and without Go at .dev/vram
	CGO_ENABLED=0 GOOS=linux GOARCH=amd64 $(GO) build -trimpath -ldflags '-s -w' -o .dev/vram ./cmd/vram

# The binary needs no file beside it: bin/dynamic.test can be carried to a machine with a GPU and run there.
test-gpu: ## run the driver's tests on the GPU of this machine
	CGO_ENABLED=0 $(GO) test -c -tags gpu -o bin/dynamic.test ./cudadrv/dynamic
	bin/dynamic.test -test.v -test.run Hardware -test.bench Hardware

# Each of these runs from any folder, with no file next to it: .dev/dynamic.test and .dev/bytecheck.test (three minutes) with -test.run
# Hardware, the others whole.
# Their symbols stay behind: that is a third of what is carried.
CARRIED := dynamic:./cudadrv/dynamic answers:./internal/fakecuda bytecheck:./$(LAB)/bytecheck sleep:./cuda/sleep matmul:./compute/kernel/matmul attention:./compute/kernel/attention kernel:./compute/kernel elementary:./compute/kernel/elementary

test-gpu-carry: ## put the tests for a machine with a GPU and without Go into .dev
	@for item in $(CARRIED); do \
		echo "test-gpu-carry: .dev/$${item%%:*}.test"; \
		CGO_ENABLED=0 GOOS=linux GOARCH=amd64 $(GO) test -c -tags gpu -ldflags '-s -w' -o ".dev/$${item%%:*}.test" "$${item#*:}"; \
	done

# What is built with the tag gorgonia, and what it is tested on without a GPU.
GORGONIA := ./cudadrv/gorgonia ./examples/gorgonia ./examples/port/old ./cmd/vram
TOOLKIT  := cudadrv/gorgonia/toolkit.sh
FAKE     := $(CURDIR)/bin/fakecuda

build-gorgonia: ## compile the driver through gorgonia.org/cu, its example and the command with it (CUDA_HOME=toolkit)
	$(TOOLKIT) $(GO) build -tags gorgonia -o bin/gorgonia/ $(GORGONIA)

test-gorgonia: ## test the driver through gorgonia.org/cu on the fake library
	@$(GO) run ./internal/fakecuda/make $(FAKE)
	@if [ ! -e $(FAKE)/libcuda.so.1 ]; then echo "test-gorgonia: skipped"; exit 0; fi; \
	$(TOOLKIT) -fake $(FAKE) $(GO) vet -tags gorgonia $(GORGONIA); \
	$(TOOLKIT) -fake $(FAKE) $(GO) test -count=1 -race -tags gorgonia ./cudadrv/gorgonia ./examples/gorgonia ./examples/port/old; \
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

fuzz: ## run each fuzz target of FUZZED for FUZZTIME
	@targets=$$(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' $(FUZZED) | sort); \
	[ -n "$$targets" ] || { echo "fuzz: no fuzz target found" >&2; exit 1; }; \
	while IFS=: read -r file name; do \
		name=$${name#func }; \
		echo "fuzz: $$(dirname "$$file") $$name for $(FUZZTIME)"; \
		$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime '$(FUZZTIME)' -fuzzminimizetime '$(MINIMIZETIME)' "./$$(dirname "$$file")" </dev/null; \
	done <<<"$$targets"

models: ## play MODELS histories of each model of the cores, from SEED on
	$(GO) test $(TESTFLAGS) $(CORES) -rapid.checks=$(MODELS) -rapid.seed=$(SEED)

# The sum of the source is the first line of each text: a test compares it.
DECODING := examples/gpt/model/kernels
define decoding
	@{ echo "// decode.cu $$(sha256sum < $(DECODING)/decode.cu | cut -c1-64)"; \
	clang-19 -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib -O3 -S -std=c++17 -Xclang -target-feature -Xclang +ptx70 -Wall \
		-Wno-unused-function -DBITS=$(2) $(DECODING)/decode.cu -o - | sed -e 's,//.*,,' -e 's/[[:space:]]*$$//' -e '/^$$/d'; } > $(DECODING)/decode_$(1).ptx

endef

kernels: ## compile the CUDA C++ of compute/kernel/matmul, attention and examples/gpt/model to PTX again: clang-19
	$(GO) run ./compute/kernel/matmul/compile
	$(GO) run ./compute/kernel/attention/compile
	$(foreach type,bfloat16=16 float32=32,$(call decoding,$(word 1,$(subst =, ,$(type))),$(word 2,$(subst =, ,$(type)))))

# The files that changed since CHANGED_SINCE, and are not committed yet.
CHANGED_FILES = $(shell $(GIT) diff --name-only $(CHANGED_SINCE) && $(GIT) ls-files --others --exclude-standard)
# What decides how all packages are linted.
LINT_CONFIG  := .golangci.yml Makefile go.work
# The packages that are linted: in the short form those with changed files, since another has no other findings than before. All where git knows no
# commit to compare with; there without LARGE, since facts of what these import take a quarter of the time. `make nightly` lints all.
LINTABLE      = $(shell $(GO) list $(PACKAGES) | grep -vxF $(LARGE:%=-e $(MODULE)/%) | sed 's,^$(MODULE),.,')
LINTED        = $(if $(SHORT),$(if $(CHANGED_SINCE),$(if $(filter $(LINT_CONFIG),$(CHANGED_FILES)),$(LINTABLE),$(filter $(patsubst ././,.,$(patsubst %/,%,$(addprefix ./,$(dir $(filter %.go,$(CHANGED_FILES)))))),$(LINTABLE))),$(LINTABLE)),$(PACKAGES))

# With the analyzers of go vet. A lazy collector saves a tenth of the time.
lint: export GOGC = 200
lint: $(GOFUMPT) ## run golangci-lint, with go vet's analyzers, on packages that changed since CHANGED_SINCE (on all: CHANGED_SINCE=), and look for files that gofumpt would change
	@files=$$($(GOFUMPT) -l .); \
	[ -z "$$files" ] || { echo "lint: gofumpt would change:" >&2; echo "$$files" >&2; exit 1; }
	@$(if $(CHANGED_SINCE),$(GIT) cat-file -e '$(CHANGED_SINCE)^{commit}')
	@linted='$(strip $(LINTED))'; \
	[ -n "$$linted" ] || { echo "lint: no package changed since $(CHANGED_SINCE)"; exit 0; }; \
	$(MAKE) --no-print-directory $(GOLANGCI); \
	export GOLANGCI_LINT_CACHE=$(CURDIR)/.bin/lint-cache; \
	echo "lint: $$linted"; \
	$(GOLANGCI) run --allow-parallel-runners $$linted; \
	case " $$linted " in *" ./actors "* | *" ./... "*) $(GOLANGCI) run --allow-parallel-runners --build-tags vram_builtin ./actors;; esac

# What a change must pass, besides `make test`: nothing that `make test` has run. With all compiling it took 5 to 9 minutes on two cores.
check: SEED = $(COMMIT_SEED)
check: SEEDS := 100
check: build arch tidy lint race test-lab large test-builtin-short sim models planted-changed ## everything a change must pass besides make test: build, layers, module files, lint, race, the laboratory, packages with large dependencies such as a browser, the built-in framework, a short simulation, models of the cores and planted bugs by the commit
	@echo "check: passed"

# The long forms, from seeds of the day. It takes hours, and finds what a search finds.
nightly: SHORT :=
nightly: SEED = $(shell date +%Y%m%d)
nightly: SEEDS := 1000
nightly: STEPS := 10000
nightly: FUZZTIME := 2m
nightly: MODELS := 20000
nightly: vet lint deadcode test race test-lab test-builtin test-gorgonia exhaustive sim models programs planted mutate fuzz stress soak soak-service deps vuln release-check platforms ## for each night, hours: vet, all linters and dead code, all tests in their long form, also under race and with the built-in framework, gorgonia, every model state, 10^7 steps of simulation, models of the cores and random programs by the date, every planted bug, 200 mutants by the date, fuzz of 2 minutes a target, stress, both soaks, dependencies, vulnerabilities, a release built twice, all platforms
	@echo "nightly: passed"

# go list -export compiles as go build does, and links no program but the command: tests link most others, and platforms all.
build: ## compile every package, in checks without those that make large leaves out, and put the command at bin/vram
	$(GO) list -export $(if $(SHORT),$(USUAL),$(PACKAGES)) >/dev/null
	$(GO) build -o bin/vram ./cmd/vram

clean: ## remove what the targets built; tools in .bin stay
	rm -rf bin
	find . -name '*.test' -type f -delete

# With the tag, the packages that have files for it: the others are the same.
WITH_BUILTIN = $(shell grep -rl --include='*.go' 'go:build.*vram_builtin' . | xargs -n 1 dirname | sort -u)
vet:
	$(GO) vet $(PACKAGES)
	$(GO) vet -tags vram_builtin $(WITH_BUILTIN)

# With the flags of `make test`, whose answer it finds in the cache.
arch:
	$(GO) test $(TESTFLAGS) ./internal/archtest

# A module is tidied by itself, as go.work did not exist; in the short form not those that large leaves out.
tidy:
	@for module in $(if $(SHORT),$(filter-out $(filter-out $(LARGE_CHANGED:%=./%),$(LARGE:%=./%)),$(MODULES)),$(MODULES)); do \
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

# install builds the command $(1) at the version $(2), a tenth faster with a lazy collector, and moves it to the target's name.
define install
	@echo "tools: building $(notdir $(1)) $(2)"
	@mkdir -p $(TOOLS)
	@GOGC=400 GOBIN=$(TOOLS)/new $(GO) install $(1)@$(2)
	@mv $(TOOLS)/new/$(notdir $(1)) $@
	@rmdir $(TOOLS)/new
endef

$(GOLANGCI):
	$(call install,$(GOLANGCI_SOURCE),$(GOLANGCI_VERSION))

$(GOFUMPT):
	$(call install,$(GOFUMPT_SOURCE),$(GOFUMPT_VERSION))

$(DEADCODE):
	$(call install,golang.org/x/tools/cmd/deadcode,$(DEADCODE_VERSION))

$(GOVULNCHECK):
	$(call install,golang.org/x/vuln/cmd/govulncheck,$(GOVULNCHECK_VERSION))

$(CYCLONEDX):
	$(call install,github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod,$(CYCLONEDX_VERSION))
