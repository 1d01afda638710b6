"""Writes what diffusers makes with tiny models of Wan 2.2 Animate, and videos that ComfyUI's node would have it draw.

    make_wan_animate_goldens.py [OUT]        (default: wan_animate/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publishers' files: shape; or name that its numbers follow from:
                            [shape, name of the tensor]}}: "animate" has small sizes and faces of 16 pixels a side, "flow" heads
                            of 128 and faces of 512; "{0-3}" stands for each of these numbers
    expected.safetensors    "animate.CLIP.x" is an input, "animate.CLIP.out" an output with a row for each step, of the clips
                            "short", "long" and "odd", which has an odd side; "few" and "many" have fewer and more frames of
                            a face than the latent. "pose.out" and "face.out" are those of "long" with one of both alone.
                            "pictures" and "masks" are what the node is given, of 20 x 28 and 10 x 14; "in.one.cross_attn" and
                            "in.two.cross_attn" are texts. "all.concat", "all.mask", "all.pose" and "all.face" (every 1009th
                            number) are what it makes of them, "bare.concat" of nothing. "all.latent" and "bare.latent" are
                            the ends of 3 steps of Euler's method with guidance 3 by "flow" of the noise of seed 7.
"""

import os
import re
import sys

import torch
import torch.nn.functional as F
from diffusers import WanAnimateTransformer3DModel

import make_umt5_goldens as umt5
import make_wan_goldens as wan
import make_wan_vace_goldens as vace
import make_workflow_goldens
import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
HEIGHT, WIDTH, FACE = 32, 48, 512
expected, shapes = {}, {}


def original(name, halvings=7):
    """The publisher's name of a tensor of WanAnimateTransformer3DModel; keys and values of a face are one tensor there."""
    convs = "motion_encoder.enc.net_app.convs."
    if name.startswith("face_adapter."):
        name = name.replace("face_adapter.", "face_adapter.fuser_blocks.")
        for here, there in (
            (".norm_q.", ".q_norm."),
            (".norm_k.", ".k_norm."),
            (".to_q.", ".linear1_q."),
            (".to_k.", ".linear1_kv."),
            (".to_v.", ".linear1_kv."),
            (".to_out.", ".linear2."),
        ):
            name = name.replace(here, there)
        return name
    if name.startswith("face_encoder."):
        return re.sub(r"\.(conv1_local|conv2|conv3)\.", r".\1.conv.", name)
    if not name.startswith("motion_encoder."):
        return wan.original(name)
    name = name.replace("motion_encoder.motion_synthesis_weight", "motion_encoder.dec.direction.weight")
    name = name.replace("motion_encoder.motion_network.", "motion_encoder.enc.fc.")
    name = name.replace("motion_encoder.conv_in.act_fn.", convs + "0.1.").replace("motion_encoder.conv_in.", convs + "0.0.")
    name = name.replace("motion_encoder.conv_out.", f"{convs}{halvings + 1}.")
    name = re.sub(r"motion_encoder\.res_blocks\.(\d+)\.", lambda found: f"{convs}{int(found[1]) + 1}.", name)
    for here, there in (
        (".conv1.act_fn.", ".conv1.1."),
        (".conv2.act_fn.", ".conv2.2."),
        (".conv1.weight", ".conv1.0.weight"),
        (".conv2.weight", ".conv2.1.weight"),
        (".conv_skip.", ".skip.1."),
    ):
        name = name.replace(here, there)
    return name


def file_shape(name, shape):
    """Biases of the motion encoder's filters have axes of pixels; keys and values stand behind each other."""
    if "net_app" in name and name.endswith(".bias"):
        return [1, *shape, 1, 1]
    return [2 * shape[0], *shape[1:]] if ".linear1_kv." in name else list(shape)


def seed_of(name):
    """The name that numbers follow from. The model divides weights of its motion encoder by their fan-in: names that keep
    their numbers from -1 to 1, or around 1, so that what comes out depends on the face."""
    if re.search(r"enc\.fc\.[123]\.weight|\.skip\.1\.weight", name):
        return "norm." + name
    is_raw = name.startswith(("motion_encoder.enc.", "face_encoder.conv1_local")) and name.endswith("weight")
    return "embed_tokens." + name if is_raw else name


