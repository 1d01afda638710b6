#!/bin/sh
# Makes a folder to take to a machine with a GPU: program, plugins and the conformance program, stripped, and the libraries that
# such a machine may lack.
#
#   tests/bench/cuda_bundle.sh BUILD DIR [PLAIN]
#
# BUILD: a release build with heddle, its plugins and tests/conformance; its cuda plugin is taken along if there is one. PLAIN: a
# build with HEDDLE_WITH_ONEDNN=OFF, for a cpu plugin that needs no oneDNN, which alone is larger than all of this. What is missing
# of the two cuda_check.sh compiles there, which takes a minute and needs nothing but nvcc and a C++ compiler.
set -eu
build=$1 dir=$2 plain=${3:-}
mkdir -p "$dir/plugins" "$dir/lib"
cp "$build/heddle" "$build/tests/conformance" "$dir/"
if [ -f "$build/libheddle.so" ]; then cp "$build/libheddle.so" "$dir/lib/"; fi
if [ -x "$build/tests/low_memory_model" ]; then cp "$build/tests/low_memory_model" "$dir/"; fi
for name in core samplers encoders denoisers vae image upscalers; do cp "$build/plugins/$name.so" "$dir/plugins/"; done
if [ -f "$build/plugins/cuda.so" ]; then cp "$build/plugins/cuda.so" "$dir/plugins/"; fi
if [ -n "$plain" ]; then cp "$plain/plugins/cpu.so" "$dir/plugins/"; fi
for file in "$dir/heddle" "$dir/conformance" "$dir"/plugins/*.so; do
  ldd "$file" | awk '$2 == "=>" && $3 ~ /^\// {print $3}'
done | sort -u | grep -v -E '/(ld-linux|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)[.-]' | while read -r library; do
  cp -L "$library" "$dir/lib/"
done
for file in "$dir"/heddle "$dir"/conformance "$dir"/low_memory_model "$dir"/plugins/*.so "$dir"/lib/*; do
  if [ -f "$file" ]; then strip --strip-unneeded "$file"; fi
done
if command -v patchelf > /dev/null; then
  patchelf --set-rpath '$ORIGIN/lib' "$dir/heddle" "$dir/conformance"
  for file in "$dir"/plugins/*.so; do patchelf --set-rpath '$ORIGIN/../lib' "$file"; done
fi
du -sh "$dir"
