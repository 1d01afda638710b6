#include "qwen21.h"

#include "dual_stream.h"
#include "plugins/blocks/slots.h"
#include "preview_factors.h"
#include "qwen21_names.h"
#include "rotary_axes.h"
#include "wan_latent_settings.h"

namespace heddle::denoisers {
namespace {

struct Qwen21Sizes {
  std::int64_t width, head, mlp, context_width, waves, channels;
  int layers;
  std::array<std::int64_t, 3> axes;
};

Qwen21Sizes read_qwen21_sizes(const Checkpoint& file, const Value& config,
                              const Qwen21Names& names) {
  const auto size = [&](const char* name, std::uint32_t axis) {
    return file.size(names.prefix() + name, axis);
  };
  Qwen21Sizes s{};
  s.width = size("img_in.weight", 0);
  s.channels = size("img_in.weight", 1);
  s.head = size("transformer_blocks.0.attn.norm_q.weight", 0);
  s.mlp = names.mlp_width();
  s.context_width = size("txt_in.in_layer.weight", 1);
  s.waves = size("time_text_embed.timestep_embedder.linear_1.weight", 1);
  s.layers = names.layers();
  if (s.head <= 0 || s.width % s.head != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": a width of " + std::to_string(s.width) +
                                             " does not divide into heads of " +
                                             std::to_string(s.head));
  // The published model's heads of 128 turn 16, 56 and 56 of their elements with the three axes.
  s.axes = rotary_axes(file, config, s.head, {s.head / 8, s.head * 7 / 16, s.head * 7 / 16});
  return s;
}

// Builds the graph of one file.
class Qwen21Builder {
 public:
  Qwen21Builder(const Checkpoint& file, const Qwen21Names& names, const Qwen21Sizes& sizes,
                const Value& config, Blocks& graph)
      : file_(file),
        prefix_(names.prefix()),
        s_(sizes),
        eps_(config.get<double>("eps", 1e-6)),
        graph_(graph) {}

