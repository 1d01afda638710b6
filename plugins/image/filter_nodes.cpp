#include "plugins/image/filter_nodes.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "plugins/image/canny.h"
#include "plugins/image/host_pixels.h"

namespace heddle::image {
namespace {

// Numbers of a Gaussian over -1 to 1 in 2 radius + 1 places; they add up to 1. The one over a
// square is the product of two.
std::vector<double> gaussian(std::int64_t radius, double sigma) {
  std::vector<double> weights;
  double sum = 0;
  for (std::int64_t i = -radius; i <= radius; ++i) {
    const double x = double(i) / double(radius);
    sum += weights.emplace_back(std::exp(-x * x / (2 * sigma * sigma)));
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

// A picture as doubles, blurred along one axis after the other; what lies outside is mirrored, the
// pixel at the edge not repeated.
class Blur {
 public:
  Blur(Context& ctx, const Pixels& from, std::int64_t radius, double sigma)
      : ctx_(ctx), from_(from), radius_(radius), weights_(gaussian(radius, sigma)) {
    const Extent& e = from.extent();
    if (radius >= e.height || radius >= e.width)
      throw Error(HEDDLE_INVALID_ARGUMENT, "a radius of " + std::to_string(radius) +
                                               " is too large for " + std::to_string(e.width) +
                                               " x " + std::to_string(e.height) +
                                               " pixels. Give one below both sides.");
  }

  // Picture i, row-major.
  std::vector<double> picture(std::int64_t i) const {
    const Extent& e = from_.extent();
    std::vector<double> wide(std::size_t(e.picture())), both(wide.size(), 0.0);
    for (std::int64_t y = 0; y < e.height; ++y) {
      check_cancelled(ctx_);
      for (std::int64_t x = 0; x < e.row(); ++x)
        wide[std::size_t(y * e.row() + x)] = along(i, y, x);
    }
    for (std::int64_t y = 0; y < e.height; ++y) {
      check_cancelled(ctx_);
      for (std::int64_t k = -radius_; k <= radius_; ++k) {
        const std::int64_t row = mirrored(y + k, e.height) * e.row();
        const double weight = weights_[std::size_t(k + radius_)];
        for (std::int64_t x = 0; x < e.row(); ++x)
          both[std::size_t(y * e.row() + x)] += weight * wide[std::size_t(row + x)];
      }
    }
    return both;
  }

 private:
  static std::int64_t mirrored(std::int64_t at, std::int64_t side) {
    return at < 0 ? -at : at >= side ? 2 * (side - 1) - at : at;
  }
  double along(std::int64_t i, std::int64_t y, std::int64_t at) const {
    const Extent& e = from_.extent();
    const std::int64_t x = at / e.channels, c = at % e.channels;
    double sum = 0;
    for (std::int64_t k = -radius_; k <= radius_; ++k)
      sum += weights_[std::size_t(k + radius_)] * from_.at(i, y, mirrored(x + k, e.width))[c];
    return sum;
  }

  Context& ctx_;
  const Pixels& from_;
  std::int64_t radius_;
  std::vector<double> weights_;
};

// The least or the greatest of a square of `size` pixels around each; what lies outside does not
// count. A square of even size reaches a pixel further up and left for the least, down and right
// for the greatest.
std::vector<float> extreme(const std::vector<float>& from, const Extent& e, std::int64_t size,
                           bool is_least) {
  const auto pick = [&](float a, float b) { return is_least ? std::min(a, b) : std::max(a, b); };
  const std::int64_t before = is_least ? size / 2 : size - size / 2 - 1, after = size - 1 - before;
  std::vector<float> wide(from.size()), both(from.size());
  for (std::int64_t y = 0; y < e.height; ++y)
    for (std::int64_t at = 0; at < e.row(); ++at) {
      const std::int64_t x = at / e.channels, c = at % e.channels;
      float best = from[std::size_t(y * e.row() + at)];
      for (std::int64_t k = std::max<std::int64_t>(x - before, 0);
           k <= std::min(x + after, e.width - 1); ++k)
        best = pick(best, from[std::size_t(y * e.row() + k * e.channels + c)]);
      wide[std::size_t(y * e.row() + at)] = best;
    }
  for (std::int64_t y = 0; y < e.height; ++y)
    for (std::int64_t at = 0; at < e.row(); ++at) {
      float best = wide[std::size_t(y * e.row() + at)];
      for (std::int64_t k = std::max<std::int64_t>(y - before, 0);
           k <= std::min(y + after, e.height - 1); ++k)
        best = pick(best, wide[std::size_t(k * e.row() + at)]);
      both[std::size_t(y * e.row() + at)] = best;
    }
  return both;
}

std::vector<float> minus(std::vector<float> a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

std::vector<float> morphed(const std::vector<float>& x, const Extent& e, const std::string& how,
                           std::int64_t size) {
  const auto erode = [&](const std::vector<float>& v) { return extreme(v, e, size, true); };
  const auto dilate = [&](const std::vector<float>& v) { return extreme(v, e, size, false); };
  if (how == "erode") return erode(x);
  if (how == "dilate") return dilate(x);
  if (how == "open") return dilate(erode(x));
  if (how == "close") return erode(dilate(x));
  if (how == "gradient") return minus(dilate(x), erode(x));
  if (how == "bottom_hat") return minus(erode(dilate(x)), x);
  return minus(x, dilate(erode(x)));  // top_hat
}

void require_colours(const Extent& e) {
  if (e.channels < 3)
    throw Error(HEDDLE_INVALID_ARGUMENT, "image: it has " + std::to_string(e.channels) +
                                             " channels, 3 are needed. Give a picture in colour.");
}

}  // namespace

void ImageBlur::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[image], "image");
  const Blur blur(ctx, from, ctx[blur_radius], ctx[sigma]);
  const Canvas to = Canvas::image(ctx, from.extent());
  for (std::int64_t i = 0; i < from.extent().count; ++i) {
    const std::vector<double> blurred = blur.picture(i);
    std::transform(blurred.begin(), blurred.end(), to.row(i, 0), [](double v) { return float(v); });
  }
  ctx[out] = to.tensor();
}
void ImageBlur::infer(Infer& question) { infer_like(question, image, out); }

void ImageSharpen::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[image], "image");
  const Blur blur(ctx, from, ctx[sharpen_radius], ctx[sigma]);
  const double strength = ctx[alpha] * 10;
  const Canvas to = Canvas::image(ctx, from.extent());
  for (std::int64_t i = 0; i < from.extent().count; ++i) {
    const std::vector<double> blurred = blur.picture(i);
    std::transform(blurred.begin(), blurred.end(), from.row(i, 0), to.row(i, 0),
                   [&](double blurry, float sharp) {
                     return float(std::clamp(sharp * (1 + strength) - blurry * strength, 0.0, 1.0));
                   });
  }
  ctx[out] = to.tensor();
}
void ImageSharpen::infer(Infer& question) { infer_like(question, image, out); }

