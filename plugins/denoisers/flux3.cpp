#include "flux3.h"

#include <cmath>

#include "dual_stream.h"
#include "flux3_names.h"
#include "flux_blocks.h"
#include "plugins/blocks/slots.h"
#include "preview_factors.h"
#include "rotary_axes.h"

namespace heddle::denoisers {
namespace {

// By the publisher: the factor of the levels' shift, and of places in pictures.
constexpr double kFlux3Shift = 6.93, kFlux3PlaceScale = 0.5;

struct Flux3Sizes {
  std::int64_t hidden, head, mlp, channels, context, waves;
  std::array<std::int64_t, 4> axes;
  int singles, texts, images, references;
  bool is_distilled;
};

Flux3Sizes read_flux3_sizes(const Checkpoint& file, const Value& config, const Flux3Names& names) {
  const auto size = [&](const char* name, std::uint32_t axis) {
    return file.size(names.one(name), axis);
  };
  Flux3Sizes s{};
  s.hidden = size("emb_in.image.weight", 0);
  s.channels = size("emb_in.image.weight", 1);
  s.context = size("txt_in.weight", 1);
  s.waves = size("time_in.in_layer.weight", 1);
  s.head = size("single_blocks.0.norm.query_norm.scale", 0);
  s.mlp = size("single_blocks.0.mlp_out.weight", 1);
  s.singles = names.count("single_blocks");
  s.texts = names.count("txt_mode_blocks");
  s.images = names.count("content_mode_blocks.image");
  s.references = names.count("content_mode_blocks.image_cond");
  s.is_distilled = file.has(names.one("ref_time_in.in_layer.weight"));
  if (s.head <= 0 || s.hidden % s.head != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": a width of " + std::to_string(s.hidden) +
                                             " is no multiple of the head size " +
                                             std::to_string(s.head) +
                                             ". The file is damaged or of another model.");
  s.axes = rotary_axes<4>(file, config, s.head, {s.head / 4, s.head / 4, s.head / 4, s.head / 4});
  return s;
}

// A kind of tokens: its path here, what its modules are called, and its layers.
struct TokenKind {
  const char *path, *modules, *layers;
};
constexpr TokenKind kImageTokens{"image", "image", "content_mode_blocks.image"},
    kTextTokens{"text", "txt", "txt_mode_blocks"},
    kReferenceTokens{"reference", "image_cond", "content_mode_blocks.image_cond"};

struct Flux3Tables {
  Source cos, sin;
};

// Builds the graph of one file.
class Flux3Builder {
 public:
  Flux3Builder(const Checkpoint& file, const Flux3Names& names, const Flux3Sizes& sizes,
               const Value& config, Blocks& graph)
      : file_(file), names_(names), s_(sizes), config_(config), graph_(graph) {}

