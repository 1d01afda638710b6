#include "sam3_nodes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <heddle/checked.hpp>

#include "sam3_calls.h"

namespace heddle::detection {
namespace {

using blocks::GridSize;

// What a node was asked.
struct DetectJob {
  std::vector<PromptText> texts;
  std::vector<std::vector<PromptBox>> boxes;  // of each picture; none: nobody gave any
  std::vector<PromptPoint> points;            // in pixels of the pictures
  float threshold = 0;
  std::int64_t iterations = 0;
};

// What was found in one picture: masks (H, W) of 0 and 1, and records of boxes.
struct DetectResult {
  std::vector<Floats> masks;
  std::vector<Value> boxes;
};

// A part of a picture, in pixels.
struct Cut {
  std::int64_t left, top, right, bottom;
  bool is_empty() const { return right <= left || bottom <= top; }
  GridSize size() const { return {bottom - top, right - left}; }
};

// Rows and columns of (height, width, inner), without gaps.
Floats cut_out(const float* from, std::int64_t width, std::int64_t inner, const Cut& cut,
               std::pmr::memory_resource& memory) {
  Floats out(&memory);
  out.reserve(std::size_t(cut.size().height * cut.size().width * inner));
  for (std::int64_t y = cut.top; y < cut.bottom; ++y) {
    const float* const row = from + (y * width + cut.left) * inner;
    out.insert(out.end(), row, row + cut.size().width * inner);
  }
  return out;
}

// Looks at one picture after another.
class Sam3Detector {
 public:
  Sam3Detector(Context& ctx, const Sam3Parts& parts, const DetectJob& job, const GridSize& size)
      : calls_(ctx, parts), ctx_(ctx), parts_(parts), job_(job), size_(size) {}

  std::pmr::memory_resource& memory() { return calls_.memory(); }

  // pixels: (H, W, 3).
  DetectResult look(const float* pixels, std::size_t number) {
    DetectResult result;
    const std::vector<PromptBox> none,
        &boxes = job_.boxes.empty() || !job_.texts.empty() ? none : job_.boxes[number];
    if (job_.points.empty() && boxes.empty() && job_.texts.empty()) return result;
    const Tensor hidden = calls_.seen(pixels, size_);
    if (!job_.points.empty()) {
      std::vector<PromptPoint> points;
      for (const PromptPoint& point : job_.points)
        points.push_back(
            {to_square(point.x, size_.width), to_square(point.y, size_.height), point.kind});
      points.push_back({0, 0, kNoPoint});
      result.masks.push_back(prompted(hidden, points, job_.points.size() == 1));
    }
    for (const PromptBox& box : boxes)
      result.masks.push_back(
          prompted(hidden,
                   {{0, 0, kNoPoint},
                    {to_square(box.x, size_.width), to_square(box.y, size_.height), 2},
                    {to_square(box.x + box.width, size_.width),
                     to_square(box.y + box.height, size_.height), 3}},
                   false));
    for (const PromptText& text : job_.texts) look_for(pixels, hidden, text, result);
    return result;
  }

 private:
  double to_square(double place, std::int64_t side) const {
    return place / double(side) * double(parts_.side);
  }

  // Of logits (height, width) those above 0 in the picture's size.
  Floats mask_of(const Floats& logits, const GridSize& from, const GridSize& to) {
    Floats mask = calls_.resized(logits.data(), from, to, 1);
    for (float& number : mask) number = number > 0 ? 1.0f : 0.0f;
    return mask;
  }

  // The mask of points, shown to itself again.
  Floats prompted(const Tensor& hidden, const std::vector<PromptPoint>& points, bool ambiguous) {
    Floats logits = calls_.segment(hidden, points, nullptr, ambiguous);
    for (std::int64_t i = 1; i < job_.iterations; ++i)
      logits = calls_.segment(hidden, {{}, {}}, logits.data(), false);
    return mask_of(logits, {parts_.side, parts_.side}, size_);
  }