void Morphology::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[image], "image");
  const Extent& e = from.extent();
  const std::string how = ctx[operation];
  const Canvas to = Canvas::image(ctx, e);
  for (std::int64_t i = 0; i < e.count; ++i) {
    check_cancelled(ctx);
    const std::vector<float> picture(from.row(i, 0), from.row(i, 0) + e.picture());
    const std::vector<float> result = morphed(picture, e, how, ctx[kernel_size]);
    std::copy(result.begin(), result.end(), to.row(i, 0));
  }
  ctx[out] = to.tensor();
}
void Morphology::infer(Infer& question) { infer_like(question, image, out); }

void Canny::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[image], "image");
  Extent e = from.extent();
  require_colours(e);
  if (e.height < 3 || e.width < 3)
    throw Error(HEDDLE_INVALID_ARGUMENT, "image: edges need at least 3 x 3 pixels.");
  const float low = float(ctx[low_threshold]), high = float(ctx[high_threshold]);
  if (low > high)
    throw Error(HEDDLE_INVALID_ARGUMENT, "low_threshold is " + std::to_string(low) +
                                             ", above high_threshold, " + std::to_string(high) +
                                             ". Give a lower one.");
  e.channels = 3;
  const Canvas to = Canvas::image(ctx, e);
  for (std::int64_t i = 0; i < e.count; ++i) {
    check_cancelled(ctx);
    std::vector<float> grey;
    for (std::int64_t y = 0; y < e.height; ++y)
      for (std::int64_t x = 0; x < e.width; ++x) {
        const float* p = from.at(i, y, x);
        grey.push_back(0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2]);
      }
    const std::vector<bool> edges = canny_edges(grey, e.height, e.width, low, high);
    for (std::size_t at = 0; at < edges.size(); ++at)
      std::fill_n(to.row(i, 0) + 3 * at, 3, edges[at] ? 1.0f : 0.0f);
  }
  ctx[out] = to.tensor();
}
void Canny::infer(Infer& question) {
  auto e = extent_of_image(question, image);
  if (!e) return;
  e->channels = 3;
  question.out(out, "", HEDDLE_F32, image_shape(*e));
}

