#include "vocoder_stages.h"

#include <optional>
#include <string>
#include <vector>

#include <heddle/checked.hpp>

#include "h3_sound_blocks.h"
#include "plugins/blocks/config_inside.h"
#include "plugins/blocks/slots.h"
#include "vocoder_band_blocks.h"
#include "vocoder_blocks.h"

namespace heddle::vae {
namespace {

constexpr std::int64_t kStageTaps = 12;  // of the filters around an activation
constexpr std::int64_t kMostDilation = 1 << 16;
constexpr const char* kStageBands = "mel_stft.mel_basis";

// What is called differently in the publishers' files and in those of diffusers, within a stage.
struct StageNames {
  std::string first, last, upsampling, block, last_act, low_pass;
};
const StageNames kPublished{"conv_pre",   "conv_post", "ups.",
                            "resblocks.", "act_post",  ".downsample.lowpass.filter"};
const StageNames kOfDiffusers{"conv_in",  "conv_out", "upsamplers.",
                              "resnets.", "act_out",  ".downsample.filter"};

std::vector<std::int64_t> stage_numbers(const Value& list) {
  std::vector<std::int64_t> numbers;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    numbers.push_back(list.item(i).as<std::int64_t>());
  return numbers;
}

// What the weights do not tell: from the model's config (diffusers' names) or the file's metadata
// (the publishers').
struct StageNumbers {
  std::vector<std::int64_t> factors, dilations{1, 3, 5};
  std::string act;  // "tanh", "clamp" or "", behind the last filter

  static StageNumbers read(const Value& config, const Value& inside, const std::string& prefix) {
    StageNumbers n;
    const auto list = [&](const char* here, const char* there) {
      const std::string name = prefix + here;
      return config.has(name.c_str()) ? config.field(name.c_str()) : inside.field(there);
    };
    const bool is_first = prefix.empty();
    n.factors = is_first ? std::vector<std::int64_t>{5, 2, 2, 2, 2, 2}
                         : std::vector<std::int64_t>{6, 5, 2, 2, 2};
    if (const Value told = list("upsample_factors", "upsample_rates"); told.count() > 0)
      n.factors = stage_numbers(told);
    if (const Value told = list("resnet_dilations", "resblock_dilation_sizes"); told.count() > 0)
      n.dilations = stage_numbers(told.item(0));
    const bool acts = inside.get<bool>("apply_final_activation", is_first);
    n.act = config.get<std::string>((prefix + "final_act_fn").c_str(),
                                    !acts                                          ? ""
                                    : inside.get<bool>("use_tanh_at_final", false) ? "tanh"
                                                                                   : "clamp");
    return n;
  }
};

struct BandNumbers {
  std::int64_t hop = 80, from = 16000, to = 48000;
};

// Builds both stages: keeps the prefix of the one at work.
class StagesBuilder {
 public:
  StagesBuilder(const Checkpoint& file, std::string prefix, Blocks& graph)
      : file_(file),
        graph_(graph),
        prefix_(std::move(prefix)),
        names_(file.has(prefix_ + "vocoder.conv_in.weight") ? kOfDiffusers : kPublished) {}

  // Returns how many samples a frame of the spectrum becomes.
  std::int64_t run(const StageNumbers& first, const StageNumbers& second, const BandNumbers& n) {
    Block in = graph_.add<VocoderIn>("in");
    in.link(VocoderIn::mel, graph_.input("mel", HEDDLE_INPUT_LOOP_INVARIANT));
    std::int64_t points = 1;
    const Source low = add_stage("first", "vocoder.", first, in[VocoderIn::out], points);
    if (points % n.hop != 0)
      throw Error(HEDDLE_UNSUPPORTED,
                  file_.path() + ": a frame of the spectrum becomes " + std::to_string(points) +
                      " points of sound, no whole number of hop_length " + std::to_string(n.hop));
    const std::string waves = prefix_ + "mel_stft.stft_fn.forward_basis",
                      bands = prefix_ + kStageBands;
    const std::int64_t count = file_.size(bands, 1);
    Block mel = graph_.add<VocoderMel>("mel");
    mel.link(VocoderMel::hidden, low).set(VocoderMel::hop, n.hop);
    mel.set(VocoderMel::tanh, first.act == "tanh");
    if (first.act.empty()) mel.set(VocoderMel::limit, 3e38);
    blocks::Slots slots(file_, mel, "mel");
    slots.fill(VocoderMel::basis, waves, {2 * count, 1, file_.size(waves, 2)});
    slots.fill(VocoderMel::bands, bands, {file_.size(bands, 0), count});
    std::int64_t more = 1;
    const Source high = add_stage("second", "bwe_generator.", second, mel[VocoderMel::out], more);
    const std::int64_t ratio = n.to / n.from,
                       wanted = checked_product({n.hop, ratio}, "the vocoder's upsampling");
    if (more != wanted)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": the second stage makes " + std::to_string(more) +
                      " points of one frame, where " + std::to_string(n.hop) + " at " +
                      std::to_string(n.from) + " Hz become " + std::to_string(wanted) + " at " +
                      std::to_string(n.to) +
                      " Hz. Check hop_length and the sampling rates in the vocoder's config.");
    Block out = graph_.add<VocoderWiden>("out");
    out.link(VocoderWiden::sound, mel[VocoderMel::sound]).link(VocoderWiden::hidden, high);
    out.set(VocoderWiden::ratio, ratio);
    graph_.output("waveform", out[VocoderWiden::waveform]);
    return checked_product({points, ratio}, "the vocoder's upsampling");
  }

