"""Writes what transformers makes with small random SAM 3 models: the detector, and the mask decoder for points, boxes and masks.

    make_sam3_goldens.py [OUT]        (default: sam3/ beside this file)

Needs torch, torchvision, transformers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in a published file: shape}}, "{0-7}" being layers: "sam3", and "sam31", whose grids for
                            masks of prompts are others
    expected.safetensors    "MODEL.SIZE.picture" (1, SIZE, SIZE, 3) and "MODEL.SIZE.text" are inputs; of them "hidden",
                            "boxes", "scores", "presence" and "masks". "MODEL.CASE.points", "kinds", "mask" and "hidden" are
                            inputs of the mask decoder, "masks", "qualities" and "object" what comes out.

ComfyUI sees with these models otherwise than transformers in three ways, which are put into transformers' classes here:
places of cells begin at 0 and end at 1, a query's place is coded x before y, and a prompt without boxes has the token that
stands for them (here: beside a box that is padding).
"""

import json
import math
import os
import sys

import torch
from safetensors.torch import save_file
from transformers import CLIPTextModel, Sam3Config, Sam3Model, Sam3TrackerConfig, Sam3TrackerModel
from transformers.modeling_outputs import BaseModelOutputWithPooling
from transformers.models.sam3 import modeling_sam3

import seeded_weights
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
EYES = "detector.backbone.vision_backbone."
CHANNELS, HEADS, INNER, QUERIES, TEXT = 64, 8, 96, 6, 64
PATCH, TABLE, DEPTH = 14, 4, 8
expected, shapes = {}, {}


