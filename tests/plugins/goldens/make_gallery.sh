#!/bin/bash
# Draws the pictures of graphs/gallery again: make_gallery.sh HEDDLE, in the repository's root.
set -eu
heddle=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
run() { "$heddle" run "$@" --input graphs --output "$out" --devices cpu:0 --compute cpu:0=f32 --cache none; }
for name in inpainting outpainting two_stages lora custom_sampling tiled_decode compositing saved_form lists area_composition; do
  run "graphs/$name.json"
  cp "$out/${name}_00001_.png" "graphs/gallery/$name.png"
done
run graphs/batch.json
cp "$out/batch_sheet_00001_.png" graphs/gallery/batch.png
run graphs/animation.json
cp "$out/animation_00001_.webp" graphs/gallery/animation.webp
