"""What packs of ComfyUI's newer form say of their nodes: inputs, outputs and schemas as objects, which comfy_api hands on.

An input knows its form in /object_info (spec()) and how its value is put together of what a workflow gives (gather()): inputs
that ComfyUI calls dynamic come under dotted names."""

import enum

from . import video
from .values import ENGINES, ExecutionBlocker, Opaque

MISSING = object()


class Output:
    def __init__(self, id=None, display_name=None, tooltip=None, is_output_list=False, io_type="*"):
        self.id, self.io_type, self.tooltip, self.is_output_list = id, io_type, tooltip, is_output_list
        self.display_name = display_name or io_type


class Input:
    """Options that are None are not told. `more`: those of a kind of input, under the names that /object_info has."""

    io_type = "*"

    def __init__(self, id, display_name=None, optional=False, tooltip=None, lazy=None, extra_dict=None, raw_link=None, advanced=None,
                 **more):
        self.id, self.optional, self.lazy = id, optional, lazy
        options = {"display_name": display_name, "tooltip": tooltip, "lazy": lazy, "rawLink": raw_link, "advanced": advanced,
                   **more, **(extra_dict or {})}
        self.options = {name: value for name, value in options.items() if value is not None}

    @property
    def default(self):
        return self.options.get("default")

    @property
    def tooltip(self):
        return self.options.get("tooltip")

    @property
    def display_name(self):
        return self.options.get("display_name")

    def get_io_type(self):
        return self.io_type

    def spec(self):
        """(type, options)"""
        return self.io_type, self.options

    def gather(self, given, name):
        """The value of the input that a workflow knows by `name`; MISSING: it has none."""
        return given.get(name, MISSING)

    def gather_child(self, given, name):
        """The same of one below another, of which the engine knows no type."""
        value = self.gather(given, name)
        if value is MISSING:
            if self.default is None:
                return MISSING
            value = self.default
        return [self.convert(item) for item in value] if isinstance(value, list) else self.convert(value)

    def convert(self, value):
        kinds = {"FLOAT": float, "INT": int, "BOOLEAN": bool}
        if self.io_type in kinds and isinstance(value, (bool, int, float)):
            return kinds[self.io_type](value)
        if self.io_type == "VIDEO" and isinstance(value, dict):
            return video.of_record(value)
        return Opaque(self.io_type, value) if self.io_type in ENGINES and isinstance(value, dict) else value


class WidgetInput(Input):
    """One that people give a literal. `force_input`: it has to be linked."""

    def __init__(self, id, display_name=None, optional=False, tooltip=None, lazy=None, default=None, socketless=None, widget_type=None,
                 force_input=None, extra_dict=None, raw_link=None, advanced=None, **more):
        super().__init__(id, display_name, optional, tooltip, lazy, extra_dict, raw_link, advanced, default=default,
                         socketless=socketless, widgetType=widget_type, forceInput=force_input, **more)


def plain(option):
    """A member of an Enum as its value."""
    return option.value if isinstance(option, enum.Enum) else option


class Kind:
    """A type of values: Kind.Input and Kind.Output are made of it."""

    io_type, Type = "*", object
    Input, Output = Input, Output


def make_kind(name, io_type, base=Input, members=None):
    """A class with an Input and an Output of that type."""
    input_class = type("Input", (base,), {"io_type": io_type, "__qualname__": f"{name}.Input", **(members or {})})

    def make_output(self, id=None, display_name=None, tooltip=None, is_output_list=False):
        Output.__init__(self, id, display_name, tooltip, is_output_list, io_type)
    output_class = type("Output", (Output,), {"__init__": make_output, "__qualname__": f"{name}.Output"})
    return type(name, (Kind,), {"io_type": io_type, "Input": input_class, "Output": output_class})


def comfytype(io_type, **_):
    """A decorator: a class of a pack's own as a type of values."""
    def decorated(cls):
        made = make_kind(cls.__name__, io_type)
        for name in ("Input", "Output"):
            own = cls.__dict__.get(name)
            if own is None:
                setattr(cls, name, getattr(made, name))
            else:
                own.io_type = io_type
        cls.io_type = io_type
        return cls
    return decorated


def Custom(io_type):
    return make_kind("Custom", io_type)


class IntInput(WidgetInput):
    def __init__(self, id, display_name=None, optional=False, tooltip=None, lazy=None, default=None, min=None, max=None, step=None,
                 control_after_generate=None, display_mode=None, **rest):
        super().__init__(id, display_name, optional, tooltip, lazy, default, min=min, max=max, step=step,
                         control_after_generate=plain(control_after_generate), display=plain(display_mode), **rest)


class FloatInput(WidgetInput):
    def __init__(self, id, display_name=None, optional=False, tooltip=None, lazy=None, default=None, min=None, max=None, step=None,
                 round=None, display_mode=None, **rest):
        super().__init__(id, display_name, optional, tooltip, lazy, default, min=min, max=max, step=step, round=round,
                         display=plain(display_mode), **rest)


class StringInput(WidgetInput):
    def __init__(self, id, display_name=None, optional=False, tooltip=None, lazy=None, multiline=False, placeholder=None, default=None,
                 dynamic_prompts=None, **rest):
        super().__init__(id, display_name, optional, tooltip, lazy, default, multiline=multiline, placeholder=placeholder,
                         dynamicPrompts=dynamic_prompts, **rest)


class BooleanInput(WidgetInput):
    def __init__(self, id, display_name=None, optional=False, tooltip=None, lazy=None, default=None, label_on=None, label_off=None, **rest):
        super().__init__(id, display_name, optional, tooltip, lazy, default, label_on=label_on, label_off=label_off, **rest)


