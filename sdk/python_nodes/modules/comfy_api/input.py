"""What the values of inputs are."""

from heddle_nodes import tensors
from heddle_nodes.video import VideoInput  # noqa: F401

AudioInput = LatentInput = dict


def __getattr__(name):
    if name in ("ImageInput", "MaskInput"):
        return tensors.tensor_type()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
