#include "unet.h"

#include <deque>
#include <string>
#include <vector>

#include "flux_blocks.h"
#include "plugins/blocks/slots.h"
#include "unet_adapters.h"
#include "unet_cross.h"
#include "unet_filler.h"
#include "unet_fit.h"
#include "unet_gligen.h"
#include "unet_heatmaps.h"
#include "unet_hyper.h"
#include "unet_lora_control.h"
#include "unet_names.h"
#include "unet_patches.h"
#include "unet_self.h"
#include "unet_settings.h"
#include "unet_vector.h"
#include "unet_view.h"

namespace heddle::denoisers {
namespace {

constexpr std::int64_t kUnetHeads = 8, kUnetHeadWidth = 64;

// Builds the graph of one file.
class UnetBuilder {
 public:
  UnetBuilder(const Checkpoint& file, const UnetNames& names, const UnetSizes& sizes, Blocks& graph,
              const Value& config = {}, UnetPatches patches = {})
      : file_(file),
        names_(names),
        d_(sizes),
        patches_(std::move(patches)),
        graph_(graph),
        adapters_(file, names, config, graph),
        gligens_(file, config, graph) {}

  void run(const UnetHeatmapHead* head) {
    begin();
    Source hidden = embed_latent();
    UnetGrid grid{d_.channels, 0};
    std::vector<Skip> skips;
    walk_down(hidden, grid, [&](int index, Source& made) {
      made = controlled("input." + std::to_string(index), "control.input", index, made, grid);
      made = shrunk(patches_, index, false, made, graph_);
      skips.push_back({made, grid});
      made = shrunk(patches_, index, true, made, graph_);
    });
    hidden = controlled("middle", "control.middle", -1, hidden, grid);
    for (std::size_t i = 0; i < names_.outputs().size(); ++i) {
      if (head != nullptr && i == head->stage())
        return graph_.output("heatmaps", head->add(hidden, graph_));
      if (skips.empty())
        throw Error(HEDDLE_INVALID_ARGUMENT,
                    file_.path() +
                        ": the UNet has more stages upwards than downwards. The file is "
                        "damaged.");
      Skip skip = skips.back();
      skips.pop_back();
      like_ = skips.empty() ? skip.hidden : skips.back().hidden;
      const std::string path = "output." + std::to_string(i);
      skip.hidden = controlled(path, "control.output", int(skips.size()), skip.hidden, skip.grid);
      change_stage(patches_, path, grid.channels, d_.channels, {hidden, skip.hidden}, graph_);
      for (const UnetPart& part : names_.outputs()[i])
        add_part(part, path, &skip, hidden, grid.channels);
    }
    graph_.output("out", add_final(hidden, grid.channels));
    places_.tell(graph_);
  }

  // A ControlNet ends behind the middle.
  void run_control(UnetControlBuilder& control) {
    begin(&control);
    UnetGrid grid{d_.channels, 0};
    Source hidden = control.add_hint(embed_latent(), grid);
    walk_down(hidden, grid,
              [&](int index, const Source& made) { control.add_residual(index, made, grid); });
    control.add_middle(hidden, grid);
  }

 private:
  static constexpr std::uint32_t kConstant = HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH;
  static constexpr std::uint32_t kChanging =
      HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_OPTIONAL | HEDDLE_INPUT_BATCH;
  using Kind = UnetPart::Kind;
  // What a stage of the way up reads of the way down.
  struct Skip {
    Source hidden;
    UnetGrid grid;
  };

  void begin(const UnetControlBuilder* control = nullptr) {
    x_ = graph_.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    const Source timestep = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    if (d_.context > 0)
      context_ = add_view(file_, graph_.input("context", kConstant), d_.context, graph_);
    vector_ = add_vector({file_, names_, d_}, timestep,
                         control ? control->add_kinds(d_.vector) : std::nullopt, graph_);
  }

  // The way down, of which the first stage is there already, and the middle. Calls
  // behind(index, hidden) after each stage, which may change what the next one reads.
  template <class Behind>
  void walk_down(Source& hidden, UnetGrid& grid, Behind&& behind) {
    behind(0, hidden);
    for (std::size_t i = 1; i < names_.inputs().size(); ++i) {
      for (const UnetPart& part : names_.inputs()[i]) {
        add_part(part, "input." + std::to_string(i), nullptr, hidden, grid.channels);
        if (part.kind == Kind::down) ++grid.halvings;
      }
      behind(int(i), hidden);
    }
    int number = 0;
    if (patches_.tells_attended) check_middle(file_, names_);
    for (const UnetPart& part : names_.middle())
      add_part(part, "middle." + std::to_string(number++), nullptr, hidden, grid.channels);
  }

