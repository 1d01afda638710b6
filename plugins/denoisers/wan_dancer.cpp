#include "wan_dancer.h"

#include <algorithm>
#include <iterator>

#include "patches.h"
#include "wan_dancer_blocks.h"

namespace heddle::denoisers {
namespace {

const std::string kMusicIn = "music_projection", kMusicLayers = "music_encoder.",
                  kMusicLooks = "music_injector.injector.";
// The layers behind which the published model adds the music; no tensor tells them.
constexpr int kMusicBehind[] = {0, 4, 8, 12, 16, 20, 24, 27};
constexpr std::uint32_t kOfMusic = HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL;

Part filter_of_one_frame(const std::string& tensor) {
  Part part{tensor};
  part.frame = 1;
  return part;
}

}  // namespace

MusicSizes read_music_sizes(const Checkpoint& file, const WanNames& names, const WanSizes& sizes) {
  MusicSizes s{};
  if (!names.has(kMusicIn + ".weight")) return s;
  s.numbers = file.size(names.one(kMusicIn + ".weight"), 1);
  s.width = file.size(names.one(kMusicIn + ".weight"), 0);
  s.layers = blocks::layer_count(file, names.one(kMusicLayers));
  s.looks = blocks::layer_count(file, names.one(kMusicLooks));
  const auto damaged = [&](const std::string& what) {
    return Error(HEDDLE_INVALID_ARGUMENT,
                 file.path() + ": " + what + ". The file is damaged or of another model.");
  };
  if (s.looks < 1 || s.looks > int(std::size(kMusicBehind)) ||
      kMusicBehind[s.looks - 1] >= sizes.layers)
    throw damaged(std::to_string(s.looks) + " looks at a music in a model of " +
                  std::to_string(sizes.layers) + " layers");
  if (s.width < 1 || s.width % (2 * kMusicHeads) != 0 || sizes.width % s.width != 0)
    throw damaged("a music of " + std::to_string(s.width) + " numbers, which are no " +
                  std::to_string(kMusicHeads) + " heads or no part of the model's width of " +
                  std::to_string(sizes.width));
  return s;
}

WanDancer::WanDancer(const Checkpoint& file, const WanNames& names, const WanSizes& sizes,
                     double eps, Blocks& graph, const Source& x)
    : file_(file),
      names_(names),
      s_(sizes),
      eps_(eps),
      graph_(graph),
      x_(x),
      frame_places_(graph.input("frame_places", kOfMusic)),
      strength_(graph.input("music_strength", kOfMusic)),
      moments_(add_music()) {}

void WanDancer::linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
                       const std::string& module, std::int64_t out, std::int64_t in) const {
  slots.fill(matrix, names_.one(module + ".weight"), {out, in});
  slots.fill(bias, names_.one(module + ".bias"), {out});
}

Source WanDancer::add_music() {
  using I = WanMusicIn;
  using S = WanMusicSpread;
  const MusicSizes& m = s_.sound.music;
  Block in = graph_.add<I>("embed.music");
  in.link(I::music, graph_.input("music", kOfMusic | HEDDLE_INPUT_BATCH));
  blocks::Slots slots(file_, in, "embed.music");
  linear(slots, I::weight, I::bias, kMusicIn, m.width, m.numbers);
  Source hidden = in[I::out];
  for (int layer = 0; layer < m.layers; ++layer) hidden = add_music_layer(layer, hidden);
  Block spread = graph_.add<S>("embed.music_spread");
  spread.link(S::hidden, hidden).link(S::x, x_).set(S::width, s_.width);
  return spread[S::out];
}

