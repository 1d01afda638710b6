#include "wan_humo.h"

#include <iterator>

#include "patches.h"
#include "wan_humo_blocks.h"

namespace heddle::denoisers {
namespace {

const std::string kHumoHearing = "audio_proj.audio_proj_glob_",
                  kHumoLook = "audio_cross_attn_wrapper.";

// What the autoencoder makes of black frames, in the model's units: of the first, the second and
// all others. ComfyUI's constants.
constexpr double kBlackFrames[][16] = {
    {0.8660, -0.4326, -0.0017, -0.4884, -0.5283, 0.9207, -0.9896, 0.4433, -0.5543, -0.0113, 0.5753,
     -0.6000, -0.8346, -0.3497, -0.1926, -0.6938},
    {1.0869, -1.2370, 0.0206, -0.4357, -0.6411, 2.0307, -1.5972, 1.2659, -0.8595, -0.4654, 0.9638,
     -1.6330, -1.4310, -0.1098, -0.3856, -1.4583},
    {0.8642, -1.8583, 0.1577, 0.1350, -0.3641, 2.5863, -1.9670, 1.6065, -1.0475, -0.8678, 1.1734,
     -1.8138, -1.5933, -0.7721, -0.3289, -1.3745}};

}  // namespace

HumoSizes read_humo_sizes(const Checkpoint& file, const WanNames& names) {
  HumoSizes s{};
  if (!names.has(kHumoHearing + "1.layer.weight")) return s;
  s.width = file.size(names.one(kHumoHearing + "norm.layer.weight"), 0);
  const std::int64_t all = file.size(names.one(kHumoHearing + "3.layer.weight"), 0),
                     heard = file.size(names.one(kHumoHearing + "1.layer.weight"), 1);
  s.parts = s.width < 1 ? 0 : all / s.width;
  s.numbers = heard / (kHumoWindow * kHumoStates);
  if (s.parts < 1 || s.parts * s.width != all || s.numbers < 1 ||
      s.numbers * kHumoWindow * kHumoStates != heard)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": " + std::to_string(heard) + " numbers of a sound and " +
                    std::to_string(all) + " of its tokens are not those of HuMo, which hears " +
                    std::to_string(kHumoWindow) + " moments of " + std::to_string(kHumoStates) +
                    " states in a frame. The file is damaged or of another model.");
  return s;
}

void add_humo_settings(const WanSizes& s, Blocks& graph) {
  graph.setting("heard_window", kHumoWindow);
  graph.setting("heard_states", kHumoStates);
  graph.setting("heard_width", s.sound.humo.numbers);
  if (s.in_channels == s.channels || s.channels != std::int64_t(std::size(kBlackFrames[0]))) return;
  std::vector<Value> frames;
  for (const auto& frame : kBlackFrames) {
    std::vector<Value> numbers;
    for (const double number : frame) numbers.push_back(value_of(number));
    frames.push_back(list_of(numbers));
  }
  graph.setting("concat_always", list_of(frames));
}

WanHumo::WanHumo(const Checkpoint& file, const WanNames& names, const WanSizes& sizes, double eps,
                 Blocks& graph, const Source& x)
    : file_(file), names_(names), s_(sizes), eps_(eps), graph_(graph), x_(x) {
  using B = WanHumoReference;
  const Source reference = graph.input(
      "reference", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH | HEDDLE_INPUT_OPTIONAL);
  Block block = graph.add<B>("embed.reference");
  block.link(B::latent, reference);
  blocks::Slots slots(file, block, "embed.reference");
  Part filter{names.one("patch_embedding.weight")};
  filter.frame = 1;
  slots.fill(B::weight, {filter}, {s_.width, s_.in_channels, 1, kPatch, kPatch});
  slots.fill(B::bias, names.one("patch_embedding.bias"), {s_.width});
  shown_ = block[B::out];
  heard_ = add_sound_of_frames(reference);
}

void WanHumo::linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
                     const std::string& module, std::int64_t out, std::int64_t in) const {
  slots.fill(matrix, names_.one(module + ".weight"), {out, in});
  slots.fill(bias, names_.one(module + ".bias"), {out});
}

Source WanHumo::add_sound_of_frames(const Source& reference) const {
  using B = WanHumoIn;
  const HumoSizes& h = s_.sound.humo;
  Block block = graph_.add<B>("embed.heard");
  block.link(B::heard, graph_.input("heard", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH |
                                                 HEDDLE_INPUT_OPTIONAL));
  block.link(B::reference, reference);
  blocks::Slots slots(file_, block, "embed.heard");
  const std::int64_t middle = file_.size(names_.one(kHumoHearing + "1.layer.weight"), 0);
  linear(slots, B::first, B::first_bias, kHumoHearing + "1.layer", middle,
         kHumoWindow * kHumoStates * h.numbers);
  linear(slots, B::second, B::second_bias, kHumoHearing + "2.layer", middle, middle);
  linear(slots, B::last, B::last_bias, kHumoHearing + "3.layer", h.parts * h.width, middle);
  slots.fill(B::norm, names_.one(kHumoHearing + "norm.layer.weight"), {h.width});
  slots.fill(B::norm_bias, names_.one(kHumoHearing + "norm.layer.bias"), {h.width});
  return block[B::out];
}

Source WanHumo::begin(const Source& hidden) const {
  using B = WanHumoJoin;
  Block block = graph_.add<B>("embed.join");
  block.link(B::hidden, hidden).link(B::shown, shown_);
  return block[B::out];
}

void WanHumo::add_to(Block& block, const std::string& path, const std::string& at) const {
  using K = WanKeys;
  using B = WanHumoLayer;
  const std::string look = at + kHumoLook + "audio_cross_attn.",
                    keys = path.substr(0, path.rfind('.')) + ".sound";
  const std::int64_t d = s_.width, k = s_.sound.humo.width;
  Block kv = graph_.add<K>(keys);
  kv.link(K::seen, heard_).link(K::x, x_).set(K::eps, eps_);
  blocks::Slots of_keys(file_, kv, keys);
  linear(of_keys, K::k, K::k_bias, look + "k", d, k);
  linear(of_keys, K::v, K::v_bias, look + "v", d, k);
  of_keys.fill(K::norm, names_.one(look + "norm_k.weight"), {d});
  block.link(B::sound_kv, kv[K::out]).link(B::x, x_).set(B::parts, s_.sound.humo.parts);
  blocks::Slots slots(file_, block, path);
  slots.fill(B::sound_norm, names_.one(at + kHumoLook + "norm1_audio.weight"), {d});
  slots.fill(B::sound_norm_bias, names_.one(at + kHumoLook + "norm1_audio.bias"), {d});
  linear(slots, B::sound_q, B::sound_q_bias, look + "q", d, d);
  slots.fill(B::sound_q_norm, names_.one(look + "norm_q.weight"), {d});
  linear(slots, B::sound_proj, B::sound_proj_bias, look + "o", d, d);
}

}  // namespace heddle::denoisers