 private:
  // An activation before a filter, and what is beside these.
  struct Step {
    std::string act = {};
    const Source *filters = nullptr, *base = nullptr;
    std::int64_t dilation = 1;
  };

  Source add_stage(const std::string& path, const std::string& stage, const StageNumbers& numbers,
                   const Source& rows, std::int64_t& points) {
    at_ = prefix_ + stage;
    channels_ = file_.size(at_ + names_.first + ".weight", 1);
    Source hidden = add_conv(path + ".in", names_.first, rows, {});
    const int levels = blocks::layer_count(file_, at_ + names_.upsampling),
              resnets = blocks::layer_count(file_, at_ + names_.block);
    if (levels < 1 || std::size_t(levels) != numbers.factors.size() || resnets < levels ||
        resnets % levels != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": the vocoder's stage '" + stage + "' has " +
                      std::to_string(levels) + " upsamplings and " + std::to_string(resnets) +
                      " residual blocks, its config has " + std::to_string(numbers.factors.size()) +
                      " upsample_rates. The file is damaged, or its metadata belong to another.");
    Source filters{};
    for (int level = 0; level < levels; ++level) {
      const std::string up = path + ".up." + std::to_string(level);
      const std::int64_t factor = numbers.factors[std::size_t(level)];
      hidden = add_up(up, names_.upsampling + std::to_string(level), hidden, factor);
      points = checked_product({points, factor}, "the vocoder's upsampling");
      const int each = resnets / levels;
      filters = add_filters(up + ".filters", level * each, hidden);
      hidden = add_level(up, level * each, each, numbers, hidden, filters);
    }
    return add_conv(path + ".out", names_.last, hidden,
                    {.act = names_.last_act, .filters = &filters});
  }

