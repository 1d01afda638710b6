#!/bin/sh
# Makes the model from nothing: train.sh DIR FOLDER. DIR (16 GB) keeps what is in between, FOLDER
# becomes the pipeline folder. As measured on one machine of four GPUs: see README.md.
set -e
here=$(cd "$(dirname "$0")" && pwd)
dir=$1 folder=$2 gpus=${GPUS:-4}
run="torchrun --standalone --nproc_per_node=$gpus"
export OMP_NUM_THREADS=4 NCCL_NVLS_ENABLE=0

python3 "$here/vocabulary.py" --out "$dir"
$run "$here/autoencoder.py" --out "$dir" --pictures 60000 --seconds 260 --batch $((64 / gpus))
$run "$here/dataset.py" --out "$dir" --pictures 200000 --captions 6 &
$run "$here/flow.py" --data "$dir" --out "$folder" --state "$dir/state.pt" --seconds 220 \
    --batch $((1024 / gpus)) --lr 1e-3 --reader 0.1 --seed 0 --check 0 --export-every 10000
wait
$run "$here/evaluate.py" "$folder" --out "$dir/evaluation"
python3 "$here/check_pipeline.py" "$folder"
