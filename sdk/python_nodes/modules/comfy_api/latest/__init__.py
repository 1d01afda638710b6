"""Nodes and what they are told with (io), what they show (ui), videos (Input, InputImpl, Types), and progress (ComfyAPI)."""

import sys

from heddle_nodes import calls, tensors, video
from heddle_nodes.schema_nodes import ComfyExtension

from . import _io, _ui

io = IO = _io
ui = UI = _ui
__all__ = ["ComfyAPI", "ComfyAPISync", "ComfyExtension", "IO", "Input", "InputImpl", "Types", "UI", "io", "ui"]
sys.modules[f"{__name__}.io"], sys.modules[f"{__name__}.ui"] = io, ui


class _TensorTypes(type):
    """PyTorch or NumPy is imported when somebody asks what a tensor is."""

    Image = Mask = property(lambda cls: tensors.tensor_type())


class Input(metaclass=_TensorTypes):
    Audio = Latent = dict
    Video = video.VideoInput


class InputImpl:
    VideoFromFile, VideoFromComponents, VideoFromList = video.VideoFromFile, video.VideoFromComponents, video.VideoFromList


class Types:
    VideoCodec, VideoContainer, VideoComponents = video.VideoCodec, video.VideoContainer, video.VideoComponents


def _tell_progress(value, max_value):
    call = calls.current()
    if call is not None:
        call.stop_if_cancelled()
        call.progress(min(value / max_value, 1.0) if max_value else 1.0)


class _Execution:
    async def set_progress(self, value, max_value, node_id=None, preview_image=None, ignore_size_limit=False):
        _tell_progress(value, max_value)


class _ExecutionSync:
    def set_progress(self, value, max_value, node_id=None, preview_image=None, ignore_size_limit=False):
        _tell_progress(value, max_value)


class ComfyAPI:
    def __init__(self):
        self.execution = _Execution()


class ComfyAPISync:
    def __init__(self):
        self.execution = _ExecutionSync()
