"""What ComfyUI's nodes of SDPose do around their models: keypoints of heatmaps (DARK, Zhang et al. 2020, with Gaussians as UDP-Pose has
them), OpenPose's lists of them, and people drawn as DWPose draws them. Needs numpy, scipy and pillow from PyPI."""

import colorsys
import math

import numpy as np
from PIL import Image, ImageDraw
from scipy.ndimage import gaussian_filter

COLOURS = [(255, 0, 0), (255, 85, 0), (255, 170, 0), (255, 255, 0), (170, 255, 0), (85, 255, 0), (0, 255, 0), (0, 255, 85), (0, 255, 170), (0, 255, 255),
           (0, 170, 255), (0, 85, 255), (0, 0, 255), (85, 0, 255), (170, 0, 255), (255, 0, 255), (255, 0, 170), (255, 0, 85)]
LIMBS = [(1, 2), (1, 5), (2, 3), (3, 4), (5, 6), (6, 7), (1, 8), (8, 9), (9, 10), (1, 11), (11, 12), (12, 13), (1, 0), (0, 14), (14, 16), (0, 15), (15, 17)]
HEAD = {0, 14, 15, 16, 17}


def keypoints(heatmaps, size):
    """(K, H, W) f32 -> points (K, 2) in pixels of a picture of size (width, height), and scores (K)."""
    count, height, width = heatmaps.shape
    points, scores = np.full((count, 2), -1, np.float32), heatmaps.reshape(count, -1).max(1)
    scale = ((np.array(size) - 1) / (np.array((width, height)) - 1)).astype(np.float32)
    for k in range(count):
        if scores[k] <= 0:
            continue
        y, x = divmod(int(heatmaps[k].argmax()), width)
        wide = gaussian_filter(np.pad(heatmaps[k], 5), sigma=2.0)[5:-5, 5:-5]
        if wide.max() > 0:
            wide = wide * (scores[k] / wide.max())
        near = np.pad(np.log(np.clip(wide, 1e-3, 50)), 1, mode="edge")[y : y + 3, x : x + 3]
        slope = np.array([(near[1, 2] - near[1, 0]) / 2, (near[2, 1] - near[0, 1]) / 2])
        bend = near[2, 2] - near[1, 2] - near[2, 1] + 2 * near[1, 1] - near[1, 0] - near[0, 1] + near[0, 0]
        curve = np.array([[near[1, 2] - 2 * near[1, 1] + near[1, 0], bend / 2], [bend / 2, near[2, 1] - 2 * near[1, 1] + near[0, 1]]])
        points[k] = (np.array([x, y]) - np.linalg.inv(curve + np.finfo(np.float32).eps * np.eye(2)) @ slope) * scale
    return points, scores


def person(points, scores):
    """Of 133 points, with the neck among those of the body, which are put into OpenPose's order."""
    neck = min(scores[5], scores[6]) if min(scores[5], scores[6]) > 0.3 else 0
    points, scores = np.insert(points, 17, (points[5] + points[6]) / 2, 0), np.insert(scores, 17, neck)
    order = np.arange(134)
    order[[1, 2, 3, 4, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17]] = [17, 6, 8, 10, 7, 9, 12, 14, 16, 13, 15, 2, 1, 4, 3]
    all = np.concatenate((points, scores[:, None]), 1)[order].astype(np.float32)
    part = lambda begin, end, *more: np.concatenate((all[begin:end], all[list(more)])).flatten().tolist()
    return {"pose_keypoints_2d": part(0, 18), "foot_keypoints_2d": part(18, 24), "face_keypoints_2d": part(24, 92, 14, 15),
            "hand_right_keypoints_2d": part(92, 113), "hand_left_keypoints_2d": part(113, 134)}


