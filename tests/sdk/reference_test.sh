#!/bin/bash
# The reference of the SDK's headers by Doxygen, without a warning; and one with a comment that names what is not there is refused.
# Usage: reference_test.sh SOURCES
set -u
sources=$(readlink -f "$1")
command -v doxygen >/dev/null || { echo "skipped: there is no doxygen"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$sources" || exit 1
# made INPUT: Doxygen's words are in `said`.
made() { { cat sdk/Doxyfile; echo "INPUT = $1"; echo "OUTPUT_DIRECTORY = $folder/reference"; } | doxygen - >"$folder/said" 2>&1; }

made sdk/include/heddle || { echo "FAILED: Doxygen warns"; cat "$folder/said"; exit 1; }
[ -s "$folder/reference/html/index.html" ] || { echo "FAILED: there is no reference"; exit 1; }
grep -rqs heddle_node_desc "$folder/reference/html/annotated.html" || { echo "FAILED: it does not list heddle_node_desc"; exit 1; }

printf '/** Nothing.\n * @param absent is not there */\nvoid heddle_nothing(int here);\n' >"$folder/wrong.h"
! made "$folder/wrong.h" || { echo "FAILED: a wrong comment passes"; exit 1; }
grep -q absent "$folder/said" || { echo "FAILED: it does not say what is wrong"; cat "$folder/said"; exit 1; }
