#!/bin/bash
# The bundle that cpack makes of a complete build, unpacked elsewhere: it needs nothing but glibc,
# draws a picture with an empty environment, and plugins and programs are built against it.
# Usage: bundle_test.sh CPACK BUILD SAMPLES
# SAMPLES: the folder of hello.cpp and embed.cpp.
set -u
cpack=$1
build=$(readlink -f "$2")
samples=$(readlink -f "$3")
tests=$(dirname "$(readlink -f "$0")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/elsewhere"
cd "$folder/elsewhere" || exit 1
failures=0

wrong() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
# quietly WHAT COMMAND...: what it prints is shown when it fails, and kept in `said`.
quietly() {
  local what=$1
  shift
  "$@" >"$folder/said" 2>&1 </dev/null || { wrong "$what"; cat "$folder/said"; }
}

quietly "cpack" "$cpack" --config "$build/CPackConfig.cmake" -B "$folder/made"
! grep "licence is missing" "$folder/said" || wrong "a library has no licence in the bundle"
made=("$folder"/made/heddle-*-linux-*.tar.gz)
quietly "unpacking" tar -xzf "${made[0]}" -C "$folder"
root=${made[0]##*/}
root=$folder/${root%.tar.gz}
rm -rf "$folder/made"
[ -x "$root/bin/heddle" ] || { wrong "there is no program"; exit 1; }
for file in README.md LICENCE-MIT LICENCE-Apache-2.0; do
  [ -s "$root/share/heddle/licences/vocabularies/$file" ] || wrong "the vocabularies have no $file in the bundle"
done
licences=()
for file in "$root"/share/heddle/licences/*; do
  [ -d "$file" ] || licences+=("${file##*/}=$file")
done
quietly "the licences of what is in the bundle" "$tests/licences.sh" brought "${licences[@]}"
for file in heddle.service Containerfile nginx.conf grafana.json; do
  [ -s "$root/share/heddle/serve/$file" ] || wrong "there is no $file in the bundle"
done

for file in "$root/bin/heddle" "$root"/lib/libheddle.so "$root"/lib/heddle/plugins/*.so; do
  path=$(readelf -d "$file" | grep -E 'R(UN)?PATH')
  [[ $path == *'(RPATH)'*'[$ORIGIN'* && $path != *[:\[]/* ]] || wrong "$file is to look for libraries in $path"
  ldd "$file" | while read -r name arrow found _; do
    [[ ${name##*/} =~ ^(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread))\.so ]] && continue
    [[ $arrow == '=>' && $(readlink -f "$found") == "$root"/lib/* ]] || echo "$file: $name is $found"
  done >"$folder/outside"
  [ ! -s "$folder/outside" ] || { wrong "not everything is in the bundle"; cat "$folder/outside"; }
done
echo "it needs $(readelf -V "$root/bin/heddle" "$root"/lib/heddle/plugins/*.so "$root"/lib/lib*.so* | grep -o 'GLIBC_2[.0-9]*' | sort -uV | tail -n 1)," \
  "$(du -sh "$root" | cut -f1) are $(ls "$root"/lib/lib*.so* | wc -l) names of libraries and the rest"

run() { quietly "heddle $*" env -i "$root/bin/heddle" "$@"; }
run version
run plugins
! grep -i "refused" "$folder/said" || wrong "a plugin is refused"
run run "$root/share/heddle/graphs/scene.json" --devices cpu:0 --cache none --set sampler.steps=1 --set size.width=64 --set size.height=64
[ -s output/scene_00001_.png ] || wrong "no picture was drawn"

cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES CXX)
find_package(heddle 0.1 REQUIRED)
heddle_add_plugin(hello ${SAMPLES}/hello.cpp)
set_target_properties(hello PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
add_executable(embed ${SAMPLES}/embed.cpp)
target_link_libraries(embed PRIVATE heddle::engine)
END
quietly "configuring what uses the bundle" cmake -B outside -G Ninja -DCMAKE_PREFIX_PATH="$root" -DSAMPLES="$samples" -DCMAKE_BUILD_TYPE=Debug
quietly "building what uses the bundle" cmake --build outside -j 2
! readelf -d outside/plugins/hello.so | grep -q libstdc || wrong "a plugin needs the C++ runtime of the bundle"
run run "$samples/hello.json" --plugins "$PWD/outside/plugins"
run run "$samples/hello.json" --plugins "$PWD/outside/plugins" --isolate hello
grep -qF "show PreviewAny: Hello, reader! Hello, reader!" "$folder/said" || { wrong "the README's first node shows no greeting"; cat "$folder/said"; }
run run "$samples/hello.json" --plugins "$PWD/outside/plugins" --json
grep -F '"event":"run_done"' "$folder/said" | grep -qF '"ui":{"show":{"text":["Hello, reader! Hello, reader! "]}}' || { wrong "programs do not learn what is shown"; cat "$folder/said"; }

# The program draws the README's picture, smaller: plugins and the model are found beside the library, in the bundle.
mkdir graphs
sed -e 's/"steps": 28/"steps": 1/' -e 's/"width": 256, "height": 256/"width": 64, "height": 64/' "$root/share/heddle/graphs/scene.json" >graphs/scene.json
quietly "the program that uses the bundle" env -i HOME="$folder" outside/embed
[ "$(head -c 2 lighthouse.ppm)" = P6 ] || wrong "the program that uses the bundle made no picture"

exit $((failures > 0))
