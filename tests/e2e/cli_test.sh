#!/bin/bash
# The program as its users meet it: what it prints, its exit codes, signals and broken pipes.
# Usage: cli_test.sh PROGRAM SAMPLE_PLUGINS
# PROGRAM has the cpu plugin in its own plugin folder; SAMPLE_PLUGINS holds those of the tests.
set -u
program=$(readlink -f "$1")
samples=$(readlink -f "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export XDG_CONFIG_HOME=$folder/config XDG_CACHE_HOME=$folder/cache HEDDLE_PLUGINS=$samples
failures=0

cat >sum.json <<'END'
{"1": {"class_type": "test.add", "inputs": {"a": 2, "b": 3}},
 "2": {"class_type": "test.add", "inputs": {"a": ["1", 0], "b": 10}, "_meta": {"title": "the sum"}},
 "3": {"class_type": "test.keep", "inputs": {"value": ["2", 0]}}}
END
cat >wait.json <<'END'
{"1": {"class_type": "test.wait", "inputs": {}},
 "3": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}}}
END
cat >fail.json <<'END'
{"1": {"class_type": "test.fail", "inputs": {}},
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
  "$program" "$@" >out 2>err </dev/null
  local code=$?
  [ $code -eq "$expected" ] || { wrong "$what: exit code $code, expected $expected"; cat err; }
}
has() { grep -qF -- "$2" "$1" || { wrong "$what: '$2' is not in its $1:"; cat "$1"; }; }
has_not() { ! grep -qF -- "$2" "$1" || { wrong "$what: '$2' is in its $1:"; cat "$1"; }; }
count() {
  local found
  found=$(grep -cF -- "$3" "$2")
  [ "$found" -eq "$1" ] || { wrong "$what: '$3' is $found times in its $2, expected $1:"; cat "$2"; }
}
is_empty() { [ ! -s "$1" ] || { wrong "$what: its $1 is not empty:"; cat "$1"; }; }

# FFmpeg and the hundred libraries behind it are opened by the nodes that need them, not by every start.
LD_DEBUG=files run 0 nodes; has err "plugins/core.so"; has_not err libavcodec

# A ComfyUI folder: from the command line, the environment and the configuration; its user's workflows.
mkdir -p ui/models/loras ui/user/default/workflows ui/elsewhere config/heddle
touch ui/models/loras/put_loras_here ui/models/loras/ink.safetensors ui/elsewhere/chalk.safetensors
printf 'a:\n  loras: elsewhere\n  custom_nodes: nodes\n' >ui/extra_model_paths.yaml
sed 's/"b": 10/"b": 20/' sum.json >ui/user/default/workflows/saved.json
run 0 nodes LoraLoader --comfyui ui --json; has out chalk.safetensors; has out ink.safetensors; has_not out put_loras_here
has err "extra_model_paths.yaml:3: custom_nodes are left out"
HEDDLE_COMFYUI=ui run 0 nodes LoraLoader --json; has out ink.safetensors
printf '{"comfyui": "../../ui"}' >config/heddle/config.json
run 0 nodes LoraLoader --json; has out ink.safetensors
run 0 run saved.json --json; has out '"event":"run_done"'
rm config/heddle/config.json
run 0 nodes LoraLoader --json; has_not out ink.safetensors
run 2 run saved.json; has err "saved.json"
run 2 nodes --comfyui config; has err "--comfyui: 'config' is no ComfyUI folder"
printf 'a:\n  loras: [x\n' >ui/extra_model_paths.yaml
run 2 nodes --comfyui ui; has err "--comfyui: ui/extra_model_paths.yaml:"

# Files that a workflow says where to get are listed, in the same report as all else, and fetched when that is asked for.
printf '{"prompt": {"1": {"class_type": "no.such", "inputs": {}}}, "models": [{"name": "x.safetensors", "directory": "loras", "url": "https://127.0.0.1:1/x", "hash": "12", "hash_type": "SHA256"}]}' >lacks.json
run 2 run lacks.json; has err "no.such"; has err "loras/x.safetensors: https://127.0.0.1:1/x (SHA256 12)"
run 2 fetch lacks.json; has err "--comfyui"
run 0 fetch sum.json; has err "gives no addresses"