def load(model, halvings):
    listed, state = {}, {}
    for name, tensor in model.state_dict().items():
        there = original(name, halvings)
        shape = file_shape(there, tensor.shape)
        seed = seed_of(there)
        listed[seed] = [shape, there] if seed != there else shape
        numbers = seeded_weights.seeded(seed, tuple(shape))
        if ".linear1_kv." in there:
            numbers = numbers.chunk(2)[0 if ".to_k." in name else 1]
        state[name] = numbers.reshape(tensor.shape)
    model.load_state_dict(state)
    model.eval()
    return listed


def make(kind):
    is_flow = kind == "flow"
    channels = {str(4 << k): 4 if k > 5 else 6 for k in range(8)}
    model = WanAnimateTransformer3DModel(
        num_attention_heads=2 if is_flow else 3,
        attention_head_dim=128 if is_flow else 16,
        in_channels=2 * wan.CHANNELS + 4,
        latent_channels=wan.CHANNELS,
        out_channels=wan.CHANNELS,
        text_dim=wan.TEXT,
        freq_dim=32,
        ffn_dim=80,
        num_layers=2 if is_flow else 4,
        image_dim=None if is_flow else wan.VISION,
        added_kv_proj_dim=None if is_flow else 48,
        rope_max_seq_len=32,
        motion_encoder_channel_sizes=channels if is_flow else {"4": 4, "8": 5, "16": 6},
        motion_encoder_size=FACE if is_flow else 16,
        motion_style_dim=12,
        motion_dim=5,
        motion_encoder_dim=14,
        face_encoder_hidden_dim=10,
        face_encoder_num_heads=3,
        inject_face_latents_blocks=2,
    )
    shapes[kind] = load(model, 7 if is_flow else 2)
    wan.own_processor(model)
    return model


def velocity(model, x, level, context, concat, pose=None, face=None, vision=None):
    """Without poses nothing is added for them, without a face no layer looks at one; tokens of a face that the latent has
    no frames for are left out, those that lack are zeros: as in ComfyUI."""
    items, frames = len(x), x.shape[2]

    def whole(tensor):
        return tensor.expand(items, *tensor.shape[1:])

    def fitted(_, __, made):
        kept = made[:, : frames - 1]
        return F.pad(kept, (0, 0, 0, 0, 0, frames - 1 - kept.shape[1]))

    hooks = [model.face_encoder.register_forward_hook(fitted)]
    zeros = lambda _, __, made: torch.zeros_like(made)  # noqa: E731
    if pose is None:
        pose = torch.zeros(1, wan.CHANNELS, frames - 1, *x.shape[3:])
        hooks.append(model.pose_patch_embedding.register_forward_hook(zeros))
    if face is None:
        side = model.config.motion_encoder_size
        face = torch.zeros(1, 3, 1, side, side)
        hooks += [adapter.register_forward_hook(zeros) for adapter in model.face_adapter]
    out = model(
        vace.even(torch.cat([x, whole(concat)], 1)),
        (1000 * level).expand(items),
        whole(context),
        None if vision is None else whole(vision),
        vace.even(whole(pose)),
        whole(face),
        return_dict=False,
    )[0]
    for hook in hooks:
        hook.remove()
    return out[..., : x.shape[3], : x.shape[4]]


def make_clip(model, clip, seed, frames, height, width, faces, batch=1, rows=1):
    inputs = {
        "x": wan.randn(seed, batch, wan.CHANNELS, frames, height, width),
        "context": wan.randn(seed + 1, 1, wan.TOKENS, wan.TEXT),
        "concat": wan.randn(seed + 2, 1, 4 + wan.CHANNELS, frames, height, width),
        "vision": wan.randn(seed + 3, 1, wan.SEEN, wan.VISION),
        "pose": wan.randn(seed + 4, rows, wan.CHANNELS, frames - 1, height, width),
        "face": wan.randn(seed + 5, rows, 3, faces, 16, 16).clamp(-1, 1),
    }

    def out(given):
        return torch.stack([velocity(model, level=level, **given) for level in wan.LEVELS])

    at = f"animate.{clip}."
    expected.update({at + name: tensor for name, tensor in inputs.items()})
    expected[at + "timestep"] = 1000 * wan.LEVELS
    expected[at + "out"] = out(inputs)
    if clip == "long":
        for name, left_out in (("pose", ["face"]), ("face", ["pose"])):
            made = out({key: tensor for key, tensor in inputs.items() if key not in left_out})
            expected[f"{name}.out"] = made
            print(f"{name}: differs from both by {(made - expected[at + 'out']).norm() / made.norm():.3f}")


