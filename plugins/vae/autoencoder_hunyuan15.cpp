#include "autoencoder_hunyuan15.h"

#include <deque>

#include <heddle/abi/stages.h>

#include "hunyuan15_names.h"
#include "plugins/blocks/slots.h"

namespace heddle::vae {
namespace {

constexpr std::int64_t kHunyuanFilterFrames = 3;

// Builds a side for pictures, or a stage of it for videos: keeps the running output, its channels,
// its frames and how often its sides are halved.
class Hunyuan15Builder {
 public:
  Hunyuan15Builder(const Checkpoint& file, const Hunyuan15Names& names, bool decoder, Blocks& graph)
      : file_(file),
        names_(names),
        graph_(graph),
        is_decoder_(decoder),
        steps_(steps_of(file, names, decoder)) {
    channels_ = file.size(names.conv_in() + ".weight", 1);
    for (const Hunyuan15Step& step : steps_) {
      if (step.kind == Hunyuan15Part::resample) ++resamples_;
    }
    constexpr int kMostResamples = 16;
    if (resamples_ > kMostResamples)
      throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": " + std::to_string(resamples_) +
                                               " levels change the pictures' sides, of at most " +
                                               std::to_string(kMostResamples) +
                                               ". The file is damaged or of another model.");
  }

  int stages() const { return steps_.back().stage + 1; }
  std::int64_t downscale() const { return std::int64_t{1} << resamples_; }
  std::int64_t frame_downscale() const {
    std::int64_t frames = 1;
    for (const Hunyuan15Step& step : steps_)
      if (step.kind == Hunyuan15Part::resample && changes_time(step)) frames *= 2;
    return frames;
  }
  std::int64_t latent_channels() const {
    return is_decoder_ ? file_.size(names_.conv_in() + ".weight", 1)
                       : file_.size(names_.conv_out() + ".weight", 0) / 2;
  }
  std::int64_t pixel_channels() const {
    return is_decoder_ ? file_.size(names_.conv_out() + ".weight", 0)
                       : file_.size(names_.conv_in() + ".weight", 1);
  }

  void build_pictures() {
    hidden_ =
        graph_.input(is_decoder_ ? "z" : "image", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    pictures_ = true;
    for (const Hunyuan15Step& step : steps_) add(step);
  }

  void build_stage(int stage, bool is_first) {
    is_first_ = is_first;
    halvings_ = is_decoder_ ? resamples_ : 0;
    frames_ = is_decoder_ || is_first ? 1 : frame_downscale();
    bool begun = false;
    for (const Hunyuan15Step& step : steps_) {
      if (step.stage > stage) break;
      if (step.stage < stage) {
        pass(step);
        continue;
      }
      if (!begun)
        hidden_ = input(step.kind != Hunyuan15Part::in ? "hidden"
                        : is_decoder_                  ? "z"
                                                       : "image",
                        frames_, channels_);
      begun = true;
      add(step);
    }
    if (!begun)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": level " + std::to_string(stage) +
                      " has no blocks. The file is damaged or of another model.");
    if (stage + 1 < stages()) graph_.output("hidden", hidden_);
    Record shapes;
    for (const Shaped& one : shapes_) {
      std::vector<Value> numbers{value_of(one.frames), value_of(one.halvings),
                                 value_of(one.channels)};
      if (one.grows) numbers.push_back(value_of(std::int64_t{1}));
      shapes.set(one.name, list_of(numbers));
    }
    graph_.setting("chunk_shapes", shapes.value());
    graph_.setting(HEDDLE_ROUND_STAGE, std::int64_t(stage));
    graph_.setting(HEDDLE_ROUND_INPUT, shapes_.front().name);
  }

 private:
  struct Shaped {
    std::string name;
    std::int64_t frames, halvings, channels;
    bool grows;
  };

