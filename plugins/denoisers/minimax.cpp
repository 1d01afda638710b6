#include "minimax.h"

#include <array>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "minimax_layers.h"
#include "minimax_names.h"
#include "minimax_patch.h"
#include "minimax_sizes.h"
#include "patches.h"
#include "plugins/blocks/slots.h"
#include "plugins/blocks/sparse_config.h"

namespace heddle::denoisers {
namespace {

constexpr int kFinalPieces = 2;
// Pictures are shown with a little noise.
constexpr double kPictureNoise = 0.001;

// Builds the graph of one file.
class MinimaxBuilder {
 public:
  MinimaxBuilder(const Checkpoint& file, const MinimaxNames& names, const MinimaxSizes& sizes,
                 const Value& config, Blocks& graph)
      : file_(file),
        names_(names),
        s_(sizes),
        theta_(config.get<double>("rope_theta", 10000)),
        eps_(config.get<double>("norm_eps", 1e-5)),
        sparse_(sparse_layers(config)),
        graph_(graph),
        layers_(file, names, sizes, eps_, graph) {}

  void run(const std::vector<ModelPatch>& applied) {
    add_inputs();
    const Source video = add_vector("embed.video.vector", in_.timestep, kPictureNoise),
                 sound = add_vector("embed.sound.vector", in_.sound_timestep, 0);
    MinimaxTold told{.video = video,
                     .sound = sound,
                     .cos = {},
                     .sin = {},
                     .context = in_.context,
                     .picture_rows = in_.picture_rows,
                     .audio = in_.audio,
                     .references = in_.references,
                     .sound_references = in_.sound_references};
    add_rope(told);
    if (sparse_) add_cubes();
    Source hidden = add_sequence();
    std::list<MinimaxPatch> patches;  // which stay where they are
    for (const ModelPatch& patch : applied)
      of_patch(patch, [&] {
        patches.emplace_back(file_, patch, s_, names_.has(kMinimaxTable), eps_, graph_)
            .begin(hidden, told);
      });
    for (int i = 0; i < s_.layers; ++i) {
      const std::string number = std::to_string(i), at = "blocks." + number + ".";
      hidden =
          layers_.add("layer." + number, at, hidden, told,
                      [&](Block& block, blocks::Slots& slots) { link_cubes(block, slots, i, at); });
      for (MinimaxPatch& patch : patches)
        of_patch(patch.told(), [&] { hidden = patch.after_layer(i, hidden); });
    }
    add_ends(hidden, video, sound);
  }

 private:
  struct Inputs {
    Source x, audio, timestep, sound_timestep, carry, kept, gain, context, picture_rows, references,
        positions, sound_references, sound_positions, media_start;
  };

