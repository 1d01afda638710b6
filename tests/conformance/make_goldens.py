"""Writes goldens.safetensors: small cases of every op with the results of PyTorch.

Results are computed in float64 from the stored inputs and rounded once, except where the op says that PyTorch's float32
arithmetic is the meaning (frequencies of timestep embeddings, T5's buckets) or where the output is exact.

A case NAME is tensors NAME/in0, NAME/in1, ... (absent optional operands are missing) and NAME/out0, ..., and one entry
NAME of the metadata: "OP INPUT_COUNT ATTRIBUTES", the attributes being the C struct's bytes in hexadecimal, or "-".

Usage: make_goldens.py [OUTPUT]
"""

import math
import pathlib
import struct
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

NONE, RELU, SILU, GELU, GELU_TANH, QUICK_GELU, TANH = range(7)
F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16

tensors = {}
metadata = {}


def case(name, op, inputs, outputs, attrs=b""):
    for i, value in enumerate(inputs):
        if value is not None:
            tensors[f"{name}/in{i}"] = value.clone().contiguous()
    for i, value in enumerate(outputs):
        tensors[f"{name}/out{i}"] = value.clone().contiguous()
    metadata[name] = f"{op} {len(inputs)} {attrs.hex() or '-'}"


def rand(*shape, dtype=F32, scale=1.0):
    return (torch.randn(*shape, dtype=torch.float64) * scale).to(dtype)


def d(tensor):
    return tensor.double()


def activate(kind, x):
    return {
        NONE: lambda: x,
        RELU: lambda: F.relu(x),
        SILU: lambda: F.silu(x),
        GELU: lambda: F.gelu(x),
        GELU_TANH: lambda: F.gelu(x, approximate="tanh"),
        QUICK_GELU: lambda: x * torch.sigmoid(1.702 * x),
        TANH: lambda: torch.tanh(x),
    }[kind]()


def activation_attrs(kind):
    return struct.pack("<i", kind)


def elementwise():
    for dtype, label in ((F32, "f32"), (F16, "f16"), (BF16, "bf16")):
        a, b = rand(2, 3, 5, dtype=dtype), rand(2, 1, 5, dtype=dtype)
        case(f"add {label}", "add/1", [a, b], [(d(a) + d(b)).to(dtype)])
        case(f"mul {label}", "mul/1", [a, b], [(d(a) * d(b)).to(dtype)])
    a, b = rand(4, 1), rand(1, 6)
    case("add outer", "add/1", [a, b], [(d(a) + d(b)).float()])
    xs = [rand(3, 7) for _ in range(4)]
    cs = [0.5, -2.0, 1.25, 3.0]
    total = sum(c * d(x) for c, x in zip(cs, xs))
    case("combine four", "combine/1", xs, [total.float()], struct.pack("<4d", *cs))
    total = 0.5 * d(xs[0]) - 2.0 * d(xs[1])
    case("combine two", "combine/1", xs[:2], [total.to(F16)], struct.pack("<4d", *cs))
    x = rand(5, 9, scale=2)
    case("scale_clamp", "scale_clamp/1", [x], [(d(x) * 0.5 + 0.5).clamp(0, 1).float()], struct.pack("<4d", 0.5, 0.5, 0, 1))
    x = rand(4, 33, scale=3)
    for kind in range(6):
        case(f"activation {kind}", "activation/1", [x], [activate(kind, d(x)).float()], activation_attrs(kind))
    a, b = rand(3, 17), rand(3, 17, dtype=BF16)
    for kind in (SILU, GELU_TANH):
        out = activate(kind, d(a)) * d(b)
        case(f"gated_activation {kind}", "gated_activation/1", [a, b], [out.float()], activation_attrs(kind))
    x, gate, y = rand(2, 4, 6), rand(1, 1, 6), rand(2, 4, 6)
    case("gated_add", "gated_add/1", [x, gate, y], [(d(x) + d(gate) * d(y)).float()])


