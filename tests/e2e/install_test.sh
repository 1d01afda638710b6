#!/bin/bash
# `cmake --install` of a complete build into a folder that is then moved, and all that stands in sdk/install/README.md: the README's
# node and embedding programs, from its text, by CMake and by pkg-config, and where plugins are found.
# Usage: install_test.sh CMAKE BUILD SOURCES
set -u
cmake=$1
build=$(readlink -f "$2")
sources=$(readlink -f "$3")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/elsewhere/graphs"
cd "$folder/elsewhere" || exit 1
export HOME=$folder XDG_CACHE_HOME=$folder/cache
unset XDG_DATA_HOME HEDDLE_PLUGIN_PATH HEDDLE_PLUGINS
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
has() { grep -qF -- "$1" "$folder/said" || { wrong "$2: '$1' is not in what it says:"; cat "$folder/said"; }; }
# block LANGUAGE NUMBER FILE: the text of a block between fences of a document.
block() {
  awk -v fence="\`\`\`$1" -v wanted="$2" '/^```/ { inside = $0 == fence && !open && ++found == wanted; open = !open; next } inside' "$3"
}

quietly "installing" "$cmake" --install "$build" --prefix "$folder/first"
mv "$folder/first" "$folder/moved"
root=$folder/moved

# What libheddle gives to programs: functions one by one, and of what compilers make of inline functions and classes those of our own.
nm -DC --defined-only "$root/lib/libheddle.so" | awk '{ kind = $2; sub(/^[^ ]+ [^ ]+ /, ""); print kind, $0 }' >exports
grep '^T ' exports | cut -c3- | LC_ALL=C sort -u >functions
diff "$sources/tests/e2e/libheddle_exports.txt" functions || wrong "libheddle exports other functions than tests/e2e/libheddle_exports.txt says"
others=$(grep -v '^T ' exports | grep -vE '^[VW] ((typeinfo|typeinfo name|vtable) for )?heddle::(Engine|EngineError|Models|Results|Run|RunCheckpoint|Workflow|Image)\b')
[ -z "$others" ] || wrong "libheddle exports $others"
[ "$(readlink "$root/lib/libheddle.so")" = libheddle.so.0.1 ] || wrong "libheddle.so leads to $(readlink "$root/lib/libheddle.so")"

# A document leads to nothing that is not installed.
while IFS= read -r document; do
  for link in $(grep -oE '\]\([^)[:space:]]+\)' "$document" | sed -e 's/^](//' -e 's/)$//' -e 's/#.*//' | grep -v '://' | sort -u); do
    [ -e "$(dirname "$document")/$link" ] || wrong "${document#"$root"/} leads to $link, which is not installed"
  done
done < <(find "$root/share/doc" -name '*.md')

# The texts, as a reader takes them.
block cpp 1 "$sources/README.md" >hello.cpp
block json 1 "$sources/README.md" >hello.json
block cpp 2 "$sources/README.md" >embed.cpp
block c 1 "$sources/sdk/install/README.md" >draw.c
{
  printf 'cmake_minimum_required(VERSION 3.20)\nproject(outside LANGUAGES C CXX)\n'
  block cmake 1 "$sources/sdk/install/README.md"
  printf 'add_executable(draw draw.c)\ntarget_link_libraries(draw PRIVATE heddle::engine)\n'
  printf 'foreach(target hello embed draw)\n  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Werror)\nendforeach()\n'
} >CMakeLists.txt
sed -e 's/"steps": 28/"steps": 1/' -e 's/"width": 256, "height": 256/"width": 64, "height": 64/' "$root/share/heddle/graphs/scene.json" >graphs/scene.json
! cmp -s graphs/scene.json "$root/share/heddle/graphs/scene.json" || wrong "the picture is not smaller"

