"""Qwen-Image from prompt to picture on a budget that holds neither its model nor its text encoder.

    python3 tests/bench/small_card.py BUNDLE WORKFLOW [--budget 16GiB] [--steps 20] [--folder DIR] [--link 55.5]

BUNDLE: from cuda_bundle.sh. WORKFLOW: ComfyUI's qwen_image.json. Files of true size are filled with random numbers in DIR (default: a
folder in memory): the model in 8 bits, 20 GB; the text encoder in bf16, 16 GB; the autoencoder. A server draws pictures with a new prompt
each, on the whole card and on the budget. The bound is the longer of what the whole card takes when everything is there (compute) and of
the bytes that moved to the card, by its timeline, over the link (GB/s).
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
from many_runs import Server  # noqa: E402


def fill_all(folder):
    """Numbers of 8 bits are written by PyTorch, so that none of them is NaN."""
    import flux_headers
    import torch

    def scaled(name, kind):
        path = folder / f"{name}.safetensors"
        tensors = {n: (kind or t, s) for n, (t, s) in flux_headers.FILES[name]().items()
                   if kind is None or ("scale_weight" not in n and n not in ("scaled_fp8", "lm_head.weight"))}
        if all(t == "BF16" for t, _ in tensors.values()):
            fill(path, tensors)
            return
        flux_headers.write(str(path), tensors)
        pool = (torch.randn(1 << 26, device="cuda") * 0.02).to(torch.float8_e4m3fn).view(torch.uint8).cpu().numpy()
        with open(path, "r+b", buffering=0) as file:
            begin = 8 + int.from_bytes(file.read(8), "little")
            size = path.stat().st_size
            while begin < size:
                file.seek(begin)
                begin += file.write(memoryview(pool)[: min(len(pool), size - begin)])

    scaled("diffusion_models/qwen_image_fp8_e4m3fn", None)
    scaled("text_encoders/qwen_2.5_vl_7b_fp8_scaled", "BF16")
    scaled("vae/qwen_image_vae", None)


def pictures(arguments, folder, budget, count=3):
    """Seconds and bytes moved to the card of each picture but the first, by the timelines of whole processes' runs in one server."""
    bundle = pathlib.Path(arguments.bundle).resolve()
    flow = json.loads(pathlib.Path(arguments.workflow).read_text())
    sampler = next(n for n, node in flow.items() if node["class_type"] == "KSampler")
    prompt = flow[sampler]["inputs"]["positive"][0]
    flow[sampler]["inputs"]["steps"] = arguments.steps
    size = next(node for node in flow.values() if node["class_type"] == "EmptySD3LatentImage")
    size["inputs"].update(width=1024, height=1024)
    (folder / "workflow.json").write_text(json.dumps(flow))
    traces = folder / f"traces-{budget}"
    traces.mkdir()
    command = [str(bundle / "heddle"), "serve", "--devices", "cuda:0", "--cache", "none", "--port", "8460", "--plugins", str(bundle / "plugins"),
               "--models", str(folder), "--output", str(folder / "output"), "--queue", str(folder / f"queue-{budget}.db"), "--user",
               str(folder / "user"), "--traces", str(traces), *([] if budget == "all" else ["--budget", f"cuda={budget}"])]
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{bundle / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    server = subprocess.Popen(command, env=environment)
    results = []
    try:
        client = Server.__new__(Server)
        client.address = "http://127.0.0.1:8460"
        client.wait_until_it_answers()
        for turn in range(count + 1):
            flow[prompt]["inputs"]["text"] = f"picture number {turn} of a house"
            flow[sampler]["inputs"]["seed"] = turn
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
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--link", type=float, default=55.5)
    arguments = parser.parse_args()
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
