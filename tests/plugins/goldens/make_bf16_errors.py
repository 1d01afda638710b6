"""Measures how far the references themselves are from float32 when they compute in bf16.

    make_bf16_errors.py TOKENIZERS [FOLDER...]        (default: all that FOLDERS names)

TOKENIZERS holds the publishers' files, as plugins/encoders/vocabularies/make_vocabularies.py takes them. Runs the generators
of goldens (make_*_goldens.py) again, on the CPU, with every model in bf16 as diffusers loads it: all parameters are cast but
those that the model's class keeps in float32, and so are inputs but times, guidance and positions. Where a module of our own
mixes types, products are of their weights' type. Compares what comes out with the committed float32 goldens, and writes into
bf16_errors.json, beside this file:

    {folder: {case: {output: relative error}}}    "square": {"out": 0.0085} for "square.out" of FOLDER/expected.safetensors

The error is the smallest of the steps: diffusers multiplies times by 1000 in bf16, which moves some of them to other times.
"""

import contextlib
import inspect
import json
import multiprocessing
import os
import runpy
import sys
import tempfile

import diffusers  # noqa: F401 (once for all generators)
import safetensors.torch
import torch
import torch.nn.functional as F
import transformers  # noqa: F401
from torch.overrides import TorchFunctionMode

HERE = os.path.dirname(os.path.abspath(__file__))
ERRORS = os.path.join(HERE, "bf16_errors.json")
FOLDERS = """chroma control flux2 flux3 hunyuan hunyuan_begin hunyuan_shown krea2 ltx2 ltx25 ltxv lumina2 minimax minimax_fun
    patches qwen21 qwen_image qwen_layered radiance random sd3 sdpose seedvr shown svd unclip unet wan wan22 wan_animate
    wan_animate2 wan_causal wan_dancer wan_fun wan_humo wan_scail wan_sound wan_sources wan_talk wan_tracks wan_vace
    workflows zero123""".split()
GENERATORS = {"random": "make_random_models", "patches": "make_patch_goldens", "wan_tracks": "make_wan_track_goldens",
              "workflows": "make_workflow_goldens"}
OUTPUTS = {"sdpose": ("heatmaps",), "seedvr": ("3b", "7b", "7b_shared")}  # of one step; of others "out" and "audio_out"
# No forward of a model's file; FLUX.1 with a guidance that bf16 rounds at every step; tokens that go to one of two speakers,
# where the least rounding moves some from one to the other.
LEFT_OUT = {"qwen_image lora", "wan_fun rays", "control flux_drawn", "wan_talk two"}
EXACT = ("time", "sigma", "guidance", "rope", "rotary", "coords", "ids", "positions")
PRODUCTS = {F.linear: 1, F.conv1d: 1, F.conv2d: 1, F.conv3d: 1, F.scaled_dot_product_attention: 2}  # whose argument decides
SUMS = (torch.matmul, torch.bmm, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.einsum)
NORMS = (F.layer_norm, F.group_norm, F.rms_norm)
call_in_f32 = torch.nn.Module.__call__
is_inside = False


def cast(value, dtype, least=0):
    """Tensors of floats in here that have `least` axes, in another type. What has none of them stays the same object,
    as callees keep caches in lists."""
    if torch.is_tensor(value):
        return value.to(dtype) if value.is_floating_point() and value.dim() >= least else value
    if isinstance(value, dict):
        made = {key: cast(item, dtype, least) for key, item in value.items()}
        if all(made[key] is value[key] for key in value):
            return value
        return made if type(value) is dict else type(value)(**made)
    if isinstance(value, (list, tuple)):
        made = [cast(item, dtype, least) for item in value]
        return value if all(a is b for a, b in zip(made, value)) else type(value)(made)
    return value


class Enough(Exception):
    pass