quietly "configuring" "$cmake" -S . -B by_cmake -G Ninja -DCMAKE_PREFIX_PATH="$root"
quietly "building with CMake" "$cmake" --build by_cmake -j 2
[ "$(nm -D --defined-only by_cmake/hello.so | awk '{ print $3 }')" = heddle_entry ] || wrong "the plugin exports more than heddle_entry"
mkdir by_hand c_alone
export PKG_CONFIG_PATH=$root/lib/pkgconfig
for line in 'c++ $(pkg-config --variable=plugin_flags' 'c++ -std=c++20 embed.cpp' 'cc -std=c11 draw.c'; do
  command=$(grep -F -- "    $line" "$sources/sdk/install/README.md")
  [ -n "$command" ] || wrong "sdk/install/README.md has no line '$line'"
  quietly "$command" bash -c "${command/ -o / -o by_hand/}"
done
# A project without C++.
cp draw.c c_alone/
printf 'cmake_minimum_required(VERSION 3.20)\nproject(alone LANGUAGES C)\nfind_package(heddle 0.1 CONFIG REQUIRED)\nadd_executable(draw draw.c)\ntarget_link_libraries(draw PRIVATE heddle::engine)\n' >c_alone/CMakeLists.txt
quietly "configuring a project in C" "$cmake" -S c_alone -B c_alone/build -G Ninja -DCMAKE_PREFIX_PATH="$root"
quietly "building a project in C" "$cmake" --build c_alone/build

# What ships is found from libheddle, wherever the programs are; so is the model.
for program in by_cmake/embed by_hand/embed; do
  rm -f lighthouse.ppm
  quietly "$program" env -i HOME="$HOME" "$program"
  [ "$(head -c 2 lighthouse.ppm)" = P6 ] || wrong "$program made no picture"
done
for program in by_cmake/draw by_hand/draw c_alone/build/draw; do
  rm -rf output
  quietly "$program" env -i HOME="$HOME" "$program"
  has output/scene_00001_.png "$program"
  [ -s output/scene_00001_.png ] || wrong "$program made no picture"
done

heddle=$root/bin/heddle
greeting='show PreviewAny: Hello, reader! Hello, reader!'
quietly "the plugins" env -i HOME="$HOME" "$heddle" plugins
has "org.heddle.samplers 0.1.0  $root/lib/heddle/plugins/samplers.so" "heddle plugins"
has "  devices (1): cpu" "heddle plugins"
grep -q '^  kernels for cpu ([0-9]*): .*linear/1' "$folder/said" || wrong "heddle plugins tells no kernels"
grep -q '^  samplers ([0-9]*): euler, ' "$folder/said" || wrong "heddle plugins tells no samplers"
grep -q '^  noise schedules ([0-9]*): .*karras' "$folder/said" || wrong "heddle plugins tells no noise schedules"
! "$heddle" run hello.json >/dev/null 2>&1 || wrong "the README's node is there before it is"

# What the program takes, a command and an option in each line: the man page and the completions have the same.
commands=$("$heddle" --help | awk '/^Subcommands:/ { inside = 1; next } /^ *$/ { inside = 0 } inside { print $1 }')
for command in $commands; do
  "$heddle" "$command" --help | awk -v command="$command" '/^  (-h,)?--/ { sub(/^  (-h,)?/, ""); print command, $1 }'
done | LC_ALL=C sort >options
[ "$(wc -l <options)" -gt 100 ] || wrong "the program tells only $(wc -l <options) options"
share=$root/share
awk '/^\.SS heddle / { command = $3 } /^\.B / && command != "" { gsub(/\\-/, "-"); if ($2 ~ /^--/) print command, $2 }' "$share/man/man1/heddle.1" | LC_ALL=C sort | diff options - || wrong "the man page has other options"
for place in site-functions vendor-completions; do
  awk '/^    [a-z]+\)$/ { command = substr($1, 1, length($1) - 1) } match($0, /--[a-z][a-z-]*/) && /^        \047/ { print command, substr($0, RSTART, RLENGTH) }' \
    "$share/zsh/$place/_heddle" | LC_ALL=C sort | diff options - || wrong "zsh completes other options"
