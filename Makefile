# Needs python3 (3.11 or newer), git and make. `make help` lists the targets.

PYTHON ?= python3
VENV ?= .venv
ARGS ?=

BIN := $(VENV)/bin
# uv does in seconds what takes pip minutes.
UV := $(shell command -v uv 2>/dev/null)
ifdef UV
INSTALL := $(UV) pip install --quiet --python $(BIN)/python
else
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
endif
PEERS := .venv-peers
ALIPAI := .venv-alipai
UPSTREAM := bench/upstream
CLIENTS := tests/clients
NNI := .venv-nni
NODE_MODULES := $(UPSTREAM)/node_modules/.installed $(CLIENTS)/node_modules/.installed
SOURCES := $(shell find src -name '*.py')
# The unit tests that reach every branch of what drivers decide; [tool.coverage] in pyproject.toml names the modules.
DECISIONS := $(foreach each,attempt_machine claims completion retry run_machine settling,tests/unit/lifecycle/test_$(each).py) \
    $(foreach each,driver recover settle,tests/unit/userruns/test_$(each).py) \
    $(foreach each,dispatcher dispatcher_decisions,tests/unit/jobserver/test_$(each).py)
# After `make test` the package is installed in place, and changes to it need no new installation.
INSTALLED := $(or $(wildcard $(VENV)/.installed-dev),$(VENV)/.installed)

# What makes images, the image that `make image` begins with, and the name of the one that it makes.
CONTAINER ?= $(firstword $(foreach each,podman docker buildah,$(shell command -v $(each) 2>/dev/null)))
BASE ?=
IMAGE ?= localhost/pailot:latest

# With this variable set, every start would compile all sources anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
GROUPS := test-local test-server test-containers test-slurm test-kubernetes
.PHONY: help run test $(GROUPS) check lint unit docs site packages tagged pictures screenshots bench browser page chromium image metrics soak venv \
    node parts parts-shells parts-postgres parts-containers parts-slurm kubernetes clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do \
	    printf '  make %-11s %s\n' "$$name" "$$text"; done

run: $(INSTALLED) ## Install Pailot into .venv and run the example job
	cd examples/two-roles && $(abspath $(BIN))/pailot run job.yaml
	@echo; echo 'Two roles talked, one task failed and was tried again. Try next, with $(BIN) in PATH:'; \
	echo '  pailot show two-roles      what became of each task'; \
	echo '  pailot events two-roles    what happened, in order'; \
	echo '  pailot init                a commented job of your own, for: pailot run job.yaml'

test: $(VENV)/.installed-dev node $(NNI)/.installed page-vendor/node_modules/.installed parts chromium ## Run all tests; ARGS="-k yaml" runs some
	$(BIN)/python -m tests.all $(ARGS)

# Parts of `make test`, for machines that run them side by side; tests/groups.py has the table.
test-local: node $(NNI)/.installed parts-shells parts-containers
test-server: node $(NNI)/.installed parts-shells parts-postgres parts-containers
test-containers: parts-shells parts-containers
test-slurm: parts-slurm
test-kubernetes: parts-containers
$(GROUPS): test-%: $(VENV)/.installed-dev
	$(BIN)/python -m tests.groups $* $(ARGS)

check: lint unit ## Run the linters, the type checker and the unit tests

