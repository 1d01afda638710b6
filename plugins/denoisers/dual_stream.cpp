#include "dual_stream.h"

#include <heddle/checked.hpp>

#include "flux_blocks.h"
#include "patches.h"

namespace heddle::denoisers {
namespace {

std::array<std::int64_t, 3> read_axes(const Checkpoint& file, const Value& config,
                                      std::int64_t head_size) {
  std::array<std::int64_t, 3> found{16, (head_size - 16) / 2, (head_size - 16) / 2};
  const Value axes = config.field("axes_dims_rope");
  if (axes && !axes.is(HEDDLE_KIND_NONE)) {
    if (axes.count() != found.size())
      throw Error(HEDDLE_UNSUPPORTED, file.path() + ": axes_dims_rope lists " +
                                          std::to_string(axes.count()) +
                                          " axes, a picture's tokens have 3");
    for (std::uint32_t i = 0; i < found.size(); ++i) found[i] = axes.item(i).as<std::int64_t>();
  }
  std::int64_t sum = 0;
  for (const std::int64_t axis : found) {
    sum += axis;
    if (axis <= 0 || axis % 2 != 0) sum = -1 << 20;
  }
  if (sum != head_size)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": rotary axes " +
                                             blocks::shape_text({found[0], found[1], found[2]}) +
                                             " do not make up a head of size " +
                                             std::to_string(head_size) +
                                             ": each has to be even, and their sum the head size");
  return found;
}

// The slots of one stream of a double block, and the name that its modules begin with.
struct StreamSlots {
  const char* name;
  const Weight &qkv, &qkv_bias, &q_norm, &k_norm, &proj, &proj_bias, &up, &up_bias, &down,
      &down_bias;
};
using Double = FluxDouble;
constexpr StreamSlots kStreams[] = {
    {"img_", Double::img_qkv, Double::img_qkv_bias, Double::img_q_norm, Double::img_k_norm,
     Double::img_proj, Double::img_proj_bias, Double::img_up, Double::img_up_bias, Double::img_down,
     Double::img_down_bias},
    {"txt_", Double::txt_qkv, Double::txt_qkv_bias, Double::txt_q_norm, Double::txt_k_norm,
     Double::txt_proj, Double::txt_proj_bias, Double::txt_up, Double::txt_up_bias, Double::txt_down,
     Double::txt_down_bias}};

}  // namespace

StreamSizes read_stream_sizes(const Checkpoint& file, const Value& config, const FindModule& top,
                              const FindModule& first_block, const std::string& prefix) {
  const auto size = [&](const ModuleParts& module, std::uint32_t axis) {
    return file.size(module("weight").front().tensor, axis);
  };
  StreamSizes s{};
  s.hidden = size(top("img_in"), 0);
  s.in_width = size(top("img_in"), 1);
  s.out_width = size(top("final_layer.linear"), 0);
  s.context_width = size(top("txt_in"), 1);
  s.time_width = size(top("time_in.in_layer"), 1);
  s.head_size = size(first_block("img_attn.norm.query_norm"), 0);
  s.doubles = checked_cast<int>(
      config.get<std::int64_t>("num_layers", blocks::layer_count(file, prefix)), "num_layers");
  s.expose_blocks = config.get<bool>("expose_blocks", false);
  if (s.head_size <= 0 || s.hidden % s.head_size != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": a width of " + std::to_string(s.hidden) +
                                             " is no multiple of the head size " +
                                             std::to_string(s.head_size));
  s.heads = s.hidden / s.head_size;
  if (s.in_width % kPatchArea != 0 || s.out_width % kPatchArea != 0 || s.out_width > s.in_width)
    throw Error(HEDDLE_UNSUPPORTED, file.path() + ": tokens of " + std::to_string(s.in_width) +
                                        " numbers in, " + std::to_string(s.out_width) +
                                        " out are no 2x2 patches of a latent");
  s.axes = read_axes(file, config, s.head_size);
  return s;
}

void DualStreams::linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
                         const ModuleParts& find, std::int64_t out, std::int64_t in) {
  slots.fill(matrix, find("weight"), {out, in});
  slots.fill(bias, find("bias"), {out});
}

// It is its first bias's length; when that is missing, filling the slot says so.
std::int64_t DualStreams::mlp_width(const ModuleParts& up) const {
  const std::string bias = up("bias").front().tensor;
  return file_.has(bias) ? file_.size(bias, 0) : 4 * s_.hidden;
}

Source DualStreams::embed_text(const Source& context, const Source& x, const Source& nag) const {
  using B = FluxTextIn;
  Block block = graph_.add<B>("embed.text");
  block.link(B::context, context).link(B::x, x).link(B::nag, nag);
  blocks::Slots slots(file_, block, "embed.text");
  linear(slots, B::weight, B::bias, top_("txt_in"), s_.hidden, s_.context_width);
  return block[B::out];
}

