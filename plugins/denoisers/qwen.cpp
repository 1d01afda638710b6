#include "qwen.h"

#include <deque>
#include <span>

#include "control.h"
#include "dual_stream.h"
#include "model_patches.h"
#include "patches.h"
#include "preview_factors.h"
#include "qwen_fun_control.h"
#include "qwen_names.h"
#include "qwen_patch.h"
#include "wan_latent_settings.h"

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
        kinds_(names.kinds_of_pictures()),
        top_(modules_of(names)),
        streams_(file, sizes, graph, top_) {}

  // Of a ControlNet the latent's tokens begin with those of its hint, and it ends with residuals.
  // is_fun: its blocks are by `names`, all before them is the denoiser's.
  void run(const QwenNames& names, const ControlBuilder* control = nullptr,
           const std::vector<ModelPatch>& told = {}, bool is_fun = false) {
    const Source x = graph_.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    const Source timestep = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    const Source context =
        graph_.input("context", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    const Source nag = graph_.input("nag", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL);
    AttentionInputs attention{{}, {}, nag, {}, {}};
    if (control == nullptr && kinds_.empty()) {
      attention.control_double = graph_.input("control.double", kChanging);
      attention.control_first = graph_.input("control.first", kChanging);
    }
    if (control == nullptr && is_shown_pictures()) {
      attention.references = graph_.input("references", kShown | HEDDLE_INPUT_BATCH);
      attention.reference_timestep = graph_.input("reference_timestep", kShown);
    }
    const Source vector = embed_vector(timestep, attention);
    add_rope(x, context, attention);
    if (is_fun) return run_fun_control(names, *control, x, vector, attention, context);
    if (control != nullptr) return run_control(names, *control, x, vector, attention, context);
    const Source* references = attention.references ? &*attention.references : nullptr;
    Source txt = streams_.embed_text(norm_text(context), x, nag),
           img = streams_.embed_image(x, nag, references);
    std::deque<QwenPatch> patches;
    for (const ModelPatch& patch : told)
      of_patch(patch, [&] { patches.emplace_back(file_, patch, s_.hidden, graph_); });
    for (int i = 0; i < s_.doubles; ++i) {
      streams_.add_double(i, modules_of(names, i), vector, attention, img, txt);
      for (const QwenPatch& patch : patches)
        of_patch(patch.told(), [&] { img = patch.after_block(i, img); });
    }
    graph_.output("out", streams_.add_final(vector, img, x, attention));
  }

 private:
  static constexpr std::uint32_t kShown = HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL;
  static constexpr std::uint32_t kChanging =
      HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_OPTIONAL | HEDDLE_INPUT_BATCH;

  void run_control(const QwenNames& names, const ControlBuilder& control, const Source& x,
                   const Source& vector, const AttentionInputs& attention, const Source& context) {
    Source txt = streams_.embed_text(norm_text(context), x, attention.nag),
           img = control.add_hint(streams_.embed_image(x, attention.nag), control.hint(),
                                  "controlnet_x_embedder");
    for (int i = 0; i < s_.doubles; ++i) {
      streams_.add_double(i, modules_of(names, i), vector, attention, img, txt);
      control.add_residual("double", i, "controlnet_blocks." + std::to_string(i), img, x);
    }
  }

  // What becomes of the latent and the text before the first block is the denoiser's.
  void run_fun_control(const QwenNames& names, const ControlBuilder& control, const Source& x,
                       const Source& vector, const AttentionInputs& attention,
                       const Source& context) {
    Source txt = streams_.embed_text(norm_text(context), x, attention.nag),
           img = add_fun_hint(file_, kFunPrefix, control, streams_.embed_image(x, attention.nag),
                              s_.hidden, graph_);
    for (int i = 0; i < s_.doubles; ++i) {
      streams_.add_double(i, modules_of(names, i), vector, attention, img, txt);
      control.add_residual("first", i, fun_residual_layer(i), img, x);
    }
  }

  // Models that read more beside the point are made for that.
  bool is_shown_pictures() const { return s_.in_width == s_.out_width; }

  Source embed_vector(const Source& timestep, const AttentionInputs& attention) {
    using B = QwenVector;
    Block block = graph_.add<B>("embed.vector");
    block.link(B::timestep, timestep);
    if (attention.reference_timestep)
      block.link(B::reference_timestep, *attention.reference_timestep);
    blocks::Slots slots(file_, block, "embed.vector");
    DualStreams::linear(slots, B::time_in, B::time_in_bias, top_("time_in.in_layer"), s_.hidden,
                        s_.time_width);
    DualStreams::linear(slots, B::time_out, B::time_out_bias, top_("time_in.out_layer"), s_.hidden,
                        s_.hidden);
    if (!kinds_.empty()) slots.fill(B::kinds, kinds_, {2, s_.hidden});
    return block[B::out];
  }

  // The tables of `attention`.
  void add_rope(const Source& x, const Source& context, AttentionInputs& attention) {
    using B = QwenRope;
    Block block = graph_.add<B>("embed.rope");
    block.link(B::x, x).link(B::context, context).link(B::nag, attention.nag);
    if (attention.references)
      block.link(B::reference_positions, graph_.input("reference_positions", kShown))
          .link(B::text_start, graph_.input("text_start", kShown));
    block.set(B::axis_0, s_.axes[0]).set(B::axis_1, s_.axes[1]).set(B::axis_2, s_.axes[2]);
    attention.cos = block[B::cos];
    attention.sin = block[B::sin];
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
  const std::string kinds_;  // Qwen-Image-Layered's embedding; else empty
  const FindModule top_;
  const DualStreams streams_;
};

// Where pictures lie that the model is shown, and what timestep they have: 0 as of 2511.
std::string reference_method(const QwenNames& names, const Value& config) {
  if (names.is_layered()) return "negative_index";
  const bool is_timed = config.get<bool>("zero_cond_t", names.has_timestep_zero());
  return is_timed ? "index_timestep_zero" : "index";
}

void add_settings(const StreamSizes& s, const QwenNames& names, const Value& config,
                  Blocks& graph) {
  const std::int64_t channels = s.out_width / kPatchArea;
  graph.setting("family", "qwen-image");
  graph.setting("latent_channels", channels);
  graph.setting("latent_downscale", std::int64_t{8});
  add_preview_factors(LatentKind::wan21, channels, graph);
  graph.setting("patch", std::int64_t{2});
  if (s.in_width == s.out_width) {
    graph.setting("reference_method", reference_method(names, config));
    graph.setting("reference_centred", true);
    graph.setting("reference_timestep", true);
  }
  if (names.is_layered()) graph.setting("latent_frames", true);
  graph.setting("guidance_embedded", false);
  graph.setting("context_width", s.context_width);
  graph.setting("text_encoder", "Qwen2.5-VL 7B (CLIPLoader, type qwen_image)");
  add_wan_latents(channels, graph);
  // How noise levels are spaced when no node says otherwise, as ComfyUI does: FLUX.1 dev's table
  // with mu = 1.15. `sampling`: the output is the velocity of a straight flow.
  graph.setting("sampling", "flow");
  graph.setting("noise_table", "flux");
  graph.setting("noise_mu", 1.15);
}

// A Fun ControlNet whose file is joined to the denoiser's.
void build_fun_control(const Checkpoint& file, const QwenNames& names, const Value& config,
                       Blocks& graph) {
  const std::optional<QwenNames> own = QwenNames::find_fun_control(file, kFunPrefix);
  if (!own)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no ControlNet of Qwen-Image");
  const StreamSizes sizes =
      read_stream_sizes(file, config, modules_of(names), modules_of(*own, 0), own->block_prefix());
  const ControlBuilder control(file, kFunPrefix, sizes.hidden, graph);
  QwenBuilder(file, names, sizes, graph).run(*own, &control, {}, true);
  control.add_settings("qwen-image", 0, 0);
  graph.setting("context_width", sizes.context_width);
  add_fun_settings(file, kFunPrefix, graph);
}

}  // namespace

