"""A step of a published transformer, or a picture of an autoencoder or an upscaler: heddle beside diffusers, on the same GPU, one after the other.

    python3 tests/bench/model_step.py HEDDLE [--model NAME] [--size WxH] [--steps N] [--warm-up N] [--device cuda:0]
                                      [--weight-dtype TYPE] [--attention-dtype TYPE] [--no-compile] [--products]

`heddle bench MODEL` and diffusers' transformer of that model, eager and with torch.compile, in bf16,
with random weights and inputs of the same shapes; heddle's weights loaded as TYPE
("fp8_e4m3fn_fast"). Prints the milliseconds of a step, and heddle's as
a share of the others'. A step that is guided has two sets of inputs: two forwards of
diffusers, or one of a batch of two where its pipeline does so (SD3). flux-vae is decoded once, by diffusers in the order of channels that its
convolutions like. Of videos (video_peers.py) one forward is timed, of one branch, at that model's own size. Upscalers (-x4) are those of spandrel, which is to be installed for them; their --size is that of the picture that
goes in, and is to be told. UNets are also timed compiled and replayed as a CUDA graph, without the host. --products: also what PyTorch takes for the products and attentions of a step alone, by cuBLAS and cuDNN and
replayed as a graph, with nothing between them: what no step can take less than on this card with these libraries. They are those that diffusers'
forward does; products of fewer than 16 rows are left out, and so are masks. Times are CUDA events' on both sides; the medians of all steps.
"""

import argparse
import importlib
import json
import statistics
import subprocess

import video_peers


def flux2(layers, single_layers, heads, text, is_guided=False):
    return dict(type="Flux2Transformer2DModel", tokens=512, config=dict(
        num_layers=layers, num_single_layers=single_layers, num_attention_heads=heads, joint_attention_dim=text, guidance_embeds=is_guided))


def sd3(layers, heads, side, **others):
    return dict(type="SD3Transformer2DModel", tokens=154, batch=2, config=dict(
        num_layers=layers, num_attention_heads=heads, caption_projection_dim=64 * heads, pos_embed_max_size=side, **others))


# Each model's transformer/config.json as far as it differs from diffusers' defaults, the tokens of its text, and how many forwards a step
# has (sets) and of how many pictures each is (batch).
MODELS = {
    "flux-dev": dict(type="FluxTransformer2DModel", tokens=512, config=dict(
        patch_size=1, in_channels=64, num_layers=19, num_single_layers=38, attention_head_dim=128, num_attention_heads=24,
        joint_attention_dim=4096, pooled_projection_dim=768, guidance_embeds=True, axes_dims_rope=(16, 56, 56))),
    "chroma": dict(type="ChromaTransformer2DModel", tokens=128, sets=2, config={}),
    "qwen-image": dict(type="QwenImageTransformer2DModel", tokens=128, sets=2, config=dict(
        patch_size=2, in_channels=64, out_channels=16, num_layers=60, attention_head_dim=128, num_attention_heads=24,
        joint_attention_dim=3584, axes_dims_rope=(16, 56, 56))),
    "qwen-image-2.1": dict(type="QwenImage21Transformer2DModel", tokens=128, config={}),
    "z-image": dict(type="ZImageTransformer2DModel", tokens=128, config={}),
    "lumina2": dict(type="Lumina2Transformer2DModel", tokens=128, sets=2, config=dict(cap_feat_dim=2304)),
    "krea2": dict(type="Krea2Transformer2DModel", tokens=128, config={}),
    "flux2-dev": flux2(8, 48, 48, 15360, True),
    "flux2-klein-9b": flux2(8, 24, 32, 12288),
    "flux2-klein-4b": flux2(5, 20, 24, 7680),
    "sd3.5-large": sd3(38, 38, 192, qk_norm="rms_norm"),
    "sd3.5-medium": sd3(24, 24, 384, qk_norm="rms_norm", dual_attention_layers=tuple(range(13))),
    "sd3-medium": sd3(24, 24, 192),
    "sd15": dict(type="UNet2DConditionModel", tokens=77, batch=2, config=dict(cross_attention_dim=768)),
    "sdxl": dict(type="UNet2DConditionModel", tokens=77, batch=2, config=dict(
        block_out_channels=(320, 640, 1280), down_block_types=("DownBlock2D",) + ("CrossAttnDownBlock2D",) * 2,
        up_block_types=("CrossAttnUpBlock2D",) * 2 + ("UpBlock2D",), transformer_layers_per_block=(1, 2, 10), attention_head_dim=(5, 10, 20),
        cross_attention_dim=2048, use_linear_projection=True, addition_embed_type="text_time", addition_time_embed_dim=256,
        projection_class_embeddings_input_dim=2816)),
    "flux-vae": dict(type="AutoencoderKL", tokens=0, config=dict(
        in_channels=3, out_channels=3, latent_channels=16, block_out_channels=(128, 256, 512, 512), layers_per_block=2,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4, norm_num_groups=32, sample_size=1024,
        scaling_factor=0.3611, shift_factor=0.1159, use_quant_conv=False, use_post_quant_conv=False)),
}

