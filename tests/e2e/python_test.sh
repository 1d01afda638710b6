#!/bin/bash
# The wheel of sdk/python: built of this build, installed into an environment of its own outside of the checkout, and used there: the
# README's program, from its text, python_test.py, and the program. Skipped where pip cannot install what it is built with.
# Usage: python_test.sh PYTHON BUILD SOURCES
set -u
python=$1
build=$(readlink -f "$2")
sources=$(readlink -f "$3")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0
wrong() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
# quietly WHAT COMMAND...: what it prints is shown when it fails.
quietly() {
  local what=$1
  shift
  "$@" >"$folder/said" 2>&1 </dev/null || { wrong "$what"; cat "$folder/said"; return 1; }
}
skip() {
  echo "skipped: python_test.sh: $1"
  cat "$folder/said"
  exit 0
}

# What builds is kept: it is the same each time, and the compiler's cache knows files by their paths.
tools=$build/python/tools
if ! "$tools/bin/python" -c 'import auditwheel, nanobind, scikit_build_core' 2>"$folder/said"; then
  rm -rf "$tools"
  quietly "making a venv (Debian's package is python3-venv)" "$python" -m venv "$tools" || exit 1
  "$tools/bin/python" -m pip install --quiet --retries 1 --timeout 20 nanobind==3.1.0 scikit-build-core==1.1.2 auditwheel==6.8.2 >"$folder/said" 2>&1 ||
    skip "pip cannot install nanobind, scikit-build-core and auditwheel"
fi
# Without isolation, so that these are used; pip does not know that CMake and ninja are the system's. Debian 12's pip knows no -C, and
# a checkout that was moved no $tools/bin/pip.
quietly "building the wheel" "$tools/bin/python" -m pip wheel --no-build-isolation --no-deps --disable-pip-version-check -w "$folder/wheel" \
  --config-settings=build-dir="$build/python/wheel" --config-settings=cmake.define.HEDDLE_DIR="$build" "$sources/sdk/python" || exit 1
wheel=$(echo "$folder"/wheel/heddle-*.whl)

mkdir -p "$folder/elsewhere/graphs"
cd "$folder/elsewhere" || exit 1
"$python" -m zipfile -l "$wheel" >files
for file in heddle/py.typed heddle/_native.pyi heddle/_prefix/bin/heddle heddle/_prefix/lib/libheddle.so.0.1 \
  heddle/_prefix/lib/heddle/plugins/cpu.so \
  heddle/_prefix/share/heddle/licences/libdnnl heddle/_prefix/share/heddle/licences/nanobind heddle/_prefix/share/heddle/licences/robin-map \
  heddle/_prefix/share/heddle/graphs/models/diffusers/tiny-scenes/vae; do
  grep -qF "$file" files || wrong "the wheel lacks $file"
done
! grep -E 'video\.so|shader|libav(codec|format|util)|libsw|lib/lib(stdc|gcc_s|boost_unit_test|EGL)' files || wrong "the wheel has what it must not have"

# The tag: of this glibc, and true by what auditwheel reads of symbols' versions and of libraries, which may allow older ones. A wheel
# that lacks a library does not get it.
glibc=$(getconf GNU_LIBC_VERSION | sed 's/glibc //; s/\./_/')
[[ $wheel == *"-manylinux_${glibc}_$(uname -m).whl" ]] || wrong "the wheel is called ${wheel##*/}"
quietly "auditwheel" "$tools/bin/auditwheel" show "$wheel"
said=$(tr '\n' ' ' <"$folder/said")
if [[ $said =~ manylinux_2_([0-9]+)_ ]]; then
  ((BASH_REMATCH[1] <= ${glibc#2_})) || wrong "auditwheel allows the tag of glibc 2.${BASH_REMATCH[1]} at the earliest"
else
  wrong "auditwheel allows no tag of manylinux: $said"
fi
cat >lacks.py <<'PROGRAM'
import os, sys, zipfile
wheel = sys.argv[1]
sys.path.insert(0, sys.argv[2])
sys.dont_write_bytecode = True
import wheel_backend
name = os.path.basename(wheel).replace(wheel_backend.platform_tag(), "linux_x86_64")
with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(name, "w") as part:
    for file in whole.namelist():
        if "libpng" not in file and not file.endswith(("libdnnl.so.2", "cuda.so")):
            part.writestr(file, whole.read(file))
assert wheel_backend.needs_outside(name) == {"libpng16.so.16", "libdnnl.so.2"}, wheel_backend.needs_outside(name)
assert wheel_backend.tagged(".", name) == name
os.remove(name)
PROGRAM
quietly "a wheel without a library" "$tools/bin/python" lacks.py "$wheel" "$sources/sdk/python"

"$python" -m venv clean
quietly "installing" clean/bin/pip install --quiet --disable-pip-version-check --no-index --no-deps "$wheel" || exit 1
rm -rf "$folder/wheel"
here=(env -i HOME="$folder" PATH="$PATH" XDG_CACHE_HOME="$folder/cache" ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16)

# The text, as a reader takes it; the picture is smaller.
awk '/^```/ { inside = /^```python$/; next } inside' "$sources/README.md" >embed.py
[ -s embed.py ] || wrong "README.md has no program in Python"
sed -e 's/"steps": 28/"steps": 1/' -e 's/"width": 256, "height": 256/"width": 64, "height": 64/' "$sources/graphs/scene.json" >graphs/scene.json
! cmp -s graphs/scene.json "$sources/graphs/scene.json" || wrong "the picture is not smaller"
quietly "the README's program" "${here[@]}" clean/bin/python embed.py
grep -q KSampler "$folder/said" || { wrong "the README's program printed no plan"; cat "$folder/said"; }
grep -qF 'output/scene_00001_.png' "$folder/said" || { wrong "the README's program tells no file"; cat "$folder/said"; }
[ -s output/scene_00001_.png ] || wrong "the README's program made no picture"

"$python" - "$sources/README.md" <<'PROGRAM' >hello.json
import re, sys
print(re.search(r"```json\n(.*?)```", open(sys.argv[1]).read(), re.S)[1])
PROGRAM
for program in "clean/bin/python -m heddle" clean/bin/heddle; do
  # shellcheck disable=SC2086
  quietly "$program" "${here[@]}" $program run hello.json --plugins "$build/sample_plugins"
  grep -qF 'show PreviewAny: Hello, reader! Hello, reader!' "$folder/said" || { wrong "$program does not greet"; cat "$folder/said"; }
  # shellcheck disable=SC2086
  "${here[@]}" $program run nothing.json >"$folder/said" 2>&1
  [ $? -eq 2 ] || wrong "$program gives another exit code than the program"
done

# NumPy last: heddle does not need it.
clean/bin/pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 numpy >"$folder/said" 2>&1
if clean/bin/python -c 'import numpy' 2>/dev/null; then
  awk '/^```/ { inside = /^```python$/; next } inside' "$sources/sdk/python/README.md" >readme.py
  quietly "the program of sdk/python/README.md" "${here[@]}" clean/bin/python readme.py
  grep -qF '(1, 64, 64, 3)' "$folder/said" || { wrong "the program of sdk/python/README.md prints no shape"; cat "$folder/said"; }
else
  echo "skipped: python_test.sh: NumPy: pip cannot install it"
fi
timeout 240 "${here[@]}" clean/bin/python -X faulthandler "$sources/tests/e2e/python_test.py" "$build/sample_plugins" ||
  wrong "python_test.py ended with $?"

exit $((failures > 0))
