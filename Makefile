# Two commands set everything up on a machine with python3 (venv and pip) and make:
#   make demo    the paper's synthetic experiment: a table and a figure
#   make test    all tests
# make reproduce runs all experiments of the paper, in half an hour, and writes a report.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo reproduce test lint format bench bench-nnls bench-glm bench-nmf fuzz clean

demo: .venv/.cli
	$(BIN)/conepursuit demo --out out

reproduce: .venv/.cli
	$(BIN)/conepursuit reproduce --out out/reproduction

test: .venv/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: .venv/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/.bench
	$(BIN)/python benchmarks/iteration_cost.py

bench-nnls: .venv/.bench
	$(BIN)/python benchmarks/nnls.py

bench-glm: .venv/.bench
	$(BIN)/python benchmarks/glm.py

bench-nmf: .venv/.bench
	$(BIN)/python benchmarks/nmf.py

# Looks for false proofs in random problems: make fuzz MINUTES=60 JOBS=2
MINUTES ?= 5
JOBS ?= 2
fuzz: .venv/.test
	$(BIN)/python fuzz/run.py --minutes $(MINUTES) --jobs $(JOBS) $(FUZZ)

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.%: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@

clean:
	rm -rf .venv out
