# Two commands for a newcomer: `make demo` and `make test`. Both set up .venv by themselves.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
RUN    ?= runs/first
# Tests run on all cores, one BLAS thread each; WORKERS=0 runs them one after the other (for a debugger).
# They read files as UTF-8 in any locale, as cbobench does.
WORKERS ?= auto
# Tests start hundreds of processes: where this is set, each of them compiles the whole package again.
unexport PYTHONDONTWRITEBYTECODE
PYTEST  = PYTHONUTF8=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 8 --dist loadgroup

.PHONY: demo test test-long portable fast mutations browser-test lint speed scale quality chaos paper-figures claims literature replay pages printed site release clean

# A test holds these commands and README's together.
demo: .make/install  ## play README's suite, print its table, draw its picture
	@$(BIN)/cbobench run first --out $(RUN)
	@$(BIN)/cbobench figures $(RUN) --metric r
	@echo "the table again: $(BIN)/cbobench compare $(RUN)"
	@echo "the figure: $(RUN)/figures/summary_first_gramacy.png"
	@echo "what to try next: docs/tutorial.md, ten minutes with a table of your own; or $(BIN)/cbobench --help"

test: .make/test  ## every test but the long forms
	$(PYTEST) -m "not long" $(ARGS)

test-long: .make/test  ## the long forms: hundreds of trials of what `make test` tries a few times
	$(PYTEST) -m long $(ARGS)

# An hour or more where qemu-x86_64 (package qemu-user) is there; nightly and before a release.
portable: .make/test  ## short plays of every method under several kinds of CPU, QEMU's included: one digest for all
	$(BIN)/python -m benchmarks.quality.portable $(ARGS)

# Tests of other rooms play runs.
FAST = tests/test_*.py $(addprefix tests/,stats gp)
fast: .make/test  ## the quick tests of numerics, command line and pages
	$(PYTEST) -m "not slow and not long" $(FAST) $(ARGS)

# Nightly of a room in turn (.github), from the last commit: random faults for MINUTES, one at a time, each tried by the
# room's quick tests. What survives and matters becomes a test. A room without tests of its own: make mutations ROOM=cli
# TESTS="tests/test_cli.py tests/test_options.py"; ROOM may be a file, such as rng.py.
ROOM    ?= stats
TESTS   ?= tests/$(ROOM)
MINUTES ?= 40
MUTANTS  = $(CURDIR)/build/mutants
mutations: .make/test  ## plant random faults in a room by cosmic-ray (ROOM=gp MINUTES=40), list those that no test finds
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[mutations]"
	rm -rf $(MUTANTS) && git clone --quiet . $(MUTANTS)
	$(BIN)/python -m compileall -q --invalidation-mode checked-hash $(MUTANTS)/cbobench $(MUTANTS)/tests
	sed 's|ROOM|$(ROOM)|; s|TESTS|$(TESTS)|' tests/mutations.toml > $(MUTANTS)/build-mutations.toml
	cd $(MUTANTS) && export PATH="$(abspath $(BIN)):$$PATH" PYTHONPATH=$(MUTANTS) OMP_NUM_THREADS=1 && \
	  cosmic-ray baseline build-mutations.toml && \
	  cosmic-ray init build-mutations.toml session.sqlite && \
	  cr-filter-operators session.sqlite build-mutations.toml && \
	  { timeout --signal=INT $(MINUTES)m cosmic-ray exec build-mutations.toml session.sqlite || [ $$? = 124 ]; } && \
	  cr-report session.sqlite --surviving-only --show-diff

lint: .make/lint  ## style, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The other tests of the page need no browser: `make test` has them.
browser-test: .make/test .make/docs  ## the page of `cbobench report`, and the site's open table, in Chromium (on the path, or CHROMIUM=its place)
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[browsertest]"
	$(PYTEST) tests/page/test_browser.py tests/page/test_open_table.py $(ARGS)

# With BASE=COMMIT the same here and at that commit in turns, with ratios and their intervals.
speed: .make/test  ## measure what people wait for, into build/bench (ARGS="--only dispatch tiny --repeats 3")
	$(BIN)/python -m benchmarks.speed.bench $(if $(BASE),--base $(BASE)) $(ARGS)
	$(if $(BASE),,$(BIN)/python -m benchmarks.speed.calls)

scale: .make/test  ## a million cells through plan and scheduler on 1, 100 and 10,000 virtual CPUs with faults
	$(BIN)/python -m benchmarks.scale.virtual $(ARGS)

# The long form: make chaos ARGS="--faults 300 --seconds 7200 --only poison storm nodes disk hosts"
chaos: .make/test  ## play a suite under 60 faults (killed workers, drivers and nodes, full disks), compare bit by bit
	$(BIN)/python -m benchmarks.chaos $(ARGS)

# Of one: make quality WHAT=maximiser ARGS="gramacy --rounds 400", or make quality WHAT=gate_level ARGS=--marks.
WHAT ?= maximiser coverage gate_level
quality: .make/test  ## how often a dense search beats the maximiser, intervals miss, and comparisons err
	for script in $(WHAT); do $(BIN)/python -m benchmarks.quality.$$script $(ARGS) || exit 1; done

