#include "h3_sound.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "h3_latents.h"
#include "plugins/blocks/slots.h"
#include "vocoder_blocks.h"

namespace heddle::vae {
namespace {

constexpr std::int64_t kSoundTaps = 12;               // of the filters around an activation
constexpr std::int64_t kUnitDilations[] = {1, 3, 9};  // of an encoder's residual units

// The prefix of a side's tensors. The names are the publishers' own, in diffusers as well.
std::optional<std::string> h3_sound_prefix(const Checkpoint& file, bool decodes) {
  const auto prefix = blocks::prefix_before(
      file, decodes ? "decoder.activation_post.act.beta" : "encoder.block.1.block.0.block.0.alpha");
  if (!prefix || !file.has(*prefix + (decodes ? "dec_in_proj.weight" : "pre_block.attn.q_bias")))
    return {};
  return prefix;
}

struct H3SoundNumbers {
  std::int64_t heads, sample_rate;
  std::vector<std::int64_t> dilations{1, 3, 5};

  H3SoundNumbers(const Checkpoint& file, const Value& config)
      : heads(config.get<std::int64_t>("num_attention_heads", 8)),
        sample_rate(config.get<std::int64_t>("sampling_rate", 32000)) {
    const Value told = config.field("resblock_dilation_sizes");
    if (told.count() > 0) dilations.clear();
    for (std::uint32_t i = 0; told.count() > 0 && i < told.item(0).count(); ++i)
      dilations.push_back(told.item(0).item(i).as<std::int64_t>());
    for (const std::int64_t apart : dilations)
      if (apart < 1 || apart > 1024) sample_rate = 0;
    if (heads < 1 || sample_rate < 1)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() +
                      ": num_attention_heads, sampling_rate and resblock_dilation_sizes in its "
                      "config have to be 1 or more, the last at most 1024.");
  }
};

// An activation before a filter, and what is beside these.
struct H3SoundStep {
  std::string alpha = {}, beta = {};
  const Source *filters = nullptr, *base = nullptr;
  std::int64_t dilation = 1, stride = 1;
};

class H3SoundBuilder {
 public:
  H3SoundBuilder(const Checkpoint& file, std::string prefix, const H3SoundNumbers& numbers,
                 Blocks& graph)
      : file_(file), prefix_(std::move(prefix)), n_(numbers), graph_(graph) {}

  // Both return the number of latent channels.
  std::int64_t decode() {
    const std::int64_t latent = file_.size(prefix_ + "dec_in_proj.weight", 1);
    const Source z = graph_.input("z", HEDDLE_INPUT_LOOP_INVARIANT);
    Block in = graph_.add<H3SoundIn>("in");
    in.link(H3SoundIn::x, z).set(H3SoundIn::sound, false);
    hidden_ = in[H3SoundIn::out];
    channels_ = latent;
    hidden_ = add_conv("proj", prefix_ + "dec_in_proj", hidden_, {});
    hidden_ = add_conv("first", at("conv_pre"), hidden_, {});
    const int levels = blocks::layer_count(file_, at("ups.")),
              resnets = blocks::layer_count(file_, at("resblocks."));
    if (levels < 1 || resnets < levels || resnets % levels != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT, file_.path() + ": the decoder has " +
                                               std::to_string(levels) + " upsamplings and " +
                                               std::to_string(resnets) +
                                               " residual blocks. The file is damaged.");
    Source filters{};
    for (int level = 0; level < levels; ++level) {
      add_up(level);
      filters = add_filters(level, level * (resnets / levels));
      add_level(level, resnets / levels, filters);
    }
    hidden_ = add_conv("last", at("conv_post"), hidden_,
                       {.alpha = at("activation_post.act.alpha"),
                        .beta = at("activation_post.act.beta"),
                        .filters = &filters});
    finish(z, true, "waveform");
    return latent;
  }

