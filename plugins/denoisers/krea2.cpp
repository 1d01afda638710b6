#include "krea2.h"

#include "dual_stream.h"
#include "krea2_names.h"
#include "patches.h"
#include "plugins/blocks/slots.h"
#include "preview_factors.h"
#include "rotary_axes.h"
#include "wan_latent_settings.h"
#include "zimage_blocks.h"

namespace heddle::denoisers {
namespace {

// A kind of layer: those of the joint sequence, or those of the text.
struct Krea2LayerSizes {
  std::int64_t width, head, heads, kv_heads, mlp;
};

struct Krea2Sizes {
  Krea2LayerSizes joint, text;
  std::int64_t states, waves, channels;
  int layers, text_layers, refiners;
  std::array<std::int64_t, 3> axes;
};

Krea2LayerSizes read_layer_sizes(const Checkpoint& file, const Krea2Names& names,
                                 const std::string& at) {
  const auto size = [&](const char* name, std::uint32_t axis) {
    return file.size(names.one(at + name), axis);
  };
  Krea2LayerSizes s{size("attn.wq.weight", 1), size("attn.qknorm.qnorm.scale", 0), 0, 0,
                    size("mlp.gate.weight", 0)};
  const std::int64_t queries = size("attn.wq.weight", 0), keys = size("attn.wk.weight", 0);
  const bool divides = s.head > 0 && s.head % 2 == 0 && queries % s.head == 0 && keys > 0 &&
                       keys % s.head == 0 && queries % keys == 0;
  if (!divides)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": '" + names.one(at + "attn.wq.weight") + "' has " +
                    std::to_string(queries) + " rows, and that of keys " + std::to_string(keys) +
                    ", which are not heads of " + std::to_string(s.head) +
                    " in equal groups. The file is damaged or of another model.");
  s.heads = queries / s.head, s.kv_heads = keys / s.head;
  return s;
}

Krea2Sizes read_krea2_sizes(const Checkpoint& file, const Value& config, const Krea2Names& names) {
  const auto size = [&](const char* name, std::uint32_t axis) {
    return file.size(names.one(name), axis);
  };
  Krea2Sizes s{};
  s.joint = read_layer_sizes(file, names, "blocks.0.");
  s.text = read_layer_sizes(file, names, "txtfusion.refiner_blocks.0.");
  s.states = size("txtfusion.projector.weight", 1);
  s.waves = size("tmlp.0.weight", 1);
  s.channels = size("first.weight", 1) / kPatchArea;
  s.layers = names.count("blocks");
  s.text_layers = names.count("txtfusion.layerwise_blocks");
  s.refiners = names.count("txtfusion.refiner_blocks");
  // The published model's heads of 128 turn 32, 48 and 48 of their elements with the three axes.
  const std::int64_t head = s.joint.head;
  s.axes = rotary_axes(file, config, head, {head / 4, head * 3 / 8, head * 3 / 8});
  return s;
}

// Builds the graph of one file.
class Krea2Builder {
 public:
  Krea2Builder(const Checkpoint& file, const Krea2Names& names, const Krea2Sizes& sizes,
               const Value& config, Blocks& graph)
      : file_(file), names_(names), s_(sizes), config_(config), graph_(graph) {}

  void run() {
    const Source x = graph_.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    const Source timestep = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    const Source context =
        graph_.input("context", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    const Source vector = embed_vector(timestep), shared = share_modulation(vector);
    add_rope(x, context);
    Block join = graph_.add<ZImageJoin>("join");
    join.link(ZImageJoin::txt, embed_text(context)).link(ZImageJoin::img, embed_image(x));
    Source hidden = join[ZImageJoin::out];
    for (int i = 0; i < s_.layers; ++i) {
      const std::string path = "layer." + std::to_string(i),
                        at = "blocks." + std::to_string(i) + ".";
      const Source mod = modulate(path, shared, at + "mod.lin",
                                  {at + "prenorm.scale", at + "postnorm.scale"}, 6, false);
      hidden = add_joint_layer(path + ".block", at, hidden, mod);
    }
    graph_.output("out", add_final(hidden, vector, x));
  }

 private:
  using Names = std::vector<std::string>;

  void linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
              const std::string& module, std::int64_t out, std::int64_t in) const {
    slots.fill(matrix, names_.one(module + ".weight"), {out, in});
    slots.fill(bias, names_.one(module + ".bias"), {out});
  }
  std::vector<Part> parts(const Names& originals) const {
    std::vector<Part> all;
    for (const std::string& original : originals) {
      const std::string tensor = names_.one(original);
      all.push_back({tensor, 0, file_.has(tensor) ? file_.size(tensor, 0) : -1});
    }
    return all;
  }