# Every figure of every paper, into $(PAPER)/figures. QUICK=1: 5 seeds (minutes); DATA: folder of the recorded data.
PAPER ?= runs/paper
DATA  ?= $(CBOBENCH_DATA)
QUICK ?=
paper-figures: .make/install  ## play all paper suites and draw all their figures
	$(BIN)/python -m analysis.papers.figures --out $(PAPER)$(if $(QUICK),/quick) $(if $(QUICK),--seeds 5) $(if $(DATA),--data $(DATA))

claims: .make/install  ## from a clean tree play or confirm the next bundle of the papers, at most 40 minutes, and commit it (ARGS=--list: what is there; ARGS=--render: test the claims, draw the figures)
	$(if $(DATA),CBOBENCH_DATA=$(DATA)) $(BIN)/python -m analysis.shards papers $(ARGS)

literature: .make/install  ## the same of the field (ARGS=--render: write its pages)
	$(if $(DATA),CBOBENCH_DATA=$(DATA)) $(BIN)/python -m analysis.shards field $(ARGS)

replay:  ## play drawn published cells again with the libraries that played them (ARGS="--replay 50")
	$(PYTHON) -m venv build/replay
	build/replay/bin/pip install --quiet --disable-pip-version-check -e . -r published/requirements.txt
	build/replay/bin/cbobench verify published/*.zip $(or $(ARGS),--replay 5) || [ $$? -eq 3 ]

pages: .make/install  ## write what pages take from the code: tables of methods, problems, suites, rooms, measurements
	$(BIN)/python -m website.tables

printed: .make/test  ## play the code of every page, write what it prints into the page (ARGS=README.md: of one)
	$(BIN)/python -m website.printed $(ARGS)

# Pictures are kept in .make/site by what they depend on; ARGS="--pictures cei gramacy": only these.
site: .make/docs  ## build the documentation site into build/site; warnings and links that lead nowhere are errors
	OMP_NUM_THREADS=1 $(BIN)/python -m website $(ARGS)

# A release: write the version into pyproject.toml, cbobench/__init__.py and CITATION.cff, and its date into CHANGELOG.md in
# place of "unreleased". On a clean clone run `bash .ci/run`, `make portable`, `make chaos` and `make replay ARGS="--replay 50"`, which is more than 2 % of the published cells;
# CI tries Python 3.11 to 3.14 and the oldest libraries. `git tag -a v0.1.0 -m
# "cbobench 0.1.0"`, push branch and tag, wait for CI. From the tag `make release`, `.venv/bin/twine upload dist/*`, and
# install it by name in a new environment: `cbobench run first`.
# The bare environment lies in another directory: nothing of the checkout is on the path.
RELEASE = $(CURDIR)/.make/release
release: .make/lint  ## build what is published into dist/, check it, play the demo and every test from the installed wheel
	rm -rf dist $(RELEASE) && mkdir -p $(RELEASE)/elsewhere
	$(BIN)/pip install --quiet --disable-pip-version-check build twine
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv $(RELEASE)/venv
	$(RELEASE)/venv/bin/pip install --quiet --disable-pip-version-check dist/*.whl
	cd $(RELEASE)/elsewhere && ../venv/bin/cbobench run first && ../venv/bin/cbobench figures runs/first --metric r
	$(RELEASE)/venv/bin/pip install --quiet --disable-pip-version-check "$$(echo dist/*.whl)[test]"
	cp -r tests .ci .github .pre-commit-config.yaml suites analysis published benchmarks deploy docs website *.md *.cff *.yaml LICENSE Makefile pyproject.toml $(RELEASE)/elsewhere
	cd $(RELEASE)/elsewhere && $(PYTEST:$(BIN)/%=../venv/bin/%) $(ARGS)

clean:
	rm -rf .make .venv build dist .pytest_cache .mypy_cache .ruff_cache

.make/venv:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'cbobench needs Python 3.11 or newer')"
	@$(PYTHON) -m venv $(VENV)
	@mkdir -p .make && touch $@

# pip takes minutes: every ten seconds a line says what it does. Beside it, as it must hear Ctrl-C; and the lines end with
# the shell that began them, however that ends.
define INSTALL
@echo "pip installs $(1) into $(VENV), some minutes the first time"
@(seconds=0; while sleep 10 > /dev/null 2>&1 && kill -0 $$$$ 2> /dev/null; do seconds=$$((seconds + 10)); \
  echo "  $$seconds s: $$(tail -n 1 .make/pip.log | cut -c -100)"; done) & \
$(BIN)/pip install --disable-pip-version-check --progress-bar off -e "$(1)" > .make/pip.log 2>&1; code=$$?; kill $$!; \
[ $$code = 0 ] || { tail -n 20 .make/pip.log; exit $$code; }
@touch $@
endef

.make/install: .make/venv pyproject.toml
	$(call INSTALL,.)

.make/test: .make/install
	$(call INSTALL,.[test])

.make/lint: .make/test
	$(call INSTALL,.[lint])

.make/docs: .make/install
	$(call INSTALL,.[docs])