class ComboInput(WidgetInput):
    def __init__(self, id, options=None, display_name=None, optional=False, tooltip=None, lazy=None, default=None,
                 control_after_generate=None, upload=None, image_folder=None, remote=None, **rest):
        if isinstance(options, type) and issubclass(options, enum.Enum):
            options = [option.value for option in options]
        if upload is not None:
            rest[plain(upload)] = True
        super().__init__(id, display_name, optional, tooltip, lazy, plain(default), options=options, image_folder=plain(image_folder),
                         control_after_generate=plain(control_after_generate), **rest)


class MultiComboInput(ComboInput):
    """Several of the options: its value is a list."""

    def __init__(self, id, options, display_name=None, optional=False, tooltip=None, lazy=None, default=None, placeholder=None,
                 chip=None, control_after_generate=None, **rest):
        super().__init__(id, options, display_name, optional, tooltip, lazy, default, control_after_generate, multiselect=True,
                         placeholder=placeholder, chip=chip, **rest)


class MultiTypeInput(Input):
    """Of any of some types. `id`: or an input, whose widget it has."""

    def __init__(self, id, types, display_name=None, optional=False, tooltip=None, lazy=None, extra_dict=None, raw_link=None, advanced=None):
        names = [kind.io_type for kind in types]
        if isinstance(id, Input):
            super().__init__(id.id, display_name, optional or id.optional, tooltip, lazy, {**id.options, **(extra_dict or {})}, raw_link, advanced)
            self.options["widgetType"] = id.io_type
            names.insert(0, id.io_type)
        else:
            super().__init__(id, display_name, optional, tooltip, lazy, extra_dict, raw_link, advanced)
        self.io_type = ",".join(dict.fromkeys(names))


class MatchTemplate:
    """One type that inputs and outputs of a node share."""

    def __init__(self, template_id, allowed_types=None):
        self.template_id = template_id
        kinds = [Kind] if allowed_types is None else allowed_types if isinstance(allowed_types, (list, tuple)) else [allowed_types]
        self.allowed_types = list(kinds)

    def as_dict(self):
        return {"template_id": self.template_id, "allowed_types": ",".join(kind.io_type for kind in self.allowed_types)}


class MatchType(Kind):
    io_type = "COMFY_MATCHTYPE_V3"
    Template = MatchTemplate

    class Input(Input):
        io_type = "COMFY_MATCHTYPE_V3"

        def __init__(self, id, template, display_name=None, optional=False, tooltip=None, lazy=None, extra_dict=None, raw_link=None, **rest):
            super().__init__(id, display_name, optional, tooltip, lazy, extra_dict, raw_link, template=template.as_dict(), **rest)

    class Output(Output):
        def __init__(self, template, id=None, display_name=None, tooltip=None, is_output_list=False):
            super().__init__(id, display_name, tooltip, is_output_list, "COMFY_MATCHTYPE_V3")


def sections(inputs):
    """As INPUT_TYPES has them."""
    made = {"required": {}, "optional": {}}
    for one in inputs:
        made["optional" if one.optional else "required"][one.id] = list(one.spec())
    return made


class Hidden(str, enum.Enum):
    unique_id = "UNIQUE_ID"
    prompt = "PROMPT"
    extra_pnginfo = "EXTRA_PNGINFO"
    dynprompt = "DYNPROMPT"
    auth_token_comfy_org = "AUTH_TOKEN_COMFY_ORG"
    api_key_comfy_org = "API_KEY_COMFY_ORG"


class HiddenValues:
    """cls.hidden while a node runs; None for what its schema does not ask for."""

    def __init__(self, values=()):
        for member in Hidden:
            setattr(self, member.name, None)
        self.__dict__.update(values)


class Schema:
    """`rest`: what the engine makes no use of."""

    def __init__(self, node_id, display_name=None, category="sd", inputs=None, outputs=None, hidden=None, description="",
                 is_input_list=False, is_output_node=False, is_deprecated=False, is_experimental=False, enable_expand=False,
                 accept_all_inputs=False, **rest):
        self.node_id, self.display_name, self.category, self.description = node_id, display_name, category, description
        self.inputs, self.outputs, self.hidden = list(inputs or ()), list(outputs or ()), list(hidden or ())
        self.is_input_list, self.is_output_node = is_input_list, is_output_node
        self.is_deprecated, self.is_experimental = is_deprecated, is_experimental
        self.enable_expand, self.accept_all_inputs = enable_expand, accept_all_inputs
        self.rest = rest

    def check(self):
        """Raises what no workflow could mean."""
        for what, ids in (("inputs", [i.id for i in self.inputs]), ("outputs", [o.id for o in self.outputs if o.id is not None])):
            twice = sorted({id for id in ids if ids.count(id) > 1})
            if twice:
                raise ValueError(f"two {what} of its Schema have the id {twice[0]!r}")


class NodeOutput:
    def __init__(self, *args, ui=None, expand=None, block_execution=None):
        self.args, self.ui, self.expand, self.block_execution = args, ui, expand, block_execution

    @property
    def result(self):
        return self.args or None

    def __getitem__(self, index):
        return self.args[index]

    @classmethod
    def from_dict(cls, data):
        result = data.get("result") or ()
        if isinstance(result, ExecutionBlocker):
            return cls(ui=data.get("ui"), block_execution=result.message or "")
        return cls(*result, ui=data.get("ui"), expand=data.get("expand"))

    def as_dict(self):
        """What a node of the older form returns."""
        ui = self.ui.as_dict() if hasattr(self.ui, "as_dict") else self.ui
        blocked = self.block_execution is not None
        return {"ui": ui, "expand": self.expand, "result": ExecutionBlocker(self.block_execution or None) if blocked else self.args}
