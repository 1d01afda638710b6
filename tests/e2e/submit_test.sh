#!/bin/bash
# The commands that ask a server: submit, ps, queue, models, devices --server. What they print, their
# exit codes, keys and faults. Usage: submit_test.sh PROGRAM SAMPLE_PLUGINS
set -u
program=$(readlink -f "$1")
samples=$(readlink -f "$2")
graphs=$(readlink -f "$(dirname "$0")/../../graphs")
folder=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null; rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export HOME=$folder XDG_CONFIG_HOME=$folder/config XDG_CACHE_HOME=$folder/cache XDG_STATE_HOME=$folder/state
unset HEDDLE_SERVER HEDDLE_API_KEY
failures=0

cat >sum.json <<'END'
{"1": {"class_type": "test.add", "inputs": {"a": 2, "b": 3}},
 "3": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}}}
END
cat >wait.json <<'END'
{"1": {"class_type": "test.wait", "inputs": {}},
 "3": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}}}
END
cat >fail.json <<'END'
{"1": {"class_type": "test.fail", "inputs": {}},
 "3": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}}}
END
echo '{"1": {"class_type": "no.such", "inputs": {}}}' >wrong.json

wrong() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
# run CODE ARGUMENT...: the exit code is compared; stdout and stderr are kept in out and err.
run() {
  local expected=$1
  shift
  what="heddle $*"
  timeout 120 "$program" "$@" >out 2>err </dev/null
  local code=$?
  [ $code -eq "$expected" ] || { wrong "$what: exit code $code, expected $expected"; cat out err; }
}
has() { grep -qE -- "$2" "$1" || { wrong "$what: '$2' is not in its $1:"; cat "$1"; }; }
has_not() { ! grep -qE -- "$2" "$1" || { wrong "$what: '$2' is in its $1:"; cat "$1"; }; }
lines() { [ "$(wc -l <out)" -eq "$1" ] || { wrong "$what: expected $1 lines:"; cat out; }; }

# Nobody is there: no fault of whoever asks.
for command in ps queue models "submit sum.json" "devices"; do
  # shellcheck disable=SC2086
  run 1 $command --server http://127.0.0.1:1; has err "heddle serve"
done
run 2 ps --server ftp://127.0.0.1; has err "https?://"

# start PORT: a server; its address is in HEDDLE_SERVER.
start() {
  local left=1200
  : >server.out
  HEDDLE_API_KEY=secret HEDDLE_PLUGINS=$samples "$program" serve --port "$1" --jobs 1 --json --devices cpu >server.out 2>server.err </dev/null &
  pid=$!
  until grep -q '"url"' server.out || ! kill -0 "$pid" 2>/dev/null || ((--left == 0)); do sleep 0.05; done
  HEDDLE_SERVER=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' server.out)
  export HEDDLE_SERVER
  [ -n "$HEDDLE_SERVER" ] || { cat server.out server.err; exit 1; }
}
start 0

# A key is wanted, from the environment or an option.
run 2 ps; has err "HEDDLE_API_KEY"
run 0 ps --api-key secret; has out "^id"; lines 1
export HEDDLE_API_KEY=secret

run 0 submit sum.json --wait; has out " done "; has err "node 1 \(test.add\)"
run 0 submit sum.json --wait --json --set 1.a=40
has out '"event":"submitted"'; has out '"event":"job_ended"'; has out '"state":"done"'; has out '"a":40'
run 0 submit sum.json --wait --json --background; has out '"background":true'; has out '"state":"done"'
run 1 submit fail.json sum.json --wait --quiet; has out " failed"; has out " done "; has err "."
run 2 submit wrong.json; has err "no.such"
run 2 submit absent.json; has err "absent.json"
run 2 submit; run 2 submit sum.json --priority high; has err "a whole number"
run 2 submit sum.json --set none.a=1; has err "there is no node 'none'"

# Ranges and lists make a batch, and a text that looks like one stays a text.
run 0 submit sum.json --set 1.a=1..3 --set 'test.add.b=[10,20]' --wait --quiet --json; lines 12
has out '"a":3,"b":20'; has_not out '"a":4'
run 0 submit sum.json --set 1.a=1..2 --set '1.b=[10,20]' --zip --repeats 2; lines 4
run 2 submit sum.json --set 1.a=1..3 --set '1.b=[10,20]' --zip; has err "zipped have one length"
run 2 submit sum.json --set 1.a=3..1; has err "write the smaller number first"
run 2 submit sum.json --set 1.c=1..3; has err "input 'c'"

