"""Matrices as ComfyUI's quantised files hold them, and the float32 numbers that they mean, by ComfyUI's own library.

Needs comfy-kitchen (0.2.40; on the CPU) beside PyTorch. quantise() makes random numbers of a form, with what stands beside them in
a file. Numbers that are rotated are turned back here in float64 and rounded once, as the library's float32 product has no defined
order; that product is asserted to be near.
"""

import json

import torch
from comfy_kitchen.backends.eager.w4a8_int8 import _dequant_int4_grouped_to_int8
from comfy_kitchen.backends.eager.svdquant import _unpack_int4_row_major
from comfy_kitchen.tensor.awq_w4a16 import TensorCoreAWQW4A16Layout as Awq
from comfy_kitchen.tensor.convrot_w4a4 import TensorCoreConvRotW4A4Layout as W4A4
from comfy_kitchen.tensor.mxfp8 import TensorCoreMXFP8Layout as Mxfp8
from comfy_kitchen.tensor.nvfp4 import TensorCoreNVFP4Layout as Nvfp4
from comfy_kitchen.tensor.w4a8_int8 import AsymW4A8Int8Layout as W4A8


def hadamard(order):
    seed = torch.tensor([[1, 1, 1, -1], [1, 1, -1, 1], [1, -1, 1, 1], [-1, 1, 1, 1]], dtype=torch.float64)
    matrix = torch.ones(1, 1, dtype=torch.float64)
    while len(matrix) < order:
        matrix = torch.kron(matrix, seed)
    return matrix / order**0.5


def turned_back(numbers, scales, group, near):
    rows, columns = numbers.shape
    whole = numbers.double().reshape(rows, -1, group) @ hadamard(group)
    values = (whole.reshape(rows, columns) * scales.double().reshape(rows, 1)).float()
    assert torch.allclose(values, near, rtol=0, atol=1e-5 * float(near.abs().max()))
    return values


def nvfp4(weight, options):
    data, params = Nvfp4.quantize(weight)
    beside = {"weight_scale": params.block_scale, "weight_scale_2": params.scale}
    values = Nvfp4.dequantize(data, params)
    if options.get("factors"):  # as AWQ makes them: of the columns
        factors = (torch.rand(weight.shape[1]) + 0.5).bfloat16()
        beside["pre_quant_scale"] = factors
        values = values * factors.float()
    return data, beside, values, {}


def mxfp8(weight, options):
    data, params = Mxfp8.quantize(weight)
    scales = params.scale if options.get("typed") else params.scale.view(torch.uint8)
    return data, {"weight_scale": scales}, Mxfp8.dequantize(data, params), {}


def convrot_w4a4(weight, options):
    group = options.get("convrot_groupsize", 256)
    data, params = W4A4.quantize(weight, convrot_groupsize=group)
    near = W4A4.dequantize(data, params)
    return data, {"weight_scale": params.scale}, turned_back(_unpack_int4_row_major(data), params.scale, group, near), options


def asym_w4a8_int8(weight, options):
    how = dict(options)
    data, params = W4A8.quantize(weight, codebook_tensor=how.pop("levels", None), bits=how.pop("bits", 4),
                                 codebook=how.pop("codebook", True), scale_search=False, **how)
    numbers = _dequant_int4_grouped_to_int8(data, params.scale, params.codebook, params.group_size)
    values = turned_back(numbers, params.s_channel, params.convrot_groupsize, W4A8.dequantize(data, params))
    beside = {"weight_s_rel": params.scale, "weight_s_channel": params.s_channel}
    if params.codebook is not None:
        beside["weight_codebook"] = params.codebook
    return data, beside, values, {"group_size": params.group_size, "convrot_groupsize": params.convrot_groupsize}


def awq_w4a16(weight, options):
    rows, columns = weight.shape
    size = options.get("group_size", 64)
    groups = weight.reshape(rows, -1, size)
    least, most = groups.amin(-1), groups.amax(-1)
    scales = ((most - least) / 15).bfloat16()
    zeros = (least + 8 * scales.float()).bfloat16()
    numbers = ((groups - zeros.float()[..., None]) / scales.float()[..., None] + 8).round().clamp(0, 15).to(torch.uint8)
    numbers = numbers.reshape(rows, columns)
    data = (numbers[:, 0::2] | numbers[:, 1::2] << 4).view(torch.int8)
    params = Awq.Params(scale=scales.T.contiguous(), orig_dtype=torch.float32, orig_shape=(rows, columns),
                        zeros=zeros.T.contiguous(), group_size=size)
    # The library's own numbers, of scales that are widened first.
    wide = Awq.Params(scale=params.scale.float(), orig_dtype=torch.float32, orig_shape=(rows, columns),
                      zeros=params.zeros.float(), group_size=size)
    return data, {"weight_scale": params.scale, "weight_zeros": params.zeros}, Awq.dequantize(data, wide), options


FORMS = {form.__name__: form for form in (nvfp4, mxfp8, convrot_w4a4, asym_w4a8_int8, awq_w4a16)}


def quantise(module, weight, form, options=None):
    """The file's tensors of a module's matrix, what is told of it (a dict), and the numbers (rows, columns) in float32."""
    data, beside, values, told = FORMS[form](weight.float(), options or {})
    tensors = {module + ".weight": data, **{f"{module}.{name}": tensor for name, tensor in beside.items()}}
    return {name: tensor.contiguous() for name, tensor in tensors.items()}, {"format": form, **told}, values.float().contiguous()


def description(told):
    return torch.frombuffer(bytearray(json.dumps(told).encode()), dtype=torch.uint8)