  std::int64_t rows(const std::string& module) const { return file_.size(module + ".weight", 0); }
  // What the level behind this change of size reads.
  std::int64_t behind(const Hunyuan15Step& step) const {
    for (std::size_t i = 0; i + 1 < steps_.size(); ++i)
      if (steps_[i].module == step.module && steps_[i + 1].kind == Hunyuan15Part::resnet)
        return file_.size(steps_[i + 1].module + ".conv1.conv.weight", 1);
    throw Error(HEDDLE_INVALID_ARGUMENT, file_.path() + ": nothing follows '" + step.module +
                                             "'. The file is damaged or of another model.");
  }
  // Four numbers of a square make or are made of one, eight where frames change, too.
  bool changes_time(const Hunyuan15Step& step) const {
    const std::int64_t made = rows(step.module), next = behind(step),
                       more = is_decoder_ ? made : next, less = is_decoder_ ? next : made,
                       from = file_.size(step.module + ".weight", 1);
    const std::int64_t factor = less > 0 && more % less == 0 ? more / less : 0;
    const bool fits = factor == 4 || factor == 8;
    const std::int64_t shared = is_decoder_ ? made : factor * from,
                       unit = is_decoder_ ? from : next;
    if (!fits || unit < 1 || shared % unit != 0 || (factor == 8 && shared / unit % 2 != 0))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": '" + step.module + "' makes " + std::to_string(made) +
                      " channels of " + std::to_string(from) + ", the next block reads " +
                      std::to_string(next) + ". The file is damaged or of another model.");
    return factor == 8;
  }

  Source input(const std::string& name, std::int64_t frames, std::int64_t channels,
               bool grows = false) {
    shapes_.push_back({name, frames, halvings_, channels, grows});
    return graph_.input(names_of_ports_.emplace_back(name).c_str(), HEDDLE_INPUT_LOOP_INVARIANT);
  }
  // The input that a block is given of the chunk before, unless nothing was, and what it leaves.
  void keep(Block& block, const Input<Tensor>& kept, const Output<Tensor>& keeps, bool grows,
            std::int64_t channels) {
    if (pictures_) return;
    const std::string name = "kept." + std::to_string(kept_++);
    if (!is_first_)
      block.link(kept, input(name, grows ? 1 : kHunyuanFilterFrames - 1, channels, grows));
    graph_.output(names_of_ports_.emplace_back(name).c_str(), block[keeps]);
  }
  void conv(blocks::Slots& slots, const Weight& filter, const Weight& bias,
            const std::string& module, std::int64_t out, std::int64_t in) const {
    slots.fill(filter, module + ".weight", {out, in, kHunyuanFilterFrames, 3, 3});
    slots.fill(bias, module + ".bias", {out});
  }

  // The shape behind a step.
  void pass(const Hunyuan15Step& step) {
    if (step.kind == Hunyuan15Part::in) channels_ = rows(step.module);
    if (step.kind != Hunyuan15Part::resample) return;
    channels_ = behind(step);
    halvings_ += is_decoder_ ? -1 : 1;
    if (changes_time(step) && !is_first_) frames_ = is_decoder_ ? 2 * frames_ : frames_ / 2;
  }

  void add(const Hunyuan15Step& step) {
    switch (step.kind) {
      case Hunyuan15Part::in:
        is_decoder_ ? add_in<Hunyuan15LatentIn>(step) : add_in<Hunyuan15ImageIn>(step);
        break;
      case Hunyuan15Part::resnet:
        add_resnet(step);
        break;
      case Hunyuan15Part::attention:
        add_attention(step);
        break;
      case Hunyuan15Part::resample:
        is_decoder_ ? add_resample<Hunyuan15Upsample>(step)
                    : add_resample<Hunyuan15Downsample>(step);
        break;
      case Hunyuan15Part::out:
        is_decoder_ ? add_image_out(step) : add_latent_out(step);
    }
    pass(step);
  }