# What there is.
run 0 version; has out "heddle "
run 0 --help; has out "--version"
run 0 nodes; has out "test.add"
run 0 nodes test.add; has out "default 1"
run 0 nodes test.add --json; has out '"input_order"'
run 2 nodes test.ad; has err "Did you mean 'test.add'"
run 0 devices; has out "cpu:0"; has out "link to"
run 0 devices --options 'cpu={"threads": 1}'; has out "cpu:0"
run 2 devices --options 'cpus={}'; has err "no plugin brings"
run 0 devices --json; has out '"id":"cpu:0"'
run 0 plugins; has out "test.add"
run 0 plan sum.json; has out "test.keep"
run 0 plan sum.json --json; has out '"steps"'

# The same workflow as ComfyUI's interface saves it.
cat >saved.json <<'END'
{"nodes": [{"id": 1, "type": "test.add", "widgets_values": [2, 3]},
           {"id": 2, "type": "test.add", "title": "the sum", "widgets_values": [0, 10],
            "inputs": [{"name": "a", "type": "INT", "widget": {"name": "a"}, "link": 4}]},
           {"id": 3, "type": "test.keep", "inputs": [{"name": "value", "type": "INT", "link": 5}]},
           {"id": 6, "type": "Note", "widgets_values": ["nothing"]}],
 "links": [[4, 1, 0, 2, 0, "INT"], [5, 2, 0, 3, 0, "INT"]], "version": 0.4}
END
sed 's/"test.keep"/"test.lost"/' saved.json >lost.json
cat >info.json <<'END'
{"test.lost": {"input": {"required": {"value": ["INT", {"forceInput": true}]}}, "output": []}}
END
run 0 convert saved.json; cp out converted.json; has out '"a": 2'; has out '"title": "the sum"'; has_not out nothing
run 0 plan saved.json; has out "test.keep"
run 0 run --json saved.json --set 'the sum.b=20'; count 3 out '"event":"node_done"'
run 0 run --json converted.json; count 3 out '"event":"node_done"'
run 0 convert converted.json; has out '"a": 2'
run 2 convert lost.json; has err "lost.json:4:"; has err "node '3' (test.lost): nobody knows this class"
run 0 convert lost.json --object-info info.json; has out '"class_type": "test.lost"'
run 2 convert lost.json --object-info saved.json; has err "node definitions are an object"
run 2 run lost.json; has err "test.lost"
printf '\x89PNG\r\n\x1a\n\0\0' >cut.png
run 2 run cut.png; has err "cut.png: a chunk needs 4 bytes, and the file has 2 more"

# Runs.
run 0 run sum.json; has out "in all"; has err "1 test.add: done in"
run 0 run --quiet sum.json; is_empty out; is_empty err
run 0 run --json sum.json; count 3 out '"event":"node_done"'; has out '"event":"run_done"'; is_empty err
run 0 run sum.json --set test.keep.value='["1", 0]' --json; count 1 out '"event":"node_done","run":1,"node":"1"'

# Some of the outputs alone.
cat >two.json <<'END'
{"1": {"class_type": "test.add", "inputs": {"a": 3, "b": 4}},
 "2": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}, "_meta": {"title": "first"}},
 "3": {"class_type": "test.fail", "inputs": {}},
 "4": {"class_type": "test.keep", "inputs": {"value": ["3", 0]}, "_meta": {"title": "second"}}}
END
run 1 run two.json
run 0 run --json two.json --only first; count 2 out '"event":"node_done"'
run 0 plan two.json --only first; has_not out "test.fail"
run 1 run two.json --only first,4
HEDDLE_ONLY=second run 0 run two.json --only 2
run 2 run two.json --only third; has err "--only: two.json: there is no node 'third'"
run 2 run two.json --only 1; has err "node '1' (test.add) saves or shows nothing"
echo '{"only": ["first", "elsewhere"]}' >heddle.json
run 0 run two.json; has err "no node for 'elsewhere'"
rm heddle.json