  Source add_conv(const std::string& path, const std::string& module, const Source& hidden,
                  const Step& step) {
    using B = H3SoundConv;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden).set(B::dilation, step.dilation).set(B::stride, std::int64_t{1});
    if (step.filters != nullptr) block.link(B::filters, *step.filters);
    if (step.base != nullptr) block.link(B::base, *step.base);
    const std::string tensor = at_ + module + ".weight", bias = at_ + module + ".bias";
    const std::int64_t out = file_.size(tensor, 0), taps = file_.size(tensor, 2);
    if (taps % 2 == 0)
      throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": '" + tensor + "' has " +
                                          std::to_string(taps) +
                                          " taps. Only an odd number is supported.");
    blocks::Slots slots(file_, block, path);
    slots.fill(B::filter, tensor, {out, channels_, taps});
    if (file_.has(bias)) slots.fill(B::bias, bias, {out});
    if (!step.act.empty()) {
      const std::string act = at_ + step.act + ".act.";
      slots.fill(B::alpha, act + "alpha", {channels_});
      // Activations without a divisor of their own divide by what they multiply with.
      slots.fill(B::beta, act + (file_.has(act + "beta") ? "beta" : "alpha"), {channels_});
    }
    channels_ = out;
    return block[B::out];
  }

  Source add_up(const std::string& path, const std::string& module, const Source& hidden,
                std::int64_t factor) {
    using B = H3SoundUp;
    const std::string tensor = at_ + module + ".weight";
    const std::int64_t out = file_.size(tensor, 1), taps = file_.size(tensor, 2);
    if (factor < 1 || factor > taps || (taps - factor) % 2 != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": '" + tensor + "' has " + std::to_string(taps) +
                      " taps for an upsampling by " + std::to_string(factor) +
                      ". There have to be as many, or an even number more. Check upsample_rates in "
                      "the file's metadata.");
    Block block = graph_.add<B>(path + ".upsample");
    block.link(B::hidden, hidden).set(B::factor, factor);
    blocks::Slots slots(file_, block, path + ".upsample");
    slots.fill(B::filter, tensor, {channels_, out, taps});
    slots.fill(B::bias, at_ + module + ".bias", {out});
    channels_ = out;
    return block[B::out];
  }

  // All of a file are the same: those of the level's first activation.
  Source add_filters(const std::string& path, int resnet, const Source& hidden) {
    using B = H3SoundFilters;
    const std::string act = at_ + names_.block + std::to_string(resnet) + ".acts1.0";
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden);
    blocks::Slots slots(file_, block, path);
    slots.fill(B::up, act + ".upsample.filter", {1, 1, kStageTaps});
    slots.fill(B::down, act + names_.low_pass, {1, 1, kStageTaps});
    return block[B::out];
  }

  // The mean of residual blocks that all read the same.
  Source add_level(const std::string& path, int begin, int count, const StageNumbers& numbers,
                   const Source& hidden, const Source& filters) {
    Source sum{};
    for (int i = 0; i < count; ++i) {
      const std::string module = names_.block + std::to_string(begin + i) + ".",
                        own = path + ".block." + std::to_string(i);
      Source x = hidden;
      for (std::size_t k = 0; k < numbers.dilations.size(); ++k) {
        const std::string nth = std::to_string(k), at = own + "." + nth;
        const Source middle = add_conv(at + ".first", module + "convs1." + nth, x,
                                       {.act = module + "acts1." + nth,
                                        .filters = &filters,
                                        .dilation = numbers.dilations[k]});
        x = add_conv(at + ".second", module + "convs2." + nth, middle,
                     {.act = module + "acts2." + nth, .filters = &filters, .base = &x});
      }
      Block block = graph_.add<VocoderSum>(own + ".sum");
      block.link(VocoderSum::hidden, x);
      if (i > 0) block.link(VocoderSum::other, sum);
      if (i + 1 == count) block.set(VocoderSum::factor, 1.0 / double(count));
      sum = block[VocoderSum::out];
    }
    return sum;
  }

  const Checkpoint& file_;
  Blocks& graph_;
  const std::string prefix_;
  const StageNames& names_;
  std::string at_;
  std::int64_t channels_ = 0;
};

}  // namespace

bool is_vocoder_of_stages(const Checkpoint& file) {
  const auto prefix = blocks::prefix_before(file, kStageBands);
  return prefix && blocks::layer_count(file, *prefix + "bwe_generator.ups.") +
                           blocks::layer_count(file, *prefix + "bwe_generator.upsamplers.") >
                       0;
}

void build_vocoder_of_stages(const Checkpoint& file, const Value& config, Blocks& graph) {
  const Value inside = blocks::config_inside(file).field("vocoder"), bwe = inside.field("bwe");
  const StageNumbers first = StageNumbers::read(config, inside.field("vocoder"), ""),
                     second = StageNumbers::read(config, bwe, "bwe_");
  const auto number = [&](const char* name, std::int64_t usual) {
    return config.get<std::int64_t>(name, bwe.get<std::int64_t>(name, usual));
  };
  const BandNumbers n{number("hop_length", 80), number("input_sampling_rate", 16000),
                      number("output_sampling_rate", 48000)};
  bool is_sound =
      n.hop >= 1 && n.from >= 1 && n.to >= n.from && n.to % n.from == 0 && second.act.empty();
  for (const StageNumbers* stage : {&first, &second}) {
    is_sound = is_sound && !stage->dilations.empty();
    for (const std::int64_t apart : stage->dilations)
      is_sound = is_sound && apart >= 1 && apart <= kMostDilation;
  }
  if (!is_sound)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": in the vocoder's config hop_length " + std::to_string(n.hop) +
                    " has to be 1 or more, resblock_dilation_sizes lists of numbers from 1 to " +
                    std::to_string(kMostDilation) + ", output_sampling_rate " +
                    std::to_string(n.to) + " a multiple of input_sampling_rate " +
                    std::to_string(n.from) +
                    ", and the second stage has to be without a last activation.");
  const std::string prefix = blocks::prefix_before(file, kStageBands).value_or("");
  const std::int64_t samples = StagesBuilder(file, prefix, graph).run(first, second, n);
  graph.setting("family", "ltx2_vocoder");
  graph.setting("sample_rate", n.to);
  graph.setting("upsample", samples);
}

}  // namespace heddle::vae
