# Each target installs what it needs: packages by apt where this is Debian and one is root, the rest into .venv.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LINTED := gpufab_cli tests molecule benchmarks
ALL_SCENARIOS := $(notdir $(patsubst %/molecule.yml,%,$(wildcard molecule/*/molecule.yml)))
LONGEST := ofed nccl
SCENARIOS := $(LONGEST) $(filter-out $(LONGEST),$(ALL_SCENARIOS))
# Tests start thousands of short programs: none is to be compiled anew each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test lint types unit fuzz day-two-full fleet-full lab-tests vm-tests vm-tests-full molecule gen pictures structure system venv clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: venv system ## Two emulated GPU nodes, from factory state to a verified lossless fabric, broken and repaired
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/demo

test: venv system ## Everything CI runs
	$(MAKE) --no-print-directory --jobs=2 --output-sync lint types
	$(MAKE) --no-print-directory unit
	$(MAKE) --no-print-directory lab-tests
	$(MAKE) --no-print-directory molecule

lint: venv ## ruff, yamllint, ansible-lint, generated files
	$(BIN)/ruff check $(wildcard $(LINTED))
	$(BIN)/ruff format --check $(wildcard $(LINTED))
	$(BIN)/vermin -q -t=3.9- --no-tips --violations --eval-annotations gpufab_cli/module_utils gpufab_cli/modules
	$(BIN)/yamllint --strict .
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/ansible-lint
	$(BIN)/python -m gpufab_cli.gen --check

types: venv ## mypy, strict
	$(BIN)/mypy

unit: venv ## Tests that need neither root nor containers
	$(BIN)/pytest -m "not lab and not vm and not full and not daytwo" -n auto --dist worksteal

fuzz: venv ## Ten thousand hostile specs of each kind (minutes; `make unit` runs a few)
	GPUFAB_FUZZ=10000 $(BIN)/pytest tests/property/test_spec_hostile.py

fleet-full: venv ## An audit and an apply over 500 SSH servers, a tenth of which misbehave (minutes)
	$(BIN)/pytest -m full -n 0 -s tests/unit/apply/test_fleet.py

day-two-full: venv ## Applies killed a hundred times, two operators at once twenty times (half an hour)
	$(BIN)/pytest tests/daytwo -m daytwo -s

lab-tests: venv system ## Tests on whole emulated nodes
	$(BIN)/pytest -m lab -n 3 --dist loadfile

vm-tests: venv system ## Tests on a virtual machine with a real kernel
	$(BIN)/pytest -m "vm and not vm_full" tests/vm

vm-tests-full: venv system ## The same, and what takes long: disks, crashes, hot-plug, another release (an hour or so)
	$(BIN)/pytest -m vm tests/vm

molecule: venv system ## The roles, scenario by scenario
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/molecule $(SCENARIOS)

gen: venv ## Regenerate what is made from the dataclasses, and the golden files
	$(BIN)/python -m gpufab_cli.gen

structure: venv ## Numbers of how gpufab is built: rooms, circles, names that mean two things
	$(BIN)/python -m tests.structure

pictures: venv ## Draw the pictures in docs/
	$(BIN)/python -m tests.pictures

system: ## Packages that emulated nodes and stand-ins for vendors' packages need on this machine
	scripts/system-packages gpufab_cli/lab/requirements-apt.txt tests/standins/requirements-apt.txt

venv: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml scripts/venv
	scripts/venv "$(PYTHON)" "$(VENV)"
	touch $@

clean: ## Remove the venv, caches and disks of virtual machines; `gpufab lab down` removes emulated nodes
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .lab/standins .lab/vm dist build