  void run() {
    const Source x = graph_.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    const Source context =
        graph_.input("context", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    const Source references = graph_.input(
        "references", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL | HEDDLE_INPUT_BATCH);
    const Source timestep = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    if (s_.is_distilled) target_ = graph_.input("target_timestep", HEDDLE_INPUT_PRECOMPUTED);
    const Source vector = embed_vector("embed.vector", &timestep),
                 still = embed_vector("embed.still", nullptr);
    const Block rope = add_rope(x, context);
    using R = Flux3Rope;
    const Source txt = add_layers(kTextTokens, s_.texts, still, embed_text(context, x),
                                  {rope[R::text_cos], rope[R::text_sin]}, x),
                 img = add_layers(kImageTokens, s_.images, vector, embed_image(x),
                                  {rope[R::image_cos], rope[R::image_sin]}, x),
                 shown = add_layers(kReferenceTokens, s_.references, still,
                                    embed_references(references, x),
                                    {rope[R::reference_cos], rope[R::reference_sin]}, x);
    Block join = graph_.add<Flux3Join>("join");
    join.link(Flux3Join::txt, txt).link(Flux3Join::img, img).link(Flux3Join::references, shown);
    Source hidden = join[Flux3Join::out];
    const Source of_image = modulate("single", kImageTokens, vector),
                 of_text = modulate("single", kTextTokens, still),
                 of_references = modulate("single", kReferenceTokens, still);
    for (int i = 0; i < s_.singles; ++i) {
      using B = Flux3Layer;
      Block block = add_layer("single." + std::to_string(i) + ".block",
                              "single_blocks." + std::to_string(i) + ".", hidden,
                              {rope[R::cos], rope[R::sin]});
      block.link(B::mod, of_image).link(B::text_mod, of_text).link(B::reference_mod, of_references);
      block.link(B::txt, txt).link(B::references, references);
      hidden = block[B::out];
    }
    graph_.output("out", add_final(hidden, vector, x, references));
  }

 private:
  void matrix(blocks::Slots& slots, const Weight& slot, const std::string& module,
              std::int64_t rows, std::int64_t columns) const {
    slots.fill(slot, names_.parts(module + ".weight", rows), {rows, columns});
  }

  // Of a level; nullptr: of what has no noise.
  Source embed_vector(const char* path, const Source* timestep) {
    using B = Flux3Vector;
    Block block = graph_.add<B>(path);
    if (timestep != nullptr) block.link(B::timestep, *timestep);
    blocks::Slots slots(file_, block, path);
    matrix(slots, B::time_in, "time_in.in_layer", s_.hidden, s_.waves);
    matrix(slots, B::time_out, "time_in.out_layer", s_.hidden, s_.hidden);
    if (s_.is_distilled) {
      block.link(B::target, *target_);
      matrix(slots, B::target_in, "ref_time_in.in_layer", s_.hidden, s_.waves);
      matrix(slots, B::target_out, "ref_time_in.out_layer", s_.hidden, s_.hidden);
    }
    return block[B::out];
  }

  Block add_rope(const Source& x, const Source& context) {
    using B = Flux3Rope;
    Block block = graph_.add<B>("embed.rope");
    block.link(B::x, x).link(B::context, context);
    block.link(
        B::reference_positions,
        graph_.input("reference_positions", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL));
    block.set(B::axis_0, s_.axes[0]).set(B::axis_1, s_.axes[1]).set(B::axis_2, s_.axes[2]);
    block.set(B::axis_3, s_.axes[3]).set(B::theta, config_.get<double>("rope_theta", 10000));
    block.set(B::scale, kFlux3PlaceScale);
    return block;
  }

  Source embed_text(const Source& context, const Source& x) {
    using B = FluxTextIn;
    Block block = graph_.add<B>("embed.text");
    block.link(B::context, context).link(B::x, x);
    blocks::Slots slots(file_, block, "embed.text");
    matrix(slots, B::weight, "txt_in", s_.hidden, s_.context);
    return block[B::out];
  }

  Source embed_image(const Source& x) {
    using B = FluxImageIn;
    Block block = graph_.add<B>("embed.image");
    block.link(B::x, x).set(B::patch, std::int64_t{1});
    blocks::Slots slots(file_, block, "embed.image");
    matrix(slots, B::weight, "emb_in.image", s_.hidden, s_.channels);
    return block[B::out];
  }

  Source embed_references(const Source& references, const Source& x) {
    using B = Flux3ReferenceIn;
    Block block = graph_.add<B>("embed.reference");
    block.link(B::references, references).link(B::x, x);
    blocks::Slots slots(file_, block, "embed.reference");
    matrix(slots, B::weight, "emb_in.image_cond", s_.hidden, s_.channels);
    return block[B::out];
  }

  // stage: "early", of the layers of each kind, or "single", of those of the joint sequence.
  Source modulate(const std::string& stage, const TokenKind& kind, const Source& vector) {
    const std::string path = "modulation." + stage + "." + kind.path;
    return modulate(path, stage + "_stream_modulations." + kind.modules + ".lin", 3, vector);
  }
  Source modulate(const std::string& path, const std::string& module, std::int64_t pieces,
                  const Source& vector) {
    using B = FluxModulation;
    Block block = graph_.add<B>(path);
    block.link(B::vector, vector);
    blocks::Slots slots(file_, block, path);
    matrix(slots, B::weight, module, pieces * s_.hidden, s_.hidden);
    return block[B::out];
  }

  Source add_layers(const TokenKind& kind, int count, const Source& vector, Source hidden,
                    const Flux3Tables& tables, const Source& x) {
    const Source mod = modulate("early", kind, vector);
    for (int i = 0; i < count; ++i) {
      Block block =
          add_layer(std::string(kind.path) + "." + std::to_string(i) + ".block",
                    std::string(kind.layers) + "." + std::to_string(i) + ".", hidden, tables);
      block.link(Flux3Layer::mod, mod);
      // What is made of all steps at once would take room for each of them.
      if (s_.is_distilled) block.link(Flux3Layer::each_step, x);
      hidden = block[Flux3Layer::out];
    }
    return hidden;
  }

  // at: what the tensors' names begin with.
  Block add_layer(const std::string& path, const std::string& at, const Source& hidden,
                  const Flux3Tables& tables) {
    using B = Flux3Layer;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden).link(B::cos, tables.cos).link(B::sin, tables.sin);
    const std::int64_t d = s_.hidden, mlp = s_.mlp, head = s_.head, unit = mlp_unit(mlp);
    block.set(B::heads, d / head);
    blocks::Slots slots(file_, block, path);
    std::vector<Part> queries;
    for (const char* module : {"q_proj", "k_proj", "v_proj"})
      queries.push_back({names_.one(at + module + ".weight")});
    slots.fill(B::qkv, queries, {3 * d, d});
    matrix(slots, B::proj, at + "attn_out", d, d);
    matrix(slots, B::up, at + "mlp_in", 2 * mlp, d);
    matrix(slots, B::down, at + "mlp_out", d, mlp);
    slots.fill(B::q_norm, names_.one(at + "norm.query_norm.scale"), {head});
    slots.fill(B::k_norm, names_.one(at + "norm.key_norm.scale"), {head});
    block.shard(B::qkv, 0, {{d, head}, {d, head}, {d, head}}).shard(B::proj, 1, {{d, head}});
    block.shard(B::up, 0, {{mlp, unit}, {mlp, unit}}).shard(B::down, 1, {{mlp, unit}});
    return block;
  }