  std::int64_t encode() {
    const int count = blocks::layer_count(file_, at("block."));
    for (int i = 1; i + 2 < count; ++i) lengthen_hop(stride_of(i));
    const Source x = graph_.input("waveform", HEDDLE_INPUT_LOOP_INVARIANT);
    Block in = graph_.add<H3SoundIn>("in");
    in.link(H3SoundIn::x, x).set(H3SoundIn::sound, true).set(H3SoundIn::hop, hop_);
    hidden_ = in[H3SoundIn::out];
    channels_ = 1;
    hidden_ = add_conv("first", at("block.0"), hidden_, {});
    for (int i = 1; i + 2 < count; ++i) add_down(i);
    hidden_ = add_conv("last", at("block." + std::to_string(count - 1)), hidden_,
                       {.alpha = at("block." + std::to_string(count - 2) + ".alpha")});
    add_projection();
    hidden_ = add_conv("mean", prefix_ + "mean_proj", hidden_, {});
    finish(x, false, "mean");
    return channels_;
  }

  std::int64_t hop() const { return hop_; }

 private:
  // The encoder's blocks alone are numbered.
  std::string at(const std::string& name) const {
    return prefix_ + (name.starts_with("block.") ? "encoder." : "decoder.") + name;
  }

  // A filter and the lengths of its rows, which stand beside it, or are its own.
  template <class B>
  Shape filter(blocks::Slots& slots, const std::string& module) {
    std::string tensor = module + ".weight";
    for (const auto& [rows, lengths] :
         {std::pair(".weight_v", ".weight_g"),
          std::pair(".parametrizations.weight.original1", ".parametrizations.weight.original0")})
      if (file_.has(module + rows)) {
        tensor = module + rows;
        slots.fill(B::gain, module + lengths, {file_.size(tensor, 0), 1, 1});
      }
    const Shape shape{file_.size(tensor, 0), file_.size(tensor, 1), file_.size(tensor, 2)};
    slots.fill(B::filter, tensor, shape);
    return shape;
  }
  void check_inputs(const std::string& module, std::int64_t channels) const {
    if (channels == channels_) return;
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file_.path() + ": '" + module + "' reads " + std::to_string(channels) +
                    " channels where there are " + std::to_string(channels_) +
                    ". The file is damaged or of another model.");
  }

