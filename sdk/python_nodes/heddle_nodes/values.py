"""Values of the engine (sdk/include/heddle/diffusion/values.h) and those that ComfyUI's nodes know."""

import collections.abc
import numbers
import sys

from . import tensors, video
from .memory import Lent, LentTensor
from .wire import Code, Refused

NONE, BOOL, INT, UINT, FLOAT, STR, TENSOR, LIST, RECORD, MODEL, OBJECT, BLOCKER = range(12)
ABSENT = 255
ENGINE, WORKER = range(2)  # HandleOwner
DEEPEST = 200

# What crosses by value. "*" takes any.
PLAIN = {"INT", "FLOAT", "STRING", "BOOLEAN", "COMBO", "IMAGE", "MASK", "LATENT", "CONDITIONING", "AUDIO", "SIGMAS"}
ANY = {"*", "COMFY_MATCHTYPE_V3"}
# What is the engine's own, and opaque to nodes in Python.
ENGINES = {"MODEL", "CLIP", "VAE", "CONTROL_NET", "CLIP_VISION", "CLIP_VISION_OUTPUT", "STYLE_MODEL", "UPSCALE_MODEL",
           "LATENT_UPSCALE_MODEL", "MODEL_PATCH", "GLIGEN", "SAMPLER", "NOISE", "GUIDER", "HOOKS", "HOOK_KEYFRAMES", "IPADAPTER",
           "EMBEDS"}


class Absent:
    """An input that is neither linked nor given, or not computed yet."""

    def __repr__(self):
        return "<absent>"


ABSENT_VALUE = Absent()


class Opaque:
    """A model or another value of the engine's, which a node can pass on."""

    def __init__(self, kind, raw):
        self.__dict__.update(kind=kind, raw=raw)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise Refused(Code.UNSUPPORTED, f"the node uses {name!r} of a {self.kind}, which is heddle's own: nodes in Python can "
                                        f"pass a {self.kind} on, and not look into it")

    def __repr__(self):
        return f"<a {self.kind} of heddle's engine>"


class ExecutionBlocker:
    """In the place of an output: what reads it does not run. A message is shown as an error; None: silently."""

    def __init__(self, message=None):
        self.message = message


# From the engine.

def read_value(reader, memory):
    kind = reader.unpack("B")
    if kind == ABSENT:
        return ABSENT_VALUE
    if kind == NONE:
        return None
    if kind == BOOL:
        return bool(reader.unpack("B"))
    if kind in (INT, UINT, FLOAT):
        return reader.unpack({INT: "q", UINT: "Q", FLOAT: "d"}[kind])
    if kind == STR:
        return reader.text()
    if kind == TENSOR:
        return tensors.read_tensor(reader, memory)
    if kind == LIST:
        reader.unpack("B")
        return [read_value(reader, memory) for _ in range(reader.unpack("I"))]
    if kind == RECORD:
        record = {}
        for _ in range(reader.unpack("I")):
            key = reader.text()
            record[key] = read_value(reader, memory)
        return record
    if kind == BLOCKER:
        return ExecutionBlocker(reader.text() or None)
    owner, id = reader.unpack("BQ")
    return Lent(memory, id) if owner == ENGINE else memory.object(id)


def to_python(value, port_type):
    """As a node of ComfyUI has a value of that type."""
    if port_type in ENGINES:
        return Opaque(port_type, value) if isinstance(value, (dict, list, Lent, LentTensor)) else value
    if port_type == "VIDEO" and isinstance(value, dict):
        return video.of_record(value)
    if isinstance(value, dict) and "samples" in value:
        return raw_latent(value)
    if is_conditioning(value):
        return [to_pair(entry) for entry in value]
    if port_type == "FLOAT" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def is_conditioning(value):
    return isinstance(value, list) and bool(value) and all(isinstance(e, dict) and "cross_attn" in e for e in value)


UNITS = ("scaled", "scale", "shift", "latent_means", "latent_deviations")


def raw_latent(latent):
    """ComfyUI's nodes have latents in the autoencoder's units; samplers of the engine hand on scaled ones."""
    if not latent.get("scaled") or not tensors.is_tensor(latent["samples"]):
        return latent
    samples, rest = latent["samples"], {k: v for k, v in latent.items() if k not in UNITS}
    if "latent_means" in latent:
        axes = [1, -1] + [1] * (samples.ndim - 2)
        lib = tensors.library()
        as_tensor = lib.tensor if tensors.is_torch(samples) else lambda numbers: lib.asarray(numbers, "float32")
        deviations, means = as_tensor(latent["latent_deviations"]), as_tensor(latent["latent_means"])
        return {**rest, "samples": samples * deviations.reshape(axes) + means.reshape(axes)}
    if "scale" not in latent:
        return latent  # nobody knows its units: they go with it
    return {**rest, "samples": samples / latent["scale"] + latent.get("shift", 0.0)}


def to_pair(entry):
    options = {k: v for k, v in entry.items() if k not in ("cross_attn", "area", "area_fractions")}
    for key, value in options.items():
        if has_lent(value):
            options[key] = Opaque(key, value)
    if "area" in entry:
        options["area"] = tuple(entry["area"])
    if "area_fractions" in entry:
        options["area"] = ("percentage", *entry["area_fractions"])
    return [entry["cross_attn"], options]


