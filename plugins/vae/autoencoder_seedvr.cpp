#include "autoencoder_seedvr.h"

#include <deque>

#include <heddle/abi/stages.h>

#include "plugins/blocks/slots.h"
#include "seedvr_vae_names.h"

namespace heddle::vae {
namespace {

constexpr std::int64_t kSeedFilterFrames = 3, kSeedNormGroups = 32;

// Builds a side for pictures, or a stage of it for videos: keeps the running output, its channels,
// its frames and how often its sides are halved.
class SeedvrVaeBuilder {
 public:
  SeedvrVaeBuilder(const Checkpoint& file, const SeedvrVaeNames& names, bool decoder, Blocks& graph)
      : file_(file),
        names_(names),
        graph_(graph),
        is_decoder_(decoder),
        steps_(steps_of(file, names, decoder)) {
    channels_ = file.size(names.conv_in() + ".weight", 1);
    for (const SeedvrVaeStep& step : steps_) {
      if (step.kind == SeedvrVaePart::resample) ++resamples_;
    }
    constexpr int kMostResamples = 16;
    if (resamples_ > kMostResamples)
      throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": " + std::to_string(resamples_) +
                                               " levels change the pictures' sides, of at most " +
                                               std::to_string(kMostResamples) +
                                               ". The file is damaged or of another model.");
  }

  int stages() const { return steps_.back().stage + 1; }

  void build_pictures() {
    hidden_ =
        graph_.input(is_decoder_ ? "z" : "image", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    pictures_ = true;
    for (const SeedvrVaeStep& step : steps_) add(step);
  }

  void build_stage(int stage, bool is_first) {
    is_first_ = is_first;
    halvings_ = is_decoder_ ? resamples_ : 0;
    frames_ = is_decoder_ || is_first ? 1 : frame_downscale();
    bool begun = false;
    for (const SeedvrVaeStep& step : steps_) {
      if (step.stage > stage) break;
      if (step.stage < stage) {
        pass(step);
        continue;
      }
      if (!begun)
        hidden_ = input(step.kind != SeedvrVaePart::in ? "hidden"
                        : is_decoder_                  ? "z"
                                                       : "image",
                        frames_);
      begun = true;
      add(step);
      pass(step);
    }
    if (!begun)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": level " + std::to_string(stage) +
                      " has no blocks. The file is damaged or of another model.");
    if (stage + 1 < stages()) graph_.output("hidden", hidden_);
    Record shapes;
    for (const Shaped& one : shapes_)
      shapes.set(one.name,
                 list_of({value_of(one.frames), value_of(one.halvings), value_of(one.channels)}));
    graph_.setting("chunk_shapes", shapes.value());
    graph_.setting(HEDDLE_ROUND_STAGE, std::int64_t(stage));
    graph_.setting(HEDDLE_ROUND_INPUT, shapes_.front().name);
  }

  void add_settings(const Value& config) const {
    const std::int64_t in = file_.size(names_.conv_in() + ".weight", 1),
                       out = rows(names_.conv_out());
    graph_.setting("scaling_factor", config.get<double>("scaling_factor", kSeedvrScale));
    graph_.setting("shift_factor", 0.0);
    graph_.setting("latent_channels", is_decoder_ ? in : out / 2);
    graph_.setting("pixel_channels", is_decoder_ ? out : in);
    graph_.setting("downscale", std::int64_t{1} << resamples_);
    graph_.setting("frame_downscale", frame_downscale());
    graph_.setting("no_temporal_tiles", true);  // as in ComfyUI
    Record chunks;
    for (const char* chunk : {"first", "next"}) {
      std::vector<Value> stages;
      for (int stage = 0; stage < this->stages(); ++stage)
        stages.push_back(Record()
                             .set("chunk", value_of(std::string(chunk)))
                             .set("stage", value_of(std::int64_t{stage}))
                             .value());
      chunks.set(chunk, list_of(stages));
    }
    graph_.setting("chunk_configs", chunks.value());
  }

 private:
  struct Shaped {
    std::string name;
    std::int64_t frames, halvings, channels;
  };

  std::int64_t rows(const std::string& module) const { return file_.size(module + ".weight", 0); }
  std::int64_t frame_downscale() const {
    std::int64_t frames = 1;
    for (const SeedvrVaeStep& step : steps_)
      if (step.kind == SeedvrVaePart::resample && changes_time(step)) frames *= 2;
    return frames;
  }
  // Of a pixel come four or, of two frames, eight; down goes a filter of one frame or of three.
  bool changes_time(const SeedvrVaeStep& step) const {
    if (is_decoder_) return rows(step.module + ".upscale_conv") >= 8 * rows(step.module + ".conv");
    const std::string filter = step.module + ".conv.weight";
    constexpr std::uint32_t kFilterRank = 5;
    if (file_.info(filter).rank != kFilterRank)
      throw Error(
          HEDDLE_INVALID_ARGUMENT,
          file_.path() + ": '" + filter + "' has " + std::to_string(file_.info(filter).rank) +
              " axes, a filter over frames has 5. The file is damaged or of another model.");
    return file_.size(filter, 2) > 1;
  }