  template <class B>
  void add_in(const Hunyuan15Step& step) {
    Block block = graph_.add<B>(step.path);
    if constexpr (std::is_same_v<B, Hunyuan15LatentIn>) {
      block.link(B::z, hidden_);
      require_multiple(rows(step.module), channels_);
    } else {
      block.link(B::image, hidden_);
    }
    block.set(B::pictures, pictures_);
    blocks::Slots slots(file_, block, step.path);
    conv(slots, B::conv, B::conv_bias, step.module, rows(step.module), channels_);
    keep(block, B::kept, B::keeps, false, channels_);
    hidden_ = block[B::out];
  }

  void add_resnet(const Hunyuan15Step& step) {
    using B = Hunyuan15Resnet;
    Block block = graph_.add<B>(step.path);
    block.link(B::hidden, hidden_).set(B::pictures, pictures_);
    blocks::Slots slots(file_, block, step.path);
    slots.fill(B::norm1, step.module + ".norm1.gamma", {channels_, 1, 1, 1});
    conv(slots, B::conv1, B::conv1_bias, step.module + ".conv1.conv", channels_, channels_);
    keep(block, B::kept1, B::keeps1, false, channels_);
    slots.fill(B::norm2, step.module + ".norm2.gamma", {channels_, 1, 1, 1});
    conv(slots, B::conv2, B::conv2_bias, step.module + ".conv2.conv", channels_, channels_);
    keep(block, B::kept2, B::keeps2, false, channels_);
    hidden_ = block[B::out];
  }

  void add_attention(const Hunyuan15Step& step) {
    using B = Hunyuan15Attention;
    Block block = graph_.add<B>(step.path);
    block.link(B::hidden, hidden_).set(B::pictures, pictures_);
    blocks::Slots slots(file_, block, step.path);
    slots.fill(B::norm, step.module + ".norm.gamma", {channels_, 1, 1, 1});
    const auto point = [&](const Weight& filter, const Weight& bias,
                           const std::vector<std::string>& modules) {
      std::vector<Part> filters, biases;
      for (const std::string& module : modules) {
        filters.push_back({module + ".weight"});
        filters.back().frame = 1;
        biases.push_back({module + ".bias"});
      }
      const std::int64_t out = channels_ * std::int64_t(modules.size());
      slots.fill(filter, filters, {out, channels_, 1, 1, 1});
      slots.fill(bias, biases, {out});
    };
    point(B::qkv, B::qkv_bias,
          {names_.projection("q"), names_.projection("k"), names_.projection("v")});
    point(B::proj, B::proj_bias, {names_.proj_out()});
    keep(block, B::kept, B::keeps, true, 2 * channels_);
    hidden_ = block[B::out];
  }

  template <class B>
  void add_resample(const Hunyuan15Step& step) {
    const bool time = changes_time(step);
    Block block = graph_.add<B>(step.path);
    block.link(B::hidden, hidden_).set(B::pictures, pictures_).set(B::time, time);
    blocks::Slots slots(file_, block, step.path);
    conv(slots, B::conv, B::conv_bias, step.module, rows(step.module), channels_);
    keep(block, B::kept, B::keeps, false, channels_);
    hidden_ = block[B::out];
  }

  void add_image_out(const Hunyuan15Step& step) {
    using B = Hunyuan15ImageOut;
    Block block = graph_.add<B>(step.path);
    block.link(B::hidden, hidden_).set(B::pictures, pictures_);
    blocks::Slots slots(file_, block, step.path);
    slots.fill(B::norm, names_.norm_out(), {channels_, 1, 1, 1});
    conv(slots, B::conv, B::conv_bias, step.module, rows(step.module), channels_);
    keep(block, B::kept, B::keeps, false, channels_);
    graph_.output("image", block[B::image]);
  }

