# `make mesh` and `make test` are all one needs; `make` lists the rest.
#
# Written for GNU make 3.81, which is what macOS has, and for paths with spaces: values go to the
# recipes through the environment and are quoted there, and no prerequisite holds a path.
#
# No linker is chosen here. rustup's Rust already links with its own lld on x86_64 Linux, a link takes
# a few seconds anyway, and flags that only make sets would rebuild everything at the next plain cargo.

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

IMAGE ?= crates/stageload-mesh/samples/coffee.png
OUT ?=
FLAGS ?=

# Where builds go: CARGO_TARGET_DIR if set, else the cache folder if someone made one (it outlives a
# fresh clone), else target/ as for plain cargo.
CACHE := $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/stageload
ifeq ($(CARGO_TARGET_DIR),)
  BUILD := $(shell if [ -d "$(CACHE)" ]; then echo "$(CACHE)/target"; else echo "$(CURDIR)/target"; fi)
else
  BUILD := $(if $(filter /%,$(firstword $(CARGO_TARGET_DIR))),$(CARGO_TARGET_DIR),$(CURDIR)/$(CARGO_TARGET_DIR))
endif

# A LIBTORCH from outside is used as it is and never written to. Ours must be spelt as
# .cargo/config.toml gives it to plain cargo, or the two would rebuild torch-sys in turns.
ifeq ($(origin LIBTORCH),undefined)
  LIBTORCH := $(BUILD)/libtorch
  OWN_LIBTORCH := 1
endif

export IMAGE OUT BUILD LIBTORCH OWN_LIBTORCH
export CARGO_TARGET_DIR := $(BUILD)
# rustup puts cargo here; a shell that has not seen its profile yet does not know.
export PATH := $(PATH):$(HOME)/.cargo/bin
# OpenMP's threads shall sleep while they wait: tests run side by side, and spinning ones starve them.
export OMP_WAIT_POLICY := passive
export STAGELOAD_PHOTOS := $(BUILD)/photos
export STAGELOAD_GLTF_VALIDATOR := $(BUILD)/gltf-validator

# A line that says what begins.
say = printf '\033[1m==>\033[0m %s\n'
# The picture's path, with a ~ that the caller's shell left alone.
picture = image=$$IMAGE; case $$image in '~/'*) image=$$HOME/$${image:2} ;; esac
# nextest where it is installed, else cargo's own runner. nextest leaves doc tests to cargo.
test_run = if command -v cargo-nextest >/dev/null; then \
	  cargo nextest run --no-fail-fast --no-tests pass $(1); \
	else cargo test --no-fail-fast $(1); fi

.PHONY: help mesh test check check-link fuzz bench app clean
.PHONY: picture setup-mesh setup-test setup-check libtorch photos validator
# The steps are in order, and cargo uses the cores.
.NOTPARALLEL:

help:
	@echo 'make mesh IMAGE=photo.jpg   make a textured mesh of one picture (default: the sample)'
	@echo '     OUT=mesh.glb           where to (default: out/<name of the picture>.glb)'
	@echo "     FLAGS='--help'         more for \`stageload mesh\`; --help lists it"
	@echo 'make test                   run every test'
	@echo 'make check                  format, lints, docs, and a type-check for macOS'
	@echo 'make check-link             link for macOS as well (downloads 0.2 GB once)'
	@echo 'make fuzz                   feed the readers of traces and of /proc with anything, a minute each'
	@echo 'make bench                  measure, and write bench/RESULTS.md'
	@echo '     PART=guard             only the guard (or only the mesh)'
	@echo 'make app                    not there yet'
	@echo 'make clean                  remove what was built, but no mesh'
	@echo
	@echo "builds go to $$BUILD"

setup-mesh setup-test setup-check:
	@scripts/setup.sh $(@:setup-%=%)

libtorch:
	@[ -z "$$OWN_LIBTORCH" ] || scripts/get-libtorch.sh "$$LIBTORCH"

mesh: picture setup-mesh libtorch
	@$(say) 'building (some minutes the first time, seconds after)'
	@cargo build --release -p stageload-cli -p stageload-mesh
	@$(picture); name=$${image##*/}; out=$${OUT:-out/$${name%.*}.glb}; \
	mkdir -p "$$(dirname "$$out")"; \
	$(say) "$$image -> $$out"; \
	"$$BUILD/release/stageload" mesh "$$image" -o "$$out" $(FLAGS)

# The picture is looked for first: a typing mistake should not cost a build.
picture:
	@$(picture); [ -f "$$image" ] || { echo "make mesh: no such picture: $$image" >&2; exit 1; }

# What needs no libtorch first: it is quick, and the rest stands on it. A failure there does not keep
# the other half from being run; the exit code tells of both.
test: setup-test libtorch photos validator
	@failed=0; \
	$(say) 'tests: core, library, command'; \
	$(call test_run,-p stageload-core -p stageload -p stageload-cli) || failed=1; \
	$(say) 'tests: models on libtorch, meshes'; \
	$(call test_run,-p stageload-torch -p stageload-mesh) || failed=1; \
	if command -v cargo-nextest >/dev/null; then \
	  $(say) 'tests: examples in the documentation'; \
	  cargo test --workspace --doc -q || failed=1; \
	fi; \
	exit $$failed

photos:
	@python3 scripts/sample-photos.py "$$STAGELOAD_PHOTOS"

validator:
	@[ -d "$$STAGELOAD_GLTF_VALIDATOR/node_modules/gltf-validator" ] || { \
	  $(say) 'fetching the glTF validator'; \
	  mkdir -p "$$STAGELOAD_GLTF_VALIDATOR" && \
	  npm install --silent --no-audit --no-fund --no-save --prefix "$$STAGELOAD_GLTF_VALIDATOR" \
	    gltf-validator@2.0.0-dev.3.10; }

check: setup-check libtorch
	@$(say) 'format'; cargo fmt --all --check
	@$(say) 'lints'; cargo clippy --workspace --all-targets -- -D warnings
	@$(say) 'documentation'; RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --lib
	@if [ "$$(uname -s)" = Darwin ]; then $(say) 'this is a Mac: no cross check needed'; \
	elif ! command -v apt-get >/dev/null; then \
	  $(say) "macOS type-check SKIPPED: it needs Debian's Rust packages (scripts/mac)"; \
	else $(say) 'type-check and lints for macOS'; scripts/mac/check.sh; fi

check-link: setup-check
	@$(say) 'linking for macOS'; scripts/mac/link.sh

fuzz:
	@$(say) 'fuzzing'; scripts/fuzz.sh

bench: setup-test $(if $(filter guard,$(PART)),,libtorch photos validator)
	@PART='$(PART)' bench/run.sh

app:
	@echo 'make app is not there yet; see CHANGELOG' >&2; exit 1

clean:
	@$(say) 'removing what was built; out/ and its meshes stay'
	@cargo clean -q -p stageload-core -p stageload -p stageload-cli -p stageload-torch -p stageload-mesh
	@[ -z "$$OWN_LIBTORCH" ] || rm -rf "$$LIBTORCH"
	@rm -rf "$$STAGELOAD_PHOTOS" "$$STAGELOAD_GLTF_VALIDATOR"