def copies():
    values = torch.tensor([0.0, -0.0, 1.0, 1 / 3, -2.5, 65504.0, 6e-8, 3e38, float("inf"), -float("inf")])
    for dtype in (F16, BF16, torch.float64):
        case(f"copy f32 to {dtype}", "copy/1", [values], [values.to(dtype)])
    small = torch.randn(64) * 3
    case("copy f32 to e4m3", "copy/1", [small], [small.to(torch.float8_e4m3fn)])
    case("copy f32 to e5m2", "copy/1", [small], [small.to(torch.float8_e5m2)])
    every_byte = torch.arange(256, dtype=torch.uint8)
    finite = lambda t: t[torch.isfinite(t.float())]
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        f8 = finite(every_byte.view(dtype))
        case(f"copy {dtype} to f32", "copy/1", [f8], [f8.float()])
    halves = finite(torch.arange(-32768, 32768, 17, dtype=torch.int16).view(F16))
    case("copy f16 to f32", "copy/1", [halves], [halves.float()])
    mixed = torch.tensor([-1.9, 1.9, 2.5, -0.5, 100.0, -100.0])
    case("copy f32 to i32", "copy/1", [mixed], [mixed.to(torch.int32)])
    case("copy f32 to i8", "copy/1", [mixed], [mixed.to(torch.int8)])
    ints = torch.tensor([0, 1, -1, 2**31 - 1, -(2**31), 123456789])
    case("copy i64 to i32", "copy/1", [ints], [ints.to(torch.int32)])
    case("copy i64 to f32", "copy/1", [ints], [ints.float()])
    case("copy f32 to bool", "copy/1", [mixed], [mixed.to(torch.bool)])
    case("fill f16", "fill/1", [], [torch.full((3, 5), 1.5, dtype=F16)], struct.pack("<d", 1.5))
    case("fill i64", "fill/1", [], [torch.full((7,), -3)], struct.pack("<d", -3.0))


def rms(x, weight, eps):
    y = d(x) * torch.rsqrt(d(x).pow(2).mean(-1, keepdim=True) + eps)
    return y if weight is None else y * d(weight)


def norms():
    eps = 1e-6
    attrs = struct.pack("<d", eps)
    x, w, b = rand(3, 5, 48) + 2, rand(48), rand(48)
    case("layer_norm", "layer_norm/1", [x, w, b], [F.layer_norm(d(x), (48,), d(w), d(b), eps).float()], attrs)
    case("layer_norm plain", "layer_norm/1", [x, None, None], [F.layer_norm(d(x), (48,), None, None, eps).float()], attrs)
    case("rms_norm", "rms_norm/1", [x, w], [rms(x, w, eps).float()], attrs)
    case("rms_norm plain", "rms_norm/1", [x, None], [rms(x, None, eps).to(BF16)], attrs)
    x, shift, scale = rand(2, 3, 40), rand(2, 1, 40), rand(1, 1, 40)
    out = F.layer_norm(d(x), (40,), None, None, eps) * (1 + d(scale)) + d(shift)
    case("modulated_norm", "modulated_norm/1", [x, shift, scale], [out.float()], attrs)

    x, w = rand(2, 6, 3, 16), rand(16)
    angle = torch.rand(6, 8, dtype=torch.float64) * 6
    cos, sin = angle.cos().float(), angle.sin().float()

    def rotate(y):
        y = torch.view_as_complex(y.reshape(*y.shape[:-1], -1, 2).contiguous())
        turn = torch.complex(d(cos), d(sin))[None, :, None, :]
        return torch.view_as_real(y * turn).flatten(-2)

    case("norm_rope", "norm_rope/1", [x, w, cos, sin], [rotate(rms(x, w, eps)).float()], attrs)
    case("norm_rope rotation only", "norm_rope/1", [x, None, cos, sin], [rotate(d(x)).float()], attrs)
    case("norm_rope norm only", "norm_rope/1", [x, w, None, None], [rms(x, w, eps).to(F16)], attrs)

    x, w, b = rand(2, 5, 7, 24), rand(24), rand(24)
    for groups, kind in ((4, NONE), (24, SILU)):
        y = F.group_norm(d(x).permute(0, 3, 1, 2), groups, d(w), d(b), 1e-5).permute(0, 2, 3, 1)
        case(f"group_norm {groups}", "group_norm/1", [x, w, b], [activate(kind, y).float()], struct.pack("<dii", 1e-5, groups, kind))


