#include "dual_stream.h"

#include <heddle/checked.hpp>

#include "flux_blocks.h"
#include "kept_references.h"
#include "patches.h"

namespace heddle::denoisers {
namespace {

std::vector<std::int64_t> read_axes(const Checkpoint& file, const Value& config,
                                    std::int64_t head_size, std::size_t count) {
  std::vector<std::int64_t> found(count, head_size / std::int64_t(count));
  if (count == 3) found = {16, (head_size - 16) / 2, (head_size - 16) / 2};
  const Value axes = config.field("axes_dims_rope");
  if (axes && !axes.is(HEDDLE_KIND_NONE)) {
    if (axes.count() != count)
      throw Error(HEDDLE_UNSUPPORTED,
                  file.path() + ": axes_dims_rope lists " + std::to_string(axes.count()) +
                      " axes, tokens of this family have " + std::to_string(count));
    for (std::uint32_t i = 0; i < count; ++i) found[i] = axes.item(i).as<std::int64_t>();
  }
  std::int64_t sum = 0;
  for (const std::int64_t axis : found) {
    sum += axis;
    if (axis <= 0 || axis % 2 != 0) sum = -1 << 20;
  }
  if (sum != head_size)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": rotary axes " + blocks::shape_text(found) +
                    " do not make up a head of size " + std::to_string(head_size) +
                    ": each has to be even, and their sum the head size");
  return found;
}

// `nag` has no port where a model has no such input.
template <class B>
void link_nag(Block& block, const Source& nag) {
  if (nag.port != nullptr) block.link(B::nag, nag);
}

using Segments = std::vector<std::pair<std::int64_t, std::int64_t>>;  // length, unit

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
                              const FindModule& first_block, const std::string& prefix,
                              const StreamKind& kind) {
  const auto size = [&](const ModuleParts& module, std::uint32_t axis) {
    return file.size(module("weight").front().tensor, axis);
  };
  StreamSizes s{};
  s.kind = kind;
  s.hidden = size(top("img_in"), 0);
  s.in_width = size(top("img_in"), 1);
  // ControlNets have no last layer.
  const std::string last = top("final_layer.linear")("weight").front().tensor;
  s.out_width = file.has(last) ? file.size(last, 0) : s.in_width;
  s.context_width = size(top("txt_in"), 1);
  s.time_width = size(top(kind.time), 1);
  s.head_size = size(first_block("img_attn.norm.query_norm"), 0);
  s.doubles = checked_cast<int>(
      config.get<std::int64_t>("num_layers", blocks::layer_count(file, prefix)), "num_layers");
  s.expose_blocks = config.get<bool>("expose_blocks", false);
  if (s.head_size <= 0 || s.hidden % s.head_size != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": a width of " + std::to_string(s.hidden) +
                                             " is no multiple of the head size " +
                                             std::to_string(s.head_size));
  s.heads = s.hidden / s.head_size;
  const std::int64_t area = kind.patch * kind.patch;
  if (s.in_width % area != 0 || s.out_width % area != 0 || s.out_width > s.in_width)
    throw Error(HEDDLE_UNSUPPORTED, file.path() + ": tokens of " + std::to_string(s.in_width) +
                                        " numbers in, " + std::to_string(s.out_width) +
                                        " out are no patches of a latent");
  s.axes = read_axes(file, config, s.head_size, kind.axes);
  return s;
}

void DualStreams::linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
                         const ModuleParts& find, std::int64_t out, std::int64_t in) {
  slots.fill(matrix, find("weight"), {out, in});
  slots.fill(bias, find("bias"), {out});
}

void DualStreams::layer(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
                        const ModuleParts& find, std::int64_t out, std::int64_t in) const {
  if (s_.kind.is_biased) return linear(slots, matrix, bias, find, out, in);
  slots.fill(matrix, find("weight"), {out, in});
}

// It is its first bias's length, or half of a gated matrix's; when that is missing, filling the
// slot says so.
std::int64_t DualStreams::mlp_width(const ModuleParts& up) const {
  if (s_.kind.is_gated) {
    const std::string matrix = up("weight").front().tensor;
    return file_.has(matrix) ? file_.size(matrix, 0) / 2 : 3 * s_.hidden;
  }
  const std::string bias = up("bias").front().tensor;
  return file_.has(bias) ? file_.size(bias, 0) : 4 * s_.hidden;
}

