import json
import math
import os
import signal
import time

import folder_paths
from comfy.comfy_types import IO, ComfyNodeABC
from comfy.utils import ProgressBar


class Join:
    DESCRIPTION = "Joins texts."

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"text": ("STRING", {"default": "x", "multiline": True, "tooltip": "What is joined."}),
                             "times": ("INT", {"default": 2, "min": 0, "max": 9})},
                "optional": {"separator": ("STRING", {"default": ","})}}
    RETURN_TYPES, RETURN_NAMES, FUNCTION, CATEGORY = ("STRING", "INT"), ("joined", "count"), "run", "test"

    def run(self, text, times, separator="-"):
        return separator.join([text] * times), times


class Kinds(ComfyNodeABC):
    """Each kind of widget, told as Python has it."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"i": (IO.INT, {"min": -10, "max": 10}), "f": ("FLOAT", {"default": 0.5, "step": 0.01}),
                             "b": ("BOOLEAN", {"default": True}), "c": (["red", "green"], {"default": "green"}), "n": ([1, 2, 4],),
                             "v": ("COMBO", {"options": ["one", "two"]}), "seed": ("INT", {"min": 0, "max": 0xffffffffffffffff})}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    def run(self, **given):
        return (json.dumps(given, sort_keys=True),)


class Give:
    """A value of any type, as Python reads it."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"text": ("STRING", {"default": "None"})}}
    RETURN_TYPES, FUNCTION = ("*",), "run"

    def run(self, text):
        return (eval(text, {"math": math, "set": set, "range": range}),)


class Tell:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"value": ("*",)}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    def run(self, value):
        return (f"{type(value).__name__} {value!r}",)


class MakeBox:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"value": ("INT", {"default": 1})}}
    RETURN_TYPES, FUNCTION = ("BOX",), "run"

    class Box:
        made = dropped = 0

        def __init__(self, value):
            self.value, self.more = value, {1, (2, 3)}
            MakeBox.Box.made += 1

        def __del__(self):
            MakeBox.Box.dropped += 1

    def run(self, value):
        return (MakeBox.Box(value),)


class OpenBox:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"box": ("BOX",), "other": ("BOX",)}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    def run(self, box, other):
        return (f"{box.value + other.value} {sorted(map(str, box.more))} {box is other}",)


class Count:
    """An instance counts its calls; the fingerprint is of a file."""
    calls = 0

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"path": ("STRING", {})}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    @classmethod
    def IS_CHANGED(cls, path):
        return os.path.getsize(path)

    def run(self, path):
        Count.calls += 1
        with open(path + ".calls", "a") as file:
            file.write("x")
        return (str(os.path.getsize(path)),)


class Always(Count):
    @classmethod
    def IS_CHANGED(cls, path):
        return float("nan")


class Even:
    """What VALIDATE_INPUTS says, before anything runs."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"number": ("INT", {"default": 2, "min": 0, "max": 10}), "free": (["a"],)}}
    RETURN_TYPES, FUNCTION = ("INT",), "run"

    @classmethod
    def VALIDATE_INPUTS(cls, number, free):
        return True if number is None or number % 2 == 0 else f"{number} is odd"

    def run(self, number, free):
        return (number,)


class Typed:
    """A validator that looks at the types of links."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"value": ("*",), "small": ("INT", {"max": 5}), "color": (["red"],)}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    @classmethod
    def VALIDATE_INPUTS(cls, input_types):
        return True if input_types["value"] in ("INT", "STRING") else f"no {input_types['value']}"

    def run(self, value, small, color):
        return (repr(value),)


class Hidden:
    @classmethod
    def INPUT_TYPES(cls):
        return {"hidden": {"prompt": "PROMPT", "me": "UNIQUE_ID", "info": "EXTRA_PNGINFO", "graph": "DYNPROMPT"}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    def run(self, prompt, me, info, graph):
        return (f"{me} {prompt[me]['class_type']} {info} {graph.get_node(me)['class_type']} {graph.has_node('nobody')}",)


class Show:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"text": ("STRING", {})}}
    RETURN_TYPES, FUNCTION, OUTPUT_NODE = (), "run", True

    def run(self, text):
        folder, name, counter, subfolder, _ = folder_paths.get_save_image_path("sub/shown", folder_paths.get_output_directory())
        file = f"{name}_{counter:05}_.txt"
        with open(os.path.join(folder, file), "w") as stream:
            stream.write(text)
        return {"ui": {"text": [text.upper()], "files": [{"filename": file, "subfolder": subfolder, "type": "output"}]}}


class Slow:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"steps": ("INT", {"default": 4, "max": 1000000})}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    def run(self, steps):
        bar = ProgressBar(steps)
        for _ in range(steps):
            time.sleep(0.01)
            bar.update(1)
        return (f"{bar.current} of {bar.total}",)


class End:
    """Ends its call, or its process."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"how": (["raise", "surrogate", "exit", "sys_exit", "kill", "abort", "hang"],)}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    def run(self, how):
        if how == "surrogate":
            raise ValueError("half a pair: \ud83d")
        if how == "exit":
            os._exit(3)
        if how == "sys_exit":
            raise SystemExit(4)
        if how in ("kill", "abort"):
            os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGABRT)
            time.sleep(60)  # another thread may be the one that is told
        while how == "hang":
            pass
        raise ValueError("a node failed on purpose")


class Places:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"name": (folder_paths.get_filename_list("loras"),)}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    def run(self, name):
        return (os.path.basename(folder_paths.get_full_path("loras", name)),)


class Async:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"text": ("STRING", {})}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    async def run(self, text):
        import asyncio
        await asyncio.sleep(0)
        return text + " later"  # no tuple: a forgotten comma


NODES = {f"t.{cls.__name__}": cls for cls in (Join, Kinds, Give, Tell, MakeBox, OpenBox, Count, Always, Even, Typed, Hidden, Show, Slow,
                                              End, Places, Async)}
