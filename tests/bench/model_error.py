"""One forward of a FLUX.1-size model: heddle beside diffusers, with the same random weights, how far each is from f32.

    python3 tests/bench/model_error.py LIBHEDDLE PLUGINS [--devices cuda:0[,cuda:1]] [--parallel sequence]... [--small] [--folder DIR]

Draws the weights of a FLUX.1 dev transformer, rounds them to bf16, writes them into a safetensors file under
diffusers' names, and computes the velocity of one picture of noise at the first step's time: with diffusers in
f32, with diffusers in its bf16, and with heddle (libheddle.so, by its C interface), in the type its device takes,
alone on the first device and in each of the splits. Prints the relative errors against f32 and their ratio to
diffusers' own; exit code 1 when one is above 1.5. --small: a few narrow blocks, for a machine without a GPU.
"""

import argparse
import ctypes
import json
import pathlib
import sys
import tempfile

import diffusers
import torch
from safetensors.torch import save_file

PUBLISHED = dict(patch_size=1, in_channels=64, num_layers=19, num_single_layers=38, attention_head_dim=128, num_attention_heads=24,
                 joint_attention_dim=4096, pooled_projection_dim=768, guidance_embeds=True, axes_dims_rope=(16, 56, 56))
SMALL = dict(PUBLISHED, num_layers=2, num_single_layers=3, attention_head_dim=64, num_attention_heads=2, joint_attention_dim=64,
             pooled_projection_dim=48, axes_dims_rope=(16, 24, 24))
# diffusers multiplies guidance and time by 1000 in bf16: these stay what they are.
SEED, TEXT_SEED, GUIDANCE = 7, 1, 4.0


