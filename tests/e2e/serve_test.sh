#!/bin/bash
# `heddle serve` as a program: it answers at its address, refuses what is not safe, keeps its jobs,
# and ends by a signal. Usage: serve_test.sh PROGRAM SAMPLE_PLUGINS
set -u
program=$(readlink -f "$1")
samples=$(readlink -f "$2")
folder=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null; rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export HOME=$folder XDG_CONFIG_HOME=$folder/config XDG_CACHE_HOME=$folder/cache XDG_STATE_HOME=$folder/state
export HEDDLE_PLUGINS=$samples
failures=0

wrong() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# start OPTIONS: a server; its port is in $port.
start() {
  rm -f out err # of the one before
  touch out err
  "$program" serve --port 0 --json --devices cpu "$@" >out 2>err </dev/null &
  pid=$!
  local left=1200
  until grep -q '"url"' out || ! kill -0 "$pid" 2>/dev/null || ((--left == 0)); do sleep 0.05; done
  port=$(sed -n 's/.*"url":"http:..127.0.0.1:\([0-9]*\)".*/\1/p' out)
  [ -n "$port" ] || wrong "serve $*: no address: $(cat out err)"
}
# stop SIGNAL
stop() {
  local code left=1200
  kill "-$1" "$pid"
  while kill -0 "$pid" 2>/dev/null && ((--left > 0)); do sleep 0.05; done
  [ $left -gt 0 ] || kill -KILL "$pid"
  wait "$pid"
  code=$?
  pid=
  [ $code -eq 0 ] || wrong "SIG$1: exit code $code: $(cat err)"
}
# ask METHOD PATH [BODY]: the answer, header and all.
ask() {
  local body=${3-}
  exec 3<>"/dev/tcp/127.0.0.1/$port" || return
  printf '%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' "$1" "$2" ${#body} "$body" >&3
  cat <&3
  exec 3<&-
}
# refused TEXT OPTIONS: exit code 2, with the text.
refused() {
  local text=$1
  shift
  HEDDLE_PORT=0 timeout 60 "$program" serve "$@" >out 2>err </dev/null
  local code=$?
  [ $code -eq 2 ] || wrong "serve $*: exit code $code, expected 2"
  grep -q -- "$text" err || wrong "serve $*: expected '$text', got $(cat err)"
}

refused "Set a key for them in HEDDLE_API_KEY" --listen 0.0.0.0
refused "Set a key for them in HEDDLE_API_KEY" --listen 127.0.0.1,::
refused "expected a port from 0 to 65535" --port 65536
unset VIRTUAL_ENV
compgen -G '/usr/local/lib/python3*/*-packages/comfyui_frontend_package' >/dev/null || refused "pip install" --front-end pip
refused "no index.html" --front-end "$folder"

umask 022
start --traces traces --output made
ask GET /system_stats | grep -q '"comfyui_version"' || wrong "no /system_stats"
ask GET /api/users | grep -q '"storage":"server"' || wrong "no /users"
prompt='{"prompt": {"1": {"class_type": "test.add", "inputs": {"a": 2, "b": 3}}, "3": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}}}}'
id=$(ask POST /prompt "$prompt" | sed -n 's/.*"prompt_id":"\([^"]*\)".*/\1/p')
[ -n "$id" ] || wrong "the prompt is not taken"
left=600
until ask GET "/history/$id" | grep -q '"status_str":"success"' || ((--left == 0)); do sleep 0.1; done
[ $left -gt 0 ] || wrong "the prompt does not end"
grep -q traceEvents "traces/$id.json" || wrong "no timeline of the job"
refused "Another process uses it" # the same queue
[ "$(stat -c %a state/heddle/queue.db)" = 600 ] || wrong "others can read the queue"
ask POST /userdata/mine.json '{}' | grep -q '^HTTP/1.1 200' || wrong "no file is kept for the user"
ask POST /prompt '{"prompt": {"1": {"class_type": "EmptyImage", "inputs": {}}, "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0]}}}}' >/dev/null
left=600
until compgen -G 'made/*.png' >/dev/null || ((--left == 0)); do sleep 0.1; done
[ -n "$(find traces state made -name '*.json')" ] || wrong "there is no file of the user's"
open=$(find traces state made -perm /077)
[ -z "$open" ] || wrong "others can read $open"
stop TERM

# What has ended is still there; a page is served from a folder.
mkdir -p page/static && echo '<html>' >page/static/index.html
start --front-end page
ask GET "/history/$id" | grep -q '"status_str":"success"' || wrong "the history is gone"
ask GET / | grep -q '<html>' || wrong "no page"
stop INT

HEDDLE_API_KEY=secret start
ask GET /queue | grep -q '^HTTP/1.1 401' || wrong "no key is asked for"
stop TERM

[ $failures -eq 0 ] || exit 1
echo "all right"
