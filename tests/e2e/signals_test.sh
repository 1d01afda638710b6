#!/bin/bash
# Ctrl-C and SIGTERM at every stage of every command: exit code 130, at once, and nothing half is
# left behind. Nothing here depends on how long anything takes, but that the program ends before
# what it waits for, which is a minute.
# Usage: signals_test.sh PROGRAM SAMPLE_PLUGINS
# SAMPLE_PLUGINS: those of the tests; in its folder `signals` is the one that sends signals.
set -u
program=$(readlink -f "$1")
samples=$(readlink -f "$2")
sender=$samples/signals/sample_signals.so
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export XDG_CONFIG_HOME=$folder/config XDG_CACHE_HOME=$folder/cache HEDDLE_PLUGINS=$samples
failures=0
declare -A number=([INT]=2 [TERM]=15)

cat >sum.json <<'END'
{"1": {"class_type": "test.add", "inputs": {"a": 2, "b": 3}},
 "3": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}}}
END
cat >deaf.json <<'END'
{"1": {"class_type": "test.deaf", "inputs": {}},
 "3": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}}}
END

wrong() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
# expect CODE: of the last process, $pid. What does not end is ended, so that a test fails and does
# not hang.
expect() {
  local code left=2000
  while kill -0 "$pid" 2>/dev/null && ((--left > 0)); do sleep 0.05; done
  [ $left -gt 0 ] || kill -KILL "$pid"
  wait "$pid"
  code=$?
  [ $code -eq "$1" ] || wrong "$what: exit code $code, expected $1"
}

[ -f "$sender" ] || wrong "$sender is not there"
commands=("run sum.json" "plan sum.json" "nodes" "devices" "plugins" "bench" "tune --costs tuned.json"
  "version" "--help")

# As soon as there is a process: before the first constructor of a library.
for signal in INT TERM; do for command in "${commands[@]}"; do
  what="heddle $command, SIG$signal while libraries are loaded"
  # shellcheck disable=SC2086
  LD_PRELOAD=$sender HEDDLE_TEST_SIGNAL=${number[$signal]} "$program" $command >out 2>err </dev/null &
  pid=$!
  expect 130
done; done

# While plugins are loaded: the options are read by then.
for signal in INT TERM; do for command in "${commands[@]}"; do
  case $command in version | --help) continue ;; esac
  what="heddle $command, SIG$signal while plugins are loaded"
  # shellcheck disable=SC2086
  HEDDLE_TEST_SIGNAL=${number[$signal]} "$program" $command --plugins "$samples/signals" >out 2>err </dev/null &
  pid=$!
  expect 130
done; done
[ ! -e tuned.json ] || wrong "heddle tune, stopped by a signal, has written something"

# A reader that does not read: the program waits for it, and for the answer's last byte.
mkfifo full
exec 7<>full
dd if=/dev/zero of=full bs=4096 oflag=nonblock 2>/dev/null
for signal in INT TERM; do for command in "run --json sum.json" "nodes" "devices --json" "plan sum.json"; do
  what="heddle $command, SIG$signal while its output is a pipe that is full"
  # shellcheck disable=SC2086
  "$program" $command >full 2>err </dev/null 7<&- &
  pid=$!
  # Writing: it sleeps in the kernel, in a write to a pipe.
  until grep -qs pipe_write "/proc/$pid/wchan" || ! kill -0 $pid 2>/dev/null ||
    [[ $(cat "/proc/$pid/syscall" 2>/dev/null) == "1 0x1 "* ]]; do sleep 0.01; done
  kill -$signal $pid
  expect 130
done; done
exec 7>&-

# A node that does not stop. The signal comes when it is at work.
for signal in INT TERM; do
  what="heddle run deaf.json, SIG$signal"
  rm -f events && mkfifo events
  "$program" run --json deaf.json --plugins "$samples" --plugins "$samples/signals" >events 2>err </dev/null &
  pid=$!
  SECONDS=0
  while read -r line; do
    [[ $line != *node_progress* ]] || kill -$signal $pid
  done <events
  expect 130
  [ $SECONDS -lt 45 ] || wrong "$what: it ended when the node did"
done

# tune, when it has begun to measure: nothing is written, under no name.
for signal in INT TERM; do
  what="heddle tune, SIG$signal while it measures"
  mkdir -p tuned
  rm -f events && mkfifo events
  "$program" tune --costs tuned/costs.json >out 2>events </dev/null &
  pid=$!
  while read -r line; do
    kill -$signal $pid
  done <events
  expect 130
  [ -z "$(ls -A tuned)" ] || wrong "$what: it has left $(ls -A tuned)"
done

[ $failures -eq 0 ] || { echo "$failures checks failed"; exit 1; }
echo "all checks passed"