  // With the residual of the input "<name>.<index>" (below 0: "<name>"), where a run gives it.
  Source controlled(const std::string& path, const std::string& name, int index,
                    const Source& hidden, const UnetGrid& grid) {
    using B = UnetControlled;
    inputs_.push_back(index < 0 ? name : name + "." + std::to_string(index));
    places_.add(inputs_.back(), grid);
    Block block = graph_.add<B>(path + ".control");
    block.link(B::hidden, hidden)
        .link(B::residual, graph_.input(inputs_.back().c_str(), kChanging))
        .set(B::is_loose, !patches_.shrinks.empty());
    return block[B::out];
  }

  using Filler = UnetFiller;
  Filler filler(Block& block, const std::string& path, const UnetPart* part = nullptr) const {
    return {names_, part, blocks::Slots(file_, block, path)};
  }
  std::int64_t rows(const UnetPart& part, const char* module) const {
    return file_.size(names_.in_part(part, module, "weight"), 0);
  }

  Source embed_latent() {
    using B = UnetIn;
    Block block = graph_.add<B>("input.0.conv");
    block.link(B::x, x_);
    if (d_.more > 0) block.link(B::concat, graph_.input("concat", kConstant));
    filler(block, "input.0.conv")
        .both(B::conv, B::conv_bias, "input_blocks.0.0", {d_.channels, d_.latent + d_.more, 3, 3});
    return block[B::out];
  }

  void add_part(const UnetPart& part, const std::string& path, const Skip* skip, Source& hidden,
                std::int64_t& channels) {
    switch (part.kind) {
      case Kind::resnet:
        return add_resnet(part, path, skip, hidden, channels);
      case Kind::transformer:
        return add_transformer(part, path, hidden, channels);
      case Kind::down:
        ++halvings_;
        return add_resample<UnetDown>(part, path + ".smaller.conv", "op", hidden, channels);
      case Kind::up:
        --halvings_;
        return add_resample<UnetUp>(part, path + ".larger.conv", "conv", hidden, channels);
    }
  }

  void add_resnet(const UnetPart& part, const std::string& path, const Skip* skip, Source& hidden,
                  std::int64_t& channels) {
    using B = UnetResnet;
    using M = FluxModulation;
    const std::int64_t in = channels + (skip == nullptr ? 0 : skip->grid.channels),
                       out = rows(part, "in_layers.2");
    Block modulation = graph_.add<M>(path + ".modulation");
    modulation.link(M::vector, vector_);
    filler(modulation, path + ".modulation", &part)
        .both(M::weight, M::bias, "emb_layers.1", {out, d_.vector});
    Block block = graph_.add<B>(path + ".resnet");
    block.link(B::hidden, hidden).link(B::mod, modulation[M::out]);
    if (skip != nullptr) block.link(B::skip, skip->hidden);
    Filler fill = filler(block, path + ".resnet", &part);
    fill.both(B::norm1, B::norm1_bias, "in_layers.0", {in});
    fill.both(B::conv1, B::conv1_bias, "in_layers.2", {out, in, 3, 3});
    fill.both(B::norm2, B::norm2_bias, "out_layers.0", {out});
    fill.both(B::conv2, B::conv2_bias, "out_layers.3", {out, out, 3, 3});
    if (in != out) fill.both(B::shortcut, B::shortcut_bias, "skip_connection", {out, in, 1, 1});
    hidden = block[B::out];
    channels = out;
  }

  // A projection of a transformer, a matrix or a filter of one pixel.
  template <class B>
  void fill_projection(Filler& fill, const char* module, std::int64_t out, std::int64_t in) const {
    if (d_.is_linear)
      fill.both(B::proj, B::proj_bias, module, {out, in});
    else
      fill.both(B::proj_filter, B::proj_bias, module, {out, in, 1, 1});
  }