  void look_for(const float* pixels, const Tensor& hidden, const PromptText& text,
                DetectResult& result) {
    const Sam3Found found = calls_.find(hidden, text);
    std::vector<float> odds;
    for (const float score : found.scores) odds.push_back(1 / (1 + std::exp(-score)));
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < odds.size(); ++i)
      if (odds[i] > job_.threshold) kept.push_back(i);
    std::ranges::stable_sort(kept, [&](std::size_t a, std::size_t b) { return odds[a] > odds[b]; });
    if (std::int64_t(kept.size()) > text.most) kept.resize(std::size_t(text.most));
    for (const std::size_t query : kept) {
      float sides[4];
      for (std::size_t i = 0; i < 4; ++i)
        sides[i] = found.boxes[4 * query + i] * float(i % 2 == 0 ? size_.width : size_.height);
      result.boxes.push_back(Record()
                                 .set("x", value_of(double(sides[0])))
                                 .set("y", value_of(double(sides[1])))
                                 .set("width", value_of(double(sides[2] - sides[0])))
                                 .set("height", value_of(double(sides[3] - sides[1])))
                                 .set("score", value_of(double(odds[query])))
                                 .value());
      const std::int64_t fine = parts_.mask_side();
      Floats logits(std::size_t(fine * fine), &memory());
      read_to<float>(ctx_, found.masks.slice(1, std::int64_t(query), std::int64_t(query) + 1),
                     logits);
      result.masks.push_back(
          refined(pixels, calls_.resized(logits.data(), {fine, fine}, size_, 1), sides));
    }
  }

  // The box and a tenth more on each side, as far as the picture goes.
  Cut around(const float (&sides)[4]) const {
    static constexpr double kMore = 0.1, kFar = 1e9;
    const double across = double(sides[2]) - double(sides[0]),
                 down = double(sides[3]) - double(sides[1]);
    const auto whole = [](double place) {
      return std::isfinite(place) ? std::int64_t(std::clamp(place, -kFar, kFar)) : 0;
    };
    return {std::max<std::int64_t>(0, whole(sides[0] - across * kMore)),
            std::max<std::int64_t>(0, whole(sides[1] - down * kMore)),
            std::min(size_.width, whole(sides[2] + across * kMore)),
            std::min(size_.height, whole(sides[3] + down * kMore))};
  }

  // coarse: logits (H, W).
  Floats refined(const float* pixels, const Floats& coarse, const float (&sides)[4]) {
    Floats mask = mask_of(coarse, size_, size_);
    const Cut cut = around(sides);
    if (job_.iterations <= 0 || cut.is_empty()) return mask;
    // ComfyUI cuts the mask by these products, which may end a pixel before the picture's part.
    const auto of_mask = [](std::int64_t place, std::int64_t side) {
      return std::int64_t(double(place) / double(side) * double(side));
    };
    const Cut inner{of_mask(cut.left, size_.width), of_mask(cut.top, size_.height),
                    of_mask(cut.right, size_.width), of_mask(cut.bottom, size_.height)};
    if (inner.is_empty()) return mask;
    const GridSize square{parts_.side, parts_.side};
    const Floats part = cut_out(pixels, size_.width, 3, cut, memory()),
                 part_of_mask = cut_out(coarse.data(), size_.width, 1, inner, memory());
    const Tensor hidden = calls_.seen(part.data(), cut.size());
    Floats logits = calls_.resized(part_of_mask.data(), inner.size(), square, 1);
    for (std::int64_t i = 0; i < job_.iterations; ++i)
      logits = calls_.segment(hidden, {{}, {}}, logits.data(), false);
    const Floats finer = mask_of(logits, square, cut.size());
    for (std::int64_t y = 0; y < cut.size().height; ++y)
      for (std::int64_t x = 0; x < cut.size().width; ++x) {
        float& to = mask[std::size_t((cut.top + y) * size_.width + cut.left + x)];
        to = std::max(to, finer[std::size_t(y * cut.size().width + x)]);
      }
    return mask;
  }

  Sam3Calls calls_;
  Context& ctx_;
  const Sam3Parts& parts_;
  const DetectJob& job_;
  const GridSize size_;
};

void check_pictures(const Shape& shape) {
  if (shape.size() != 4 || shape[1] < 1 || shape[2] < 1 || shape[3] < 3)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "image: SAM 3 sees pictures (batch, height, width, channels) of three channels or "
                "more");
}

