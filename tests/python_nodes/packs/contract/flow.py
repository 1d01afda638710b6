from comfy_execution.graph import ExecutionBlocker
from comfy_execution.graph_utils import GraphBuilder


class AnyType(str):
    def __ne__(self, other):
        return False


ANY = AnyType("*")


class Flexible(dict):
    """Optional inputs of any name."""

    def __contains__(self, key):
        return True

    def __getitem__(self, key):
        return (ANY,)


class Numbers:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"count": ("INT", {"default": 3})}}
    RETURN_TYPES, FUNCTION, OUTPUT_IS_LIST = ("INT", "INT"), "run", (True, False)

    def run(self, count):
        return list(range(count)), count


class Square:
    """Called for each element."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"number": ("INT", {"forceInput": True}), "add": ("INT", {"default": 0})}}
    RETURN_TYPES, FUNCTION = ("INT",), "run"

    def run(self, number, add):
        return (number * number + add,)


class Sum:
    INPUT_IS_LIST = True

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"numbers": ("INT", {"forceInput": True}), "factor": ("INT", {"default": 2})}, "hidden": {"me": "UNIQUE_ID"}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    def run(self, numbers, factor, me):
        return (f"{sum(numbers) * factor[0]} {len(numbers)} {len(factor)} {me[0]}",)


class Choose:
    """Only what is chosen is computed."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"first": ("BOOLEAN", {"default": True}), "a": (ANY, {"lazy": True}), "b": (ANY, {"lazy": True})}}
    RETURN_TYPES, FUNCTION = (ANY,), "run"

    def check_lazy_status(self, first, a, b):
        wanted = "a" if first else "b"
        return [wanted] if (a if first else b) is None else []

    def run(self, first, a, b):
        return (a if first else b,)


class Block:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"value": (ANY,), "blocked": ("BOOLEAN", {"default": True}), "message": ("STRING", {"default": ""})}}
    RETURN_TYPES, FUNCTION = (ANY,), "run"

    def run(self, value, blocked, message):
        return (ExecutionBlocker(message or None) if blocked else value,)


class Repeat:
    """Asks for nodes: a chain of t.Square, as long as it says."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"number": ("INT", {"default": 2}), "times": ("INT", {"default": 2})}}
    RETURN_TYPES, FUNCTION = ("INT", "STRING"), "run"

    def run(self, number, times):
        graph = GraphBuilder()
        value = number
        for _ in range(times):
            value = graph.node("t.Square", number=value, add=1).out(0)
        return {"result": (value, f"{times} nodes"), "expand": graph.finalize()}


class Countdown:
    """A loop: asks for itself until it is at zero."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"left": ("INT", {"default": 3}), "text": ("STRING", {"default": ""})}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    def run(self, left, text):
        if left == 0:
            return (text + "0",)
        graph = GraphBuilder()
        more = graph.node("t.Countdown", left=left - 1, text=f"{text}{left} ")
        return {"result": (more.out(0),), "expand": graph.finalize()}


class First:
    """The first input that is there."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {}, "optional": Flexible()}
    RETURN_TYPES, FUNCTION = (ANY,), "run"

    def run(self, **given):
        return (next((given[name] for name in sorted(given) if given[name] is not None), None),)


class Link:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"value": (ANY, {"rawLink": True})}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    def run(self, value):
        return (repr(list(value)),)


class Nothing:
    """Fewer values than outputs."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {}}
    RETURN_TYPES, FUNCTION = ("STRING", "STRING"), "run"

    def run(self):
        return ("one",)


NODES = {f"t.{cls.__name__}": cls for cls in (Numbers, Square, Sum, Choose, Block, Repeat, Countdown, First, Link, Nothing)}