def tables():
    ids = torch.tensor([[0.0, 0, 0], [0, 3, 5], [1, 60, 17], [0, 127, 255]])
    dims, theta = (4, 6, 6), 10000.0
    angles = torch.cat(
        [torch.outer(d(ids)[:, a], 1 / theta ** (torch.arange(0, n, 2, dtype=torch.float64) / n)) for a, n in enumerate(dims)], -1
    )
    attrs = struct.pack("<ii4id", 3, 0, *dims, 0, theta)
    case("rope_table", "rope_table/1", [ids], [angles.cos().float(), angles.sin().float()], attrs)

    t, h, w = 2, 3, 4
    grid = torch.stack(torch.meshgrid(torch.arange(t) + 1.0, torch.arange(h) - 2.0, torch.arange(w) + 0.5, indexing="ij"), -1)
    case("grid_ids", "grid_ids/1", [], [grid.reshape(-1, 3)], struct.pack("<3q3d", t, h, w, 1, -2, 0.5))

    for scale, shift, cos_first in ((1.0, 0.0, 1), (1.0, 1.0, 0)):
        times, size, period = torch.tensor([0.0, 1.0, 27.5, 999.0]), 20, 10000.0
        half = size // 2
        exponent = -math.log(period) * torch.arange(half, dtype=F32) / (half - shift)
        angle = d((times * scale)[:, None] * torch.exp(exponent)[None, :])
        parts = (angle.cos(), angle.sin()) if cos_first else (angle.sin(), angle.cos())
        attrs = struct.pack("<3d2i", scale, period, shift, cos_first, 0)
        case(f"timestep_embedding {cos_first}", "timestep_embedding/1", [times], [torch.cat(parts, -1).float()], attrs)

    table = rand(11, 6, dtype=BF16)
    for dtype in (torch.int32, torch.int64):
        ids = torch.tensor([[0, 10, 3], [5, 5, 1]], dtype=dtype)
        case(f"embedding {dtype}", "embedding/1", [table, ids], [F.embedding(ids, table).float()])

    from transformers.models.t5.modeling_t5 import T5Attention

    for both in (True, False):
        q, k = 20, 200
        relative = torch.arange(k)[None, :] - torch.arange(q)[:, None]
        out = T5Attention._relative_position_bucket(relative, bidirectional=both, num_buckets=32, max_distance=128)
        case(f"relative_bucket {both}", "relative_bucket/1", [], [out.int()], struct.pack("<4i", 32, 128, int(both), 0))
    q, k = 200, 9
    relative = torch.arange(k)[None, :] - torch.arange(q)[:, None]
    for both in (True, False):
        out = T5Attention._relative_position_bucket(relative, bidirectional=both, num_buckets=32, max_distance=128)
        case(f"relative_bucket tall {both}", "relative_bucket/1", [], [out.int()], struct.pack("<4i", 32, 128, int(both), 0))


def attention():
    def reference(q, k, v, scale, bias=None, causal=False):
        scores = torch.einsum("bqhd,bkhd->bhqk", d(q), d(k)) * scale
        if bias is not None:
            scores = scores + d(bias)
        if causal:
            queries, keys = scores.shape[-2:]
            seen = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
            scores = scores.masked_fill(~seen, -math.inf)
        return torch.einsum("bhqk,bkhe->bqhe", scores.softmax(-1), d(v))

    q, k, v = rand(2, 5, 3, 8), rand(2, 7, 3, 8), rand(2, 7, 3, 6)
    case("attention", "attention/1", [q, k, v, None], [reference(q, k, v, 0.3).float()], struct.pack("<dii", 0.3, 0, 0))
    case("attention causal", "attention/1", [q, k, v, None], [reference(q, k, v, 0.3, causal=True).float()], struct.pack("<dii", 0.3, 1, 0))
    for shape in ((1, 3, 5, 7), (2, 1, 5, 7)):
        bias = rand(*shape)
        bias[..., 0] = -math.inf
        case(f"attention bias {shape[0]}", "attention/1", [q, k, v, bias], [reference(q, k, v, 1.0, bias).float()], struct.pack("<dii", 1.0, 0, 0))
    half = [t.to(F16) for t in (q, k, v)]
    case("attention f16", "attention/1", [*half, None], [reference(*half, 0.3).to(F16)], struct.pack("<dii", 0.3, 0, 0))


