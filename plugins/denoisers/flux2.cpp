#include "flux2.h"

#include <heddle/checked.hpp>

#include "flux_blocks.h"
#include "flux_modules.h"
#include "preview_factors.h"

namespace heddle::denoisers {
namespace {

constexpr StreamKind kFlux2Streams{.axes = 4, .patch = 1, .is_biased = false, .is_gated = true};
constexpr std::int64_t kFlux2LeastText = 512;
constexpr double kFlux2Theta = 2000;
constexpr const char* kKeepsReferences = "keeps_references";

// Builds the graph of one file.
class Flux2Builder {
 public:
  Flux2Builder(const Checkpoint& file, const FluxNames& names, const StreamSizes& sizes,
               const Value& config, Blocks& graph)
      : file_(file),
        names_(names),
        s_(sizes),
        graph_(graph),
        top_(modules_of(names)),
        streams_(file, sizes, graph, top_),
        least_(config.get<std::int64_t>("least_text_tokens", kFlux2LeastText)),
        theta_(config.get<double>("rope_theta", kFlux2Theta)),
        keeps_(config.get<bool>(kKeepsReferences, false)) {}

  bool is_guided() const { return file_.has(names_.one(top_("guidance_in.in_layer")("weight"))); }

  void run(int singles) {
    const Source x = graph_.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    const Source context =
        graph_.input("context", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    const Source nag = optional_input("nag");
    AttentionInputs attention = add_rope(x, context, nag);
    attention.references = optional_input("references", HEDDLE_INPUT_BATCH);
    attention.reference_timestep = optional_input("reference_timestep");
    attention.keeps = keeps_;
    const Source vector = embed_vector(*attention.reference_timestep);
    Source txt = streams_.embed_text(context, x, nag, least_),
           img = streams_.embed_image(x, nag, &*attention.references);
    const StreamModulation of_doubles = streams_.double_modulation(
        "modulation.double", vector, top_("double_stream_modulation_img.lin"),
        top_("double_stream_modulation_txt.lin"));
    const Source of_singles =
        streams_.modulation("modulation.single", vector, top_("single_stream_modulation.lin"), 3);
    for (int i = 0; i < s_.doubles; ++i)
      streams_.add_double(i, modules_of_double(names_, i), of_doubles, attention, img, txt);
    Block join = graph_.add<FluxJoin>("join");
    join.link(FluxJoin::txt, txt).link(FluxJoin::img, img);
    Source hidden = join[FluxJoin::out];
    for (int i = 0; i < singles; ++i) {
      hidden =
          streams_.add_single(i, modules_of_single(names_, i), of_singles, attention, hidden, x);
      streams_.expose("single." + std::to_string(i), hidden);
    }
    graph_.output("out", streams_.add_final(vector, hidden, x, attention));
  }

 private:
  Source optional_input(const char* name, std::uint32_t flags = 0) {
    return graph_.input(name, HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL | flags);
  }

  Source embed_vector(const Source& reference_timestep) {
    using B = Flux2Vector;
    Block block = graph_.add<B>("embed.vector");
    block.link(B::timestep, graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED));
    block.link(B::reference_timestep, reference_timestep);
    blocks::Slots slots(file_, block, "embed.vector");
    const auto fill = [&](const Weight& slot, const char* module, std::int64_t in) {
      slots.fill(slot, top_(module)("weight"), {s_.hidden, in});
    };
    fill(B::time_in, "time_in.in_layer", s_.time_width);
    fill(B::time_out, "time_in.out_layer", s_.hidden);
    if (is_guided()) {
      block.link(B::guidance, optional_input("guidance", HEDDLE_INPUT_BATCH));
      block.link(B::unguided, optional_input("unguided"));
      fill(B::guidance_in, "guidance_in.in_layer", s_.time_width);
      fill(B::guidance_out, "guidance_in.out_layer", s_.hidden);
    }
    return block[B::out];
  }