  Source embed_vector(const Source& timestep) {
    using B = Krea2Vector;
    Block block = graph_.add<B>("embed.vector");
    block.link(B::timestep, timestep);
    blocks::Slots slots(file_, block, "embed.vector");
    linear(slots, B::time_in, B::time_in_bias, "tmlp.0", s_.joint.width, s_.waves);
    linear(slots, B::time_out, B::time_out_bias, "tmlp.2", s_.joint.width, s_.joint.width);
    return block[B::out];
  }

  Source share_modulation(const Source& vector) {
    using B = Krea2SharedModulation;
    Block block = graph_.add<B>("embed.modulation");
    block.link(B::vector, vector);
    blocks::Slots slots(file_, block, "embed.modulation");
    linear(slots, B::weight, B::bias, "tproj.1", 6 * s_.joint.width, s_.joint.width);
    return block[B::out];
  }

  // table: a tensor of `pieces` widths, as rows or one after another.
  Source modulate(const std::string& path, const Source& shared, const std::string& table,
                  const Names& norms, std::int64_t pieces, bool repeats) {
    using B = Krea2Modulation;
    Block block = graph_.add<B>(path + ".modulation");
    block.link(B::shared, shared).set(B::repeats, repeats);
    blocks::Slots slots(file_, block, path + ".modulation");
    const std::string tensor = names_.one(table);
    const bool is_flat = file_.has(tensor) && file_.info(tensor).rank == 1;
    slots.fill(B::table, tensor,
               is_flat ? Shape{pieces * s_.joint.width} : Shape{pieces, s_.joint.width});
    slots.fill(B::norms, parts(norms), {std::int64_t(norms.size()) * s_.joint.width});
    return block[B::out];
  }

  void add_rope(const Source& x, const Source& context) {
    using B = Krea2Rope;
    Block block = graph_.add<B>("embed.rope");
    block.link(B::x, x).link(B::context, context);
    block.set(B::axis_0, s_.axes[0]).set(B::axis_1, s_.axes[1]).set(B::axis_2, s_.axes[2]);
    block.set(B::theta, config_.get<double>("rope_theta", 1000));
    cos_ = block[B::cos], sin_ = block[B::sin];
  }

  Source embed_text(const Source& context) {
    Source states = context;
    for (int i = 0; i < s_.text_layers; ++i)
      states = add_text_layer("text.layers." + std::to_string(i),
                              "txtfusion.layerwise_blocks." + std::to_string(i) + ".", states,
                              s_.states);
    Block mix = graph_.add<Krea2TextMix>("text.mix");
    mix.link(Krea2TextMix::hidden, states);
    blocks::Slots(file_, mix, "text.mix")
        .fill(Krea2TextMix::weight, names_.one("txtfusion.projector.weight"), {1, s_.states});
    Source text = mix[Krea2TextMix::out];
    for (int i = 0; i < s_.refiners; ++i)
      text = add_text_layer("text.refine." + std::to_string(i),
                            "txtfusion.refiner_blocks." + std::to_string(i) + ".", text, 1);
    using B = Krea2TextIn;
    Block block = graph_.add<B>("embed.text");
    block.link(B::hidden, text).set(B::eps, eps());
    blocks::Slots slots(file_, block, "embed.text");
    slots.fill(B::norm, names_.one("txtmlp.0.scale"), {s_.text.width});
    linear(slots, B::in, B::in_bias, "txtmlp.1", s_.joint.width, s_.text.width);
    linear(slots, B::last, B::last_bias, "txtmlp.3", s_.joint.width, s_.joint.width);
    return block[B::out];
  }

  Source embed_image(const Source& x) {
    using B = Krea2ImageIn;
    Block block = graph_.add<B>("embed.image");
    block.link(B::x, x);
    blocks::Slots slots(file_, block, "embed.image");
    linear(slots, B::weight, B::bias, "first", s_.joint.width, s_.channels * kPatchArea);
    return block[B::out];
  }