SWIN = dict(embed_dim=180, depths=[6] * 6, num_heads=[6] * 6, mlp_ratio=2, upscale=4)
MODELS |= {
    name: dict(type="upscaler", family=family, tokens=0, config=config)
    for name, family, config in (
        ("esrgan-x4", "ESRGAN", dict(in_nc=3, out_nc=3, num_filters=64, num_blocks=23, scale=4)),
        ("span-x4", "SPAN", dict(num_in_ch=3, num_out_ch=3, feature_channels=48, upscale=4)),
        ("swinir-x4", "SwinIR", dict(SWIN, window_size=8, upsampler="nearest+conv")),
        ("hat-x4", "HAT", dict(SWIN, window_size=16, squeeze_factor=30, num_feat=64)),
        ("dat-x4", "DAT", dict(embed_dim=180, depth=[6] * 6, num_heads=[6] * 6, split_size=[16, 16], expansion_factor=4.0, upscale=4)),
    )
}
MODELS |= video_peers.MODELS
warm_up = 3  # calls that are not counted
ONE_STEP = ("flux-vae", "wan-vae", *(name for name in MODELS if name.endswith("-x4")))


def run_heddle(arguments):
    command = [arguments.heddle, "bench", arguments.model, "--size", arguments.size, "--devices", arguments.device, "--json"]
    if "frames" in MODELS[arguments.model]:
        command += ["--frames", str(MODELS[arguments.model]["frames"])]
    if arguments.model not in ONE_STEP:
        command += ["--steps", str(arguments.steps), "--weight-dtype", arguments.weight_dtype]
        if "frames" in MODELS[arguments.model]:
            command += ["--branches", "1"]
    if arguments.attention_dtype != "default":
        command += ["--attention-dtype", arguments.attention_dtype]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}")
    return json.loads(done.stdout)