def products():
    x, w, b, r = rand(2, 3, 20), rand(9, 20), rand(9), rand(2, 3, 9)
    for kind in range(6):
        out = activate(kind, F.linear(d(x), d(w), d(b))) + d(r)
        case(f"linear {kind}", "linear/1", [x, w, b, r], [out.float()], activation_attrs(kind))
    case("linear bare", "linear/1", [x, w, None, None], [F.linear(d(x), d(w)).float()], activation_attrs(NONE))
    low = x.to(BF16)
    case("linear bf16", "linear/1", [low, w.to(BF16), b, None], [F.linear(d(low), d(w.to(BF16)), d(b)).to(BF16)], activation_attrs(NONE))
    for name, shape, filters, stride, padding in (
        ("3x3", (2, 6, 5, 4), (3, 4, 3, 3), (1, 1), (1, 1, 1, 1)),
        ("1x1", (1, 4, 4, 8), (5, 8, 1, 1), (1, 1), (0, 0, 0, 0)),
        ("down", (1, 7, 8, 4), (6, 4, 3, 3), (2, 2), (0, 0, 1, 1)),
        ("uneven", (1, 9, 6, 2), (2, 2, 4, 2), (3, 1), (2, 0, 1, 1)),
    ):
        x, w, b = rand(*shape), rand(*filters), rand(filters[0])
        top, left, bottom, right = padding
        out = F.conv2d(F.pad(d(x).permute(0, 3, 1, 2), (left, right, top, bottom)), d(w), d(b), stride).permute(0, 2, 3, 1)
        r = rand(*out.shape)
        case(f"conv2d {name}", "conv2d/1", [x, w, b, None], [out.float()], struct.pack("<6i", *stride, *padding))
        case(f"conv2d {name} residual", "conv2d/1", [x, w, None, r], [(out - d(b) + d(r)).float()], struct.pack("<6i", *stride, *padding))
    x = rand(2, 3, 4, 5)
    for f, g in ((2, 2), (3, 1)):
        out = F.interpolate(x.permute(0, 3, 1, 2), scale_factor=(f, g), mode="nearest").permute(0, 2, 3, 1)
        case(f"upsample_nearest {f}", "upsample_nearest/1", [x], [out])


def later():
    """Added behind the others, whose random numbers stay."""
    x, a, b = rand(4, 37), rand(4, 37), rand(4, 37)
    case(f"activation {TANH}", "activation/1", [x], [activate(TANH, d(x)).float()], activation_attrs(TANH))
    out = activate(TANH, d(a)) * d(b)
    case(f"gated_activation {TANH}", "gated_activation/1", [a, b], [out.float()], activation_attrs(TANH))
    q, k, v = rand(2, 7, 2, 8), rand(2, 7, 2, 8), rand(2, 7, 2, 8)
    bias = rand(1, 2, 7, 7)
    scores = torch.einsum("bqhd,bkhd->bhqk", d(q), d(k)) * 0.5
    scores = 0.75 * torch.tanh(scores / 0.75) + d(bias)
    seen = torch.ones(7, 7, dtype=torch.bool).tril()
    weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
    out = torch.einsum("bhqk,bkhe->bqhe", weights, d(v))
    case("attention capped", "attention/1", [q, k, v, bias], [out.float()], struct.pack("<dif", 0.5, 1, 0.75))
    x, slopes = rand(2, 3, 4, 21), rand(1, 1, 1, 21)
    case("leaky_relu", "leaky_relu/1", [x], [F.leaky_relu(d(x), 0.2).float()], struct.pack("<d", 0.2))
    leaked = torch.where(x > 0, d(x), d(x) * d(slopes))
    case("leaky_relu slopes", "leaky_relu/1", [x, slopes], [leaked.float()], struct.pack("<d", 0))
    x = rand(2, 3, 19).abs() + 0.01
    case("rsqrt", "rsqrt/1", [x], [d(x).rsqrt().float()])
    for name, stride, (down, across) in (("same", 1, (1, 1)), ("half", 2, (2, 0))):
        x, w, b = rand(2, 7, 6, 13), rand(1 + 2 * down, 1 + 2 * across, 13), rand(13)
        filters = d(w).permute(2, 0, 1)[:, None]
        out = F.conv2d(d(x).permute(0, 3, 1, 2), filters, d(b), stride, (down, across), groups=13).permute(0, 2, 3, 1)
        attrs = struct.pack("<6i", stride, stride, down, across, down, across)
        case(f"depthwise_conv2d {name}", "depthwise_conv2d/1", [x, w, b], [out.float()], attrs)
        case(f"depthwise_conv2d {name} no bias", "depthwise_conv2d/1", [x, w, None], [(out - d(b)).float()], attrs)
    for name, shape, filters, stride, padding in (
        ("causal", (2, 4, 6, 5, 4), (3, 4, 3, 3, 3), (1, 1, 1), (0, 1, 1, 0, 1, 1)),
        ("first frame", (1, 1, 4, 5, 8), (5, 8, 3, 3, 3), (1, 1, 1), (2, 1, 1, 0, 1, 1)),
        ("uneven", (1, 5, 7, 6, 2), (4, 2, 3, 4, 2), (2, 3, 1), (1, 2, 0, 0, 1, 1)),
    ):
        x, w, b = rand(*shape), rand(*filters), rand(filters[0])
        front, top, left, back, bottom, right = padding
        clip = F.pad(d(x).permute(0, 4, 1, 2, 3), (left, right, top, bottom, front, back))
        out = F.conv3d(clip, d(w), d(b), stride).permute(0, 2, 3, 4, 1)
        r = rand(*out.shape)
        attrs = struct.pack("<9i", *stride, *padding)
        case(f"conv3d {name}", "conv3d/1", [x, w, b, None], [out.float()], attrs)
        case(f"conv3d {name} residual", "conv3d/1", [x, w, None, r], [(out - d(b) + d(r)).float()], attrs)


