"""Writes what ComfyUI's SDPoseDrawKeypoints draws of random people (pose_reference.py).

    make_pose_goldens.py [OUT]        (default: pose/ beside this file)

Needs numpy, scipy, pillow, torch and safetensors from PyPI.

    people.json             {case: {"inputs": of the node, "keypoints": a POSE_KEYPOINT}}
    expected.safetensors    "CASE" (B, H, W, 3) u8: what is drawn
"""

import json
import os
import sys

import numpy as np
import torch
from safetensors.torch import save_file

import pose_reference as pose

HERE = os.path.dirname(os.path.abspath(__file__))


def people(count, height, width, seed):
    """Points in and around a picture, limbs long and short; some that are not seen."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        middle, spread = random.uniform(0.2, 0.8, 2) * (width, height), random.uniform(0.15, 0.5) * height
        points = (middle + random.normal(0, spread, (133, 2))).round(2).astype(np.float32)
        points[91:] = (points[9] + random.normal(0, height / 8, (42, 2))).round(2)
        made.append(pose.person(points, random.uniform(0.1, 1, 133).round(3).astype(np.float32)))
        for key, numbers in made[-1].items():
            made[-1][key] = [round(number, 4) for number in numbers]
    return made


CASES = {
    "plain": ({}, (110, 130), [2, 1]),
    "thick": ({"stick_width": 9, "face_point_size": 1, "score_threshold": 0.5, "draw_feet": True}, (96, 64), [2]),
    "thin": ({"stick_width": 1, "face_point_size": 6, "draw_hands": False}, (80, 150), [1]),
    "head": ({"draw_body": False, "draw_hands": False, "draw_face": False}, (90, 90), [2]),
    "body": ({"draw_head": False, "draw_hands": False, "draw_face": False, "score_threshold": 0}, (90, 90), [3]),
    "nobody": ({}, (20, 30), [0]),
}
NAMES = {"stick_width": "stick", "face_point_size": "dot", "score_threshold": "threshold"}


def main(out):
    told, expected = {}, {}
    for seed, (case, (inputs, (height, width), counts)) in enumerate(CASES.items()):
        pictures = [{"canvas_width": width, "canvas_height": height, "people": people(count, height, width, 10 * seed + i)} for i, count in enumerate(counts)]
        drawn = []
        for picture in pictures:
            canvas = np.zeros((height, width, 3), np.uint8)
            for person in picture["people"]:
                pose.draw(canvas, person, **{NAMES.get(key, key.removeprefix("draw_")): value for key, value in inputs.items()})
            drawn.append(canvas)
        told[case] = {"inputs": inputs, "keypoints": pictures}
        expected[case] = torch.from_numpy(np.stack(drawn))
        print(case, float((expected[case] > 0).any(-1).float().mean()))
    os.makedirs(out, exist_ok=True)
    save_file(expected, os.path.join(out, "expected.safetensors"))
    with open(os.path.join(out, "people.json"), "w") as file:
        file.write("{\n" + ",\n".join(f"{json.dumps(case)}: {json.dumps(what)}" for case, what in told.items()) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "pose"))
