#!/bin/bash
# Debian's packages of `cpack -G DEB`, of a complete build, in a fresh root of the Debian that this is: installed, used (the program, a
# plugin and embedding programs built with heddle-dev, from the documents' texts) and removed, after which nothing is left. Skipped
# where no such root can be made: it takes root, mmdebstrap, and Debian's archive.
# Usage: packages_test.sh CPACK BUILD SOURCES
set -u
cpack=$1
build=$(readlink -f "$2")
sources=$(readlink -f "$3")
skip() {
  echo "skipped: packages_test.sh: $1"
  exit 0
}
# shellcheck disable=SC1091
[ -r /etc/os-release ] && . /etc/os-release
[ "${ID:-}" = debian ] || skip "this is not Debian"
[ "$(id -u)" -eq 0 ] || skip "it takes root"
command -v mmdebstrap >/dev/null || skip "there is no mmdebstrap (Debian's package of that name)"
# What is mounted in the root goes with this process.
if [ "${HEDDLE_OWN_MOUNTS:-}" != yes ]; then
  unshare --mount true 2>/dev/null || skip "nothing can be mounted here"
  HEDDLE_OWN_MOUNTS=yes exec unshare --mount "$0" "$@"
fi
folder=$(mktemp -d)
root=$folder/root
trap 'umount -q "$root/proc" "$root/dev"; rm -rf --one-file-system "$folder"' EXIT
failures=0
wrong() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
# quietly WHAT COMMAND...: what it prints is shown when it fails, and kept in `said`.
quietly() {
  local what=$1
  shift
  "$@" >"$folder/said" 2>&1 </dev/null || { wrong "$what"; cat "$folder/said"; return 1; }
}
has() { grep -qE -- "$1" "$folder/said" || { wrong "$2: '$1' is not in what it says:"; cat "$folder/said"; }; }
within() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive HOME=/root "$@"; }
# As an ordinary user, in a folder of its own.
as_user() { chroot --userspec=65534:65534 "$root" env -i PATH=/usr/bin:/bin HOME=/trial LC_ALL=C.UTF-8 sh -c 'cd /trial && exec "$@"' sh "$@"; }
# block LANGUAGE NUMBER FILE: the text of a block between fences of a document.
block() {
  awk -v fence="\`\`\`$1" -v wanted="$2" '/^```/ { inside = $0 == fence && !open && ++found == wanted; open = !open; next } inside' "$3"
}
# Files of the root but those that apt and dpkg keep for themselves and what programs keep in /var/cache.
files() { (cd "$root" && find . -xdev \( -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./var/cache -o -path ./var/log -o -path ./trial -o -path ./debs -o -path ./proc -o -path ./dev \) -prune -o -print | LC_ALL=C sort); }
packages() { within dpkg-query -W -f '${Package} ${db:Status-Status}\n' | LC_ALL=C sort; }

