"""A step of a FLUX-size transformer: heddle beside diffusers, on the same GPU, one after the other.

    python3 tests/bench/flux_step.py HEDDLE [--size WxH] [--steps N] [--device cuda:0] [--no-compile]

`heddle bench flux-dev` and diffusers' FluxTransformer2DModel, eager and with torch.compile, in bf16,
with random weights and inputs of the same shapes. Prints the milliseconds of a step, and heddle's as
a share of the others'. Times are CUDA events' on both sides; the medians of all steps.
"""

import argparse
import json
import statistics
import subprocess

# FLUX.1-dev's transformer/config.json.
CONFIG = dict(patch_size=1, in_channels=64, num_layers=19, num_single_layers=38, attention_head_dim=128,
              num_attention_heads=24, joint_attention_dim=4096, pooled_projection_dim=768, guidance_embeds=True,
              axes_dims_rope=(16, 56, 56))
TOKENS = 512


def run_heddle(arguments):
    command = [arguments.heddle, "bench", "flux-dev", "--size", arguments.size, "--steps", str(arguments.steps), "--devices",
               arguments.device, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}")
    return json.loads(done.stdout)


def time_diffusers(arguments, compiled):
    import torch
    from diffusers import FluxTransformer2DModel

    device = torch.device(arguments.device)
    torch.manual_seed(1)
    width, height = (int(side) // 16 for side in arguments.size.split("x"))
    with torch.device(device), torch.no_grad():
        torch.set_default_dtype(torch.bfloat16)
        model = FluxTransformer2DModel(**CONFIG).eval()
        for parameter in model.parameters():
            parameter.normal_(0, 0.02)
        rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        image_ids = torch.stack([torch.zeros_like(rows), rows, columns], -1).reshape(-1, 3).to(torch.bfloat16)
        inputs = dict(hidden_states=torch.randn(1, width * height, 64), encoder_hidden_states=torch.randn(1, TOKENS, 4096),
                      pooled_projections=torch.randn(1, 768), timestep=torch.tensor([0.5]), guidance=torch.tensor([3.5]),
                      img_ids=image_ids, txt_ids=torch.zeros(TOKENS, 3), return_dict=False)
        if compiled:
            model = torch.compile(model, mode="max-autotune-no-cudagraphs")
        for _ in range(3):
            model(**inputs)
        times = []
        for _ in range(arguments.steps):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            model(**inputs)
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heddle")
    parser.add_argument("--size", default="1024x1024")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--no-compile", action="store_true")
    arguments = parser.parse_args()
    ours = run_heddle(arguments)
    print(json.dumps(ours))
    step = ours["median_seconds"]
    print(f"heddle                    {step * 1e3:8.2f} ms  {ours['flops_per_second'] / 1e12:6.1f} TFLOP/s  planned {ours['planned_seconds'] * 1e3:.2f} ms", flush=True)
    for compiled in [False] if arguments.no_compile else [False, True]:
        theirs = time_diffusers(arguments, compiled)
        name = "diffusers, torch.compile" if compiled else "diffusers, eager"
        print(f"{name:<25} {theirs * 1e3:8.2f} ms  heddle takes {step / theirs:.3f} of it", flush=True)


if __name__ == "__main__":
    main()