Source DualStreams::embed_image(const Source& x, const Source& nag,
                                const Source* references) const {
  using B = FluxImageIn;
  Block block = graph_.add<B>("embed.image");
  block.link(B::x, x).link(B::nag, nag);
  if (references != nullptr) block.link(B::references, *references);
  if (s_.in_width > s_.out_width)
    block.link(B::concat, graph_.input("concat", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH));
  blocks::Slots slots(file_, block, "embed.image");
  linear(slots, B::weight, B::bias, top_("img_in"), s_.hidden, s_.in_width);
  return block[B::out];
}

void DualStreams::add_double(int index, const FindModule& find, const Source& vector,
                             const AttentionInputs& attention, Source& img, Source& txt) const {
  using B = FluxDouble;
  using M = FluxDoubleModulation;
  const std::string path = "double." + std::to_string(index);
  const std::int64_t d = s_.hidden, head = s_.head_size;
  Block modulation = graph_.add<M>(path + ".modulation");
  modulation.link(M::vector, vector);
  blocks::Slots mod(file_, modulation, path + ".modulation");
  linear(mod, M::img_weight, M::img_bias, find("img_mod.lin"), 6 * d, d);
  linear(mod, M::txt_weight, M::txt_bias, find("txt_mod.lin"), 6 * d, d);

  Block block = graph_.add<B>(path + ".block");
  block.link(B::img, img)
      .link(B::txt, txt)
      .link(B::cos, attention.cos)
      .link(B::sin, attention.sin)
      .link(B::nag, attention.nag);
  if (attention.references && attention.reference_timestep)
    block.link(B::references, *attention.references)
        .link(B::reference_timestep, *attention.reference_timestep);
  block.link(B::img_mod, modulation[M::img])
      .link(B::txt_mod, modulation[M::txt])
      .set(B::heads, s_.heads);
  blocks::Slots slots(file_, block, path + ".block");
  const std::int64_t mlp = mlp_width(find("img_mlp.0")), unit = mlp_unit(mlp);
  for (const StreamSlots& w : kStreams) {
    const auto module = [&](const char* name) { return find(std::string(w.name) + name); };
    linear(slots, w.qkv, w.qkv_bias, module("attn.qkv"), 3 * d, d);
    linear(slots, w.proj, w.proj_bias, module("attn.proj"), d, d);
    linear(slots, w.up, w.up_bias, module("mlp.0"), mlp, d);
    linear(slots, w.down, w.down_bias, module("mlp.2"), d, mlp);
    slots.fill(w.q_norm, module("attn.norm.query_norm")("weight"), {head});
    slots.fill(w.k_norm, module("attn.norm.key_norm")("weight"), {head});
    // Divided among devices: heads, and stretches of the MLP.
    block.shard(w.qkv, 0, {{d, head}, {d, head}, {d, head}})
        .shard(w.qkv_bias, 0, {{d, head}, {d, head}, {d, head}})
        .shard(w.proj, 1, {{d, head}});
    block.shard(w.up, 0, {{mlp, unit}})
        .shard(w.up_bias, 0, {{mlp, unit}})
        .shard(w.down, 1, {{mlp, unit}});
  }
  img = block[B::img_out];
  txt = block[B::txt_out];
  expose(path + ".img", img);
  expose(path + ".txt", txt);
}

Source DualStreams::modulation(const std::string& path, const Source& vector,
                               const ModuleParts& find, int parts) const {
  using B = FluxModulation;
  Block block = graph_.add<B>(path);
  block.link(B::vector, vector);
  blocks::Slots slots(file_, block, path);
  linear(slots, B::weight, B::bias, find, parts * s_.hidden, s_.hidden);
  return block[B::out];
}

Source DualStreams::add_final(const Source& vector, const Source& hidden, const Source& x,
                              const AttentionInputs& inputs) const {
  using B = FluxFinal;
  const Source mod =
      modulation("final.modulation", vector, top_("final_layer.adaLN_modulation.1"), 2);
  Block block = graph_.add<B>("final.block");
  block.link(B::hidden, hidden).link(B::mod, mod).link(B::x, x);
  if (inputs.references) block.link(B::references, *inputs.references);
  if (inputs.reference_timestep) block.link(B::reference_timestep, *inputs.reference_timestep);
  blocks::Slots slots(file_, block, "final.block");
  linear(slots, B::weight, B::bias, top_("final_layer.linear"), s_.out_width, s_.hidden);
  return block[B::out];
}

}  // namespace heddle::denoisers