# Several runs in one process, what they share computed once.
run 0 run sum.json --set 1.a=1..2 --set 'the sum.b=[3,5,8]' --json
count 6 out '"event":"run_done"'; count 14 out '"event":"node_done"'; count 4 out '"event":"node_cached"'
has out '"label":"1.a=2, the sum.b=8"'
# On several devices they run beside each other; files and reports come in the order of the runs.
sed 's/test.keep/test.save/' sum.json >save.json
run 0 run save.json --devices cpu:0,cpu:1,cpu:2 --set 1.a=1..8 --output saved
for i in 1 2 3 4 5 6 7 8; do
  [ "$(cat saved/$i)" = $((i + 13)) ] || wrong "$what: saved/$i is $(cat saved/$i)"
done
[ "$(grep -c '^run ' out)" -eq 8 ] && grep '^run ' out | sort -c || wrong "$what: reports are not in order"
run 2 run sum.json --set 1.a=3..1; has err "is empty"
run 2 run sum.json --set 1.a=1..x; has err "expects INT"

# A failed run, and a workflow or a usage that is wrong.
run 1 run fail.json; has err "it was asked to fail"
run 1 run fail.json --json; has out '"event":"error"'
run 2 run none.json; has err "No such file"
run 2 run .; has err "is a folder"
run 2 run sum.json --set 1.c=1; has err "has no input 'c'"
run 2 run sum.json --set 9.a=1; has err "there is no node '9'"
run 2 run sum.json --place 9=cpu; has err "there is no node '9'"
run 2 run sum.json --place 1=cuda; has err "there is no device 'cuda'"
run 2 run sum.json --devices cuda; has err "there is no device 'cuda'"
run 2 run sum.json --devices GPU-00112233-4455-6677-8899-aabbccddeeff; has err "there is no device 'GPU-00112233-4455-6677-8899-aabbccddeeff'"
run 0 run sum.json --devices auto --place 1=auto
run 2 run sum.json --devices cpu --options 'cpu={"count": 0}'; has err "there is no device 'cpu'"
run 2 run sum.json --modles x; has err "Did you mean '--models'"
run 2 run; has err "FILE"
run 2 rnu sum.json; has err "Did you mean 'run'"
run 2; has err "Usage"
echo '{"1": {"class_type": "test.ad", "inputs": {}}, "2": [}' >broken.json
run 2 run broken.json; has err "broken.json:1:"

# Memory that runs out while a value is made, and a node that gives nothing.
for how in 0 1 2; do
  echo '{"1": {"class_type": "test.vast", "inputs": {"how": '$how'}}, "2": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}}}' >vast.json
  run 1 run vast.json
  case $how in
    0) has err "host memory ran out while the value of an output was made" ;;
    1) has err "host memory is exhausted" ;;
    2) has err "output 0 was set to NULL" ;;
  esac
done

# A class that is not there is told once, with nodes that need it; all that is lacking is told before anything else.
{
  echo '{"0": {"class_type": "test.add", "inputs": {}}'
  for i in {1..1000}; do echo ", \"$i\": {\"class_type\": \"no.such\", \"inputs\": {}}"; done
  echo '}'
} >thousand.json
for command in plan run; do
  run 2 $command thousand.json; count 1 err "no loaded plugin brings"; has err "Other nodes that need it: '2', '3',"; has err "'17', (983 more)."
done
run 2 run thousand.json --json; count 1 out "no loaded plugin brings"
{
  echo '{"0": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}}'
  for i in {1..50}; do echo ", \"$i\": {\"class_type\": \"no.such$i\", \"inputs\": {\"name\": \"folder/$i.safetensors\"}}"; done
  echo '}'
} >fifty.json
for command in plan run; do
  run 2 $command fifty.json; count 50 err "no loaded plugin brings"; count 50 err "there is no file 'folder/"; has_not err "more"
