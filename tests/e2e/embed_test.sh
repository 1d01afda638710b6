#!/bin/bash
# The embedding program of the README, run from folders of its own: what ships is found beside the library, wherever the program is.
# Usage: embed_test.sh PROGRAM LIBRARY GRAPHS
set -u
program=$(readlink -f "$1")
library=$(realpath -s "$2") # programs ask for the name of the link
graphs=$(readlink -f "$3")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export XDG_CACHE_HOME=$folder/cache
failures=0
wrong() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# The README's picture, smaller.
mkdir graphs bin
sed -e 's/"steps": 28/"steps": 1/' -e 's/"width": 256, "height": 256/"width": 64, "height": 64/' "$graphs/scene.json" >graphs/scene.json
! cmp -s graphs/scene.json "$graphs/scene.json" || wrong "the picture is not smaller"
cp "$program" bin/embed

"$folder/bin/embed" >out 2>err || { wrong "the program fails beside nothing"; cat err; }
[ "$(head -c 2 lighthouse.ppm)" = P6 ] || wrong "it made no picture"
grep -q KSampler out || { wrong "it printed no plan"; cat out; }

# The library in a folder without plugins: the program's own are used, and where there are none either it says where it looked.
mkdir alone
cp "$library" alone/
rm -f lighthouse.ppm
! { LD_LIBRARY_PATH=$folder/alone "$folder/bin/embed" >out 2>err; } 2>/dev/null || wrong "it runs without plugins"
for place in "$folder/alone/plugins" "$folder/bin/plugins"; do
  grep "there is no device" err | grep -qF "$place" || { wrong "it does not say that it looked in $place"; cat err; }
done
ln -s "$(dirname "$library")/plugins" bin/plugins
mkdir -p bin/graphs && ln -s "$graphs/models" bin/graphs/models
LD_LIBRARY_PATH=$folder/alone "$folder/bin/embed" >out 2>err || { wrong "the program fails with plugins beside it"; cat err; }
[ "$(head -c 2 lighthouse.ppm)" = P6 ] || wrong "it made no picture with plugins beside it"

exit $((failures > 0))
