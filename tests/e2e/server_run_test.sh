#!/bin/bash
# heddle run --server: what it prints and writes, its exit codes, and what a signal does.
# Usage: server_run_test.sh PROGRAM SAMPLE_PLUGINS
set -u
program=$(readlink -f "$1")
samples=$(readlink -f "$2")
folder=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null; rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export HOME=$folder XDG_CONFIG_HOME=$folder/config XDG_CACHE_HOME=$folder/cache XDG_STATE_HOME=$folder/state
unset HEDDLE_SERVER HEDDLE_API_KEY
failures=0

cat >draw.json <<'END'
{"1": {"class_type": "EmptyImage", "inputs": {"width": 16, "height": 8, "batch_size": 1, "color": 255}},
 "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "a/x"}}}
END
cat >sum.json <<'END'
{"1": {"class_type": "test.add", "inputs": {"a": 2, "b": 3}, "_meta": {"title": "both"}},
 "3": {"class_type": "PreviewAny", "inputs": {"source": ["1", 0]}}}
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

# The coded pixels of a PNG: what it carries besides tells of the run.
pixels() {
  python3 - "$1" <<'END'
import hashlib, struct, sys
data, at, coded = open(sys.argv[1], "rb").read(), 8, b""
while at < len(data):
    size, kind = struct.unpack(">I4s", data[at:at + 8])
    coded += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
    at += size + 12
print(hashlib.sha256(coded).hexdigest())
END
}

left=1200
: >server.out
HEDDLE_PLUGINS=$samples "$program" serve --port 0 --json --devices cpu --output there --input there-in --api-key secret >server.out 2>server.err </dev/null &
pid=$!
until grep -q '"url"' server.out || ! kill -0 "$pid" 2>/dev/null || ((--left == 0)); do sleep 0.05; done
url=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' server.out)
[ -n "$url" ] || { cat server.out server.err; exit 1; }
run 2 run sum.json --server "$url"; has err "HEDDLE_API_KEY"
export HEDDLE_API_KEY=secret

# Files come here, under names that are free.
run 0 run draw.json --server "$url"; has out "^wrote output/a/x_00001_.png"; has err "1 EmptyImage: done in"; has out "in all"
cmp -s output/a/x_00001_.png there/a/x_00001_.png || wrong "the file is another one"
run 0 run draw.json --server "$url" --set 1.color=7 --quiet --output mine; [ -f mine/a/x_00002_.png ] || wrong "no file in --output"
rm there/a/*
run 0 run draw.json --server "$url" --set 1.color=8 --json; has out '"files":\["output/a/x_00002_.png"\]'
cmp -s output/a/x_00002_.png there/a/x_00001_.png || wrong "the file that was there has another one's place"

# What nodes show; several runs; only what is asked for.
run 0 run sum.json --server "$url"; has out "^3 PreviewAny: 5"; has err "1 'both' \(test.add\)"
run 0 run sum.json --server "$url" --set both.a=1..2 --set '1.b=[10]'
has out "run 1 of 2: both.a=1"; has out "^3 PreviewAny: 11"; has out "^3 PreviewAny: 12"
run 0 run sum.json --server "$url" --json --set 1.a=9
for event in run_started node_started node_done node_shows run_done; do has out "\"event\":\"$event\""; done
has out '"ui":\{"3":\{"text":\["12"\]\}\}'

# Pictures that the workflow loads are here, and go there; another one of that name stays as it is.
cp there/a/x_00001_.png before.png
mkdir -p there-in input/sub elsewhere
cp before.png there-in/mine.png
run 0 run draw.json --server "$url" --set 1.color=99 --set 2.filename_prefix=made --quiet --output elsewhere
cp elsewhere/made_00001_.png input/mine.png
cp elsewhere/made_00001_.png input/sub/same.png
cat >load.json <<'END'
{"1": {"class_type": "LoadImage", "inputs": {"image": "mine.png"}},
 "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "loaded"}}}
END
run 0 run load.json --devices cpu --output here; run 0 run load.json --server "$url" --output served
has out "^wrote served/loaded_00001_.png"
[ "$(pixels here/loaded_00001_.png)" = "$(pixels served/loaded_00001_.png)" ] || wrong "$what: it draws another picture than without a server"
cmp -s there-in/mine.png before.png || wrong "$what: somebody else's picture is gone"
cmp -s "there-in/mine (1).png" input/mine.png || wrong "$what: the picture is not there"
run 0 run load.json --server "$url" --quiet --output served; [ ! -e "there-in/mine (2).png" ] || wrong "the same picture is there twice"
run 0 run load.json --server "$url" --quiet --output served --set 1.image=sub/same.png
cmp -s there-in/sub/same.png input/sub/same.png || wrong "$what: a picture that is set is not there"
run 0 run load.json --server "$url" --quiet --output served --input there-in  # as a name of the server's
mkdir -p other && cp before.png other/only.png
run 0 run load.json --server "$url" --quiet --output served --input other --set 1.image=only.png
cmp -s there-in/only.png before.png || wrong "$what: nothing of --input is there"
run 2 run load.json --server "$url" --set 1.image=none.png; has err "none.png"

# So do folders, each under a name of its own, and what was made here.
mkdir -p input/set/3_more input/set/.hidden
cp elsewhere/made_00001_.png input/set/b.png; cp before.png input/set/3_more/a.png; cp before.png input/set/.hidden/c.png
mkdir -p there-in/other; cp before.png there-in/other/a.png
cat >set.json <<'END'
{"1": {"class_type": "LoadImageDataSetFromFolder", "inputs": {"folder": "set"}},
 "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "of"}}}
END
run 0 run set.json --server "$url" --output served; has out "^wrote served/of_00001_.png"
cmp -s there-in/set-*/b.png input/set/b.png && cmp -s there-in/set-*/3_more/a.png before.png || wrong "$what: the folder is not there"
[ ! -e there-in/set-*/.hidden ] || wrong "$what: what is hidden is there"
run 0 run set.json --server "$url" --output served --quiet; [ "$(find there-in -path '*set-*' -name '*.png' | wc -l)" = 2 ] || wrong "$what: it is there twice"
cp before.png input/set/z.png
run 0 run set.json --server "$url" --output served --quiet; [ "$(ls -d there-in/set-* | wc -l)" = 2 ] || wrong "$what: another content has no folder of its own"
run 0 run set.json --server "$url" --output served --quiet --set 1.folder=other  # the server's
for whole in . ./ './. [input]'; do  # all that is here goes nowhere: it is left as it is said
  run 2 run set.json --server "$url" --set "1.folder=$whole"; has err "there is no folder '[.]"
done
mkdir -p output/deep; cp elsewhere/made_00001_.png output/deep/mine.png
run 2 run load.json --server "$url" --set '1.image=none.png [output]'; has err "none.png"
run 0 run load.json --server "$url" --quiet --set '1.image=deep/mine.png [output]'
cmp -s there-in/deep/mine.png output/deep/mine.png || wrong "$what: the picture is not there"

# What goes wrong.
run 1 run fail.json --server "$url"; has err "heddle: .*[a-z]"
run 1 run fail.json --server "$url" --json; has out '"event":"error","code":"[a-z ]+","run":1'
run 2 run wrong.json --server "$url"; has err "no.such"
run 2 run sum.json --server "$url" --set 1.c=1; has err "'c'"
run 2 run sum.json --server "$url" --place 1=cpu; has err "--place: the server decides"
run 1 run sum.json --server http://127.0.0.1:1; has err "heddle serve"
HEDDLE_SERVER=http://127.0.0.1:1 HEDDLE_PLUGINS=$samples run 0 run sum.json --devices cpu; has out "^3 PreviewAny: 5"

# A signal cancels the job.
"$program" run wait.json --server "$url" >out 2>err </dev/null &
waits=$!
left=1200
until grep -q "test.wait: started" err || ((--left == 0)); do sleep 0.05; done
what="a run that gets a signal"
kill -INT "$waits"
wait "$waits"
code=$?
[ $code -eq 130 ] || wrong "$what: exit code $code"
has err "cancelling"
left=1200
until "$program" queue --server "$url" | grep -q "running 0" || ((--left == 0)); do sleep 0.05; done
((left > 0)) || wrong "the job still runs"

kill -TERM "$pid"
wait "$pid" || wrong "the server's exit code is $?"
pid=

[ $failures -eq 0 ] || exit 1
echo "all right"