done
# A fault that is everywhere is told some times, and counted; programs are told all of it.
{
  echo '{"0": {"class_type": "test.add", "inputs": {}}'
  for i in {1..1000}; do echo ", \"$i\": {\"class_type\": \"test.add\", \"inputs\": 5}"; done
  echo '}'
} >thousand.json
run 2 run thousand.json; has err "and 980 more"

# What cannot be opened for want of descriptors is there all the same. How many are open already is
# up to whoever calls this.
for files in {4..64}; do
  (ulimit -n $files; exec "$program" run sum.json) >out 2>err
  if grep -q '^heddle: .*open files' err; then break; fi
done
what="heddle run under ulimit -n $files"
has err "Too many open files. This process may have $files open at a time: raise that"

# Integers are told as they were written.
run 2 run sum.json --set 1.a=18446744073709551617; has err "got the integer 18446744073709551617"
run 2 run sum.json --set 1.a=-9223372036854775809; has err "got the integer -9223372036854775809"

# A fault in an option is told with the place where that was given.
HEDDLE_DEVICES=cpu:0,cuda run 2 run sum.json; has err "HEDDLE_DEVICES: there is no device 'cuda'"
run 2 run sum.json --devices cuda; has err "--devices: there is no device 'cuda'"
HEDDLE_COSTS=none.json run 2 plan sum.json; has err "HEDDLE_COSTS: none.json: No such file"
HEDDLE_BUDGET=gpu=1GiB run 2 plan sum.json; has err "HEDDLE_BUDGET: a budget is given for 'gpu'"
HEDDLE_RESERVE=gpu=1GiB run 2 plan sum.json; has err "HEDDLE_RESERVE: a reserve is given for 'gpu'"
HEDDLE_COMPUTE=gpu=f32 run 2 plan sum.json; has err "HEDDLE_COMPUTE: a compute type is given for 'gpu'"
HEDDLE_COMPUTE=cpu=fp16 run 2 plan sum.json; has err "HEDDLE_COMPUTE: opening cpu:0: option 'compute'"
HEDDLE_THREADS=4000 run 2 plan sum.json; has err "HEDDLE_THREADS: opening cpu:0: option 'threads' is 4000"
HEDDLE_OPTIONS='cpu={"threads": -1}' run 2 plan sum.json; has err "HEDDLE_OPTIONS: opening cpu:0: option 'threads'"
HEDDLE_OPTIONS='gpu={}' run 2 plan sum.json; has err "HEDDLE_OPTIONS: options are given"
HEDDLE_PLACE=1=gpu run 2 plan sum.json; has err "node '1' (test.add) / HEDDLE_PLACE: there is no device 'gpu'"
HEDDLE_PLACE=9=cpu run 2 plan sum.json; has err "HEDDLE_PLACE: "; has err "there is no node '9'"
HEDDLE_PARALLEL=1=halves run 2 plan sum.json; has err "node '1' (test.add) / HEDDLE_PARALLEL: there is no parallel mode 'halves'"
HEDDLE_SET=1.a=x run 2 plan sum.json; has err "HEDDLE_SET: node '1' (test.add), input 'a': expects INT"
HEDDLE_SET=1.c=x run 2 plan sum.json; has err "HEDDLE_SET: node '1' (test.add) has no input 'c'"
echo '{"devices": ["cpu:0",
  "cuda"], "cpu": {"threads": 1}}' >heddle.json
run 2 plan sum.json; has err "heddle.json:2:3: there is no device 'cuda'"
echo '{"cpu": {"thraeds": 1}}' >heddle.json
run 2 plan sum.json; has err "heddle.json:1:2: opening cpu:0: unknown option 'thraeds'"
echo '{"threads": 99999999999999999999}' >heddle.json
run 2 plan sum.json; has err "heddle.json:1:13: expected a number of threads"; has err "'99999999999999999999'"
rm heddle.json