  void add_transformer(const UnetPart& part, const std::string& path, Source& hidden,
                       std::int64_t channels) {
    const std::int64_t width = rows(part, "proj_in");
    const std::int64_t heads = d_.is_linear && d_.levels == 0 ? width / kUnetHeadWidth : kUnetHeads;
    if (heads == 0 || width % heads != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": tokens of " + std::to_string(width) + " numbers ('" +
                      names_.in_part(part, "proj_in", "weight") +
                      "') do not divide into heads of " + std::to_string(kUnetHeadWidth) +
                      ". The file is damaged.");
    Block enter = graph_.add<UnetTokensIn>(path + ".tokens.in");
    enter.link(UnetTokensIn::hidden, hidden);
    Filler fill = filler(enter, path + ".tokens.in", &part);
    fill.both(UnetTokensIn::norm, UnetTokensIn::norm_bias, "norm", {channels});
    fill_projection<UnetTokensIn>(fill, "proj_in", width, channels);
    Source tokens = enter[UnetTokensIn::out];
    adapters_.enter();
    for (int k = 0; k < part.depth; ++k)
      tokens =
          add_block(part, path + ".transformer." + std::to_string(k), k, {heads, width}, tokens);
    Block leave = graph_.add<UnetTokensOut>(path + ".picture.out");
    leave.link(UnetTokensOut::tokens, tokens).link(UnetTokensOut::hidden, hidden);
    Filler last = filler(leave, path + ".picture.out", &part);
    fill_projection<UnetTokensOut>(last, "proj_out", channels, width);
    hidden = leave[UnetTokensOut::out];
  }

  struct Attention {
    std::int64_t heads, width;
  };
  Source add_block(const UnetPart& part, const std::string& path, int index,
                   const Attention& attention, const Source& tokens) {
    using B = UnetTransformer;
    const std::string at = "transformer_blocks." + std::to_string(index) + ".";
    const std::int64_t width = attention.width;
    Block text = graph_.add<UnetContext>(path + ".context");
    text.link(UnetContext::x, x_);
    const auto changed = add_hypernetworks(patches_.hypernetworks, file_, path + ".context",
                                           context_, d_.context, graph_);
    text.link(UnetContext::context, changed ? changed->keys : context_);
    if (changed) text.link(UnetContext::values_of, changed->values);
    filler(text, path + ".context", &part)
        .matrix(UnetContext::kv, {at + "attn2.to_k", at + "attn2.to_v"}, {2 * width, d_.context});
    std::optional<Source> attended;
    const bool in_parts = !adapters_.empty() || !gligens_.empty();
    const bool has_tiled_parts = in_parts && patches_.tiles.tile > 0;
    const UnetSelfPlace self{file_,           names_, part,   path, at,
                             attention.heads, width,  tokens, x_,   patches_};
    if (reads_text_twice(self, d_.context))
      attended = add_cross_blocks(self, context_, d_.context, graph_);
    else if (path.starts_with("middle.") || has_tiled_parts ||
             has_hypernetwork(patches_.hypernetworks, file_, width))
      attended = add_self_blocks(self, graph_);
    Block block = graph_.add<B>(path + ".block");
    block.set(B::heads, attention.heads);
    Filler fill = filler(block, path + ".block", &part);
    if (in_parts) {
      const UnetBlockPlace place{part,
                                 path,
                                 at,
                                 attention.heads,
                                 width,
                                 halvings_,
                                 tokens,
                                 text[UnetContext::out],
                                 x_,
                                 attended,
                                 patches_.merged};
      const Source between = gligens_.added(place, adapters_.self(place));
      block.link(B::tokens, between).link(B::crossed, adapters_.crossed(place, between));
    } else {
      block.link(B::tokens, tokens).link(B::kv, text[UnetContext::out]);
      fill_attentions(fill, path, at, width, attended, block);
    }
    fill.both(B::text_proj, B::text_proj_bias, at + "attn2.to_out.0", {width, width});
    fill.both(B::norm3, B::norm3_bias, at + "norm3", {width});
    const std::int64_t raised = rows(part, (at + "ff.net.0.proj").c_str());
    fill.both(B::up, B::up_bias, at + "ff.net.0.proj", {raised, width});
    fill.both(B::down, B::down_bias, at + "ff.net.2", {width, raised / 2});
    return block[B::out];
  }

  void fill_attentions(Filler& fill, const std::string& path, const std::string& at,
                       std::int64_t width, const std::optional<Source>& attended,
                       Block& block) const {
    using B = UnetTransformer;
    if (attended) {
      block.link(B::attended, *attended);
    } else {
      set_tiles(block, patches_.tiles, x_, path);
      set_merge(block, patches_.merged, x_, path);
      fill.both(B::norm1, B::norm1_bias, at + "norm1", {width});
      fill.matrix(B::qkv, {at + "attn1.to_q", at + "attn1.to_k", at + "attn1.to_v"},
                  {3 * width, width});
    }
    fill.both(B::proj, B::proj_bias, at + "attn1.to_out.0", {width, width});
    fill.both(B::norm2, B::norm2_bias, at + "norm2", {width});
    fill.matrix(B::text_q, {at + "attn2.to_q"}, {width, width});
  }