quietly "cpack" "$cpack" -G DEB --config "$build/CPackConfig.cmake" -B "$folder/made" || exit 1
mmdebstrap --quiet --variant=minbase "$VERSION_CODENAME" "$root" >"$folder/said" 2>&1 || { cat "$folder/said"; skip "no root of $VERSION_CODENAME can be made"; }
mount --bind /dev "$root/dev" && mount -t proc proc "$root/proc" || { wrong "mounting"; exit 1; }
mkdir -p "$root/debs" "$root/trial"
cp "$folder"/made/*.deb "$root/debs/"
chown -R 65534:65534 "$root/trial"
quietly "reading the archive's lists" within apt-get update || exit 1
files >"$folder/files_before"
packages >"$folder/packages_before"
# install NAME...: packages of ours, and what these say that they need.
install() {
  local name files=()
  for name in "$@"; do files+=("$(cd "$root" && echo ./debs/"$name"_[0-9]*.deb)"); done
  quietly "installing $*" within sh -c 'cd / && exec apt-get install -y --no-install-recommends "$@"' sh "${files[@]}" || exit 1
}

install libheddle heddle
scene=/usr/share/heddle/graphs/scene.json
quietly "heddle version" as_user heddle version
quietly "heddle plugins" as_user heddle plugins
has "org.heddle.samplers 0.1.0  /usr/lib/heddle/plugins/samplers.so" "heddle plugins"
! grep -E "refused|/(video|shader|cuda)\.so" "$folder/said" || wrong "heddle plugins tells others than those of libheddle"
quietly "heddle run" as_user env ONEDNN_MAX_CPU_ISA="${ONEDNN_MAX_CPU_ISA:-ALL}" heddle run $scene --devices cpu:0
[ "$(head -c 8 "$root/trial/output/scene_00001_.png" | tail -c 7)" = $'PNG\r\n\x1a' ] || wrong "heddle run made no picture"
[ -s "$root/usr/share/man/man1/heddle.1" ] || [ -s "$root/usr/share/man/man1/heddle.1.gz" ] || wrong "there is no man page"
! [ -e "$root/usr/include/heddle" ] || wrong "heddle has headers"

# The others bring their plugins, which find what they open.
others=()
for name in video shader; do
  [ -e "$(echo "$root"/debs/heddle-"$name"_*.deb)" ] && others+=("heddle-$name")
done
if [ ${#others[@]} -gt 0 ]; then
  install "${others[@]}"
  quietly "heddle plugins" as_user heddle plugins
  for name in "${others[@]}"; do has "org.heddle.${name#heddle-} 0.1.0  /usr/lib/heddle/plugins/${name#heddle-}.so" "heddle plugins"; done
fi

# What is built outside, by CMake and by pkg-config, and found without a hint.
install heddle-dev
quietly "installing compilers" within apt-get install -y --no-install-recommends g++ cmake make pkg-config || exit 1
block cpp 1 "$sources/README.md" >"$root/trial/hello.cpp"
block json 1 "$sources/README.md" >"$root/trial/hello.json"
block cpp 2 "$sources/README.md" >"$root/trial/embed.cpp"
block c 1 "$sources/sdk/install/README.md" >"$root/trial/draw.c"
{
  printf 'cmake_minimum_required(VERSION 3.20)\nproject(outside LANGUAGES CXX)\n'
  block cmake 1 "$sources/sdk/install/README.md"
} >"$root/trial/CMakeLists.txt"
mkdir -p "$root/trial/graphs"
sed -e 's/"steps": 28/"steps": 1/' -e 's/"width": 256, "height": 256/"width": 64, "height": 64/' "$root$scene" >"$root/trial/graphs/scene.json"
! cmp -s "$root/trial/graphs/scene.json" "$root$scene" || wrong "the picture is not smaller"
chown -R 65534:65534 "$root/trial"
quietly "configuring" as_user cmake -S . -B by_cmake
quietly "building with CMake" as_user make -C by_cmake
line=$(grep -F -- '    cc -std=c11 draw.c' "$sources/sdk/install/README.md")
quietly "$line" as_user sh -c "$line"
quietly "by_cmake/embed" as_user by_cmake/embed
[ "$(head -c 2 "$root/trial/lighthouse.ppm")" = P6 ] || wrong "by_cmake/embed made no picture"
rm -rf "$root/trial/output"
quietly "draw" as_user ./draw
[ -s "$root/trial/output/scene_00001_.png" ] || wrong "draw made no picture"
quietly "heddle run --plugins" as_user heddle run hello.json --plugins by_cmake
has 'show PreviewAny: Hello, reader! Hello, reader!' "heddle run --plugins"

# An update of the same packages, and all of it away again.
quietly "installing once more" within sh -c 'exec apt-get install -y --reinstall --no-install-recommends /debs/libheddle_*.deb /debs/heddle_*.deb'
mapfile -t ours < <(within dpkg-query -W -f '${Package}\n' | grep heddle)
[ ${#ours[@]} -eq $((3 + ${#others[@]})) ] || wrong "installed are ${ours[*]}"
quietly "removing" within apt-get purge -y --autoremove "${ours[@]}" g++ cmake make pkg-config
has "Removing libheddle" "apt-get"
packages | diff "$folder/packages_before" - || wrong "other packages are installed than before"
files | diff "$folder/files_before" - >"$folder/differ" || true
grep -i heddle "$folder/differ" && wrong "files of heddle are left over"
[ ! -s "$folder/differ" ] || { wrong "what they needed left something over:"; cat "$folder/differ"; }
exit $((failures > 0))
