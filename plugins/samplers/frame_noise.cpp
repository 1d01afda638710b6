#include "frame_noise.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <heddle/ops.hpp>

#include "guide_inputs.h"
#include "pair_latent.h"

namespace heddle::samplers {
namespace {

constexpr float kSameNoise = 1e-6f;

bool is_of_sound(const std::string& name) { return name.starts_with("audio_"); }
bool is_most(const std::string& name) { return name.ends_with("_most"); }

// How noisy each frame of the latent is, by what a noise mask (items, 1, frames, h, w), or of sound
// (items, 1, frames, bands), in host memory says of it. tokens: of a video whose frames do not all
// have the same; only they count.
std::vector<float> noise_by_frame(const Tensor& planes, bool is_mean, const GuideTokens* tokens) {
  const std::int64_t items = planes.size(0), frames = planes.size(2),
                     plane = planes.count() / (items * frames);
  std::vector<float> noise(std::size_t(frames), 0.0f), counting;
  const auto* const all = planes.data<float>();
  for (std::int64_t i = 0; i < items * frames; ++i) {
    const std::int64_t frame = i % frames;
    counting.clear();
    for (std::int64_t k = 0; k < plane; ++k)
      if (tokens == nullptr ||
          tokens->is_token(frame, k / tokens->columns(), k % tokens->columns()))
        counting.push_back(all[i * plane + k]);
    const auto mean =
        float(std::accumulate(counting.begin(), counting.end(), 0.0) / double(counting.size()));
    float& told = noise[std::size_t(frame)];
    if (i < frames) told = is_mean ? mean : counting.front();
    const auto is_told = [&](float m) { return std::abs(m - told) <= kSameNoise; };
    // Resizing leaves the last bits of equal numbers different.
    const bool is_even =
        is_mean ? is_told(mean) : std::all_of(counting.begin(), counting.end(), is_told);
    if (!is_even)
      throw Error(HEDDLE_UNSUPPORTED,
                  "the noise mask differs within frame " + std::to_string(frame) +
                      " of the latent, or between the videos of a batch, which this model does not "
                      "take. Give it one that keeps whole frames, as LTXVImgToVideo does.");
  }
  return noise;
}

// Each frame's number once for each of its parts.
std::vector<float> in_parts(const std::vector<float>& noise, const GuideTokens& tokens) {
  std::vector<float> made;
  const std::int64_t part = tokens.part();
  for (std::size_t frame = 0; frame < noise.size(); ++frame)
    made.insert(made.end(), std::size_t(tokens.in_frame(std::int64_t(frame)) / part), noise[frame]);
  return made;
}

Tensor host_numbers(Context& ctx, const std::vector<float>& numbers) {
  const Tensor made = ctx.make_host({std::int64_t(numbers.size())}, HEDDLE_F32);
  std::copy(numbers.begin(), numbers.end(), made.data<float>());
  return made;
}

// Without a mask all of it is drawn.
std::vector<float> noise_of_sound(const Value& mask, const ConcatPlace& place, bool is_mean) {
  if (!mask) return std::vector<float>(std::size_t(place.parts.at(1).at(2)), 1.0f);
  return noise_by_frame(parts_of(mask)[1], is_mean, nullptr);
}

}  // namespace

std::optional<ConditioningInput::Kind> noise_input_kind(const std::string& name) {
  using Kind = ConditioningInput::Kind;
  if (name == kFrameNoise || name == kFrameMost || name == kAudioMost) return Kind::kFrameNoise;
  if (name == kAudioNoise) return Kind::kSoundNoise;
  if (name == kVoice) return Kind::kVoice;
  return {};
}

Tensor frame_noise_of(Context& ctx, const std::string& name, const Value& entry,
                      const ConcatPlace& place, bool is_mean) {
  const Value mask = place.latent.field("noise_mask");
  std::vector<float> noise;
  if (is_of_sound(name)) {
    noise = noise_of_sound(mask, place, is_mean);
  } else {
    const Tensor planes = is_pair(mask) ? parts_of(mask)[0] : mask.as<Tensor>();
    const bool has_holes = is_guide_given(ConditioningInput::Kind::kTokenRows, entry);
    if (has_holes && (!place.box || place.box->size == place.grid)) {
      const GuideTokens tokens(entry, video_grid(place));
      noise = noise_by_frame(planes, is_mean, &tokens);
      if (name == kFrameNoise) return host_numbers(ctx, in_parts(noise, tokens));
    } else {
      noise = noise_by_frame(planes, is_mean, nullptr);
    }
  }
  if (is_most(name)) return host_numbers(ctx, {*std::max_element(noise.begin(), noise.end())});
  if (name == kAudioNoise && entry.has(kVoiceField)) {
    const std::int64_t before = entry.field(kVoiceField).get<Tensor>("tokens", {}).size(1);
    noise.insert(noise.begin(), std::size_t(before), 0.0f);
  }
  if (name == kFrameNoise && place.box) {
    const auto begin = noise.begin() + place.box->begin[0];
    noise = std::vector<float>(begin, begin + place.box->size[0]);
  }
  return host_numbers(ctx, noise);
}

std::int64_t frame_noise_count(const std::string& name, const Value& entry,
                               const ConcatPlace& place, std::int64_t frames_before) {
  if (is_most(name)) return 1;
  if (is_of_sound(name)) return frames_before + place.parts.at(1).at(2);
  if (is_guide_given(ConditioningInput::Kind::kTokenRows, entry)) {
    const GuideTokens tokens(entry, video_grid(place));
    return tokens.count() / tokens.part();
  }
  return place.parts.empty() && place.box ? place.box->size.front() : video_grid(place).front();
}

}  // namespace heddle::samplers