  template <class B>
  void add_resample(const UnetPart& part, const std::string& path, const char* module,
                    Source& hidden, std::int64_t channels) {
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden);
    if constexpr (std::is_same_v<B, UnetUp>) block.link(B::like, like_);
    filler(block, path, &part).both(B::conv, B::conv_bias, module, {channels, channels, 3, 3});
    hidden = block[B::out];
  }

  Source add_final(const Source& hidden, std::int64_t channels) {
    using B = UnetOut;
    Block block = graph_.add<B>("final.conv");
    block.link(B::hidden, hidden).link(B::x, x_);
    Filler fill = filler(block, "final.conv");
    fill.both(B::norm, B::norm_bias, "out.0", {channels});
    fill.both(B::conv, B::conv_bias, "out.2", {d_.latent, channels, 3, 3});
    return block[B::out];
  }

  const Checkpoint& file_;
  const UnetNames& names_;
  const UnetSizes& d_;
  const UnetPatches patches_;
  Blocks& graph_;
  UnetAdapters adapters_;
  UnetGligens gligens_;
  int halvings_ = 0;
  Source x_, context_, vector_;
  Source like_;  // of the size that the next step up gives
  std::deque<std::string> inputs_;
  UnetControlPlaces places_;
};

// The ControlNet that the UNet and a file of factors or differences, joined to its own, make.
void build_lora_control(const Checkpoint& file, const Value& config, UnetNames names,
                        const UnetSizes& sizes, Blocks& graph) {
  const auto prefix = config.get<std::string>("joined_control", "");
  const bool is_difference = config.get<bool>("control_difference", false);
  if (sizes.more > 0)
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() + ": a ControlNet that is a LoRA reads a latent of " +
                    std::to_string(sizes.latent) + " channels, and this UNet " +
                    std::to_string(sizes.latent + sizes.more) +
                    ". Use a UNet that draws from text alone, or a whole ControlNet.");
  if (!is_difference) names.prefer(prefix);
  UnetControlBuilder control(file, prefix, false, graph);
  UnetBuilder(file, names, sizes, graph).run_control(control);
  control.add_settings();
  add_text_settings(sizes, graph);
  add_lora_targets(file, prefix, is_difference, names, graph);
}

}  // namespace

int Unet::match(const Checkpoint& file, const Value&) {
  return UnetNames::find(file) && !is_of_videos(file) ? 100 : 0;
}

void Unet::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<UnetNames> names = UnetNames::find(file);
  if (!names)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": this is no UNet of Stable Diffusion or SDXL");
  const UnetSizes sizes = unet_sizes(file, *names);
  if (!config.get<std::string>("joined_control", "").empty())
    return build_lora_control(file, config, *names, sizes, graph);
  const auto head = UnetHeatmapHead::find(file, *names);
  const bool is_part = head && config.get<bool>("heatmaps", false);
  UnetBuilder(file, *names, sizes, graph, config, UnetPatches::of(config))
      .run(is_part ? &*head : nullptr);
  if (is_part) return;
  if (head && sizes.is_lotus) head->tell(config, graph);
  graph.setting("patched_config", config.is(HEDDLE_KIND_RECORD) ? Value(config) : Record().value());
  UnetAdapters::add_settings(*names, sizes.context, graph);
  add_unet_settings(file, config, *names, sizes, graph);
  if (const std::int64_t width = view_width(file); width > 0)
    graph.setting("view_context_width", width);
}

int UnetControl::match(const Checkpoint& file, const Value&) {
  return UnetNames::find_control(file) && !is_of_videos(file) ? 100 : 0;
}

void UnetControl::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<UnetNames> names = UnetNames::find_control(file);
  if (!names)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": this is no ControlNet of Stable Diffusion or SDXL");
  const UnetSizes sizes = unet_sizes(file, *names);
  UnetControlBuilder control(file, names->prefix(), names->is_diffusers(), graph);
  if (config.get<bool>("averages", false)) control.average();
  UnetBuilder(file, *names, sizes, graph).run_control(control);
  control.add_settings();
  add_text_settings(sizes, graph);
}

}  // namespace heddle::denoisers
