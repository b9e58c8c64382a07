# Everything starts here: `make run` on a bare machine needs Python 3.11 or newer and nothing else.
PYTHON ?=
export PYTHON
PY := .venv/bin/python

.PHONY: run test lint doctor setup ready help
.DEFAULT_GOAL := help

run: ready ## set up what is missing, then start the studio and print its address
	@$(PY) app.py

test: ready ## set up what is missing, then check the style and run all tests
	@status=0; \
	$(MAKE) --no-print-directory lint || status=1; \
	$(PY) -m pytest -n auto --maxprocesses 4 --dist loadfile || status=1; \
	if [ $$status -eq 0 ]; then echo "All checks and tests passed."; \
	else echo "Some checks or tests failed; see above."; fi; exit $$status

lint: ready ## check style and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy .

doctor: ready ## say what works on this machine
	@$(PY) -m sweet doctor

setup: ## set up, and try again for what was missing
	@python=$$(sh scripts/python.sh) && "$$python" -m scripts.setup

ready: # the same, but nothing at all where the last set-up still holds
	@$(PY) -m scripts.setup --check 2>/dev/null || $(MAKE) --no-print-directory setup

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile
