# Shared by the scripts of this folder: where things are kept, and how a node is asked whether it is there.
# To be sourced, not run.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${DLO_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dlo-tests}

# The one place that names versions is versions.toml. usage: version KEY
version() {
  sed -n '/^\[kafka\]/,/^\[/s/^'"$1"' *= *"\(.*\)"/\1/p' "$here/../versions.toml"
}

kafka_version=$(version version)
libs=$cache/kafka-$kafka_version/libs
producers=$cache/kafka-$kafka_version/producers

die() { echo "kafka: $*" >&2; exit 1; }

need_install() {
  [ -f "$libs/.complete" ] || die "Apache Kafka $kafka_version is not in $cache; run $here/install first"
}

# Runs one of Kafka's own programs. usage: kafka_java HEAP CLASS ARGS…
kafka_java() {
  java "-Xmx$1" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.awt.headless=true \
    "-Dlog4j2.configurationFile=$here/log4j2.properties" -cp "$libs/*" "${@:2}"
}

# Is a process with this pid file running? usage: running PIDFILE
running() { [ -f "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null; }

port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Prints the first of COUNT free ports in a row, below the range the system hands out. usage: free_ports COUNT
free_ports() {
  local count=$1 base port try
  for try in $(seq 200); do
    base=$((20000 + RANDOM % 12000))
    for ((port = base; port < base + count; port++)); do port_is_free "$port" || continue 2; done
    echo "$base"
    return
  done
  die "found no $count free ports in a row"
}

# Asks a node for its metadata (request version 0, no topics) and prints how many brokers it knows.
# The answer comes only when the node has joined its cluster and serves clients. usage: known_brokers PORT
known_brokers() {
  local answer
  answer=$(
    exec 2>/dev/null
    exec 3<>"/dev/tcp/127.0.0.1/$1" || exit
    printf '\0\0\0\x0e\0\x03\0\0\0\0\0\1\xff\xff\0\0\0\0' >&3
    timeout 2 head -c 12 <&3 | od -An -tx1 | tr -d ' \n'
  )
  [ ${#answer} -eq 24 ] && echo $((16#${answer:16:8})) || echo 0
}

# Waits up to 90 s until the node at PORT knows COUNT brokers; fails at once when its process ends.
# usage: await_node FOLDER PORT COUNT
await_node() {
  local end=$((SECONDS + 90))
  until [ "$(known_brokers "$2")" -ge "$3" ]; do
    running "$1/pid" || { tail -20 "$1/log" >&2; die "the node in $1 ended; the last lines of its log are above"; }
    [ "$SECONDS" -lt "$end" ] || { tail -20 "$1/log" >&2; die "the node in $1 did not answer within 90 s"; }
    sleep 0.1
  done
}

# Starts the node that FOLDER/server.properties describes, unless it runs. usage: launch FOLDER HEAP
launch() {
  running "$1/pid" && return
  setsid java "-Xms$2" "-Xmx$2" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto -Djava.awt.headless=true \
    "-Dlog4j2.configurationFile=$here/log4j2.properties" -cp "$libs/*" \
    kafka.Kafka "$1/server.properties" >>"$1/log" 2>&1 </dev/null &
  echo $! >"$1/pid"
}

# Formats the storage of a node once. Its output holds SCRAM keys, so it is kept out of sight.
# usage: format FOLDER [OPTIONS…]
format() {
  [ -f "$1/data/meta.properties" ] && return
  kafka_java 128m kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qg \
    -c "$1/server.properties" "${@:2}" >"$1/format.log" 2>&1 || die "formatting failed; see $1/format.log"
  rm "$1/format.log"
}
