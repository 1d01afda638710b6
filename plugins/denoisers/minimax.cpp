#include "minimax.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "dual_stream.h"
#include "minimax_names.h"
#include "minimax_sizes.h"
#include "patches.h"
#include "plugins/blocks/slots.h"
#include "plugins/blocks/sparse_config.h"

namespace heddle::denoisers {
namespace {

// Kinds of tokens that are modulated apart, in the order of the rows of a layer's matrix.
enum MinimaxModality { kVideoRows, kTextRows, kSoundRows, kMinimaxModalities };
constexpr int kLayerPieces = 6, kFinalPieces = 2;
constexpr const char* kMinimaxTable = "adaln_t_table";
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
        graph_(graph) {}

  void run() {
    add_inputs();
    const Source video = add_vector("embed.video.vector", in_.timestep, kPictureNoise),
                 sound = add_vector("embed.sound.vector", in_.sound_timestep, 0);
    add_rope();
    if (sparse_) add_cubes();
    Source hidden = add_sequence();
    for (int i = 0; i < s_.layers; ++i) {
      const std::string path = "layer." + std::to_string(i),
                        at = "blocks." + std::to_string(i) + ".";
      layer_ = i;
      const Source mods[] = {modulate(path + ".video", at, video, kVideoRows, 2),
                             modulate(path + ".text", at, video, kTextRows, 1),
                             modulate(path + ".sound", at, sound, kSoundRows, 2)};
      hidden = add_layer(path + ".block", at, hidden, mods);
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
  void link_cubes(Block& block, blocks::Slots& slots, const std::string& at, std::int64_t inner) {
    using B = MinimaxLayer;
    if (!sparse_ || sparse_->is_dense(layer_)) return;
    block.link(B::order, cubes_[0]).link(B::places, cubes_[1]);
    block.link(B::weights, cubes_[2]).link(B::pools, cubes_[3]);
    block.set(B::share, sparse_->share).set(B::least, sparse_->least_tokens);
    const std::string gate = "attn.to_gate_compress.weight";
    if (!names_.has(at + gate)) return;
    slots.fill(B::gate, names_.one(at + gate), {inner, s_.width});
    block.shard(B::gate, 0, {{inner, s_.head}});
  }

  void linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
              const std::string& module, std::int64_t out, std::int64_t in) const {
    slots.fill(matrix, names_.one(module + ".weight"), {out, in});
    slots.fill(bias, names_.one(module + ".bias"), {out});
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
    linear(slots, B::time_in, B::time_in_bias, "time_embedder.proj_in", inner, waves);
    linear(slots, B::time_out, B::time_out_bias, "time_embedder.proj_out", s_.vector, inner);
    return block[B::out];
  }

  Source modulate(const std::string& path, const std::string& at, const Source& vector,
                  MinimaxModality kind, std::int64_t rows) {
    using B = MinimaxModulation;
    Block block = graph_.add<B>(path + ".modulation");
    block.link(B::vector, vector).set(B::rows, rows);
    blocks::Slots slots(file_, block, path + ".modulation");
    const std::string module = at + "adaln_proj.linear", tensor = names_.one(module + ".weight");
    const std::int64_t each = kLayerPieces * s_.width;
    // The others' rows are checked with it: all of them have to be there.
    if (file_.has(tensor) && file_.size(tensor, 0) != kMinimaxModalities * each)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": '" + tensor + "' has " + std::to_string(file_.size(tensor, 0)) +
                      " rows, " + std::to_string(kMinimaxModalities * each) +
                      " are needed. The file is damaged or of another model.");
    const auto part = [&](const char* name) {
      return std::vector<Part>{{names_.one(module + name), kind * each, (kind + 1) * each}};
    };
    slots.fill(B::weight, part(".weight"), {each, s_.vector});
    slots.fill(B::bias, part(".bias"), {each});
    slots.fill(B::norms, norms(at), {2 * s_.width});
    return block[B::out];
  }
  std::vector<Part> norms(const std::string& at) const {
    return {{names_.one(at + "norm1.weight")}, {names_.one(at + "norm2.weight")}};
  }

  void add_rope() {
    using B = MinimaxRope;
    Block block = graph_.add<B>("embed.rope");
    block.link(B::x, in_.x).link(B::audio, in_.audio).link(B::context, in_.context);
    block.link(B::positions, in_.positions).link(B::sound_positions, in_.sound_positions);
    block.link(B::media_start, in_.media_start);
    block.set(B::frequencies, s_.frequencies).set(B::theta, theta_);
    cos_ = block[B::cos], sin_ = block[B::sin];
  }

  Source add_text() {
    Block block = graph_.add<MinimaxTextIn>("embed.text");
    block.link(MinimaxTextIn::context, in_.context);
    blocks::Slots slots(file_, block, "embed.text");
    linear(slots, MinimaxTextIn::weight, MinimaxTextIn::bias, "condition_proj", s_.width, s_.text);
    Source text = block[MinimaxTextIn::out];
    for (int i = 0; i < s_.refiners; ++i) {
      using B = MinimaxTextLayer;
      const std::string path = "text." + std::to_string(i),
                        at = "token_refiner.blocks." + std::to_string(i) + ".";
      Block layer = graph_.add<B>(path);
      layer.link(B::hidden, text).set(B::eps, eps_);
      blocks::Slots layer_slots(file_, layer, path);
      layer_slots.fill(B::norms, norms(at), {2 * s_.width});
      const std::int64_t inner = s_.heads * s_.head;
      layer_slots.fill(B::qkv, names_.parts(at + "attn.qkv_proj.weight"), {3 * inner, s_.width});
      fill_rest<B>(layer_slots, at);
      text = layer[B::out];
    }
    return text;
  }
  // What layers of both kinds have.
  template <class B>
  void fill_rest(blocks::Slots& slots, const std::string& at) const {
    slots.fill(B::q_norm, names_.one(at + "attn.q_norm.weight"), {s_.head});
    slots.fill(B::k_norm, names_.one(at + "attn.k_norm.weight"), {s_.head});
    slots.fill(B::proj, names_.one(at + "attn.out_proj.weight"), {s_.width, s_.heads * s_.head});
    slots.fill(B::up, names_.parts(at + "mlp.fc1.weight"), {2 * s_.mlp, s_.width});
    slots.fill(B::down, names_.one(at + "mlp.fc2.weight"), {s_.width, s_.mlp});
  }