  Source input(const std::string& name, std::int64_t frames) {
    shapes_.push_back({name, frames, halvings_, channels_});
    return graph_.input(names_of_ports_.emplace_back(name).c_str(), HEDDLE_INPUT_LOOP_INVARIANT);
  }
  // Of the convolution whose input has the running shape: the input that it is given of the chunk
  // before, unless nothing was, and what it leaves.
  void keep(Block& block, const Input<Tensor>& kept, const Output<Tensor>& keeps,
            std::int64_t frames = kSeedFilterFrames - 1) {
    if (pictures_) return;
    const std::string name = "kept." + std::to_string(kept_++);
    if (!is_first_) block.link(kept, input(name, frames));
    graph_.output(names_of_ports_.emplace_back(name).c_str(), block[keeps]);
  }

  void conv(blocks::Slots& slots, const Weight& filter, const Weight& bias,
            const std::string& module, std::int64_t out) const {
    slots.fill(filter, module + ".weight", {out, channels_, kSeedFilterFrames, 3, 3});
    slots.fill(bias, module + ".bias", {out});
  }
  // A filter of `side` x `side` pixels of one frame.
  void flat(blocks::Slots& slots, const Weight& filter, const Weight& bias,
            const std::string& module, std::int64_t out, std::int64_t side) const {
    Part part{module + ".weight"};
    part.frame = 1;
    slots.fill(filter, {part}, {out, channels_, 1, side, side});
    slots.fill(bias, module + ".bias", {out});
  }
  void norm(blocks::Slots& slots, const Weight& weight, const Weight& bias,
            const std::string& module) const {
    if (channels_ % kSeedNormGroups != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": '" + module + "' has " + std::to_string(channels_) +
                      " channels, which 32 groups do not divide. The file is damaged or of "
                      "another model.");
    slots.fill(weight, module + ".weight", {channels_});
    slots.fill(bias, module + ".bias", {channels_});
  }

  // The shape behind a step.
  void pass(const SeedvrVaeStep& step) {
    if (step.kind == SeedvrVaePart::in) channels_ = rows(step.module);
    if (step.kind == SeedvrVaePart::resnet) channels_ = rows(step.module + ".conv1");
    if (step.kind != SeedvrVaePart::resample) return;
    halvings_ += is_decoder_ ? -1 : 1;
    if (changes_time(step) && !is_first_) frames_ = is_decoder_ ? 2 * frames_ : frames_ / 2;
  }

  void add(const SeedvrVaeStep& step) {
    switch (step.kind) {
      case SeedvrVaePart::in:
        is_decoder_ ? add_in<SeedvrVaeLatentIn>(step) : add_in<SeedvrVaeImageIn>(step);
        break;
      case SeedvrVaePart::resnet:
        add_resnet(step);
        break;
      case SeedvrVaePart::attention:
        add_attention(step);
        break;
      case SeedvrVaePart::resample:
        is_decoder_ ? add_upsample(step) : add_downsample(step);
        break;
      case SeedvrVaePart::out:
        is_decoder_ ? add_image_out(step) : add_latent_out(step);
    }
    if (pictures_) pass(step);
  }

  template <class B>
  void add_in(const SeedvrVaeStep& step) {
    Block block = graph_.add<B>(step.path);
    if constexpr (std::is_same_v<B, SeedvrVaeLatentIn>)
      block.link(B::z, hidden_);
    else
      block.link(B::image, hidden_);
    block.set(B::pictures, pictures_);
    blocks::Slots slots(file_, block, step.path);
    conv(slots, B::conv, B::conv_bias, step.module, rows(step.module));
    keep(block, B::kept, B::keeps);
    hidden_ = block[B::out];
  }

  void add_resnet(const SeedvrVaeStep& step) {
    using B = SeedvrVaeResnet;
    const std::int64_t in = channels_, made = rows(step.module + ".conv1");
    Block block = graph_.add<B>(step.path);
    block.link(B::hidden, hidden_).set(B::pictures, pictures_);
    blocks::Slots slots(file_, block, step.path);
    norm(slots, B::norm1, B::norm1_bias, step.module + ".norm1");
    conv(slots, B::conv1, B::conv1_bias, step.module + ".conv1", made);
    keep(block, B::kept1, B::keeps1);
    if (made != in)
      flat(slots, B::shortcut, B::shortcut_bias, step.module + ".conv_shortcut", made, 1);
    channels_ = made;
    norm(slots, B::norm2, B::norm2_bias, step.module + ".norm2");
    conv(slots, B::conv2, B::conv2_bias, step.module + ".conv2", made);
    keep(block, B::kept2, B::keeps2);
    hidden_ = block[B::out];
  }