Source DualStreams::embed_text(const Source& context, const Source& x, const Source& nag,
                               std::int64_t least) const {
  using B = FluxTextIn;
  Block block = graph_.add<B>("embed.text");
  block.link(B::context, context).link(B::x, x);
  link_nag<B>(block, nag);
  block.set(B::least, least);
  blocks::Slots slots(file_, block, "embed.text");
  layer(slots, B::weight, B::bias, top_("txt_in"), s_.hidden, s_.context_width);
  return block[B::out];
}

Source DualStreams::embed_image(const Source& x, const Source& nag,
                                const Source* references) const {
  using B = FluxImageIn;
  Block block = graph_.add<B>("embed.image");
  block.link(B::x, x).set(B::patch, s_.kind.patch);
  link_nag<B>(block, nag);
  if (references != nullptr) block.link(B::references, *references);
  if (s_.in_width > s_.out_width)
    block.link(B::concat, graph_.input("concat", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH));
  blocks::Slots slots(file_, block, "embed.image");
  layer(slots, B::weight, B::bias, top_("img_in"), s_.hidden, s_.in_width);
  return block[B::out];
}

StreamModulation DualStreams::double_modulation(const std::string& path, const Source& vector,
                                                const ModuleParts& img,
                                                const ModuleParts& txt) const {
  using M = FluxDoubleModulation;
  Block block = graph_.add<M>(path);
  block.link(M::vector, vector);
  blocks::Slots slots(file_, block, path);
  layer(slots, M::img_weight, M::img_bias, img, 6 * s_.hidden, s_.hidden);
  layer(slots, M::txt_weight, M::txt_bias, txt, 6 * s_.hidden, s_.hidden);
  return {block[M::img], block[M::txt]};
}

template <class Plain, class Kept>
Block DualStreams::add_block(const std::string& path, const AttentionInputs& attention) const {
  if (!attention.keeps) return graph_.add<Plain>(path + ".block");
  const std::string name = "kept." + path;
  Block block = graph_.add<Kept>(path + ".block");
  block.link(Kept::kept,
             graph_.input(name.c_str(), HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL |
                                            HEDDLE_INPUT_BATCH));
  graph_.output(name.c_str(), block[Kept::kept_out]);
  return block;
}

void DualStreams::add_double(int index, const FindModule& find, const Source& vector,
                             const AttentionInputs& attention, Source& img, Source& txt) const {
  const StreamModulation modulation =
      double_modulation("double." + std::to_string(index) + ".modulation", vector,
                        find("img_mod.lin"), find("txt_mod.lin"));
  add_double(index, find, modulation, attention, img, txt);
}

