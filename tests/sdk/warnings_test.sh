#!/bin/bash
# The SDK's headers and samples with each compiler, -Wall -Wextra -Wpedantic -Wshadow: no warning. As with a plain -I, where headers
# are no system headers, whose warnings compilers keep to themselves.
# Usage: warnings_test.sh SOURCES BUILD COMPILER...
set -u
sources=$(readlink -f "$1")
build=$(readlink -f "$2")
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$sources" || exit 1
failures=0
for header in $(cd sdk/include && find heddle -name '*.h' -o -name '*.hpp' | LC_ALL=C sort); do echo "#include <$header>"; done >"$folder/all.cpp"
grep '\.h>' "$folder/all.cpp" | grep -v fake_control >"$folder/all.c"
cat >"$folder/options.cpp" <<'END'
#include <heddle/bench.hpp>
#include <heddle/engine.hpp>
#include <heddle/testing/node_runner.hpp>
const heddle::EngineOptions options{.threads = 1, .isolation = {.plugins = {"hello"}}};
const heddle::StartOptions start{.fetch = {"a.b"}};
const heddle::BenchOptions bench{.steps = 1};
const heddle::testing::RunnerOptions runner{.device = "cpu:0"};
END
samples=("$folder/all.cpp" "$folder/options.cpp" "$build"/guide/guide_*.cpp sdk/templates/*/*.cpp tests/sample_plugins/*.cpp tests/sample_plugins/isolated/*.cpp tests/execution/plugin.cpp)
[ ${#samples[@]} -gt 20 ] || { echo "FAILED: there are ${#samples[@]} samples"; exit 1; }
# check COMPILER STANDARD FILE...
check() {
  local compiler=$1 standard=$2 file language=()
  shift 2
  for file in "$@"; do
    [ "$standard" != c11 ] || language=(-x c)
    "$compiler" "${language[@]}" -std="$standard" -fsyntax-only -fvisibility=hidden -Wall -Wextra -Wpedantic -Wshadow -Werror -Isdk/include -I. "$file" >"$folder/said" 2>&1 && continue
    echo "FAILED: $compiler warns of $file"
    head -n 20 "$folder/said"
    failures=$((failures + 1))
  done
}
for compiler in "$@"; do
  check "$compiler" c++20 "${samples[@]}"
  check "$compiler" c11 "$folder/all.c" tests/sample_plugins/counter.c
done

# A test that cannot fail would say nothing.
printf '#include <heddle/node.hpp>\nint one(int code) { { int code = 2; (void)code; } return code; }\n' >"$folder/shadow.cpp"
before=$failures
check "$1" c++20 "$folder/shadow.cpp" >/dev/null
[ $failures -gt "$before" ] || { echo "FAILED: a shadowed variable passes"; exit 1; }
exit $((before > 0))
