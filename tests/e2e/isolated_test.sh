#!/bin/bash
# The program with an isolated plugin: what a crash says, and that no worker outlives the program,
# whatever ends it: a finished run, Ctrl-C, or SIGKILL.
# Usage: isolated_test.sh PROGRAM SAMPLE_PLUGINS
set -u
program=$(readlink -f "$1")
samples=$(readlink -f "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export XDG_CONFIG_HOME=$folder/config XDG_CACHE_HOME=$folder/cache
export HEDDLE_PLUGINS=$samples:$samples/isolated HEDDLE_DEVICES=cpu
failures=0

cat >end.json <<'END'
{"end": {"class_type": "test.isolated.end", "inputs": {"how": "", "value": 1}},
 "keep": {"class_type": "test.keep", "inputs": {"value": ["end", 0]}}}
END

wrong() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
# workers_of PROGRAM: ids of the workers that it has started.
workers_of() {
  local id
  for id in /proc/[0-9]*; do
    [[ $(cat "$id/stat" 2>/dev/null) == *"(heddle_worker) "?" $1 "* ]] && basename "$id"
  done
}
# Waits until something holds; fails after a minute.
until_so() {
  local left=1200
  until "$@"; do
    ((--left > 0)) || return 1
    sleep 0.05
  done
}
has_worker() { [ -n "$(workers_of "$pid")" ]; }
# A process whose parent does not wait for it stays as a zombie.
is_gone() { ! kill -0 "$1" 2>/dev/null || [[ $(cat "/proc/$1/stat" 2>/dev/null) == *") Z "* ]]; }

# ends CODE WHAT ARGUMENT...: the program with these arguments ends so; what it says is in `said`.
ends() {
  local expected=$1 what=$2 code=0
  shift 2
  "$program" run end.json "$@" >said 2>&1 || code=$?
  [ "$code" -eq "$expected" ] || wrong "$what: exit code $code: $(cat said)"
}

ends 0 "a run" --isolate sample_isolated
ends 1 "a crash" --isolate sample_isolated --set end.how=abort
grep -q "'org.heddle.tests.isolated'.*SIGABRT" said || wrong "a crash: $(cat said)"
# Without isolation the program ends with the plugin, and says whose fault that is.
for way in null:SIGSEGV:139 abort:SIGABRT:134 exit:'exit()':3; do
  IFS=: read -r how name code <<<"$way"
  ends "$code" "a crash without isolation, by $how" --set end.how="$how"
  grep -q "node 'end' (test.isolated.end) of plugin 'org.heddle.tests.isolated' .*$name.* With --isolate org.heddle.tests.isolated" said ||
    wrong "a crash without isolation, by $how: $(cat said)"
done

echo '{"isolate": ["org.heddle.tests.isolated"]}' >heddle.json
ends 1 "a crash, by the configuration" --set end.how=exit
grep -q "exit code 3" said || wrong "a crash, by the configuration: $(cat said)"
HEDDLE_ISOLATE=sample_isolate ends 2 "a name that no plugin has"
grep -q "sample_isolate'" said || wrong "a name that no plugin has: $(cat said)"

# Who starts the program may have closed what is standard: no socket of a worker gets those numbers.
code=0
"$program" run end.json --isolate sample_isolated <&- >&- 2>&- || code=$?
[ "$code" -eq 0 ] || wrong "without input, output and errors: exit code $code"
code=0
"$program" run end.json --isolate sample_isolated <&- >said 2>&1 || code=$?
[ "$code" -eq 0 ] || wrong "without input: exit code $code: $(cat said)"

# In a container the engine may be process 1, which ends what has lost its parent elsewhere.
alone=(unshare --user --map-root-user --pid --fork --mount-proc)
if "${alone[@]}" true 2>/dev/null; then
  code=0
  "${alone[@]}" "$program" run end.json --isolate sample_isolated >said 2>&1 || code=$?
  [ "$code" -eq 0 ] || wrong "as process 1: exit code $code: $(cat said)"
else
  echo "this system gives no namespace of processes: a run as process 1 is left out"
fi

for signal in INT KILL; do
  rm -f said
  "$program" run end.json --set end.how='until cancelled' >said 2>&1 &
  pid=$!
  until_so grep -q working said || wrong "$signal: the node does not begin: $(cat said)"
  has_worker || wrong "$signal: there is no worker"
  workers=$(workers_of "$pid")
  kill -$signal "$pid"
  wait "$pid" 2>/dev/null
  for worker in $workers; do
    until_so is_gone "$worker" || wrong "$signal: a worker is left"
  done
done

[ $failures -eq 0 ] && echo "all as expected"
exit $((failures > 0))
