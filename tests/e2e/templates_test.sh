#!/bin/bash
# `heddle new` of every kind: the folder builds without a warning with each compiler, tests itself and runs its workflow; and
# `heddle dev` builds, tests and runs it again when a file changes.
# Usage: templates_test.sh HEDDLE PREFIX COMPILER...
# PREFIX: where find_package finds heddle.
set -u
heddle=$(readlink -f "$1")
prefix=$(readlink -f "$2")
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0
[ $# -gt 1 ] || echo "skipped: templates/clang: there is no clang"

wrong() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
# quietly WHAT COMMAND...: what it prints is shown when it fails, and kept in `said`.
quietly() {
  local what=$1
  shift
  "$@" >said 2>&1 </dev/null || { wrong "$what"; cat said; return 1; }
}
# refuses WORDS COMMAND...: it ends with 2, and says WORDS.
refuses() {
  local words=$1
  shift
  "$@" >said 2>&1 </dev/null
  [ $? = 2 ] || wrong "not refused: $*"
  grep -qF -- "$words" said || { wrong "no '$words' is said of: $*"; cat said; }
}

refuses "KIND is required" "$heddle" new
refuses "it takes a kind and a name" "$heddle" new node
refuses "there is no kind 'nodes'. Did you mean 'node'" "$heddle" new nodes blur
refuses "'9lives' is no name of a plugin" "$heddle" new node 9lives
refuses "'a/b' is no name of a plugin" "$heddle" new node a/b
refuses "'test' has a meaning already" "$heddle" new node test
refuses "with a CMakeLists.txt" "$heddle" dev .

for kind in node sampler family device; do
  name=first_$kind
  quietly "heddle new $kind" "$heddle" new "$kind" "$name" || continue
  grep -q "cd $name" said || wrong "new does not say how to go on"
  refuses "something named '$name' already" "$heddle" new "$kind" "$name"
  ! grep -rqi "my_\?plugin" "$name" || wrong "a template's own name is left in $name"
  for compiler in "$@"; do
    build=$name/build_${compiler##*/}
    quietly "$kind: configuring with $compiler" cmake -S "$name" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
      -DCMAKE_PREFIX_PATH="$prefix" || continue
    quietly "$kind: building with $compiler" cmake --build "$build" -j 2 || continue
    # The conformance program is the same for each.
    [ "$compiler" = "$1" ] && left_out=none || left_out='^conformance$'
    quietly "$kind: testing with $compiler" ctest --test-dir "$build" --output-on-failure -E "$left_out" || continue
    grep -q "100% tests passed, 0 tests failed out of [23]" said || { wrong "$kind: not every test has run"; cat said; }
    ls "$build"/output/"$name"_*.png >said 2>&1 || wrong "$kind: its workflow has written no picture with $compiler"
  done
done

# A test that cannot fail would say nothing: the node with another formula fails it.
sed -i 's/{ctx\[factor\], 0, 0, 1}/{ctx[factor], 0.5, 0, 1}/' first_node/first_node.cpp
build=first_node/build_${1##*/}
quietly "building the changed node" cmake --build "$build"
! ctest --test-dir "$build" -R '^first_node$' >said 2>&1 || wrong "a wrong node passes its test"
# So does a device that says it has what it has not.
sed -i 's/value = elements(x)\[from\] \* attrs.scale/value = elements(x)[from] * 2/' first_device/first_device.cpp
build=first_device/build_${1##*/}
quietly "building the changed device" cmake --build "$build"
! ctest --test-dir "$build" -R '^ops$' >said 2>&1 || wrong "a wrong device passes its test"
grep -q "1 tests failed out of 1" said || { wrong "another test than that of a wrong device fails"; cat said; }

# What a plugin does not release is told by the address sanitizer of its own build; the template leaks nothing. By g++: clang
# links the sanitizer to the program alone, whose plugins then do not find it.
if "$1" --version | grep -q clang; then
  echo "skipped: templates/leaks: sdk/testing/README.md has g++ for it"
elif printf 'int main() {}\n' | "$1" -fsanitize=address -x c++ - -o probe 2>/dev/null && ./probe; then
  quietly "heddle new node leaky" "$heddle" new node leaky
  for leaks in no yes; do
    [ $leaks = no ] || sed -i 's/^    ctx\[out\] = /    (void)heddle::services.value->make_int(7);\n&/' leaky/leaky.cpp
    quietly "configuring with a sanitizer" cmake -S leaky -B leaky/build -G Ninja -DCMAKE_CXX_COMPILER="$1" -DCMAKE_PREFIX_PATH="$prefix" \
      -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS=-fsanitize=address
    quietly "building with a sanitizer" cmake --build leaky/build --target leaky leaky_test -j 2
    ASAN_OPTIONS=fast_unwind_on_malloc=0 ctest --test-dir leaky/build -R '^leaky$' --output-on-failure >said 2>&1
    code=$?
    if [ $leaks = no ]; then
      [ $code = 0 ] || { wrong "the template's node leaks"; cat said; }
    else
      { [ $code != 0 ] && grep -q "LeakSanitizer" said && grep -q "leaky.cpp" said; } || { wrong "a leak is not told"; cat said; }
    fi
  done
else
  echo "skipped: templates/leaks: $1 has no address sanitizer"
fi

# heddle dev: a round that fails on the changed node, one that is well when it is as before, one more with Enter.
said_by_dev() {
  for _ in $(seq 600); do
    [ "$(grep -c "$2" dev.txt)" -ge "$1" ] && return 0
    sleep 0.1
  done
  wrong "heddle dev does not say '$2' for the ${1}th time"
  cat dev.txt
  return 1
}
mkfifo lines
CXX=$1 setsid "$heddle" dev first_node <lines >dev.txt 2>&1 &
dev=$!
exec 9>lines
if said_by_dev 1 "that failed"; then
  sed -i 's/{ctx\[factor\], 0.5, 0, 1}/{ctx[factor], 0, 0, 1}/' first_node/first_node.cpp
  said_by_dev 1 "all is well" && echo >&9 && said_by_dev 2 "all is well"
fi
kill -INT "$dev"
wait "$dev"
[ $? = 130 ] || wrong "Ctrl-C does not end heddle dev as it ends every command"
exec 9>&-

exit $((failures > 0))
