#include "flux.h"

#include <heddle/checked.hpp>

#include "control.h"
#include "flux_modules.h"
#include "flux_style.h"
#include "model_patches.h"
#include "patches.h"
#include "preview_factors.h"
#include "widening.h"

namespace heddle::denoisers {
namespace {

// What the tensors and the config say about one model.
struct Dimensions {
  StreamSizes streams;
  std::int64_t pooled_width;
  double theta = 10000;
  int singles;
  bool guided;  // trained with the guidance as an input
  std::vector<Widening> widened;
  std::int64_t beside;  // numbers of a token that LoRAs read beside those of the first layer
};

Dimensions read_dimensions(const Checkpoint& file, const Value& config, const FluxNames& names) {
  Dimensions d{};
  d.streams = read_stream_sizes(file, config, modules_of(names), modules_of_double(names, 0),
                                names.double_prefix());
  d.pooled_width = file.size(names.one(names.top("vector_in.in_layer", "weight")), 1);
  d.guided = file.has(names.one(names.top("guidance_in.in_layer", "weight")));
  d.singles =
      checked_cast<int>(config.get<std::int64_t>("num_single_layers",
                                                 blocks::layer_count(file, names.single_prefix())),
                        "num_single_layers");
  d.widened = widenings(config);
  d.beside = read_beside(file, d.widened, d.streams.in_width);
  return d;
}

// ControlNets of XLabs read the pixels of their hint, not its latent.
bool of_pixels(const Checkpoint& file, const FluxNames& names) {
  return file.has(names.prefix() + "pos_embed_input.weight");
}

// Builds the graph of one file.
class Builder {
 public:
  Builder(const Checkpoint& file, const FluxNames& names, const Dimensions& dimensions,
          Blocks& graph)
      : file_(file),
        names_(names),
        d_(dimensions),
        hidden_(dimensions.streams.hidden),
        graph_(graph),
        streams_(file, dimensions.streams, graph, modules_of(names)) {}

