"""A language model that encodes prompts: heddle beside transformers compiled, on the same GPU, one after the other.

    python3 tests/bench/text_encoders.py BUNDLE [--model qwen3-4b qwen2.5-vl-7b ...] [--tokens 128] [--folder DIR]

BUNDLE: from cuda_bundle.sh. A file of the model's true size and names, bf16, is filled with random numbers in DIR (default: a folder in
memory). heddle runs a workflow that encodes sixty prompts of TOKENS tokens, the template counted in; the first loads the weights, and is told
beside what the link takes for their bytes (--link, GB/s). What the last fifty take, from the end of one node to that of the next, is compared
with a forward of the same shape by transformers with torch.compile (its default mode, and replayed as a CUDA graph: mode
"reduce-overhead"), timed by CUDA events.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from foreign_memory import fill  # noqa: E402

# The file of true_files.json, ComfyUI's type, the tokens of its template, and what transformers calls the model.
MODELS = {
    "qwen3-4b": dict(file="qwen_3_4b", type="lumina2", template=9, of=("Qwen3Config", "Qwen3Model"), config=dict(
        vocab_size=151936, hidden_size=2560, intermediate_size=9728, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8,
        head_dim=128)),
    "qwen2.5-vl-7b": dict(file="qwen_2.5_vl_7b_fp8_scaled", type="qwen_image", template=39, of=("Qwen2Config", "Qwen2Model"), config=dict(
        vocab_size=152064, hidden_size=3584, intermediate_size=18944, num_hidden_layers=28, num_attention_heads=28, num_key_value_heads=4)),
}


def tensors_of(file):
    """Those of the true file, in bf16, without the scales of 8 bits and the head that no encoder reads."""
    import flux_headers

    tensors = flux_headers.FILES[f"text_encoders/{file}"]()
    return {name: ("BF16", shape) for name, (_, shape) in tensors.items()
            if "scale_weight" not in name and name not in ("scaled_fp8", "lm_head.weight")}


def run_heddle(arguments, model, folder):
    path = folder / "text_encoders" / "encoder.safetensors"
    fill(path, tensors_of(model["file"]))
    words = ["house", "tree", "boat", "cloud", "river", "stone", "bird", "road", "field", "lamp"]
    flow = {"clip": {"class_type": "CLIPLoader", "inputs": {"clip_name": "encoder.safetensors", "type": model["type"]}}}
    for i in range(60):
        text = " ".join([words[i % 10]] * (arguments.tokens - model["template"] - 1) + [words[i // 10]])
        flow[f"text{i}"] = {"class_type": "CLIPTextEncode", "inputs": {"clip": ["clip", 0], "text": text}}
        flow[f"show{i}"] = {"class_type": "PreviewAny", "inputs": {"source": [f"text{i}", 0]}}
    (folder / "workflow.json").write_text(json.dumps(flow))
    bundle = pathlib.Path(arguments.bundle).resolve()
    command = [str(bundle / "heddle"), "run", str(folder / "workflow.json"), "--devices", arguments.device, "--cache", "none", "--plugins",
               str(bundle / "plugins"), "--models", str(folder), "--output", str(folder / "output"), "--json"]
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{bundle / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    ends, first = [], None
    for line in process.stdout:
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("event") == "node_done" and event.get("class") == "CLIPTextEncode":
            ends.append(time.monotonic())
            first = first or event["seconds"]
    if process.wait() != 0 or len(ends) != 60:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}, {len(ends)} prompts")
    size = path.stat().st_size
    path.unlink()
    return first, 1e3 * (ends[59] - ends[9]) / 50, size


def run_peer(arguments, model):
    import torch
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, model["of"][0])(**model["config"], max_position_embeddings=4096, dtype=torch.bfloat16)
    with torch.device(arguments.device):
        peer = getattr(transformers, model["of"][1])(config).to(torch.bfloat16).eval()
        tokens = torch.randint(0, 1000, (1, arguments.tokens))
    results = {}
    for name, mode in (("eager", None), ("compiled", "default"), ("compiled, as a graph", "reduce-overhead")):
        forward = torch.compile(peer, mode=mode) if mode else peer
        times = []
        with torch.no_grad():
            for turn in range(15):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                forward(tokens, output_hidden_states=True, use_cache=False)
                end.record()
                torch.cuda.synchronize()
                if turn >= 5:
                    times.append(begin.elapsed_time(end))
        results[name] = statistics.median(times)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("--model", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--link", type=float, default=55.5, help="GB/s from pinned memory to the card")
    arguments = parser.parse_args()
    for name in arguments.model:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="encoders-", dir=arguments.folder))
        try:
            first, ours, size = run_heddle(arguments, MODELS[name], folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(f"{name}, {arguments.tokens} tokens, bf16: heddle {ours:.2f} ms; the first, which loads {size / 1e9:.1f} GB, {first:.3f} s,"
              f" {first * arguments.link * 1e9 / size:.2f} times the link's", flush=True)
        for peer, milliseconds in run_peer(arguments, MODELS[name]).items():
            print(f"  transformers {peer:20} {milliseconds:.2f} ms: heddle {ours / milliseconds:.3f} of it", flush=True)


if __name__ == "__main__":
    main()
