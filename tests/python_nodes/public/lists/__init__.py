"""Behaviour of packs of lists, wildcards, pipes and loops."""
import random
import re

from comfy_execution.graph_utils import GraphBuilder, is_link
from server import PromptServer


@PromptServer.instance.routes.get("/lists/names")
async def names(request):
    return []


class Number:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"number": ("INT", {"default": 0})}}
    RETURN_TYPES, FUNCTION = ("INT",), "get"

    def get(self, number):
        return (number,)


class Split:
    OUTPUT_IS_LIST = (True,)

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"text": ("STRING", {"default": ""}), "separator": ("STRING", {"default": ","})}}
    RETURN_TYPES, FUNCTION = ("STRING",), "split"

    def split(self, text, separator):
        return (text.split(separator),)


class Join:
    INPUT_IS_LIST = True

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"items": ("STRING", {"forceInput": True}), "separator": ("STRING", {"default": ","})}}
    RETURN_TYPES, FUNCTION = ("STRING",), "join"

    def join(self, items, separator):
        return (separator[0].join(items),)


class Sort:
    INPUT_IS_LIST, OUTPUT_IS_LIST = True, (True,)

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"items": ("STRING", {"forceInput": True})}}
    RETURN_TYPES, FUNCTION = ("STRING",), "sort"

    def sort(self, items):
        return (sorted(items),)


class Pick:
    INPUT_IS_LIST = True

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"items": ("*",), "index": ("INT", {"default": 0, "min": -99, "max": 99})}}
    RETURN_TYPES, FUNCTION = ("*",), "pick"

    def pick(self, items, index):
        return (items[index[0]],)


class Wildcard:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"text": ("STRING", {"multiline": True, "dynamicPrompts": False}), "seed": ("INT", {"min": 0, "max": 2**64 - 1})}}
    RETURN_TYPES, FUNCTION = ("STRING",), "fill"

    def fill(self, text, seed):
        choose = random.Random(seed)
        return (re.sub(r"\{([^{}]*)\}", lambda m: choose.choice(m.group(1).split("|")), text),)


class Pipe:
    INPUT_IS_LIST = True

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"name": ("STRING", {"default": ""}), "items": ("*",)}}
    RETURN_TYPES, FUNCTION = ("ITEM_PIPE",), "make"

    def make(self, name, items):
        return ((name[0], tuple(items), lambda: len(items)),)


class Unpipe:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"pipe": ("ITEM_PIPE",)}}
    RETURN_TYPES, FUNCTION = ("STRING",), "open"

    def open(self, pipe):
        name, items, count = pipe
        assert type(items) is tuple and count() == len(items)
        return (f"{name}:{','.join(items)}",)


class While:
    """A loop that makes its body anew each time."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"count": ("INT", {"default": 1}), "value": ("STRING", {"default": ""})},
                "hidden": {"graph": "DYNPROMPT", "me": "UNIQUE_ID"}}
    RETURN_TYPES, FUNCTION = ("STRING",), "loop"

    def loop(self, count, value, graph, me):
        assert not is_link(graph.get_node(me)["inputs"]["count"])
        if count == 0:
            return (value,)
        builder = GraphBuilder()
        body = builder.node("StringConcatenate", string_a=value, string_b="x", delimiter="")
        again = builder.node("ls.While", "again", count=count - 1, value=body.out(0))
        again.set_override_display_id(me)
        return {"result": (again.out(0),), "expand": builder.finalize()}


NODE_CLASS_MAPPINGS = {f"ls.{c.__name__}": c for c in (Number, Split, Join, Sort, Pick, Wildcard, Pipe, Unpipe, While)}