done
sed -nE "s/^complete -c heddle -n '__fish_seen_subcommand_from ([a-z]+)' -l ([a-z-]+) .*/\1 --\2/p" "$share/fish/vendor_completions.d/heddle.fish" | LC_ALL=C sort | diff options - || wrong "fish completes other options"
complete_in_bash() {
  COMP_WORDS=(heddle "$@") COMP_CWORD=$#
  _heddle
  printf '%s\n' "${COMPREPLY[@]}"
}
# shellcheck disable=SC1091
source "$share/bash-completion/completions/heddle"
for command in $commands; do complete_in_bash "$command" -- | sed "s/^/$command /"; done | LC_ALL=C sort | grep -- -- | diff options - || wrong "bash completes other options"
[ "$(complete_in_bash run --fidelity "")" = $'exact\nrounding' ] || wrong "bash offers no --fidelity"
complete_in_bash pl | grep -qx plugins || wrong "bash completes no command"
for shell in zsh fish; do
  command -v $shell >/dev/null || { echo "skipped: whether $shell reads its completions: it is not here"; continue; }
  [ $shell = zsh ] && file=$share/zsh/site-functions/_heddle || file=$share/fish/vendor_completions.d/heddle.fish
  quietly "$shell reads its completions" $shell -n "$file"
done

# What all of it is linked with.
if command -v dpkg-query >/dev/null; then
  for file in "$root/bin/heddle" "$root/lib/libheddle.so" "$root"/lib/heddle/plugins/*; do ldd "$file"; done | awk '$2 == "=>" { print $3 }' | sort -u |
    while read -r file; do dpkg-query -S "*/$(basename "$(readlink -f "$file")")" 2>/dev/null | head -n 1 | sed 's/[:,].*//'; done | sort -u >packages
  mapfile -t licences < <(sed 's#.*#&=/usr/share/doc/&/copyright#' packages)
  quietly "the licences of what it is linked with" "$sources/tests/e2e/licences.sh" linked "${licences[@]}"
else
  echo "skipped: licences: this is not Debian"
fi

# Each place by itself.
quietly "--plugins" "$heddle" run hello.json --plugins by_cmake
has "$greeting" "--plugins"
quietly "--isolate" env -i HOME="$HOME" "$heddle" run hello.json --plugins by_cmake --isolate hello --isolate-sandbox
has "$greeting" "--isolate"
mkdir -p path/one path/two data/heddle/plugins
cp by_hand/hello.so path/two/
HEDDLE_PLUGIN_PATH=path/one:$PWD/path/two quietly "HEDDLE_PLUGIN_PATH" "$heddle" run hello.json
has "$greeting" "HEDDLE_PLUGIN_PATH"
HEDDLE_PLUGIN_PATH=path/three quietly "a folder that is not there" "$heddle" plugins
has "path/three: refused: the plugin folder cannot be read" "heddle plugins"
mv path/two/hello.so data/heddle/plugins/
XDG_DATA_HOME=$PWD/data quietly "XDG_DATA_HOME" "$heddle" run hello.json
has "$greeting" "XDG_DATA_HOME"
mkdir -p "$HOME/.local/share" && mv data/heddle "$HOME/.local/share/"
XDG_DATA_HOME=data quietly "the user's folder" "$heddle" run hello.json
has "$greeting" "the user's folder"
# A program that embeds libheddle has them, too, and a file that is cut off is named.
head -c 20000 by_cmake/hello.so >"$HOME/.local/share/heddle/plugins/cut.so"
quietly "embedding with a user's plugins" env -i HOME="$HOME" by_hand/draw
has "plugin refused: $HOME/.local/share/heddle/plugins/cut.so cannot be loaded as a plugin: the file is cut off" "by_hand/draw"
quietly "the plugins" "$heddle" plugins
has "org.example.hello 1.0.0  $HOME/.local/share/heddle/plugins/hello.so" "heddle plugins"
has "$HOME/.local/share/heddle/plugins/cut.so: refused: " "heddle plugins"

exit $((failures > 0))
