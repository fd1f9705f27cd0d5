# `make demo` and `make test` set up all they need; README.md says what that is.
PY := .venv/bin/python
STORES := redis rabbitmq postgresql mariadb mysql s3 dynamodb mongodb sns activemq
# `make test` runs the tests of these, in the time that a change can wait; `make test-stores` those of the others, and the long ones.
LEAN := redis rabbitmq postgresql mariadb
WRITER ?= python
RELAY ?= python
READER ?= python
OTHERS := $(filter-out python,$(sort $(WRITER) $(RELAY) $(READER)))
POST_STORAGE ?= $(if $(OTHERS),redis,memory)
NOTIFIER ?= $(if $(OTHERS),http,memory)
OPTIONS ?=
STAGE := benchmarks/src/antipode_benchmarks/postnotification
names = $(sort $(filter-out _%,$(basename $(notdir $(wildcard $(STAGE)/$(1)/*.py)))))
one_of = $(if $(filter $($(1)),$(2)),,$(error $(1)=$($(1)): want one of $(2)))
known = $(call one_of,$(1),$(call names,$(2)))
LANGUAGES := python java cpp
SHORT := "not stores and not fuzz and not interop"
WORKERS ?= -n 2
OURS := conftest.py python shims lab benchmarks spec

# Where an environment forbids bytecode, each of the many processes that the tests start would compile all it imports.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup servers lean demo test lint types tests java cpp interop test-stores fuzz micro models simulation size spec-coverage lock clean

help:
	@echo "make demo         see cross-service violations happen, and not happen (POST_STORAGE=redis NOTIFIER=rabbitmq: on real servers)"
	@echo "                  POST_STORAGE: $(call names,stores); NOTIFIER: $(call names,queues)"
	@echo "                  WRITER, RELAY, READER: the language of its services, $(LANGUAGES) (benchmarks/services.md)"
	@echo "make test         lint, types and the tests of every language, on real servers: $(LEAN) (make tests, java, cpp: one of them)"
	@echo "make interop      services of every language in one application, in all combinations"
	@echo "make test-stores  the tests of all other stores, and the longer runs: whole failover fuzzers, the clients' own test suites through our wrappers"
	@echo "make fuzz         ten minutes of each fuzzer, in every language (SECONDS=600)"
	@echo "make micro        the micro benchmarks (scripts/micro java, scripts/micro cpp: those of the other languages)"
	@echo "make models       TLC on the models of the rules and on their mutants, spec/tla (OPTIONS=--long: up to 40 minutes)"
	@echo "make simulation   the engine of Python on a virtual clock: runs drawn from seeds (OPTIONS='0 2000 --shrink', --mutant NAME)"
	@echo "make size         lines of source, by room of the core and by shim, language by language"
	@echo "make spec-coverage  which requirements of spec/ each language's tests cite, and which none does (OPTIONS=--fail-uncited)"
	@echo "make lock         pins requirements/dev.in and spark.in into the .txt files beside them"

setup:
	@scripts/setup

servers:
	@scripts/setup $(STORES)

lean:
	@scripts/setup $(LEAN)

demo:
	$(call known,POST_STORAGE,stores)$(call known,NOTIFIER,queues)
	$(foreach part,WRITER RELAY READER,$(call one_of,$(part),$(LANGUAGES)))
	@scripts/setup $(filter-out memory http,$(sort $(POST_STORAGE) $(NOTIFIER)))
	@scripts/services $(OTHERS)
	@$(PY) -m antipode_benchmarks.postnotification --post-storage $(POST_STORAGE) --notifier $(NOTIFIER) \
		--writer $(WRITER) --relay $(RELAY) --reader $(READER) $(OPTIONS)

test: lean lint types
	@scripts/test-all

lint:
	@$(PY) -m ruff check $(OURS)
	@$(PY) -m ruff format --check $(OURS)
	@$(PY) spec/layers.py
	@$(PY) spec/size.py --check

size:
	@$(PY) spec/size.py

types:
	@scripts/types

tests: lean
	@$(PY) -m pytest -q $(WORKERS) -m $(SHORT) --only-stores "$(LEAN)" $(PYTEST)

java: lean
	@scripts/setup-java
	@scripts/test-java

cpp: lean
	@scripts/setup-cpp
	@scripts/test-cpp

interop: lean
	@scripts/services $(filter-out python,$(LANGUAGES))
	@$(PY) -m pytest -q -m interop benchmarks/tests $(PYTEST)

test-stores: servers
	@.venv/bin/uv pip install -q --python $(PY) -r requirements/spark.txt
	@code=0; $(PY) -m pytest -q $(WORKERS) -m $(SHORT) --other-stores "$(LEAN)" $(PYTEST) || code=1; \
		$(PY) -m pytest -q -m stores -s $(PYTEST) || code=1; \
		scripts/nth-java || code=1; scripts/nth-cpp || code=1; scripts/races-java || code=1; scripts/races-cpp || code=1; exit $$code

fuzz: setup
	@$(PY) -m pytest -q -m fuzz -s $(PYTEST)
	@scripts/fuzz-java $(SECONDS)
	@scripts/setup-cpp fuzz
	@scripts/fuzz-cpp $(SECONDS)

micro: servers
	@$(PY) -m antipode_benchmarks.micro $(OPTIONS)

models:
	@scripts/setup-java
	@python3 spec/tla/check.py $(OPTIONS)
	$(if $(filter-out -%,$(OPTIONS)),,@python3 spec/tla/judged.py --check)

simulation: setup
	@$(PY) -m antipode.testing.simulation $(or $(OPTIONS),0 2000)

spec-coverage:
	@python3 spec/citations.py $(OPTIONS)

lock: setup
	@.venv/bin/uv pip compile -q --python $(PY) --universal --python-version 3.11 --no-header --no-emit-index-url requirements/dev.in -o requirements/dev.txt
	@.venv/bin/uv pip compile -q --python $(PY) --universal --python-version 3.11 --no-header --no-emit-index-url requirements/spark.in -o requirements/spark.txt

clean:
	rm -rf .venv results build .pytest_cache .mypy_cache .ruff_cache .hypothesis
