"""A pack: what its file defines, as node types of the engine."""

import asyncio
import hashlib
import importlib.util
import inspect
import json
import os
import sys
import types

from . import schema_nodes, values
from .wire import Code, Refused, Writer

# heddle_port and heddle_node_desc
OPTIONAL, LAZY, HIDDEN, LIST, LINK, PASS = 1, 1 << 1, 1 << 5, 1 << 6, 1 << 10, 1 << 3
SINK, ANY_INPUT, DEPRECATED, EXPERIMENTAL, EXPANDS = 1, 1 << 5, 1 << 6, 1 << 7, 1 << 9
INT, FLOAT, TOGGLE, TEXT, CHOICE, SEED, FILE, FOLDER = range(1, 9)
HIDDEN_KINDS = ("PROMPT", "EXTRA_PNGINFO", "UNIQUE_ID", "DYNPROMPT")
# Of ComfyUI itself: what heddle has of it is beside this package, in modules/.
COMFYUI_MODULES = {"comfy", "comfy_extras", "comfy_execution", "comfy_api", "comfy_api_nodes", "comfy_config", "nodes",
                   "execution", "folder_paths", "node_helpers", "server", "latent_preview", "app", "api_server", "cuda_malloc",
                   "comfyui_version", "protocol", "utils.json_util", "utils.install_util"}


class FileNames(list):
    """Names of the files of a folder of models: the engine lists them anew for each workflow."""
    folder = ""


class Port:
    def __init__(self, name, port_type, flags=0, doc=None):
        self.name, self.type, self.flags, self.doc = name, port_type, flags, doc
        self.widget = None    # (kind, number, min, max, step, round, text, choices, source, extra)
        self.originals = {}   # text of a choice -> the choice, where that is no text

    def write(self, to):
        to.pack("I", self.flags)
        for text in (self.name, self.type, self.doc):
            to.maybe_text(text)
        to.pack("B", self.widget is not None)
        if self.widget is None:
            return
        kind, *numbers, text, choices, source, extra = self.widget
        to.pack("iddddd", kind, *numbers)
        to.maybe_text(text)
        to.pack("B", choices is not None)
        if choices is not None:
            for choice in choices:
                to.maybe_text(choice)
            to.maybe_text(None)
        to.maybe_text(source)
        to.maybe_text(extra)


def type_name(declared):
    return "COMBO" if isinstance(declared, (list, tuple)) else str(declared)


def number(value, otherwise):
    try:
        return float(value)
    except (TypeError, ValueError):
        return float(otherwise)


def extra_options(options, taken):
    kept = {}
    for key, value in options.items():
        if key in taken:
            continue
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            continue
        kept[str(key)] = value
    return json.dumps(kept) if kept else None


def numeric_widget(port, options, kind):
    is_int = kind == "INT"
    default = number(options.get("default"), 0)
    low, high = number(options.get("min"), 0), number(options.get("max"), 0)
    most = 2.0**63 - 1024 if is_int else sys.float_info.max
    if "min" in options and "max" not in options:
        high = most
    if "max" in options and "min" not in options:
        low = -most
    is_seed = is_int and low >= 0 and (high > 2.0**63 or (port.name in ("seed", "noise_seed") and high <= low))
    kind = SEED if is_seed else INT if is_int else FLOAT
    taken = ("default", "min", "max", "step", "tooltip", "lazy", "forceInput", "rawLink")
    step = number(options.get("step"), 1 if is_int else 0.1)
    return (kind, default, low, high, step, 0.0, None, None, None, extra_options(options, taken))


def choice_widget(port, choices, options):
    source = choices.folder if isinstance(choices, FileNames) else None
    texts = [str(choice) for choice in choices]
    port.originals = {text: choice for text, choice in zip(texts, choices) if not isinstance(choice, str)}
    default = options.get("default")
    text = None if default is None else str(default)
    extra = extra_options(options, ("default", "options", "tooltip", "lazy", "forceInput", "rawLink"))
    if source is not None:
        return (FILE, 0.0, 0.0, 0.0, 0.0, 0.0, text, None, source, extra)
    return (CHOICE, 0.0, 0.0, 0.0, 0.0, 0.0, text, texts, None, extra)


