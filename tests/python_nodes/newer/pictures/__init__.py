"""Nodes of ComfyUI's newer form, of pictures, masks, latents, conditioning, sound and videos: arithmetic that PyTorch and NumPy write alike."""
import types
from fractions import Fraction

from comfy_api.input import VideoInput
from comfy_api.v0_0_2 import ComfyExtension, Input, InputImpl, Types, io, ui


class Mix(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        template = io.Autogrow.TemplatePrefix(io.Image.Input("image"), prefix="image", min=2)
        return io.Schema("p.Mix", inputs=[io.Autogrow.Input("images", template=template)], outputs=[io.Image.Output(), io.Mask.Output()])

    @classmethod
    def execute(cls, images):
        mixed = sum(images.values()) / len(images)
        return io.NodeOutput(mixed, mixed[..., 0])


class Scale(io.ComfyNode):
    """Of a picture or a mask, whichever there is."""

    @classmethod
    def define_schema(cls):
        kind = io.MatchType.Template("T", [io.Image, io.Mask])
        return io.Schema("p.Scale", inputs=[io.MatchType.Input("value", template=kind), io.MultiType.Input("factor", types=[io.Float, io.Int])],
                         outputs=[io.MatchType.Output(template=kind)])

    @classmethod
    def execute(cls, value, factor):
        return io.NodeOutput(value * factor)


class Latent(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return io.Schema("p.Latent", inputs=[io.Latent.Input("latent"), io.Float.Input("add", default=1.0)], outputs=[io.Latent.Output()])

    @classmethod
    def execute(cls, latent, add):
        return io.NodeOutput({**latent, "samples": latent["samples"] + add})


class Condition(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return io.Schema("p.Condition", inputs=[io.Conditioning.Input("conditioning"), io.Model.Input("model", optional=True)],
                         outputs=[io.Conditioning.Output(), io.Model.Output()])

    @classmethod
    def execute(cls, conditioning, model=None):
        return io.NodeOutput([[tensor * 1.0, {**options, "strength": 1.0}] for tensor, options in conditioning], model)


class Save(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return io.Schema("p.Save", inputs=[io.Image.Input("images"), io.String.Input("prefix", default="newer/picture")], is_output_node=True)

    @classmethod
    def execute(cls, images, prefix):
        return io.NodeOutput(ui=ui.ImageSaveHelper.get_save_images_ui(images, prefix, cls=cls))


class Preview(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return io.Schema("p.Preview", inputs=[io.Mask.Input("mask")], is_output_node=True)

    @classmethod
    def execute(cls, mask):
        return io.NodeOutput(ui=ui.PreviewMask(mask, cls=cls))


class Louder(io.ComfyNode):
    """Gives the sound back as a mapping that is no dict, of doubles; and tells the sum of what it was given."""

    @classmethod
    def define_schema(cls):
        return io.Schema("p.Louder", inputs=[io.Audio.Input("audio"), io.Float.Input("by", default=0.25)],
                         outputs=[io.Audio.Output(), io.String.Output()])

    @classmethod
    def execute(cls, audio, by):
        given = audio["waveform"]
        louder = (given.double() if hasattr(given, "double") else given.astype("float64")) + by
        told = f"{str(given.dtype).replace('torch.', '')} {float(given.sum()):.1f}"
        return io.NodeOutput(types.MappingProxyType({"waveform": louder, "sample_rate": audio["sample_rate"]}), told)


class Clip(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return io.Schema("p.Clip", inputs=[io.Image.Input("images"), io.Audio.Input("audio", optional=True), io.Mask.Input("alpha", optional=True)],
                         outputs=[io.Video.Output()])

    @classmethod
    def execute(cls, images, audio=None, alpha=None):
        components = Types.VideoComponents(images=images, audio=audio, frame_rate=Fraction(25, 2), alpha=alpha)
        return io.NodeOutput(InputImpl.VideoFromComponents(components))


class Cut(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return io.Schema("p.Cut", inputs=[io.Video.Input("video"), io.Float.Input("start", default=0, min=-9), io.Float.Input("length", default=0)],
                         outputs=[io.Video.Output(), io.Boolean.Output()])

    @classmethod
    def execute(cls, video, start, length):
        part = video.as_trimmed(start, length)
        return io.NodeOutput(part if part is None else part.as_cropped(9, 3, 17, 7), video.as_trimmed(start, 99, strict_duration=True) is None)


class Facts(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return io.Schema("p.Facts", inputs=[io.Video.Input("video"), io.Boolean.Input("deep", default=True)], outputs=[io.String.Output()])

    @classmethod
    def execute(cls, video, deep):
        told = [type(video).__name__, isinstance(video, Input.Video), isinstance(video, VideoInput), *video.get_active_trim_window()]
        if deep:
            components = video.get_components()
            sound = components.audio and (components.audio["sample_rate"], *components.audio["waveform"].shape)
            told += [video.get_dimensions(), video.get_frame_count(), video.get_frame_rate(), round(video.get_duration(), 6), sound,
                     isinstance(components.images, Input.Image), components.alpha is not None and tuple(components.alpha.shape)]
        return io.NodeOutput(" ".join(map(str, told)))


class File(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return io.Schema("p.File", inputs=[io.String.Input("path"), io.Float.Input("start", default=0), io.Boolean.Input("read", default=False)],
                         outputs=[io.Video.Output()])

    @classmethod
    def execute(cls, path, start, read):
        if read:
            from io import BytesIO
            with open(path, "rb") as stream:
                path = BytesIO(stream.read())
        return io.NodeOutput(InputImpl.VideoFromFile(path, start_time=start))


class Pictures(ComfyExtension):
    async def get_node_list(self):
        return [Mix, Scale, Latent, Condition, Save, Preview, Louder, Clip, Cut, Facts, File]


def comfy_entrypoint():  # need not be async
    return Pictures()