  void add_inputs() {
    constexpr std::uint32_t kPoint = HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH,
                            kMaybe = HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL;
    in_.x = graph_.input("x", kPoint);
    in_.audio = graph_.input("audio", kPoint);
    in_.timestep = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    in_.sound_timestep = graph_.input("sound_timestep", HEDDLE_INPUT_PRECOMPUTED);
    in_.carry = graph_.input("sound_carry", HEDDLE_INPUT_PRECOMPUTED);
    in_.kept = graph_.input("sound_kept", HEDDLE_INPUT_PRECOMPUTED);
    in_.gain = graph_.input("sound_gain", HEDDLE_INPUT_PRECOMPUTED);
    in_.context = graph_.input("context", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    in_.picture_rows = graph_.input("picture_rows", kMaybe);
    in_.references = graph_.input("references", kMaybe | HEDDLE_INPUT_BATCH);
    in_.positions = graph_.input("reference_positions", kMaybe);
    in_.sound_references = graph_.input("sound_references", kMaybe | HEDDLE_INPUT_BATCH);
    in_.sound_positions = graph_.input("sound_reference_positions", kMaybe);
    in_.media_start = graph_.input("media_start", kMaybe);
  }

  // Blocks "cubes": a model without them is dense.
  void add_cubes() {
    using B = MinimaxCubes;
    constexpr std::uint32_t kMaybe = HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL;
    const Source none = graph_.input("no_cubes", kMaybe);
    Block block = graph_.add<B>(blocks::kCubesPath);
    block.link(B::x, in_.x).link(B::audio, in_.audio).link(B::context, in_.context);
    block.link(B::references, in_.references).link(B::sound_references, in_.sound_references);
    block.link(B::reference_pools, graph_.input("reference_pools", kMaybe));
    block.link(B::sound_pools, graph_.input("sound_reference_pools", kMaybe));
    block.link(B::order, none).link(B::places, none).link(B::weights, none).link(B::pools, none);
    cubes_ = {block[B::order_out], block[B::places_out], block[B::weights_out],
              block[B::pools_out]};
  }
  void link_cubes(Block& block, blocks::Slots& slots, int layer, const std::string& at) {
    using B = MinimaxLayer;
    if (!sparse_ || sparse_->is_dense(layer)) return;
    block.link(B::order, cubes_[0]).link(B::places, cubes_[1]);
    block.link(B::weights, cubes_[2]).link(B::pools, cubes_[3]);
    block.set(B::share, sparse_->share).set(B::least, sparse_->least_tokens);
    const std::string gate = "attn.to_gate_compress.weight";
    if (!names_.has(at + gate)) return;
    const std::int64_t inner = s_.heads * s_.head;
    slots.fill(B::gate, names_.one(at + gate), {inner, s_.width});
    block.shard(B::gate, 0, {{inner, s_.head}});
  }

  Source add_vector(const std::string& path, const Source& level, double pinned) {
    using B = MinimaxVector;
    Block block = graph_.add<B>(path);
    block.link(B::level, level).set(B::pinned, pinned);
    blocks::Slots slots(file_, block, path);
    if (names_.has(kMinimaxTable)) {
      const std::string table = names_.one(kMinimaxTable);
      slots.fill(B::table, table, {file_.size(table, 0), s_.vector});
      return block[B::out];
    }
    const std::string in = names_.one("time_embedder.proj_in.weight");
    const std::int64_t inner = file_.has(in) ? file_.size(in, 0) : s_.width,
                       waves = file_.has(in) ? file_.size(in, 1) : 2;
    layers_.linear(slots, B::time_in, B::time_in_bias, "time_embedder.proj_in", inner, waves);
    layers_.linear(slots, B::time_out, B::time_out_bias, "time_embedder.proj_out", s_.vector,
                   inner);
    return block[B::out];
  }

  void add_rope(MinimaxTold& told) {
    using B = MinimaxRope;
    Block block = graph_.add<B>("embed.rope");
    block.link(B::x, in_.x).link(B::audio, in_.audio).link(B::context, in_.context);
    block.link(B::positions, in_.positions).link(B::sound_positions, in_.sound_positions);
    block.link(B::media_start, in_.media_start);
    block.set(B::frequencies, s_.frequencies).set(B::theta, theta_);
    told.cos = block[B::cos], told.sin = block[B::sin];
  }

  Source add_text() {
    Block block = graph_.add<MinimaxTextIn>("embed.text");
    block.link(MinimaxTextIn::context, in_.context);
    blocks::Slots slots(file_, block, "embed.text");
    layers_.linear(slots, MinimaxTextIn::weight, MinimaxTextIn::bias, "condition_proj", s_.width,
                   s_.text);
    Source text = block[MinimaxTextIn::out];
    for (int i = 0; i < s_.refiners; ++i) {
      using B = MinimaxTextLayer;
      const std::string path = "text." + std::to_string(i),
                        at = "token_refiner.blocks." + std::to_string(i) + ".";
      Block layer = graph_.add<B>(path);
      layer.link(B::hidden, text).set(B::eps, eps_);
      blocks::Slots layer_slots(file_, layer, path);
      layer_slots.fill(B::norms, layers_.norms(at), {2 * s_.width});
      const std::int64_t inner = s_.heads * s_.head;
      layer_slots.fill(B::qkv, names_.parts(at + "attn.qkv_proj.weight"), {3 * inner, s_.width});
      layers_.fill_rest<B>(layer_slots, at);
      text = layer[B::out];
    }
    return text;
  }
  // A matrix of tokens of a latent, in a block that reads one input.
  template <class B>
  Source add_tokens(const std::string& path, const Input<Tensor>& port, const Source& from,
                    const std::string& module, std::int64_t numbers) {
    Block block = graph_.add<B>(path);
    block.link(port, from);
    blocks::Slots slots(file_, block, path);
    layers_.linear(slots, B::weight, B::bias, module, s_.width, numbers);
    return block[B::out];
  }
  Source add_sequence() {
    using B = MinimaxJoin;
    const std::int64_t patch = s_.channels * kPatchArea;
    const Source text = add_text();
    const Source shown = add_tokens<MinimaxShownIn>("embed.references", MinimaxShownIn::rows,
                                                    in_.references, "video_patch_proj", patch);
    const Source heard =
        add_tokens<MinimaxShownIn>("embed.sound_references", MinimaxShownIn::rows,
                                   in_.sound_references, "audio_patch_proj", s_.sound);
    using S = MinimaxSoundIn;
    Block sound_in = graph_.add<S>("embed.sound");
    sound_in.link(S::audio, in_.audio).link(S::carry, in_.carry);
    blocks::Slots sound_slots(file_, sound_in, "embed.sound");
    layers_.linear(sound_slots, S::weight, S::bias, "audio_patch_proj", s_.width, s_.sound);
    const Source sound = sound_in[S::out];
    const Source video = add_tokens<MinimaxVideoIn>("embed.video", MinimaxVideoIn::x, in_.x,
                                                    "video_patch_proj", patch);
    Block block = graph_.add<B>("join");
    block.link(B::txt, text).link(B::references, shown).link(B::sound_references, heard);
    block.link(B::sound, sound).link(B::video, video).set(B::eps, eps_);
    blocks::Slots(file_, block, "join")
        .fill(B::norm, names_.one("token_refiner.final_norm.weight"), {s_.width});
    return block[B::out];
  }

  Source modulate_end(const std::string& path, const Source& vector) {
    using B = MinimaxModulation;
    Block block = graph_.add<B>(path);
    block.link(B::vector, vector).set(B::rows, 1);
    blocks::Slots slots(file_, block, path);
    layers_.linear(slots, B::weight, B::bias, "final_layer.adaln_proj.linear",
                   kFinalPieces * s_.width, s_.vector);
    slots.fill(B::norms, names_.one("final_layer.norm.weight"), {s_.width});
    return block[B::out];
  }
  void add_ends(const Source& hidden, const Source& video, const Source& sound) {
    const std::int64_t heads = s_.output_heads;
    using V = MinimaxVideoFinal;
    Block pictures = graph_.add<V>("final.video");
    pictures.link(V::hidden, hidden).link(V::x, in_.x).set(V::eps, eps_);
    pictures.link(V::mod, modulate_end("final.video.modulation", video));
    blocks::Slots slots(file_, pictures, "final.video");
    layers_.linear(slots, V::weight, V::bias, "final_layer.video_out",
                   heads * s_.channels * kPatchArea, s_.width);
    if (heads > 1) pictures.link(V::heads, graph_.input("video_heads", HEDDLE_INPUT_PRECOMPUTED));
    graph_.output("out", pictures[V::out]);
    using S = MinimaxSoundFinal;
    Block heard = graph_.add<S>("final.sound");
    heard.link(S::hidden, hidden).link(S::x, in_.x).link(S::audio, in_.audio).set(S::eps, eps_);
    heard.link(S::kept, in_.kept).link(S::gain, in_.gain);
    heard.link(S::mod, modulate_end("final.sound.modulation", sound));
    blocks::Slots sound_slots(file_, heard, "final.sound");
    layers_.linear(sound_slots, S::weight, S::bias, "final_layer.audio_out", heads * s_.sound,
                   s_.width);
    if (heads > 1) heard.link(S::heads, graph_.input("sound_heads", HEDDLE_INPUT_PRECOMPUTED));
    graph_.output("audio_out", heard[S::out]);
  }

  const Checkpoint& file_;
  const MinimaxNames& names_;
  const MinimaxSizes& s_;
  double theta_, eps_;
  const std::optional<SparseLayers> sparse_;
  Blocks& graph_;
  Inputs in_;
  const MinimaxLayers layers_;
  std::array<Source, 4> cubes_;  // order, places, weights, pools
};

}  // namespace

int Minimax::match(const Checkpoint& file, const Value&) {
  return MinimaxNames::find(file) ? 100 : 0;
}

void Minimax::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<MinimaxNames> names = MinimaxNames::find(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no MiniMax H3 model");
  const MinimaxSizes sizes = read_minimax_sizes(file, config, *names);
  const std::vector<ModelPatch> patches = model_patches(config);
  MinimaxBuilder(file, *names, sizes, config, graph).run(patches);
  add_minimax_settings(sizes, *names, config, graph);
}

}  // namespace heddle::denoisers