def make_port(name, spec, flags):
    """`spec`: (type or choices, options), as INPUT_TYPES has it."""
    declared, options = (spec, {}) if isinstance(spec, str) else (spec[0], spec[1] if len(spec) > 1 else {})
    options = options if isinstance(options, dict) else {}
    port = Port(str(name), type_name(declared), flags, options.get("tooltip"))
    if options.get("lazy"):
        port.flags |= LAZY
    if options.get("rawLink"):
        port.flags |= LINK
    if port.type in values.ENGINES or options.get("slotType") in values.ENGINES:
        port.flags |= PASS
    choices = declared if isinstance(declared, (list, tuple)) else options.get("options") if port.type == "COMBO" else None
    kind = str(options.get("widgetType", port.type))  # of an input of several types
    if choices is not None and not options.get("multiselect"):
        port.widget = choice_widget(port, choices, options)
    elif (options.get("forceInput") or options.get("rawLink")) and "slotType" not in options:
        port.widget = None
    elif choices is not None or port.type.startswith("COMFY_"):  # what may be given the engine reads in the options
        port.widget = (0, 0.0, 0.0, 0.0, 0.0, 0.0, None, None, None, extra_options(options, ("tooltip", "lazy")))
    elif kind in ("INT", "FLOAT"):
        port.widget = numeric_widget(port, options, kind)
    elif kind == "BOOLEAN":
        extra = extra_options(options, ("default", "tooltip", "lazy"))
        port.widget = (TOGGLE, 1.0 if options.get("default") else 0.0, 0.0, 0.0, 0.0, 0.0, None, None, None, extra)
    elif kind == "STRING":
        extra = extra_options(options, ("default", "tooltip", "lazy"))
        port.widget = (TEXT, 0.0, 0.0, 0.0, 0.0, 0.0, str(options.get("default", "")), None, None, extra)
    return port


def fault_of(port, value):
    """What is wrong with a literal that no validator judges; None: nothing."""
    if port.widget is None or value is None:
        return None
    kind, _, low, high, _, _, _, choices, _, _ = port.widget
    if kind == CHOICE and str(value) not in choices:
        return f"{port.name} is {value!r}; choose one of {', '.join(choices)}"
    if kind in (INT, FLOAT) and low < high and not low <= value <= high:
        return f"{port.name} is {value}; it ranges from {low:g} to {high:g}"
    return None


def takes_any(function):
    """The names of a function's parameters, and whether it takes others, too."""
    parameters = inspect.signature(function).parameters.values()
    return ({p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)},
            any(p.kind == p.VAR_KEYWORD for p in parameters))


