"""ComfyUI's interface of nodes of the newer form, for those of images, masks, latents, texts and conditioning. Its versions are one here."""

import sys

from . import latest

for _version in ("v0_0_1", "v0_0_2"):
    sys.modules[f"{__name__}.{_version}"] = latest
    globals()[_version] = latest