# A timeline for every run; a failed one leaves it, too.
run 0 run sum.json --trace t.json
grep -q '"name":"1 test.add"' t.json || wrong "t.json does not name the nodes"
run 0 run sum.json --set 1.a=1..3 --trace u.json
[ -s u.1.json ] && [ -s u.3.json ] && [ ! -e u.json ] || wrong "$what: the files are not numbered"
run 1 run fail.json --trace f.json; [ -s f.json ] || wrong "$what: no timeline"
run 2 run sum.json --trace none/t.json; has err "there is no folder 'none'"
[ -z "$(find . -name '*.part')" ] || wrong "temporary files are left"

# The plan as a drawing.
run 0 plan sum.json --svg p.dot
grep -q 'label="test.add' p.dot || wrong "p.dot does not show the nodes"
if command -v dot >/dev/null; then
  run 0 plan sum.json --svg p.svg
  grep -q '<svg' p.svg || wrong "p.svg is no SVG"
else
  echo "no dot here: SVG is not tested"
fi
# dot gets its input and gives its output through memory: no name of a file can be an option of it.
mkdir -p bin
printf '#!/bin/sh\necho "<svg> $*"; cat\n' >bin/dot; chmod +x bin/dot
PATH=$folder/bin:$PATH run 0 plan sum.json --svg=-Tpng:x.svg
cp ./-Tpng:x.svg out; has out "digraph"; [ "$(head -n 1 out)" = "<svg> -Tsvg" ] || wrong "$what: dot was called otherwise: $(head -n 1 out)"
printf '#!/bin/sh\nexit 3\n' >bin/dot
PATH=$folder/bin:$PATH run 1 plan sum.json --svg z.svg; has err "dot could not draw the plan"
[ ! -e z.svg ] || wrong "$what: a file is left"
mkdir -p empty
PATH=$folder/empty run 2 plan sum.json --svg q.svg; has err "Debian package graphviz"
[ ! -e q.svg ] || wrong "$what: a file is left"

# What is no file is written into, and stays what it is.
ln -s /dev/null null; ln -s /dev/null null.dot; mkfifo pipe
run 0 run sum.json --trace null
run 0 run sum.json --trace null --set 1.a=1..2
run 0 plan sum.json --svg null.dot
[ -c /dev/null ] && [ -L null ] && [ -L null.dot ] && [ ! -e null.1 ] || wrong "$what: a device was replaced"
cat pipe >piped &
run 0 run sum.json --trace pipe
wait $!
[ -p pipe ] || wrong "$what: the pipe was replaced"
grep -q '"name":"1 test.add"' piped || wrong "$what: nothing came through the pipe"
run 0 run --quiet sum.json --trace /dev/stdout; has out '"name":"1 test.add"'
run 0 run --quiet sum.json --trace /dev/fd/3 3>through; cp through out; has out '"name":"1 test.add"'
[ -z "$(find . -name '*.part')" ] || wrong "temporary files are left"

# What is no file is not read, nor what is too large; a workflow may come through a pipe.
run 2 run /dev/zero; has err "/dev/zero: this is a device; a workflow has to be a regular file"
run 2 plan sum.json --costs pipe; has err "pipe: this is a pipe; a file of measured costs has to be a regular file."
truncate -s 1T large.json
run 2 run large.json; has err "large.json: it has 1099511627776 bytes or more; a workflow has at most 67108864 (64.0 MiB)"
run 2 plan sum.json --costs large.json; has err "a file of measured costs has at most"
run 0 run --quiet /dev/fd/3 3< <(cat sum.json)

# Titles and names cannot command a terminal, nor look like lines of ours.
cat >title.json <<'END'
{"1": {"class_type": "test.add", "inputs": {"a": 2, "b": 3}, "_meta": {"title": "a\u001b[2J\n9 b\u009b\u202e"}},
 "3\n4": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}}}
