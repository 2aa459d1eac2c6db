# Two commands set everything up on a machine with python3 (venv and pip) and make:
#   make demo    the paper's synthetic experiment: a table and a figure
#   make test    all tests
# make reproduce runs all experiments of the paper, in half an hour, and writes a report.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo reproduce test lint format bench bench-nnls bench-glm bench-nmf bench-tensor bench-unmixing bench-scale bench-start bench-few-atoms fuzz fuzz-files mutants sanitize clean

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

bench-tensor: .venv/.bench
	$(BIN)/python benchmarks/tensor.py

bench-unmixing: .venv/.bench
	$(BIN)/python benchmarks/unmixing.py

bench-scale: .venv/.bench
	$(BIN)/python benchmarks/scale.py

bench-start: .venv/.bench
	$(BIN)/python benchmarks/cold_start.py

bench-few-atoms: .venv/.bench
	$(BIN)/python benchmarks/few_atoms.py

# Looks for false proofs in random problems: make fuzz MINUTES=60 JOBS=2
MINUTES ?= 5
JOBS ?= 2
fuzz: .venv/.test
	$(BIN)/python fuzz/run.py --minutes $(MINUTES) --jobs $(JOBS) $(FUZZ)

# Changes the code of the proofs, one place at a time, and lists what no test notices:
# make mutants MUTANTS="--python 300 --cpp 10 --seed 7"
mutants: .venv/.test
	$(BIN)/python tools/mutants.py $(MUTANTS)

# Reads damaged files of every format: make fuzz-files EACH=2000 JOBS=2
EACH ?= 100
fuzz-files: .venv/.test
	$(BIN)/python fuzz/files.py --each $(EACH) --jobs $(JOBS) $(FUZZ)

# Builds the kernels with sanitizers and runs their tests and a short fuzz; needs gcc or clang.
sanitize: .venv/.test
	$(BIN)/python tools/sanitize.py

# Wheels are preferred: a release that is only there as sources may need more to be built than is here.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary
KERNELS := $(shell find cpp -type f) CMakeLists.txt tools/build_backend.py

.venv/bin/python:
	$(PYTHON) -m venv .venv

# What a build needs stays installed, so that a changed kernel is compiled alone.
.venv/.backend: pyproject.toml tools/build_backend.py | .venv/bin/python
	$(PIP) $$($(BIN)/python -c "import tomllib; \
	    print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'])")
	$(PIP) $$(PYTHONPATH=tools $(BIN)/python -c "import build_backend; \
	    print(*build_backend.get_requires_for_build_editable())") ninja
	touch $@

.venv/.%: pyproject.toml $(KERNELS) .venv/.backend
	$(PIP) --no-build-isolation --editable ".[$*]"
	touch $@

clean:
	rm -rf .venv build out
