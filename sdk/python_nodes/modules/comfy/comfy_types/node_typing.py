"""Names of types, for annotations."""


class IO(str):
    """The types of inputs and outputs, as texts."""


for _name in ("STRING", "IMAGE", "MASK", "LATENT", "BOOLEAN", "INT", "FLOAT", "COMBO", "CONDITIONING", "SAMPLER", "SIGMAS", "GUIDER",
              "NOISE", "CLIP", "CONTROL_NET", "VAE", "MODEL", "CLIP_VISION", "CLIP_VISION_OUTPUT", "STYLE_MODEL", "GLIGEN",
              "UPSCALE_MODEL", "AUDIO", "VIDEO", "WEBCAM", "POINT", "FACE_ANALYSIS", "BBOX", "SEGS"):
    setattr(IO, _name, _name)
IO.ANY, IO.NUMBER, IO.PRIMITIVE = "*", "FLOAT,INT", "STRING,FLOAT,INT,BOOLEAN"


class InputTypeOptions(dict):
    pass


class InputTypeDict(dict):
    pass


class FileLocator(dict):
    pass


class CheckLazyMixin:
    """Asks for all lazy inputs that have no value yet."""

    def check_lazy_status(self, **arguments):
        return [name for name, value in arguments.items() if value is None]


class ComfyNodeABC:
    """A base of nodes."""
