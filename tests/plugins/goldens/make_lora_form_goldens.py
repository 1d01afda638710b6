"""What LoHa, LoKr, LoCon with a middle factor, GLoRA, OFT, BOFT and DoRA make of weights.

Writes lora_forms/shapes.json (the LoRA's tensors, whose numbers follow from their names) and
lora_forms/expected.safetensors (every seventh number of each weight, at strengths 1 and 0.7).
Needs torch, lycoris-lora, safetensors. The differences are LyCORIS's own; what ComfyUI does with
them beside that (comfy/weight_adapter) is written here as formulas: DoRA, GLoRA, strengths.
"""
import json
import pathlib

import lycoris.functional as lycoris
import torch
from safetensors.torch import save_file
from seeded_weights import seeded

HERE = pathlib.Path(__file__).parent / "lora_forms"
A = "down_blocks.0.attentions.0.transformer_blocks.0."
B = "down_blocks.0.attentions.1.transformer_blocks.0."
R = "down_blocks.0.resnets."
UNET = json.load(open(HERE.parent / "unet/shapes.json"))["sd1"]
shapes, expected = {}, {}


def number(name, shape):
    return torch.as_tensor(seeded(name, tuple(shape)))


class Module:
    def __init__(self, name):
        self.name = name
        self.weight = number(name + ".weight", UNET[name + ".weight"])

    def get(self, factor, *shape):
        key = f"lora_unet_{self.name.replace('.', '_')}.{factor}"
        shapes[key] = list(shape)
        return number(key, shape)

    def alpha(self, rank=1):
        return float(self.get("alpha", 1)) / rank

    def expect(self, result):
        for strength in (1.0, 0.7):
            merged = result(strength).contiguous()
            change = (merged - self.weight).abs().max()
            assert change > 1e-4, (self.name, change)  # the test holds errors of 1e-6
            expected[f"{self.name}.weight {strength}"] = merged.flatten()[::7].contiguous()

    def add(self, difference):
        self.expect(lambda strength: self.weight + strength * difference.reshape(self.weight.shape))

    def decompose(self, difference, scale, by_sum=False):
        weight, eps = self.weight, torch.finfo(torch.float32).eps
        merged = weight + difference.reshape(weight.shape)
        of = merged if by_sum or scale.shape[0] != weight.shape[0] else weight
        axes = [a for a in range(weight.dim()) if a != (0 if scale.shape[0] == weight.shape[0] else 1)]
        norm = of.pow(2).sum(axes, keepdim=True).sqrt() + eps
        scaled = merged * (scale.reshape(norm.shape) / norm)
        self.expect(lambda strength: weight + strength * (scaled - weight))


def loha():
    m = Module(A + "attn1.to_q")
    w = [m.get("hada_w1_a", 32, 3), m.get("hada_w1_b", 3, 32), m.get("hada_w2_a", 32, 3),
         m.get("hada_w2_b", 3, 32)]
    gamma = m.alpha(3)
    m.add((w[0] @ w[1]) * (w[2] @ w[3]) * gamma)
    same = lycoris.loha.diff_weight(w[1], w[0], w[3], w[2], None, None, gamma=gamma, backend="torch")
    assert torch.allclose(same, (w[0] @ w[1]) * (w[2] @ w[3]) * gamma, atol=1e-6)
    m = Module(R + "0.conv1")
    t1, t2 = m.get("hada_t1", 2, 2, 3, 3), m.get("hada_t2", 2, 2, 3, 3)
    a1, b1 = m.get("hada_w1_a", 2, 32), m.get("hada_w1_b", 2, 32)
    a2, b2 = m.get("hada_w2_a", 2, 32), m.get("hada_w2_b", 2, 32)
    m.add(lycoris.loha.diff_weight(b1, a1, b2, a2, t1, t2, gamma=1.0, backend="torch"))