def fitted(planes, height, width, mode):
    """(B, C, H, W), cut to the shape in the middle, then resized."""
    shape, aspect = planes.shape[2:], planes.shape[3] / planes.shape[2]
    rows = round((shape[0] - shape[0] * aspect / (width / height)) / 2) if aspect < width / height else 0
    columns = round((shape[1] - shape[1] * (width / height) / aspect) / 2) if aspect > width / height else 0
    cut = planes[:, :, rows : shape[0] - rows, columns : shape[1] - columns]
    return F.interpolate(cut, size=(height, width), mode=mode)


def draw(model, concat, one={}, two={}):
    x = wan.randn(7, 1, wan.CHANNELS, 4, HEIGHT // 8, WIDTH // 8)
    texts = [expected["in.one.cross_attn"], expected["in.two.cross_attn"]]
    levels = umt5.simple_levels(8.0, 3)
    for here, there in zip(levels, levels[1:]):
        yes, no = (velocity(model, x, torch.tensor(here), text, concat, **given) for text, given in zip(texts, (one, two)))
        x = x + (no + 3 * (yes - no)) * (there - here)
    return x


def make_videos():
    """Nine frames. Of a video that goes on: five frames of six are known, so that it begins at frame 6 - 5 of what is followed."""
    expected["in.one.cross_attn"], expected["in.two.cross_attn"] = (wan.randn(seed, 1, wan.TOKENS, wan.TEXT) for seed in (92, 93))
    expected["pictures"] = torch.rand(11, 20, 28, 3, generator=torch.Generator().manual_seed(18))
    expected["masks"] = torch.rand(8, 10, 14, generator=torch.Generator().manual_seed(19)).round()
    pictures = expected["pictures"].movedim(-1, 1)
    video = fitted(pictures, HEIGHT, WIDTH, "area")
    vae = make_workflow_goldens.make_vae()
    encode = lambda frames: vae.encode(2 * frames.transpose(0, 1)[None] - 1).latent_dist.mean  # noqa: E731

    known, begin, length = 5, 1, 9
    drawn = torch.full((length, 3, HEIGHT, WIDTH), 0.5)
    drawn[:known] = video[1 : 1 + known]  # the last five of six
    drawn[known:] = video[begin + known : begin + length]  # what is behind
    concat = torch.cat([encode(video[10:]), encode(drawn)], 2)
    anew = torch.ones(12, HEIGHT // 8, WIDTH // 8)  # four for each frame of the latent
    anew[:8] = 0
    cells = fitted(expected["masks"][:, None], HEIGHT // 8, WIDTH // 8, "nearest-exact")[begin:, 0]
    anew[known : len(cells)] = cells[known:]
    mask = torch.cat([torch.zeros(4, 1, 4, 6), anew.unflatten(0, (3, 4)).transpose(0, 1)], 1)[None]
    posed = video[begin:6]
    pose = encode(torch.cat([posed, posed[-1:].expand(length - len(posed), -1, -1, -1)]))
    face = 2 * fitted(pictures[begin : begin + length], FACE, FACE, "area").transpose(0, 1)[None] - 1
    bare = torch.cat([encode(torch.zeros(1, 3, HEIGHT, WIDTH)), encode(torch.full((length, 3, HEIGHT, WIDTH), 0.5))], 2)
    bare_mask = torch.cat([torch.zeros(1, 4, 1, 4, 6), torch.ones(1, 4, 3, 4, 6)], 2)
    expected.update({"all.concat": concat, "all.mask": mask, "all.pose": pose, "all.face": face.flatten()[::1009], "bare.concat": bare})

    model = make("flow")
    given = {"pose": umt5.scaled(pose), "face": face}
    beside = torch.cat([1 - mask, umt5.scaled(concat)], 1)
    expected["all.latent"] = draw(model, beside, given, given | {"face": torch.full_like(face, -1)})
    expected["bare.latent"] = draw(model, torch.cat([1 - bare_mask, umt5.scaled(bare)], 1))


def main(out):
    model = make("animate")
    make_clip(model, "short", 10, 2, 4, 6, 1, batch=2)
    make_clip(model, "long", 20, 4, 6, 4, 9)
    make_clip(model, "odd", 30, 3, 5, 7, 8, batch=2, rows=2)
    make_clip(model, "few", 40, 4, 4, 4, 5)
    make_clip(model, "many", 50, 2, 4, 4, 9)
    make_videos()
    wan.write(out, shapes, expected)
    for name, tensor in expected.items():
        print(f"{name:22} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "wan_animate"))