  Source add_conv(const std::string& path, const std::string& module, const Source& hidden,
                  const H3SoundStep& step) {
    using B = H3SoundConv;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden).set(B::dilation, step.dilation).set(B::stride, step.stride);
    if (step.filters != nullptr) block.link(B::filters, *step.filters);
    if (step.base != nullptr) block.link(B::base, *step.base);
    blocks::Slots slots(file_, block, path);
    const Shape shape = filter<B>(slots, module);
    check_inputs(module, shape[1]);
    if (step.stride == 1 ? shape[2] % 2 == 0 : shape[2] != 2 * step.stride)
      throw Error(HEDDLE_UNSUPPORTED,
                  file_.path() + ": '" + module + "' has " + std::to_string(shape[2]) +
                      " taps. Only an odd number is supported, or, of those that "
                      "make fewer points, an even one.");
    if (file_.has(module + ".bias")) slots.fill(B::bias, module + ".bias", {shape[0]});
    if (step.filters != nullptr) {
      slots.fill(B::alpha, step.alpha, {channels_});
      slots.fill(B::beta, step.beta, {channels_});
    } else if (!step.alpha.empty()) {
      slots.fill(B::alpha, step.alpha, {1, channels_, 1});
    }
    channels_ = shape[0];
    return block[B::out];
  }

  void add_up(int level) {
    using B = H3SoundUp;
    const std::string path = "up." + std::to_string(level),
                      module = at("ups." + std::to_string(level) + ".0");
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, path);
    const Shape shape = filter<B>(slots, module);
    check_inputs(module, shape[0]);
    // Twice the factor, or one less.
    const std::int64_t factor = (shape[2] + 1) / 2;
    if ((shape[2] - factor) % 2 != 0)
      throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": '" + module + "' has " +
                                          std::to_string(shape[2]) +
                                          " taps, which is not supported");
    block.set(B::factor, factor);
    slots.fill(B::bias, module + ".bias", {shape[1]});
    hidden_ = block[B::out];
    channels_ = shape[1];
    lengthen_hop(factor);
  }

  // By how much a level changes the number of points.
  void lengthen_hop(std::int64_t factor) {
    constexpr std::int64_t kMost = 1 << 20;
    if (factor < 1 || factor > kMost || hop_ * factor > kMost)
      throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": a point of the latent would be more than " +
                                          std::to_string(kMost) +
                                          " points of sound. The file is damaged.");
    hop_ *= factor;
  }

  // All of a file are the same: those of the level's first activation.
  Source add_filters(int level, int resnet) {
    using B = H3SoundFilters;
    const std::string path = "up." + std::to_string(level) + ".filters",
                      module = at("resblocks." + std::to_string(resnet) + ".activations.0.");
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden_);
    blocks::Slots slots(file_, block, path);
    slots.fill(B::up, module + "upsample.filter", {1, 1, kSoundTaps});
    slots.fill(B::down, module + "downsample.lowpass.filter", {1, 1, kSoundTaps});
    return block[B::out];
  }

  // The mean of residual blocks that all read the same.
  void add_level(int level, int count, const Source& filters) {
    Source sum{};
    for (int i = 0; i < count; ++i) {
      const std::string module = at("resblocks." + std::to_string(level * count + i) + "."),
                        path = "up." + std::to_string(level) + ".block." + std::to_string(i);
      Source x = hidden_;
      for (std::size_t k = 0; k < n_.dilations.size(); ++k) {
        const std::string nth = std::to_string(k);
        const auto act = [&](std::size_t number, const char* kind) {
          return module + "activations." + std::to_string(number) + ".act." + kind;
        };
        const Source middle = add_conv(path + "." + nth + ".first", module + "convs1." + nth, x,
                                       {.alpha = act(2 * k, "alpha"),
                                        .beta = act(2 * k, "beta"),
                                        .filters = &filters,
                                        .dilation = n_.dilations[k]});
        x = add_conv(path + "." + nth + ".second", module + "convs2." + nth, middle,
                     {.alpha = act(2 * k + 1, "alpha"),
                      .beta = act(2 * k + 1, "beta"),
                      .filters = &filters,
                      .base = &x});
      }
      Block block = graph_.add<VocoderSum>(path + ".sum");
      block.link(VocoderSum::hidden, x);
      if (i > 0) block.link(VocoderSum::other, sum);
      if (i + 1 == count) block.set(VocoderSum::factor, 1.0 / double(count));
      sum = block[VocoderSum::out];
    }
    hidden_ = sum;
  }

  std::string unit(int number) const { return at("block." + std::to_string(number) + ".block."); }
  std::int64_t stride_of(int number) const {
    const std::string module = unit(number) + "4";
    for (const char* kind : {".weight_v", ".parametrizations.weight.original1", ".weight"})
      if (file_.has(module + kind))
        return std::max<std::int64_t>(1, file_.size(module + kind, 2) / 2);
    throw Error(HEDDLE_INVALID_ARGUMENT, file_.path() + ": there is no tensor '" + module +
                                             ".weight_v'. The file is damaged.");
  }
  void add_down(int number) {
    const std::string path = "down." + std::to_string(number - 1), module = unit(number);
    int i = 0;
    for (const std::int64_t apart : kUnitDilations) {
      const std::string nth = std::to_string(i++), inside = module + nth + ".block.";
      const Source before = hidden_;
      const Source middle = add_conv(path + "." + nth + ".first", inside + "1", hidden_,
                                     {.alpha = inside + "0.alpha", .dilation = apart});
      hidden_ = add_conv(path + "." + nth + ".second", inside + "3", middle,
                         {.alpha = inside + "2.alpha", .base = &before});
    }
    hidden_ = add_conv(path + ".last", module + "4", hidden_,
                       {.alpha = module + "3.alpha", .stride = stride_of(number)});
  }

  void add_projection() {
    using B = H3SoundProject;
    const std::string module = prefix_ + "pre_block.";
    const std::int64_t out = file_.size(module + "proj.weight", 0),
                       inner = file_.size(module + "mlp.w2.weight", 1);
    if (channels_ % n_.heads != 0 || out < 1 || channels_ / n_.heads % out != 0)
      throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": " + std::to_string(channels_) +
                                          " channels in " + std::to_string(n_.heads) +
                                          " heads (num_attention_heads) cannot be averaged to " +
                                          std::to_string(out));
    Block block = graph_.add<B>("projection");
    block.link(B::hidden, hidden_).set(B::heads, n_.heads);
    blocks::Slots slots(file_, block, "projection");
    const auto linear = [&](const Weight& weight, const Weight& bias, const std::string& name,
                            std::int64_t rows, std::int64_t columns) {
      slots.fill(weight, module + name + ".weight", {rows, columns});
      slots.fill(bias, module + name + ".bias", {rows});
    };
    const auto norm = [&](const Weight& weight, const Weight& bias, const std::string& name,
                          std::int64_t count) {
      slots.fill(weight, module + name + ".weight", {count});
      slots.fill(bias, module + name + ".bias", {count});
    };
    norm(B::norm1, B::norm1_bias, "norm1", channels_);
    norm(B::norm2, B::norm2_bias, "norm2", out);
    norm(B::norm3, B::norm3_bias, "norm3", channels_);
    norm(B::norm, B::norm_bias, "mlp.norm", out);
    slots.fill(B::qkv, module + "attn.qkv.weight", {3 * channels_, channels_});
    slots.fill(B::qkv_bias,
               {{module + "attn.q_bias"}, {module + "attn.zero_k_bias"}, {module + "attn.v_bias"}},
               {3 * channels_});
    linear(B::pooled, B::pooled_bias, "attn.proj", out, out);
    linear(B::proj, B::proj_bias, "proj", out, channels_);
    linear(B::gate, B::gate_bias, "mlp.w0", inner, out);
    linear(B::up, B::up_bias, "mlp.w1", inner, out);
    linear(B::down, B::down_bias, "mlp.w2", out, inner);
    hidden_ = block[B::out];
    channels_ = out;
  }

  void finish(const Source& input, bool is_sound, const char* name) {
    Block out = graph_.add<H3SoundOut>("out");
    out.link(H3SoundOut::hidden, hidden_).link(H3SoundOut::x, input);
    out.set(H3SoundOut::sound, is_sound);
    graph_.output(name, out[H3SoundOut::out]);
  }

  const Checkpoint& file_;
  std::string prefix_;
  const H3SoundNumbers& n_;
  Blocks& graph_;
  std::int64_t channels_ = 0, hop_ = 1;
  Source hidden_;
};

