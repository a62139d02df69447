#!/usr/bin/env bash
# setup.sh [mesh|test|check|all]: see that this machine can build Stageload, and make it so where
# that is safe. Debian and Ubuntu: what is missing is installed by apt, and only that. macOS: the
# commands to run are printed; nothing is installed behind your back. Asking costs a tenth of a second.
set -euo pipefail

purpose=${1:-all}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# The one place where the oldest Rust is written down.
rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$here/../Cargo.toml")

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
wants() { case " $* all " in *" $purpose "*) return 0 ;; *) return 1 ;; esac; }

case $purpose in mesh | test | check | all) ;; *) die 'usage: scripts/setup.sh [mesh|test|check|all]' ;; esac

# True if `cargo` is there and at least the version in Cargo.toml.
cargo_is_new_enough() {
  local version minor
  have cargo || return 1
  version=$(cargo -V 2>/dev/null) || return 1
  version=${version#cargo 1.} minor=${version%%.*}
  [ "$minor" -ge "${rust#1.}" ] 2>/dev/null
}

rustup_hint="Install Rust with rustup: https://rustup.rs (or: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh), then open a new terminal"

# Debian's oldest supported release has Rust 1.63; its rustc-web packages, kept up for Firefox and
# Chromium, are new enough where the security updates are on.
apt_rust_is_new_enough() {
  local candidate
  candidate=$(apt-cache policy cargo-web 2>/dev/null | sed -n 's/ *Candidate: 1\.\([0-9]*\).*/\1/p')
  [ "${candidate:-0}" -ge "${rust#1.}" ]
}

# Names, one a line, of the packages that are missing for this purpose (Rust apart).
missing_packages() {
  if ! have g++ || ! have make; then echo build-essential; fi
  have pkg-config || echo pkg-config
  [ -e /etc/ssl/certs/ca-certificates.crt ] || echo ca-certificates
  have python3 || echo python3
  # One start of Python for all questions: it is the slowest thing here. pip fetches libtorch; the
  # cross check for macOS keeps its linker in a venv.
  python3 - 2>/dev/null <<'PY' || echo python3-pip python3-venv | tr ' ' '\n'
from importlib.util import find_spec
if not find_spec("pip"): print("python3-pip")
if not find_spec("ensurepip"): print("python3-venv")
PY
  # The tests hand every mesh to Khronos' own glTF validator, which is a Node program.
  if wants test; then
    have node || echo nodejs
    have npm || echo npm
    # They ask it who is stopped and who is in the terminal's foreground.
    have ps || echo procps
  fi
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif have sudo; then sudo "$@"
  else die "needs root, and there is no sudo. As root, run: $*"
  fi
}

apt_install() {
  # A developer's own packages are never removed to make room; a CI machine is nobody's own.
  local keep=(--no-remove); [ -z "${CI:-}" ] || keep=()
  say "installing by apt: $*"
  # npm alone is hundreds of packages: what apt says is shown only if it fails.
  local log; log=$(mktemp)
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends \
    -o DPkg::Lock::Timeout=600 "${keep[@]}" "$@" > "$log" 2>&1 || {
    tail -n 30 "$log" >&2
    die "apt could not install: $*. If it would have to remove packages of yours, decide and run it by hand. Its whole output: $log"
  }
  rm -f "$log"
}

setup_debian() {
  local packages=() name updated=
  while IFS= read -r name; do packages+=("$name"); done < <(missing_packages)
  refresh() { [ "$updated" ] || as_root apt-get update -qq; updated=1; }
  if [ ${#packages[@]} -gt 0 ]; then
    refresh
    apt_install "${packages[@]}"
  fi

  local rust_packages=(rustc-web cargo-web rustfmt-web rust-web-clippy)
  if ! cargo_is_new_enough; then
    say "needs Rust $rust or newer; found: $(cargo -V 2>/dev/null || echo none)"
    refresh
    apt_rust_is_new_enough || die "this system's packages have no Rust $rust. $rustup_hint."
    apt_install "${rust_packages[@]}"
    hash -r
    cargo_is_new_enough || die "an older cargo comes first in PATH: $(command -v cargo). Remove it or put /usr/bin first."
  elif wants check && ! { cargo-fmt --version && cargo-clippy --version; } >/dev/null 2>&1; then
    if have rustup; then rustup component add rustfmt clippy
    else refresh; apt_install rustfmt-web rust-web-clippy
    fi
  fi
}

setup_other() {
  # `problem WHAT COMMAND`: collected, so that one run names everything.
  local problems=0
  problem() { printf 'setup: %s\n         %s\n' "$1" "$2" >&2; problems=1; }
  if [ "$(uname -s)" = Darwin ]; then
    xcode-select -p >/dev/null 2>&1 || problem "Apple's command line tools are missing. Run:" 'xcode-select --install'
    cargo_is_new_enough || problem "Rust $rust or newer is missing. Run one of:" \
      "brew install rustup && rustup default stable    |    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
    have python3 || problem 'python3 is missing. Run:' 'brew install python3'
    if wants test && ! have npm; then problem 'Node is missing (the tests run the glTF validator). Run:' 'brew install node'; fi
  else
    cargo_is_new_enough || problem "Rust $rust or newer is missing." "$rustup_hint"
    if ! have c++; then problem 'A C++17 compiler is missing.' 'Install g++ or clang with your package manager.'; fi
    have python3 || problem 'python3 is missing.' 'Install python3 and pip with your package manager.'
    if wants test && ! have npm; then problem 'Node is missing (the tests run the glTF validator).' 'Install nodejs and npm with your package manager.'; fi
  fi
  [ "$problems" = 0 ] || exit 1
}

if have apt-get && have dpkg; then setup_debian; else setup_other; fi
