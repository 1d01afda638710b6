#!/bin/bash
# Everything there is to check of the cuda plugin on one machine with a GPU, in one call:
#
#   tests/bench/cuda_check.sh BUNDLE [RESULTS [PART...]]     BUNDLE: from cuda_bundle.sh; RESULTS: a folder for logs and pictures
#
# Parts, all of them where none is named:
#   conformance  all ops in bf16, fp16 and f32, of every storage type, against the reference
#   pictures     ten of them against the CPU's in f32, in dB, and twice, byte by byte
#   streaming    one with 0.3 of the weights on the device, byte by byte against one with all of them there
#   split        one by two GPUs, in layers and set by set, byte by byte against one GPU's; left out where there is but one
#   idle_card    what a card holds of ours that is open, and, beyond the driver's own, that is drained or has no work: less than 1 MiB
#   ptx          conformance, pictures and speed with kernels that the driver compiles from PTX of 8.0, as on cards that there is no
#                machine code for; the bundle's ptx/cuda.so, which is compiled where it is missing
#   lacks        conformance with what a card of 8.6 lacks
#   speed        the rates of the largest ops beside PyTorch's
#   memory       compute-sanitizer over the ops: memcheck, and racecheck of our own kernels
# Each check says PASS or FAIL in a line of its own; what it printed stands in RESULTS. Ends with the number of those that failed.
set -u
cd "$(dirname "$0")/../.."
root=$PWD
bundle=$(realpath "$1")
results=${2:-$bundle/results}
parts=" ${*:3} "
[ -n "${parts// /}" ] || parts=' conformance pictures streaming split idle_card ptx lacks speed memory '
mkdir -p "$results"
results=$(realpath "$results")
export LD_LIBRARY_PATH=$bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PATH=$PATH:/usr/local/cuda/bin
failed=0
wanted() { [[ $parts == *" $1 "* ]]; }
part() { # NAME COMMAND...: runs it, keeps what it prints. NAME?: what it finds is for information
  local name=${1%\?} begin=$SECONDS information=
  [ "$name" = "$1" ] || information=yes
  shift
  if timeout 300 "$@" > "$results/$name.log" 2>&1; then
    echo "PASS $name ($((SECONDS - begin)) s)"
  elif [ -n "$information" ]; then
    echo "INFO $name (exit $?, $((SECONDS - begin)) s): $(grep -c 'error: in' "$results/$name.log") findings in $name.log, nothing that is promised"
  else
    echo "FAIL $name (exit $?, $((SECONDS - begin)) s): last lines of $name.log:"
    tail -n "${LINES_SHOWN:-25}" "$results/$name.log" | cut -c1-400
    failed=$((failed + 1))
    return 1
  fi
}

nvidia-smi --query-gpu=name,uuid,memory.total,driver_version --format=csv,noheader
gpus=$(nvidia-smi -L | wc -l)