void build_h3_sound_side(const Checkpoint& file, const Value& config, Blocks& graph, bool decodes) {
  const auto prefix = h3_sound_prefix(file, decodes);
  if (!prefix)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": this is no audio autoencoder of MiniMax H3");
  const H3SoundNumbers numbers(file, config);
  H3SoundBuilder builder(file, *prefix, numbers, graph);
  const std::int64_t channels = decodes ? builder.decode() : builder.encode();
  graph.setting("family", "minimax_h3_audio_vae");
  graph.setting("latent_channels", channels);
  graph.setting("sample_rate", numbers.sample_rate);
  graph.setting("hop", builder.hop());
  graph.setting("makes_sound", true);
  add_h3_statistics(file, config, {kH3SoundMeans, kH3SoundDeviations}, channels, graph);
}

}  // namespace

int H3SoundDecoder::match(const Checkpoint& file, const Value&) {
  return h3_sound_prefix(file, true) ? 100 : 0;
}
void H3SoundDecoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_h3_sound_side(file, config, graph, true);
}

int H3SoundEncoder::match(const Checkpoint& file, const Value&) {
  return h3_sound_prefix(file, false) ? 100 : 0;
}
void H3SoundEncoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_h3_sound_side(file, config, graph, false);
}

}  // namespace heddle::vae