class Node:
    """A node type; raises what its class lacks."""

    def __init__(self, name, cls, title):
        self.name, self.cls, self.title = str(name), cls, title
        for member in ("INPUT_TYPES", "FUNCTION", "RETURN_TYPES"):
            if not hasattr(cls, member):
                raise TypeError(f"it has no {member}")
        self.function = cls.FUNCTION
        if not callable(getattr(cls, self.function, None)):
            raise TypeError(f"it has no method {self.function!r}, which its FUNCTION names")
        self.takes_lists = bool(getattr(cls, "INPUT_IS_LIST", False))
        self.inputs, self.outputs = [], []
        declared = cls.INPUT_TYPES()
        for section, flags in (("required", 0), ("optional", OPTIONAL)):
            for port_name, spec in (declared.get(section) or {}).items():
                self.inputs.append(make_port(port_name, spec, flags | (LIST if self.takes_lists else 0)))
        for port_name, spec in (declared.get("hidden") or {}).items():
            kind = spec if isinstance(spec, str) else spec[0] if isinstance(spec, (list, tuple)) and spec else ""
            if kind in HIDDEN_KINDS:
                self.inputs.append(Port(str(port_name), str(kind), HIDDEN | OPTIONAL))
        self.add_outputs()
        self.validates = hasattr(cls, "VALIDATE_INPUTS")
        self.fingerprints = hasattr(cls, "IS_CHANGED")
        self.has_lazy = any(port.flags & LAZY for port in self.inputs)

    def add_outputs(self):
        types_ = self.cls.RETURN_TYPES
        types_ = (types_,) if isinstance(types_, str) else types_
        names = getattr(self.cls, "RETURN_NAMES", None) or ()
        names = (names,) if isinstance(names, str) else names
        lists = getattr(self.cls, "OUTPUT_IS_LIST", None) or ()
        lists = (lists,) if isinstance(lists, bool) else lists
        docs = getattr(self.cls, "OUTPUT_TOOLTIPS", None) or ()
        for i, declared in enumerate(types_):
            kind = type_name(declared)
            name = str(names[i]) if i < len(names) else kind
            self.outputs.append(Port(name, kind, LIST if i < len(lists) and lists[i] else 0, docs[i] if i < len(docs) else None))

    def flags(self):
        cls = self.cls
        flags = SINK if getattr(cls, "OUTPUT_NODE", False) else 0
        flags |= DEPRECATED if getattr(cls, "DEPRECATED", False) else 0
        flags |= EXPERIMENTAL if getattr(cls, "EXPERIMENTAL", False) else 0
        flags |= EXPANDS if self.may_expand() else 0
        declared = cls.INPUT_TYPES().get("optional")
        takes_undeclared = takes_any(getattr(cls, self.function))[1] or (declared is not None and type(declared) is not dict)
        return flags | (ANY_INPUT if takes_undeclared else 0)

    def may_expand(self):
        """The engine plans for new nodes where a node may ask for them: as its schema says, else the text of its module."""
        if hasattr(self.cls, "MAY_EXPAND"):
            return self.cls.MAY_EXPAND
        try:
            text = inspect.getsource(sys.modules[self.cls.__module__])
        except (OSError, TypeError, KeyError):
            return True
        return any(word in text for word in ('"expand"', "'expand'", "GraphBuilder"))

    def why_it_expands_not(self):
        if hasattr(self.cls, "MAY_EXPAND"):
            return "it returns new nodes, and its Schema has no enable_expand=True"
        return "it returns new nodes, and neither \"expand\" nor GraphBuilder stands in its module"

    def validator(self):
        """(flags, names of the inputs that it judges; None: all)"""
        names, others = takes_any(self.cls.VALIDATE_INPUTS)
        if "input_types" in names:
            return 1, None  # it is told of all links; what it does not name fault_of() judges
        if others:
            return 0, None
        return 0, [p.name for p in self.inputs if p.name in names]

    def write(self, to, version):
        to.pack("II", version, self.flags())
        doc = getattr(self.cls, "DESCRIPTION", None)
        for text in (self.name, str(self.title), str(getattr(self.cls, "CATEGORY", "")), None if doc is None else str(doc)):
            to.maybe_text(text)
        for ports in (self.inputs, self.outputs):
            to.pack("I", len(ports))
            for port in ports:
                port.write(to)
        to.pack("BBBBB", True, self.has_lazy, self.fingerprints, False, self.validates)
        if not self.validates:
            return
        flags, names = self.validator()
        to.pack("I", flags)
        to.pack("B", names is not None)
        if names is not None:
            for name in names:
                to.maybe_text(name)
            to.maybe_text(None)


def digest(file, folder):
    """Of all of a pack's Python: another text is another version."""
    hasher = hashlib.sha256()
    files = [file]
    if folder is not None:
        for place, folders, names in os.walk(folder):
            folders[:] = sorted(f for f in folders if not f.startswith((".", "__")) and f not in ("venv", "node_modules"))
            files += [os.path.join(place, name) for name in sorted(names) if name.endswith(".py")]
    for path in files:
        with open(path, "rb") as stream:
            hasher.update(path.encode("utf-8", "surrogateescape") + b"\0" + stream.read() + b"\0")
    return hasher.digest()


