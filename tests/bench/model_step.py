"""A step of a published transformer, or a picture of an autoencoder: heddle beside diffusers, on the same GPU, one after the other.

    python3 tests/bench/model_step.py HEDDLE [--model flux-dev|qwen-image|flux-vae] [--size WxH] [--steps N] [--device cuda:0]
                                      [--weight-dtype TYPE] [--no-compile] [--products]

`heddle bench MODEL` and diffusers' transformer of that model, eager and with torch.compile, in bf16,
with random weights and inputs of the same shapes; heddle's weights loaded as TYPE
("fp8_e4m3fn_fast"). Prints the milliseconds of a step, and heddle's as
a share of the others'. A step of qwen-image, which is guided, has two sets of inputs: two forwards of
diffusers. flux-vae is decoded once, by diffusers in the order of channels that its convolutions like. --products (flux-dev):
also what PyTorch takes for the products and attentions of a step alone, by cuBLAS and cuDNN and replayed as a graph, with nothing
between them: what no step can take less than on this card with these libraries. Times are CUDA events' on both sides; the medians of all steps.
"""

import argparse
import json
import statistics
import subprocess

# Each model's transformer/config.json, the tokens of its text, and how many sets a step has.
MODELS = {
    "flux-dev": dict(type="FluxTransformer2DModel", tokens=512, sets=1, config=dict(
        patch_size=1, in_channels=64, num_layers=19, num_single_layers=38, attention_head_dim=128, num_attention_heads=24,
        joint_attention_dim=4096, pooled_projection_dim=768, guidance_embeds=True, axes_dims_rope=(16, 56, 56))),
    "qwen-image": dict(type="QwenImageTransformer2DModel", tokens=128, sets=2, config=dict(
        patch_size=2, in_channels=64, out_channels=16, num_layers=60, attention_head_dim=128, num_attention_heads=24,
        joint_attention_dim=3584, axes_dims_rope=(16, 56, 56))),
    "flux-vae": dict(type="AutoencoderKL", tokens=0, sets=1, config=dict(
        in_channels=3, out_channels=3, latent_channels=16, block_out_channels=(128, 256, 512, 512), layers_per_block=2,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4, norm_num_groups=32, sample_size=1024,
        scaling_factor=0.3611, shift_factor=0.1159, use_quant_conv=False, use_post_quant_conv=False)),
}


def run_heddle(arguments):
    command = [arguments.heddle, "bench", arguments.model, "--size", arguments.size, "--devices", arguments.device, "--json"]
    if arguments.model != "flux-vae":
        command += ["--steps", str(arguments.steps), "--weight-dtype", arguments.weight_dtype]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}")
    return json.loads(done.stdout)


def inputs_of(model, width, height, torch):
    """For a picture of width x height tokens; on the default device, in the default type."""
    config, tokens = model["config"], model["tokens"]
    if model["type"] == "AutoencoderKL":
        latent = torch.randn(1, config["latent_channels"], 2 * height, 2 * width)
        return dict(z=latent.to(memory_format=torch.channels_last), return_dict=False)
    inputs = dict(hidden_states=torch.randn(1, width * height, config["in_channels"]),
                  encoder_hidden_states=torch.randn(1, tokens, config["joint_attention_dim"]), timestep=torch.tensor([0.5]),
                  return_dict=False)
    if model["type"] == "QwenImageTransformer2DModel":
        mask = torch.ones(1, tokens, dtype=torch.bool)
        return dict(inputs, encoder_hidden_states_mask=mask, img_shapes=[[(1, height, width)]])
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    image_ids = torch.stack([torch.zeros_like(rows), rows, columns], -1).reshape(-1, 3).to(torch.get_default_dtype())
    return dict(inputs, pooled_projections=torch.randn(1, config["pooled_projection_dim"]), guidance=torch.tensor([3.5]),
                img_ids=image_ids, txt_ids=torch.zeros(tokens, 3))


