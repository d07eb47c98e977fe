# Everything runs in a virtual environment inside the checkout; nothing else is touched.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2

.PHONY: setup demo test lint test-slow bench clean

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

test: lint
	$(BIN)/python -m pytest -n $(JOBS)

test-slow: setup
	$(BIN)/python -m pytest -n $(JOBS) -m slow

bench: setup
	$(BIN)/python -m benchmarks.overhead

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