  void add_attention(const SeedvrVaeStep& step) {
    using B = SeedvrVaeAttention;
    Block block = graph_.add<B>(step.path);
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, step.path);
    norm(slots, B::norm, B::norm_bias, step.module + ".group_norm");
    std::vector<Part> matrices, biases;
    for (const char* which : {".to_q", ".to_k", ".to_v"}) {
      matrices.push_back({step.module + which + ".weight"});
      biases.push_back({step.module + which + ".bias"});
    }
    slots.fill(B::qkv, matrices, {3 * channels_, channels_});
    slots.fill(B::qkv_bias, biases, {3 * channels_});
    slots.fill(B::proj, step.module + ".to_out.0.weight", {channels_, channels_});
    slots.fill(B::proj_bias, step.module + ".to_out.0.bias", {channels_});
    hidden_ = block[B::out];
  }

  void add_upsample(const SeedvrVaeStep& step) {
    using B = SeedvrVaeUpsample;
    const bool time = changes_time(step);
    Block block = graph_.add<B>(step.path);
    block.link(B::hidden, hidden_).set(B::pictures, pictures_).set(B::time, time);
    blocks::Slots slots(file_, block, step.path);
    flat(slots, B::spread, B::spread_bias, step.module + ".upscale_conv",
         (time ? 8 : 4) * channels_, 1);
    conv(slots, B::conv, B::conv_bias, step.module + ".conv", channels_);
    --halvings_;  // of what the convolution keeps
    keep(block, B::kept, B::keeps);
    ++halvings_;
    hidden_ = block[B::out];
  }

  void add_downsample(const SeedvrVaeStep& step) {
    const std::string module = step.module + ".conv";
    if (!changes_time(step)) {
      using B = SeedvrVaeHalve;
      Block block = graph_.add<B>(step.path);
      block.link(B::hidden, hidden_);
      blocks::Slots slots(file_, block, step.path);
      flat(slots, B::conv, B::conv_bias, module, channels_, 3);
      hidden_ = block[B::out];
      return;
    }
    using B = SeedvrVaeDownsample;
    Block block = graph_.add<B>(step.path);
    block.link(B::hidden, hidden_).set(B::pictures, pictures_);
    blocks::Slots slots(file_, block, step.path);
    conv(slots, B::conv, B::conv_bias, module, channels_);
    keep(block, B::kept, B::keeps, 1);
    hidden_ = block[B::out];
  }

  template <class B>
  Block add_out(const SeedvrVaeStep& step) {
    Block block = graph_.add<B>(step.path);
    block.link(B::hidden, hidden_).set(B::pictures, pictures_);
    blocks::Slots slots(file_, block, step.path);
    norm(slots, B::norm, B::norm_bias, names_.norm_out());
    conv(slots, B::conv, B::conv_bias, step.module, rows(step.module));
    keep(block, B::kept, B::keeps);
    return block;
  }
  void add_image_out(const SeedvrVaeStep& step) {
    Block block = add_out<SeedvrVaeImageOut>(step);
    graph_.output("image", block[SeedvrVaeImageOut::image]);
  }
  void add_latent_out(const SeedvrVaeStep& step) {
    Block block = add_out<SeedvrVaeLatentOut>(step);
    graph_.output("mean", block[SeedvrVaeLatentOut::mean]);
    if (pictures_) graph_.output("logvar", block[SeedvrVaeLatentOut::logvar]);
  }

  const Checkpoint& file_;
  const SeedvrVaeNames& names_;
  Blocks& graph_;
  const bool is_decoder_;
  const std::vector<SeedvrVaeStep> steps_;
  bool pictures_ = false, is_first_ = true;
  std::int64_t channels_ = 0, frames_ = 1, halvings_ = 0;
  int resamples_ = 0, kept_ = 0;
  Source hidden_;
  std::vector<Shaped> shapes_;              // of inputs
  std::deque<std::string> names_of_ports_;  // where ports' names stay
};

void build_seedvr_side(const Checkpoint& file, const Value& config, Blocks& graph, bool decoder) {
  const std::optional<SeedvrVaeNames> names = SeedvrVaeNames::find(file, decoder);
  if (!names)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no autoencoder of SeedVR2");
  SeedvrVaeBuilder builder(file, *names, decoder, graph);
  graph.setting("family", "autoencoder_seedvr");
  if (config.has("chunk")) {
    const auto stage = config.get<std::int64_t>("stage", 0);
    if (stage < 0 || stage >= builder.stages())
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() + ": there is no stage " + std::to_string(stage) +
                      " of this autoencoder, it has " + std::to_string(builder.stages()));
    return builder.build_stage(int(stage), config.get<std::string>("chunk", "first") == "first");
  }
  builder.build_pictures();
  builder.add_settings(config);
}

}  // namespace

int AutoencoderSeedvrDecoder::match(const Checkpoint& file, const Value&) {
  return SeedvrVaeNames::find(file, true) ? 100 : 0;
}
void AutoencoderSeedvrDecoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_seedvr_side(file, config, graph, true);
}

int AutoencoderSeedvrEncoder::match(const Checkpoint& file, const Value&) {
  return SeedvrVaeNames::find(file, false) ? 100 : 0;
}
void AutoencoderSeedvrEncoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_seedvr_side(file, config, graph, false);
}

}  // namespace heddle::vae
