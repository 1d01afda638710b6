#!/bin/bash
# Holds packages of Debian against tests/e2e/licences.txt: each is on the list, and its copyright file says what the list says.
# Usage: licences.sh brought|linked PACKAGE=COPYRIGHT...     "brought": what is only to be used where it is installed is refused, too
set -u
list=$(dirname "$(readlink -f "$0")")/licences.txt
mode=$1
shift
failures=0
wrong() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
for each in "$@"; do
  package=${each%%=*} copyright=${each#*=} found=
  while IFS= read -r row; do
    [[ $row != \#* && $row == *' | '*' | '* ]] || continue
    pattern=${row%% | *} rest=${row#* | }
    [[ $package =~ ^($pattern)$ ]] || continue
    found=${rest%% | *}
    grep -qF -- "${rest#* | }" "$copyright" || wrong "$package: its copyright file no longer says '${rest#* | }', so it may not be under $found"
  done <"$list"
  [ -n "$found" ] || wrong "$package: its licence is not on the list: read $copyright, and add it to tests/e2e/licences.txt if we may bring it"
  [ "$mode$found" != broughtnone ] || wrong "$package is brought, and may only be used where it is installed"
done
[ $# -ge 10 ] || wrong "only $# packages were looked at"
exit $((failures > 0))