def has_lent(value):
    if isinstance(value, (Lent, LentTensor)):
        return True
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(has_lent(part) for part in parts)


# To the engine.

def is_pairs(value):
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(
        isinstance(e, (list, tuple)) and len(e) == 2 and tensors.is_tensor(e[0]) and isinstance(e[1], dict) for e in value)


def to_record(pair):
    tensor, options = pair
    record = {"cross_attn": tensor}
    for key, value in options.items():
        if key == "area" and value is not None and len(value) > 0 and value[0] == "percentage":
            record["area_fractions"] = [float(n) for n in value[1:]]
        elif value is not None:
            record[key] = value
    return record


def number_of(value):
    """A number of NumPy or of a tensor of one element as Python's; anything else as it is."""
    numpy = sys.modules.get("numpy")
    return value.item() if numpy is not None and isinstance(value, numpy.generic) else value


def shaped(value, port_type):
    """Pictures and masks as the engine has them: f32 with an axis for the batch."""
    value = tensors.as_float(value)
    if (port_type == "IMAGE" and value.ndim == 3) or (port_type == "MASK" and value.ndim == 2):
        value = value[None]
    if port_type == "MASK" and value.ndim == 4 and 1 in (value.shape[1], value.shape[-1]):
        value = value[:, 0] if value.shape[1] == 1 else value[..., 0]
    return value


def from_python(value, port_type):
    """What an output of that type is to the engine. What Kept() holds stays here."""
    if isinstance(value, (ExecutionBlocker, Opaque, Lent, LentTensor)) or value is None:
        return value
    value = number_of(value)
    if isinstance(value, video.VideoInput):
        return value.record()
    if port_type == "AUDIO" and isinstance(value, collections.abc.Mapping) and "waveform" in value:
        return video.sound_record(value)
    if tensors.is_tensor(value):
        return shaped(value, port_type) if port_type in ("IMAGE", "MASK") else value
    if port_type == "INT" and isinstance(value, float) and value.is_integer():
        return int(value)
    if port_type == "FLOAT" and isinstance(value, (int, bool)):
        return float(value)
    if isinstance(value, (bool, int, float, str)):
        return value
    if port_type == "CONDITIONING" or (port_type in ANY and is_pairs(value)):
        if len(value) > 0 and not is_pairs(value):
            raise Refused(Code.INVALID_ARGUMENT, "a CONDITIONING is a list of pairs of a tensor and a dict")
        return [to_record(pair) for pair in value]
    return value if (port_type in PLAIN or port_type in ANY) and is_plain(value) else Kept(value)


class Kept:
    def __init__(self, value):
        self.value = value


def is_plain(value, depth=0):
    """Whether nothing of it is lost when it crosses."""
    if value is None or isinstance(value, (bool, int, float, str, Opaque, Lent, LentTensor)) or tensors.is_tensor(value):
        return True
    if depth > DEEPEST:
        return False
    if isinstance(value, (list, tuple)):
        return all(is_plain(item, depth + 1) for item in value)
    return type(value) is dict and all(isinstance(k, str) and is_plain(v, depth + 1) for k, v in value.items())


def write_value(to, value, call, depth=0):
    value = number_of(value)
    if value is ABSENT_VALUE:
        to.pack("B", ABSENT)
    elif value is None:
        to.pack("B", NONE)
    elif isinstance(value, bool):
        to.pack("BB", BOOL, value)
    elif isinstance(value, int):
        write_int(to, value)
    elif isinstance(value, numbers.Real):
        to.pack("Bd", FLOAT, float(value))
    elif isinstance(value, str):
        to.pack("B", STR)
        to.text(str(value))
    elif tensors.is_tensor(value):
        to.pack("B", TENSOR)
        tensors.write_tensor(to, value, call)
    elif isinstance(value, LentTensor):
        to.pack("BB", TENSOR, tensors.ENGINE)
        to.parts.append(value.info)
        to.pack("Q", value.id)
    elif isinstance(value, Lent):
        to.pack("BBQ", OBJECT, ENGINE, value.id)
    elif isinstance(value, Opaque):
        write_value(to, value.raw, call, depth)
    elif isinstance(value, ExecutionBlocker):
        to.pack("B", BLOCKER)
        to.text(value.message or "")
    elif isinstance(value, (list, tuple)) and depth <= DEEPEST:
        to.pack("BBI", LIST, 0, len(value))
        for item in value:
            write_value(to, item, call, depth + 1)
    elif type(value) is dict and depth <= DEEPEST and all(isinstance(k, str) for k in value):
        to.pack("BI", RECORD, len(value))
        for key, item in value.items():
            to.text(key)
            write_value(to, item, call, depth + 1)
    else:
        kept = value.value if isinstance(value, Kept) else value
        to.pack("BBQ", OBJECT, WORKER, call.memory.keep(kept))
        to.text(type(kept).__name__)


def write_int(to, value):
    if -2**63 <= value < 2**63:
        to.pack("Bq", INT, value)
    elif 0 <= value < 2**64:
        to.pack("BQ", UINT, value)
    else:
        raise Refused(Code.INVALID_ARGUMENT, f"the number {value} has more than 64 bits")