void DualStreams::add_double(int index, const FindModule& find, const StreamModulation& modulation,
                             const AttentionInputs& attention, Source& img, Source& txt) const {
  using B = FluxDouble;
  const std::string path = "double." + std::to_string(index);
  const std::int64_t d = s_.hidden, head = s_.head_size;
  Block block = add_block<B, FluxKeptDouble>(path, attention);
  block.link(B::img, img).link(B::txt, txt).link(B::cos, attention.cos).link(B::sin, attention.sin);
  link_nag<B>(block, attention.nag);
  if (attention.references && attention.reference_timestep)
    block.link(B::references, *attention.references)
        .link(B::reference_timestep, *attention.reference_timestep);
  if (attention.first && attention.reference_timestep)
    block.link(B::first, *attention.first)
        .link(B::reference_timestep, *attention.reference_timestep);
  if (attention.control_double) block.link(B::control, *attention.control_double);
  if (attention.control_first) block.link(B::control_first, *attention.control_first);
  if (attention.control_double || attention.control_first)
    block.set(B::control_index, index).set(B::control_depth, s_.doubles);
  block.link(B::img_mod, modulation.img).link(B::txt_mod, modulation.txt);
  block.set(B::heads, s_.heads).set(B::gated, s_.kind.is_gated);
  blocks::Slots slots(file_, block, path + ".block");
  const std::int64_t mlp = mlp_width(find("img_mlp.0")), unit = mlp_unit(mlp);
  for (const StreamSlots& w : kStreams) {
    const auto module = [&](const char* name) { return find(std::string(w.name) + name); };
    layer(slots, w.qkv, w.qkv_bias, module("attn.qkv"), 3 * d, d);
    layer(slots, w.proj, w.proj_bias, module("attn.proj"), d, d);
    layer(slots, w.up, w.up_bias, module("mlp.0"), (s_.kind.is_gated ? 2 : 1) * mlp, d);
    layer(slots, w.down, w.down_bias, module("mlp.2"), d, mlp);
    slots.fill(w.q_norm, module("attn.norm.query_norm")("weight"), {head});
    slots.fill(w.k_norm, module("attn.norm.key_norm")("weight"), {head});
    if (attention.keeps) continue;
    // Divided among devices: heads, and stretches of the MLP.
    const Segments queries(3, {d, head}), raised(s_.kind.is_gated ? 2 : 1, {mlp, unit});
    block.shard(w.qkv, 0, queries).shard(w.proj, 1, {{d, head}});
    block.shard(w.up, 0, raised).shard(w.down, 1, {{mlp, unit}});
    if (s_.kind.is_biased) block.shard(w.qkv_bias, 0, queries).shard(w.up_bias, 0, raised);
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
  layer(slots, B::weight, B::bias, find, parts * s_.hidden, s_.hidden);
  return block[B::out];
}

Source DualStreams::add_single(int index, const FindModule& find, const Source& modulation,
                               const AttentionInputs& attention, const Source& hidden,
                               const Source& x, const Source* references) const {
  using B = FluxSingle;
  const std::string name = "single." + std::to_string(index), path = name + ".block";
  Block block = add_block<B, FluxKeptSingle>(name, attention);
  block.link(B::hidden, hidden).link(B::cos, attention.cos).link(B::sin, attention.sin);
  block.link(B::x, x).link(B::mod, modulation);
  link_nag<B>(block, attention.nag);
  if (references != nullptr) block.link(B::references, *references);
  if (references == nullptr && attention.references)
    block.link(B::references, *attention.references);
  if (attention.reference_timestep)
    block.link(B::reference_timestep, *attention.reference_timestep);
  if (attention.first) block.link(B::first, *attention.first);
  if (attention.control_single)
    block.link(B::control, *attention.control_single)
        .set(B::control_index, index)
        .set(B::control_depth, attention.singles);
  block.set(B::heads, s_.heads).set(B::gated, s_.kind.is_gated).set(B::patch, s_.kind.patch);
  blocks::Slots slots(file_, block, path);
  // The last projection reads attention and MLP side by side: its columns tell the width of the
  // MLP.
  const std::int64_t d = s_.hidden, head = s_.head_size;
  const std::string down = find("linear2")("weight").front().tensor;
  const std::int64_t mlp =
      file_.has(down) ? file_.size(down, 1) - d : (s_.kind.is_gated ? 3 : 4) * d;
  const Segments queries(3, {d, head}), raised(s_.kind.is_gated ? 2 : 1, {mlp, mlp_unit(mlp)});
  layer(slots, B::qkv, B::qkv_bias, find("linear1.qkv"), 3 * d, d);
  layer(slots, B::up, B::up_bias, find("linear1.mlp"), std::int64_t(raised.size()) * mlp, d);
  layer(slots, B::down, B::down_bias, find("linear2"), d, d + mlp);
  if (!attention.keeps) {
    block.shard(B::qkv, 0, queries).shard(B::up, 0, raised);
    block.shard(B::down, 1, {{d, head}, {mlp, mlp_unit(mlp)}});
  }
  if (s_.kind.is_biased && !attention.keeps)
    block.shard(B::qkv_bias, 0, queries).shard(B::up_bias, 0, raised);
  slots.fill(B::q_norm, find("norm.query_norm")("weight"), {head});
  slots.fill(B::k_norm, find("norm.key_norm")("weight"), {head});
  return block[B::out];
}

Source DualStreams::add_final(const Source& vector, const Source& hidden, const Source& x,
                              const AttentionInputs& inputs) const {
  return add_final_block(
      modulation("final.modulation", vector, top_("final_layer.adaLN_modulation.1"), 2), hidden, x,
      inputs);
}

Source DualStreams::add_final_block(const Source& modulation, const Source& hidden, const Source& x,
                                    const AttentionInputs& inputs) const {
  using B = FluxFinal;
  Block block = graph_.add<B>("final.block");
  block.link(B::hidden, hidden).link(B::mod, modulation).link(B::x, x);
  block.set(B::patch, s_.kind.patch);
  if (inputs.references) block.link(B::references, *inputs.references);
  if (inputs.reference_timestep) block.link(B::reference_timestep, *inputs.reference_timestep);
  blocks::Slots slots(file_, block, "final.block");
  layer(slots, B::weight, B::bias, top_("final_layer.linear"), s_.out_width, s_.hidden);
  return block[B::out];
}

}  // namespace heddle::denoisers
