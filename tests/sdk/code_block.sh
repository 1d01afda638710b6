#!/bin/sh
# Prints the NUMBER-th block of C++ of a page. Usage: code_block.sh NUMBER PAGE
awk -v wanted="$1" '
  /^```cpp$/ { ++blocks; inside = blocks == wanted; next }
  /^```$/ { inside = 0; next }
  inside { print; lines = 1 }
  END { exit !lines }' "$2"