def lokr():
    m = Module(A + "attn1.to_k")
    w1, a, b = m.get("lokr_w1", 4, 4), m.get("lokr_w2_a", 8, 2), m.get("lokr_w2_b", 2, 8)
    m.add(torch.kron(w1, a @ b) * m.alpha(2))
    m = Module(A + "attn1.to_v")
    a, b, w2 = m.get("lokr_w1_a", 4, 2), m.get("lokr_w1_b", 2, 4), m.get("lokr_w2", 8, 8)
    m.add(torch.kron(a @ b, w2))
    m = Module(R + "0.conv2")
    w1, t = m.get("lokr_w1", 4, 4), m.get("lokr_t2", 2, 2, 3, 3)
    a, b = m.get("lokr_w2_a", 2, 8), m.get("lokr_w2_b", 2, 8)
    m.add(torch.kron(w1[:, :, None, None], lycoris.tucker_weight(a, b, t)))


def dora():
    m = Module(A + "attn1.to_out.0")
    up, down = m.get("lora_up.weight", 32, 2), m.get("lora_down.weight", 2, 32)
    m.decompose(up @ down * m.alpha(2), m.get("dora_scale", 32, 1))
    m = Module(A + "attn2.to_q")
    up, down = m.get("lora_up.weight", 32, 2), m.get("lora_down.weight", 2, 32)
    m.decompose(up @ down, m.get("dora_scale", 1, 32))
    m = Module(R + "1.conv1")
    up, mid = m.get("lora_up.weight", 32, 2, 1, 1), m.get("lora_mid.weight", 2, 2, 3, 3)
    down = m.get("lora_down.weight", 2, 32, 1, 1)
    change = lycoris.locon.diff_weight(down, up, mid, gamma=1.0, backend="torch")
    m.decompose(change, m.get("dora_scale", 1, 32, 1, 1))
    m = Module(A + "ff.net.2")
    up, down = m.get("lora_up.weight", 32, 2), m.get("lora_down.weight", 2, 128)
    m.decompose(up @ down, m.get("lora_magnitude_vector", 32), by_sum=True)


def glora():
    m = Module(A + "attn2.to_k")
    a1, a2 = m.get("a1.weight", 64, 2), m.get("a2.weight", 2, 64)
    b1, b2 = m.get("b1.weight", 32, 2), m.get("b2.weight", 2, 64)
    m.add((m.weight @ a1 @ a2 + b1 @ b2) * m.alpha(2))
    m = Module(B + "attn2.to_k")
    a1, a2 = m.get("a1.weight", 2, 64), m.get("a2.weight", 64, 2)
    b1, b2 = m.get("b1.weight", 2, 64), m.get("b2.weight", 32, 2)
    m.add(m.weight @ a2 @ a1 + b2 @ b1)
    m = Module(R + "1.conv2")
    a1, a2 = m.get("a1.weight", 32, 2), m.get("a2.weight", 2, 32)
    b1, b2 = m.get("b1.weight", 32, 2), m.get("b2.weight", 2, 288)
    m.add(torch.einsum("oikl,ij->ojkl", m.weight, a1 @ a2) + (b1 @ b2).reshape(m.weight.shape))


def rotations():
    m = Module(A + "attn2.to_v")
    blocks = m.get("oft_blocks", 8, 4, 4)
    turned = lycoris.diag_oft.diff_weight(m.weight, blocks, None, backend="torch")
    # As in ComfyUI the strength counts twice.
    m.expect(lambda strength: m.weight + strength * strength * turned)
    for name in (B + "attn2.to_v", B + "attn1.to_v"):
        m = Module(name)
        blocks, limit = m.get("oft_blocks", 8, 4, 4), m.alpha()
        print("constraint", limit)
        held = lycoris.diag_oft.diff_weight(m.weight, blocks, None, backend="torch",
                                            constraint=limit if limit > 0 else None)
        m.expect(lambda strength, m=m, held=held: m.weight + strength * strength * held)
    m = Module(A + "attn2.to_out.0")
    blocks, scale = m.get("oft_blocks", 2, 8, 4, 4), m.get("rescale", 32, 1)
    m.expect(lambda strength: m.weight + strength * lycoris.boft.diff_weight(
        m.weight, blocks, scale, scale=strength, backend="torch"))


torch.manual_seed(0)
loha()
lokr()
dora()
glora()
rotations()
json.dump({"lora": shapes}, open(HERE / "shapes.json", "w"), indent=0)
save_file(expected, HERE / "expected.safetensors")
