# Everything runs in a virtual environment inside the checkout; nothing else is touched.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2
SCHEMA := $(BIN)/check-jsonschema --builtin-schema

.PHONY: setup demo lint test test-faults fuzz test-oldest test-network test-slow wheel-test bench clean
FUZZ_SECONDS ?= 600

setup: .venv/ready

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[test]'
	touch $@

demo: setup
	$(BIN)/halfwidth demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	$(SCHEMA) vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/method.yml
	$(SCHEMA) vendor.citation-file-format CITATION.cff

test: lint
	$(BIN)/python -m pytest -n $(JOBS)

# The campaigns of tests/faults in full; `make test` runs a tenth of them.
test-faults: setup
	HALFWIDTH_FAULTS=1 $(BIN)/python -m pytest -n $(JOBS) tests/faults

fuzz: setup
	$(BIN)/python -m pip install --quiet atheris
	for target in state csv formula; do \
	  PYTHONPATH=tests/faults:tests $(BIN)/python tests/faults/fuzz.py $$target -max_total_time=$(FUZZ_SECONDS) || exit 1; done

test-oldest:
	$(PYTHON) tools/test_oldest.py

test-network: setup
	$(BIN)/python -m pytest -n $(JOBS) -m network

test-slow: setup
	$(BIN)/python -m pytest -n $(JOBS) -m 'slow and not network'

wheel-test:
	$(PYTHON) tools/wheel_test.py

bench: setup
	$(BIN)/python -m benchmarks.overhead

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