def delta_rule():
    """Each token's matrix by the one before: g (1 - beta k^T k) M + beta k^T v."""
    for name, tokens, pairs, heads, depth, width, continues in (("new", 7, 2, 4, 6, 5, False), ("continued", 3, 1, 3, 9, 4, True)):
        qk, v, gates = rand(2, tokens, 2 * pairs, depth), rand(2, tokens, heads, width), rand(2, tokens, 2 * heads)
        rates, shift = rand(heads), rand(heads)
        before = rand(2, heads, depth, width) if continues else None
        unit = d(qk) / (d(qk).square().sum(-1, keepdim=True) + 1e-6).sqrt()
        q, k = (part.repeat_interleave(heads // pairs, dim=2) for part in unit.split(pairs, dim=2))
        decay = torch.exp(-d(rates).exp() * F.softplus(d(gates[..., :heads]) + d(shift)))
        beta = torch.sigmoid(d(gates[..., heads:]))
        state = d(before) if continues else torch.zeros(2, heads, depth, width, dtype=torch.float64)
        outs = []
        for t in range(tokens):
            forget = torch.eye(depth) - beta[:, t, :, None, None] * k[:, t, :, :, None] * k[:, t, :, None, :]
            added = (beta[:, t, :, None] * k[:, t])[..., None] * d(v[:, t])[..., None, :]
            state = decay[:, t, :, None, None] * (forget @ state) + added
            outs.append(0.5 * torch.einsum("bhd,bhde->bhe", q[:, t], state))
        attrs = struct.pack("<2d", 1e-6, 0.5)
        inputs = [qk, v, gates, rates, shift, before]
        case(f"gated_delta_rule {name}", "gated_delta_rule/1", inputs, [torch.stack(outs, 1).float(), state.float()], attrs)


def rms_norms():
    eps = 1e-6
    attrs = struct.pack("<d", eps)
    x, scale, shift = rand(2, 6, 40), rand(2, 1, 40), rand(1, 6, 40)
    case("modulated_rms_norm", "modulated_rms_norm/1", [x, scale, shift], [(rms(x, None, eps) * d(scale) + d(shift)).float()], attrs)
    case("modulated_rms_norm shift only", "modulated_rms_norm/1", [x, None, shift], [(rms(x, None, eps) + d(shift)).to(F16)], attrs)
    case("modulated_rms_norm plain", "modulated_rms_norm/1", [x, None, None], [rms(x, None, eps).float()], attrs)

    # Rotated as transformers' rotate_half does it: x cos + (-second, first) sin, in each head by itself.
    for name, heads, width, head, pairs in (("heads", 3, 16, 16, 8), ("part of a head", 2, 20, 20, 6), ("rows of heads", 1, 24, 8, 4)):
        x, w = rand(2, 5, heads, width), rand(width)
        angle = torch.rand(5, width // head * pairs, dtype=torch.float64) * 6
        cos, sin = angle.cos().float(), angle.sin().float()

        def rotate(y):
            each = y.reshape(2, 5, heads, width // head, head)
            turned, stays = each[..., : 2 * pairs], each[..., 2 * pairs :]
            by = [torch.cat([d(t)] * 2, -1)[None, :, None] for t in (cos.reshape(5, -1, pairs), sin.reshape(5, -1, pairs))]
            other = torch.cat([-turned[..., pairs:], turned[..., :pairs]], -1)
            return torch.cat([turned * by[0] + other * by[1], stays], -1).reshape(y.shape)

        attrs = struct.pack("<dii", eps, head, pairs)
        case(f"norm_rope_half {name}", "norm_rope_half/1", [x, w, cos, sin], [rotate(rms(x, w, eps)).float()], attrs)
        case(f"norm_rope_half {name} rotation only", "norm_rope_half/1", [x, None, cos, sin], [rotate(d(x)).float()], attrs)


def main():
    torch.manual_seed(20)
    for make in (elementwise, copies, norms, tables, attention, products, later, delta_rule, rms_norms):
        make()
    default = pathlib.Path(__file__).with_name("goldens.safetensors")
    save_file(tensors, sys.argv[1] if len(sys.argv) > 1 else str(default), metadata=metadata)


if __name__ == "__main__":
    main()
