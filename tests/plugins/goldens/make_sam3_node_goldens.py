"""Writes what SAM3_Detect makes of pictures with a small random SAM 3.1, in ComfyUI's steps around transformers' models.

    make_sam3_node_goldens.py [OUT]        (default: sam3_nodes/ beside this file)

Needs what make_sam3_goldens.py needs, which also makes the models; the text encoder is transformers' CLIPTextModel with
quick-GELU, as ComfyUI has it. Of weights only shapes are written; one is SEES:

    shapes.json             {"checkpoint": {name of the tensor: shape}}
    expected.safetensors    "pictures" (2, 90, 120, 3); of each case "CASE.masks", in bytes, and "CASE.boxes": x, y, width,
                            height and score of what was found in the first picture, then in the second, "CASE.counts" of each;
                            "cat.states" of the text "cat"
"""

import json
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers import CLIPTextConfig, CLIPTextModel

import make_sam3_goldens as models
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
SIDE, HEIGHT, WIDTH = 168, 90, 120
SEES = 3.0  # added to the object's score, that there are objects: the bias of that head's last layer
BEGIN, END, PHOTO, CAT = 49406, 49407, 1125, 2368
expected = {}


def text_encoder(listed):
    config = CLIPTextConfig(vocab_size=49408, hidden_size=models.TEXT, intermediate_size=96, num_hidden_layers=2, num_attention_heads=1, max_position_embeddings=32, hidden_act="quick_gelu", bos_token_id=BEGIN, eos_token_id=END, attn_implementation="eager")
    model = CLIPTextModel(config)
    models.load_text_encoder(model, listed)
    return model


class Detect:
    def __init__(self):
        self.listed = {}
        self.detector = models.detector_model(SIDE, self.listed)
        self.tracker = models.segmenter_model("sam31", SIDE, self.listed)
        self.tracker.mask_decoder.pred_obj_score_head.proj_out.bias[:] = SEES
        self.words = text_encoder(self.listed)
        self.listed = {key: shape for key, shape in self.listed.items() if "convs.3." not in key}

    def states(self, *ids):
        return self.words(torch.tensor([[BEGIN, *ids, END]])).last_hidden_state

    def hidden(self, pixels):
        """Of a part of a picture (H, W, 3)."""
        square = F.interpolate(pixels.permute(2, 0, 1)[None], (SIDE, SIDE), mode="bilinear", align_corners=False)
        grid = SIDE // models.PATCH
        return self.detector.vision_encoder.backbone(square).last_hidden_state.reshape(1, grid, grid, -1), square

    def segment(self, hidden, mask=None, many=False, **prompt):
        """Logits (1, 1, SIDE, SIDE)."""
        if mask is not None:
            prompt["input_masks"] = mask
        made = self.tracker(image_embeddings=models.features_of(self.tracker, hidden), multimask_output=many, **prompt)
        best = made.iou_scores[0, 0].argmax() if many else 0
        logits = made.pred_masks[:, 0, best][:, None]
        if made.object_score_logits.item() <= 0:
            logits = torch.full_like(logits, -1024.0)
        return F.interpolate(logits, (SIDE, SIDE), mode="bilinear", align_corners=False)

    def refined(self, pixels, coarse, box, iterations):
        mask = coarse > 0
        x1, y1, x2, y2 = box.tolist()
        width, height = x2 - x1, y2 - y1
        left, top = max(0, int(x1 - width * 0.1)), max(0, int(y1 - height * 0.1))
        right, bottom = min(WIDTH, int(x2 + width * 0.1)), min(HEIGHT, int(y2 + height * 0.1))
        if iterations <= 0 or right <= left or bottom <= top:
            return mask
        a, b, c, d = int(left / WIDTH * WIDTH), int(top / HEIGHT * HEIGHT), int(right / WIDTH * WIDTH), int(bottom / HEIGHT * HEIGHT)
        hidden, _ = self.hidden(pixels[top:bottom, left:right])
        logits = coarse[b:d, a:c][None, None]
        for _ in range(iterations):
            logits = self.segment(hidden, F.interpolate(logits, (SIDE, SIDE), mode="bilinear", align_corners=False))
        part = F.interpolate(logits, (bottom - top, right - left), mode="bilinear", align_corners=False)[0, 0] > 0
        mask = mask.clone()
        mask[top:bottom, left:right] |= part
        return mask

    def text(self, pixels, texts, threshold, iterations):
        masks, boxes = [], []
        for states, most in texts:
            made, _ = models.found(self.detector, self.hidden(pixels)[1], states)
            logits = F.interpolate(made.pred_masks, (HEIGHT, WIDTH), mode="bilinear", align_corners=False)[0]
            sides = made.pred_boxes[0] * torch.tensor([WIDTH, HEIGHT, WIDTH, HEIGHT])
            odds = made.pred_logits[0].sigmoid()
            order = odds.argsort(descending=True)
            for query in [query for query in order if odds[query] > threshold][:most]:
                x1, y1, x2, y2 = sides[query]
                boxes.append(torch.stack((x1, y1, x2 - x1, y2 - y1, odds[query])))
                masks.append(self.refined(pixels, logits[query], sides[query], iterations))
        return masks, boxes

    def prompted(self, pixels, iterations, many=False, **prompt):
        hidden, _ = self.hidden(pixels)
        logits = self.segment(hidden, many=many, **prompt)
        for _ in range(max(0, iterations - 1)):
            logits = self.segment(hidden, logits)
        return F.interpolate(logits, (HEIGHT, WIDTH), mode="bilinear", align_corners=False)[0, 0] > 0

    def points(self, pixels, points, labels, iterations):
        at = torch.tensor([[[[x / WIDTH * SIDE, y / HEIGHT * SIDE] for x, y in points]]])
        return self.prompted(pixels, iterations, len(points) == 1, input_points=at, input_labels=torch.tensor([[labels]]))

    def box(self, pixels, x, y, width, height, iterations):
        corners = torch.tensor([[[x / WIDTH * SIDE, y / HEIGHT * SIDE, (x + width) / WIDTH * SIDE, (y + height) / HEIGHT * SIDE]]])
        return self.prompted(pixels, iterations, input_boxes=corners)


