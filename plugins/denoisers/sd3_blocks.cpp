#include "sd3_blocks.h"

#include <cmath>

#include <heddle/ops.hpp>

#include "control.h"
#include "even_sides.h"
#include "joint_attention.h"
#include "patches.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

using Joint = Sd3Joint;

// The weights of a stream.
struct Sd3Stream {
  const Weight &qkv, &qkv_bias, &q_norm, &k_norm, &proj, &proj_bias, &up, &up_bias, &down,
      &down_bias;
};
constexpr Sd3Stream kPicture{Joint::img_qkv,      Joint::img_qkv_bias, Joint::img_q_norm,
                             Joint::img_k_norm,   Joint::img_proj,     Joint::img_proj_bias,
                             Joint::img_up,       Joint::img_up_bias,  Joint::img_down,
                             Joint::img_down_bias};
constexpr Sd3Stream kText{Joint::txt_qkv,      Joint::txt_qkv_bias, Joint::txt_q_norm,
                          Joint::txt_k_norm,   Joint::txt_proj,     Joint::txt_proj_bias,
                          Joint::txt_up,       Joint::txt_up_bias,  Joint::txt_down,
                          Joint::txt_down_bias};
// The picture's second attention has no MLP of its own.
constexpr Sd3Stream kPictureAlone{Joint::own_qkv,      Joint::own_qkv_bias, Joint::own_q_norm,
                                  Joint::own_k_norm,   Joint::own_proj,     Joint::own_proj_bias,
                                  Joint::img_up,       Joint::img_up_bias,  Joint::img_down,
                                  Joint::img_down_bias};

// One step's modulation (1, 1|B, k D) as its k tensors (1|B, 1, D).
std::vector<Tensor> parts_of(const Tensor& mod, std::int64_t width) {
  if (mod.size(0) != 1)
    throw Error(HEDDLE_INTERNAL, "a block of one step got the modulation of " +
                                     std::to_string(mod.size(0)) + " steps");
  const Tensor by_item = mod.permute({1, 0, 2});
  std::vector<Tensor> parts;
  for (std::int64_t at = 0; at < mod.size(2); at += width)
    parts.push_back(by_item.slice(2, at, at + width));
  return parts;
}

// Queries, keys and values of a stream's tokens: qkv (B, l, 3 D). `first` of mod is the shift, the
// next the scale.
void project(Context& ctx, const Sd3Stream& w, const Tensor& x, const std::vector<Tensor>& mod,
             std::size_t first, const Tensor& qkv) {
  const std::int64_t heads = ctx[Joint::heads];
  const double eps = ctx[Joint::eps];
  const Tensor normed = ops::modulated_norm(ctx, x, mod[first], mod[first + 1], eps);
  ops::linear_into(ctx, normed, ctx[w.qkv], ctx[w.qkv_bias], HEDDLE_ACT_NONE, {}, qkv);
  if (!ctx[w.q_norm]) return;
  const Tensor q = part_of_heads(qkv, 0, heads), k = part_of_heads(qkv, 1, heads);
  ops::norm_rope_into(ctx, q, ctx[w.q_norm], {}, {}, eps, q);
  ops::norm_rope_into(ctx, k, ctx[w.k_norm], {}, {}, eps, k);
}

// What this device's tokens see of all: own (B, l, 3 D), of which all was gathered -> (B, l, D).
Tensor attended(Context& ctx, const Tensor& own, const Tensor& gathered, const JointShard& shard) {
  const std::int64_t heads = ctx[Joint::heads];
  const Tensor seen = ctx.make({own.size(0), own.size(1), heads, own.size(2) / (3 * heads)});
  attend(ctx, gathered, shard, seen);
  return blocks::join_heads(seen);
}

// The same of the picture's tokens alone.
Tensor attended_picture(Context& ctx, const Tensor& own) {
  const std::int64_t heads = ctx[Joint::heads];
  const heddle_shard picture = ctx.shard(Joint::img);
  const JointShard shard = joint_shard(ctx, picture.begin, picture.total, heads);
  const Tensor gathered = make_gathered(ctx, own, shard, heads);
  gather_tokens(ctx, own, 0, shard, heads, gathered);
  return attended(ctx, own, gathered, shard);
}

Tensor with_mlp(Context& ctx, const Sd3Stream& w, const Tensor& x, const std::vector<Tensor>& mod) {
  const Tensor normed = ops::modulated_norm(ctx, x, mod[3], mod[4], ctx[Joint::eps]);
  const Tensor up = ops::linear(ctx, normed, ctx[w.up], ctx[w.up_bias], HEDDLE_ACT_GELU_TANH);
  return ops::gated_add(ctx, x, mod[5], ops::linear(ctx, up, ctx[w.down], ctx[w.down_bias]));
}

