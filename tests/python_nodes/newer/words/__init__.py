"""Nodes of ComfyUI's newer form, of texts and numbers: all that a schema can say."""
import asyncio
import enum
import json
import os

from comfy_api.latest import ComfyAPI, ComfyExtension, io, ui
from comfy_execution.graph_utils import GraphBuilder


class Color(enum.Enum):
    red = "red"
    blue = "blue"


class Base(io.ComfyNode):
    """What nodes of the pack share."""

    @classmethod
    def joined(cls, *parts):
        return io.NodeOutput(" ".join(map(str, parts)))


def schema(name, inputs=(), outputs=None, **more):
    return io.Schema(node_id=f"w.{name}", category="test", inputs=list(inputs),
                     outputs=[io.String.Output()] if outputs is None else outputs, **more)


class Kinds(Base):
    @classmethod
    def define_schema(cls):
        return schema("Kinds", [
            io.Int.Input("i", default=3, min=-5, max=5),
            io.Float.Input("f", default=0.5, step=0.1, round=0.01, display_mode=io.NumberDisplay.slider),
            io.String.Input("s", multiline=True, default="text", tooltip="Some words."), io.Boolean.Input("b", default=True, label_on="yes"),
            io.Combo.Input("c", options=["one", "two"], default="two"), io.Combo.Input("color", options=Color, default=Color.blue),
            io.Combo.Input("size", options=[1, 2, 4], default=4),
            io.MultiCombo.Input("many", options=["x", "y", "z"], default=["x", "z"], optional=True),
            io.Int.Input("seed", default=0, min=0, max=2**64 - 1, control_after_generate=True),
            io.MultiType.Input(io.Float.Input("wide", default=1.5), types=[io.Int], optional=True)],
            display_name="All kinds", description="Tells what it is given.")

    @classmethod
    def execute(cls, **given):
        return io.NodeOutput(json.dumps(given, sort_keys=True))


