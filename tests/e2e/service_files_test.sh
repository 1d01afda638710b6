#!/bin/bash
# The unit of systemd and the Containerfile: systemd takes the one, and the options that both give exist.
# Usage: service_files_test.sh PROGRAM BUNDLE_SOURCES
set -u
program=$(readlink -f "$1")
sources=$(readlink -f "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

wrong() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
# exist FILE COMMAND: every option of the file is one of the command.
exist() {
  local options
  options=$(grep -v '^#' "$1" | grep -oE -- '(^|[" ])--[a-z][a-z-]*' | tr -d '" ' | grep -vE '^--(system|uid|home-dir)$' | sort -u)
  [ -n "$options" ] || wrong "$1 gives no options"
  for option in $options; do
    "$program" "$2" --help | grep -qE -- "^ *$option( |$)" || wrong "$1: heddle $2 has no $option"
  done
}

exist "$sources/heddle.service" serve
exist "$sources/Containerfile" serve
for line in 'USER heddle' 'STOPSIGNAL SIGTERM' 'ENTRYPOINT \["/opt/heddle/bin/heddle"\]'; do
  grep -qx "$line" "$sources/Containerfile" || wrong "Containerfile: there is no $line"
done
# The image is made of an unpacked bundle, so nothing is built or fetched in it.
! grep -qE 'https?://|apt-get|curl|wget' "$sources/Containerfile" || wrong "Containerfile fetches something"

if command -v systemd-analyze >/dev/null; then
  # It looks for the program and the file that the documentation is in.
  sed "s#/opt/heddle/bin/heddle serve#$program serve#; s#^Documentation=.*##; s#^\(User\|Group\)=.*#\1=root#" "$sources/heddle.service" >"$folder/heddle.service"
  said=$(systemd-analyze verify --man=no "$folder/heddle.service" 2>&1 | grep heddle.service)
  [ -z "$said" ] || wrong "heddle.service: $said"
else
  echo "skipped: the unit of systemd: there is no systemd-analyze here"
fi
[ $failures -eq 0 ]