  AttentionInputs add_rope(const Source& x, const Source& context, const Source& nag) {
    using B = Flux2Rope;
    Block block = graph_.add<B>("embed.rope");
    block.link(B::x, x).link(B::context, context).link(B::nag, nag);
    block.link(B::positions, optional_input("positions"));
    block.link(B::reference_positions, optional_input("reference_positions"));
    block.set(B::axis_0, s_.axes[0]).set(B::axis_1, s_.axes[1]).set(B::axis_2, s_.axes[2]);
    block.set(B::axis_3, s_.axes[3]).set(B::theta, theta_).set(B::least, least_);
    return {block[B::cos], block[B::sin], nag};
  }

  const Checkpoint& file_;
  const FluxNames& names_;
  const StreamSizes& s_;
  Blocks& graph_;
  const FindModule top_;
  const DualStreams streams_;
  const std::int64_t least_;
  const double theta_;
  const bool keeps_;
};

// By the width of three layers' states: which encoder they are of.
std::string encoder_of(std::int64_t context_width) {
  const char* name = context_width == 7680    ? "Qwen3 4B"
                     : context_width == 12288 ? "Qwen3 8B"
                     : context_width == 15360 ? "Mistral Small 3.2 24B"
                                              : "Qwen3 or Mistral Small";
  return std::string(name) + " (CLIPLoader, type flux2)";
}

void add_flux2_settings(const StreamSizes& s, bool is_guided, const Value& config, Blocks& graph) {
  graph.setting("family", "flux2");
  graph.setting("latent_channels", s.out_width);
  graph.setting("latent_downscale", std::int64_t{16});
  add_preview_factors(LatentKind::flux2, s.out_width, graph);
  graph.setting("patch", kFlux2Streams.patch);
  graph.setting("reference_method", "index");
  graph.setting("reference_step", std::int64_t{10});
  graph.setting("reference_timestep", true);
  // For a node that has the model keep what it makes of reference pictures: its configuration,
  // which builds the model that does, and the numbers that each block keeps of a token.
  graph.setting("keeping_model", (config.is(HEDDLE_KIND_RECORD) ? Record(config) : Record())
                                     .set(kKeepsReferences, value_of(true))
                                     .value());
  graph.setting("kept_width", 2 * s.hidden);
  graph.setting("guidance_embedded", is_guided);
  graph.setting("context_width", s.context_width);
  graph.setting("text_encoder", encoder_of(s.context_width));
  // Its latents are normalised by their autoencoder.
  graph.setting("latent_scale", 1.0);
  graph.setting("latent_shift", 0.0);
  // How noise levels are spaced when no node says otherwise, as ComfyUI does. `sampling`: the
  // output is the velocity of a straight flow.
  graph.setting("sampling", "flow");
  graph.setting("noise_table", "flux");
  graph.setting("noise_mu", 2.02);
}

}  // namespace

int Flux2::match(const Checkpoint& file, const Value&) {
  return FluxNames::find_second(file) ? 100 : 0;
}

void Flux2::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<FluxNames> names = FluxNames::find_second(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no FLUX.2 model");
  const StreamSizes sizes =
      read_stream_sizes(file, config, modules_of(*names), modules_of_double(*names, 0),
                        names->double_prefix(), kFlux2Streams);
  if (sizes.in_width != sizes.out_width)
    throw Error(HEDDLE_UNSUPPORTED, file.path() + ": the model reads " +
                                        std::to_string(sizes.in_width) + " channels and makes " +
                                        std::to_string(sizes.out_width) +
                                        "; FLUX.2 models that read more are not supported.");
  const auto singles = config.get<std::int64_t>("num_single_layers",
                                                blocks::layer_count(file, names->single_prefix()));
  Flux2Builder builder(file, *names, sizes, config, graph);
  builder.run(checked_cast<int>(singles, "num_single_layers"));
  add_flux2_settings(sizes, builder.is_guided(), config, graph);
}

}  // namespace heddle::denoisers
