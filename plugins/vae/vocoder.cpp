#include "vocoder.h"

#include <optional>
#include <string>
#include <vector>

#include <heddle/checked.hpp>

#include "plugins/blocks/config_inside.h"
#include "plugins/blocks/slots.h"
#include "vocoder_stages.h"

namespace heddle::vae {
namespace {

constexpr double kVocoderSlope = 0.1, kVocoderLastSlope = 0.01;

// The publishers' names, and those of diffusers.
struct VocoderNames {
  std::string prefix, first, last, upsampling, block;

  static std::optional<VocoderNames> find(const Checkpoint& file) {
    const VocoderNames both[] = {{"", "conv_pre", "conv_post", "ups.", "resblocks."},
                                 {"", "conv_in", "conv_out", "upsamplers.", "resnets."}};
    for (const VocoderNames& names : both) {
      const auto prefix = blocks::prefix_before(file, names.block + "0.convs1.0.weight");
      if (!prefix || !file.has(*prefix + names.first + ".weight")) continue;
      return {{*prefix, *prefix + names.first, *prefix + names.last, *prefix + names.upsampling,
               *prefix + names.block}};
    }
    return {};
  }
};

std::vector<std::int64_t> whole_numbers(const Value& list) {
  std::vector<std::int64_t> numbers;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    numbers.push_back(list.item(i).as<std::int64_t>());
  return numbers;
}

// Of what the weights do not tell: diffusers' names in the config, the publishers' in the file.
struct VocoderNumbers {
  std::vector<std::int64_t> factors{6, 5, 2, 2, 2}, dilations{1, 3, 5};
  std::int64_t sample_rate = 24000;

  static VocoderNumbers read(const Checkpoint& file, const Value& config) {
    const Value inside = blocks::config_inside(file).field("vocoder");
    VocoderNumbers n;
    const auto list = [&](const char* here, const char* there) {
      return config.has(here) ? config.field(here) : inside.field(there);
    };
    if (const Value told = list("upsample_factors", "upsample_rates"); told.count() > 0)
      n.factors = whole_numbers(told);
    if (const Value told = list("resnet_dilations", "resblock_dilation_sizes"); told.count() > 0)
      n.dilations = whole_numbers(told.item(0));
    n.sample_rate = config.get<std::int64_t>(
        "output_sampling_rate", inside.get<std::int64_t>("output_sampling_rate", n.sample_rate));
    for (const std::int64_t number : n.dilations)
      if (number < 1) n.sample_rate = 0;
    if (n.sample_rate < 1)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() +
                      ": output_sampling_rate and resblock_dilation_sizes in the vocoder's config "
                      "have to be 1 or more.");
    return n;
  }
};

class VocoderBuilder {
 public:
  VocoderBuilder(const Checkpoint& file, const VocoderNames& names, const VocoderNumbers& numbers,
                 Blocks& graph)
      : file_(file), names_(names), n_(numbers), graph_(graph) {}

  // Returns how many samples a frame of the spectrum becomes.
  std::int64_t run() {
    Block in = graph_.add<VocoderIn>("in");
    in.link(VocoderIn::mel, graph_.input("mel", HEDDLE_INPUT_LOOP_INVARIANT));
    Source hidden = add_conv("first", names_.first, in[VocoderIn::out], {.slope = 1});
    const int levels = blocks::layer_count(file_, names_.upsampling),
              resnets = blocks::layer_count(file_, names_.block);
    if (levels < 1 || std::size_t(levels) != n_.factors.size() || resnets % levels != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": the vocoder has " + std::to_string(levels) +
                      " upsamplings and " + std::to_string(resnets) +
                      " residual blocks, its config has " + std::to_string(n_.factors.size()) +
                      " upsample_rates. The file is damaged, or its metadata belong to another.");
    std::int64_t samples = 1;
    for (int level = 0; level < levels; ++level) {
      const std::int64_t factor = n_.factors[std::size_t(level)];
      hidden = add_upsample(level, hidden, factor);
      samples = checked_product({samples, factor}, "the vocoder's upsampling");
      hidden = add_level(level, resnets / levels, hidden);
    }
    hidden = add_conv("last", names_.last, hidden, {.slope = kVocoderLastSlope});
    Block out = graph_.add<VocoderOut>("out");
    out.link(VocoderOut::hidden, hidden);
    graph_.output("waveform", out[VocoderOut::waveform]);
    return samples;
  }

 private:
  // Throws where a block has not so many ports.
  std::int64_t tap_count(const std::string& tensor) const {
    const std::int64_t count = file_.size(tensor, 2);
    if (count >= 1 && count <= std::int64_t(VocoderTaps::all.size())) return count;
    throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": '" + tensor + "' has " +
                                        std::to_string(count) + " taps. From 1 to " +
                                        std::to_string(VocoderTaps::all.size()) +
                                        " are supported.");
  }