def make_model(model, torch):
    import diffusers

    made = getattr(diffusers, model["type"])(**model["config"]).eval()
    for parameter in made.parameters():
        parameter.normal_(0, 0.02)
    if model["type"] != "AutoencoderKL":
        return made
    made.decoder.to(memory_format=torch.channels_last)
    return made.decode


def time_diffusers(arguments, compiled):
    import torch

    torch.manual_seed(1)
    width, height = (int(side) // 16 for side in arguments.size.split("x"))
    model = MODELS[arguments.model]
    with torch.device(torch.device(arguments.device)), torch.no_grad():
        torch.set_default_dtype(torch.bfloat16)
        forward = make_model(model, torch)
        sets = [inputs_of(model, width, height, torch) for _ in range(model["sets"])]
        if compiled:
            forward = torch.compile(forward)
        for _ in range(3):
            forward(**sets[0])
        times = []
        for _ in range(arguments.steps):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for inputs in sets:
                forward(**inputs)
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(times)


def time_products(arguments):
    """Seconds of flux-dev's products and attentions alone."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import linear, scaled_dot_product_attention

    torch.manual_seed(1)
    width, height = (int(side) // 16 for side in arguments.size.split("x"))
    config, text, picture = MODELS["flux-dev"]["config"], MODELS["flux-dev"]["tokens"], width * height
    heads, size = config["num_attention_heads"], config["attention_head_dim"]
    hidden = heads * size
    stream = [(hidden, 3 * hidden), (hidden, hidden), (hidden, 4 * hidden), (4 * hidden, hidden)]
    layers = [[(tokens, *shape) for tokens in (picture, text) for shape in stream] for _ in range(config["num_layers"])]
    joint = [(hidden, 7 * hidden), (5 * hidden, hidden)]
    layers += [[(text + picture, *shape) for shape in joint] for _ in range(config["num_single_layers"])]
    with torch.device(torch.device(arguments.device)), torch.no_grad(), sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        torch.set_default_dtype(torch.bfloat16)
        weights = [[torch.randn(out, of) * 0.02 for _, of, out in layer] for layer in layers]
        inputs = {key: torch.randn(1, *key) for key in {(tokens, of) for layer in layers for tokens, of, _ in layer}}
        q, k, v = (torch.randn(1, text + picture, heads, size).transpose(1, 2) for _ in range(3))

        def step():
            for layer, matrices in zip(layers, weights):
                scaled_dot_product_attention(q, k, v)
                for (tokens, of, _), matrix in zip(layer, matrices):
                    linear(inputs[tokens, of], matrix)

        beside = torch.cuda.Stream()
        with torch.cuda.stream(beside):
            step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        times = []
        for _ in range(3 + arguments.steps):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(times[3:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heddle")
    parser.add_argument("--model", choices=MODELS, default="flux-dev")
    parser.add_argument("--size", default="1024x1024")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--weight-dtype", default="default")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--products", action="store_true")
    arguments = parser.parse_args()
    if arguments.products and arguments.model != "flux-dev":
        parser.error("--products are those of flux-dev")
    ours = run_heddle(arguments)
    print(json.dumps(ours))
    step = ours["median_seconds"]
    print(f"heddle                    {step * 1e3:8.2f} ms  {ours['flops_per_second'] / 1e12:6.1f} TFLOP/s  planned {ours['planned_seconds'] * 1e3:.2f} ms", flush=True)
    for compiled in [False] if arguments.no_compile else [False, True]:
        theirs = time_diffusers(arguments, compiled)
        name = "diffusers, torch.compile" if compiled else "diffusers, eager"
        print(f"{name:<25} {theirs * 1e3:8.2f} ms  heddle takes {step / theirs:.3f} of it", flush=True)
    if arguments.products:
        least = time_products(arguments)
        print(f"products, attention alone {least * 1e3:8.2f} ms  {least / theirs:.3f} of {name}; heddle takes {step / least:.3f} of it", flush=True)


if __name__ == "__main__":
    main()
