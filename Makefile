# make            lists the targets
# make check      everything quick, before a commit
# .ci/run         everything, as on a clean machine

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The real agent CLIs that some tests drive; installed by make agent-cli.
AGENT_CLIS := @anthropic-ai/claude-code@2.1.330 @openai/codex@0.169.0 @google/gemini-cli@0.61.0 opencode-ai@1.18.33
# What looks at the console's pages in the place of people who do not see them, or use no mouse; installed with those.
AXE := axe-core@4.14.1
CLAUDE_BIN := $(CURDIR)/.tools/node_modules/.bin/claude

# Where make vuln looks for known vulnerabilities; also file:///path.
GOVULNDB ?= https://vuln.go.dev
# The commit that make proto-breaking compares with.
BASE ?= HEAD~1

# The base of the images that run git and commands: an OCI archive, or NAME@sha256:DIGEST.
IMAGE_BASE ?= bin/images/base.tar

# A script that brings a cluster up, loads an image archive into it, and takes it down; where KUBECONFIG
# and K8S_LOAD name no other one.
FORGE_CLUSTER ?= $(wildcard ../shared/k8s/cluster)

# A script that starts a Gitea, with the module beside it that the program is built of; .ci/gitea says what it has to do.
GITEA ?= $(wildcard ../shared/gitea/gitea-up.sh)

# The tests that make k8s-test runs, and for how long at most.
K8S_RUN ?= TestCluster
K8S_TIMEOUT ?= 30m

# How long make fuzz fuzzes each target, and which: a part of package:target; empty for all.
export FUZZTIME ?= 20s
export FUZZ ?=

# Which faults make chaos makes, a pattern; with how many intents under way, for how long, and how often one after the other.
FAULTS ?=
FAULT_INTENTS ?= 200
FAULT_TIME ?= 10s
FAULT_ROUNDS ?= 1

# The simulator, and how many runs of it make sim and make test-sim play.
SIM := services/runner/sim
SEEDS ?= 100000
FIRST ?= 1

TOOLS := $(CURDIR)/bin/tools
export PATH := $(TOOLS):$(dir $(CLAUDE_BIN)):$(PATH)

# The packages whose tests have two sizes, and those of the agents' back ends. The alerts are no part of the
# workspace; make test-alerts runs them, and make test-sim the simulator.
LONG = $(shell git grep -lE 'pfl-forge/(internal/testsize|agent/agenttest/conformance)"' -- '*_test.go' ':!deploy/monitoring' ':!$(SIM)' | xargs -n1 dirname | sort -u | sed 's,^,./,')
CONFORMANCE = $(shell git grep -l 'agenttest/conformance"' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's,^,./,')

# The packages whose tests know a real Gitea.
GITEA_TESTS ?= $(shell git grep -l PFL_FORGE_GITEA -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's,^,./,')

WHOLE := cmd/pfl-forge/internal/outside

# The packages whose tests compare files with the code, and write them with a flag: -rewrite, or for prompts -update. The
# manifests have a build tag, and of the tests of whole programs only one writes. The journals of the simulator are history: they are written once for each version of the rules.
REWRITES = $(shell git grep -lE 'flag\.Bool."rewrite"|cockroachdb/datadriven"$$' -- '*_test.go' ':!deploy/k8s' ':!$(SIM)' ':!$(WHOLE)' | xargs -n1 dirname | sort -u | sed 's,^,./,')
PROMPTS = $(shell git grep -l 'prompttest\.Golden' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's,^,./,')

# The race detector is C, whatever the environment says.
RACE := CGO_ENABLED=1 go test -race

# report tests packages in full, with every agent CLI there, and counts: flags, packages.
define report
@$(MAKE) agent-cli browser
@go build -o bin/testreport ./internal/testreport
$(FULL) $(RACE) -count=1 -timeout 40m -json $(1) $(2) | bin/testreport
endef

# long does so for packages that take long. That of the command line starts it a thousand times, and with the race detector it takes
# four times as long to start; those from end to end start what is shipped, without it. make test has both with it.
define long
@$(MAKE) agent-cli browser
@go build -o bin/testreport ./internal/testreport
$(FULL) RACELESS="./cmd/pfl-forge ./cmd/pfl-forge/internal/e2e" .ci/long $(1) | bin/testreport
endef
FULL = CI=true PFL_FORGE_TEST=full PFL_FORGE_CLAUDE=$(CLAUDE_BIN)