  struct ConvOptions {
    double slope = kVocoderSlope;
    std::int64_t dilation = 1;
    const Source* base = nullptr;
  };
  Source add_conv(const std::string& path, const std::string& module, const Source& hidden,
                  const ConvOptions& options) {
    using B = VocoderConv;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden).set(B::slope, options.slope).set(B::dilation, options.dilation);
    if (options.base != nullptr) block.link(B::base, *options.base);
    const std::string tensor = module + ".weight";
    const std::int64_t out = file_.size(tensor, 0), in = file_.size(tensor, 1),
                       taps = tap_count(tensor);
    if (taps % 2 == 0)
      throw Error(HEDDLE_UNSUPPORTED, file_.path() + ": '" + tensor + "' has " +
                                          std::to_string(taps) +
                                          " taps. Only an odd number is supported.");
    blocks::Slots slots(file_, block, path);
    for (std::int64_t k = 0; k < taps; ++k) {
      Part part{tensor};
      part.frame = k + 1;
      slots.fill(*VocoderTaps::all[std::size_t(k)], {part}, {out, in, taps});
    }
    slots.fill(B::bias, module + ".bias", {out});
    return block[B::out];
  }

  Source add_upsample(int level, const Source& hidden, std::int64_t factor) {
    using B = VocoderUpsample;
    const std::string path = "up." + std::to_string(level),
                      module = names_.upsampling + std::to_string(level),
                      tensor = module + ".weight";
    const std::int64_t in = file_.size(tensor, 0), out = file_.size(tensor, 1),
                       taps = tap_count(tensor);
    if (factor < 1 || factor > taps || (taps - factor) % 2 != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": '" + tensor + "' has " + std::to_string(taps) +
                      " taps for an upsampling by " + std::to_string(factor) +
                      ". There have to be as many, or an even number more. Check upsample_rates in "
                      "the file's metadata.");
    Block block = graph_.add<B>(path + ".upsample");
    block.link(B::hidden, hidden).set(B::slope, kVocoderSlope).set(B::factor, factor);
    blocks::Slots slots(file_, block, path + ".upsample");
    for (std::int64_t k = 0; k < taps; ++k) {
      Part part{tensor};
      part.frame = -(k + 1);
      slots.fill(*VocoderTaps::all[std::size_t(k)], {part}, {in, out, taps});
    }
    slots.fill(B::bias, module + ".bias", {out});
    return block[B::out];
  }

  // The mean of residual blocks that all read the same.
  Source add_level(int level, int count, const Source& hidden) {
    Source sum{};
    for (int i = 0; i < count; ++i) {
      const std::string module = names_.block + std::to_string(level * count + i) + ".",
                        path = "up." + std::to_string(level) + ".block." + std::to_string(i);
      Source x = hidden;
      for (std::size_t k = 0; k < n_.dilations.size(); ++k) {
        const std::string at = path + "." + std::to_string(k), nth = std::to_string(k);
        const Source middle =
            add_conv(at + ".first", module + "convs1." + nth, x, {.dilation = n_.dilations[k]});
        x = add_conv(at + ".second", module + "convs2." + nth, middle, {.base = &x});
      }
      Block block = graph_.add<VocoderSum>(path + ".sum");
      block.link(VocoderSum::hidden, x);
      if (i > 0) block.link(VocoderSum::other, sum);
      if (i + 1 == count) block.set(VocoderSum::factor, 1.0 / double(count));
      sum = block[VocoderSum::out];
    }
    return sum;
  }

  const Checkpoint& file_;
  const VocoderNames& names_;
  const VocoderNumbers& n_;
  Blocks& graph_;
};

}  // namespace

int Vocoder::match(const Checkpoint& file, const Value&) {
  return is_vocoder_of_stages(file) || VocoderNames::find(file) ? 100 : 0;
}

void Vocoder::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  if (is_vocoder_of_stages(file)) return build_vocoder_of_stages(file, config, graph);
  const std::optional<VocoderNames> names = VocoderNames::find(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no vocoder of LTX 2");
  const std::string block = names->block + "0.";
  for (const char* other : {"acts1.0.alpha", "acts1.0.act.alpha"})
    if (file.has(block + other))
      throw Error(
          HEDDLE_UNSUPPORTED,
          file.path() +
              ": this vocoder has snake activations and no second stage (bwe_generator, mel_stft), "
              "which is not supported. Use that of LTX 2, or the whole one of LTX 2.3.");
  const VocoderNumbers numbers = VocoderNumbers::read(file, config);
  const std::int64_t samples = VocoderBuilder(file, *names, numbers, graph).run();
  graph.setting("family", "ltx2_vocoder");
  graph.setting("sample_rate", numbers.sample_rate);
  graph.setting("upsample", samples);
}

}  // namespace heddle::vae
