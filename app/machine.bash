# What `app/run` and `tests/run` ask of a machine, and how it gets there. Sourced, not run.

say() { printf '%s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

# What building needs, as FILE-OR-COMMAND:PACKAGE with Debian's names. librdkafka is compiled from source
# (C and C++) against the system's OpenSSL, zstd and zlib; everything else brings its own.
build_needs="gcc:gcc g++:g++ make:make perl:perl pkg-config:pkg-config /usr/include/stdlib.h:libc6-dev
  /usr/include/openssl/ssl.h:libssl-dev /usr/include/zstd.h:libzstd-dev /usr/include/zlib.h:zlib1g-dev"

# What the window opens at run time: X11 or Wayland, and OpenGL.
window_needs="lib:libX11.so.6:libx11-6 lib:libX11-xcb.so.1:libx11-xcb1 lib:libXcursor.so.1:libxcursor1
  lib:libXi.so.6:libxi6 lib:libxkbcommon-x11.so.0:libxkbcommon-x11-0 lib:libxkbcommon.so.0:libxkbcommon0
  lib:libGL.so.1:libgl1 lib:libEGL.so.1:libegl1 lib:libwayland-client.so.0:libwayland-client0
  lib:libwayland-egl.so.1:libwayland-egl1"

# install_missing WHAT NEED…: installs through apt what is not there, and says so before it does.
install_missing() {
  local what=$1 packages
  shift
  packages=$(missing "$@")
  [ -n "$packages" ] || return 0
  command -v apt-get >/dev/null ||
    fail "For $what this machine lacks (Debian's names): $packages. Please install them and run this again."
  say "Installing with apt for $what: $packages"
  as_root apt-get -qq update
  # shellcheck disable=SC2086  # The names are to be split.
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -yqq install \
    --no-install-recommends $packages >/dev/null
}

# missing NEED…: the packages of the needs that this machine does not meet, in one line.
missing() {
  local need thing
  local -A packages=()
  for need in "$@"; do
    thing=${need%:*}
    has "$thing" || packages[${need##*:}]=1
  done
  echo "${!packages[*]}"
}

# has THING: a file by its full name, a library as lib:NAME, a module of Python as py:NAME, else a command.
has() {
  case $1 in
    /*) [ -e "$1" ] ;;
    py:*) python3 -c "import ${1#py:}" >/dev/null 2>&1 ;;
    lib:*) libraries=${libraries:-$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p)}; [[ $libraries == *"${1#lib:} "* ]] ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else fail "This needs root, and there is no sudo. As root, please run: $*"; fi
}

# need_rust MANIFEST [COMPONENT…]: a cargo that is new enough for the workspace. rustup keeps several
# toolchains side by side, so one that is too old is left alone and a newer one is added.
need_rust() {
  local wanted component
  wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$1")
  [ -z "${CARGO_HOME:-}" ] && [ -d "$HOME/.cargo/bin" ] && PATH=$PATH:$HOME/.cargo/bin
  if ! cargo_is_at_least "$wanted"; then
    command -v rustup >/dev/null || install_rustup "$wanted"
    say "Installing Rust $wanted with rustup"
    rustup toolchain install "$wanted" --profile minimal >&2
    export RUSTUP_TOOLCHAIN=$wanted
  fi
  for component in "${@:2}"; do
    cargo "$component" --version >/dev/null 2>&1 && continue
    say "Installing Rust's $component with rustup"
    rustup component add "${component/fmt/rustfmt}" >&2
  done
}

cargo_is_at_least() {
  local have
  have=$(cargo --version 2>/dev/null | cut -d' ' -f2) || return 1
  [ -n "$have" ] && [ "$(printf '%s\n' "$1" "$have" | sort -V | head -1)" = "$1" ]
}

# Debian has rustup from version 13 on.
install_rustup() {
  apt-cache show rustup >/dev/null 2>&1 ||
    fail "Rust $1 or later is needed. Please install it as https://rustup.rs says, and run this again."
  install_missing "Rust" rustup:rustup
}
