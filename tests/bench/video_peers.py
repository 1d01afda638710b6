"""diffusers' transformers of videos at the sizes that `heddle bench` measures, for model_step.py: configs as published, inputs of equal shapes.

Each model has the size and the frames of `heddle bench` of that name; text and tokens are as many as there. One forward is timed, as one branch
of heddle's.
"""

WAN = dict(type="WanTransformer3DModel", size="832x480", frames=81, tokens=512)
MODELS = {
    "wan-1.3b": dict(WAN, config=dict(num_attention_heads=12, ffn_dim=8960, num_layers=30)),
    "wan-14b": dict(WAN, config={}),
    "ltx2-19b": dict(type="LTX2VideoTransformer3DModel", size="1280x736", frames=121, tokens=1024, config={}),
    "minimax-h3": dict(type="MiniMaxH3Transformer3DModel", size="1344x768", frames=124, tokens=256, config={}),
    "hunyuan-video-1.5": dict(type="HunyuanVideo15Transformer3DModel", size="1280x720", frames=121, tokens=500, config=dict(task_type="t2v")),
    "wan-vae": dict(type="AutoencoderKLWan", size="832x480", frames=81, tokens=0, config={}),
}


def minimax_inputs(config, frames, tokens, width, height, torch):
    """Video, then sound, then text in one packed sequence; all rows at the same level of noise."""
    pictures = (frames - 5) // 17 * 5 + 2
    rows, columns = height // 32, width // 32
    video, sound = pictures * rows * columns, 2 * round(frames / 24 * 40)
    count = video + sound + tokens
    of = lambda begin, length: torch.arange(begin, begin + length)  # noqa: E731
    grid = torch.stack(torch.meshgrid(torch.arange(pictures), torch.arange(rows), torch.arange(columns), indexing="ij"), -1).reshape(-1, 3)
    line = torch.arange(sound + tokens)[:, None].expand(-1, 3)
    return dict(
        hidden_states=torch.randn(1, video, 4 * config["in_channels"]), audio_hidden_states=torch.randn(1, sound, config["audio_in_channels"]),
        encoder_hidden_states=torch.randn(1, tokens, config["text_dim"]), timestep=torch.tensor([0.5]),
        timestep_indices=torch.zeros(count, dtype=torch.long), token_tags=torch.tensor([0] * video + [2] * sound + [1] * tokens),
        position_ids=torch.cat([grid, line]).to(torch.float32), video_indices=of(0, video), audio_indices=of(video, sound),
        text_indices=of(video + sound, tokens), return_dict=False)


def inputs_of(model, config, torch):
    """On the default device, in the default type."""
    width, height = (int(side) for side in model["size"].split("x"))
    kind, frames, tokens = model["type"], model["frames"], model["tokens"]
    if kind == "AutoencoderKLWan":
        return dict(z=torch.randn(1, 16, (frames + 3) // 4, height // 8, width // 8), return_dict=False)
    if kind == "MiniMaxH3Transformer3DModel":
        return minimax_inputs(config, frames, tokens, width, height, torch)
    if kind == "LTX2VideoTransformer3DModel":
        pictures, sound = (frames + 7) // 8, 126
        return dict(
            hidden_states=torch.randn(1, pictures * (height // 32) * (width // 32), config["in_channels"]),
            audio_hidden_states=torch.randn(1, sound, config["audio_in_channels"]),
            encoder_hidden_states=torch.randn(1, tokens, config["caption_channels"]),
            audio_encoder_hidden_states=torch.randn(1, tokens, config["caption_channels"]), timestep=torch.full((1,), 500.0),
            num_frames=pictures, height=height // 32, width=width // 32, audio_num_frames=sound, return_dict=False)
    if kind == "HunyuanVideo15Transformer3DModel":
        ones = lambda count: torch.ones(1, count, dtype=torch.bool)  # noqa: E731
        return dict(
            hidden_states=torch.randn(1, config["in_channels"], (frames + 3) // 4, height // 16, width // 16), timestep=torch.full((1,), 500.0),
            encoder_hidden_states=torch.randn(1, tokens, config["text_embed_dim"]), encoder_attention_mask=ones(tokens),
            encoder_hidden_states_2=torch.randn(1, 1, config["text_embed_2_dim"]), encoder_attention_mask_2=~ones(1),
            image_embeds=torch.zeros(1, 1, config["image_embed_dim"]), return_dict=False)
    return dict(
        hidden_states=torch.randn(1, config["in_channels"], (frames + 3) // 4, height // 8, width // 8), timestep=torch.full((1,), 500.0),
        encoder_hidden_states=torch.randn(1, tokens, config["text_dim"]), return_dict=False)
