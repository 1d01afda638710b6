#include "video_hint.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "hint_pixels.h"
#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/h3_clips.h"
#include "plugins/blocks/minimax_latents.h"
#include "sample_shapes.h"

namespace heddle::samplers {
namespace {

using blocks::GridSize;

constexpr float kMarked = 0.5f;  // above it a mask marks
// Of red, green and blue: what the autoencoder takes for 0 (the means of ImageNet's pictures).
constexpr float kMeanPicture[] = {0.485f, 0.456f, 0.406f};
// Frames of the latent in each period, and those that remain.
constexpr std::int64_t kFramePeriod = 5, kFramesOver = 2;

// The number of pictures is that of the latent's frames; -1 where there is none.
std::int64_t pictures_for(std::int64_t frames) {
  return frames % kFramePeriod == kFramesOver ? blocks::minimax_pictures_of(frames) : -1;
}

std::int64_t hint_channels(const Value& patch) {
  return model_settings(patch).get<std::int64_t>("hint_channels", 0);
}
std::int64_t latent_channels(const Value& patch) {
  return model_settings(patch).get<std::int64_t>("latent_channels", 0);
}

// The frames of an IMAGE or a MASK in another size, one after another.
class FittedFrames {
 public:
  enum class Kind { kPictures, kMarks };

  FittedFrames(Context& ctx, const Value& given, Kind kind, const GridSize& size,
               std::pmr::memory_resource& memory)
      : ctx_(ctx), kind_(kind), size_(size), memory_(memory) {
    const Tensor all = given.as<Tensor>();
    const std::int64_t rank = all.rank(), behind = kind == Kind::kPictures ? 3 : 2;
    if (rank < behind || all.count() == 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  std::string("model_patch: ") + (kind == Kind::kPictures
                                                      ? "a video has no pictures. Link an IMAGE."
                                                      : "the mask is empty. Link a MASK."));
    Shape shape{1};
    for (std::int64_t axis = rank - behind; axis < rank; ++axis) shape.push_back(all.size(axis));
    shape[0] = all.count() / vae::count_of(shape);
    if (kind == Kind::kPictures && all.size(rank - 1) < vae::kColours)
      throw Error(HEDDLE_INVALID_ARGUMENT, "model_patch: a video's pictures have " +
                                               std::to_string(all.size(rank - 1)) + " channels, " +
                                               std::to_string(vae::kColours) +
                                               " are needed. Link an IMAGE.");
    frames_ = rank == behind + 1 ? all : ops::contiguous(ctx, all).reshape(shape);
  }

  // Of 0 and 1 where they are marks. Valid until the next call.
  const HintPixels& at(std::int64_t index) {
    const std::int64_t here = std::min(index, frames_.size(0) - 1);
    if (here == at_) return pixels_;
    const Tensor one = frames_.slice(0, here, here + 1);
    if (kind_ == Kind::kPictures) {
      pixels_ = read_image(ctx_, one.slice(3, 0, vae::kColours), memory_);
    } else {
      pixels_ = read_mask(ctx_, one, memory_);
      mark();
    }
    resize(pixels_, size_, blocks::Resampling::bilinear, memory_);
    if (kind_ == Kind::kMarks) mark();
    at_ = here;
    return pixels_;
  }

 private:
  void mark() {
    for (float& value : pixels_.values) value = value > kMarked ? 1.0f : 0.0f;
  }

  Context& ctx_;
  const Kind kind_;
  const GridSize size_;
  std::pmr::memory_resource& memory_;
  Tensor frames_;
  HintPixels pixels_;
  std::int64_t at_ = -1;
};

// Makes one hint.
class VideoHint {
 public:
  VideoHint(Context& ctx, const AppliedPatch& patch, const Shape& point,
            std::pmr::memory_resource& memory)
      : ctx_(ctx),
        patch_(patch),
        autoencoder_(patch.vae),
        frames_(point[2]),
        cells_{point[3], point[4]},
        pixels_{checked_product({point[3], autoencoder_.downscale}, "the hint's height"),
                checked_product({point[4], autoencoder_.downscale}, "the hint's width")},
        memory_(memory),
        values_(&memory) {
    values_.assign(std::size_t(checked_product({hint_channels(patch.model), plane()}, "the hint")),
                   0.0f);
  }