def ellipse(x, y, a, b, degrees):
    turn = math.radians(degrees % 360)
    points = []
    for step in range(0, 361, 4):
        u, v = (a + 0.5) * math.cos(math.radians(step)), (b + 0.5) * math.sin(math.radians(step))
        point = (round(x + u * math.cos(turn) - v * math.sin(turn)), round(y + u * math.sin(turn) + v * math.cos(turn)))
        if not points or points[-1] != point:
            points.append(point)
    return points if len(points) > 1 else [(x, y)] * 2


def disk(canvas, x, y, radius, colour):
    rows, columns = np.ogrid[: canvas.shape[0], : canvas.shape[1]]
    canvas[(rows - y) ** 2 + (columns - x) ** 2 <= radius**2] = colour


def line(x0, y0, x1, y1):
    dx, dy, right, below = abs(x1 - x0), abs(y1 - y0), 1 if x0 < x1 else -1, 1 if y0 < y1 else -1
    error = dx - dy
    while True:
        yield x0, y0
        if (x0, y0) == (x1, y1):
            return
        twice = 2 * error
        if twice > -dy:
            error, x0 = error - dy, x0 + right
        if twice < dx:
            error, y0 = error + dx, y0 + below


def draw(canvas, told, body=True, hands=True, face=True, feet=False, head=True, stick=4, dot=3, threshold=0.3):
    height, width = canvas.shape[:2]
    read = lambda key: np.array(told[key], np.float32).reshape(-1, 3)
    joints, least = read("pose_keypoints_2d"), np.float32(threshold)
    polygons = []
    for i, (a, b) in enumerate(LIMBS):
        if not (body if i < 12 else head) or joints[a, 2] < least or joints[b, 2] < least:
            continue
        across, down = joints[a, 0] - joints[b, 0], joints[a, 1] - joints[b, 1]
        length = math.sqrt(across**2 + down**2)
        if length >= 1:
            middle = [(joints[a, 0] + joints[b, 0]) / 2, (joints[a, 1] + joints[b, 1]) / 2]
            polygons.append((ellipse(int(middle[0]), int(middle[1]), int(length / 2), stick, int(math.degrees(math.atan2(down, across)))), COLOURS[i]))
    if polygons:
        points = np.array([point for polygon, _ in polygons for point in polygon])
        left, top = np.maximum(points.min(0), 0)
        right, bottom = np.minimum(points.max(0) + 1, (width, height))
        if right > left and bottom > top:
            image = Image.fromarray(canvas[top:bottom, left:right])
            pen = ImageDraw.Draw(image, "RGBA")
            for polygon, colour in polygons:
                pen.polygon([(x - left, y - top) for x, y in polygon], fill=colour)
            canvas[top:bottom, left:right] = np.asarray(image)

    def dots(points, radius, colour, least_place):
        for i, (x, y, score) in enumerate(points):
            x, y = int(x), int(y)
            if score >= least and least_place <= x < width and least_place <= y < height:
                disk(canvas, x, y, radius, colour(i) if callable(colour) else colour)

    shown = [i for i in range(18) if (head if i in HEAD else body or (head and i == 1))]
    for i in shown:
        dots(joints[i : i + 1], 4, COLOURS[i], 0)
    if feet:
        dots(read("foot_keypoints_2d"), 4, lambda i: COLOURS[i], 0)
    for key in ("hand_right_keypoints_2d", "hand_left_keypoints_2d") if hands else ():
        hand = read(key)
        for bone in range(20):
            a, b = hand[bone if bone % 4 else 0], hand[bone + 1]
            places = [int(place) for place in (a[0], a[1], b[0], b[1])]
            if min(a[2], b[2]) < least or min(places) <= 0 or max(places[::2]) >= width or max(places[1::2]) >= height:
                continue
            colour = [int(part * 255) for part in colorsys.hsv_to_rgb(bone / 20, 1.0, 1.0)]
            for x, y in line(*places):
                disk(canvas, x, y, 1.5, colour)
        dots(hand, 4, (0, 0, 255), 1)
    if face:
        dots(read("face_keypoints_2d")[:68], dot, (255, 255, 255), 1)
    return canvas