# One runs, and the others wait behind it.
run 0 submit wait.json; running=$(cat out)
until "$program" ps | grep -q "$running *running"; do sleep 0.05; done
run 0 submit sum.json sum.json --tag t --repeats 2; lines 4
first=$(sed -n 1p out) last=$(sed -n 4p out)
run 0 submit sum.json --priority 5; high=$(cat out)
run 0 ps; lines 7
[ "$(sed -n 3s/\ .*//p out)" = "$high" ] || { wrong "the highest priority is not the first to wait"; cat out; }
has out "$running +running +0 +- .*node 1 \(test.wait\)"; has out "$high +pending +5 +- "; has out "$first +pending +0 +t +jobs that run before it: 1"
run 0 queue; has out "running 1 of 1 at a time, pending 5"
run 0 queue move "$last" --priority 9; run 0 ps
[ "$(sed -n 3s/\ .*//p out)" = "$last" ] || { wrong "the job is not moved"; cat out; }
run 0 queue move "$first" --front; run 0 ps
[ "$(sed -n 3s/\ .*//p out)" = "$first" ] || { wrong "the job is not at the front"; cat out; }
run 2 queue move "$first"; has err "--front, --back"
run 2 queue move "$running" --front; has err "is running"
run 2 queue lift "$first"; has err "there is no action 'lift'"
run 2 queue cancel; has err "--all"
run 2 queue pause none; has err "there is no job 'none'"
run 0 queue pause "$first"; has out "$first paused"
run 0 queue resume "$first"; has out "$first pending"
run 0 queue cancel "$high"; has out "$high cancelled"
run 0 queue cancel --tag t; lines 4
run 0 queue retry "$high"; again=$(sed 's/ .*//' out); has_not out "$high"
run 0 queue retry "$high" --from-start --json; has out '"from_start":true'
run 0 queue cancel "$(sed 's/^{"id":"\([^"]*\)".*/\1/' out)"; has out "cancelled$"
run 0 queue pause; has out "the queue is paused"
run 0 queue cancel --all --but-running; has out "$again cancelled"; lines 1
run 0 queue cancel --all; has out "$running cancelling"
run 0 queue resume; has_not out "paused; the queue"
until "$program" queue | grep -q "running 0"; do sleep 0.05; done
run 0 queue delete "$high"; run 2 queue delete "$high"; has err "there is no job"

# Whoever waits for a job goes on waiting while the server is killed and comes back.
run 0 queue pause
: >waited
timeout 120 "$program" submit sum.json --wait >waited 2>waited.err </dev/null &
waits=$!
until grep -q . waited; do sleep 0.05; done
kill -KILL "$pid"
wait "$pid" 2>/dev/null
start "${HEDDLE_SERVER##*:}"
run 0 queue; has out "the queue is paused"
run 0 queue resume
wait "$waits" || wrong "submit --wait over a restart: $(cat waited waited.err)"
grep -q " done " waited || wrong "submit --wait over a restart: $(cat waited)"

run 0 models; has out "^device"
run 0 models unload; has out "given back"
run 2 models load; has err "unload MODEL"
# Loaded ahead by its folder, or by a workflow; pinned, it stays when all else goes.
run 0 models load diffusers/tiny-scenes cpu:0; has out "^cpu:0 .* no +flux "; has out "^cpu:0 .* no +t5 "
run 0 models pin flux cpu:0; has out " yes +flux "
run 0 models unload; run 0 models; has out " yes +flux "; has_not out " t5 "
run 0 models unpin flux cpu:0; has out " no +flux "
run 0 models unload flux cpu:0; has out "given back: [1-9]"; run 0 models; lines 1
run 0 models load "$graphs/scene.json" cpu --json; has out '"pinned":false'
run 2 models pin none cpu:0; has err "no model 'none'"
run 2 models load vae/none.safetensors cpu:0; has err "there is no file 'none.safetensors'"
run 2 models load diffusers/tiny-scenes cuda:7; has err "no device 'cuda:7'"
run 0 devices; has out "cpu:0 +cpu"; has out "jobs"
run 0 devices --json; has out '"devices":\[\{"id":"cpu:0"'
run 0 devices disable cpu:0; has out "cpu:0 disabled"
run 0 devices; has out "cpu:0 .* disabled "
run 0 devices enable cpu:0; has out "cpu:0 enabled"
run 2 devices drain; has err "the id of a device"
run 2 devices drain none; has err "there is no device 'none'"
unset HEDDLE_SERVER
run 2 devices drain cpu:0; has err "--server"

kill -TERM "$pid"
wait "$pid" || wrong "the server's exit code is $?"
pid=

[ $failures -eq 0 ] || exit 1
echo "all right"
