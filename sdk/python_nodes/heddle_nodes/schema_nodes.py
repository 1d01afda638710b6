"""Nodes of ComfyUI's newer form: ComfyNode, their base, and what makes classes of the older form of them, which pack.py knows."""

import inspect
import keyword
import logging

from .schema import MISSING, Hidden, HiddenValues, NodeOutput, Schema, sections
from .schema_dynamic import Autogrow, DynamicCombo, DynamicGroup, DynamicSlot, Given

DYNAMIC = tuple(kind.io_type for kind in (Autogrow, DynamicCombo, DynamicGroup, DynamicSlot))


class ComfyNode:
    """All of a node is in methods of its class. `hidden`: what its schema has asked for, of the call that is under way."""

    hidden = HiddenValues()

    @classmethod
    def define_schema(cls):
        raise NotImplementedError(f"{cls.__name__} has no define_schema()")

    @classmethod
    def execute(cls, **inputs):
        raise NotImplementedError(f"{cls.__name__} has no execute()")

    @classmethod
    def validate_inputs(cls, **inputs):
        """True, or what is wrong."""
        return True

    @classmethod
    def fingerprint_inputs(cls, **inputs):
        """Whatever it makes: where it is another than before, the node runs again."""
        return None

    @classmethod
    def check_lazy_status(cls, **inputs):
        """The lazy inputs that are still wanted; all, where a node does not say."""
        lazy = {one.id for one in cls.GET_SCHEMA().inputs if one.lazy}
        return [name for name, value in inputs.items() if value is None and name in lazy]

    @classmethod
    def GET_SCHEMA(cls):
        made = cls.__dict__.get("_schema")
        if made is None:
            made = cls.define_schema()
            if not isinstance(made, Schema):
                raise TypeError(f"define_schema() gives a {type(made).__name__} and no io.Schema")
            made.check()
            cls._schema = made
        return made

    @classmethod
    def has_own(cls, name):
        return getattr(getattr(cls, name), "__func__", getattr(cls, name)) is not getattr(ComfyNode, name).__func__


class ComfyExtension:
    """What comfy_entrypoint() returns."""

    async def on_load(self):
        """Called once, before the nodes are asked for."""

    async def get_node_list(self):
        raise NotImplementedError(f"{type(self).__name__} has no get_node_list()")


async def nodes_of(entrypoint):
    """The classes of a pack, by their schemas' ids; those that cannot be told by their own names, which tell why later."""
    extension = entrypoint()
    extension = await extension if inspect.isawaitable(extension) else extension
    if not isinstance(extension, ComfyExtension):
        raise TypeError(f"comfy_entrypoint() gives a {type(extension).__name__} and no ComfyExtension")
    await extension.on_load()
    found = {}
    for cls in await extension.get_node_list():
        try:
            name = cls.GET_SCHEMA().node_id
            if name in found:
                logging.warning("two nodes are called %r; the first is used", name)
            found.setdefault(name, cls)
        except Exception:
            found[getattr(cls, "__name__", str(cls))] = cls
    return found


def hidden_inputs(schema):
    wanted = [Hidden(kind) for kind in schema.hidden]
    if schema.is_output_node:  # what is saved has the workflow in it
        taken = {one.id for one in schema.inputs}  # an input of that name is the node's own
        wanted += [kind for kind in (Hidden.prompt, Hidden.extra_pnginfo) if kind not in wanted and kind.name not in taken]
    return {kind.name: kind.value for kind in wanted}


def put_together(schema, given):
    """The arguments of a method: dynamic inputs as they are meant, and undeclared ones for whoever wants all."""
    given = Given(given, schema.is_input_list)
    made = {one.id: one.gather(given, one.id) for one in schema.inputs}
    made = {name: value for name, value in made.items() if value is not MISSING}
    if schema.accept_all_inputs:
        grown = tuple(one.id + "." for one in schema.inputs if one.io_type in DYNAMIC)
        made.update((name, value) for name, value in given.items() if name not in made and not name.startswith(grown or ("\0",)))
    return made