MODULES = $(shell go list -m -f '{{.Dir}}')
# Modules that are not in the workspace: they require newer versions of what others require.
ALONE = tools deploy/monitoring
MAINS = cmd/pfl-forge $(wildcard services/*/cmd/*)
GO_FILES = git ls-files -co --exclude-standard -- '*.go' ':!:*.pb.go' ':!:**/testdata/**'

##@ Build and run

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build pfl-forge, the six services and the nats-server that is tested with them into bin/
	@for dir in $(MAINS); do \
	  case $$dir in cmd/*) name=$${dir##*/} ;; *) name=forge-$${dir##*/} ;; esac; \
	  echo "bin/$$name"; go build -o bin/$$name ./$$dir; \
	done
	@echo bin/nats-server; go build -o bin/nats-server github.com/nats-io/nats-server/v2

.PHONY: demo
demo: ## run the whole pipeline on a small repository made for it
	go run ./cmd/pfl-forge demo

.PHONY: images
images: $(filter bin/images/base.tar,$(IMAGE_BASE)) ## write the container images into bin/images, as OCI archives on IMAGE_BASE
	@go run ./deploy/images -base $(IMAGE_BASE) -o bin/images

bin/images/base.tar: deploy/images/base deploy/images/base.lock
	deploy/images/base $@

.PHONY: clean
clean: ## remove what was built, the tools included
	rm -rf bin .tools

##@ Test

# With the race detector each of the 200 test programs would sleep for a second at its end.
.PHONY: test
test: ## test all modules with the race detector, in the quick size
	GORACE=atexit_sleep_ms=0 $(RACE) work

.PHONY: test-all
test-all: test-short test-sim test-long ## everything in full, with counts; a skipped test is a failure

.PHONY: test-short
test-short: ## the packages whose tests have one size, uncached
	@mkdir -p bin && go list $(LONG) ./$(SIM) > bin/long.txt
	$(call report,,$$(go list work | grep -vxFf bin/long.txt))

.PHONY: test-long
test-long: ## the packages whose tests have two sizes, in full, one after the other: kills, faults, seeds, agents, end to end
	$(call long,$(LONG))

.PHONY: test-sim
test-sim: ## the simulator: in the quick size with the race detector; in full, with SEEDS runs and every planted bug, without it
	@go build -o bin/testreport ./internal/testreport
	$(RACE) -count=1 ./$(SIM)
	CI=true PFL_FORGE_TEST=full go test -count=1 -timeout 40m -json ./$(SIM) -seeds $(SEEDS) | bin/testreport

.PHONY: test-kill
test-kill: ## of them, what is killed, cut off or damaged
	$(call report,-run 'Kill|Saved|Damage|Died|Stopped|Outage|Restart',$(LONG))

.PHONY: chaos
chaos: ## FAULTS (all) one after the other, each with FAULT_INTENTS under way for FAULT_TIME; docs/reliability.md explains the lines
	PFL_FORGE_TEST=full go test -count=1 -timeout 90m -v -run '^TestFaults$$/$(FAULTS)' ./cmd/pfl-forge/internal/e2e -fault.intents $(FAULT_INTENTS) -fault.time $(FAULT_TIME) -fault.rounds $(FAULT_ROUNDS) | grep --line-buffered -E '^( *---|FAIL|ok|PASS|panic)| \| '

.PHONY: test-conformance
test-conformance: ## of them, what every agent back end has to do with its real CLI
	$(call report,-run Conformance,$(CONFORMANCE))

.PHONY: test-e2e
test-e2e: ## of them, the built programs from end to end
	$(call long,./cmd/pfl-forge/internal/e2e)

.PHONY: test-gitea
test-gitea: ## the packages whose tests know a real Gitea, in full on one that GITEA starts, a script; built once, in seven minutes
	@.ci/gitea "$(GITEA)"
	@$(MAKE) agent-cli browser
	@go build -o bin/testreport ./internal/testreport
	@.ci/gitea "$(GITEA)" env $(FULL) RACELESS="./cmd/pfl-forge/internal/e2e" .ci/long $(GITEA_TESTS) | bin/testreport

.PHONY: test-alerts
test-alerts: ## the alerts and the dashboard, with Prometheus' own engine on what the services of a real run show
	@go build -o bin/testreport ./internal/testreport
	GOWORK=off CI=true PFL_FORGE_TEST=full go -C deploy/monitoring test -count=1 -timeout 15m -json ./... | bin/testreport

.PHONY: test-manifests
test-manifests: ## render the manifests of deploy/k8s and check them, without a cluster
	@go build -o bin/testreport ./internal/testreport
	go test -tags manifests -count=1 -json ./deploy/k8s | bin/testreport

.PHONY: k8s-test
k8s-test: agent-cli browser $(filter bin/images/base.tar,$(IMAGE_BASE)) ## install the last commit on a cluster, and take away from it; docs/guide-kubernetes.md says which
	@go build -o bin/testreport ./internal/testreport
	@export FORGE_CLUSTER_HOME=$${FORGE_CLUSTER_HOME:-$$HOME/.cache/forge-cluster} FORGE_CLUSTER=$(if $(KUBECONFIG)$(K8S_LOAD),,$(FORGE_CLUSTER)) \
	  IMAGE_BASE=$(IMAGE_BASE) CI=true PFL_FORGE_CLAUDE=$(CLAUDE_BIN) K8S_PROGRAMS=$(CURDIR)/bin K8S_FIGURES=$(CURDIR)/bin/k8s-figures.txt; \
	rm -f "$$K8S_FIGURES"; \
	! echo TestClusterKEDA | grep -qE '$(K8S_RUN)' || $(MAKE) keda || exit 1; \
	if [ -n "$$FORGE_CLUSTER" ] && ! "$$FORGE_CLUSTER" kubeconfig >/dev/null 2>&1; then \
	  trap '"$$FORGE_CLUSTER" down' EXIT; "$$FORGE_CLUSTER" up; \
	fi; \
	go test -tags cluster -count=1 -timeout $(K8S_TIMEOUT) -json -run '$(K8S_RUN)' ./deploy/k8s | bin/testreport && failed=0 || failed=1; \
	[ ! -e "$$K8S_FIGURES" ] || cat "$$K8S_FIGURES"; exit $$failed

.PHONY: keda
keda: bin/keda ## compile KEDA for k8s-test: ten minutes on two cores, once

# It is linked before the tests begin: each of its programs takes a minute and gigabytes of memory for that.
KEDA = github.com/kedacore/keda/v2
bin/keda: deploy/keda/go.mod deploy/keda/go.sum
	@mkdir -p $@.new
	GOWORK=off CGO_ENABLED=0 go -C deploy/keda build -trimpath -o $(CURDIR)/$@.new/ \
	  -ldflags='-s -w -X=$(KEDA)/version.Version=$(shell sed -n 's,.*$(KEDA) v\([^ ]*\).*,\1,p' deploy/keda/go.mod)' tool
	@rm -rf $@ && mv $@.new $@ && touch $@

.PHONY: test-containers
test-containers: $(filter bin/images/base.tar,$(IMAGE_BASE)) ## test the last commit's images, and NATS servers killed and upgraded under them; on Docker, or as root with dockerd
	deploy/containers/prepare $(IMAGE_BASE) bin/containers
	@go build -o bin/testreport ./internal/testreport
	FORGE_CONTAINERS=$(CURDIR)/bin/containers go test -exec $(CURDIR)/deploy/containers/docker -tags containers -count=1 -timeout 15m -json ./deploy/containers | bin/testreport

.PHONY: sim
sim: ## play SEEDS runs of the rules in a world full of faults, from the FIRST (1) on
	go test -count=1 -timeout 40m ./$(SIM) -run TestSeeds -seeds $(SEEDS) -first $(FIRST)

.PHONY: fuzz
fuzz: ## fuzz every decoder that outsiders reach for FUZZTIME each (20s); FUZZ=part of a name runs some
	@.ci/fuzz

.PHONY: bench
bench: ## what the speed of the project is judged by, a few minutes; docs/performance.md explains the lines
	@set -x; \
	go test -run '^$$' -bench . ./services/runner/flow; \
	go test -run '^$$' -bench Orchestration -benchtime 5x ./services/runner; \
	go test -run '^$$' -bench Tree -benchtime 1x ./services/runner; \
	go test -run '^$$' -bench Rebase -benchtime 20x ./git; \
	go test -run '^$$' -bench WarmCheckout -benchtime 5x ./git; \
	go test -run '^$$' -bench . -benchtime 200x ./bus/... ./natsd; \
	go test -run '^$$' -bench Delivery -benchtime 2000x ./services/gateway/hooks; \
	go test -run '^$$' -bench Overhead -benchtime 15x ./agent/claude; \
	go test -run '^$$' -bench 'Status$$|Start' -benchtime 20x ./cmd/pfl-forge; \
	go test -run '^$$' -bench Board -benchtime 200x ./cmd/pfl-forge/internal/outside; \
	go test -run '^$$' -bench . -benchtime 1x ./cmd/pfl-forge/internal/e2e

##@ Check

.PHONY: check
check: fmt-check vet lint walls tidy-check generate-check ## all quick checks

.PHONY: fmt-check
fmt-check: tools ## list files that make fmt would change
	@unformatted=$$($(GO_FILES) | xargs -r gofumpt -l); \
	[ -z "$$unformatted" ] || { echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; }
	buf format --diff --exit-code

.PHONY: vet
vet: ## go vet all modules
	go vet -tags cluster,containers,manifests work
	GOWORK=off go -C deploy/monitoring vet ./...

.PHONY: lint
lint: tools ## golangci-lint all modules, buf lint the protocol
	golangci-lint config verify
	golangci-lint run $(addsuffix /...,$(MODULES))
	cd deploy/monitoring && GOWORK=off golangci-lint run ./...
	buf lint

.PHONY: walls
walls: ## check who imports whom, and the length of files
	go test ./internal/imports

.PHONY: tidy-check
tidy-check: ## list modules that make tidy would change
	@failed=0; for dir in $(MODULES); do go -C $$dir mod tidy -diff || failed=1; done; \
	for dir in $(ALONE); do GOWORK=off go -C $$dir mod tidy -diff || failed=1; done; \
	[ $$failed = 0 ] || { echo "not tidy, run make tidy"; exit 1; }

.PHONY: generate-check
generate-check: tools ## compare the generated code with the .proto files
	@.ci/generated

.PHONY: proto-breaking
proto-breaking: tools ## compare the protocol with the one of BASE (default HEAD~1)
	@.ci/breaking $(BASE)

.PHONY: vuln
vuln: tools ## verify the modules' checksums, look for known vulnerabilities
	@GOVULNDB=$(GOVULNDB) .ci/vulnerabilities

##@ Change

.PHONY: fmt
fmt: tools ## format Go and .proto files
	$(GO_FILES) | xargs -r gofumpt -w
	buf format -w

.PHONY: generate
generate: tools ## write the Go code of the .proto files
	buf build --output /dev/null
	find proto -name '*.pb.go' -delete
	buf generate

.PHONY: rewrite
rewrite: ## write the files that tests compare with the code: scripts of the rules, prompts, schemas, tables in documents, manifests; read the diff
	go test -count=1 $(REWRITES) -rewrite
	go test -count=1 ./$(WHOLE) -run TestOpenAPI -rewrite
	go test -count=1 $(PROMPTS) -run 'Prompt|Args|WhatReaches|OfTheAuthor' -update
	go test -count=1 -tags manifests ./deploy/k8s -run TestGolden -rewrite

.PHONY: tidy
tidy: ## go mod tidy every module
	for dir in $(MODULES); do go -C $$dir mod tidy; done
	for dir in $(ALONE); do GOWORK=off go -C $$dir mod tidy; done

##@ Set up

.PHONY: tools
tools: bin/tools/.built ## build the tools that tools/go.mod pins into bin/tools

bin/tools/.built: tools/go.mod tools/go.sum
	@mkdir -p $(TOOLS)
	GOWORK=off GOBIN=$(TOOLS) go -C tools install tool
	@touch $@

.PHONY: browser
browser: ## install Debian's Chromium, which the tests of the console drive; PFL_FORGE_CHROMIUM names another one
	@[ -x "$${PFL_FORGE_CHROMIUM:-/usr/bin/chromium}" ] || { \
	  [ "$$(id -u)" = 0 ] || { echo "there is no Chromium: install the package chromium, or name one in PFL_FORGE_CHROMIUM"; exit 1; }; \
	  apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium; }

.PHONY: screenshots
screenshots: browser ## take the pictures of the console anew, into docs/images; look at each
	@mkdir -p docs/images
	PFL_FORGE_TEST=full PFL_FORGE_SCREENSHOTS=$(CURDIR)/docs/images go test -count=1 ./cmd/pfl-forge/internal/outside -run 'Test(Console|Demo).*InChromium'

.PHONY: agent-cli
agent-cli: ## install the agent CLIs that the tests drive, and axe-core, into .tools
	@[ "$$(cat .tools/.installed 2>/dev/null)" = "$(AGENT_CLIS) $(AXE)" ] || { \
	  npm install --prefix .tools --no-save --no-audit --no-fund --loglevel=error $(AGENT_CLIS) $(AXE) && \
	  echo "$(AGENT_CLIS) $(AXE)" > .tools/.installed; }
