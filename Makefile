# Each target sets up what it needs: on a fresh clone, `make diff` or `make test` is enough.
# Another interpreter: make PYTHON=python3.12 test

PYTHON ?= python3
BIN := .venv/bin
# One stamp an interpreter: naming another one in PYTHON builds .venv anew.
READY := .venv/ready-$(subst /,-,$(PYTHON))
# Spark's classes, with which each of the many sessions starts in half of its processor time.
CLASSES := .venv/spark-classes.jsa
# Environments of the engines that straggler conformance judges; make test needs none of them.
ENGINES ?= .engines
PYTEST := $(BIN)/python -m pytest --hypothesis-profile=ci
# A query starts several Pythons, each of which would compile our modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup diff test test-long gallery cluster soak quick check mutants bench docs engines
.PHONY: clean java hosts room
# Two targets that each want every core only slow each other down.
.NOTPARALLEL:

# Minutes are those of two quiet cores.
help: ## these lines
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' Makefile

setup: $(READY) ## a virtual environment in .venv, with the versions of constraints.txt (1 to 4 min)
	@echo ".venv is ready. Next: source .venv/bin/activate, then straggler --help"

diff: java $(CLASSES) ## Spark against the reference, a query a room (2 min, at first 3); all of them: make diff ALL=1 (6 min)
	@$(BIN)/straggler diff all $(if $(ALL),,--quick)

# Two processes for two cores, each with a Spark session of its own. A file is never divided. Rules of
# the house are for make check.
TEST_PROCESSES = -n 2 --dist loadfile --no-loadscope-reorder --ignore=tests/house
test: java $(CLASSES) ## every promise and every contract, once (9 min)
	@$(PYTEST) $(TEST_PROCESSES) tests properties

test-long: java $(CLASSES) ## long tests as well, with more and random cases, for a night (1 to 2 h)
	@$(BIN)/python -m pytest --hypothesis-profile=nightly --long $(TEST_PROCESSES) \
		-o timeout=1800 --ignore=$(JUDGED) tests properties

JUDGED = tests/jobs/test_gallery_at_length.py
gallery: java $(CLASSES) ## every job of the gallery and of Spark's guide judged, and changed in twenty ways (4 h)
	@$(PYTEST) --long -n 2 --dist load $(JUDGED)

# Killed drivers and workers, full disks, cut connections, lost commits. The same folder goes on with
# the next fault.
MINUTES ?= 60
SEED ?= 0
SOAK ?= .soak
soak: java $(CLASSES) ## rooms under seeded faults (docs/soak.md): make soak MINUTES=60 SEED=7 ROOM=join
	@$(BIN)/python -m tests.soak --minutes "$(MINUTES)" --seed "$(SEED)" --room "$(ROOM)" \
		--folder "$(SOAK)"

# With QUICK=1, the sockets of the hosts, and one host that is killed in an epoch.
KILLED = tests/cluster/test_host_faults.py::test_pairs_are_exact_though_a_host_is_killed_in_an_epoch
cluster: hosts java $(CLASSES) ## every room on three hosts of this machine, which fail; needs root (20 min)
	@$(BIN)/python -m pytest --hypothesis-profile=dev --cluster \
		$(if $(QUICK),tests/cluster/test_listening_sockets.py $(KILLED),tests/cluster)

hosts:
	@.ci/preflight hosts

# What a change of a room breaks first, without a JVM.
OF_ROOM = properties/test_$(ROOM).py tests/model/test_$(ROOM)*.py
quick: room $(READY) ## the properties of one room, and its examples: make quick ROOM=join (30 s)
	@$(BIN)/python -m pytest --hypothesis-profile=dev -q -n 2 $(wildcard $(OF_ROOM))

room:
	@[ -n "$(ROOM)" ] && [ -f "straggler/rooms/$(ROOM)/room.py" ] || \
		{ echo "make quick needs a room, like this: make quick ROOM=join" >&2; exit 2; }

check: $(READY) ## style, types, layers, tidiness (1 min)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(PYTEST) -q tests/house

mutants: java $(CLASSES) ## drawn mistakes, judged by tests: make mutants NUMBER=20 SEED=1 ROOM=spark_impl/join
	@$(BIN)/python -m tests.quality.mutants --number $(or $(NUMBER),20) --seed $(or $(SEED),0) \
		--room "$(ROOM)" --kind "$(KIND)"

bench: java $(CLASSES) ## figures beside the usual choice; one only: make bench NAME=slack (1 h)
	@$(BIN)/python -m benchmarks $(NAME)

docs: java $(READY) ## the generated pages of docs/; adopts new figures of make bench (1 min)
	@$(BIN)/straggler errata --markdown docs/errata.md >/dev/null
	@$(BIN)/python -m benchmarks.pages

engines: ## environments of judged engines, in .engines; one only: make engines NAME=duckdb (10 min)
	@for name in $(or $(NAME),$(notdir $(patsubst %/,%,$(dir $(wildcard engines/*/engine.toml))))); do \
		echo "setting up $(ENGINES)/$$name ..."; \
		$(PYTHON) -m venv --clear "$(ENGINES)/$$name" && "$(ENGINES)/$$name/bin/python" -m pip \
			install -q --disable-pip-version-check -r "engines/$$name/requirements.txt" || exit 1; \
	done

clean: ## remove everything that make and the tests made, .venv included
	@rm -rf .venv .engines .soak build dist *.egg-info .hypothesis .mypy_cache .ruff_cache .pytest_cache \
		.import_linter_cache spark-warehouse metastore_db derby.log
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

java:
	@.ci/preflight java

$(CLASSES): $(READY) | java
	@echo "storing the classes of Spark, once, so that it starts quickly (1 min) ..."
	@$(BIN)/python -m spark_impl.class_archive || echo "Spark will start without them" >&2

# Pip is quiet but for what goes wrong; a line now and then says that it is at work.
$(READY): pyproject.toml constraints.txt
	@.ci/preflight python $(PYTHON)
	@echo "setting up .venv (1 to 4 min) ..."
	@$(PYTHON) -m venv --clear .venv
	@(s=0; while sleep 15 >/dev/null 2>&1 && kill -0 $$$$ 2>/dev/null; do \
			s=$$((s + 15)); echo "installing packages, $$s s so far ..."; done) & \
		$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]' -c constraints.txt; \
		code=$$?; kill $$!; wait $$! 2>/dev/null; exit $$code
	@touch $@