# ---- compile what the bundle lacks ----
header=$(find -L /usr/local/cuda /usr/include /opt -name cublasLt.h 2> /dev/null | head -1)
cudnn_header=$(find -L /usr/local/cuda /usr/include /opt -name cudnn_backend.h 2> /dev/null | head -1)
export cudnn_header NVCC_INCLUDES="-I. -Isdk/include ${header:+-I$(dirname "$header")} ${cudnn_header:+-I$(dirname "$cudnn_header") -DHEDDLE_WITH_CUDNN} -I$(dirname "$(dirname "$(realpath "$(command -v nvcc)")")")/include"
objects=$bundle/objects
mkdir -p "$objects"
export objects bundle
# As plugins/CMakeLists.txt does it for HEDDLE_CUDA_ARCHITECTURES=90, or =ptx where CODE is 0.
export CODE=90
compile() {
  local object=$objects/$(echo "$1" | tr / _).o gencode=-gencode=arch=compute_80,code=compute_80
  [ "$CODE" = 0 ] || case $1 in
    */attention_fp8.cu | */conv_hopper.cu) gencode="-gencode=arch=compute_90a,code=sm_90a" ;;
    */scaled_fp8.cu | */widen.cu | */weight.cu | */copy.cu) gencode="$gencode -gencode=arch=compute_$CODE,code=sm_$CODE" ;;
    *) gencode="-gencode=arch=compute_80,code=[compute_80,sm_$CODE]" ;;
  esac
  case $1 in
    *.cu) nvcc -std=c++20 -O2 $gencode --expt-relaxed-constexpr \
      -Xcompiler -fPIC,-fvisibility=hidden,-Wall $NVCC_INCLUDES -c "$1" -o "$object" ;;
    *) g++ -std=c++20 -O2 -DHEDDLE_CUDA_CODE=0,$CODE -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -Wall -Wextra -Wno-missing-field-initializers \
      $NVCC_INCLUDES -c "$1" -o "$object" ;;
  esac > "$object.log" 2>&1 || { echo "=== $1"; grep -E -A6 'error|fatal' "$object.log" | head -40; return 1; }
}
sources() {
  case $1 in
    cpu) ls plugins/cpu/*.cpp | grep -v /onednn_ ;;
    cuda) ls plugins/cuda/*.cpp plugins/cuda/*.cu plugins/cpu/op_check*.cpp | if [ -n "$cudnn_header" ]; then cat; else grep -v /cudnn_; fi ;;
  esac
}
build() { # PLUGIN LINKER...
  local plugin=$1
  shift
  mkdir -p "$objects" "$(dirname "${library:-$bundle/plugins/$plugin.so}")"
  sources "$plugin" | xargs -P "$(nproc)" -I{} bash -c 'compile {}' || return 1
  "$@" -o "${library:-$bundle/plugins/$plugin.so}" $(sources "$plugin" | tr / _ | sed "s|^|$objects/|; s|$|.o|") -ldl -lrt -lpthread
}
export -f compile sources build
[ -f "$bundle/plugins/cpu.so" ] ||
  LINES_SHOWN=150 part compile_cpu bash -c "build cpu g++ -shared -Wl,--no-undefined -Wl,--version-script=sdk/plugin.map" || exit 1
[ -f "$bundle/plugins/cuda.so" ] ||
  LINES_SHOWN=150 part compile_cuda bash -c "build cuda nvcc -shared -cudart static -Xlinker --no-undefined -Xlinker --version-script=sdk/plugin.map" || exit 1

# ---- conformance ----
check=("$bundle/conformance" test --plugin "$bundle/plugins/cuda.so" --oracle "$bundle/plugins/cpu.so"
  --goldens tests/conformance/goldens.safetensors --complete yes --seed 1)
# Not promised by this device: that work behind a failure is skipped, and that an item's bytes are the same alone and in a batch.
promised='!devices/a_failure_comes_out_of_wait_with_the_name_of_the_op_and_later_work_is_skipped:!cases/bytes_of_an_item*'
[ "$gpus" -gt 1 ] || promised="$promised:!devices/two_devices*:!links/a_link_says*"
# A matrix in blocks is widened to the type to compute with, so its numbers come out exactly in f32 alone.
rounded='!blocks/every_block_format*'
if wanted conformance; then
  part conformance_bf16 "${check[@]}" -- "--run_test=$promised:$rounded"
  part conformance_fp16 "${check[@]}" --option compute=fp16 -- "--run_test=$promised:$rounded"
  part conformance_f32 "${check[@]}" --option compute=f32 -- "--run_test=$promised"
  part conformance_cudnn_bf16 "${check[@]}" --option cudnn_flops=0 -- "--run_test=$promised:$rounded"
  part conformance_cudnn_fp16 "${check[@]}" --option cudnn_flops=0 --option compute=fp16 -- "--run_test=$promised:$rounded"
  for type in bf16 fp16; do # our own product for all convolutions that it can do, however small
    part "conformance_hopper_$type" "${check[@]}" --option cudnn_flops=0 --option hopper_percent=0 --option compute=$type --only conv -- "--run_test=$promised:$rounded"
  done
  part conformance_plain "${check[@]}" --option compute=f32 --option kernels=reference -- "--run_test=$promised"
  part int8_by_cublaslt bash -c '"$@" 2>&1 | tee /dev/stderr | grep -q "by cublaslt i8"' int8 "${check[@]}" -- --run_test=int8 --log_level=message
  part support "$bundle/conformance" support --plugin "$bundle/plugins/cuda.so"
  part 'batch_bytes?' "${check[@]}" -- '--run_test=cases/bytes_of_an_item*'
fi

# ---- pictures ----
work=$(mktemp -d)
mkdir "$work/graphs"
cp -r graphs/* "$work/graphs/"
draw() { # NAME GRAPH OPTION...: draws into results/NAME/
  local name=$1 graph=$2
  shift 2
  rm -rf "${results:?}/$name"
  (cd "$work" && "$bundle/heddle" run "graphs/$graph.json" --plugins "$bundle/plugins" --cache none --models "$work/graphs/models" --output "$results/$name" "$@")
}
plan() { # GRAPH OPTION...
  local graph=$1
  shift
  (cd "$work" && "$bundle/heddle" plan "graphs/$graph.json" --plugins "$bundle/plugins" --cache none --models "$work/graphs/models" "$@")
}
export -f draw plan
export work results
same() { part "same_$2" python3 "$work/same.py" "$results/$1" "$results/$2"; }
cat > "$work/same.py" << 'P'
import pathlib
import sys
import numpy
from PIL import Image
first, second = (sorted(pathlib.Path(name).glob("*.png")) for name in sys.argv[1:3])
assert len(first) == len(second) > 0, (first, second)
for one, other in zip(first, second):
    a, b = (numpy.asarray(Image.open(name)).astype(int) for name in (one, other))
    assert numpy.array_equal(a, b), f"{one} and {other} differ in {(a != b).mean():.1%} of their numbers, by {abs(a - b).max()} at most"
P
cat > "$work/decibel.py" << 'P'
import pathlib
import sys
import numpy
from PIL import Image
first, second = (sorted(pathlib.Path(name).glob("*.png")) for name in sys.argv[1:3])
worst = 100.0
assert len(first) == len(second) > 0, (first, second)
for one, other in zip(first, second):
    a, b = (numpy.asarray(Image.open(name).convert("RGB"), dtype=numpy.float64) for name in (one, other))
    decibel = 10 * numpy.log10(255**2 / max(((a - b) ** 2).mean(), 1e-12))
    worst = min(worst, decibel)
    print(f"{decibel:.1f}", end=" ")
print(f"dB over {len(first)} pictures; the worst {worst:.1f}")
sys.exit(0 if worst >= 38 else 1)
P
if wanted pictures; then
  prompts=("a red house on the left and a pine tree on the right on green grass, a sunny day with a yellow sun"
    "a snowman in the middle in the snow, a starry night sky with a full moon"
    "a yellow sailboat in the middle on the sea, sunset with a yellow sun"
    "a blue castle in the middle in a meadow under a clear blue sky"
    "a lighthouse on the left and a white sailboat on the right at sea, a cloudy sky"
    "a cactus in the middle in the desert, night with a crescent moon"
    "a pink rocket on the left and a blue tent on the right on the sand, a starry night sky"
    "a whale in the middle on the sea, a sunny day with a yellow sun"
    "an orange mushroom on the left and a round tree on the right on green grass, a sunset sky"
    "A Purple balloon, high over: snow & sand?!")
  draw_ten() { # NAME OPTION...
    local name=$1 prompt number=0
    shift
    for prompt in "${prompts[@]}"; do
      number=$((number + 1))
      draw one_of_ten scene --set "prompt.text=$prompt" --set "sampler.seed=$number" "$@" || return 1
      mkdir -p "$results/$name"
      mv "$results"/one_of_ten/*.png "$results/$name/$(printf %02d $number).png"
    done
  }
  rm -rf "$results"/pictures_*
  export -f draw_ten
  ten() { part "draw_$1" bash -c "$(declare -p prompts); draw_ten \"\$@\"" draw_ten "$@"; }
  ten pictures_cpu --devices cpu:0 --compute cpu=f32
  ten pictures_cuda --devices cuda:0
  ten pictures_again --devices cuda:0
  same pictures_cuda pictures_again
  part draw_range bash -c 'draw "$@"' draw range scene --devices cuda --set sampler.seed=1..6
  part draw_range_again bash -c 'draw "$@"' draw range_again scene --devices cuda:0 --set sampler.seed=1..6
  same range range_again
  part decibel python3 "$work/decibel.py" "$results/pictures_cpu" "$results/pictures_cuda"
  cat "$results/decibel.log"
fi

# ---- streaming ----
# The sampler has the GPU for itself, and of it 0.3 of its weights' bytes and some room to work in.
stream() { # NAME GRAPH WEIGHTS OPTION...
  local name=$1 graph=$2 budget=$(($3 * 3 / 10 + (8 << 20)))
  local on=(--devices cuda:0,cpu:0 --place prompt=cpu:0 --place 'negative prompt=cpu:0' --place sampler=cuda:0 --place decode=cpu:0 "${@:4}")
  part "draw_resident_$name" bash -c 'draw "$@"' draw "resident_$name" "$graph" "${on[@]}"
  part "draw_streamed_$name" bash -c 'draw "$@"' draw "streamed_$name" "$graph" "${on[@]}" --budget "cuda:0=$budget"
  same "resident_$name" "streamed_$name"
  part "plan_streamed_$name" bash -c 'plan "$@" | tee /dev/stderr | grep -q "through a staging ring"' plan "$graph" "${on[@]}" --budget "cuda:0=$budget"
  grep -h -E 'through a staging ring' "$results/plan_streamed_$name.log" | sort -u
}
if wanted streaming; then
  stream scene scene $(($(stat -c %s graphs/models/diffusers/tiny-scenes/transformer/*.safetensors | paste -sd+)))
  if [ -x "$bundle/low_memory_model" ]; then
    "$bundle/low_memory_model" "$work/graphs/models"
    low=$(stat -c %s "$work/graphs/models/diffusion_models/low_memory.safetensors")
    stream low_memory low_memory "$low"
    stream low_memory_fp8 low_memory $((low / 2)) --set model.weight_dtype=fp8_e4m3fn
    part decibel_fp8? python3 "$work/decibel.py" "$results/resident_low_memory" "$results/resident_low_memory_fp8"
    cat "$results/decibel_fp8.log"
  fi
  # Everything on the GPU, which has no more than the least that the plan says it needs.
  plan scene --devices cuda:0 --min-memory > "$results/least.log" 2>&1
  least=$(plan scene --devices cuda:0 --min-memory --json 2> /dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["min_bytes"])')
  head -5 "$results/least.log"
  part draw_all bash -c 'draw "$@"' draw all_resident scene --devices cuda:0
  part draw_least bash -c 'draw "$@"' draw all_least scene --devices cuda:0 --budget "cuda:0=$least"
  same all_resident all_least
fi

# ---- two GPUs ----
if wanted split && [ "$gpus" -gt 1 ]; then
  on=(--devices cuda:0,cuda:1 --place prompt=cuda:1 --place sampler=cuda:0 --place decode=cuda:0)
  part draw_one bash -c 'draw "$@"' draw one scene --devices cuda:0
  for split in layers cfg; do
    part "draw_$split" bash -c 'draw "$@"' draw "$split" scene "${on[@]}" --parallel "sampler=$split"
    same one "$split"
    plan scene "${on[@]}" --parallel "sampler=$split" > "$results/plan_$split.log" 2>&1
    grep -E 'sampler' "$results/plan_$split.log" | head -3
  done
  # Another form: other roundings, but the same on every repeat.
  for split in sequence tensor; do
    part "draw_$split" bash -c 'draw "$@"' draw "$split" scene "${on[@]}" --parallel "sampler=$split"
    part "draw_${split}_again" bash -c 'draw "$@"' draw "${split}_again" scene "${on[@]}" --parallel "sampler=$split"
    same "$split" "${split}_again"
    part "decibel_$split" python3 "$work/decibel.py" "$results/one" "$results/$split"
    cat "$results/decibel_$split.log"
  done
  part draw_streamed_layers bash -c 'draw "$@"' draw streamed_layers scene "${on[@]}" --parallel sampler=layers --budget cuda:1=14MiB
  same one streamed_layers
fi

# ---- a card that has nothing to do ----
if wanted idle_card; then
  part idle_card env -C "$work" python3 "$root/tests/bench/idle_card.py" "$bundle/lib/libheddle.so" "$bundle/plugins" graphs/scene.json "$work/graphs/models"
  cat "$results/idle_card.log"
fi

# ---- PTX ----
if wanted ptx; then
  [ -f "$bundle/ptx/cuda.so" ] || LINES_SHOWN=150 part compile_ptx env CODE=0 objects="$bundle/objects_ptx" library="$bundle/ptx/cuda.so" \
    bash -c "build cuda nvcc -shared -cudart static -Xlinker --no-undefined -Xlinker --version-script=sdk/plugin.map"
  cp "$bundle"/plugins/*.so "$work/" && mkdir -p "$work/plugins_ptx" && mv "$work"/*.so "$work/plugins_ptx/" && cp "$bundle/ptx/cuda.so" "$work/plugins_ptx/cuda.so"
  export CUDA_FORCE_PTX_JIT=1 CUDA_CACHE_PATH=$work/jit CUDA_CACHE_MAXSIZE=4294967296
  ptx=("${check[@]}")
  ptx[3]=$bundle/ptx/cuda.so
  draw_ptx() { (cd "$work" && "$bundle/heddle" run graphs/scene.json --plugins "$work/plugins_ptx" --cache none --models "$work/graphs/models" --output "$results/$1" "${@:2}"); }
  export -f draw_ptx
  rm -rf "$results"/ptx_cuda "$results"/ptx_cpu
  part draw_ptx bash -c 'draw_ptx "$@"' draw_ptx ptx_cuda --devices cuda:0 --set sampler.seed=1..3
  part draw_ptx_cpu bash -c 'draw "$@"' draw ptx_cpu scene --devices cpu:0 --compute cpu=f32 --set sampler.seed=1..3
  part decibel_ptx python3 "$work/decibel.py" "$results/ptx_cpu" "$results/ptx_cuda"
  # Most of the time the driver compiles, on one core of a process: so there is a process for each suite.
  suites() { # NAME SKIPPED OPTION...: all suites side by side, each with a log of its own
    local name=$1 skipped=$2 suite failures=0
    local -A processes=()
    shift 2
    for suite in $("${ptx[@]}" -- --list_content 2>&1 | sed -n 's/^\([a-z][a-z0-9_]*\)\*$/\1/p'); do
      "${ptx[@]}" "$@" -- "--run_test=$suite:$skipped" > "$results/${name}_$suite.log" 2>&1 &
      processes[$suite]=$!
    done
    [ "${#processes[@]}" -gt 0 ] || { echo "no suites"; return 1; }
    for suite in "${!processes[@]}"; do
      wait "${processes[$suite]}" || { failures=$((failures + 1)); echo "== $suite"; tail -n 8 "$results/${name}_$suite.log"; }
    done
    return "$failures"
  }
  export -f suites
  all_suites() { part "$1" bash -c "$(declare -p ptx); suites \"\$@\"" suites "$@"; }
  all_suites ptx_conformance_bf16 "$promised:$rounded"
  all_suites ptx_conformance_f32 "$promised" --option compute=f32
  part speed_ptx "$bundle/conformance" speed --plugin "$bundle/ptx/cuda.so" --seed 1
  cat "$results/decibel_ptx.log" "$results/speed_ptx.log"
  (cd "$work" && "$bundle/heddle" devices --plugins "$work/plugins_ptx" --devices cuda:0) | tee "$results/devices_ptx.log"
  unset CUDA_FORCE_PTX_JIT
fi

# ---- a card that lacks something ----
if wanted lacks; then
  part as_8.6_bf16 "${check[@]}" --option behave_as=86 -- "--run_test=$promised:$rounded"
  part as_8.6_f32 "${check[@]}" --option behave_as=86 --option compute=f32 -- "--run_test=$promised"
fi

# ---- speed ----
speed() {
  "$bundle/conformance" speed --plugin "$bundle/plugins/cuda.so" --seed 1 && python3 tests/bench/cuda_peer.py
}
export -f speed
if wanted speed; then
  (cd "$work" && part tune "$bundle/heddle" tune --plugins "$bundle/plugins" --devices cuda --costs "$results/costs.json")
  part speed bash -c speed
  cat "$results/speed.log"
fi

# ---- memory ----
if wanted memory; then
  if command -v compute-sanitizer > /dev/null; then
    part memcheck compute-sanitizer --error-exitcode 9 "${check[@]}" --option cudnn_flops=67108864 -- '--run_test=cases/every_kernel*'
    part memcheck_f32 compute-sanitizer --error-exitcode 9 "${check[@]}" --option compute=f32 -- --run_test=blocks '--run_test=devices/parts*'
    # Only our own kernels: of the libraries' nothing is said.
    part racecheck compute-sanitizer --tool racecheck --error-exitcode 9 "${check[@]}" --only ' with (plain|vector|few)$' -- '--run_test=cases/every_kernel*'
    part memcheck_int8 compute-sanitizer --error-exitcode 9 "${check[@]}" -- '--run_test=int8/zeros*' '--run_test=int8/unlike*' '--run_test=int8/activations*'
    part racecheck_int8 compute-sanitizer --tool racecheck --kernel-regex kns=int8_ --error-exitcode 9 "${check[@]}" -- '--run_test=int8/zeros*'
    tail -qn 1 "$results"/{memcheck,memcheck_f32,racecheck,memcheck_int8,racecheck_int8}.log
  else
    echo "compute-sanitizer is not here"
  fi
fi
cd "$root" && rm -rf "$work"
echo "$failed parts failed"
exit "$failed"