END
is_plain() { ! LC_ALL=C grep -qE $'\x1b|\xc2\x9b|\xe2\x80\xae|^9 b|^4 ' "$1" || { wrong "$what: its $1 holds what a title said:"; cat -v "$1"; }; }
run 0 plan title.json; is_plain out; has out '"a\x1b[2J\n9 b\u009b\u202e"'; has out 'run 3\n4 test.keep'
run 0 plan title.json --json; is_plain out; has out '"3\n4"'
run 0 run title.json --json; is_plain out; has out '\n9 b\u009b\u202e'
run 0 plan title.json --svg title.dot; is_plain title.dot
run 0 run title.json; is_plain out; is_plain err; has err 'a\x1b[2J\n9 b\u009b\u202e'
run 2 run title.json --set 1.nothing=1; is_plain err
run 2 run $'no\x1b[2J\n9 b.json'; is_plain err; has err 'no\x1b[2J\n9 b.json: No such file'

# Measured costs are written where plans find them.
run 0 tune --devices cpu:0 --costs c.json; has out '"flops_per_second"'; has err "measuring cpu:0"
cp c.json out; has out '"bytes_per_second"'
run 0 plan sum.json --costs c.json
run 2 plan sum.json --costs none.json; has err "none.json"
mkdir -p cache/heddle
echo '{"devices": 5}' >cache/heddle/costs.json
run 2 plan sum.json; has err "costs.json:1:"
rm cache/heddle/costs.json

run 0 plan sum.json --min-memory; has out "no node is known to need memory"

# Models of random weights.
run 0 bench; has out "flux-dev "
run 0 bench tiny-scenes --check --costs c.json; has out "relative error against plain loops"
run 0 bench tiny-scenes --size 64x32 --steps 2 --branches 1 --costs c.json --json --quiet; has out '"width":64,"height":32,"steps":2,"branches":1'
[ ! -s err ] || wrong "$what: --quiet is not quiet"
run 2 bench flux-def; has err "Did you mean 'flux-dev'"
run 2 bench flux-dev --size 100; has err "--size: '100' is not a size in pixels"
run 2 bench flux-dev --steps none; has err "--steps: 'none' is not a whole number above 0"

# A stack that is smaller than what kernels keep there. Below 32 KiB the dynamic loader does not always fit either.
for kilobytes in 32 64 1024; do
  run_small() { (ulimit -s $kilobytes; exec "$program" "$@"); }
  what="heddle bench under ulimit -s $kilobytes"
  run_small bench tiny-scenes --size 64x32 --steps 1 --costs c.json --json --quiet >out 2>err || { wrong "$what: exit code $?"; cat err; }
  has out '"checksum"'
  run_small run none.json >out 2>err
  [ $? -eq 2 ] || wrong "$what: no exit code 2 for a missing workflow"
done

# Budgets, from everywhere.
run 0 run sum.json --budget cpu=1GiB --reserve host=1MiB --host-budget 2GiB --pinned 10%
run 2 run sum.json --budget gpu=1GiB; has err "a budget is given for 'gpu', which is not among the devices used: cpu:0"
run 2 run sum.json --budget cpu=lots; has err "expected a size such as 14GiB"
HEDDLE_HOST_BUDGET=3GiB run 0 devices; has out "3.0 GiB"
HEDDLE_HOST_BUDGET=3GiB run 0 devices --host-budget 2GiB --json; has out '"budget":2147483648'
echo '{"budget": {"cpu:0": 1073741824}, "host-budget": "2GiB"}' >heddle.json
run 0 run sum.json