def method(cls, name, hidden):
    """A method of the class as a function of what the engine gives."""
    schema = cls.GET_SCHEMA()

    def called(*_, **given):
        cls.hidden = HiddenValues({kind: given.pop(kind, None) for kind in hidden})
        return getattr(cls, name)(**put_together(schema, given))
    called.__name__ = name
    return called


def with_names(function, names, takes_all):
    """The names that pack.py finds in the function's signature."""
    kinds = inspect.Parameter
    parameters = [kinds(name, kinds.KEYWORD_ONLY) for name in names]
    function.__signature__ = inspect.Signature(parameters + ([kinds("others", kinds.VAR_KEYWORD)] if takes_all else []))
    return function


def as_older_form(cls):
    """A class with INPUT_TYPES and the rest, whose methods call those of a ComfyNode. Raises what its schema lacks."""
    schema = cls.GET_SCHEMA()
    if not cls.has_own("execute"):
        raise TypeError("it has no execute()")
    for one in schema.inputs:
        if one.io_type.startswith("COMFY_") and one.io_type not in (*DYNAMIC, "COMFY_MATCHTYPE_V3"):
            raise TypeError(f"its input {one.id!r} is a {one.io_type}, which heddle does not have for nodes in Python")
    hidden = hidden_inputs(schema)
    for one in schema.inputs:
        if one.id in hidden:
            raise TypeError(f"its input {one.id!r} has the name of a hidden one that it asks for")
    ids = [one.id for one in schema.inputs if one.id.isidentifier() and not keyword.iskeyword(one.id)]
    dynamic = [one.id for one in schema.inputs if one.io_type in DYNAMIC]
    takes_all = schema.accept_all_inputs or bool(dynamic)
    members = {
        "INPUT_TYPES": classmethod(lambda _: {**sections(schema.inputs), "hidden": hidden}),
        "RETURN_TYPES": tuple(one.io_type for one in schema.outputs), "RETURN_NAMES": tuple(one.display_name for one in schema.outputs),
        "OUTPUT_IS_LIST": tuple(one.is_output_list for one in schema.outputs),
        "OUTPUT_TOOLTIPS": tuple(one.tooltip for one in schema.outputs), "CATEGORY": schema.category,
        "DESCRIPTION": schema.description or None, "OUTPUT_NODE": schema.is_output_node, "DEPRECATED": schema.is_deprecated,
        "EXPERIMENTAL": schema.is_experimental, "INPUT_IS_LIST": schema.is_input_list, "MAY_EXPAND": schema.enable_expand,
        "FUNCTION": "execute", "execute": with_names(method(cls, "execute", hidden), ids, takes_all), "__module__": cls.__module__}
    if any(one.lazy for one in schema.inputs):
        members["check_lazy_status"] = method(cls, "check_lazy_status", hidden)
    if cls.has_own("fingerprint_inputs"):
        members["IS_CHANGED"] = staticmethod(with_names(method(cls, "fingerprint_inputs", hidden), (), True))
    if cls.has_own("validate_inputs"):
        members["VALIDATE_INPUTS"] = staticmethod(validator(cls, schema, dynamic))
    return type(cls.__name__, (), members)


def validator(cls, schema, dynamic):
    """Before a run nobody knows what stands below dynamic inputs, so a validator that names one cannot be asked."""
    parameters = inspect.signature(cls.validate_inputs).parameters.values()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    takes_all = any(p.kind == p.VAR_KEYWORD for p in parameters)
    unknown = [name for name in dynamic if name in names or takes_all]
    if unknown:
        raise TypeError(f"its validate_inputs() wants the input {unknown[0]!r}, whose parts are not known before a run: let it name "
                        f"others alone")

    def called(**given):
        return cls.validate_inputs(**given)
    called.__name__ = "validate_inputs"
    return with_names(called, names, takes_all)


__all__ = ["ComfyExtension", "ComfyNode", "NodeOutput", "as_older_form", "nodes_of"]