  void add_latent_out(const Hunyuan15Step& step) {
    using B = Hunyuan15LatentOut;
    require_multiple(channels_, rows(step.module));
    Block block = graph_.add<B>(step.path);
    block.link(B::hidden, hidden_).set(B::pictures, pictures_);
    blocks::Slots slots(file_, block, step.path);
    slots.fill(B::norm, names_.norm_out(), {channels_, 1, 1, 1});
    conv(slots, B::conv, B::conv_bias, step.module, rows(step.module), channels_);
    keep(block, B::kept, B::keeps, false, channels_);
    graph_.output("mean", block[B::mean]);
    if (pictures_) graph_.output("logvar", block[B::logvar]);
  }

  // Of the shortcuts around the first and the last convolution.
  void require_multiple(std::int64_t more, std::int64_t less) const {
    if (less > 0 && more % less == 0) return;
    throw Error(HEDDLE_INVALID_ARGUMENT, file_.path() + ": " + std::to_string(more) +
                                             " channels are no multiple of the latent's " +
                                             std::to_string(less) +
                                             ". The file is damaged or of another model.");
  }

  const Checkpoint& file_;
  const Hunyuan15Names& names_;
  Blocks& graph_;
  const bool is_decoder_;
  const std::vector<Hunyuan15Step> steps_;
  bool pictures_ = false, is_first_ = true;
  std::int64_t channels_ = 0, frames_ = 1, halvings_ = 0;
  int resamples_ = 0, kept_ = 0;
  Source hidden_;
  std::vector<Shaped> shapes_;              // of inputs
  std::deque<std::string> names_of_ports_;  // where ports' names stay
};

void build_side(const Checkpoint& file, const Value& config, Blocks& graph, bool decoder) {
  const std::optional<Hunyuan15Names> names = Hunyuan15Names::find(file, decoder);
  if (!names)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": this is no autoencoder of HunyuanVideo 1.5");
  Hunyuan15Builder builder(file, *names, decoder, graph);
  graph.setting("family", "autoencoder_hunyuan15");
  if (config.has("chunk")) {
    const auto stage = config.get<std::int64_t>("stage", 0);
    if (stage < 0 || stage >= builder.stages())
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() + ": there is no stage " + std::to_string(stage) +
                      " of this autoencoder, it has " + std::to_string(builder.stages()));
    return builder.build_stage(int(stage), config.get<std::string>("chunk", "first") == "first");
  }
  builder.build_pictures();
  graph.setting("scaling_factor", config.get<double>("scaling_factor", kHunyuan15Scale));
  graph.setting("shift_factor", 0.0);
  graph.setting("latent_channels", builder.latent_channels());
  graph.setting("downscale", builder.downscale());
  graph.setting("pixel_channels", builder.pixel_channels());
  graph.setting("frame_downscale", builder.frame_downscale());
  Record chunks;
  for (const char* chunk : {"first", "next"}) {
    std::vector<Value> stages;
    for (int stage = 0; stage < builder.stages(); ++stage)
      stages.push_back(Record()
                           .set("chunk", value_of(std::string(chunk)))
                           .set("stage", value_of(std::int64_t{stage}))
                           .value());
    chunks.set(chunk, list_of(stages));
  }
  graph.setting("chunk_configs", chunks.value());
}

}  // namespace

int AutoencoderHunyuan15Decoder::match(const Checkpoint& file, const Value&) {
  return Hunyuan15Names::find(file, true) ? 100 : 0;
}
void AutoencoderHunyuan15Decoder::build(const Checkpoint& file, const Value& config,
                                        Blocks& graph) {
  build_side(file, config, graph, true);
}

int AutoencoderHunyuan15Encoder::match(const Checkpoint& file, const Value&) {
  return Hunyuan15Names::find(file, false) ? 100 : 0;
}
void AutoencoderHunyuan15Encoder::build(const Checkpoint& file, const Value& config,
                                        Blocks& graph) {
  build_side(file, config, graph, false);
}

}  // namespace heddle::vae