DetectJob job_of(Context& ctx, std::int64_t pictures) {
  using N = Sam3Detect;
  DetectJob job;
  if (ctx.has(N::conditioning)) job.texts = prompt_texts(ctx[N::conditioning]);
  if (ctx.has(N::bboxes)) job.boxes = prompt_boxes(ctx[N::bboxes], pictures);
  const bool has_boxes =
      std::ranges::any_of(job.boxes, [](const auto& boxes) { return !boxes.empty(); });
  if (!job.texts.empty() && has_boxes)
    throw Error(HEDDLE_UNSUPPORTED,
                "bboxes: boxes that show beside a text what to look for are not supported. Leave "
                "out bboxes, or the conditioning.");
  const auto add = [&](const Input<std::string>& port, std::int32_t kind) {
    if (!ctx.has(port)) return;
    for (const PromptPoint& point : prompt_points(ctx[port], kind, port.port.name))
      job.points.push_back(point);
  };
  add(N::positive_coords, 1);
  add(N::negative_coords, 0);
  job.threshold = float(ctx[N::threshold]);
  job.iterations = ctx[N::refine_iterations];
  return job;
}

}  // namespace

void Sam3Detect::execute(Context& ctx) {
  const Sam3Parts parts(ctx[model], &ctx);
  const Tensor pictures = ctx[image];
  check_pictures(pictures.shape());
  const std::int64_t count = pictures.size(0);
  const GridSize size{pictures.size(1), pictures.size(2)};
  const auto numbers = std::size_t(checked_product({size.height, size.width}, "the picture"));
  const DetectJob job = job_of(ctx, count);
  Sam3Detector detector(ctx, parts, job, size);
  const bool apart = ctx[individual_masks];
  Floats pixels(3 * numbers, &detector.memory());
  std::vector<Floats> made;
  std::vector<Value> lists;
  for (std::int64_t i = 0; i < count; ++i) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    read_to<float>(ctx, pictures.slice(0, i, i + 1).slice(3, 0, 3), pixels);
    DetectResult found = detector.look(pixels.data(), std::size_t(i));
    lists.push_back(list_of(found.boxes));
    if (!apart) {
      Floats& all = made.emplace_back(numbers, 0.0f, &detector.memory());
      for (const Floats& mask : found.masks)
        std::ranges::transform(all, mask, all.begin(),
                               [](float a, float b) { return std::max(a, b); });
    } else {
      for (Floats& mask : found.masks) made.push_back(std::move(mask));
    }
    ctx.progress(double(i + 1) / double(count), "pictures");
  }
  const Tensor all =
      ctx.make_host({std::int64_t(made.size()), size.height, size.width}, HEDDLE_F32);
  float* to = all.data<float>();
  for (const Floats& mask : made) to = std::copy(mask.begin(), mask.end(), to);
  ctx[masks] = all;
  ctx[boxes] = list_of(lists);
}

void Sam3Detect::infer(Infer& question) {
  const auto shape = question.shape(image);
  const auto given = question[model];
  if (!shape || !given) return;
  const Sam3Parts parts(*given);  // before anything runs
  check_pictures(*shape);
  const std::int64_t count = (*shape)[0], height = (*shape)[1], width = (*shape)[2];
  if (question[individual_masks] == false)
    question.out(masks, "", HEDDLE_F32, {count, height, width});
  const Infer::Set trunk{{{"picture", HEDDLE_F32, {1, parts.side, parts.side, 3}}}, {}};
  const Infer::Named hidden{"hidden", HEDDLE_F32, {1, parts.grid, parts.grid, parts.width}};
  const std::int64_t iterations = question[refine_iterations].value_or(0);
  const std::vector<Shape> texts = text_shapes(question, conditioning);
  for (std::int64_t i = 0; i < count; ++i) {
    question.call(parts.trunk, {trunk});
    for (const Shape& text : texts) {
      question.call(parts.detector, {{{hidden, {"text", HEDDLE_F32, text}}, {}}});
      if (iterations == 0) continue;
      question.call(parts.trunk, {trunk});  // of a thing, where there is one
      for (std::int64_t n = 0; n < iterations; ++n)
        question.call(parts.segmenter(), {{segmenter_shapes(parts, 2, true), {}}});
    }
  }
  const auto pixels = double(checked_product({count, height, width}, "the masks"));
  const double square = double(parts.side) * double(parts.side);
  question.cost(16 * pixels, 16 * pixels);
  question.host_scratch(
      std::uint64_t(sizeof(float) * (8 * double(height) * double(width) + pixels + 8 * square)));
}

}  // namespace heddle::detection
