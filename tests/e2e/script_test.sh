#!/bin/bash
# The script that builds heddle and runs it, with stubs for CMake, ninja and the package manager: what it configures, and when.
# Usage: script_test.sh SCRIPT
set -u
script=$(readlink -f "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
folder=$(readlink -f "$folder")
cd "$folder" || exit 1
failures=0

mkdir stubs first
export PATH=$folder/stubs:$PATH CALLS=$folder/calls
stub() {
  { echo '#!/bin/bash'; cat; } >"stubs/$1"
  chmod +x "stubs/$1"
}
# What the script would install is there.
stub dpkg-query <<END
grep -oE '[a-z0-9.+-]+' "$script" | sed 's/^/installed:/' | tr '\n' ' '
END
stub apt-get <<'END'
echo "apt-get $*" >>"$CALLS"
exit 1
END
stub nginx </dev/null
# `cmake --preset PRESET -DHEDDLE_TESTS=...` notes what the real one notes.
stub cmake <<'END'
echo "cmake $2 $3" >>"$CALLS"
build=$PWD/build
[ "$2" = release ] || build=$PWD/build-$2
mkdir -p "$build/CMakeFiles"
printf '%s\n' "HEDDLE_TESTS:BOOL=${3#*=}" "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "CMAKE_CACHEFILE_DIR:INTERNAL=$build" >"$build/CMakeCache.txt"
echo "$PWD" >"$build/build.ninja"
END
# `ninja -C FOLDER ...` fails where the folder was configured in another place.
stub ninja <<'END'
source=$(cat "$2/build.ninja") && [ "${2%/*}" -ef "$source" ] || { echo "the source $source does not match"; exit 1; }
printf '%s\n' '#!/bin/sh' 'echo "it runs: $*"' >"$2/heddle"
chmod +x "$2/heddle"
echo "ninja ${2##*/}" >>"$CALLS"
END
stub ctest <<'END'
echo "ctest" >>"$CALLS"
END

# pip, for the front end that a test shows in a browser.
stub python3 <<'END'
echo "python3 ${*:1:3}" >>"$CALLS"
for ((i = 1; i < $#; i++)); do [ "${!i}" != --target ] || { i=$((i + 1)) && mkdir -p "${!i}"; }; done
END

wrong() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
# calls WHAT LINE...: the stubs that the last command called, in order.
calls() {
  local what=$1 expected
  shift
  expected=$(printf '%s\n' "$@")
  [ "$(cat "$CALLS")" = "$expected" ] || { wrong "$what called:"; cat "$CALLS" err; }
  : >"$CALLS"
}
heddle() {
  "$@" >out 2>err </dev/null || { wrong "$*: exit code $?"; cat err; }
}
: >calls

(cd first && cp "$script" heddle && mkdir engine plugins sdk && touch CMakeLists.txt CMakePresets.json engine/main.cpp)
heddle first/heddle version
calls "the first call" "cmake release -DHEDDLE_TESTS=OFF" "ninja build"
grep -qx "it runs: version" out || wrong "the program does not run"
heddle first/heddle version
calls "the second call" ""

# By another name of the same folder only what changed is built.
ln -s first link
touch -d "-1 hour" first/build/.built
heddle link/heddle version
calls "a call by a link" "ninja build"

# A copy, whose sources are new: it does not build in, or from, the place that it was copied from.
cp -r first copy
touch -d "-1 hour" copy/build/.built
heddle copy/heddle version
calls "a copy" "cmake release -DHEDDLE_TESTS=OFF" "ninja build"
[ "$(grep -c "moved or copied from $folder/first: configuring build/ anew" err)" = 1 ] || { wrong "a copy does not say so"; cat err; }
[ "$(cat copy/build/build.ninja)" = "$folder/copy" ] || wrong "a copy builds elsewhere"

# One that was moved, with all three of its build folders.
heddle first/heddle test
calls "the tests" "cmake release -DHEDDLE_TESTS=ON" "ninja build" "python3 -m pip install" "ctest" "cmake asan -DHEDDLE_TESTS=ON" "ninja build-asan" "ctest" \
  "cmake tsan -DHEDDLE_TESTS=ON" "ninja build-tsan" "ctest"
mv first moved
heddle moved/heddle test
calls "the tests of a moved one" "cmake release -DHEDDLE_TESTS=ON" "ninja build" "ctest" "cmake asan -DHEDDLE_TESTS=ON" "ninja build-asan" "ctest" \
  "cmake tsan -DHEDDLE_TESTS=ON" "ninja build-tsan" "ctest"
[ "$(grep -c "moved or copied" err)" = 3 ] || { wrong "not all folders were configured anew"; cat err; }

# On a slow machine: 2,000 seconds from each look at the clock to the next, so that the first sanitizer ends in time, not the second.
stub date <<'END'
[ "$*" = +%s ] || exec /bin/date "$@"
echo x >>"$CALLS.looks"
echo $(($(wc -l <"$CALLS.looks") * 2000))
END
heddle moved/heddle test --minutes 90
calls "the tests within 90 minutes" "ninja build" "ctest" "ninja build-asan" "ctest"
grep -q "the tests for tsan are left out: they would take about 18 minutes, and 100 of 90 are over" err || { wrong "what is left out is not said"; cat err; }
grep -q "all tests passed, without those that were left out: tsan" err || { wrong "all tests are said to have passed"; cat err; }
rm stubs/date
for words in "--minutes" "--minutes 0" "--minutes x" "--all --quick"; do
  # shellcheck disable=SC2086
  moved/heddle test $words >out 2>err </dev/null && wrong "test $words is no error"
  calls "test $words" ""
done
heddle moved/heddle version
calls "a moved one, built" ""

exit $((failures > 0))
