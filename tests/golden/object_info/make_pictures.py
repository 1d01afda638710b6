"""Writes pictures.json beside this file: the definitions of the nodes of pictures, masks and latents, as
ComfyUI's /object_info has them.

    make_pictures.py object_info.json [newer.json...]        (a later file's entry holds)

Tooltips, descriptions and lists of files are left out; options are there where they are empty; numbers
of FLOAT inputs are reals.
"""

import json
import sys
from pathlib import Path

NODES = """
Canny CropMask EmptyChromaRadianceLatentImage EmptyCosmosLatentVideo EmptyFlux2LatentImage EmptyHunyuanImageLatent
EmptyHunyuanLatentVideo EmptyHunyuanVideo15Latent EmptyImage EmptyLTXVLatentVideo EmptyLatentImage
EmptyMochiLatentVideo EmptyQwenImageLayeredLatentImage EmptySD3LatentImage FeatherMask FluxKontextImageScale
GetImageSize GrowMask ImageBatch ImageBlend ImageBlur ImageColorToMask ImageCompositeMasked ImageCrop ImageFlip
ImageFromBatch ImageInvert ImagePadForOutpaint ImageRGBToYUV ImageRotate ImageScale ImageScaleBy
ImageScaleToMaxDimension ImageScaleToTotalPixels ImageSharpen ImageStitch ImageToMask ImageYUVToRGB InvertMask JoinImageWithAlpha LatentAdd
LatentBatch LatentBatchSeedBehavior LatentBlend LatentComposite LatentCompositeMasked LatentConcat LatentCrop LatentCut
LatentCutToBatch LatentFlip LatentFromBatch LatentInterpolate LatentMultiply LatentRotate LatentSubtract LatentUpscale
LatentUpscaleBy LoadImage LoadImageMask MaskComposite MaskPreview MaskToImage Morphology
PorterDuffImageComposite PreviewImage RepeatImageBatch RepeatLatentBatch ResizeAndPadImage SaveAnimatedPNG
SaveAnimatedWEBP SaveImage SetLatentNoiseMask SolidMask SplitImageWithAlpha ThresholdMask TrimVideoLatent
""".split()


def number(kind, value):
    return float(value) if kind == "FLOAT" and not isinstance(value, (bool, str)) else value


def described(spec):
    kind, options = (list(spec) + [{}])[:2]
    options = {k: number(kind, v) for k, v in options.items() if k != "tooltip"}
    return [kind, options]


def definition(entry):
    inputs = {}
    for section, ports in entry["input"].items():
        hidden = section == "hidden"
        inputs[section] = {
            name: (spec if isinstance(spec, str) else spec[0]) if hidden else described(spec) for name, spec in ports.items()
        }
    known = {key: entry[key] for key in ("output", "output_name", "output_is_list", "category", "output_node")}
    if entry.get("display_name"):
        known["display_name"] = entry["display_name"]
    flags = {key: True for key in ("deprecated", "experimental") if entry.get(key)}
    return {"input": inputs, "input_order": entry["input_order"], **known, **flags}


if __name__ == "__main__":
    classes = {}
    for path in sys.argv[1:]:
        classes.update(json.loads(Path(path).read_text()))
    lines = [f'"{name}": {json.dumps(definition(classes[name]))}' for name in NODES]
    (Path(__file__).parent / "pictures.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