# A workflow's budget stands before a configuration file's, and behind all others.
header='{"layers.0.weight":{"dtype":"F32","shape":[4,4],"data_offsets":[0,64]}}'
{ printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"; head -c 64 /dev/zero; } >model.safetensors
cat >loop.json <<END
{"load": {"class_type": "test.load", "inputs": {"path": "$folder/model.safetensors"}},
 "x": {"class_type": "test.ramp", "inputs": {"count": 4}},
 "loop": {"class_type": "test.loop", "inputs": {"model": ["load", 0], "x": ["x", 0], "steps": 1}},
 "keep": {"class_type": "test.keep", "inputs": {"value": ["loop", 0]}}}
END
printf '{"devices": {"cpu:0": {"budget": "900MiB"}}, "prompt": %s}' "$(cat loop.json)" >allowed.json
echo '{"budget": {"cpu": 1}}' >heddle.json
run 1 run loop.json; has err "out of memory on cpu:0"
run 0 run allowed.json
sed 's/F32/I32/' model.safetensors >whole.safetensors
sed 's/model.safetensors/whole.safetensors/' loop.json >whole.json
run 1 run whole.json; has err "whole.safetensors / weight made of 'layers.0.weight' of i32: cpu:0: "; has_not err "cpu:0: cpu:0"
HEDDLE_BUDGET=cpu:0=1 run 1 run allowed.json; has err "out of memory on cpu:0"
run 1 run allowed.json --budget cpu=1; has err "out of memory on cpu:0"
rm heddle.json
mkdir -p config/heddle
echo '{"budget": {"cpu": 1}}' >config/heddle/config.json
run 0 run --quiet /dev/fd/3 3< <(cat allowed.json)
rm config/heddle/config.json

# Command line, environment, workflow, configuration: the first that says something counts.
mkdir -p config/heddle
echo '{"threads": 1, "set": {"1.a": 50}}' >config/heddle/config.json
echo '{"set": {"1.b": 60, "nobody.x": 1}, "json": true}' >heddle.json
run 0 run sum.json; has out '"event":"run_done"'; has err "no node for 'nobody.x'"
HEDDLE_JSON=0 run 0 run sum.json; has_not out "event"
HEDDLE_THREADS=x run 2 run sum.json; has err "HEDDLE_THREADS"
HEDDLE_THREADS=x run 0 run sum.json --threads 1
HEDDLE_SET=1.a=1..3 run 0 run sum.json; count 3 out '"event":"run_done"'
HEDDLE_SET=1.a=1..3 run 0 run sum.json --set 1.a=7; count 1 out '"event":"run_done"'
echo '{"set": {"1.a": "1..3"}}' >heddle.json
run 0 run --json sum.json; count 1 out '"event":"run_done"'
echo '{"threds": 1}' >heddle.json
run 2 run sum.json; has err "heddle.json:1:2: there is no option 'threds'. Did you mean 'threads'?"
rm -r heddle.json config

# The same for places, down to the automatic one.
echo '{"1": {"class_type": "test.add", "inputs": {"a": 1, "b": 2}, "device": "cpu:1"}, "2": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}}}' >placed.json
sed 's/, "device": "cpu:1"//' placed.json >free.json
both="--devices cpu:0,cpu:1,cpu:2"
echo '{"place": {"1": "cpu:2"}}' >heddle.json
# shellcheck disable=SC2086
{
  HEDDLE_PLACE=1=cpu:1 run 0 plan placed.json $both --place 1=cpu:0; has out "1 test.add on cpu:0 (hint of the node)"
  HEDDLE_PLACE=1=cpu:0 run 0 plan placed.json $both; has out "1 test.add on cpu:0 (hint of the node)"
  run 0 plan placed.json $both; has out "1 test.add on cpu:1 (hint of the node)"
  run 0 plan free.json $both; has out "1 test.add on cpu:2 (hint of the node)"
  rm heddle.json
  run 0 plan free.json $both; has out "1 test.add on cpu:0 (first device)"
  HEDDLE_PLACE=1=cpu:2,cpu:1 run 0 plan free.json $both; has out "1 test.add on cpu:2 (hint of the node)"
  run 2 plan free.json $both --place 1=cpu:9; has err "there is no device 'cpu:9'; there are: cpu:0, cpu:1, cpu:2"
  run 2 plan free.json $both --parallel 1=halves; has err "there is no parallel mode 'halves'"
  run 2 plan free.json $both --parallel 1=cfg+halves; has err "cfg+sequence"
  run 0 plan free.json $both --json; has out '"device": "cpu:0"'; has out '"seconds"'; has out '"fidelity": "exact"'
  run 0 plan free.json $both --json --fidelity rounding; has out '"fidelity": "rounding"'
  HEDDLE_FIDELITY=rounding run 0 plan free.json $both --json; has out '"fidelity": "rounding"'
  HEDDLE_FIDELITY=roughly run 2 plan free.json; has err "HEDDLE_FIDELITY: expected exact or rounding, got 'roughly'"
  echo '{"fidelity": "rounding"}' >heddle.json
  run 0 plan free.json $both --json; has out '"fidelity": "rounding"'
  rm heddle.json
  run 2 plan free.json --costs nothing.json; has err "nothing.json"
  echo '{"devices": {"a card": {"flops": 1}}}' >costs.json
  run 2 plan free.json --costs costs.json; has err "costs.json:1:25: the costs of 'a card' have no 'flops'"
  echo '{"devices": {"a card": {"flops_per_second": 1e12}}}' >costs.json
  run 0 run free.json --costs costs.json
}

# However little address space there may be: an exit code and a sentence, never a signal. From where
# the program itself is loaded to where the workflow runs, and a little further.
within() {
  local kib=$1
  shift
  what="heddle $* within $kib KiB"
  # Once more by a shell of its own: this one would tell of signals.
  (ulimit -c 0; ulimit -v "$kib"; exec timeout 60 "$program" "$@") >out 2>err </dev/null
}
kib=16384
until within $kib version || [ $kib -gt 4194304 ]; do kib=$((kib * 9 / 8)); done
done_at=0
for step in $(seq 240); do
  within $kib run loop.json --devices cpu:0 --threads 3
  code=$?
  [ $code -le 2 ] || { wrong "$what: exit code $code"; cat err; }
  [ $code -eq 0 ] || [ -s err ] || wrong "$what: it says nothing"
  [ $code -ne 0 ] || done_at=$((done_at + 1))
  [ $done_at -lt 16 ] || break
  kib=$((kib + 1500 + kib / 256))
done
[ $done_at -gt 0 ] || wrong "$what: the workflow never ran"

# A reader that goes away is no failure; a full disk is one.
what="heddle nodes --json | head -1"
"$program" nodes --json 2>err | head -1 >out
[ "${PIPESTATUS[0]}" -eq 0 ] || wrong "$what: exit code ${PIPESTATUS[0]}"
is_empty err
what="heddle nodes >/dev/full"
"$program" nodes >/dev/full 2>err && wrong "$what: succeeded"
has err "No space left on device"

# A signal stops all runs, as soon as they are under way: there are as many as devices.
cat >waits.json <<'END'
{"1": {"class_type": "test.wait", "inputs": {}},
 "2": {"class_type": "test.add", "inputs": {"a": 1, "b": ["1", 0]}},
 "3": {"class_type": "test.keep", "inputs": {"value": ["2", 0]}}}
END
for signal in INT TERM; do for count in 1 3; do
  what="heddle run waits.json, $count at once, stopped by SIG$signal"
  rm -f events && mkfifo events
  "$program" run --json waits.json --devices cpu:0,cpu:1,cpu:2 --set 2.a=1..$count >events 2>err &
  pid=$!
  waiting=0
  while read -r line; do
    [[ $line != *node_progress* ]] || waiting=$((waiting + 1))
    [[ $line != *node_progress* || $waiting -ne $count ]] || kill -$signal $pid
  done <events
  wait $pid
  code=$?
  [ $code -eq 130 ] || wrong "$what: exit code $code, expected 130"
  has err "interrupted"
done; done

[ $failures -eq 0 ] || { echo "$failures checks failed"; exit 1; }
echo "all checks passed"
