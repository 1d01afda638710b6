#include "plugins/image/seedvr_nodes.h"

#include <algorithm>

#include "plugins/image/host_pixels.h"
#include "plugins/image/seedvr_colours.h"

namespace heddle::image {
namespace {

constexpr std::int64_t kCodedSide = 16;   // pixels, of which sides are multiples
constexpr std::int64_t kCodedFrames = 4;  // of a video behind its first, for each of the latent
constexpr std::int64_t kColours = 3, kWithAlpha = 4;

std::int64_t up_to_multiple(std::int64_t x, std::int64_t of) { return (x + of - 1) / of * of; }

Extent coded_extent(const Extent& given) {
  if (std::min(given.height, given.width) < 2)
    throw Error(HEDDLE_INVALID_ARGUMENT, "resized_images have " + std::to_string(given.width) +
                                             " x " + std::to_string(given.height) +
                                             " pixels. Give pictures of at least 2 x 2.");
  return {1 + up_to_multiple(given.count - 1, kCodedFrames),
          up_to_multiple(given.height, kCodedSide), up_to_multiple(given.width, kCodedSide),
          std::min(given.channels, kColours)};
}

// What both batches have, without alpha; and the even sides of it that stay.
Extent common_extent(const Extent& drawn, const Extent& reference) {
  return {std::min(drawn.count, reference.count), std::min(drawn.height, reference.height),
          std::min(drawn.width, reference.width), drawn.channels};
}
Extent kept_extent(const Extent& common, bool has_alpha) {
  return {common.count, common.height / 2 * 2, common.width / 2 * 2,
          common.channels + (has_alpha ? 1 : 0)};
}

void require_colours(const Extent& drawn, std::int64_t reference, const std::string& method) {
  if (method == "none" || (drawn.channels == kColours && reference == kColours)) return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "images have " + std::to_string(drawn.channels) +
                  " channels, original_resized_images " + std::to_string(reference) +
                  " without alpha. Give pictures of 3 channels, or 'none' as "
                  "color_correction_method.");
}

// Pictures that both batches have, one at a time as planes from -1 to 1.
class ColourMatch {
 public:
  ColourMatch(Context& ctx, const Extent& common)
      : ctx_(ctx),
        common_(common),
        memory_(ctx),
        drawn_(std::size_t(kColours * common.height * common.width), &memory_),
        wanted_(drawn_.size(), &memory_) {}

  // Picture i of `drawn` with the colours of that of `reference`, as planes.
  ColourPlanes match(std::int64_t i, const Pixels& drawn, const Pixels& reference,
                     const std::string& method) {
    const ColourPlanes made{common_.height, common_.width, drawn_},
        wanted{common_.height, common_.width, wanted_};
    for (std::int64_t y = 0; y < common_.height; ++y) to_planes(drawn.row(i, y), drawn, y, made);
    show(i, reference, wanted);
    match_colours(method, made, wanted, memory_, [&] { check_cancelled(ctx_); });
    return made;
  }

 private:
  void to_planes(const float* row, const Pixels& from, std::int64_t y, const ColourPlanes& to) {
    for (std::int64_t x = 0; x < to.width; ++x)
      for (std::int64_t c = 0; c < kColours; ++c)
        to.plane(c)[y * to.width + x] = row[x * from.extent().channels + c] * 2.0f - 1.0f;
  }
  // The reference, in the size of what was drawn.
  void show(std::int64_t i, const Pixels& reference, const ColourPlanes& to) {
    const Extent& e = reference.extent();
    if (e.size() == common_.size()) {
      for (std::int64_t y = 0; y < e.height; ++y) to_planes(reference.row(i, y), reference, y, to);
      return;
    }
    std::pmr::vector<float> resized(std::size_t(common_.height * common_.width * e.channels),
                                    &memory_);
    blocks::resample(blocks::Source::of(reference.row(i, 0), {1, e.size(), e.channels}),
                     common_.size(), blocks::Resampling::bicubic_antialiased, resized.data(),
                     memory_, [&] { check_cancelled(ctx_); });
    for (std::int64_t y = 0; y < common_.height; ++y)
      to_planes(resized.data() + y * common_.width * e.channels, reference, y, to);
  }

