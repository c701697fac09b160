# What the scripts of a RabbitMQ node share. Sourced after servers.bash, not run.

# known_versions: as versions.toml names them, one a line.
known_versions() {
  awk '/^\[/ { inside = ($0 == "[rabbitmq]") } inside && /^"/ { gsub(/"/, "", $1); print $1 }' "$brokers/versions.toml"
}

# suite_of VERSION: the Debian suite that holds it.
suite_of() {
  local suite
  suite=$(version_of rabbitmq "\"$1\"")
  suite=${suite##*\"}
  [ -n "$suite" ] || fail "versions.toml knows no RabbitMQ $1; it knows: $(known_versions | tr '\n' ' ')"
  echo "$suite"
}

# home_of VERSION: the folder it is unpacked in.
home_of() { echo "$cache/rabbitmq-$1"; }

# erl_home DIR: the Erlang folder of the node in DIR, which remembers its version.
home_of_node() { home_of "$(cat "$1/version")"; }