def write(case, found, union):
    """found: of each picture its masks and boxes."""
    empty = torch.zeros((HEIGHT, WIDTH), dtype=torch.bool)
    if union:
        masks = torch.stack([torch.stack([empty, *one]).any(0) for one, _ in found])
    else:
        masks = torch.stack([mask for one, _ in found for mask in one])
    boxes = [box for _, one in found for box in one]
    expected[case + ".masks"] = masks.to(torch.uint8)
    expected[case + ".boxes"] = torch.stack(boxes) if boxes else torch.zeros((0, 5))
    expected[case + ".counts"] = torch.tensor([len(one) for _, one in found], dtype=torch.int32)
    print(case, tuple(masks.shape), masks.float().mean((1, 2)).tolist(), expected[case + ".counts"].tolist())


def main(out):
    detect = Detect()
    coarse = torch.rand((2, 3, 5, 7), generator=torch.Generator().manual_seed(9))
    pictures = F.interpolate(coarse, (HEIGHT, WIDTH), mode="bilinear", align_corners=False).permute(0, 2, 3, 1).contiguous()
    expected["pictures"] = pictures
    cat, photo = detect.states(CAT), detect.states(PHOTO)
    expected["cat.states"] = cat.clone()
    write("cat", [detect.text(picture, [(cat, 1)], 0.9, 2) for picture in pictures], True)
    write("several", [detect.text(picture, [(photo, 1), (cat, 3)], 0.8955, 1) for picture in pictures], False)
    write("coarse", [detect.text(picture, [(cat, 2)], 0.3, 0) for picture in pictures], True)
    write("nothing", [detect.text(picture, [(cat, 1)], 1.0, 2) for picture in pictures], True)
    write("point", [([detect.points(picture, [(40, 30)], [1], 2)], []) for picture in pictures], True)
    write("points", [([detect.points(picture, [(40, 30), (90.5, 60)], [1, 0], 1)], []) for picture in pictures], True)
    boxes = [(10, 20, 50, 40), (60, 5, 45.5, 70)]
    write("boxes", [([detect.box(picture, *box, 2) for box in boxes], []) for picture in pictures], False)
    os.makedirs(out, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    with open(os.path.join(out, "shapes.json"), "w") as file:
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(shape)}" for name, shape in compressed(detect.listed).items())
        file.write(f'{{\n "checkpoint": {{\n{rows}\n }}\n}}\n')


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "sam3_nodes"))
