#include "picture_embeddings.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include <heddle/host_memory.hpp>

#include "random.h"

namespace heddle::samplers {
namespace {

constexpr int kLevels = 1000;
// Of a sum of several, in models of pictures and in those of texts.
constexpr double kNoiseOfSum = 0.05, kNoiseOfSumInTexts = 0.0;
constexpr std::uint64_t kSeedsBefore = 10;
constexpr float kLongestWave = 10000.0f;

struct EmbeddingMix {
  float kept, noise;
};

// Of a level below kLevels.
EmbeddingMix mix_at(int level) {
  const auto kept_at = [](double part) {
    const double cosine = std::cos((part + 0.008) / 1.008 * std::numbers::pi / 2);
    return cosine * cosine;
  };
  double kept = 1;
  for (int i = 0; i <= level; ++i)
    kept *=
        1 - std::min(1 - kept_at(double(i + 1) / kLevels) / kept_at(double(i) / kLevels), 0.999);
  return {float(std::sqrt(kept)), float(std::sqrt(1 - kept))};
}

// Python's round(): half to even.
int level_of(double augmentation) { return int(std::nearbyint((kLevels - 1) * augmentation)); }

// An embedding with noise, and behind it what is said of that.
class Augmentation {
 public:
  Augmentation(std::size_t width, std::uint64_t seed) : width_(width), seed_(seed) {}

  // Each picture has the same noise; a sum has what comes behind it.
  std::vector<float> of_picture(std::span<const float> embedding, double augmentation) {
    generator_.emplace(seed_);
    return of_sum(embedding, augmentation);
  }
  std::vector<float> of_sum(std::span<const float> embedding, double augmentation) {
    const int level = level_of(augmentation);
    const EmbeddingMix mix = mix_at(level);
    std::vector<float> made(2 * width_);
    generator_->normal(std::span(made).first(width_));
    for (std::size_t i = 0; i < width_; ++i)
      made[i] = mix.kept * embedding[i] + mix.noise * made[i];
    const std::size_t half = width_ / 2;
    for (std::size_t i = 0; i < half; ++i) {
      const float wave = std::exp(-std::log(kLongestWave) * float(i) / float(half));
      made[width_ + i] = std::cos(float(level) * wave);
      made[width_ + half + i] = std::sin(float(level) * wave);
    }
    return made;
  }

 private:
  std::size_t width_;
  std::uint64_t seed_;
  std::optional<Generator> generator_;
};

}  // namespace

std::optional<PictureLayout> picture_layout(const Value& settings) {
  const PictureLayout layout{settings.get<std::int64_t>("picture_width", 0),
                             settings.get<std::int64_t>("pooled_width", 0)};
  return layout.width > 0 ? std::optional(layout) : std::nullopt;
}

void check_pictures(const Value& entry, const Value& model) {
  if (!entry.has(kPictureEmbeddings) || picture_layout(model_settings(model)) ||
      model_settings(model).has("controls"))  // a ControlNet beside a model of pictures
    return;
  throw Error(HEDDLE_UNSUPPORTED, "the conditioning carries pictures ('" +
                                      std::string(kPictureEmbeddings) + "'), which the model '" +
                                      model_family(model) +
                                      "' does not read. Take an unCLIP model or SDXL, or leave out "
                                      "unCLIPConditioning.");
}

bool is_of_pictures(const Value& entry, const std::optional<PictureLayout>& layout) {
  return layout && (layout->is_of_pictures() || entry.has(kPictureEmbeddings));
}

Tensor pictures_of(Context& ctx, const Value& entry, const PictureLayout& layout,
                   std::uint64_t seed) {
  const auto width = std::size_t(layout.width);
  std::vector<float> sum(2 * width, 0.0f);
  std::size_t count = 0;
  Augmentation augment(width, seed - kSeedsBefore);
  const Value pictures = entry.field(kPictureEmbeddings);
  for (std::uint32_t k = 0; k < pictures.count(); ++k) {
    const Value picture = pictures.item(k);
    const Tensor embeds = picture.field("embeds").as<Tensor>();
    if (embeds.rank() != 2 || embeds.size(1) != layout.width)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "the conditioning's picture is told in " + std::to_string(embeds.size(-1)) +
                      " numbers, the model reads " + std::to_string(layout.width) +
                      ". See it with the vision tower that belongs to the model: of SDXL "
                      "clip_vision_g, of an unCLIP model its own (unCLIPCheckpointLoader).");
    HostMemory memory(ctx);
    std::pmr::vector<float> values(std::size_t(embeds.count()), &memory);
    read_to<float>(ctx, embeds, values);
    const auto strength = float(picture.get<double>("strength", 1.0));
    for (std::int64_t row = 0; row < embeds.size(0); ++row, ++count) {
      const std::vector<float> made =
          augment.of_picture({values.data() + std::size_t(row) * width, width},
                             picture.get<double>("noise_augmentation", 0.0));
      for (std::size_t i = 0; i < made.size(); ++i) sum[i] += made[i] * strength;
    }
  }
  if (count > 1)
    sum = augment.of_sum(std::span(sum).first(width),
                         layout.is_of_pictures() ? kNoiseOfSum : kNoiseOfSumInTexts);
  const Tensor y = ctx.make_host({1, layout.pooled}, HEDDLE_F32);
  std::copy_n(sum.begin(), layout.pooled, y.data<float>());
  return y;
}

}  // namespace heddle::samplers
