"""Behaviour of packs of switches and contexts: inputs of any name and type, records that grow, seeds, lazy choices."""
import random

from comfy_execution.graph_utils import ExecutionBlocker


class AnyType(str):
    def __ne__(self, other):
        return False


ANY = AnyType("*")


class AnyInputs(dict):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def __contains__(self, key):
        return True

    def __getitem__(self, key):
        return (self.kind,)


class Text:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"text": ("STRING", {"default": ""})}, "optional": {"upper": ("BOOLEAN", {"default": False})}}
    RETURN_TYPES, FUNCTION, CATEGORY = ("STRING",), "get", "switches"

    def get(self, text, upper=False):
        return (text.upper() if upper else text,)


class AnySwitch:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {}, "optional": AnyInputs(ANY)}
    RETURN_TYPES, RETURN_NAMES, FUNCTION = (ANY,), ("*",), "switch"

    def switch(self, **inputs):
        for name in sorted(inputs):
            if name.startswith("any_") and inputs[name] is not None:
                return (inputs[name],)
        return (None,)


class Context:
    FIELDS = {"positive": ANY, "negative": ANY, "steps": "INT"}

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {}, "optional": {"base": ("CONTEXT",), "positive": (ANY,), "negative": (ANY,), "steps": ("INT", {"forceInput": False})},
                "hidden": {"version": "FLOAT"}}
    RETURN_TYPES, FUNCTION = ("CONTEXT",), "merge"

    def merge(self, base=None, **given):
        return ({**(base or {}), **{k: v for k, v in given.items() if v is not None and v != 0}},)


class OpenContext:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"context": ("CONTEXT",)}}
    RETURN_TYPES, FUNCTION = ("STRING",), "open"

    def open(self, context):
        return (f"{context['positive']} {context['negative']} {context['steps']}",)


class Seed:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"seed": ("INT", {"default": 0, "min": -3, "max": 2**50})}, "hidden": {"id": "UNIQUE_ID", "prompt": "PROMPT"}}
    RETURN_TYPES, FUNCTION = ("INT",), "get"

    @classmethod
    def IS_CHANGED(cls, seed, id=None, prompt=None):
        return random.random() if seed < 0 else seed

    def get(self, seed, id, prompt):
        return (random.randint(0, 2**50) if seed < 0 else prompt[id]["inputs"]["seed"],)


class Display:
    OUTPUT_NODE = True

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"source": (ANY, {})}}
    RETURN_TYPES, FUNCTION = (), "show"

    def show(self, source=None):
        return {"ui": {"text": (str(source),)}}


class Select:
    """Of inputs input1, input2, ... one, and no other is computed."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"select": ("INT", {"default": 1, "min": 1, "max": 99})},
                "optional": {"input1": (ANY, {"lazy": True}), "input2": (ANY, {"lazy": True})}}
    RETURN_TYPES, FUNCTION = (ANY,), "pick"

    def check_lazy_status(self, select, **inputs):
        name = f"input{select}"
        return [name] if name in inputs and inputs[name] is None else []

    def pick(self, select, **inputs):
        if select > 50:
            return (ExecutionBlocker(None),)
        return (inputs.get(f"input{select}"),)


NODE_CLASS_MAPPINGS = {f"sw.{c.__name__}": c for c in (Text, AnySwitch, Context, OpenContext, Seed, Display, Select)}
WEB_DIRECTORY = "./js"