int Qwen::match(const Checkpoint& file, const Value&) {
  return QwenNames::find(file) && !control_prefix(file) ? 100 : 0;
}

void Qwen::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<QwenNames> names = QwenNames::find(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no Qwen-Image model");
  if (!config.get<std::string>("joined_control", "").empty())
    return build_fun_control(file, *names, config, graph);
  const StreamSizes sizes = read_stream_sizes(file, config, modules_of(*names),
                                              modules_of(*names, 0), names->block_prefix());
  QwenBuilder(file, *names, sizes, graph).run(*names, nullptr, model_patches(config));
  add_settings(sizes, *names, config, graph);
  // ControlNets and model patches have hints of one picture.
  if (names->is_layered()) return;
  add_control_settings(graph, sizes.hidden, sizes.doubles, 0);
  graph.setting("controlled_firsts", std::int64_t{sizes.doubles});
  add_patched_settings(config, sizes.hidden, graph);
}

int QwenControl::match(const Checkpoint& file, const Value&) {
  return QwenNames::find(file) && control_prefix(file) ? 100 : 0;
}

void QwenControl::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<QwenNames> names = QwenNames::find(file);
  const std::optional<std::string> prefix = control_prefix(file);
  if (!names || !prefix)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no ControlNet of Qwen-Image");
  const StreamSizes sizes = read_stream_sizes(file, config, modules_of(*names),
                                              modules_of(*names, 0), names->block_prefix());
  const ControlBuilder control(file, *prefix, sizes.hidden, graph);
  QwenBuilder(file, *names, sizes, graph).run(*names, &control);
  control.add_settings("qwen-image", sizes.doubles, 0);
  graph.setting("context_width", sizes.context_width);
  const std::int64_t channels = sizes.in_width / kPatchArea;
  graph.setting("latent_channels", channels);
  graph.setting("hint_channels",
                file.size(*prefix + "controlnet_x_embedder.weight", 1) / kPatchArea);
  add_wan_latents(channels, graph);
}

}  // namespace heddle::denoisers