  // at: what the tensors' names begin with.
  template <class B>
  Block add_layer(const std::string& path, const std::string& at, const Source& hidden,
                  const Krea2LayerSizes& s) {
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden);
    block.set(B::heads, s.heads).set(B::kv_heads, s.kv_heads).set(B::eps, eps());
    blocks::Slots slots(file_, block, path);
    const auto matrix = [&](const Weight& slot, const Names& modules, std::int64_t rows,
                            std::int64_t columns) {
      Names tensors;
      for (const std::string& module : modules) tensors.push_back(at + module + ".weight");
      slots.fill(slot, parts(tensors), {rows, columns});
    };
    const std::int64_t queries = s.heads * s.head, keys = s.kv_heads * s.head;
    matrix(B::qkv, {"attn.wq", "attn.wk", "attn.wv"}, queries + 2 * keys, s.width);
    matrix(B::gate, {"attn.gate"}, queries, s.width);
    matrix(B::proj, {"attn.wo"}, s.width, queries);
    matrix(B::up, {"mlp.gate", "mlp.up"}, 2 * s.mlp, s.width);
    matrix(B::down, {"mlp.down"}, s.width, s.mlp);
    slots.fill(B::q_norm, names_.one(at + "attn.qknorm.qnorm.scale"), {s.head});
    slots.fill(B::k_norm, names_.one(at + "attn.qknorm.knorm.scale"), {s.head});
    return block;
  }

  Source add_text_layer(const std::string& path, const std::string& at, const Source& hidden,
                        std::int64_t states) {
    using B = Krea2TextLayer;
    Block block = add_layer<B>(path, at, hidden, s_.text);
    block.set(B::states, states);
    blocks::Slots(file_, block, path)
        .fill(B::norms, parts({at + "prenorm.scale", at + "postnorm.scale"}), {2 * s_.text.width});
    return block[B::out];
  }

  Source add_joint_layer(const std::string& path, const std::string& at, const Source& hidden,
                         const Source& mod) {
    using B = Krea2Layer;
    Block block = add_layer<B>(path, at, hidden, s_.joint);
    block.link(B::mod, mod).link(B::cos, cos_).link(B::sin, sin_);
    // Heads of queries go with the keys that they share.
    const Krea2LayerSizes& s = s_.joint;
    const std::int64_t queries = s.heads * s.head, keys = s.kv_heads * s.head,
                       group = queries / s.kv_heads, unit = mlp_unit(s.mlp);
    block.shard(B::qkv, 0, {{queries, group}, {keys, s.head}, {keys, s.head}});
    block.shard(B::gate, 0, {{queries, group}}).shard(B::proj, 1, {{queries, group}});
    block.shard(B::up, 0, {{s.mlp, unit}, {s.mlp, unit}}).shard(B::down, 1, {{s.mlp, unit}});
    return block[B::out];
  }

  Source add_final(const Source& hidden, const Source& vector, const Source& x) {
    using B = Krea2Final;
    const Source mod =
        modulate("final", vector, "last.modulation.lin", {"last.norm.scale"}, 2, true);
    Block block = graph_.add<B>("final.block");
    block.link(B::hidden, hidden).link(B::mod, mod).link(B::x, x).set(B::eps, eps());
    blocks::Slots slots(file_, block, "final.block");
    linear(slots, B::weight, B::bias, "last.linear", s_.channels * kPatchArea, s_.joint.width);
    return block[B::out];
  }

  double eps() const { return config_.get<double>("norm_eps", 1e-5); }

  const Checkpoint& file_;
  const Krea2Names& names_;
  const Krea2Sizes& s_;
  const Value& config_;
  Blocks& graph_;
  Source cos_, sin_;
};

void add_settings(const Krea2Sizes& s, Blocks& graph) {
  graph.setting("family", "krea2");
  graph.setting("latent_channels", s.channels);
  graph.setting("latent_downscale", std::int64_t{8});
  add_preview_factors(LatentKind::wan21, s.channels, graph);
  graph.setting("patch", std::int64_t{2});
  graph.setting("guidance_embedded", false);
  graph.setting("context_width", s.states * s.text.width);
  graph.setting("text_encoder", "Qwen3-VL 4B (CLIPLoader, type krea2)");
  add_wan_latents(s.channels, graph);
  // How noise levels are spaced when no node says otherwise, as ComfyUI does: FLUX.1 dev's table
  // with mu = 1.15. `sampling`: the output is the velocity of a straight flow.
  graph.setting("sampling", "flow");
  graph.setting("noise_table", "flux");
  graph.setting("noise_mu", 1.15);
}

}  // namespace

int Krea2::match(const Checkpoint& file, const Value&) { return Krea2Names::find(file) ? 100 : 0; }

void Krea2::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<Krea2Names> names = Krea2Names::find(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no Krea 2 model");
  const Krea2Sizes sizes = read_krea2_sizes(file, config, *names);
  Krea2Builder(file, *names, sizes, config, graph).run();
  add_settings(sizes, graph);
}

}  // namespace heddle::denoisers
