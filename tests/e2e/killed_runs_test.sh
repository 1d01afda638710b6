#!/bin/bash
# killed_runs_test.sh PROGRAM SAMPLE_PLUGINS TESTS [COUNT]
# Runs that are killed at random instants (kill -9), and go on from their checkpoints in other processes, write the file of a run
# that was left alone, byte for byte. Checkpoints that are torn, or of something else, are refused by name.
set -uo pipefail
program=$(realpath "$1") plugins=$(realpath "$2") tests=$(realpath "$3") count=${4:-100}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache XDG_CONFIG_HOME=$work/config
RANDOM=20

fail() { echo "FAILED: $*" >&2; exit 1; }

mkdir -p models/diffusion_models
cp "$tests/plugins/goldens/random/flux_diffusers.safetensors" models/diffusion_models/plain.safetensors
goldens=$tests/plugins/nodes/goldens.safetensors
conditioning() { echo "{\"class_type\": \"test.conditioning\", \"inputs\": {\"path\": \"$goldens\", \"prefix\": \"in.$1\", \"option\": \"\"}}"; }
cat >flow.json <<END
{"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "plain.safetensors", "weight_dtype": "default"}},
 "one": $(conditioning one), "two": $(conditioning two),
 "empty": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 48, "batch_size": 1}},
 "draw": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 7, "steps": 30, "cfg": 3.0,
   "sampler_name": "dpmpp_3m_sde", "scheduler": "karras", "positive": ["one", 0], "negative": ["two", 0],
   "latent_image": ["empty", 0], "denoise": 1.0}},
 "again": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 8, "steps": 30, "cfg": 2.0,
   "sampler_name": "euler_ancestral", "scheduler": "simple", "positive": ["two", 0], "negative": ["one", 0],
   "latent_image": ["draw", 0], "denoise": 0.5}},
 "save": {"class_type": "SaveLatent", "inputs": {"samples": ["again", 0], "filename_prefix": "made"}}}
END
options=(--plugins "$plugins" --models models --devices cpu --compute cpu=f32 --threads 1 --output out)
begin() { "$program" run flow.json "${options[@]}" --checkpoint-every 1 --quiet "$@"; }
made() { ls out/*.latent 2>/dev/null; }

# In milliseconds.
now() { echo $(($(date +%s%N) / 1000000)); }
pause() { sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"; }
wait_for_checkpoint() { # ID: until the process has written its first checkpoint, or has ended
  while kill -0 "$1" 2>/dev/null && [ ! -e flow.checkpoint ]; do pause 2; done
}

# What a run takes, and of that the part in which it has a checkpoint.
started=$(now)
begin &
id=$!
wait_for_checkpoint $id
first=$(now)
wait $id || fail "the run that is left alone"
took=$(($(now) - started)) with_checkpoint=$(($(now) - first + 1))
[ -e flow.checkpoint ] && fail "a run that has succeeded leaves its checkpoint"
[ "$(made | wc -l)" = 1 ] || fail "it writes one file"
cp "$(made)" whole

killed() { # FROM command...: killed at a random instant, of all its time or of that after its first checkpoint
  local from=$1
  shift
  "$@" >/dev/null 2>&1 &
  local id=$!
  if [ "$from" = start ]; then
    pause $((RANDOM * RANDOM % (took + took / 10)))
  else
    wait_for_checkpoint $id
    pause $((RANDOM * RANDOM % with_checkpoint))
    # It was quicker than the one that was measured: the next one is killed sooner.
    [ -e flow.checkpoint ] || with_checkpoint=$((with_checkpoint * 3 / 4 + 1))
  fi
  kill -9 $id 2>/dev/null
  wait $id 2>/dev/null
}

resumed=0
# COUNT runs, and more where too few of them were killed with a checkpoint.
for i in $(seq $((4 * count))); do
  [ "$i" -gt "$count" ] && [ "$resumed" -gt $((count / 4)) ] && break
  runs=$i
  rm -rf out flow.checkpoint
  # The program itself is what is killed, and not a shell around it.
  # A program takes much of so short a run to begin, and on a busy machine more: every second one is killed while it has a checkpoint.
  [ $((i % 2)) = 0 ] && from=checkpoint || from=start
  killed $from "$program" run flow.json "${options[@]}" --checkpoint-every 1 --quiet
  [ $((i % 4)) = 0 ] && [ -e flow.checkpoint ] && killed start "$program" resume flow.checkpoint --quiet
  if [ -e flow.checkpoint ]; then
    resumed=$((resumed + 1))
    # From another folder, without an option: all that it needs stands in the file.
    (cd / && "$program" resume "$work/flow.checkpoint" --quiet) || fail "resume number $i"
    [ -e flow.checkpoint ] && fail "resume number $i leaves its checkpoint"
  elif [ -z "$(made)" ]; then
    begin || fail "run number $i, from its beginning"
  fi
  for file in $(made); do cmp "$file" whole || fail "run number $i: other bytes in $file"; done
  [ -n "$(made)" ] || fail "run number $i wrote nothing"
done
echo "$runs runs killed, $resumed resumed, one takes $took ms"
[ "$resumed" -gt $((count / 4)) ] || fail "only $resumed of $runs had a checkpoint: nothing is shown"

# What is not what the run was begun with is refused, with the file's name and what differs.
until [ -e flow.checkpoint ]; do
  rm -rf out
  killed checkpoint "$program" run flow.json "${options[@]}" --checkpoint-every 1 --quiet
done
cp flow.checkpoint sound
refused() { # what, pattern, options...
  local what=$1 pattern=$2 code=0 said
  shift 2
  said=$("$program" resume "$@" 2>&1) || code=$?
  [ $code = 2 ] || fail "$what: exit code $code: $said"
  grep -q "$pattern" <<<"$said" || fail "$what: it says: $said"
}
size=$(stat -c %s sound)
for i in $(seq 20); do
  head -c $((RANDOM * RANDOM % size)) sound >torn.checkpoint
  refused "a torn checkpoint" "torn.checkpoint" torn.checkpoint
done
for i in $(seq 20); do
  cp sound torn.checkpoint
  at=$((RANDOM * RANDOM % size))
  byte=$(od -An -tu1 -j $at -N 1 sound)
  printf "\\x$(printf %02x $(((byte + 1) % 256)))" | dd of=torn.checkpoint bs=1 seek=$at conv=notrunc status=none
  refused "a damaged checkpoint" "torn.checkpoint" torn.checkpoint
done
refused "another file" "plain.safetensors" models/diffusion_models/plain.safetensors
refused "no file" "nowhere.checkpoint" nowhere.checkpoint
refused "another compute type" "f32.*bf16" sound --compute cpu=bf16
printf x >>models/diffusion_models/plain.safetensors
refused "another model file" "model" sound
echo done