class OneType(TorchFunctionMode):
    """Operands of a product, and those of a norm, in one type where a module gives several."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.Tensor.__setitem__ and torch.is_tensor(args[2]) and args[0].is_floating_point():
            args = (*args[:2], args[2].to(args[0].dtype))
        tensors = [value for value in (*args, *kwargs.values()) if torch.is_tensor(value) and value.is_floating_point()]
        if len({tensor.dtype for tensor in tensors}) > 1:
            dtype = None
            if function in PRODUCTS:
                dtype = args[PRODUCTS[function]].dtype
            elif function in SUMS:
                dtype = torch.bfloat16
            elif function in NORMS:
                dtype = torch.float32
            if dtype is not None:
                args, kwargs = cast(args, dtype), cast(kwargs, dtype)
        return function(*args, **kwargs)


def cast_parameters(model):
    kept = set()
    for module in model.modules():
        names = getattr(module, "_keep_in_fp32_modules", None) or []
        kept |= {id(tensor) for name, tensor in module.named_parameters() if set(names) & set(name.split("."))}
        for name, own in vars(module).items():
            made = cast(own, torch.bfloat16) if isinstance(own, dict) and not name.startswith("_") else own
            if made is not own:
                own.update(made)
    for parameter in model.parameters():
        if parameter.is_floating_point() and id(parameter) not in kept:
            parameter.data = parameter.data.bfloat16()


def call_in_bf16(self, *args, **kwargs):
    global is_inside
    if is_inside:
        return call_in_f32(self, *args, **kwargs)
    cast_parameters(self)
    names = list(inspect.signature(self.forward).parameters)

    def told(name, value):
        return value if any(word in name for word in EXACT) else cast(value, torch.bfloat16, 2)

    is_inside = True
    try:
        args = [told(names[min(i, len(names) - 1)], value) for i, value in enumerate(args)]
        kwargs = {name: told(name, value) for name, value in kwargs.items()}
        return cast(call_in_f32(self, *args, **kwargs), torch.float32)
    finally:
        is_inside = False


def known_to(frame):
    """All that a frame and those that called it keep as `expected`."""
    made = {}
    while frame is not None:
        for known in (frame.f_globals, frame.f_locals):
            made.update(known["expected"] if isinstance(known.get("expected"), dict) else {})
        frame = frame.f_back
    return made


def run(generator, tokenizers, wanted):
    """What a generator makes of these goldens. Ends it when it has made all, as workflows come last."""
    made = {}
    save_file = safetensors.torch.save_file

    def keep(tensors, path, *args, **kwargs):
        save_file(tensors, path, *args, **kwargs)
        made.update(tensors)

    def call(self, *args, **kwargs):
        if not is_inside:
            made.update(known_to(sys._getframe()))
            if wanted <= made.keys():
                raise Enough
        return call_in_bf16(self, *args, **kwargs)

    safetensors.torch.save_file = keep
    torch.nn.Module.__call__ = call
    with open(generator) as file:
        needs_tokenizers = "sys.argv[2]" in file.read()
    with tempfile.TemporaryDirectory() as temporary, OneType(), contextlib.redirect_stdout(None):
        sys.argv = [generator, *([tokenizers] if needs_tokenizers else []), temporary]
        with contextlib.suppress(Enough):
            runpy.run_path(generator, run_name="__main__")
    return made


def error_of(found, wanted):
    """As tests/support/model_probe.h measures it."""
    errors = [float((a.double() - b.double()).norm() / b.double().norm()) for a, b in zip(found, wanted)]
    return float(f"{min(errors):.3g}")


def measure(folder, tokenizers):
    """{case: {output: error}} of one generator."""
    outputs = OUTPUTS.get(folder, ("out", "audio_out"))
    wanted = {}
    for name, tensor in sorted(safetensors.torch.load_file(os.path.join(HERE, folder, "expected.safetensors")).items()):
        case, _, output = name.rpartition(".")
        if output in outputs and f"{folder} {case}" not in LEFT_OUT:
            wanted[name] = tensor[None] if folder in OUTPUTS else tensor
    made = run(os.path.join(HERE, GENERATORS.get(folder, f"make_{folder}_goldens") + ".py"), tokenizers, wanted.keys())
    errors = {}
    for name, tensor in wanted.items():
        case, _, output = name.rpartition(".")
        errors.setdefault(case, {})[output] = error_of(made[name].reshape(tensor.shape), tensor)
    return errors


def write(errors):
    with open(ERRORS, "w") as file:
        families = (f' "{folder}": {{\n' + ",\n".join(f'  "{case}": {json.dumps(told)}' for case, told in sorted(cases.items())) + "\n }"
                    for folder, cases in sorted(errors.items()))
        file.write("{\n" + ",\n".join(families) + "\n}\n")


def main(tokenizers, folders):
    errors = {}
    if os.path.exists(ERRORS):
        with open(ERRORS) as file:
            errors = json.load(file)
    for folder in folders or FOLDERS:
        # A process of its own, as generators share modules that each of them fills.
        with multiprocessing.get_context("fork").Pool(1) as pool:
            errors[folder] = pool.apply(measure, (folder, tokenizers))
        write(errors)
        print(folder, errors[folder], flush=True)


if __name__ == "__main__":
    if __debug__:  # without the generators' asserts, which hold for float32
        os.execv(sys.executable, [sys.executable, "-O", *sys.argv])
    main(sys.argv[1], sys.argv[2:])
