#include "plugins/vae/talk_moments.h"

#include <algorithm>
#include <memory_resource>

#include <heddle/host_memory.hpp>

#include "plugins/vae/sound_steps.h"

namespace heddle::vae {
namespace {

constexpr double kPicturesOfSecond = 25;

// One speaker's states in host memory, and the frames in which they are heard.
struct Speaker {
  Tensor all;  // (S, 1, T, K)
  std::int64_t first, count;

  std::int64_t states() const { return all.size(2); }
};

Speaker speaker_of(const Value& heard, std::size_t number, std::int64_t numbers,
                   std::int64_t first) {
  const std::string name = "audio_encoder_output_" + std::to_string(number + 1);
  const Tensor all = heard.get<Tensor>(kAllStates, {});
  if (!all || all.rank() != kStateAxes)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                name + ": it holds no states of an encoder. Link AudioEncoderEncode.");
  if (all.size(1) != 1 || (all.size(0) - 1) * all.size(3) != numbers)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                name + ": it is of " + std::to_string(all.size(1)) + " sounds, with " +
                    std::to_string(all.size(0) - 1) + " layers' states of " +
                    std::to_string(all.size(3)) + " numbers; the patch hears one sound of " +
                    std::to_string(numbers) +
                    " numbers in all. Encode one with wav2vec2-chinese-base.");
  const std::int64_t count = stepped_count(all.size(2), kPicturesOfSecond);
  if (count < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                name + ": " + std::to_string(all.size(2)) +
                    " states are heard, not one frame of 25 a second. Encode a longer sound.");
  return {all, first, count};
}

}  // namespace

Shape talk_shape(std::size_t speakers, const MomentRange& part, std::int64_t numbers) {
  return {std::int64_t(speakers), part.count + 2 * kMomentsBeside, numbers};
}

Tensor talk_moments(Context& ctx, const std::vector<Value>& heard, const MomentRange& part,
                    std::int64_t numbers) {
  std::vector<Speaker> speakers;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < heard.size(); ++i) {
    speakers.push_back(speaker_of(heard[i], i, numbers, total));
    total += speakers.back().count;
  }
  const std::int64_t end = part.first + part.count, last = std::max(total, end) - 1;
  const Tensor made = ctx.make_host(talk_shape(speakers.size(), part, numbers), HEDDLE_F32);
  auto* to = made.data<float>();
  HostMemory memory(ctx);
  for (const Speaker& speaker : speakers) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    std::pmr::vector<float> floats(std::size_t(speaker.all.count()), &memory);
    read_to<float>(ctx, speaker.all, floats);
    const std::int64_t layers = speaker.all.size(0), width = speaker.all.size(3);
    for (std::int64_t k = -kMomentsBeside; k < part.count + kMomentsBeside; ++k, to += numbers) {
      const std::int64_t there = std::clamp<std::int64_t>(part.first + k, 0, last),
                         moment = there < total ? there : 0, own = moment - speaker.first;
      if (own < 0 || own >= speaker.count) {
        std::fill_n(to, numbers, 0.0f);
        continue;
      }
      const StepPlace place = step_place(own, speaker.count, speaker.states());
      for (std::int64_t layer = 1; layer < layers; ++layer)
        for (std::int64_t i = 0; i < width; ++i)
          to[(layer - 1) * width + i] =
              place.of(floats.data() + layer * speaker.states() * width, width, i);
    }
  }
  return made;
}

}  // namespace heddle::vae
