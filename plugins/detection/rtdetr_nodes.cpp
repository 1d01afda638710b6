#include "rtdetr_nodes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/session.hpp>

#include "plugins/blocks/resample.h"
#include "rtdetr.h"

namespace heddle::detection {
namespace {

using blocks::GridSize;
constexpr std::int64_t kSeenSide = 640;
constexpr auto kKinds = std::int64_t(std::size(RtdetrDetect::kClasses)) - 2;

// Throws where it is none of RT-DETR 4. Returns how many boxes it makes.
std::int64_t checked_queries(const Value& model) {
  const Value settings = model.is(HEDDLE_KIND_MODEL) ? model_settings(model) : Value();
  if (settings.get<std::string>("family", "") != "rt-detr-v4")
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "model: this is no RT-DETR 4. Link UNETLoader with its file, such as "
                "rt_detr_v4-x-hgnet_fp16.safetensors.");
  if (const auto classes = settings.get<std::int64_t>("classes", 0); classes != kKinds)
    throw Error(HEDDLE_INVALID_ARGUMENT, "model: this RT-DETR 4 has " + std::to_string(classes) +
                                             " classes, class_name names " +
                                             std::to_string(kKinds) +
                                             ". Take one that was trained on COCO.");
  return settings.get<std::int64_t>("queries", 0);
}

void check_detected(const Shape& shape) {
  if (shape.size() != 4 || shape[1] < 1 || shape[2] < 1 || shape[3] < 3)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "image: RT-DETR sees pictures (batch, height, width, channels) of three channels "
                "or more");
}

// What is kept of what was found.
struct Wanted {
  float threshold;
  std::string kind;
  std::int64_t most;
};

// logits (Q, K), boxes (Q, 4): middle, width and height.
Value found_boxes(const std::vector<float>& logits, const std::vector<float>& boxes,
                  const GridSize& size, const Wanted& wanted) {
  const std::size_t queries = boxes.size() / 4;
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto middle = order.begin() + std::ptrdiff_t(queries);
  const auto rank = [&](std::size_t i) { return std::isnan(logits[i]) ? -INFINITY : logits[i]; };
  std::partial_sort(order.begin(), middle, order.end(), [&](std::size_t a, std::size_t b) {
    return rank(a) != rank(b) ? rank(a) > rank(b) : a < b;
  });
  std::vector<Value> made;
  for (auto at = order.begin(); at != middle; ++at) {
    const float score = 1 / (1 + std::exp(-logits[*at]));
    const char* kind = RtdetrDetect::kClasses[1 + *at % std::size_t(kKinds)];
    if (!(score > wanted.threshold) || (wanted.kind != "all" && wanted.kind != kind)) continue;
    const float* box = boxes.data() + *at / std::size_t(kKinds) * 4;
    float low[2], high[2];
    for (int axis = 0; axis < 2; ++axis) {
      const auto side = float(axis == 0 ? size.width : size.height);
      low[axis] = (box[axis] - 0.5f * box[axis + 2]) * side;
      high[axis] = (box[axis] + 0.5f * box[axis + 2]) * side;
    }
    made.push_back(Record()
                       .set("x", value_of(double(low[0])))
                       .set("y", value_of(double(low[1])))
                       .set("width", value_of(double(high[0] - low[0])))
                       .set("height", value_of(double(high[1] - low[1])))
                       .set("label", value_of(kind))
                       .set("score", value_of(double(score)))
                       .value());
  }
  const auto count = std::int64_t(made.size()),
             kept = wanted.most < 0
                        ? std::max(count + std::max(wanted.most, -count), std::int64_t{0})
                        : std::min(wanted.most, count);
  made.resize(std::size_t(kept));
  return list_of(made);
}

std::vector<Infer::Named> rtdetr_shapes() {
  const auto cells = std::int64_t(rtdetr_anchors(kSeenSide, kSeenSide).valid.size());
  return {{"picture", HEDDLE_F32, {1, kSeenSide, kSeenSide, 3}},
          {"anchors", HEDDLE_F32, {1, cells, 4}},
          {"valid", HEDDLE_F32, {1, cells, 1}}};
}

}  // namespace

void RtdetrDetect::execute(Context& ctx) {
  const Value detector = ctx[model];
  checked_queries(detector);
  const Tensor pictures = ctx[image];
  check_detected(pictures.shape());
  const std::int64_t count = pictures.size(0);
  const GridSize size{pictures.size(1), pictures.size(2)}, square{kSeenSide, kSeenSide};
  const Wanted wanted{float(ctx[threshold]), ctx[class_name], ctx[max_detections]};
  const auto numbers = std::size_t(checked_product({size.height, size.width, 3}, "the picture"));
  HostMemory memory(ctx);
  std::pmr::vector<float> pixels(numbers, &memory), seen(3 * kSeenSide * kSeenSide, &memory);
  const RtdetrAnchors anchors = rtdetr_anchors(kSeenSide, kSeenSide);
  const auto cells = std::int64_t(anchors.valid.size());
  const Value around = value_of(ctx.upload({1, cells, 4}, HEDDLE_F32, anchors.boxes.data())),
              valid = value_of(ctx.upload({1, cells, 1}, HEDDLE_F32, anchors.valid.data()));
  std::vector<Value> lists;
  for (std::int64_t i = 0; i < count; ++i) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    read_to<float>(ctx, pictures.slice(0, i, i + 1).slice(3, 0, 3), pixels);
    const std::pmr::vector<float>* from = &pixels;
    if (size != square) {
      blocks::resample(blocks::Source::of(pixels.data(), {1, size, 3}), square,
                       blocks::Resampling::bilinear, seen.data(), memory);
      from = &seen;
    }
    const Tensor picture = ctx.upload({1, kSeenSide, kSeenSide, 3}, HEDDLE_F32, from->data());
    const Value made = call_model(ctx, detector,
                                  Record()
                                      .set("picture", value_of(picture))
                                      .set("anchors", around)
                                      .set("valid", valid)
                                      .value());
    lists.push_back(found_boxes(ctx.read<float>(made.field("logits").as<Tensor>()),
                                ctx.read<float>(made.field("boxes").as<Tensor>()), size, wanted));
    ctx.progress(double(i + 1) / double(count), "pictures");
  }
  ctx[boxes] = list_of(lists);
}

void RtdetrDetect::infer(Infer& question) {
  const auto shape = question.shape(image);
  const auto given = question[model];
  if (!shape || !given) return;
  checked_queries(*given);  // before anything runs
  check_detected(*shape);
  for (std::int64_t i = 0; i < (*shape)[0]; ++i) question.call(*given, {{rtdetr_shapes(), {}}});
  const auto pixels = double(checked_product({(*shape)[1], (*shape)[2]}, "the picture"));
  const double square = double(kSeenSide) * double(kSeenSide), all = double((*shape)[0]);
  question.cost(all * (16 * square + pixels), all * 12 * (square + pixels));
  question.host_scratch(std::uint64_t(sizeof(float) * 3 * (2 * square + pixels)));
}

}  // namespace heddle::detection
