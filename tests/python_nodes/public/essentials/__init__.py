"""Behaviour of packs of essentials: sums as texts, sizes of pictures, masks, batches."""
import ast
import math
import operator

from nodes import MAX_RESOLUTION

SUMS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: operator.pow,
        ast.USub: operator.neg, ast.Mod: operator.mod, ast.FloorDiv: operator.floordiv}
FUNCTIONS = {"min": min, "max": max, "round": round, "sqrt": math.sqrt, "floor": math.floor, "ceil": math.ceil}


class Math:
    @classmethod
    def INPUT_TYPES(cls):
        return {"optional": {"a": ("INT,FLOAT", {"default": 0.0}), "b": ("INT,FLOAT", {"default": 0.0})},
                "required": {"value": ("STRING", {"default": ""})}}
    RETURN_TYPES, FUNCTION = ("INT", "FLOAT"), "execute"

    def execute(self, value, a=0.0, b=0.0):
        def of(node):
            if isinstance(node, ast.Constant):
                return node.value
            if isinstance(node, ast.Name) and node.id in "ab":
                return {"a": a, "b": b}[node.id]
            if isinstance(node, ast.BinOp):
                return SUMS[type(node.op)](of(node.left), of(node.right))
            if isinstance(node, ast.UnaryOp):
                return SUMS[type(node.op)](of(node.operand))
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) in FUNCTIONS:
                return FUNCTIONS[node.func.id](*map(of, node.args))
            raise ValueError(f"not a sum: {ast.dump(node)}")
        made = of(ast.parse(value, mode="eval").body)
        return round(made), float(made)


class Resize:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"image": ("IMAGE",), "width": ("INT", {"default": 512, "min": 0, "max": MAX_RESOLUTION}),
                             "height": ("INT", {"default": 512, "min": 0, "max": MAX_RESOLUTION}), "method": (["keep", "pad", "fill"],)}}
    RETURN_TYPES, RETURN_NAMES, FUNCTION = ("IMAGE", "INT", "INT"), ("IMAGE", "width", "height"), "execute"

    def execute(self, image, width, height, method):
        import comfy.utils
        import torch
        _, h, w, _ = image.shape
        if method == "fill":
            made = comfy.utils.common_upscale(image.movedim(-1, 1), width, height, "bilinear", "center").movedim(1, -1)
            return made, made.shape[2], made.shape[1]
        ratio = min(width / w, height / h)
        inner = comfy.utils.common_upscale(image.movedim(-1, 1), round(w * ratio), round(h * ratio), "lanczos", "disabled")
        if method == "pad":
            left, top = (width - inner.shape[3]) // 2, (height - inner.shape[2]) // 2
            inner = torch.nn.functional.pad(inner, (left, width - inner.shape[3] - left, top, height - inner.shape[2] - top))
        made = torch.clamp(inner.movedim(1, -1), 0, 1)
        return made, made.shape[2], made.shape[1]


class BlurMask:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"mask": ("MASK",), "amount": ("INT", {"default": 6, "min": 0, "max": 256}),
                             "device": (["auto", "cpu", "gpu"],)}}
    RETURN_TYPES, FUNCTION = ("MASK",), "execute"

    def execute(self, mask, amount, device):
        import comfy.model_management
        import torch
        mask = mask.to(comfy.model_management.get_torch_device())
        pad = torch.nn.functional.pad(mask.unsqueeze(1), (amount,) * 4, mode="replicate")
        made = torch.nn.functional.avg_pool2d(pad, 2 * amount + 1, 1).squeeze(1)
        return (made.to(comfy.model_management.intermediate_device()),)


class Batch:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"image_1": ("IMAGE",)}, "optional": {"image_2": ("IMAGE",), "image_3": ("IMAGE",)}}
    RETURN_TYPES, FUNCTION = ("IMAGE",), "execute"

    def execute(self, image_1, **more):
        import comfy.utils
        import torch
        made = [image_1]
        for image in more.values():
            if image.shape[1:] != image_1.shape[1:]:
                image = comfy.utils.common_upscale(image.movedim(-1, 1), image_1.shape[2], image_1.shape[1], "area", "disabled").movedim(1, -1)
            made.append(image)
        return (torch.cat(made),)


class Composite:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"below": ("IMAGE",), "above": ("IMAGE",)}, "optional": {"mask": ("MASK",)}}
    RETURN_TYPES, FUNCTION = ("IMAGE",), "execute"

    def execute(self, below, above, mask=None):
        import node_helpers
        below, above = node_helpers.image_alpha_fix(below, above)
        share = 1.0 if mask is None else mask.unsqueeze(-1)
        return (above * share + below * (1 - share),)


NODE_CLASS_MAPPINGS = {f"es.{c.__name__}": c for c in (Math, Resize, BlurMask, Batch, Composite)}
