#!/bin/bash
# sdk/testing/family_ops.txt says which ops each model that can be measured asks of a device. Here each is drawn small, on the CPU, and
# must ask for these.
# Usage: family_ops_test.sh PROGRAM FILE; with HEDDLE_UPDATE_GOLDEN=1 it writes FILE.
set -u
program=$(readlink -f "$1")
file=$(readlink -f "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export XDG_CONFIG_HOME=$folder/config XDG_CACHE_HOME=$folder/cache
unset HEDDLE_DEVICES HEDDLE_PLUGINS
models=$("$program" bench | awk '{ print $1 }')
[ "$(wc -w <<<"$models")" -ge 30 ] || { echo "FAILED: heddle bench tells only: $models"; exit 1; }
for model in $models; do
  "$program" bench "$model" --check --devices cpu --compute cpu=f32 --log-level debug >said 2>&1 || { echo "FAILED: heddle bench $model --check"; tail -n 5 said; exit 1; }
  echo "$model: $(sed -nE 's#^heddle: debug: cpu:0 runs ([a-z0-9_]+/[0-9]+): .*#\1#p' said | LC_ALL=C sort -u | tr '\n' ' ' | sed 's/ $//')"
done >made
[ "${HEDDLE_UPDATE_GOLDEN:-}" != 1 ] || cp made "$file"
diff "$file" made || { echo "FAILED: $file says otherwise; HEDDLE_UPDATE_GOLDEN=1 writes it anew"; exit 1; }
