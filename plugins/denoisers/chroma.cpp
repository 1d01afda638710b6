#include "chroma.h"

#include <heddle/checked.hpp>

#include "flux_blocks.h"
#include "flux_modules.h"
#include "patches.h"
#include "preview_factors.h"
#include "radiance.h"

namespace heddle::denoisers {
namespace {

constexpr const char* kFirstLayer = "distilled_guidance_layer.in_proj";
constexpr StreamKind kChromaStreams{.time = kFirstLayer};
constexpr int kOfSingle = 3, kOfStream = 6, kOfLast = 2;  // modulations that each reads

// Builds the graph of one file.
class ChromaBuilder {
 public:
  // `radiance`: nullptr where it draws latents.
  ChromaBuilder(const Checkpoint& file, const FluxNames& names, const StreamSizes& sizes,
                const RadianceSizes* radiance, int singles, Blocks& graph)
      : file_(file),
        names_(names),
        s_(sizes),
        radiance_(radiance),
        singles_(singles),
        graph_(graph),
        top_(modules_of(names)),
        streams_(file, sizes, graph, top_) {}

  void run() {
    const Source x = graph_.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    const Source all = approximate();
    const Source context =
        graph_.input("context", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    const Source nag = radiance_ == nullptr ? optional_input("nag") : Source{};
    const AttentionInputs attention =
        radiance_ == nullptr ? add_rope(x, context, nag)
                             : pixels().add_rope(x, context, optional_input("positions"));
    Source txt = streams_.embed_text(context, x, nag),
           img = radiance_ == nullptr ? streams_.embed_image(x, nag) : pixels().embed_image(x);
    // The order of modulations: single blocks, pictures, texts, the last layer.
    const int pictures = kOfSingle * singles_, texts = pictures + kOfStream * s_.doubles;
    for (int i = 0; i < s_.doubles; ++i) {
      const std::string path = "double." + std::to_string(i);
      const StreamModulation mod{
          modulation(path + ".img_modulation", all, pictures + kOfStream * i, kOfStream),
          modulation(path + ".txt_modulation", all, texts + kOfStream * i, kOfStream)};
      streams_.add_double(i, modules_of_double(names_, i), mod, attention, img, txt);
    }
    Block join = graph_.add<FluxJoin>("join");
    join.link(FluxJoin::txt, txt).link(FluxJoin::img, img);
    Source hidden = join[FluxJoin::out];
    for (int i = 0; i < singles_; ++i) {
      const std::string path = "single." + std::to_string(i);
      const Source mod = modulation(path + ".modulation", all, kOfSingle * i, kOfSingle);
      hidden = streams_.add_single(i, modules_of_single(names_, i), mod, attention, hidden, x);
      streams_.expose(path, hidden);
    }
    if (radiance_ != nullptr) {
      graph_.output("out", pixels().draw(hidden, x, timestep_));
      return;
    }
    const Source last = modulation("final.modulation", all, count() - kOfLast, kOfLast);
    graph_.output("out", streams_.add_final_block(last, hidden, x, attention));
  }

 private:
  RadianceParts pixels() const { return {file_, names_, s_, *radiance_, graph_}; }

  // Radiance has two for a last layer, too, that nothing reads.
  std::int64_t count() const { return kOfSingle * singles_ + 2 * kOfStream * s_.doubles + kOfLast; }

  Source optional_input(const char* name, std::uint32_t flags = 0) {
    return graph_.input(name, HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL | flags);
  }

  // All modulations.
  Source approximate() {
    const FindModule& top = top_;
    const auto size = [&](const char* module, std::uint32_t axis) {
      return file_.size(names_.one(names_.top(module, "weight")), axis);
    };
    const std::int64_t width = size(kFirstLayer, 0);
    Block first = graph_.add<ChromaVector>("approximator.in");
    timestep_ = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    first.link(ChromaVector::timestep, timestep_)
        .link(ChromaVector::guidance, optional_input("guidance", HEDDLE_INPUT_BATCH));
    first.set(ChromaVector::count, count());
    blocks::Slots slots(file_, first, "approximator.in");
    DualStreams::linear(slots, ChromaVector::weight, ChromaVector::bias, top(kFirstLayer), width,
                        s_.time_width);
    Source vectors = first[ChromaVector::out];
    for (int i = 0; i < names_.approximator_depth(); ++i) vectors = add_layer(i, width, vectors);
    Block last = graph_.add<ChromaVectors>("approximator.out");
    last.link(ChromaVectors::x, vectors);
    blocks::Slots last_slots(file_, last, "approximator.out");
    DualStreams::linear(last_slots, ChromaVectors::weight, ChromaVectors::bias,
                        top("distilled_guidance_layer.out_proj"), s_.hidden, width);
    return last[ChromaVectors::out];
  }

  Source add_layer(int index, std::int64_t width, const Source& vectors) {
    using B = ChromaLayer;
    const std::string path = "approximator.layer." + std::to_string(index);
    const auto module = [&](const char* name) -> ModuleParts {
      return [this, index, name](const char* kind) {
        return names_.in_approximator(index, name, kind);
      };
    };
    Block block = graph_.add<B>(path);
    block.link(B::x, vectors);
    blocks::Slots slots(file_, block, path);
    slots.fill(B::norm, module("norm")("weight"), {width});
    DualStreams::linear(slots, B::up, B::up_bias, module("in_layer"), width, width);
    DualStreams::linear(slots, B::down, B::down_bias, module("out_layer"), width, width);
    return block[B::out];
  }

  // Of all modulations those from `first` on.
  Source modulation(const std::string& path, const Source& all, std::int64_t first, int parts) {
    using B = ChromaModulation;
    Block block = graph_.add<B>(path);
    block.link(B::all, all);
    block.set(B::first, first).set(B::count, std::int64_t(parts)).set(B::width, s_.hidden);
    return block[B::out];
  }

  AttentionInputs add_rope(const Source& x, const Source& context, const Source& nag) {
    using B = FluxRope;
    Block block = graph_.add<B>("embed.rope");
    block.link(B::x, x).link(B::context, context).link(B::nag, nag);
    block.link(B::positions, optional_input("positions"));
    block.set(B::axis_0, s_.axes[0]).set(B::axis_1, s_.axes[1]).set(B::axis_2, s_.axes[2]);
    return {block[B::cos], block[B::sin], nag};
  }

  const Checkpoint& file_;
  const FluxNames& names_;
  const StreamSizes& s_;
  const RadianceSizes* const radiance_;
  const int singles_;
  Blocks& graph_;
  const FindModule top_;
  const DualStreams streams_;
  Source timestep_ = {};
};

void check_approximator(const Checkpoint& file, const FluxNames& names, const StreamSizes& s) {
  if (s.time_width % 8 != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": '" + names.one(names.top(kFirstLayer, "weight")) + "' reads " +
                    std::to_string(s.time_width) +
                    " numbers; waves of a timestep, a guidance and a modulation's number make a "
                    "multiple of 8. The file is damaged.");
}

void add_settings(const StreamSizes& s, const RadianceSizes* radiance, const Value& config,
                  Blocks& graph) {
  const bool is_latent = radiance == nullptr;
  const std::int64_t channels = is_latent ? s.out_width / kPatchArea : radiance->colours;
  graph.setting("family", is_latent ? "chroma" : "chroma_radiance");
  graph.setting("latent_channels", channels);
  graph.setting("latent_downscale", std::int64_t{is_latent ? 8 : 1});
  add_preview_factors(is_latent ? LatentKind::flux : LatentKind::pixels, channels, graph);
  graph.setting("patch", s.kind.patch);
  // For a node that has text tokens stand one after another: what builds the model that does.
  if (!is_latent)
    graph.setting("sequential_model", (config.is(HEDDLE_KIND_RECORD) ? Record(config) : Record())
                                          .set("sequential_text", value_of(true))
                                          .value());
  graph.setting("guidance_embedded", true);
  graph.setting("default_guidance", 0.0);
  graph.setting("context_width", s.context_width);
  graph.setting("text_encoder", "T5-XXL (CLIPLoader, type chroma)");
  // How noise levels are spaced when no node says otherwise, as ComfyUI does. `sampling`: the
  // output is the velocity of a straight flow.
  graph.setting("sampling", "flow");
  graph.setting("noise_table", "flux");
  graph.setting("noise_mu", 1.15);
}

StreamSizes read_sizes(const Checkpoint& file, const Value& config, const FluxNames& names,
                       const RadianceSizes* radiance) {
  StreamKind kind = kChromaStreams;
  if (radiance == nullptr)
    return read_stream_sizes(file, config, modules_of(names), modules_of_double(names, 0),
                             names.double_prefix(), kind);
  kind.patch = 1;  // the filter of the first layer has the squares in its shape
  StreamSizes sizes = read_stream_sizes(file, config, radiance_modules(names),
                                        modules_of_double(names, 0), names.double_prefix(), kind);
  sizes.kind.patch = radiance->patch;
  return sizes;
}

}  // namespace

int Chroma::match(const Checkpoint& file, const Value&) {
  return FluxNames::find_chroma(file) ? 100 : 0;
}

void Chroma::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<FluxNames> names = FluxNames::find_chroma(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no Chroma model");
  const std::optional<RadianceSizes> found = find_radiance(file, config, *names);
  const RadianceSizes* const radiance = found ? &*found : nullptr;
  const StreamSizes sizes = read_sizes(file, config, *names, radiance);
  check_approximator(file, *names, sizes);
  if (sizes.in_width != sizes.out_width)
    throw Error(HEDDLE_UNSUPPORTED, file.path() +
                                        ": a Chroma model reads as many channels as it "
                                        "makes; this one reads tokens of " +
                                        std::to_string(sizes.in_width) + " numbers and makes " +
                                        std::to_string(sizes.out_width));
  const int singles =
      checked_cast<int>(config.get<std::int64_t>("num_single_layers",
                                                 blocks::layer_count(file, names->single_prefix())),
                        "num_single_layers");
  ChromaBuilder(file, *names, sizes, radiance, singles, graph).run();
  add_settings(sizes, radiance, config, graph);
}

}  // namespace heddle::denoisers