  // A matrix of tokens of a latent, in a block that reads one input.
  template <class B>
  Source add_tokens(const std::string& path, const Input<Tensor>& port, const Source& from,
                    const std::string& module, std::int64_t numbers) {
    Block block = graph_.add<B>(path);
    block.link(port, from);
    blocks::Slots slots(file_, block, path);
    linear(slots, B::weight, B::bias, module, s_.width, numbers);
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
    linear(sound_slots, S::weight, S::bias, "audio_patch_proj", s_.width, s_.sound);
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

  Source add_layer(const std::string& path, const std::string& at, const Source& hidden,
                   const Source (&mods)[kMinimaxModalities]) {
    using B = MinimaxLayer;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden).link(B::cos, cos_).link(B::sin, sin_);
    block.link(B::video_mod, mods[kVideoRows]).link(B::text_mod, mods[kTextRows]);
    block.link(B::sound_mod, mods[kSoundRows]).link(B::picture_rows, in_.picture_rows);
    block.link(B::context, in_.context).link(B::audio, in_.audio);
    block.link(B::references, in_.references).link(B::sound_references, in_.sound_references);
    block.set(B::frequencies, s_.frequencies).set(B::eps, eps_);
    blocks::Slots slots(file_, block, path);
    const std::int64_t inner = s_.heads * s_.head;
    const std::vector<Part> fused = names_.parts(at + "attn.qkv_proj.weight");
    if (fused.size() > 1) {
      slots.fill(B::qk, {fused[0], fused[1]}, {2 * inner, s_.width});
      slots.fill(B::v, {fused[2]}, {inner, s_.width});
    } else {
      const std::string& tensor = fused[0].tensor;
      check_fused(tensor, inner);
      slots.fill(B::qk, {{tensor, 0, 2 * inner}}, {2 * inner, s_.width});
      slots.fill(B::v, {{tensor, 2 * inner, 3 * inner}}, {inner, s_.width});
    }
    fill_rest<B>(slots, at);
    link_cubes(block, slots, at, inner);
    const std::int64_t unit = mlp_unit(s_.mlp);
    block.shard(B::qk, 0, {{inner, s_.head}, {inner, s_.head}}).shard(B::v, 0, {{inner, s_.head}});
    block.shard(B::proj, 1, {{inner, s_.head}});
    block.shard(B::up, 0, {{s_.mlp, unit}, {s_.mlp, unit}}).shard(B::down, 1, {{s_.mlp, unit}});
    return block[B::out];
  }
  void check_fused(const std::string& tensor, std::int64_t inner) const {
    if (!file_.has(tensor) || file_.size(tensor, 0) == 3 * inner) return;
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file_.path() + ": '" + tensor + "' has " + std::to_string(file_.size(tensor, 0)) +
                    " rows, " + std::to_string(3 * inner) +
                    " are needed. The file is damaged or of another model.");
  }

  Source modulate_end(const std::string& path, const Source& vector) {
    using B = MinimaxModulation;
    Block block = graph_.add<B>(path);
    block.link(B::vector, vector).set(B::rows, 1);
    blocks::Slots slots(file_, block, path);
    linear(slots, B::weight, B::bias, "final_layer.adaln_proj.linear", kFinalPieces * s_.width,
           s_.vector);
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
    linear(slots, V::weight, V::bias, "final_layer.video_out", heads * s_.channels * kPatchArea,
           s_.width);
    if (heads > 1) pictures.link(V::heads, graph_.input("video_heads", HEDDLE_INPUT_PRECOMPUTED));
    graph_.output("out", pictures[V::out]);
    using S = MinimaxSoundFinal;
    Block heard = graph_.add<S>("final.sound");
    heard.link(S::hidden, hidden).link(S::x, in_.x).link(S::audio, in_.audio).set(S::eps, eps_);
    heard.link(S::kept, in_.kept).link(S::gain, in_.gain);
    heard.link(S::mod, modulate_end("final.sound.modulation", sound));
    blocks::Slots sound_slots(file_, heard, "final.sound");
    linear(sound_slots, S::weight, S::bias, "final_layer.audio_out", heads * s_.sound, s_.width);
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
  Source cos_, sin_;
  std::array<Source, 4> cubes_;  // order, places, weights, pools
  int layer_ = 0;
};

}  // namespace

int Minimax::match(const Checkpoint& file, const Value&) {
  return MinimaxNames::find(file) ? 100 : 0;
}

void Minimax::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<MinimaxNames> names = MinimaxNames::find(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no MiniMax H3 model");
  const MinimaxSizes sizes = read_minimax_sizes(file, config, *names);
  MinimaxBuilder(file, *names, sizes, config, graph).run();
  add_minimax_settings(sizes, *names, config, graph);
}

}  // namespace heddle::denoisers