def inputs_of(model, config, width, height, torch):
    """For a picture of width x height tokens; on the default device, in the default type."""
    kind, tokens = model["type"], model["tokens"]
    if "frames" in model:
        return video_peers.inputs_of(model, config, torch)
    if kind == "upscaler":
        return dict(x=torch.rand(1, 3, 16 * height, 16 * width).to(memory_format=torch.channels_last))
    latent = torch.randn(model.get("batch", 1), config.get("latent_channels", 16), 2 * height, 2 * width)
    if kind == "AutoencoderKL":
        return dict(z=latent.to(memory_format=torch.channels_last), return_dict=False)
    if kind == "ZImageTransformer2DModel":
        return dict(x=[latent[0][:, None]], t=torch.tensor([0.5]), cap_feats=[torch.randn(tokens, config["cap_feat_dim"])], return_dict=False)
    inputs = dict(timestep=torch.full((len(latent),), 0.5), return_dict=False)
    if kind == "UNet2DConditionModel":
        added = dict(text_embeds=torch.randn(len(latent), 1280), time_ids=torch.full((len(latent), 6), 1024.0))
        sample = latent[:, : config["in_channels"]].to(memory_format=torch.channels_last)
        return dict(inputs, sample=sample, encoder_hidden_states=torch.randn(len(latent), tokens, config["cross_attention_dim"]),
                    added_cond_kwargs=added)
    text = lambda *shape: torch.randn(len(latent), tokens, *shape)  # noqa: E731
    if kind == "Lumina2Transformer2DModel":
        return dict(inputs, hidden_states=latent, encoder_hidden_states=text(config["cap_feat_dim"]),
                    encoder_attention_mask=torch.ones(1, tokens, dtype=torch.bool))
    if kind == "SD3Transformer2DModel":
        return dict(inputs, hidden_states=latent, encoder_hidden_states=text(config["joint_attention_dim"]),
                    pooled_projections=torch.randn(len(latent), config["pooled_projection_dim"]))
    inputs["hidden_states"] = torch.randn(1, width * height, config["in_channels"])
    if kind == "QwenImageTransformer2DModel":
        return dict(inputs, encoder_hidden_states=text(config["joint_attention_dim"]), img_shapes=[[(1, height, width)]],
                    encoder_hidden_states_mask=torch.ones(1, tokens, dtype=torch.bool))
    if kind == "QwenImage21Transformer2DModel":
        is_picture = torch.arange(tokens + width * height // 4)[None] >= tokens
        return dict(inputs, encoder_hidden_states=text(config["context_in_dim"]), img_shapes=[[(1, height, width)]], img_mask=is_picture)
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    positions = torch.stack([torch.zeros_like(rows), rows, columns], -1).reshape(-1, 3).to(torch.get_default_dtype())
    if kind == "Krea2Transformer2DModel":
        return dict(inputs, encoder_hidden_states=text(config["num_text_layers"], config["text_hidden_dim"]),
                    position_ids=torch.cat([torch.zeros(tokens, 3), positions]))
    if kind == "ChromaTransformer2DModel":
        return dict(inputs, encoder_hidden_states=text(config["joint_attention_dim"]), img_ids=positions, txt_ids=torch.zeros(tokens, 3))
    inputs.update(encoder_hidden_states=text(config["joint_attention_dim"]), guidance=torch.tensor([3.5]) if config["guidance_embeds"] else None)
    if kind == "Flux2Transformer2DModel":
        return dict(inputs, img_ids=torch.cat([positions, torch.zeros(len(positions), 1)], -1), txt_ids=torch.zeros(tokens, 4))
    return dict(inputs, pooled_projections=torch.randn(1, config["pooled_projection_dim"]), img_ids=positions, txt_ids=torch.zeros(tokens, 3))


def make_model(model, torch):
    """The model, its config, and what to call."""
    if model["type"] == "upscaler":
        made = getattr(importlib.import_module("spandrel.architectures." + model["family"]), model["family"])(**model["config"]).eval()
        made.config = model["config"]
    else:
        import diffusers

        made = getattr(diffusers, model["type"])(**model["config"]).eval()
    for parameter in made.parameters():
        parameter.normal_(0, 0.02)
    if model["type"] in ("UNet2DConditionModel", "upscaler"):
        made.to(memory_format=torch.channels_last)
    if model["type"] == "AutoencoderKLWan":
        return made, made.decode
    if model["type"] != "AutoencoderKL":
        return made, made
    made.decoder.to(memory_format=torch.channels_last)
    return made, made.decode


def median_seconds(call, steps, torch):
    times = []
    for _ in range(warm_up + steps):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(times[warm_up:])


def recorded_products(forward, torch):
    """What one call does: (shape of the input, weight) of each product of 16 rows or more, and the arguments of each attention."""
    from torch.nn.functional import linear, scaled_dot_product_attention
    from torch.overrides import TorchFunctionMode

    products, attentions = [], []

    class Recorder(TorchFunctionMode):
        def __torch_function__(self, function, types, arguments=(), keywords=None):
            keywords = keywords or {}
            if function is linear and arguments[0].numel() // arguments[0].shape[-1] >= 16:
                products.append((tuple(arguments[0].shape), arguments[1]))
            if function is scaled_dot_product_attention:
                three = [*arguments, *(keywords[name] for name in ("query", "key", "value") if name in keywords)][:3]
                attentions.append(([tuple(of.shape) for of in three], keywords.get("enable_gqa", False)))
            return function(*arguments, **keywords)

    with Recorder():
        forward()
    return products, attentions


def captured(step, torch):
    """What replays the work that step() launches on the GPU, so that the host takes no part in it."""
    beside = torch.cuda.Stream()
    with torch.cuda.stream(beside):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def time_products(forward, steps, torch):
    """Seconds of the products and attentions of a call alone, replayed as a graph."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import linear, scaled_dot_product_attention

    products, attentions = recorded_products(forward, torch)
    inputs = {shape: torch.randn(shape) for shape, _ in products}
    # Heads stand beside each other in a row, as models keep them.
    heads = {shape: torch.randn(shape[0], shape[2], shape[1], shape[3]).transpose(1, 2) for three, _ in attentions for shape in three}

    def step():
        for three, is_grouped in attentions:
            scaled_dot_product_attention(*(heads[shape] for shape in three), enable_gqa=is_grouped)
        for shape, matrix in products:
            linear(inputs[shape], matrix)

    with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION], set_priority=True):
        return median_seconds(captured(step, torch), steps, torch)


def seconds_or_reason(measure):
    """What measure() gives, or, where PyTorch or diffusers fails, the error: the other ways are measured all the same."""
    try:
        return measure()
    except Exception as error:  # of the compiler of PyTorch anything
        return error


def compile_model(made, forward, model, torch):
    """The whole forward; of a video's transformer its blocks, which are nearly all of it and compile once."""
    if "frames" not in model or model["type"].startswith("Autoencoder"):
        return torch.compile(forward)
    made.compile_repeated_blocks()
    return forward


def time_diffusers(arguments):
    """Yields (name, seconds of a step or an error): eager, compiled, and of the products alone, as far as they are wanted."""
    import torch

    torch.manual_seed(1)
    width, height = (int(side) // 16 for side in arguments.size.split("x"))
    model = MODELS[arguments.model]
    with torch.device(torch.device(arguments.device)), torch.no_grad():
        torch.set_default_dtype(torch.bfloat16)
        made, forward = make_model(model, torch)
        sets = [inputs_of(model, made.config, width, height, torch) for _ in range(model.get("sets", 1))]

        def step(called):
            for inputs in sets:
                called(**inputs)

        yield "diffusers, eager", seconds_or_reason(lambda: median_seconds(lambda: step(forward), arguments.steps, torch))
        if arguments.products:
            yield "products, attention alone", seconds_or_reason(lambda: time_products(lambda: step(forward), arguments.steps, torch))
        if not arguments.no_compile:
            compiled = compile_model(made, forward, model, torch)
            yield "diffusers, torch.compile", seconds_or_reason(lambda: median_seconds(lambda: step(compiled), arguments.steps, torch))
            if model["type"] == "UNet2DConditionModel":  # the host launches its many small kernels slower than they run
                yield "compiled, as a CUDA graph", seconds_or_reason(
                    lambda: median_seconds(captured(lambda: step(compiled), torch), arguments.steps, torch))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heddle")
    parser.add_argument("--model", choices=MODELS, default="flux-dev")
    parser.add_argument("--size")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--weight-dtype", default="default")
    parser.add_argument("--attention-dtype", default="default")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--products", action="store_true")
    arguments = parser.parse_args()
    arguments.size = arguments.size or MODELS[arguments.model].get("size", "1024x1024")
    if "frames" in MODELS[arguments.model] and arguments.size != MODELS[arguments.model]["size"]:
        parser.error(f"{arguments.model} is measured at {MODELS[arguments.model]['size']} only")
    global warm_up
    warm_up = arguments.warm_up
    ours = run_heddle(arguments)
    print(json.dumps(ours))
    step = ours["median_seconds"]
    print(f"heddle                    {step * 1e3:8.2f} ms  {ours['flops_per_second'] / 1e12:6.1f} TFLOP/s  planned {ours['planned_seconds'] * 1e3:.2f} ms", flush=True)
    failed = False
    for name, theirs in time_diffusers(arguments):
        if isinstance(theirs, Exception):
            failed = True
            print(f"{name:<25} failed: {type(theirs).__name__}: {theirs}", flush=True)
            continue
        print(f"{name:<25} {theirs * 1e3:8.2f} ms  heddle takes {step / theirs:.3f} of it", flush=True)
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