  Tensor made() {
    if (patch_.image) follow();
    if (patch_.mask) keep();
    const Shape shape{1, hint_channels(patch_.model), frames_, cells_.height, cells_.width};
    return ctx_.upload(shape, HEDDLE_F32, values_.data());
  }

 private:
  using WriteFrame = std::function<void(std::int64_t index, float* to)>;

  std::int64_t plane() const { return frames_ * cells_.height * cells_.width; }

  void follow() {
    FittedFrames video(ctx_, patch_.image, FittedFrames::Kind::kPictures, pixels_, memory_);
    encode(0, [&](std::int64_t index, float* to) {
      const HintPixels& frame = video.at(index);
      std::ranges::copy(frame.values, to);
    });
  }

  void keep() {
    const bool has_means = model_settings(patch_.model).get<bool>("hint_holes_mean", false);
    FittedFrames marks(ctx_, patch_.mask, FittedFrames::Kind::kMarks, pixels_, memory_);
    std::optional<FittedFrames> source;
    if (patch_.inpainted)
      source.emplace(ctx_, patch_.inpainted, FittedFrames::Kind::kPictures, pixels_, memory_);
    std::pmr::vector<float> stays(&memory_);  // by frames of the video, rows and columns of cells
    const std::int64_t channels = latent_channels(patch_.model);
    encode(channels + 1, [&](std::int64_t index, float* to) {
      stays.resize(std::size_t(index * cells_.height * cells_.width));  // it may be made once more
      HintPixels left = marks.at(index);
      for (float& value : left.values) value = 1.0f - value;
      const HintPixels* const shown = source ? &source->at(index) : nullptr;
      for (std::size_t i = 0; i < left.values.size(); ++i)
        for (std::size_t c = 0; c < std::size_t(vae::kColours); ++c) {
          const float there =
              shown == nullptr ? 0.0f : shown->values[i * std::size_t(vae::kColours) + c];
          *to++ = there * left.values[i] +
                  (has_means ? (1.0f - left.values[i]) * kMeanPicture[c] : 0.0f);
        }
      resize(left, cells_, blocks::Resampling::bilinear, memory_, false);
      stays.insert(stays.end(), left.values.begin(), left.values.end());
    });
    along_time(stays, values_.data() + channels * plane());
  }

  // Between frames along straight lines, as PyTorch does it with corners not aligned.
  void along_time(const std::pmr::vector<float>& from, float* to) const {
    const std::int64_t area = cells_.height * cells_.width,
                       count = std::int64_t(from.size()) / area;
    const float step = float(count) / float(frames_);
    for (std::int64_t frame = 0; frame < frames_; ++frame) {
      const float place = std::max(0.0f, (float(frame) + 0.5f) * step - 0.5f);
      const std::int64_t before = std::min(std::int64_t(place), count - 1),
                         behind = std::min(before + 1, count - 1);
      const float share = place - float(before);
      for (std::int64_t i = 0; i < area; ++i)
        *to++ = from[std::size_t(before * area + i)] * (1.0f - share) +
                from[std::size_t(behind * area + i)] * share;
    }
  }

  // The latent of frames that are written one after another, from this channel on.
  void encode(std::int64_t channel, const WriteFrame& write) {
    const Shape all{blocks::minimax_pictures_of(frames_), pixels_.height, pixels_.width,
                    vae::kColours};
    const auto clip = [&](std::int64_t begin, std::int64_t count) {
      const Tensor host = ctx_.make_host({count, all[1], all[2], all[3]}, HEDDLE_F32);
      for (std::int64_t i = 0; i < count; ++i)
        write(begin + i, host.data<float>() + i * all[1] * all[2] * all[3]);
      return ctx_.upload(host.shape(), HEDDLE_F32, host.data<float>());
    };
    const Tensor mean = vae::encoded_clips(ctx_, patch_.vae, vae::ClipPictures{all, clip},
                                           autoencoder_, vae::published_tiling(patch_.vae));
    const Tensor samples =
        vae::latent_of(ctx_, mean, autoencoder_).value().get<Tensor>("samples", {});
    const std::int64_t channels = latent_channels(patch_.model);
    if (samples.shape() != Shape{1, channels, frames_, cells_.height, cells_.width})
      throw Error(
          HEDDLE_INVALID_ARGUMENT,
          "model_patch: the autoencoder makes another latent of the video than the one that "
          "is drawn. Link the video autoencoder that belongs to the model.");
    std::pmr::vector<float> numbers(std::size_t(samples.count()), &memory_);
    read_to<float>(ctx_, samples, numbers);
    std::ranges::copy(numbers, values_.begin() + channel * plane());
  }

