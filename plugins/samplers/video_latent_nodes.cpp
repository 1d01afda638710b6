#include "video_latent_nodes.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "host_latent.h"

namespace heddle::samplers {
namespace {

// How far mean and deviation of a frame may move. Source: ComfyUI's nodes_kandinsky5.py.
constexpr double kMeanDown = 0.3, kMeanUp = 0.35, kDeviationDown = 0.35, kDeviationUp = 0.5;
constexpr double kLeastDeviation = 1e-8;

LatentCells video_of(Context& ctx, const Value& latent, const char* name) {
  LatentCells cells = LatentCells::of(ctx, latent, name);
  if (cells.shape().size() != 5)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::string(name) + " is of shape " + shape_text(cells.shape()) +
                    ", and not (batch, channels, frames, height, width). Give it the latent of a "
                    "video.");
  return cells;
}

// Mean and deviation of a sample, as PyTorch's std(): divided by the count less one.
class Statistics {
 public:
  void add(const float* from, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      ++count_;
      const double step = double(from[i]) - mean_;
      mean_ += step / double(count_);
      squares_ += step * (double(from[i]) - mean_);
    }
  }
  double mean() const { return mean_; }
  double deviation() const { return std::sqrt(squares_ / double(count_ - 1)); }

 private:
  std::int64_t count_ = 0;
  double mean_ = 0, squares_ = 0;
};

// Of these frames of an item.
void add_frames(const LatentCells& cells, std::int64_t item, std::int64_t first, std::int64_t count,
                Statistics& statistics) {
  const std::int64_t plane = cells.height() * cells.width(), frames = cells.shape()[2];
  for (std::int64_t c = 0; c < cells.shape()[1]; ++c)
    statistics.add(cells.item(item) + (c * frames + first) * plane, count * plane);
}

void tell_shape(Infer& question, const Input<Value>& from, const Output<Value>& to) {
  if (const auto shape = question.shape(from, "samples"))
    question.out(to, "samples", HEDDLE_F32, *shape);
}

}  // namespace

void NormalizeVideoLatentStart::execute(Context& ctx) {
  const Value from = ctx[latent];
  const LatentCells cells = video_of(ctx, from, "latent");
  const std::int64_t frames = cells.shape()[2], begin = ctx[start_frame_count];
  if (frames <= 1) {
    ctx[out] = from;
    return;
  }
  if (begin >= frames)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "start_frame_count: behind the first " + std::to_string(begin) + " of " +
                    std::to_string(frames) +
                    " frames there are none to go by. Leave one at least.");
  const std::int64_t references = std::min(ctx[reference_frame_count], frames - begin);
  Statistics reference;
  for (std::int64_t b = 0; b < cells.items(); ++b)
    add_frames(cells, b, begin, references, reference);
  const Tensor result = ctx.make_host(cells.shape(), HEDDLE_F32);
  std::copy_n(cells.item(0), cells.count(), result.data<float>());
  const std::int64_t plane = cells.height() * cells.width();
  for (std::int64_t b = 0; b < cells.items(); ++b)
    for (std::int64_t t = 0; t < begin; ++t) {
      Statistics frame;
      add_frames(cells, b, t, 1, frame);
      const double mean = std::clamp(reference.mean(), frame.mean() - kMeanDown,
                                     frame.mean() + kMeanUp),
                   deviation = std::clamp(reference.deviation(), frame.deviation() - kDeviationDown,
                                          frame.deviation() + kDeviationUp),
                   scale = deviation / (frame.deviation() + kLeastDeviation);
      for (std::int64_t c = 0; c < cells.shape()[1]; ++c) {
        float* const to = result.data<float>() + b * cells.item_size() + (c * frames + t) * plane;
        for (std::int64_t i = 0; i < plane; ++i)
          to[i] = float((double(to[i]) - frame.mean()) * scale + mean);
      }
    }
  ctx[out] = with_new_samples(from, result);
}
void NormalizeVideoLatentStart::infer(Infer& question) { tell_shape(question, latent, out); }

void ReplaceVideoLatentFrames::execute(Context& ctx) {
  const Value into = ctx[destination];
  ctx[out] = into;
  if (!ctx.has(source)) return;
  const Value from = ctx[source];
  const LatentCells to = video_of(ctx, into, "destination"), cells = video_of(ctx, from, "source");
  const std::int64_t frames = to.shape()[2], count = cells.shape()[2];
  const std::int64_t begin = ctx[index] + (ctx[index] < 0 ? frames : 0);
  if (begin < 0 || begin + count > frames) {
    ctx.warn("index " + std::to_string(ctx[index]) + ": " + std::to_string(count) +
             " frames of the source do not fit there in the " + std::to_string(frames) +
             " of the destination, which is passed on as it is");
    return;
  }
  Shape like = to.shape();
  like[2] = count;
  if (cells.items() == 1) like[0] = 1;  // the same for every item
  if (like != cells.shape())
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "source is of shape " + shape_text(cells.shape()) + ": in a destination of shape " +
                    shape_text(to.shape()) + " it has to be of " + shape_text(like));
  const Tensor result = ctx.make_host(to.shape(), HEDDLE_F32);
  std::copy_n(to.item(0), to.count(), result.data<float>());
  const std::int64_t plane = to.height() * to.width();
  for (std::int64_t b = 0; b < to.items(); ++b)
    for (std::int64_t c = 0; c < to.shape()[1]; ++c)
      std::copy_n(cells.item(b) + c * count * plane, count * plane,
                  result.data<float>() + b * to.item_size() + (c * frames + begin) * plane);
  ctx[out] = with_new_samples(from, result);
}
void ReplaceVideoLatentFrames::infer(Infer& question) { tell_shape(question, destination, out); }

}  // namespace heddle::samplers
