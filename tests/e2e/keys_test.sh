#!/bin/bash
# `heddle key`, and a server that wants the keys that it makes: what the command prints, and what the
# commands that ask a server may do with a key of either role. Usage: keys_test.sh PROGRAM SAMPLE_PLUGINS
set -u
program=$(readlink -f "$1")
samples=$(readlink -f "$2")
folder=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null; rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export HOME=$folder XDG_CONFIG_HOME=$folder/config XDG_CACHE_HOME=$folder/cache XDG_STATE_HOME=$folder/state
unset HEDDLE_SERVER HEDDLE_API_KEY HEDDLE_API_KEYS
failures=0

cat >sum.json <<'END'
{"1": {"class_type": "test.add", "inputs": {"a": 2, "b": 3}},
 "3": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}}}
END

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

run 2 key list; has err "--api-keys FILE"
run 2 key list --api-keys keys.json; has err "keys.json"
run 2 key add ../ann --api-keys keys.json; has err "no name of a user"
run 2 key grow ann --api-keys keys.json; has err "add USER"
run 0 key add ann --api-keys keys.json; has out "^hdl_[0-9a-f]{12}_[0-9a-f]{48}$"; has err "give it to them now"
ann=$(cat out)
run 0 key add root --admin --json --api-keys keys.json; has out '"role":"admin"'
root=$(sed 's/.*"key":"\([^"]*\)".*/\1/' out)
run 0 key list --api-keys keys.json; has out "ann +user"; has out "root +admin"; has_not out "$ann"
[ "$(stat -c %a keys.json)" = 600 ] || wrong "keys.json: permissions $(stat -c %a keys.json)"
! grep -q "${ann##*_}" keys.json || wrong "keys.json has a key in it"

touch log
"$program" serve --port 0 --json --devices cpu --plugins "$samples" --api-keys keys.json >log 2>errors </dev/null &
pid=$!
left=1200
until grep -q '"url"' log || ! kill -0 "$pid" 2>/dev/null || ((--left == 0)); do sleep 0.05; done
HEDDLE_SERVER=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' log)
export HEDDLE_SERVER
[ -n "$HEDDLE_SERVER" ] || { wrong "serve: no address: $(cat errors)"; exit 1; }

run 2 ps; has err "HEDDLE_API_KEY"
export HEDDLE_API_KEY=$ann
run 0 submit sum.json --wait --json --quiet
run 2 submit sum.json --priority 1; has err "administrators"
run 2 devices drain cpu:0; has err "administrators"
run 2 queue pause; has err "administrators"
export HEDDLE_API_KEY=$root
run 0 submit sum.json --priority 1
run 0 queue pause
# The id of a key is no secret.
run 0 key remove "$(echo "$ann" | cut -d_ -f2)" --api-keys keys.json
export HEDDLE_API_KEY=$ann
run 2 ps; has err "API key"
kill -TERM "$pid"
wait "$pid" || wrong "serve: exit code $?"
pid=
[ $failures -eq 0 ]
