#include "minimax_layers.h"

#include "dual_stream.h"

namespace heddle::denoisers {
namespace {

// Kinds of tokens that are modulated apart, in the order of the rows of a layer's matrix.
enum MinimaxModality { kVideoRows, kTextRows, kSoundRows, kMinimaxModalities };
constexpr int kLayerPieces = 6;

}  // namespace

Source MinimaxLayers::add(const std::string& path, const std::string& at, const Source& hidden,
                          const MinimaxTold& told, const More& more) const {
  using B = MinimaxLayer;
  const Source video = modulate(path + ".video", at, told.video, kVideoRows, 2),
               text = modulate(path + ".text", at, told.video, kTextRows, 1),
               sound = modulate(path + ".sound", at, told.sound, kSoundRows, 2);
  Block block = graph_.add<B>(path + ".block");
  block.link(B::hidden, hidden).link(B::cos, told.cos).link(B::sin, told.sin);
  block.link(B::video_mod, video).link(B::text_mod, text).link(B::sound_mod, sound);
  block.link(B::picture_rows, told.picture_rows);
  block.link(B::context, told.context).link(B::audio, told.audio);
  block.link(B::references, told.references).link(B::sound_references, told.sound_references);
  block.set(B::frequencies, s_.frequencies).set(B::eps, eps_);
  blocks::Slots slots(file_, block, path + ".block");
  const std::int64_t inner = s_.heads * s_.head;
  const std::vector<Part> fused = names_.parts(at + "attn.qkv_proj.weight");
  if (fused.size() > 1) {
    slots.fill(B::qk, {fused[0], fused[1]}, {2 * inner, s_.width});
    slots.fill(B::v, {fused[2]}, {inner, s_.width});
  } else {
    const std::string& tensor = fused[0].tensor;
    check_rows(tensor, 3 * inner);
    slots.fill(B::qk, {{tensor, 0, 2 * inner}}, {2 * inner, s_.width});
    slots.fill(B::v, {{tensor, 2 * inner, 3 * inner}}, {inner, s_.width});
  }
  fill_rest<B>(slots, at);
  if (more) more(block, slots);
  const std::int64_t unit = mlp_unit(s_.mlp);
  block.shard(B::qk, 0, {{inner, s_.head}, {inner, s_.head}}).shard(B::v, 0, {{inner, s_.head}});
  block.shard(B::proj, 1, {{inner, s_.head}});
  block.shard(B::up, 0, {{s_.mlp, unit}, {s_.mlp, unit}}).shard(B::down, 1, {{s_.mlp, unit}});
  return block[B::out];
}

void MinimaxLayers::linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
                           const std::string& module, std::int64_t out, std::int64_t in) const {
  slots.fill(matrix, names_.one(module + ".weight"), {out, in});
  slots.fill(bias, names_.one(module + ".bias"), {out});
}

std::vector<Part> MinimaxLayers::norms(const std::string& at) const {
  return {{names_.one(at + "norm1.weight")}, {names_.one(at + "norm2.weight")}};
}

Source MinimaxLayers::modulate(const std::string& path, const std::string& at, const Source& vector,
                               std::int64_t kind, std::int64_t rows) const {
  using B = MinimaxModulation;
  Block block = graph_.add<B>(path + ".modulation");
  block.link(B::vector, vector).set(B::rows, rows);
  blocks::Slots slots(file_, block, path + ".modulation");
  const std::string module = at + "adaln_proj.linear";
  const std::int64_t each = kLayerPieces * s_.width;
  // The others' rows are checked with it: all of them have to be there.
  check_rows(names_.one(module + ".weight"), kMinimaxModalities * each);
  const auto part = [&](const char* name) {
    return std::vector<Part>{{names_.one(module + name), kind * each, (kind + 1) * each}};
  };
  slots.fill(B::weight, part(".weight"), {each, s_.vector});
  slots.fill(B::bias, part(".bias"), {each});
  slots.fill(B::norms, norms(at), {2 * s_.width});
  return block[B::out];
}

void MinimaxLayers::check_rows(const std::string& tensor, std::int64_t rows) const {
  if (!file_.has(tensor) || file_.size(tensor, 0) == rows) return;
  throw Error(HEDDLE_INVALID_ARGUMENT, file_.path() + ": '" + tensor + "' has " +
                                           std::to_string(file_.size(tensor, 0)) + " rows, " +
                                           std::to_string(rows) +
                                           " are needed. The file is damaged or of another model.");
}

}  // namespace heddle::denoisers
