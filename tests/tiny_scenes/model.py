"""The FLUX-shaped model: CLIP encoder (pooled vector), T5 encoder (token sequence), rectified-flow
transformer over 2x2-packed latents; and its sampler.
"""

import torch

from autoencoder import CHANNELS
from vocabulary import CLIP_LENGTH, T5_LENGTH

T5_HEADS, T5_BUCKETS = 4, 32
SIDE = 32  # of the latents


def new_transformer():
    from diffusers import FluxTransformer2DModel
    dit = FluxTransformer2DModel(
        patch_size=1, in_channels=4 * CHANNELS, num_layers=3, num_single_layers=6,
        attention_head_dim=64, num_attention_heads=4, joint_attention_dim=256,
        pooled_projection_dim=128, guidance_embeds=False, axes_dims_rope=(16, 24, 24))
    for module in dit.modules():
        if isinstance(module, torch.nn.Linear):
            torch.nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                torch.nn.init.zeros_(module.bias)
    # Modulations and the output start at zero, as rectified-flow transformers do.
    silent = [block.norm1.linear for block in dit.transformer_blocks]
    silent += [block.norm1_context.linear for block in dit.transformer_blocks]
    silent += [block.norm.linear for block in dit.single_transformer_blocks]
    for module in [*silent, dit.norm_out.linear, dit.proj_out]:
        torch.nn.init.zeros_(module.weight)
        torch.nn.init.zeros_(module.bias)
    return dit


def slope_bias():
    """A start for T5's relative position bias, (buckets, heads): scores fall with the distance in
    three heads. Without it the bias hardly moves in training, and no token finds its neighbours.

    Buckets 0..15 are keys at or before the query (0..7 exact distances, then growing steps),
    16..31 keys after it. Head 0 looks back, head 1 ahead, head 2 to both sides, head 3 anywhere.
    """
    bias = torch.zeros(T5_BUCKETS, T5_HEADS)
    half = T5_BUCKETS // 2
    for bucket in range(T5_BUCKETS):
        distance, ahead = float(bucket % half), bucket >= half
        bias[bucket, 0] = -6.0 - 0.2 * distance if ahead else -0.5 * distance
        bias[bucket, 1] = -0.5 * distance if ahead else -6.0 - 0.2 * distance
        bias[bucket, 2] = -1.0 * distance
    bias[0, 1] = 0.0  # the token itself
    return bias


def new_text_encoders(clip_vocab, t5_vocab, bos, eos):
    from transformers import CLIPTextConfig, CLIPTextModel, T5Config, T5EncoderModel
    clip = CLIPTextModel(CLIPTextConfig(
        vocab_size=clip_vocab, hidden_size=128, intermediate_size=512, projection_dim=128,
        num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=CLIP_LENGTH,
        hidden_act="quick_gelu", bos_token_id=bos, eos_token_id=eos, pad_token_id=eos))
    t5 = T5EncoderModel(T5Config(
        vocab_size=t5_vocab, d_model=256, d_kv=64, d_ff=512, num_layers=4, num_heads=T5_HEADS,
        relative_attention_num_buckets=T5_BUCKETS, relative_attention_max_distance=128,
        feed_forward_proj="gated-gelu", dropout_rate=0.0, pad_token_id=0, eos_token_id=1,
        tie_word_embeddings=False))
    with torch.no_grad():
        position_bias(t5).copy_(slope_bias())
    return clip, t5


def position_bias(t5):
    """The (buckets, heads) parameter that all layers of a T5 encoder share."""
    return t5.encoder.block[0].layer[0].SelfAttention.relative_attention_bias.weight


class Model(torch.nn.Module):
    """Both text encoders and the transformer, trained together."""

    def __init__(self, clip, t5, dit):
        super().__init__()
        self.clip, self.t5, self.dit = clip, t5, dit
        self.register_buffer("img_ids", _position_ids(), persistent=False)
        self.register_buffer("txt_ids", torch.zeros(T5_LENGTH, 3), persistent=False)

    @staticmethod
    def load(folder):
        """The model of a pipeline folder, in float32."""
        from diffusers import FluxTransformer2DModel
        from transformers import CLIPTextModel, T5EncoderModel
        kinds = (CLIPTextModel, "text_encoder"), (T5EncoderModel, "text_encoder_2"), \
                (FluxTransformer2DModel, "transformer")
        return Model(*(k.from_pretrained(f"{folder}/{name}", torch_dtype=torch.float32)
                       for k, name in kinds))

    def text(self, clip_ids, t5_ids):
        """Pooled vectors (n, 128) and tokens (n, 64, 256)."""
        pooled = self.clip(input_ids=clip_ids).pooler_output
        return pooled, self.t5(input_ids=t5_ids).last_hidden_state

    def velocity(self, mixed, t, pooled, tokens):
        """Noise minus picture, as the transformer sees it; packed latents (n, 256, 64)."""
        return self.dit(hidden_states=mixed, encoder_hidden_states=tokens,
                        pooled_projections=pooled, timestep=t, img_ids=self.img_ids,
                        txt_ids=self.txt_ids, return_dict=False)[0].float()


def _position_ids():
    side = SIDE // 2
    ids = torch.zeros(side, side, 3)
    ids[..., 1] = torch.arange(side)[:, None]
    ids[..., 2] = torch.arange(side)[None]
    return ids.view(-1, 3)


def pack(z):
    """Latents (n, 16, 32, 32) to 2x2 patches (n, 256, 64)."""
    b, c, h, w = z.shape
    z = z.view(b, c, h // 2, 2, w // 2, 2).permute(0, 2, 4, 1, 3, 5)
    return z.reshape(b, h * w // 4, c * 4)


def unpack(z):
    """The inverse of `pack`."""
    b, _, c = z.shape
    z = z.view(b, SIDE // 2, SIDE // 2, c // 4, 2, 2).permute(0, 3, 1, 4, 2, 5)
    return z.reshape(b, c // 4, SIDE, SIDE)


@torch.no_grad()
def sample(model, ids, empty, noise, steps=28, guidance=3.0, shift=2.0):
    """Euler integration of the flow with classifier-free guidance against the empty prompt.

    `ids`: (CLIP ids, T5 ids) of n prompts; `empty`: the same of "" alone; `noise`: (n, 16, 32, 32),
    as are the returned latents.
    """
    sigmas = torch.linspace(1, 1 / steps, steps)
    sigmas = torch.cat([shift * sigmas / (1 + (shift - 1) * sigmas), torch.zeros(1)]).to(noise)
    pooled, tokens = model.text(*(torch.cat([i, e.expand_as(i)]) for i, e in zip(ids, empty)))
    x = pack(noise)
    for now, then in zip(sigmas, sigmas[1:]):
        v = model.velocity(torch.cat([x, x]), now.expand(2 * len(x)), pooled, tokens)
        wanted, plain = v.chunk(2)
        x = x + (then - now) * (plain + guidance * (wanted - plain))
    return unpack(x)