def waves(values, width):
    """Sines and cosines in turn of values (...): (..., width)."""
    longest = 10000 ** (2 * (torch.arange(width) // 2) / width)
    angles = values[..., None] * 2 * math.pi / longest
    return torch.stack((angles[..., 0::2].sin(), angles[..., 1::2].cos()), -1).flatten(-2)


class Places(modeling_sam3.Sam3SinePositionEmbedding):
    def forward(self, shape, device, dtype, mask=None):
        items, _, height, width = shape
        rows = waves(torch.arange(height) / (height - 1 + 1e-6), self.num_position_features)
        columns = waves(torch.arange(width) / (width - 1 + 1e-6), self.num_position_features)
        grid = torch.cat((rows[:, None].expand(-1, width, -1), columns[None].expand(height, -1, -1)), -1)
        return grid.permute(2, 0, 1).expand(items, -1, -1, -1)

    def encode_boxes(self, boxes):
        return waves(boxes, self.num_position_features).flatten(2)


modeling_sam3.Sam3SinePositionEmbedding = Places

ATTENTION = (("o_proj", "out_proj"),)
LAYER = (("layer_norm1", "norm1"), ("layer_norm2", "norm2"), ("layer_norm3", "norm3"), ("cross_attn", "cross_attn_image"), ("mlp.fc1", "linear1"), ("mlp.fc2", "linear2"), *ATTENTION)
NUMBERED = tuple((f".layer{i}.", f".layers.{i - 1}.") for i in (1, 2, 3))
# What begins so, what it becomes, and what else is replaced.
DETECTOR = (
    ("vision_encoder.backbone.embeddings.patch_embeddings.projection", EYES + "trunk.patch_embed.proj", ()),
    ("vision_encoder.backbone.embeddings.position_embeddings", EYES + "trunk.pos_embed", ()),
    ("vision_encoder.backbone.layer_norm", EYES + "trunk.ln_pre", ()),
    ("vision_encoder.backbone.layers.", EYES + "trunk.blocks.", (("layer_norm1", "norm1"), ("layer_norm2", "norm2"), ("attention.o_proj", "attn.proj"), ("attention.", "attn."))),
    ("vision_encoder.neck.fpn_layers.", EYES + "CONVS.", (("0.scale_layers.0", "0.dconv_2x2_0"), ("0.scale_layers.2", "0.dconv_2x2_1"), ("1.scale_layers.0", "1.dconv_2x2"), ("proj1", "conv_1x1"), ("proj2", "conv_3x3"))),
    ("text_projection.", "detector.backbone.language_backbone.resizer.", ()),
    ("geometry_encoder.", "detector.geometry_encoder.", (("vision_layer_norm", "img_pre_norm"), ("prompt_layer_norm", "norm"), ("output_layer_norm", "encode_norm"), ("encoder.layers.", "encoder.encode."), *LAYER)),
    ("detr_encoder.", "detector.transformer.encoder.", LAYER),
    ("detr_decoder.", "detector.transformer.decoder.", (("text_cross_attn_layer_norm", "catext_norm"), ("vision_cross_attn_layer_norm", "norm1"), ("self_attn_layer_norm", "norm2"), ("mlp_layer_norm", "norm3"), ("text_cross_attn", "ca_text"), ("vision_cross_attn", "cross_attn"), ("mlp.fc1", "linear1"), ("mlp.fc2", "linear2"), ("output_layer_norm", "norm"), ("box_head", "bbox_embed"), ("presence_head", "presence_token_head"), ("presence_layer_norm", "presence_token_out_norm"), ("box_rpb_embed_", "boxRPB_embed_"), *NUMBERED, *ATTENTION)),
    ("mask_decoder.", "detector.segmentation_head.", (("mask_embedder", "mask_predictor.mask_embed"), ("instance_projection", "instance_seg_head"), ("semantic_projection", "semantic_seg_head"), ("prompt_cross_attn_norm", "cross_attn_norm"), ("prompt_cross_attn", "cross_attend_prompt"), *ATTENTION)),
    ("dot_product_scoring.", "detector.dot_prod_scoring.", (("text_mlp_out_norm", "prompt_mlp.out_norm"), ("text_mlp.", "prompt_mlp."), ("text_proj", "prompt_proj"), ("query_proj", "hs_proj"), *NUMBERED)),
)
SEGMENTER = (
    *DETECTOR[:5],
    ("shared_image_embedding.positional_embedding", "PROMPTS.pe_layer.positional_encoding_gaussian_matrix", ()),
    ("prompt_encoder.shared_embedding.positional_embedding", "PROMPTS.pe_layer.positional_encoding_gaussian_matrix", ()),
    ("prompt_encoder.mask_embed.", "PROMPTS.mask_downscaling.", (("conv1", "0"), ("layer_norm1", "1"), ("conv2", "3"), ("layer_norm2", "4"), ("conv3", "6"))),
    ("prompt_encoder.point_embed.", "PROMPTS.point_embeddings.", ()),
    ("prompt_encoder.", "PROMPTS.", ()),
    ("mask_decoder.", "DECODER.", (("upscale_conv1", "output_upscaling.0"), ("upscale_layer_norm", "output_upscaling.1"), ("upscale_conv2", "output_upscaling.3"), ("layer_norm_final_attn", "norm_final_attn"), ("layer_norm", "norm"), ("mlp.proj_in", "mlp.lin1"), ("mlp.proj_out", "mlp.lin2"), *ATTENTION)),
    ("no_memory_embedding", "PAST", ()),
)
# Of both files: what stands for the words above.
WORDS = {
    "sam3": {"CONVS": "sam2_convs", "PROMPTS": "tracker.model.sam_prompt_encoder", "DECODER": "tracker.model.sam_mask_decoder", "PAST": "tracker.model.no_mem_embed"},
    "sam31": {"CONVS": "interactive_convs", "PROMPTS": "tracker.model.interactive_sam_prompt_encoder", "DECODER": "tracker.model.interactive_sam_mask_decoder", "PAST": "tracker.model.interactivity_no_mem_embed"},
}


def file_name(name, table, words):
    for begin, becomes, others in table:
        if name.startswith(begin):
            name = becomes + name[len(begin) :]
            for old, new in others:
                name = name.replace(old, new)
            for old, new in words.items():
                name = name.replace(old, new)
            return name
    raise KeyError(name)


def heads_of(name):
    """Of a small head's tensors: their file names have numbers for their layers."""
    for old, new in (("proj_in", "layers.0"), ("layers.0", "layers.1"), ("proj_out", "layers.2")):
        if f".{old}." in name:
            return name.replace(f".{old}.", f".{new}.")
    return name


def load(model, table, words, listed, fill=True):
    """Gives the model seeded weights, and lists the tensors of its file; without `fill` only that."""
    make = seeded_weights.seeded if fill else lambda name, shape: torch.empty(shape, device="meta")
    state = {}
    for name, tensor in model.state_dict().items():
        if name.startswith(("text_encoder.",)):
            continue
        small_head = "_mlps." in name or "_head." in name
        told = file_name(heads_of(name) if small_head and table is SEGMENTER else name, table, words)
        shape = list(tensor.shape)
        third = next((i for i, word in enumerate("qkv") if f".{word}_proj." in told), None)
        if told.endswith("pos_embed"):
            whole = make(told, (1, shape[1] + 1, shape[2]))
            listed[told] = list(whole.shape)
            state[name] = whole[:, 1:]
        elif "point_embeddings." in told:
            parts = [told.replace("point_embeddings.", f"point_embeddings.{i}.") for i in range(shape[0])]
            listed.update({part: [1, shape[1]] for part in parts})
            state[name] = torch.cat([make(part, (1, shape[1])) for part in parts])
        elif third is not None and not told.startswith("tracker."):
            joined, kind = told.rsplit(".", 2)[0], told.rsplit(".", 1)[1]
            joined += f".qkv.{kind}" if ".trunk." in told else f".in_proj_{kind}"
            listed[joined] = [3 * shape[0], *shape[1:]]
            state[name] = make(joined, tuple(listed[joined])).chunk(3)[third]
        else:
            listed[told] = shape
            state[name] = make(told, tuple(shape))
    if not fill:
        return
    missing = model.load_state_dict(state, strict=False)
    assert not missing.unexpected_keys and all(name.startswith("text_encoder.") for name in missing.missing_keys), missing
    model.eval()


def eyes(size):
    grid = size // PATCH
    return {
        "backbone_config": {
            "model_type": "sam3_vit_model",
            "hidden_size": 128,
            "intermediate_size": 160,
            "num_hidden_layers": DEPTH,
            "num_attention_heads": 2,
            "image_size": size,
            "patch_size": PATCH,
            "layer_norm_eps": 1e-5,
            "window_size": TABLE,
            "global_attn_indexes": [1, 3, 5, 7],
            "pretrain_image_size": TABLE * PATCH,
        },
        "fpn_hidden_size": CHANNELS,
        "backbone_feature_sizes": [[4 * grid] * 2, [2 * grid] * 2, [grid] * 2],
    }


def noise(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def picture(size, seed):
    """Smooth, from 0 to 1."""
    coarse = torch.rand((1, 3, 6, 6), generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.interpolate(coarse, (size, size), mode="bilinear", align_corners=False)


def detector_model(size, listed):
    part = {"hidden_size": CHANNELS, "num_attention_heads": HEADS, "intermediate_size": INNER, "num_layers": 2}
    config = Sam3Config(
        vision_config=eyes(size),
        text_config={"model_type": "clip_text_model", "hidden_size": TEXT, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "vocab_size": 8, "projection_dim": 8},
        geometry_encoder_config=part | {"num_layers": 1},
        detr_encoder_config=part,
        detr_decoder_config=part | {"num_queries": QUERIES},
        mask_decoder_config={"hidden_size": CHANNELS, "num_attention_heads": HEADS},
        attn_implementation="eager",
    )
    model = Sam3Model(config)
    load(model, DETECTOR, {"CONVS": "convs"}, listed)
    return model


def found(model, pixels, states):
    """What the detector makes of a picture (1, 3, S, S) and a text (1, N, TEXT), and the encoder's states."""
    vision = model.get_vision_features(pixels)
    made = model(
        vision_embeds=vision,
        text_embeds=BaseModelOutputWithPooling(pooler_output=model.text_projection(states)),
        input_boxes=torch.full((1, 1, 4), 0.5),
        input_boxes_labels=torch.full((1, 1), -10),
    )
    return made, vision.last_hidden_state


def detector(name, size, listed):
    model = detector_model(size, listed)
    pixels, states = picture(size, size), noise((1, 5, TEXT), size + 1)
    made, hidden = found(model, pixels, states)
    grid, at = size // PATCH, f"{name}.{size}."
    expected[at + "picture"] = pixels.permute(0, 2, 3, 1)
    expected[at + "text"] = states
    expected[at + "hidden"] = hidden.reshape(1, grid, grid, -1)
    expected[at + "boxes"] = made.pred_boxes
    expected[at + "scores"] = made.pred_logits
    expected[at + "presence"] = made.presence_logits
    expected[at + "masks"] = made.pred_masks


def segmenter_model(name, size, listed):
    config = Sam3TrackerConfig(
        vision_config=eyes(size) | {"model_type": "sam3_vision_model"},
        prompt_encoder_config={"hidden_size": CHANNELS, "image_size": size, "patch_size": PATCH},
        mask_decoder_config={"hidden_size": CHANNELS, "mlp_dim": INNER, "num_attention_heads": HEADS, "iou_head_hidden_dim": CHANNELS, "dynamic_multimask_via_stability": False},
        attn_implementation="eager",
    )
    model = Sam3TrackerModel(config)
    load(model, SEGMENTER, WORDS[name], listed)
    model.mask_decoder.iou_prediction_head.sigmoid_output = False
    return model


def features_of(model, hidden):
    """Of the encoder's states (1, G, G, D)."""
    levels = model.vision_encoder.neck(hidden.permute(0, 3, 1, 2))[0]
    return [model.mask_decoder.conv_s0(levels[0]), model.mask_decoder.conv_s1(levels[1]), levels[2] + model.no_memory_embedding.reshape(1, -1, 1, 1)]


def segmenter(name, size, listed):
    grid = size // PATCH
    model = segmenter_model(name, size, listed)
    hidden = noise((1, grid, grid, 128), size + 2)
    features = features_of(model, hidden)
    mask = 4 * noise((1, 1, 4 * grid, 4 * grid), size + 3)
    points = torch.tensor([[30.0, 50.0], [100.0, 20.0], [61.5, 80.25]])
    cases = {
        "points": ({"input_points": points[None, None], "input_labels": torch.tensor([[[1, 0, 1]]])}, [*points, torch.zeros(2)], [1, 0, 1, 4]),
        "box": ({"input_boxes": torch.tensor([[[20.0, 30.0, 90.0, 100.5]]])}, [torch.zeros(2), torch.tensor([20.0, 30.0]), torch.tensor([90.0, 100.5])], [4, 2, 3]),
        "mask": ({"input_masks": mask}, [torch.zeros(2)] * 2, [4, 4]),
    }
    for case, (inputs, places, kinds) in cases.items():
        one, many = [model(image_embeddings=list(features), multimask_output=all_of_them, **inputs) for all_of_them in (False, True)]
        at = f"{name}.{case}."
        expected[at + "hidden"] = hidden.clone()
        expected[at + "points"] = (torch.stack(places) + 0.5) / size
        expected[at + "kinds"] = torch.tensor(kinds, dtype=torch.int32)
        if case == "mask":
            expected[at + "mask"] = mask.permute(0, 2, 3, 1)
        expected[at + "masks"] = torch.cat((one.pred_masks, many.pred_masks), 2)[0, 0]
        expected[at + "qualities"] = torch.cat((one.iou_scores, many.iou_scores), 2)
        expected[at + "object"] = one.object_score_logits


CLIP = (("embeddings.token_embedding", "token_embedding"), ("embeddings.position_embedding.weight", "positional_embedding"), ("encoder.layers", "transformer.resblocks"), ("final_layer_norm", "ln_final"), ("layer_norm1", "ln_1"), ("layer_norm2", "ln_2"), ("self_attn.out_proj", "attn.out_proj"), ("self_attn", "attn"), ("mlp.fc1", "mlp.c_fc"), ("mlp.fc2", "mlp.c_proj"))


def load_text_encoder(model, listed, fill=True):
    """As load(), of transformers' CLIPTextModel by the names of OpenCLIP."""
    make = seeded_weights.seeded if fill else lambda name, shape: torch.empty(shape, device="meta")
    state = {}
    for name, tensor in model.state_dict().items():
        told = name.removeprefix("text_model.")
        for old, new in CLIP:
            told = told.replace(old, new)
        told, shape = "detector.backbone.language_backbone.encoder." + told, list(tensor.shape)
        third = next((i for i, word in enumerate("qkv") if f".{word}_proj." in told), None)
        if third is None:
            listed[told] = shape
            state[name] = make(told, tuple(shape))
            continue
        joined, kind = told.rsplit(".", 2)[0], told.rsplit(".", 1)[1]
        joined += f".in_proj_{kind}"
        listed[joined] = [3 * shape[0], *shape[1:]]
        state[name] = make(joined, tuple(listed[joined])).chunk(3)[third]
    if fill:
        model.load_state_dict(state)
        model.eval()


def true_file():
    """{name: shape} of what transformers knows of SAM 3.1's checkpoint, by its standard configurations: all but the
    tracker of videos, with the decoder that makes masks of prompts."""
    listed = {}
    with torch.device("meta"):
        config = Sam3Config()
        load(Sam3Model(config), DETECTOR, {"CONVS": "convs"}, listed, False)
        load(Sam3TrackerModel(Sam3TrackerConfig()), SEGMENTER, WORDS["sam31"], listed, False)
        load_text_encoder(CLIPTextModel(config.text_config), listed, False)
    return {key: shape for key, shape in listed.items() if "convs.3." not in key}


def main(out):
    for name in ("sam3", "sam31"):
        listed = {}
        for size in (112, 56):
            detector(name, size, listed)
        segmenter(name, 112, listed)
        shapes[name] = listed
    # It has no grids of half the size, and finds things as the other does.
    shapes["sam31"] = {key: shape for key, shape in shapes["sam31"].items() if "convs.3." not in key}
    for key in [key for key in expected if key.startswith(("sam31.112.", "sam31.56."))]:
        del expected[key]
    os.makedirs(out, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = []
        for model, tensors in shapes.items():
            rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(shape)}" for name, shape in compressed(tensors).items())
            texts.append(f' "{model}": {{\n{rows}\n }}')
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().std():.4g} {tensor.float().abs().max():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "sam3"))
