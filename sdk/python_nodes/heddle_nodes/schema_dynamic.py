"""Inputs that ComfyUI calls dynamic: what there is of them a workflow says, under dotted names below the input's own."""

from .schema import MISSING, Input, Kind, WidgetInput, sections
from .wire import Code, Refused

MOST_SOCKETS = 100  # of an input that grows
MOST_ROWS = 100     # of a group


class Growing(Input):
    """As many of one input as are linked. Its value: a dict, name -> value."""

    io_type = "COMFY_AUTOGROW_V3"

    def __init__(self, id, template, display_name=None, optional=False, tooltip=None, lazy=None, extra_dict=None, **rest):
        super().__init__(id, display_name, optional, tooltip, lazy, extra_dict, **rest)
        self.template = template
        self.options["template"] = template.as_dict()

    def gather(self, given, name):
        made = {socket: self.template.input.gather_child(given, f"{name}.{socket}") for socket in self.template.sockets()}
        return {socket: value for socket, value in made.items() if value is not MISSING}


class GrowTemplate:
    def __init__(self, input, names, least):
        self.input, self.names, self.least = input, names, least

    def sockets(self):
        return self.names

    def as_dict(self):
        kind, options = self.input.spec()
        section = "optional" if self.input.optional else "required"
        return {"input": {section: {self.input.id: [kind, options]}}, "min": self.least}


class GrowByNames(GrowTemplate):
    def __init__(self, input, names, min=1):
        super().__init__(input, list(names)[:MOST_SOCKETS], min)

    def as_dict(self):
        return {**super().as_dict(), "names": self.names}


class GrowByPrefix(GrowTemplate):
    def __init__(self, input, prefix, min=1, max=10):
        super().__init__(input, [f"{prefix}{i}" for i in range(max if max < MOST_SOCKETS else MOST_SOCKETS)], min)
        self.prefix, self.most = prefix, max

    def as_dict(self):
        return {**super().as_dict(), "prefix": self.prefix, "max": self.most}


class Autogrow(Kind):
    io_type = "COMFY_AUTOGROW_V3"
    Input, TemplatePrefix, TemplateNames = Growing, GrowByPrefix, GrowByNames
    Type = dict


class Variant:
    def __init__(self, key, inputs):
        self.key, self.inputs = key, list(inputs)

    def as_dict(self):
        return {"key": self.key, "inputs": sections(self.inputs)}


class VariantInput(Input):
    """A choice with inputs of its own for each. Its value: a dict of the choice, under the input's name, and of these."""

    io_type = "COMFY_DYNAMICCOMBO_V3"

    def __init__(self, id, options, display_name=None, optional=False, tooltip=None, lazy=None, extra_dict=None, **rest):
        super().__init__(id, display_name, optional, tooltip, lazy, extra_dict, **rest)
        self.variants = list(options)
        self.options["options"] = [variant.as_dict() for variant in self.variants]

    def gather(self, given, name):
        key = given.get(name)
        one = key[0] if isinstance(key, list) and key else key
        for variant in self.variants:
            if variant.key == one:
                made = {self.id: key, **{child.id: child.gather_child(given, f"{name}.{child.id}") for child in variant.inputs}}
                return {child: value for child, value in made.items() if value is not MISSING}
        return MISSING

    def convert(self, value):
        return value


class DynamicCombo(Kind):
    io_type = "COMFY_DYNAMICCOMBO_V3"
    Input, Option = VariantInput, Variant
    Type = dict


class Rows(Input):
    """Widgets in as many rows as a workflow gives. Its value: a list of dicts; what a row does not give is None in it."""

    io_type = "COMFY_DYNAMICGROUP_V3"

    def __init__(self, id, template, min=0, max=20, display_name=None, optional=False, tooltip=None, lazy=None, extra_dict=None,
                 group_name="Group", **rest):
        super().__init__(id, display_name, optional, tooltip, lazy, extra_dict, **rest)
        self.template = list(template)
        names = [field.id for field in self.template]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"the fields of the group {id!r} need names of their own, and there have to be some")
        for field in self.template:
            if not isinstance(field, WidgetInput) or field.options.get("forceInput") or "." in field.id:
                raise ValueError(f"the field {field.id!r} of the group {id!r} has to be a widget, with a name without dots")
        if not 0 <= min <= max or not 1 <= max <= MOST_ROWS:
            raise ValueError(f"the group {id!r} has {min} to {max} rows; it may have at most {MOST_ROWS}, and its least number is not above "
                             f"its most")
        self.options.update(template=filled_sections(self.template), min=min, max=max, group_name=group_name)

    def gather(self, given, name):
        rows, fields = {}, {field.id for field in self.template}
        for key, value in given.items():
            if not key.startswith(name + "."):
                continue
            row, _, field = key[len(name) + 1:].partition(".")
            if not row.isdecimal() or field not in fields:
                raise Refused(Code.INVALID_ARGUMENT, f"the group {name!r} has no input {key!r}: its inputs are called {name}.0.NAME and so "
                                                     f"on, with a NAME of {', '.join(sorted(fields))}")
            rows.setdefault(int(row), {})[field] = value
        return [{field.id: self.field(field, rows.get(row), given) for field in self.template} for row in range(max(rows, default=-1) + 1)]

    def field(self, field, row, given):
        value = MISSING
        if row is not None and (field.id in row or not field.optional):
            value = field.gather_child(row, field.id)
        value = None if value is MISSING else value
        return [value] if given.in_lists and not isinstance(value, list) else value


class DynamicGroup(Kind):
    io_type = "COMFY_DYNAMICGROUP_V3"
    Input = Rows
    Type = list


class Slot(Input):
    """An input that others come with, once it is given. Its value: a dict of its own, under its name, and of theirs."""

    io_type = "COMFY_DYNAMICSLOT_V3"

    def __init__(self, slot, inputs, display_name=None, tooltip=None, lazy=None, extra_dict=None):
        super().__init__(slot.id, slot.display_name or display_name, True, slot.tooltip or tooltip, slot.lazy if lazy is None else lazy,
                         extra_dict)
        self.slot, self.inputs = slot, list(inputs)
        self.options.update(slotType=slot.get_io_type(), inputs=filled_sections(self.inputs))
        if isinstance(slot, WidgetInput):
            self.options["forceInput"] = True

    def gather(self, given, name):
        value = given.get(name)
        if value is None:
            return MISSING
        made = {child.id: child.gather_child(given, f"{name}.{child.id}") for child in self.inputs}
        value = [self.slot.convert(item) for item in value] if given.in_lists and isinstance(value, list) else self.slot.convert(value)
        return {self.id: value, **{child: one for child, one in made.items() if one is not MISSING}}


class DynamicSlot(Kind):
    io_type = "COMFY_DYNAMICSLOT_V3"
    Input = Slot
    Type = dict


def filled_sections(inputs):
    return {section: all_of_it for section, all_of_it in sections(inputs).items() if all_of_it}


class Given(dict):
    """What a workflow gives a node, by name. `in_lists`: each value is a list, as is_input_list has them."""

    def __init__(self, values, in_lists):
        super().__init__(values)
        self.in_lists = in_lists
