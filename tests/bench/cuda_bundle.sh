#!/bin/sh
# Makes a folder to take to a machine with a GPU: program, plugins and the conformance program, stripped, and the libraries that
# such a machine may lack. The device plugins are not in it: cuda_check.sh compiles them there, which takes a minute and needs
# nothing but nvcc and a C++ compiler (so the cpu plugin comes without oneDNN, which alone is larger than all of this).
#
#   tests/bench/cuda_bundle.sh BUILD DIR     BUILD: a release build with heddle, its plugins and tests/conformance
set -eu
build=$1 dir=$2
mkdir -p "$dir/plugins" "$dir/lib"
cp "$build/heddle" "$build/tests/conformance" "$dir/"
for name in core samplers encoders denoisers vae image; do cp "$build/plugins/$name.so" "$dir/plugins/"; done
for file in "$dir/heddle" "$dir/conformance" "$dir"/plugins/*.so; do
  ldd "$file" | awk '$2 == "=>" && $3 ~ /^\// {print $3}'
done | sort -u | grep -v -E '/(ld-linux|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)[.-]' | while read -r library; do
  cp -L "$library" "$dir/lib/"
done
strip --strip-unneeded "$dir/heddle" "$dir/conformance" "$dir"/plugins/*.so "$dir"/lib/*
if command -v patchelf > /dev/null; then
  patchelf --set-rpath '$ORIGIN/lib' "$dir/heddle" "$dir/conformance"
  for file in "$dir"/plugins/*.so; do patchelf --set-rpath '$ORIGIN/../lib' "$file"; done
fi
du -sh "$dir"