  Source add_final(const Source& hidden, const Source& vector, const Source& x,
                   const Source& references) {
    using B = FluxFinal;
    const Source mod =
        modulate("final.modulation", "final_layer.image.adaLN_modulation.1", 2, vector);
    Block block = graph_.add<B>("final.block");
    block.link(B::hidden, hidden).link(B::mod, mod).link(B::x, x).link(B::references, references);
    block.set(B::patch, std::int64_t{1});
    blocks::Slots slots(file_, block, "final.block");
    matrix(slots, B::weight, "final_layer.image.linear", s_.channels, s_.hidden);
    return block[B::out];
  }

  const Checkpoint& file_;
  const Flux3Names& names_;
  const Flux3Sizes& s_;
  const Value& config_;
  Blocks& graph_;
  std::optional<Source> target_;
};

void add_flux3_settings(const Flux3Sizes& s, Blocks& graph) {
  graph.setting("family", "flux3");
  graph.setting("latent_channels", s.channels);
  graph.setting("latent_downscale", std::int64_t{16});
  add_preview_factors(LatentKind::flux2, s.channels, graph);
  graph.setting("patch", std::int64_t{1});
  // Pictures that it is shown lie before the text on the axis that counts it.
  graph.setting("reference_method", "index");
  graph.setting("reference_step", std::int64_t{-1});
  graph.setting("guidance_embedded", false);
  graph.setting("context_width", s.context);
  graph.setting("text_encoder", "Qwen3-VL 4B (CLIPLoader, type flux3)");
  // Its latents are normalised by their autoencoder, that of FLUX.2.
  graph.setting("latent_scale", 1.0);
  graph.setting("latent_shift", 0.0);
  // How noise levels are spaced when no node says otherwise: as the publisher's pipeline does, with
  // a constant shift. `sampling`: the output is the velocity of a straight flow.
  graph.setting("sampling", "flow");
  graph.setting("noise_table", "flux");
  graph.setting("noise_mu", std::log(kFlux3Shift));
}

}  // namespace

int Flux3::match(const Checkpoint& file, const Value&) { return Flux3Names::find(file) ? 100 : 0; }

void Flux3::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<Flux3Names> names = Flux3Names::find(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no FLUX 3 model");
  const Flux3Sizes sizes = read_flux3_sizes(file, config, *names);
  Flux3Builder(file, *names, sizes, config, graph).run();
  add_flux3_settings(sizes, graph);
}

}  // namespace heddle::denoisers
