"""From prompt to picture on a budget that holds only a part of what the workflow loads.

    python3 tests/bench/small_card.py BUNDLE WORKFLOW [--model qwen-image|wan2.2] [--budget 16GiB] [--steps N] [--runs N] [--folder DIR] [--link 55.5]
                                   [--heddle OPTIONS]

BUNDLE: from cuda_bundle.sh. WORKFLOW: ComfyUI's qwen_image.json or wan22_t2v_14b.json. Files of true size are filled with random numbers in
DIR (default: a folder in memory). qwen-image: the model in 8 bits, 20 GB; the text encoder in bf16, 16 GB; the autoencoder; a picture of
1024x1024. wan2.2: both experts in 8 bits, 14 GB each, half of the steps each; the autoencoder; of the text encoder two layers; 81 frames of
832x480, of which one is saved. A server draws with a new prompt each time, on the whole card and on the budget. The bound is the longer of
what the whole card takes when everything is there (compute) and of the bytes that moved to the card, by its timeline, over the link (GB/s).
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
from foreign_memory import ROOT, fill  # noqa: E402
from many_runs import Server  # noqa: E402

GOLDENS = ROOT / "tests" / "plugins" / "goldens"


def fill_in_8_bits(path, tensors):
    """Numbers of 8 bits are written by PyTorch, so that none of them is NaN; scales are 1, other numbers bf16."""
    import flux_headers
    import torch

    flux_headers.write(str(path), tensors)
    drawn = torch.randn(1 << 26, device="cuda") * 0.02
    pools = {"F8_E4M3": drawn.to(torch.float8_e4m3fn), "BF16": drawn[: 1 << 25].to(torch.bfloat16), "F32": torch.ones(1 << 10, device="cuda")}
    pools = {kind: memoryview(pool.view(torch.uint8).cpu().numpy()) for kind, pool in pools.items()}
    with open(path, "r+b", buffering=0) as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        for name, entry in header.items():
            if name == "__metadata__" or entry["dtype"] not in pools:
                continue
            begin, end = (8 + length + at for at in entry["data_offsets"])
            file.seek(begin)
            while begin < end:
                begin += file.write(pools[entry["dtype"]][: end - begin])


def fill_qwen_image(folder):
    import flux_headers

    files = flux_headers.FILES
    model, encoder = "diffusion_models/qwen_image_fp8_e4m3fn", "text_encoders/qwen_2.5_vl_7b_fp8_scaled"
    fill_in_8_bits(folder / f"{model}.safetensors", files[model]())
    fill(folder / f"{encoder}.safetensors", {
        name: ("BF16", shape) for name, (_, shape) in files[encoder]().items()
        if "scale_weight" not in name and name not in ("scaled_fp8", "lm_head.weight")})
    fill(folder / "vae/qwen_image_vae.safetensors", files["vae/qwen_image_vae"]())


def fill_wan(folder):
    import flux_headers

    files = flux_headers.FILES
    for noise in "high", "low":
        model = f"diffusion_models/wan2.2_t2v_{noise}_noise_14B_fp8_scaled"
        fill_in_8_bits(folder / f"{model}.safetensors", files[model]())
    fill(folder / "vae/wan_2.1_vae.safetensors", files["vae/wan_2.1_vae"]())
    encoder, pieces = "text_encoders/umt5_xxl_fp8_e4m3fn_scaled", (GOLDENS / "umt5/spiece.model").read_bytes()
    layer = {name: ("BF16", shape) for name, (_, shape) in files[encoder]().items()
             if ("block.0." in name or "block.1." in name) and "scale" not in name or name == "encoder.final_layer_norm.weight"}
    fill_in_8_bits(folder / f"{encoder}.safetensors", {
        "shared.weight": ("BF16", (4096, 4096)), **layer, "spiece_model": ("U8", (len(pieces),), pieces)})


def nodes_of(flow, kind):
    return [name for name, node in flow.items() if node["class_type"] == kind]


def prepare_qwen_image(flow, steps):
    sampler = flow[nodes_of(flow, "KSampler")[0]]["inputs"]
    sampler["steps"] = steps
    flow[nodes_of(flow, "EmptySD3LatentImage")[0]]["inputs"].update(width=1024, height=1024)
    return sampler["positive"][0], sampler, "seed"


def prepare_wan(flow, steps):
    first, second = sorted((flow[name]["inputs"] for name in nodes_of(flow, "KSamplerAdvanced")), key=lambda node: node["start_at_step"])
    for sampler in first, second:
        sampler["steps"] = steps
    first["end_at_step"] = second["start_at_step"] = steps // 2
    flow[nodes_of(flow, "EmptyHunyuanLatentVideo")[0]]["inputs"].update(width=832, height=480, length=81)
    for kind in "SaveAnimatedWEBP", "SaveWEBM":  # a processor takes seconds for all frames
        for name in nodes_of(flow, kind):
            del flow[name]
    flow["one frame"] = dict(class_type="ImageFromBatch", inputs=dict(image=[nodes_of(flow, "VAEDecode")[0], 0], batch_index=0, length=1))
    flow["save"] = dict(class_type="SaveImage", inputs=dict(images=["one frame", 0], filename_prefix="frame"))
    return first["positive"][0], first, "noise_seed"


# What fills the files, what prepares the workflow (and tells the node of the prompt and where the seed stands), and the steps.
MODELS = {"qwen-image": (fill_qwen_image, prepare_qwen_image, 20), "wan2.2": (fill_wan, prepare_wan, 20)}


def pictures(arguments, folder, budget):
    """Seconds and bytes moved to the card of each picture but the first, by the timelines of whole processes' runs in one server."""
    bundle = pathlib.Path(arguments.bundle).resolve()
    flow = json.loads(pathlib.Path(arguments.workflow).read_text())
    prompt, sampler, seed = MODELS[arguments.model][1](flow, arguments.steps)
    (folder / "workflow.json").write_text(json.dumps(flow))
    traces = folder / f"traces-{budget}"
    traces.mkdir()
    command = [str(bundle / "heddle"), "serve", "--devices", "cuda:0", "--cache", "none", "--port", "8460", "--plugins", str(bundle / "plugins"),
               "--models", str(folder), "--output", str(folder / "output"), "--queue", str(folder / f"queue-{budget}.db"), "--user",
               str(folder / "user"), "--traces", str(traces), *([] if budget == "all" else ["--budget", f"cuda={budget}"]), *arguments.heddle.split()]
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{bundle / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    server = subprocess.Popen(command, env=environment)
    results = []
    try:
        client = Server.__new__(Server)
        client.address = "http://127.0.0.1:8460"
        client.wait_until_it_answers()
        for turn in range(arguments.runs + 1):
            flow[prompt]["inputs"]["text"] = f"picture number {turn} of a house"
            sampler[seed] = turn
            begin = time.monotonic()
            run = client.ask("/prompt", {"prompt": flow, "client_id": "bench"})["prompt_id"]
            while not (entry := client.ask(f"/history/{run}").get(run)):
                time.sleep(0.01)
            seconds = time.monotonic() - begin
            if entry["status"]["status_str"] != "success":
                raise SystemExit(json.dumps(entry["status"])[:2000])
            events = client.ask(f"/v1/jobs/{run}/trace")["traceEvents"]
            moved = sum(e["args"]["bytes"] for e in events if e.get("cat") == "page-in")
            if turn:
                results.append((seconds, moved))
            nodes = {e["name"]: round(e["dur"] / 1e6, 3) for e in events if e.get("cat") == "node" and e["dur"] > 20000}
            print(f"  {budget}: {seconds:.2f} s, {moved / 1e9:.1f} GB moved; {nodes}", flush=True)
    finally:
        server.terminate()
        server.wait()
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("workflow")
    parser.add_argument("--budget", default="16GiB")
    parser.add_argument("--model", choices=MODELS, default="qwen-image")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--runs", type=int, default=3, help="that count, behind one that loads")
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--link", type=float, default=55.5)
    parser.add_argument("--heddle", default="", help="further options of heddle: '--host-budget=100GiB --pinned=50GiB'")
    arguments = parser.parse_args()
    fill_all, _, steps = MODELS[arguments.model]
    arguments.steps = arguments.steps or steps
    folder = pathlib.Path(tempfile.mkdtemp(prefix="small-card-", dir=arguments.folder))
    try:
        fill_all(folder)
        compute = statistics.median(seconds for seconds, _ in pictures(arguments, folder, "all"))
        small = pictures(arguments, folder, arguments.budget)
        seconds = statistics.median(s for s, _ in small)
        moved = statistics.median(b for _, b in small)
        link = moved / arguments.link / 1e9
        print(f"{arguments.steps} steps at {arguments.budget}: {seconds:.2f} s; compute {compute:.2f} s, {moved / 1e9:.1f} GB over the link {link:.2f} s:"
              f" {seconds / max(compute, link):.3f} of the longer")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
