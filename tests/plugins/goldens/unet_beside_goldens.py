"""Parts of make_unet_control_goldens.py: ControlNets for several kinds of hints, ControlNets that are a LoRA of their
UNet, and T2I-Adapters."""

import torch
from diffusers import ControlNetModel, ControlNetUnionModel, T2IAdapter

import make_unet_goldens as unets
import seeded_weights
from make_unet_files import original_control

KIND = 2  # of a hint, of those that the union knows


def union_config(config):
    return config | dict(num_control_type=4, num_trans_channel=32, num_trans_head=8, num_proj_channel=32)


def make_union(config):
    model = ControlNetUnionModel(**union_config(config))
    return model, seeded_weights.load(model)


def union_residuals(model, x, time, context, hint, added, kind=KIND):
    """Of one item: their attention goes over the items of a batch. kind: None for none, which leaves the hint alone."""
    kinds = torch.zeros(1, 4)
    if kind is not None:
        kinds[0, kind] = 1
    still = model.spatial_ch_projs.state_dict()
    if kind is None:
        model.spatial_ch_projs.load_state_dict({name: 0 * tensor for name, tensor in still.items()})
    downs, middle = model(
        x,
        time,
        encoder_hidden_states=context,
        controlnet_cond=[hint],
        control_type=kinds,
        control_type_idx=[kind or 0],
        added_cond_kwargs=added,
        return_dict=False,
    )
    model.spatial_ch_projs.load_state_dict(still)
    return {f"control.output.{i}": down for i, down in enumerate(downs)} | {"control.middle": middle}


# ---- ControlNets that are a LoRA ----


def make_lora(config, unet):
    """The ControlNet that the UNet's weights and the file's make, and {name in the file: shape}. One weight is whole in
    the file, one is the UNet's alone."""
    model, shapes, state = ControlNetModel(**config), {"lora_controlnet": [1]}, {}
    own = unet.state_dict()
    for name, tensor in model.state_dict().items():
        there, is_shared = original_control(name, own)
        module, rank = there.removesuffix(".weight"), 2
        if there == "input_blocks.1.1.proj_in.weight":
            state[name] = own[name]
        elif not is_shared or tensor.dim() < 2 or there == "input_blocks.2.0.in_layers.2.weight":
            shapes[there] = list(tensor.shape)
            state[name] = seeded_weights.seeded(there, tuple(tensor.shape))
        else:
            ones = [1] * (tensor.dim() - 2)
            shapes[f"{module}.up"] = [tensor.shape[0], rank, *ones]
            shapes[f"{module}.down"] = [rank, *tensor.shape[1:]]
            up, down = (seeded_weights.seeded(f"{module}.{part}", tuple(shapes[f"{module}.{part}"])) for part in ("up", "down"))
            state[name] = own[name] + (up.flatten(1) @ down.flatten(1)).reshape(tensor.shape)
    model.load_state_dict(state)
    return model.eval(), shapes


# ---- T2I-Adapters ----

ADAPTERS = {
    "full": dict(adapter_type="full_adapter", channels=[32, 64], in_channels=3, num_res_blocks=2, downscale_factor=8),
    "light": dict(adapter_type="light_adapter", channels=[32], in_channels=1, num_res_blocks=4, downscale_factor=8),
    "xl": dict(
        adapter_type="full_adapter_xl", channels=[32, 64, 128, 128], in_channels=3, num_res_blocks=2, downscale_factor=16
    ),
}
PLACES = {"full": ["input.2", "input.5"], "light": ["input.2", "input.5"], "xl": ["input.3", "input.5", "input.8", "middle"]}


class Halve(torch.nn.Module):
    """Means of four as ComfyUI takes them: an odd side begins with zeros, which count."""

    def forward(self, x):
        sides = x.shape[2] % 2, x.shape[3] % 2
        return torch.nn.functional.avg_pool2d(x, 2, 2, padding=sides)


def make_adapter(kind):
    model = T2IAdapter(**ADAPTERS[kind])
    shapes = seeded_weights.load(model)
    for block in model.adapter.body:
        if block.downsample is not None:
            block.downsample = Halve()
    return model, shapes


def features(model, kind, hint):
    """hint: (B, C, H, W), of sides that the adapter takes."""
    if kind == "light":
        hint = hint.mean(dim=1, keepdim=True)
    return {f"control.{place}": made for place, made in zip(PLACES[kind], model(hint), strict=True)}
