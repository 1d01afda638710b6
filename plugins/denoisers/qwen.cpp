#include "qwen.h"

#include <span>

#include "dual_stream.h"
#include "patches.h"
#include "plugins/blocks/wan_latents.h"
#include "qwen_names.h"

namespace heddle::denoisers {
namespace {

FindModule modules_of(const QwenNames& names) {
  return {[&names](std::string_view module, const char* kind) { return names.top(module, kind); }};
}
FindModule modules_of(const QwenNames& names, int block) {
  return {[&names, block](std::string_view module, const char* kind) {
    return names.in_block(block, module, kind);
  }};
}

// Builds the graph of one file.
class QwenBuilder {
 public:
  QwenBuilder(const Checkpoint& file, const QwenNames& names, const StreamSizes& sizes,
              Blocks& graph)
      : file_(file),
        s_(sizes),
        graph_(graph),
        top_(modules_of(names)),
        streams_(file, sizes, graph, top_) {}

  void run(const QwenNames& names) {
    const Source x = graph_.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    const Source timestep = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    const Source context =
        graph_.input("context", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    const Source nag = graph_.input("nag", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL);
    const Source vector = embed_vector(timestep);
    const AttentionInputs attention = add_rope(x, context, nag);
    Source txt = streams_.embed_text(norm_text(context), x, nag),
           img = streams_.embed_image(x, nag);
    for (int i = 0; i < s_.doubles; ++i)
      streams_.add_double(i, modules_of(names, i), vector, attention, img, txt);
    graph_.output("out", streams_.add_final(vector, img, x));
  }

 private:
  Source embed_vector(const Source& timestep) {
    using B = QwenVector;
    Block block = graph_.add<B>("embed.vector");
    block.link(B::timestep, timestep);
    blocks::Slots slots(file_, block, "embed.vector");
    DualStreams::linear(slots, B::time_in, B::time_in_bias, top_("time_in.in_layer"), s_.hidden,
                        s_.time_width);
    DualStreams::linear(slots, B::time_out, B::time_out_bias, top_("time_in.out_layer"), s_.hidden,
                        s_.hidden);
    return block[B::out];
  }

  AttentionInputs add_rope(const Source& x, const Source& context, const Source& nag) {
    using B = QwenRope;
    Block block = graph_.add<B>("embed.rope");
    block.link(B::x, x).link(B::context, context).link(B::nag, nag);
    block.set(B::axis_0, s_.axes[0]).set(B::axis_1, s_.axes[1]).set(B::axis_2, s_.axes[2]);
    return {block[B::cos], block[B::sin], nag};
  }

  Source norm_text(const Source& context) {
    using B = QwenTextNorm;
    Block block = graph_.add<B>("embed.text_norm");
    block.link(B::context, context);
    blocks::Slots(file_, block, "embed.text_norm")
        .fill(B::weight, top_("txt_norm")("weight"), {s_.context_width});
    return block[B::out];
  }

  const Checkpoint& file_;
  const StreamSizes& s_;
  Blocks& graph_;
  const FindModule top_;
  const DualStreams streams_;
};

Value list_of_numbers(std::span<const double> numbers) {
  std::vector<Value> items;
  for (const double number : numbers) items.push_back(value_of(number));
  return list_of(items);
}

void add_settings(const StreamSizes& s, Blocks& graph) {
  const std::int64_t channels = s.out_width / kPatchArea;
  graph.setting("family", "qwen-image");
  graph.setting("latent_channels", channels);
  graph.setting("latent_downscale", std::int64_t{8});
  graph.setting("patch", std::int64_t{2});
  graph.setting("guidance_embedded", false);
  graph.setting("context_width", s.context_width);
  graph.setting("text_encoder", "Qwen2.5-VL 7B (CLIPLoader, type qwen_image)");
  if (channels == std::int64_t(std::size(blocks::kWanLatentMeans))) {
    graph.setting("latent_means", list_of_numbers(blocks::kWanLatentMeans));
    graph.setting("latent_deviations", list_of_numbers(blocks::kWanLatentDeviations));
  }
  // How noise levels are spaced when no node says otherwise, as ComfyUI does: FLUX.1 dev's table
  // with mu = 1.15. `sampling`: the output is the velocity of a straight flow.
  graph.setting("sampling", "flow");
  graph.setting("noise_table", "flux");
  graph.setting("noise_mu", 1.15);
}

}  // namespace

int Qwen::match(const Checkpoint& file, const Value&) { return QwenNames::find(file) ? 100 : 0; }

void Qwen::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<QwenNames> names = QwenNames::find(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no Qwen-Image model");
  if (names->is_layered())
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() +
                    ": this is Qwen-Image-Layered, which draws several layers at once and is not "
                    "supported. Use Qwen-Image.");
  const StreamSizes sizes = read_stream_sizes(file, config, modules_of(*names),
                                              modules_of(*names, 0), names->block_prefix());
  QwenBuilder(file, *names, sizes, graph).run(*names);
  add_settings(sizes, graph);
}

}  // namespace heddle::denoisers
