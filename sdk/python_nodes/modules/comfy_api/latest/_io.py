"""The types of values, inputs, outputs and schemas."""

import enum

from heddle_nodes.schema import (  # noqa: F401
    BooleanInput, ComboInput, Custom, FloatInput, Hidden, HiddenValues, Input, IntInput, Kind, MatchType, MultiComboInput, MultiTypeInput,
    NodeOutput, Output, Schema, StringInput, WidgetInput, comfytype, make_kind)
from heddle_nodes.schema_dynamic import Autogrow, DynamicCombo, DynamicGroup, DynamicSlot  # noqa: F401
from heddle_nodes.schema_nodes import ComfyNode  # noqa: F401

ComfyTypeI = ComfyTypeIO = ComfyType = Kind
HiddenHolder = HiddenValues

for _name, _type in {
        "AnyType": "*", "Image": "IMAGE", "Mask": "MASK", "Latent": "LATENT", "Conditioning": "CONDITIONING", "Sampler": "SAMPLER",
        "Sigmas": "SIGMAS", "Noise": "NOISE", "Guider": "GUIDER", "Clip": "CLIP", "ControlNet": "CONTROL_NET", "Vae": "VAE",
        "Model": "MODEL", "ModelPatch": "MODEL_PATCH", "ClipVision": "CLIP_VISION", "ClipVisionOutput": "CLIP_VISION_OUTPUT",
        "StyleModel": "STYLE_MODEL", "Gligen": "GLIGEN", "UpscaleModel": "UPSCALE_MODEL", "LatentUpscaleModel": "LATENT_UPSCALE_MODEL",
        "Audio": "AUDIO", "AudioEncoder": "AUDIO_ENCODER", "AudioEncoderOutput": "AUDIO_ENCODER_OUTPUT", "Video": "VIDEO",
        "SVG": "SVG", "LoraModel": "LORA_MODEL", "LossMap": "LOSS_MAP", "Voxel": "VOXEL", "Mesh": "MESH", "Hooks": "HOOKS",
        "HookKeyframes": "HOOK_KEYFRAMES", "TimestepsRange": "TIMESTEPS_RANGE", "LatentOperation": "LATENT_OPERATION",
        "FlowControl": "FLOW_CONTROL", "Accumulation": "ACCUMULATION", "Point": "POINT", "FaceAnalysis": "FACE_ANALYSIS",
        "BBOX": "BBOX", "SEGS": "SEGS", "Webcam": "WEBCAM", "Tracks": "TRACKS", "Photomaker": "PHOTOMAKER", "Curve": "CURVE"}.items():
    globals()[_name] = make_kind(_name, _type)
for _name, _type, _base in (("Int", "INT", IntInput), ("Float", "FLOAT", FloatInput), ("String", "STRING", StringInput),
                            ("Boolean", "BOOLEAN", BooleanInput), ("Combo", "COMBO", ComboInput), ("MultiCombo", "COMBO", MultiComboInput)):
    globals()[_name] = make_kind(_name, _type, _base)


class MultiType(Kind):
    Input = MultiTypeInput


class FolderType(str, enum.Enum):
    input = "input"
    output = "output"
    temp = "temp"


class UploadType(str, enum.Enum):
    image = "image_upload"
    audio = "audio_upload"
    video = "video_upload"
    model = "file_upload"


class NumberDisplay(str, enum.Enum):
    number = "number"
    slider = "slider"
    gradient_slider = "gradientslider"


class ControlAfterGenerate(str, enum.Enum):
    fixed = "fixed"
    increment = "increment"
    decrement = "decrement"
    randomize = "randomize"


class RemoteOptions:
    """Choices that a server tells; here none is asked."""

    def __init__(self, route, refresh_button=False, **rest):
        self.route, self.refresh_button, self.rest = route, refresh_button, rest