lint: $(VENV)/.installed-dev ## Run the linters and the type checker; workflows are checked where actionlint is there
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/lint-imports --no-logo --config importlinter-siblings.toml
	@found=$$(command -v actionlint || ls "$$(go env GOPATH 2>/dev/null)/bin/actionlint" 2>/dev/null); \
	if [ -n "$$found" ]; then "$$found" .github/workflows/*.yml && echo "actionlint: the workflows are sound"; \
	else echo "No actionlint: the workflows are not checked; enable that with: go install github.com/rhysd/actionlint/cmd/actionlint@latest"; fi

unit: $(VENV)/.installed-dev ## Run the unit tests, and see that those of drivers reach every branch
	$(BIN)/python -m pytest -q --numprocesses auto tests/unit $(ARGS)
	HYPOTHESIS_PROFILE=examples $(BIN)/coverage run --data-file $(VENV)/coverage -m pytest -q $(DECISIONS)
	$(BIN)/coverage report --data-file $(VENV)/coverage

docs: site ## Build the site into build/docs/html, and check the docs: every example is run, every link and page holds
	$(BIN)/python -m pytest -q tests/acceptance/test_docs.py tests/acceptance/test_docstrings.py tests/acceptance/test_site.py $(ARGS)

site: $(VENV)/.installed-dev ## Build the documentation site alone, strictly
	$(BIN)/python -m tools.site

packages: $(VENV)/.installed-dev ## Build sdist and wheel into dist/, check them, and install them into fresh environments
	rm -rf dist && $(BIN)/python -m hatchling build -t sdist -t wheel -d dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m pytest -q tests/acceptance/test_wheel.py tests/acceptance/test_packages.py $(ARGS)

tagged: $(VENV)/.installed-dev # Whether the tag that is built, in GITHUB_REF_NAME, is that of the version
	@version=v$$($(BIN)/pailot --version | cut -d' ' -f2); [ "$$GITHUB_REF_NAME" = "$$version" ] || \
	    { echo "The tag is '$$GITHUB_REF_NAME', and the version is $$version" >&2; exit 1; }

pictures: $(VENV)/.installed-dev ## Make the terminal pictures of the README again, from real runs
	$(BIN)/python -m tools.pictures

bench: $(VENV)/.installed-dev node $(PEERS)/.installed $(ALIPAI)/.installed ## Measure speed; ARGS go to bench/run.py
	$(BIN)/python bench/run.py $(ARGS)

browser: $(VENV)/.installed-dev page-vendor/node_modules/.installed chromium ## Test the web page in a real browser, which is installed on Debian
	$(BIN)/python -m pytest -q tests/browser $(ARGS)

screenshots: $(VENV)/.installed-dev chromium ## Take the pictures of the docs again, from a real server with real jobs
	$(BIN)/python -m tests.browser.screenshots

page: ## Build the third-party code of the web page again, from the versions that are pinned
	cd page-vendor && npm ci --silent --no-audit --no-fund --ignore-scripts && node build.js

image: $(VENV)/.installed-dev ## Make the container image of a server: make image BASE=IMAGE-WITH-PYTHON
	@[ -n "$(BASE)" ] || { echo "name an image with Python 3.11 or newer: make image BASE=IMAGE" >&2; exit 1; }
	@[ -n "$(CONTAINER)" ] || { echo "podman, docker or buildah is needed" >&2; exit 1; }
	rm -rf build/image && mkdir -p build/image/wheels
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --wheel-dir build/image/wheels --constraint constraints.txt '.[server,postgres]'
	$(CONTAINER) build --build-arg BASE=$(BASE) --tag $(IMAGE) --file deploy/Containerfile build/image

metrics: ## Count lines, cycles and habits of the source
	@$(PYTHON) bench/metrics.py

soak: $(VENV)/.installed-dev node parts ## Repeat the fault tests at length, with many more random inputs; about an hour
	$(BIN)/python -m tests.soak $(ARGS)

venv: $(VENV)/.installed-dev ## Make .venv with Pailot and the development tools

kubernetes: ## Build a real Kubernetes for the tests, once, into a cache of this user; about 25 minutes of CPU time
	@missing=; for each in containerd:containerd runc:runc iptables:iptables ip:iproute2 busybox:busybox-static; do \
	    PATH="$$PATH:/usr/sbin:/sbin" command -v $${each%%:*} >/dev/null || missing="$$missing $${each#*:}"; done; \
	[ -e /usr/lib/cni/bridge ] || missing="$$missing containernetworking-plugins"; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing$$missing" && { apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null && missing=; } || true; fi; \
	[ -z "$$missing" ] || { echo "Kubernetes needs more: sudo apt-get install --no-install-recommends$$missing" >&2; exit 1; }
	$(PYTHON) -m tests.parts.kubernetes.programs

clean: ## Remove .venv, node_modules and everything else that was made
	rm -rf $(VENV) $(PEERS) $(ALIPAI) $(NNI) $(UPSTREAM)/node_modules $(CLIENTS)/node_modules page-vendor/node_modules build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .schemathesis
	find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# pip 26 and newer write console scripts that start 10 ms faster than those of Debian 12's pip.
$(VENV)/.python: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	    { echo "Pailot needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3" >&2; exit 1; }
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
	    package=$$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
	    if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	        echo "Installing $$package" && apt-get update -qq && \
	        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$package >/dev/null; \
	    else echo "Python lacks its venv module; install it first: sudo apt-get install $$package" >&2; exit 1; fi; \
	fi
	$(if $(UV),$(UV) venv --quiet --clear --python $(PYTHON) $(VENV),$(PYTHON) -m venv --clear $(VENV))
	$(INSTALL) --constraint constraints.txt --upgrade pip
	@touch $@

$(VENV)/.installed: $(VENV)/.python pyproject.toml $(SOURCES)
	$(INSTALL) --build-constraint constraints.txt --constraint constraints.txt .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.python pyproject.toml
	$(INSTALL) --build-constraint constraints.txt --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python -m compileall -q $(CURDIR)/src
	@touch $@

# TorchX, for the benchmarks that compare with it. They are skipped without.
$(PEERS)/.installed: bench/peers.txt | $(VENV)/.python
	@if $(PYTHON) -m venv --clear $(PEERS) && echo '*' >$(PEERS)/.gitignore && \
	    $(PEERS)/bin/python -m pip -qq install --constraint constraints.txt --upgrade pip && \
	    $(PEERS)/bin/python -m pip -qq install --only-binary :all: --requirement bench/peers.txt; then touch $@; \
	else echo "pip failed: the comparison with TorchX is skipped" >&2; rm -rf $(PEERS); fi

# Alibaba's SDK, for the benchmark that compares with it; some of what it needs is built from source.
$(ALIPAI)/.installed: bench/peers-alipai.txt | $(VENV)/.python
	@if $(PYTHON) -m venv --clear $(ALIPAI) && echo '*' >$(ALIPAI)/.gitignore && \
	    $(ALIPAI)/bin/python -m pip -qq install --requirement bench/peers-alipai.txt; then touch $@; \
	else echo "pip failed: the comparison with Alibaba's SDK is skipped" >&2; rm -rf $(ALIPAI); fi

# NNI, whose own client of OpenPAI is run against our server; with it comes the Node.js that it is made for. Skipped without.
$(NNI)/.installed: tests/clients/nni.txt | $(VENV)/.python
	@rm -rf $(NNI); if mkdir -p $(NNI) && echo '*' >$(NNI)/.gitignore && \
	    $(BIN)/python -m pip -qq --disable-pip-version-check install --no-deps --no-compile --only-binary :all: \
	    --target $(NNI) --requirement tests/clients/nni.txt; then chmod +x $(NNI)/nni_node/node && touch $@; \
	else echo "pip failed: the test with NNI is skipped" >&2; rm -rf $(NNI); fi

# Programs that some tests need for real; those tests are skipped without.
parts: parts-shells parts-postgres parts-containers parts-slurm

parts-shells:
	@missing=; for each in bwrap:bubblewrap zsh:zsh fish:fish sshd:openssh-server ssh:openssh-client; do \
	    PATH="$$PATH:/usr/sbin:/sbin" command -v $${each%%:*} >/dev/null || missing="$$missing $${each#*:}"; done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing$$missing" && { apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null && missing=; } || true; fi; \
	[ -z "$$missing" ] || echo "Sandbox, shells or ssh are not all tested; enable that with: sudo apt-get install$$missing" >&2

parts-postgres:
	@if ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && ! command -v initdb >/dev/null && \
	    [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing postgresql" && { apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null; } || true; fi; \
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || \
	    echo "No PostgreSQL: the server is tested on SQLite only; enable it with: sudo apt-get install postgresql" >&2

parts-containers:
	@missing=; for each in dockerd:docker.io podman:podman runc:runc iptables:iptables busybox:busybox-static \
	    docker-registry:docker-registry debootstrap:debootstrap; do PATH="$$PATH:/usr/sbin" command -v $${each%%:*} >/dev/null || missing="$$missing $${each#*:}"; done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing$$missing" && { apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null && missing=; } || true; fi; \
	[ -z "$$missing" ] || echo "Containers are not tested; enable that with: sudo apt-get install$$missing" >&2

parts-slurm:
	@missing=; for each in munged:munge slurmctld:slurmctld slurmd:slurmd sbatch:slurm-client; do \
	    command -v $${each%%:*} >/dev/null || missing="$$missing $${each#*:}"; done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing$$missing" && { apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null && missing=; } || true; fi; \
	[ -z "$$missing" ] || echo "Slurm is not tested; enable that with: sudo apt-get install --no-install-recommends$$missing" >&2

# A browser and what drives it, for the tests of the web page. They are skipped without.
chromium: $(VENV)/.installed-dev
	@if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing chromium" && { apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || true; fi
	@command -v chromium >/dev/null && { $(BIN)/python -c 'import playwright' 2>/dev/null || $(INSTALL) --constraint constraints.txt playwright; } || \
	    echo "The web page is not tested in a browser; enable that with: sudo apt-get install chromium" >&2

# What checks the web page: TypeScript for its types, axe for its accessibility, and what builds its third-party code.
page-vendor/node_modules/.installed: page-vendor/package-lock.json
	@if command -v npm >/dev/null && (cd page-vendor && npm ci --silent --no-audit --no-fund --ignore-scripts); then touch $@; \
	else echo "No npm, or it failed: types and accessibility of the web page are not checked" >&2; fi

# OpenPAI's own libraries and clients, for the tests and benchmarks that use them. Those tests are skipped without.
node: $(NODE_MODULES)

$(NODE_MODULES): %/node_modules/.installed: %/package.json
	@if ! command -v npm >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing nodejs and npm" && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs npm >/dev/null; fi; \
	if ! command -v npm >/dev/null; then \
	    echo "No npm: the comparisons with OpenPAI are skipped; enable them with: sudo apt-get install nodejs npm" >&2; \
	elif (cd $* && npm install --silent --no-audit --no-fund --ignore-scripts); then touch $@; \
	else echo "npm failed: the comparisons with OpenPAI are skipped; enable them with: cd $* && npm install" >&2; fi
