#!/bin/bash
# Everything there is to check of the cuda plugin on one machine with a GPU, in one call:
#
#   tests/bench/cuda_check.sh BUNDLE [RESULTS]     BUNDLE: from cuda_bundle.sh; RESULTS: a folder for logs and pictures
#
# 1. compiles the cuda and the cpu plugin from the sources beside it, all files at once; 2. conformance of all ops in bf16, fp16
# and f32; 3. the first picture on the GPU against the CPU's, in dB, and twice, byte by byte; 4. the rates of the largest ops beside PyTorch's; 5. memcheck. Each part says PASS or
# FAIL in a line of its own; what a part printed stands in RESULTS. Ends with the number of parts that failed.
set -u
cd "$(dirname "$0")/../.."
root=$PWD
bundle=$(realpath "$1")
results=${2:-$bundle/results}
mkdir -p "$results"
results=$(realpath "$results")
export LD_LIBRARY_PATH=$bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PATH=$PATH:/usr/local/cuda/bin
failed=0
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

# ---- compile ----
cublas=$(find -L /usr/local/cuda /usr/lib /opt -name 'libcublasLt.so.13' 2> /dev/null | head -1)
header=$(find -L /usr/local/cuda /usr/include /opt -name cublasLt.h 2> /dev/null | head -1)
echo "cuBLASLt: ${cublas:-none}; header: ${header:-none}; $(nvcc --version | tail -1)"
cudnn_header=$(find -L /usr/local/cuda /usr/include /opt -name cudnn_backend.h 2> /dev/null | head -1)
echo "cuDNN header: ${cudnn_header:-none}"
export cudnn_header NVCC_INCLUDES="-I. -Isdk/include ${header:+-I$(dirname "$header")} ${cudnn_header:+-I$(dirname "$cudnn_header") -DHEDDLE_WITH_CUDNN} -I$(dirname "$(dirname "$(realpath "$(command -v nvcc)")")")/include"
objects=$bundle/objects
mkdir -p "$objects"
export objects
compile() {
  local object=$objects/$(echo "$1" | tr / _).o
  [ "$object" -nt "$1" ] && [ -z "$(find plugins/cuda plugins/cpu sdk -name '*.h' -newer "$object" -o -name '*.cuh' -newer "$object" | head -1)" ] && return 0
  case $1 in
    *.cu) nvcc -std=c++20 -O2 -gencode 'arch=compute_90,code=[sm_90,compute_90]' --expt-relaxed-constexpr \
      -Xcompiler -fPIC,-fvisibility=hidden,-Wall $NVCC_INCLUDES -c "$1" -o "$object" ;;
    *) g++ -std=c++20 -O2 -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -Wall -Wextra -Wno-missing-field-initializers \
      $NVCC_INCLUDES -c "$1" -o "$object" ;;
  esac > "$object.log" 2>&1 || { echo "=== $1"; grep -E -A6 'error|fatal' "$object.log" | head -40; return 1; }
}
export -f compile
cuda_objects() { ls plugins/cuda/*.cpp plugins/cuda/*.cu plugins/cpu/op_check.cpp | if [ -n "$cudnn_header" ]; then cat; else grep -v /cudnn_; fi; }
cpu_objects() { ls plugins/cpu/*.cpp | grep -v /onednn_; }
build_all() {
  { cuda_objects; cpu_objects; } | sort -u | xargs -P "$(nproc)" -I{} bash -c 'compile {}' || return 1
  g++ -shared -Wl,--no-undefined -Wl,--version-script=sdk/plugin.map -o "$bundle/plugins/cpu.so" \
    $(cpu_objects | tr / _ | sed "s|^|$objects/|; s|$|.o|") -lpthread || return 1
  nvcc -shared -cudart static -Xlinker --no-undefined -Xlinker --version-script=sdk/plugin.map -o "$bundle/plugins/cuda.so" \
    $(cuda_objects | tr / _ | sed "s|^|$objects/|; s|$|.o|") -ldl -lrt -lpthread
}
export -f cuda_objects cpu_objects build_all
export bundle
LINES_SHOWN=150 part compile bash -c build_all || exit 1

# ---- conformance ----
# Not promised by this device: that work behind a failure is skipped, and that an item's bytes are the same alone and in a batch.
promised='!devices/a_failure_comes_out_of_wait_with_the_name_of_the_op_and_later_work_is_skipped:!cases/bytes_of_an_item*'
[ "$gpus" -gt 1 ] || promised="$promised:!devices/two_devices*:!links/a_link_says*"
conform() { # NAME OPTION...
  local name=$1
  shift
  part "conformance_$name" "$bundle/conformance" test --plugin "$bundle/plugins/cuda.so" --oracle "$bundle/plugins/cpu.so" \
    --goldens tests/conformance/goldens.safetensors --seed 1 "$@" -- --run_test="$promised"
}
conform bf16
conform fp16 --option compute=fp16
conform f32 --option compute=f32
conform cudnn_bf16 --option cudnn_flops=0
conform cudnn_fp16 --option cudnn_flops=0 --option compute=fp16
conform plain --option compute=f32 --option kernels=reference
part support "$bundle/conformance" support --plugin "$bundle/plugins/cuda.so"
part 'batch_bytes?' "$bundle/conformance" test --plugin "$bundle/plugins/cuda.so" --oracle "$bundle/plugins/cpu.so" \
  --goldens tests/conformance/goldens.safetensors --seed 1 -- '--run_test=cases/bytes_of_an_item*'

# ---- a picture ----
work=$(mktemp -d)
mkdir "$work/graphs"
cp -r graphs/* "$work/graphs/"
draw() { # NAME DEVICE...: draws into results/NAME.png
  local name=$1
  shift
  (cd "$work" && rm -rf output && "$bundle/heddle" run graphs/scene.json --plugins "$bundle/plugins" "$@" && cp "$(ls -t output/*.png | head -1)" "$results/$name.png")
}
export -f draw
export work results
part draw_cpu bash -c 'draw "$@"' draw cpu --devices cpu:0 --compute cpu=f32
part draw_cuda bash -c 'draw "$@"' draw cuda --devices cuda:0
part draw_again bash -c 'draw "$@"' draw again --devices cuda:0
part same_bytes cmp "$results/cuda.png" "$results/again.png"
cat > "$work/decibel.py" <<'P'
import sys
import numpy
from PIL import Image
a, b = (numpy.asarray(Image.open(name).convert("RGB"), dtype=numpy.float64) for name in sys.argv[1:3])
decibel = 10 * numpy.log10(255**2 / max(((a - b) ** 2).mean(), 1e-12))
print(f"{decibel:.1f} dB")
sys.exit(0 if decibel >= 38 else 1)
P
part decibel python3 "$work/decibel.py" "$results/cpu.png" "$results/cuda.png"
cat "$results/decibel.log"

# ---- speed ----
speed() {
  "$bundle/conformance" speed --plugin "$bundle/plugins/cuda.so" --seed 1 && python3 tests/bench/cuda_peer.py
}
export -f speed
part speed bash -c speed
cat "$results/speed.log"

# ---- memory ----
if command -v compute-sanitizer > /dev/null; then
  part memcheck compute-sanitizer --error-exitcode 9 "$bundle/conformance" test --plugin "$bundle/plugins/cuda.so" --oracle "$bundle/plugins/cpu.so" \
    --goldens tests/conformance/goldens.safetensors --seed 1 --option cudnn_flops=67108864 -- '--run_test=cases/every_kernel*'
else
  echo "compute-sanitizer is not here"
fi
cd "$root" && rm -rf "$work"
echo "$failed parts failed"
exit "$failed"