  Context& ctx_;
  const Extent common_;
  HostMemory memory_;
  std::pmr::vector<float> drawn_, wanted_;
};

}  // namespace

void SeedVR2Preprocess::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[resized_images], "resized_images");
  const Extent given = from.extent(), made = coded_extent(given);
  const Canvas to = Canvas::image(ctx, made);
  to.fill(0);
  for (std::int64_t i = 0; i < made.count; ++i) {
    check_cancelled(ctx);
    for (std::int64_t y = 0; y < given.height; ++y) {
      const float* row = from.row(std::min(i, given.count - 1), y);
      for (std::int64_t x = 0; x < given.width; ++x)
        for (std::int64_t c = 0; c < made.channels; ++c)
          to.at(i, y, x)[c] = std::clamp(row[x * given.channels + c], 0.0f, 1.0f);
    }
  }
  ctx[out] = to.tensor();
}
void SeedVR2Preprocess::infer(Infer& question) {
  if (const auto given = extent_of_image(question, resized_images))
    question.out(out, "", HEDDLE_F32, image_shape(coded_extent(*given)));
}

void SeedVR2PostProcessing::execute(Context& ctx) {
  const Pixels drawn = Pixels::image(ctx, ctx[images], "images"),
               reference =
                   Pixels::image(ctx, ctx[original_resized_images], "original_resized_images");
  const std::string method = ctx[color_correction_method];
  const bool has_alpha = reference.extent().channels == kWithAlpha;
  const Extent common = common_extent(drawn.extent(), reference.extent()),
               kept = kept_extent(common, has_alpha);
  require_colours(drawn.extent(), has_alpha ? kColours : reference.extent().channels, method);
  if (kept.height < 1 || kept.width < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "of " + std::to_string(common.width) + " x " + std::to_string(common.height) +
                    " pixels no even sides are left. Give pictures of at least 2 x 2.");
  const Canvas to = Canvas::image(ctx, kept);
  std::optional<ColourMatch> colours;
  if (method != "none") colours.emplace(ctx, common);
  for (std::int64_t i = 0; i < kept.count; ++i) {
    check_cancelled(ctx);
    ctx.progress(double(i) / double(kept.count));
    const ColourPlanes planes =
        colours ? colours->match(i, drawn, reference, method) : ColourPlanes{};
    for (std::int64_t y = 0; y < kept.height; ++y)
      for (std::int64_t x = 0; x < kept.width; ++x) {
        float* pixel = to.at(i, y, x);
        for (std::int64_t c = 0; c < common.channels; ++c)
          pixel[c] = colours ? std::clamp((planes.plane(c)[y * common.width + x] + 1.0f) / 2.0f,
                                          0.0f, 1.0f)
                             : drawn.at(i, y, x)[c];
        if (has_alpha) pixel[common.channels] = reference.at(i, y, x)[kColours];
      }
  }
  ctx[out] = to.tensor();
}
void SeedVR2PostProcessing::infer(Infer& question) {
  const auto drawn = extent_of_image(question, images),
             reference = extent_of_image(question, original_resized_images);
  if (!drawn || !reference) return;
  const Extent common = common_extent(*drawn, *reference),
               kept = kept_extent(common, reference->channels == kWithAlpha);
  if (kept.height < 1 || kept.width < 1) return;
  question.out(out, "", HEDDLE_F32, image_shape(kept));
  const auto method = question[color_correction_method];
  if (method && *method == "none") return;
  const std::uint64_t planes = std::uint64_t(2 * kColours) * sizeof(float) *
                               std::uint64_t(common.height) * std::uint64_t(common.width);
  std::uint64_t resized = 0;
  if (reference->size() != common.size())
    resized = std::uint64_t(reference->channels * common.height * common.width) * sizeof(float) +
              blocks::resampling_bytes({1, reference->size(), reference->channels}, common.size());
  question.host_scratch(planes +
                        std::max(resized, colour_match_bytes(common.height, common.width)));
}

}  // namespace heddle::image