  // Of a ControlNet the latent's tokens begin with those of its hint, and it ends with residuals.
  void run(const ControlBuilder* control = nullptr, const std::vector<ModelPatch>& patches = {}) {
    const Source x = graph_.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    const Source timestep = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    const Source context =
        graph_.input("context", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    const Source y = graph_.input("y", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    const Source nag = graph_.input("nag", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL);
    const Source vector = embed_vector(timestep, y, nag);
    if (control != nullptr) return run_control(*control, x, vector, context, nag);
    if (is_shown_pictures())
      references_ = graph_.input(
          "references", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL | HEDDLE_INPUT_BATCH);
    Source txt = streams_.embed_text(context, x, nag);
    for (const ModelPatch& patch : patches)
      txt = of_patch(patch, [&] { return add_style(file_, patch, hidden_, txt, graph_); });
    attention_ = add_rope(x, patches.empty() ? context : txt, nag);
    attention_.control_double = graph_.input("control.double", kChanging);
    attention_.control_single = graph_.input("control.single", kChanging);
    attention_.singles = d_.singles;
    Source img = widened(streams_.embed_image(x, nag, references()), x, nag);
    for (int i = 0; i < d_.streams.doubles; ++i)
      streams_.add_double(i, modules_of_double(names_, i), vector, attention_, img, txt);
    Block join = graph_.add<FluxJoin>("join");
    join.link(FluxJoin::txt, txt).link(FluxJoin::img, img);
    Source hidden = join[FluxJoin::out];
    for (int i = 0; i < d_.singles; ++i) {
      hidden = add_single(i, vector, hidden, x);
      streams_.expose("single." + std::to_string(i), hidden);
    }
    graph_.output("out", streams_.add_final(vector, hidden, x, {{}, {}, nag, references_, {}}));
  }

 private:
  static constexpr std::uint32_t kChanging =
      HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_OPTIONAL | HEDDLE_INPUT_BATCH;

  void run_control(const ControlBuilder& control, const Source& x, const Source& vector,
                   const Source& context, const Source& nag) {
    Source txt = control.add_modes(streams_.embed_text(context, x, nag)),
           img = streams_.embed_image(x, nag);
    img = of_pixels(file_, names_)
              ? control.add_hint(img, control.filtered(control.hint()), "pos_embed_input")
              : control.add_hint(img, control.hint(), "controlnet_x_embedder");
    attention_ = add_rope(x, txt, nag);
    for (int i = 0; i < d_.streams.doubles; ++i) {
      streams_.add_double(i, modules_of_double(names_, i), vector, attention_, img, txt);
      control.add_residual("double", i, "controlnet_blocks." + std::to_string(i), img, x);
    }
    if (d_.singles == 0) return;
    Block join = graph_.add<FluxJoin>("join");
    join.link(FluxJoin::txt, txt).link(FluxJoin::img, img);
    Source hidden = join[FluxJoin::out];
    for (int i = 0; i < d_.singles; ++i) {
      hidden = add_single(i, vector, hidden, x);
      control.add_residual("single", i, "controlnet_single_blocks." + std::to_string(i), hidden, x);
    }
  }

  Source add_single(int index, const Source& vector, const Source& hidden, const Source& x) {
    const FindModule find = modules_of_single(names_, index);
    const Source modulation = streams_.modulation("single." + std::to_string(index) + ".modulation",
                                                  vector, find("modulation.lin"), 3);
    return streams_.add_single(index, find, modulation, attention_, hidden, x, references());
  }

  Source widened(Source img, const Source& x, const Source& nag) {
    using B = FluxWiden;
    if (d_.widened.empty()) return img;
    const Source concat = graph_.input("concat", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    for (std::size_t i = 0; i < d_.widened.size(); ++i) {
      const Widening& told = d_.widened[i];
      const std::string path = "embed.widened_" + std::to_string(i);
      Block block = graph_.add<B>(path);
      block.link(B::img, img).link(B::x, x).link(B::concat, concat).link(B::nag, nag);
      block.set(B::patch, d_.streams.kind.patch).set(B::strength, told.strength);
      blocks::Slots slots(file_, block, path);
      const std::int64_t rank = file_.size(told.down, 0);
      slots.fill(B::down, told.down, {rank, d_.streams.in_width + d_.beside});
      slots.fill(B::up, told.up, {hidden_, rank});
      img = block[B::out];
    }
    return img;
  }

  // Models that read more beside the point are made for that.
  bool is_shown_pictures() const {
    return d_.streams.in_width == d_.streams.out_width && d_.beside == 0;
  }
  const Source* references() const { return references_ ? &*references_ : nullptr; }

  Source embed_vector(const Source& timestep, const Source& y, const Source& nag) {
    using B = FluxVector;
    Block block = graph_.add<B>("embed.vector");
    block.link(B::timestep, timestep).link(B::y, y).link(B::nag, nag);
    blocks::Slots slots(file_, block, "embed.vector");
    const FindModule top = modules_of(names_);
    const auto layer = [&](const Weight& matrix, const Weight& bias, const char* module,
                           std::int64_t in) {
      DualStreams::linear(slots, matrix, bias, top(module), hidden_, in);
    };
    const std::int64_t waves = d_.streams.time_width;
    layer(B::time_in, B::time_in_bias, "time_in.in_layer", waves);
    layer(B::time_out, B::time_out_bias, "time_in.out_layer", hidden_);
    layer(B::text_in, B::text_in_bias, "vector_in.in_layer", d_.pooled_width);
    layer(B::text_out, B::text_out_bias, "vector_in.out_layer", hidden_);
    if (d_.guided) {
      block.link(B::guidance,
                 graph_.input("guidance", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL |
                                              HEDDLE_INPUT_BATCH));
      block.link(B::unguided,
                 graph_.input("unguided", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL));
      layer(B::guidance_in, B::guidance_in_bias, "guidance_in.in_layer", waves);
      layer(B::guidance_out, B::guidance_out_bias, "guidance_in.out_layer", hidden_);
    }
    return block[B::out];
  }

  AttentionInputs add_rope(const Source& x, const Source& context, const Source& nag) {
    using B = FluxRope;
    Block block = graph_.add<B>("embed.rope");
    block.link(B::x, x).link(B::context, context).link(B::nag, nag);
    block.link(B::positions,
               graph_.input("positions", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL));
    if (references_)
      block.link(
          B::reference_positions,
          graph_.input("reference_positions", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL));
    block.set(B::axis_0, d_.streams.axes[0])
        .set(B::axis_1, d_.streams.axes[1])
        .set(B::axis_2, d_.streams.axes[2])
        .set(B::theta, d_.theta);
    return {block[B::cos], block[B::sin], nag};
  }

  const Checkpoint& file_;
  const FluxNames& names_;
  const Dimensions& d_;
  const std::int64_t hidden_;
  Blocks& graph_;
  const DualStreams streams_;
  AttentionInputs attention_;
  std::optional<Source> references_;
};

void add_settings(const Dimensions& d, Blocks& graph) {
  graph.setting("family", "flux");
  graph.setting("latent_channels", d.streams.out_width / kPatchArea);
  graph.setting("latent_downscale", std::int64_t{8});
  add_preview_factors(LatentKind::flux, d.streams.out_width / kPatchArea, graph);
  graph.setting("patch", std::int64_t{2});
  if (const std::int64_t more = d.streams.in_width + d.beside - d.streams.out_width; more > 0)
    graph.setting("concat_channels", more / kPatchArea);
  else
    graph.setting("reference_method", "offset");
  graph.setting("guidance_embedded", d.guided);
  graph.setting("context_width", d.streams.context_width);
  graph.setting("text_encoder", "CLIP-L and T5-XXL (DualCLIPLoader, type flux)");
  graph.setting("pooled_width", d.pooled_width);
  // How noise levels are spaced when no node says otherwise, as ComfyUI does: distilled with
  // guidance, FLUX.1 dev's table with mu = 1.15; else schnell's unshifted one. `sampling`: the
  // output is the velocity of a straight flow.
  graph.setting("sampling", "flow");
  graph.setting("noise_table", d.guided ? "flux" : "discrete_flow");
  graph.setting("noise_mu", d.guided ? 1.15 : 0.0);
  graph.setting("noise_shift", 1.0);
}

}  // namespace

int Flux::match(const Checkpoint& file, const Value&) {
  return FluxNames::find(file) && !control_prefix(file) ? 100 : 0;
}

void Flux::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<FluxNames> names = FluxNames::find(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no FLUX model");
  const Dimensions dimensions = read_dimensions(file, config, *names);
  Builder(file, *names, dimensions, graph).run(nullptr, model_patches(config));
  add_settings(dimensions, graph);
  add_patched_settings(config, dimensions.streams.hidden, graph);
  add_control_settings(graph, dimensions.streams.hidden, dimensions.streams.doubles,
                       dimensions.singles);
  if (dimensions.streams.in_width == dimensions.streams.out_width)
    add_widened_settings(config, names->one(names->top("img_in", "weight")), graph);
}

int FluxControl::match(const Checkpoint& file, const Value&) {
  return FluxNames::find_control(file) && control_prefix(file) ? 100 : 0;
}

void FluxControl::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<FluxNames> names = FluxNames::find_control(file);
  const std::optional<std::string> prefix = control_prefix(file);
  if (!names || !prefix)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no ControlNet of FLUX.1");
  const Dimensions dimensions = read_dimensions(file, config, *names);
  const StreamSizes& streams = dimensions.streams;
  const ControlBuilder control(file, *prefix, streams.hidden, graph);
  Builder(file, *names, dimensions, graph).run(&control);
  control.add_settings("flux", streams.doubles, dimensions.singles);
  graph.setting("context_width", streams.context_width);
  graph.setting("pooled_width", dimensions.pooled_width);
  graph.setting("latent_channels", streams.in_width / kPatchArea);
  if (of_pixels(file, *names)) {
    graph.setting("hint_pixels", true);
    graph.setting("hint_factor", 2.0);
    graph.setting("hint_offset", -1.0);
    graph.setting("control_cycles", true);
    return;
  }
  graph.setting("hint_channels",
                file.size(*prefix + "controlnet_x_embedder.weight", 1) / kPatchArea);
}

}  // namespace heddle::denoisers