void ImageRGBToYUV::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[image], "image");
  const Extent& e = from.extent();
  require_colours(e);
  const Canvas y_picture = Canvas::image(ctx, e), u_picture = Canvas::image(ctx, e),
               v_picture = Canvas::image(ctx, e);
  for (std::int64_t at = 0; at < e.count * e.height * e.width; ++at) {
    const float* p = from.row(0, 0) + at * e.channels;
    const float y = 0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2];
    std::fill_n(y_picture.data() + at * e.channels, e.channels, y);
    std::fill_n(u_picture.data() + at * e.channels, e.channels, (p[2] - y) * 0.564f + 0.5f);
    std::fill_n(v_picture.data() + at * e.channels, e.channels, (p[0] - y) * 0.713f + 0.5f);
  }
  ctx[y_out] = y_picture.tensor();
  ctx[u_out] = u_picture.tensor();
  ctx[v_out] = v_picture.tensor();
}
void ImageRGBToYUV::infer(Infer& question) {
  infer_like(question, image, y_out);
  infer_like(question, image, u_out);
  infer_like(question, image, v_out);
}

void ImageYUVToRGB::execute(Context& ctx) {
  const Pixels y = Pixels::image(ctx, ctx[Y], "Y"), u = Pixels::image(ctx, ctx[U], "U"),
               v = Pixels::image(ctx, ctx[V], "V");
  Extent e = y.extent();
  for (const Pixels* other : {&u, &v}) {
    const Extent& o = other->extent();
    if (o.count != e.count || o.size() != e.size())
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "Y, U and V differ in size. Give three pictures of one size.");
  }
  e.channels = 3;
  const auto mean = [](const Pixels& from, std::int64_t at) {
    const std::int64_t channels = from.extent().channels;
    float sum = 0;
    for (std::int64_t c = 0; c < channels; ++c) sum += (from.row(0, 0) + at * channels)[c];
    return sum / float(channels);
  };
  const Canvas to = Canvas::image(ctx, e);
  for (std::int64_t at = 0; at < e.count * e.height * e.width; ++at) {
    const float light = mean(y, at), blue = mean(u, at) - 0.5f, red = mean(v, at) - 0.5f;
    // The inverse of the weights in ImageRGBToYUV.
    const float rgb[] = {light + red / 0.713f,
                         light - 0.299f / 0.587f / 0.713f * red - 0.114f / 0.587f / 0.564f * blue,
                         light + blue / 0.564f};
    for (int c = 0; c < 3; ++c) to.data()[3 * at + c] = std::clamp(rgb[c], 0.0f, 1.0f);
  }
  ctx[out] = to.tensor();
}
void ImageYUVToRGB::infer(Infer& question) {
  auto e = extent_of_image(question, Y);
  if (!e) return;
  e->channels = 3;
  question.out(out, "", HEDDLE_F32, image_shape(*e));
}

}  // namespace heddle::image