Tensor with_attention(Context& ctx, const Sd3Stream& w, const Tensor& x, const Tensor& gate,
                      const Tensor& seen) {
  return ops::gated_add(ctx, x, gate, ops::linear(ctx, seen, ctx[w.proj], ctx[w.proj_bias]));
}

}  // namespace

void Sd3ImageIn::execute(Context& ctx) {
  const Tensor latent = ctx[x], filter = ctx[weight], table = ctx[positions];
  if (latent.size(1) != filter.size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the model takes " + std::to_string(filter.size(1)) +
                                             " latent channels, got " +
                                             std::to_string(latent.size(1)));
  const Tensor even = even_sides(ctx, latent);
  const auto side = std::int64_t(std::lround(std::sqrt(double(table.size(1)))));
  const std::int64_t rows = even.size(2) / kPatch, columns = even.size(3) / kPatch,
                     width = filter.size(0);
  if (rows > side || columns > side)
    throw Error(HEDDLE_UNSUPPORTED, "the model has positions for pictures of up to " +
                                        std::to_string(side) + " x " + std::to_string(side) +
                                        " tokens, and the latent makes " + std::to_string(columns) +
                                        " x " + std::to_string(rows) +
                                        ". Draw a smaller picture, and enlarge it afterwards.");
  const Tensor pixels = ops::cast(ctx, even.permute({0, 2, 3, 1}), ctx.compute());
  const auto step = std::int32_t(kPatch);
  const Tensor grid = blocks::wide_conv2d(ctx, pixels, filter, ctx[bias],
                                          heddle_conv2d_attrs{{step, step}, {0, 0, 0, 0}});
  const std::int64_t top = (side - rows) / 2, left = (side - columns) / 2;
  const Tensor places = table.reshape({1, side, side, width})
                            .slice(1, top, top + rows)
                            .slice(2, left, left + columns);
  ctx[out] = ops::add(ctx, grid, places).reshape({latent.size(0), rows * columns, width});
}

void Sd3Joint::execute(Context& ctx) {
  const Tensor image = ctx[img], text = ctx[txt];
  const std::int64_t batch = image.size(0), width = image.size(2), text_length = text.size(1),
                     length = text_length + image.size(1);
  const Range text_at{0, text_length}, image_at{text_length, length};
  const std::vector<Tensor> image_mod = parts_of(ctx[img_mod], width),
                            text_mod = parts_of(ctx[txt_mod], width);
  const heddle_shard text_shard = ctx.shard(txt), image_shard = ctx.shard(img);
  const JointShard shard = joint_shard(ctx, text_shard.begin + image_shard.begin,
                                       text_shard.total + image_shard.total, ctx[heads]);
  const Tensor qkv = ctx.make({batch, length, 3 * width});
  const Tensor gathered = make_gathered(ctx, qkv, shard, ctx[heads]);
  // The picture's tokens are many: they are on their way while the text's are computed.
  const auto put = [&](const Sd3Stream& w, const Tensor& x, const std::vector<Tensor>& mod,
                       Range at) {
    if (at.begin == at.end) return;
    project(ctx, w, x, mod, 0, tokens(qkv, at));
    gather_tokens(ctx, tokens(qkv, at), at.begin, shard, ctx[heads], gathered);
  };
  put(kPicture, image, image_mod, image_at);
  put(kText, text, text_mod, text_at);
  const Tensor seen = attended(ctx, qkv, gathered, shard);

  Tensor picture = with_attention(ctx, kPicture, image, image_mod[2], tokens(seen, image_at));
  if (ctx[own_qkv]) {
    const Tensor own = ctx.make({batch, image.size(1), 3 * width});
    project(ctx, kPictureAlone, image, image_mod, 6, own);
    picture = with_attention(ctx, kPictureAlone, picture, image_mod[8], attended_picture(ctx, own));
  }
  picture = with_mlp(ctx, kPicture, picture, image_mod);
  if (ctx.has(control))
    add_control(ctx, picture, image_shard.begin, ctx[control],
                {ctx[control_index], ctx[control_depth]});
  ctx[img_out] = picture;
  if (!ctx[txt_proj]) {
    ctx[txt_out] = text;
    return;
  }
  const Tensor read = with_attention(ctx, kText, text, text_mod[2], tokens(seen, text_at));
  ctx[txt_out] = with_mlp(ctx, kText, read, text_mod);
}

void Sd3Single::execute(Context& ctx) {
  const Tensor image = ctx[B::img];
  const std::vector<Tensor> mod = parts_of(ctx[B::img_mod], image.size(2));
  const Tensor qkv = ctx.make({image.size(0), image.size(1), 3 * image.size(2)});
  project(ctx, kPicture, image, mod, 0, qkv);
  const Tensor seen = with_attention(ctx, kPicture, image, mod[2], attended_picture(ctx, qkv));
  ctx[B::img_out] = with_mlp(ctx, kPicture, seen, mod);
}

}  // namespace heddle::denoisers