  Context& ctx_;
  const AppliedPatch& patch_;
  const vae::Autoencoder autoencoder_;
  const std::int64_t frames_;
  const GridSize cells_, pixels_;
  std::pmr::memory_resource& memory_;
  std::pmr::vector<float> values_;
};

void refuse_video_hint(const std::string& why) {
  throw Error(HEDDLE_INVALID_ARGUMENT, "model_patch: " + why);
}

}  // namespace

bool reads_video(const Value& patch) {
  return model_settings(patch).get<bool>("hint_video", false);
}

void check_video_hint(const AppliedPatch& patch) {
  const std::int64_t latent = latent_channels(patch.model), all = hint_channels(patch.model);
  if (!vae::codes_clips(patch.vae))
    refuse_video_hint(
        "its hints are latents of MiniMax H3's own video autoencoder, and this is another one. "
        "Load "
        "minimax_h3_video_vae with VAELoader.");
  if (patch.mask && all != 2 * latent + 1)
    refuse_video_hint(
        "this patch (" + model_family(patch.model) + ") reads hints of " + std::to_string(all) +
        " channels, in which there is no room for a mask. Leave the mask out, or load a patch "
        "that draws parts anew.");
}

std::optional<PatchShapes> video_hint_shapes(const AppliedPatch& patch, const Shape& cells) {
  const std::optional<vae::Autoencoder> autoencoder = vae::usable(patch.vae);
  if (!autoencoder || cells.size() != 3 || pictures_for(cells[0]) < 0) return {};
  const Shape pictures{pictures_for(cells[0]),
                       checked_product({cells[1], autoencoder->downscale}, "the hint's height"),
                       checked_product({cells[2], autoencoder->downscale}, "the hint's width"),
                       vae::kColours};
  const vae::EncoderCalls calls =
      vae::encoder_calls(pictures, *autoencoder, vae::published_tiling(patch.vae));
  if (calls.images.empty()) return {};
  PatchShapes shapes;
  for (const bool is_given : {bool(patch.image), bool(patch.mask)})
    if (is_given)
      shapes.pictures.insert(shapes.pictures.end(), calls.images.begin(), calls.images.end());
  shapes.hint = {1, hint_channels(patch.model), cells[0], cells[1], cells[2]};
  // A clip, frames that are resized, and the hint.
  constexpr double kResized = 4;
  const double frame = double(vae::count_of({pictures[1], pictures[2], pictures[3]})),
               clip = double(calls.images.front()[0]) * frame,
               hint = double(vae::count_of(shapes.hint));
  shapes.in_host = clip + kResized * frame + 2 * hint + double(calls.host_bytes) / sizeof(float);
  shapes.on_device = clip + hint;
  return shapes;
}

Tensor video_hint(Context& ctx, const AppliedPatch& patch, const Shape& point,
                  std::pmr::memory_resource& memory) {
  if (point.size() != 5 || pictures_for(point[2]) < 0)
    throw Error(HEDDLE_UNSUPPORTED,
                "a model patch of MiniMax H3 reads the hint of a video of 17 n + 5 pictures, and "
                "the latent is of " +
                    std::to_string(point.size() == 5 ? point[2] : 1) +
                    " frames, which are not 5 n + 2. Make the latent with EmptyMiniMaxH3LatentAV.");
  return VideoHint(ctx, patch, point, memory).made();
}

}  // namespace heddle::samplers