class Option(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class EngineOptions(ctypes.Structure):  # heddle_engine_options, as far as is given here
    _fields_ = [("size", ctypes.c_uint32), ("threads", ctypes.c_uint32), ("default_plugin_dir", ctypes.c_char_p),
                ("input_dir", ctypes.c_char_p), ("output_dir", ctypes.c_char_p), ("costs", ctypes.c_char_p),
                ("plugin_dirs", ctypes.POINTER(ctypes.c_char_p)), ("plugin_dir_count", ctypes.c_size_t),
                ("model_dirs", ctypes.POINTER(ctypes.c_char_p)), ("model_dir_count", ctypes.c_size_t),
                ("devices", ctypes.POINTER(ctypes.c_char_p)), ("device_count", ctypes.c_size_t)]


class StartOptions(ctypes.Structure):  # heddle_start_options, likewise
    _fields_ = [("size", ctypes.c_uint32), ("observer", ctypes.c_void_p), ("observer_user", ctypes.c_void_p),
                ("fetch", ctypes.POINTER(ctypes.c_char_p)), ("fetch_count", ctypes.c_size_t)]


def strings(values):
    return (ctypes.c_char_p * len(values))(*(str(value).encode() for value in values))


class Heddle:
    def __init__(self, library, plugins, models, devices):
        self.library = ctypes.CDLL(library)
        options = EngineOptions(ctypes.sizeof(EngineOptions), default_plugin_dir=str(plugins).encode())
        options.model_dirs, options.model_dir_count = strings([models]), 1
        options.devices, options.device_count = strings(devices), len(devices)
        self.engine = ctypes.c_void_p()
        self.call("heddle_engine_make", ctypes.byref(options), ctypes.byref(self.engine))

    def call(self, name, *arguments):
        error = ctypes.c_char_p()
        code = getattr(self.library, name)(*arguments, ctypes.byref(error))
        if code != 0:
            sys.exit(f"{name}: {code}: {error.value.decode()}")

    def floats(self, workflow, node, split, output, field, count):
        flow, run, results = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("heddle_engine_parse", self.engine, json.dumps(workflow).encode(), b"model_error", ctypes.byref(flow))
        self.call("heddle_workflow_parallel", flow, node, split.encode())
        options = StartOptions(ctypes.sizeof(StartOptions), fetch=strings([output]), fetch_count=1)
        self.call("heddle_engine_start", self.engine, flow, ctypes.byref(options), ctypes.byref(run))
        self.call("heddle_run_wait", run, ctypes.c_int64(-1), ctypes.byref(results))
        values = torch.empty(count)
        self.call("heddle_results_floats", results, output.encode(), field, ctypes.c_void_p(values.data_ptr()), ctypes.c_size_t(count))
        self.library.heddle_results_free(results)
        self.library.heddle_run_free(run)
        self.library.heddle_workflow_free(flow)
        return values


def normal(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def draw(config, device):
    """Rows of a matrix keep the size of what they are multiplied with."""
    with torch.device(device):
        model = diffusers.FluxTransformer2DModel(**config).eval()
        torch.manual_seed(SEED)
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                parameter.normal_(0, parameter.shape[1] ** -0.5)
            else:
                parameter.normal_(1 if "norm" in name and name.endswith("weight") else 0, 0.02)
            parameter.copy_(parameter.bfloat16())
    return model


def velocity(model, inputs, noise, dtype, device):
    """diffusers' answer, as a picture of 16 channels."""
    side = noise.shape[-1] // 2
    packed = noise.view(1, 16, side, 2, side, 2).permute(0, 2, 4, 1, 3, 5).reshape(1, side * side, 64)
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    ids = torch.stack([torch.zeros_like(rows), rows, columns], -1).reshape(-1, 3)
    to = dict(device=device, dtype=dtype)
    out = model.to(dtype)(hidden_states=packed.to(**to), encoder_hidden_states=inputs["text"].to(**to), pooled_projections=inputs["pooled"].to(**to),
                          timestep=torch.ones(1, **to), guidance=torch.full((1,), GUIDANCE, **to), img_ids=ids.to(**to),
                          txt_ids=torch.zeros(inputs["text"].shape[1], 3, **to), return_dict=False)[0]
    return out.float().cpu().view(1, side, side, 16, 2, 2).permute(0, 3, 1, 4, 2, 5).reshape(noise.shape)


def workflow(config, tokens, pixels):
    text = dict(tokens=tokens, width=config["joint_attention_dim"], pooled_width=config["pooled_projection_dim"], seed=TEXT_SEED)
    sample = dict(model=["model", 0], positive=["guided", 0], negative=["text", 0], latent_image=["size", 0], seed=SEED, steps=1, cfg=1.0,
                  sampler_name="euler", scheduler="simple", denoise=1.0)
    return {"model": dict(class_type="UNETLoader", inputs=dict(unet_name="drawn.safetensors", weight_dtype="default")),
            "text": dict(class_type="RandomConditioning", inputs=text),
            "guided": dict(class_type="FluxGuidance", inputs=dict(conditioning=["text", 0], guidance=GUIDANCE)),
            "size": dict(class_type="EmptySD3LatentImage", inputs=dict(width=pixels, height=pixels, batch_size=1)),
            "sample": dict(class_type="KSampler", inputs=sample),
            "end": dict(class_type="Discard", inputs=dict(value=["sample", 0]))}


def relative_error(values, wanted):
    return float((values - wanted).double().norm() / wanted.double().norm())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("plugins")
    parser.add_argument("--devices", default="cuda:0")
    parser.add_argument("--parallel", action="append", default=[])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--folder", help="for the weights (default: a temporary one)")
    arguments = parser.parse_args()
    config, tokens, pixels = (SMALL, 16, 64) if arguments.small else (PUBLISHED, 512, 1024)
    devices = arguments.devices.split(",")
    on = devices[0] if devices[0].startswith("cuda") else "cpu"
    noise = normal((1, 16, pixels // 8, pixels // 8), SEED)
    inputs = dict(text=normal((1, tokens, config["joint_attention_dim"]), 2 * TEXT_SEED),
                  pooled=normal((1, config["pooled_projection_dim"]), 2 * TEXT_SEED + 1))

    failed = False
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder, torch.no_grad():
        (pathlib.Path(folder) / "diffusion_models").mkdir()
        model = draw(config, on)
        save_file({name: tensor.bfloat16().contiguous() for name, tensor in model.state_dict().items()},
                  pathlib.Path(folder) / "diffusion_models" / "drawn.safetensors")
        exact = velocity(model, inputs, noise, torch.float32, on)
        theirs = relative_error(velocity(model, inputs, noise, torch.bfloat16, on), exact)
        print(f"diffusers in bf16           {theirs:.3e}", flush=True)
        del model
        if on != "cpu":
            torch.cuda.empty_cache()
        for mode in ["none", *arguments.parallel]:
            used = devices[:1] if mode == "none" else devices
            heddle = Heddle(arguments.library, arguments.plugins, folder, used)
            # The first step goes from 1 to 0: what is left is the noise without the velocity.
            values = heddle.floats(workflow(config, tokens, pixels), b"sample", mode, "sample.LATENT", b"samples", noise.numel())
            ours = relative_error(noise - values.view(noise.shape), exact)
            print(f"heddle on {','.join(used):<14} {mode:<9} {ours:.3e}, {ours / theirs:.3f} of diffusers' own (at most 1.5)", flush=True)
            failed = failed or not ours <= 1.5 * theirs
            heddle.library.heddle_engine_free(heddle.engine)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