class Two(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return schema("Two", [io.String.Input("text", optional=True)], [io.String.Output("first", display_name="upper"),
                                                                       io.Int.Output(display_name="length", tooltip="How long it is.")])

    @classmethod
    def execute(cls, text="nothing"):
        return io.NodeOutput(text.upper(), len(text))


class Grow(Base):
    @classmethod
    def define_schema(cls):
        return schema("Grow", [
            io.Autogrow.Input("words", template=io.Autogrow.TemplatePrefix(io.String.Input("word"), prefix="word", min=1, max=5)),
            io.Autogrow.Input("sides", template=io.Autogrow.TemplateNames(io.Float.Input("side", optional=True), ["left", "right"], min=0))])

    @classmethod
    def execute(cls, words, sides):
        return cls.joined(*(f"{name}={value}" for name, value in {**words, **sides}.items()))


class Choose(Base):
    @classmethod
    def define_schema(cls):
        inner = io.DynamicCombo.Input("unit", options=[
            io.DynamicCombo.Option("px", []), io.DynamicCombo.Option("cm", [io.Int.Input("dpi", default=300)])])
        return schema("Choose", [io.DynamicCombo.Input("mode", options=[
            io.DynamicCombo.Option("by", [io.Float.Input("factor", default=2, min=0, max=9)]),
            io.DynamicCombo.Option("to", [io.Int.Input("width"), io.String.Input("name", optional=True), inner])])])

    @classmethod
    def execute(cls, mode):
        return io.NodeOutput(json.dumps(mode, sort_keys=True))


class Stack(Base):
    """Rows of widgets, of which one may be left out."""

    @classmethod
    def define_schema(cls, **more):
        return schema(cls.__name__, [io.DynamicGroup.Input("rows", min=1, max=4, group_name="Word", tooltip="Words.", template=[
            io.String.Input("word"), io.Int.Input("times", default=2, min=1, max=9), io.Boolean.Input("loud", optional=True)])], **more)

    @classmethod
    def execute(cls, rows):
        return io.NodeOutput(json.dumps(rows, sort_keys=True))


class StackLists(Stack):
    @classmethod
    def define_schema(cls):
        return super().define_schema(is_input_list=True)


class BadStack(Stack):
    @classmethod
    def define_schema(cls):
        return schema("BadStack", [io.DynamicGroup.Input("rows", template=[io.Image.Input("image")])])


class Slotted(Base):
    """What comes with a text, and is there when that is linked."""

    @classmethod
    def define_schema(cls):
        return schema("Slotted", [io.DynamicSlot.Input(io.String.Input("text", tooltip="Some words."), [
            io.Int.Input("times", default=2, min=1, max=9), io.String.Input("mark"), io.String.Input("more", optional=True)])])

    @classmethod
    def execute(cls, text=None):
        return io.NodeOutput(json.dumps(text, sort_keys=True))


class Same(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        kind = io.MatchType.Template("T", allowed_types=[io.String, io.Int])
        return schema("Same", [io.Boolean.Input("first"), *(io.MatchType.Input(id, template=kind, lazy=True) for id in "ab")],
                      [io.MatchType.Output(template=kind, display_name="out")])

    @classmethod
    def check_lazy_status(cls, first, a=None, b=None):
        return ["a"] if first and a is None else ["b"] if not first and b is None else []

    @classmethod
    def execute(cls, first, a=None, b=None):
        return io.NodeOutput(a if first else b)


class Ask(Base):
    @classmethod
    def define_schema(cls):
        return schema("Ask", hidden=[io.Hidden.unique_id, io.Hidden.prompt, io.Hidden.dynprompt])

    @classmethod
    def execute(cls):
        me = cls.hidden.unique_id
        return cls.joined(me, cls.hidden.prompt[me]["class_type"], cls.hidden.dynprompt.get_node(me)["class_type"], cls.hidden.extra_pnginfo)


class Even(Base):
    @classmethod
    def define_schema(cls):
        return schema("Even", [io.Int.Input("number", default=2), io.String.Input("free", default="")])

    @classmethod
    def validate_inputs(cls, number):
        return True if number % 2 == 0 else f"{number} is odd"

    @classmethod
    def execute(cls, number, free):
        return cls.joined(number, free)


class Count(Base):
    """Runs again where a file has another size, and not for another file of the same."""

    @classmethod
    def define_schema(cls):
        return schema("Count", [io.String.Input("path")])

    @classmethod
    def fingerprint_inputs(cls, path):
        return os.path.getsize(path)

    @classmethod
    def execute(cls, path):
        with open(path + ".calls", "a") as file:
            file.write("x")
        return cls.joined(os.path.getsize(path))


class Show(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return schema("Show", [io.String.Input("text")], is_output_node=True)

    @classmethod
    def execute(cls, text):
        return io.NodeOutput(text, ui=ui.PreviewText(f"{text}, of {cls.hidden.prompt is not None}"))


class Block(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return schema("Block", [io.String.Input("text"), io.Boolean.Input("blocked", default=True)])

    @classmethod
    def execute(cls, text, blocked):
        return io.NodeOutput(block_execution="not today") if blocked else io.NodeOutput(text)


class Split(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return schema("Split", [io.String.Input("text")], [io.String.Output(is_output_list=True)])

    @classmethod
    def execute(cls, text):
        return io.NodeOutput(text.split())


class Gather(Base):
    @classmethod
    def define_schema(cls):
        return schema("Gather", [io.String.Input("texts"), io.String.Input("between", default="+")], is_input_list=True)

    @classmethod
    def execute(cls, texts, between):
        return io.NodeOutput(between[0].join(texts))


class Repeat(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return schema("Repeat", [io.String.Input("text"), io.Int.Input("times", default=2)], enable_expand=True)

    @classmethod
    def execute(cls, text, times):
        graph = GraphBuilder()
        link = text
        for _ in range(times):
            link = graph.node("StringConcatenate", string_a=link, string_b="!", delimiter="").out(0)
        return io.NodeOutput(link, expand=graph.finalize())


class Wait(Base):
    @classmethod
    def define_schema(cls):
        return schema("Wait", [io.Int.Input("steps", default=4)])

    @classmethod
    async def execute(cls, steps):
        api = ComfyAPI()
        for step in range(steps):
            await asyncio.sleep(0)
            await api.execution.set_progress(step + 1, steps)
        return cls.joined(steps, "steps")


Thing = io.Custom("THING")


@io.comfytype(io_type="TWIN")
class Twin(io.ComfyTypeIO):
    Type = tuple


class Make(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return schema("Make", [io.Int.Input("value")], [Thing.Output(), Twin.Output(display_name="twin")])

    @classmethod
    def execute(cls, value):
        return io.NodeOutput({1, value}, (value, range(value)))


class Open(Base):
    @classmethod
    def define_schema(cls):
        return schema("Open", [Thing.Input("thing"), Twin.Input("twin")])

    @classmethod
    def execute(cls, thing, twin):
        return cls.joined(sorted(thing), twin)


class Any(Base):
    @classmethod
    def define_schema(cls):
        return schema("Any", [io.AnyType.Input("value", optional=True)], accept_all_inputs=True)

    @classmethod
    def execute(cls, value=None, **others):
        return cls.joined(value, sorted(others.items()))


class Fail(Base):
    @classmethod
    def define_schema(cls):
        return schema("Fail")

    @classmethod
    def execute(cls):
        raise ValueError("a newer node failed on purpose")


class NoSchema(io.ComfyNode):
    pass


class Twice(Base):
    @classmethod
    def define_schema(cls):
        return schema("Twice", [io.Int.Input("a"), io.Int.Input("a")])


class Silent(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return schema("Silent")


class Words(ComfyExtension):
    async def on_load(self):
        self.classes = [Kinds, Two, Grow, Choose, Stack, StackLists, Slotted, Same, Ask, Even, Count, Show, Block, Split, Gather, Repeat, Wait,
                        Make, Open, Any, Fail]

    async def get_node_list(self):
        return self.classes + [NoSchema, Twice, BadStack, Silent]


async def comfy_entrypoint():
    return Words()