Source WanDancer::add_music_layer(int layer, const Source& hidden) const {
  using B = WanMusicLayer;
  const std::string number = std::to_string(layer), path = "embed.music_layer." + number,
                    at = kMusicLayers + number + ".", look = at + "self_attn.";
  const std::int64_t d = s_.sound.music.width;
  Block block = graph_.add<B>(path);
  block.link(B::hidden, hidden);
  blocks::Slots slots(file_, block, path);
  const auto norm = [&](const Weight& weight, const Weight& bias, const char* name) {
    slots.fill(weight, names_.one(at + name + ".weight"), {d});
    slots.fill(bias, names_.one(at + name + ".bias"), {d});
  };
  // The publishers' files have queries, keys and values in one tensor, ComfyUI's may have three.
  const auto fill_qkv = [&](const Weight& slot, const std::string& kind, const Shape& shape) {
    if (names_.has(look + "in_proj_" + kind))
      return slots.fill(slot, names_.one(look + "in_proj_" + kind), shape);
    std::vector<Part> parts;
    for (const char* part : {"q_proj.", "k_proj.", "v_proj."})
      parts.push_back({names_.one(look + part + kind)});
    slots.fill(slot, parts, shape);
  };
  norm(B::norm, B::norm_bias, "norm1");
  fill_qkv(B::qkv, "weight", {3 * d, d});
  fill_qkv(B::qkv_bias, "bias", {3 * d});
  linear(slots, B::proj, B::proj_bias, look + "out_proj", d, d);
  norm(B::last_norm, B::last_norm_bias, "norm2");
  const std::int64_t inner = file_.size(names_.one(at + "linear1.weight"), 0);
  linear(slots, B::up, B::up_bias, at + "linear1", inner, d);
  linear(slots, B::down, B::down_bias, at + "linear2", d, inner);
  return block[B::out];
}

std::pair<Source, Source> WanDancer::rope() const {
  using D = WanDancerRope;
  using B = D::B;
  Block block = graph_.add<D>("embed.rope");
  block.link(B::x, x_).link(D::frame_places, frame_places_);
  block.set(B::axis_0, s_.axes[0]).set(B::axis_1, s_.axes[1]).set(B::axis_2, s_.axes[2]);
  return {block[B::cos], block[B::sin]};
}

Source WanDancer::embed_latent(const Source& concat) const {
  using D = WanDancerLatentIn;
  using B = D::B;
  Block block = graph_.add<D>("embed.latent");
  block.link(B::x, x_).link(B::concat, concat).link(D::frame_places, frame_places_);
  blocks::Slots slots(file_, block, "embed.latent");
  const auto filter = [&](const Weight& weight, const Weight& bias, const char* module) {
    slots.fill(weight, {filter_of_one_frame(names_.one(std::string(module) + ".weight"))},
               {s_.width, s_.in_channels, 1, kPatch, kPatch});
    slots.fill(bias, names_.one(std::string(module) + ".bias"), {s_.width});
  };
  filter(B::weight, B::bias, "patch_embedding");
  filter(D::apart, D::apart_bias, "patch_embedding_global");
  return block[B::out];
}

Source WanDancer::join_vision(const Source& reference, const Source& own) const {
  using B = WanVisionJoin;
  Block block = graph_.add<B>("embed.vision_join");
  block.link(B::first, reference).link(B::second, own);
  return block[B::out];
}

Source WanDancer::behind(int layer, const Source& hidden) const {
  using T = WanMusicTold;
  using A = WanMusicAdd;
  const int* const end = kMusicBehind + s_.sound.music.looks;
  const int* const found = std::find(kMusicBehind, end, layer);
  if (found == end) return hidden;
  const std::string number = std::to_string(found - kMusicBehind), path = "music." + number;
  Block told = graph_.add<T>(path + ".told");
  told.link(T::moments, moments_).link(T::strength, strength_);
  blocks::Slots slots(file_, told, path + ".told");
  linear(slots, T::v, T::v_bias, kMusicLooks + number + ".v", s_.width, s_.width);
  linear(slots, T::proj, T::proj_bias, kMusicLooks + number + ".o", s_.width, s_.width);
  Block add = graph_.add<A>(path + ".add");
  add.link(A::hidden, hidden).link(A::told, told[T::out]).link(A::x, x_);
  return add[A::out];
}

Source WanDancer::final_block(const Source& hidden, const Source& mod,
                              const Source& apart_mod) const {
  using D = WanDancerFinal;
  using B = D::B;
  Block block = graph_.add<D>("final.block");
  block.link(B::hidden, hidden).link(B::mod, mod).link(D::apart_mod, apart_mod);
  block.link(B::x, x_).link(D::frame_places, frame_places_).set(B::eps, eps_);
  blocks::Slots slots(file_, block, "final.block");
  const std::int64_t out = s_.channels * kPatchArea;
  linear(slots, B::weight, B::bias, "head.head", out, s_.width);
  linear(slots, D::apart, D::apart_bias, "head_global.head", out, s_.width);
  return block[B::out];
}

}  // namespace heddle::denoisers