class Pack:
    def __init__(self, file):
        self.file = file
        is_folder = os.path.basename(file) == "__init__.py"
        self.folder = os.path.dirname(file) if is_folder else None
        self.name = os.path.basename(self.folder) if is_folder else os.path.splitext(os.path.basename(file))[0]
        self.digest = b""
        self.nodes, self.warnings = [], []

    def where(self, error):
        """The innermost line of the pack's own that an error came through."""
        own, frame = None, error.__traceback__
        root = self.folder or self.file
        while frame is not None:
            path = frame.tb_frame.f_code.co_filename
            if path.startswith(root):
                own = f"{os.path.relpath(path, os.path.dirname(root))}:{frame.tb_lineno}"
            frame = frame.tb_next
        return "" if own is None else f" ({own})"

    def load(self):
        self.digest = digest(self.file, self.folder)
        packs = sys.modules.setdefault("custom_nodes", types.ModuleType("custom_nodes"))
        packs.__path__ = getattr(packs, "__path__", [])
        module_name = "custom_nodes." + self.name.replace(".", "_")
        spec = importlib.util.spec_from_file_location(module_name, self.file,
                                                      submodule_search_locations=None if self.folder is None else [self.folder])
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException as error:  # of the pack, whatever it is; SystemExit, too
            raise Refused(Code.UNSUPPORTED, self.why_not_loaded(error)) from error
        titles = getattr(module, "NODE_DISPLAY_NAME_MAPPINGS", None) or {}
        for name, cls in self.classes(module).items():
            try:
                title = titles.get(name)
                if isinstance(cls, type) and issubclass(cls, schema_nodes.ComfyNode):
                    title = title or cls.GET_SCHEMA().display_name
                    cls = schema_nodes.as_older_form(cls)
                node = Node(name, cls, title or name)
                told = Writer()  # what cannot be told is found here, so that it costs this node alone
                node.write(told, 0)
                told.bytes()
                self.nodes.append(node)
            except Exception as error:
                self.warnings.append(f"the pack {self.name!r} loses its node {name!r}: {type(error).__name__}: {error}"
                                     f"{self.where(error)}")
        if not self.nodes:
            raise Refused(Code.UNSUPPORTED, f"the pack {self.name!r} has no node that can be used: {self.warnings[0]}")

    def classes(self, module):
        """By the names of their node types; those of NODE_CLASS_MAPPINGS alone, where a pack has them, as in ComfyUI."""
        mappings = getattr(module, "NODE_CLASS_MAPPINGS", None)
        if isinstance(mappings, dict) and mappings:
            return mappings
        entrypoint = getattr(module, "comfy_entrypoint", None)
        if not callable(entrypoint):
            raise Refused(Code.UNSUPPORTED, f"the pack {self.name!r} ({self.file}) has neither NODE_CLASS_MAPPINGS nor comfy_entrypoint(), "
                                            f"by which it would name its nodes")
        try:
            found = asyncio.run(schema_nodes.nodes_of(entrypoint))
        except BaseException as error:
            raise Refused(Code.UNSUPPORTED, self.why_not_loaded(error)) from error
        if not found:
            raise Refused(Code.UNSUPPORTED, f"the pack {self.name!r} ({self.file}) names no nodes in its comfy_entrypoint()")
        return found

    def why_not_loaded(self, error):
        where = self.where(error)
        if type(error) is ImportError and error.name and error.name.split(".")[0] in COMFYUI_MODULES:
            return (f"the pack {self.name!r} imports of the module {error.name!r}{where} a part of ComfyUI that heddle does not have: "
                    f"{error.msg.split(' (')[0]}. The pack is left out")
        if isinstance(error, ModuleNotFoundError) and error.name:
            if error.name in COMFYUI_MODULES or error.name.split(".")[0] in COMFYUI_MODULES:
                return (f"the pack {self.name!r} imports the module {error.name!r}{where}, a part of ComfyUI that heddle does not "
                        f"have. The pack is left out")
            needs = os.path.join(self.folder or "", "requirements.txt")
            what = f"-r {needs}" if self.folder is not None and os.path.isfile(needs) else error.name
            return (f"the pack {self.name!r} imports the module {error.name!r}{where}, which is not installed. Install what it "
                    f"needs: {sys.executable} -m pip install {what}")
        return f"the pack {self.name!r} could not be loaded: {type(error).__name__}: {error}{where}"