  void run() {
    const Source x = graph_.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    const Source timestep = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    const Source context =
        graph_.input("context", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    add_references();
    const auto [mod, last] = modulate(embed_vector(timestep));
    const auto [cos, sin] = add_rope(x, context);
    Block join = graph_.add<Qwen21Join>("join");
    join.link(Qwen21Join::txt, embed_text(context)).link(Qwen21Join::img, embed_image(x));
    place(join);
    Source hidden = join[Qwen21Join::out];
    for (int i = 0; i < s_.layers; ++i) {
      using B = Qwen21Layer;
      const std::string path = "layer." + std::to_string(i);
      Block block = graph_.add<B>(path);
      block.link(B::hidden, hidden).link(B::context, context).link(B::mod, mod);
      block.link(B::cos, cos).link(B::sin, sin).set(B::eps, eps_);
      place(block);
      fill_layer(block, path, prefix_ + "transformer_blocks." + std::to_string(i) + ".");
      hidden = block[B::out];
    }
    using F = Qwen21Final;
    Block block = graph_.add<F>("final");
    block.link(F::hidden, hidden).link(F::last, last).link(F::x, x).set(F::eps, eps_);
    fill(block, "final", F::weight, "proj_out", {s_.channels, s_.width});
    graph_.output("out", block[F::out]);
  }

 private:
  void add_references() {
    constexpr auto kShown = HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL;
    for (int i = 0; i < kMostReferences; ++i) {
      // As the blocks name them.
      const char* const picture = qwen21_ports::references[i].port.name;
      const char* const slot = qwen21_ports::slots[i].port.name;
      references_.emplace_back(graph_.input(picture, kShown | HEDDLE_INPUT_BATCH),
                               graph_.input(slot, kShown));
    }
  }

  // Tells a block where shown pictures stand.
  void place(Block& block) const {
    for (std::size_t i = 0; i < references_.size(); ++i)
      block.link(qwen21_ports::references[i], references_[i].first)
          .link(qwen21_ports::slots[i], references_[i].second);
  }

  void fill(Block& block, const std::string& path, const Weight& slot, const std::string& module,
            const Shape& shape) const {
    blocks::Slots(file_, block, path).fill(slot, prefix_ + module + ".weight", shape);
  }

  Source embed_vector(const Source& timestep) {
    using B = Qwen21Vector;
    Block block = graph_.add<B>("embed.vector");
    block.link(B::timestep, timestep);
    const std::string at = "time_text_embed.timestep_embedder.";
    fill(block, "embed.vector", B::time_in, at + "linear_1", {s_.width, s_.waves});
    fill(block, "embed.vector", B::time_out, at + "linear_2", {s_.width, s_.width});
    return block[B::out];
  }

  std::pair<Source, Source> modulate(const Source& vector) {
    using B = Qwen21Modulation;
    Block block = graph_.add<B>("embed.modulation");
    block.link(B::vector, vector);
    fill(block, "embed.modulation", B::weight, "modulation.1", {4 * s_.width, s_.width});
    fill(block, "embed.modulation", B::last_weight, "norm_out.linear", {s_.width, s_.width});
    return {block[B::out], block[B::last]};
  }

  std::pair<Source, Source> add_rope(const Source& x, const Source& context) {
    using B = Qwen21Rope;
    Block block = graph_.add<B>("embed.rope");
    block.link(B::x, x).link(B::context, context);
    place(block);
    block.set(B::axis_0, s_.axes[0]).set(B::axis_1, s_.axes[1]).set(B::axis_2, s_.axes[2]);
    return {block[B::cos], block[B::sin]};
  }

  Source embed_text(const Source& context) {
    using B = Qwen21TextIn;
    Block block = graph_.add<B>("embed.text");
    block.link(B::context, context).set(B::eps, eps_);
    fill(block, "embed.text", B::norm, "txt_in.text_norm", {s_.context_width});
    fill(block, "embed.text", B::in, "txt_in.in_layer", {s_.width, s_.context_width});
    fill(block, "embed.text", B::last, "txt_in.out_layer", {s_.width, s_.width});
    return block[B::out];
  }

  Source embed_image(const Source& x) {
    using B = Qwen21ImageIn;
    Block block = graph_.add<B>("embed.image");
    block.link(B::x, x);
    for (std::size_t i = 0; i < references_.size(); ++i)
      block.link(B::shown[i], references_[i].first);
    fill(block, "embed.image", B::weight, "img_in", {s_.width, s_.channels});
    return block[B::out];
  }

  // at: what the tensors' names begin with.
  void fill_layer(Block& block, const std::string& path, const std::string& at) const {
    using B = Qwen21Layer;
    blocks::Slots slots(file_, block, path);
    const auto part = [&](const char* module) { return Part{at + module + ".weight"}; };
    slots.fill(B::qkv, {part("attn.to_q"), part("attn.to_k"), part("attn.to_v")},
               {3 * s_.width, s_.width});
    slots.fill(B::q_norm, {part("attn.norm_q")}, {s_.head});
    slots.fill(B::k_norm, {part("attn.norm_k")}, {s_.head});
    slots.fill(B::proj, {part("attn.to_out.0")}, {s_.width, s_.width});
    const Part joined = part("img_mlp.gate_up");
    const std::vector<Part> both =
        file_.has(joined.tensor)
            ? std::vector<Part>{joined}
            : std::vector<Part>{part("img_mlp.gate_layer"), part("img_mlp.proj")};
    slots.fill(B::up, both, {2 * s_.mlp, s_.width});
    slots.fill(B::down, {part("img_mlp.out")}, {s_.width, s_.mlp});
    const std::pair<std::int64_t, std::int64_t> heads{s_.width, s_.head},
        mlp{s_.mlp, mlp_unit(s_.mlp)};
    block.shard(B::qkv, 0, {heads, heads, heads}).shard(B::proj, 1, {heads});
    block.shard(B::up, 0, {mlp, mlp}).shard(B::down, 1, {mlp});
  }

  const Checkpoint& file_;
  const std::string& prefix_;
  const Qwen21Sizes& s_;
  const double eps_;
  Blocks& graph_;
  std::vector<std::pair<Source, Source>> references_;  // and their slots
};

void add_settings(const Qwen21Sizes& s, Blocks& graph) {
  graph.setting("family", "qwen-image-2.1");
  graph.setting("latent_channels", s.channels);
  graph.setting("latent_downscale", std::int64_t{16});
  add_preview_factors(LatentKind::qwen21, s.channels, graph);
  graph.setting("patch", std::int64_t{1});
  graph.setting("guidance_embedded", false);
  graph.setting("context_width", s.context_width);
  graph.setting("text_encoder", "Qwen3-VL 8B (CLIPLoader, type qwen_image)");
  graph.setting("reference_slots", std::int64_t{kMostReferences});
  // Its latents are those of its own autoencoder. How noise levels are spaced when no node says
  // otherwise: ComfyUI's number for it. `sampling`: the output is the velocity of a straight flow.
  graph.setting("latent_scale", 1.0);
  graph.setting("latent_shift", 0.0);
  graph.setting("sampling", "flow");
  graph.setting("noise_table", "flux");
  graph.setting("noise_mu", 0.69);
  add_wan_latents(s.channels, graph);
}

}  // namespace

int Qwen21::match(const Checkpoint& file, const Value&) {
  return Qwen21Names::find(file) ? 100 : 0;
}

void Qwen21::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<Qwen21Names> names = Qwen21Names::find(file);
  if (!names)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no Qwen-Image 2.1 model");
  const Qwen21Sizes sizes = read_qwen21_sizes(file, config, *names);
  Qwen21Builder(file, *names, sizes, config, graph).run();
  add_settings(sizes, graph);
}

}  // namespace heddle::denoisers
