#include "pose_nodes.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>

#include "conditioning_file_nodes.h"
#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/resample.h"
#include "pose_heatmaps.h"

namespace heddle::loaders {
namespace {

using blocks::GridSize;
constexpr GridSize kSeen{1024, 768}, kCells{128, 96}, kMap{256, 192};
constexpr float kHighestLevel = 999;
constexpr std::int64_t kLotusWords = 2;

// What the MODEL and the VAE are, checked before anything runs.
struct SdPose {
  SdPose(const Value& model, const Value& vae) : encoder(vae::model_of(vae, "encoder")) {
    const Value settings = model.is(HEDDLE_KIND_MODEL) ? model_settings(model) : Value();
    config = settings.field("part_configs").field("heatmaps");
    part = settings.field("parts").field("heatmaps");
    if (!config || !part.is(HEDDLE_KIND_MODEL))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "model: this is no SDPose. Link CheckpointLoaderSimple with its checkpoint, "
                  "sdpose_wholebody_fp16.safetensors.");
    if (const auto count = settings.get<std::int64_t>("keypoints", 0); count != kPosePoints)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "model: this SDPose finds " + std::to_string(count) +
                      " points of a person, expected the " + std::to_string(kPosePoints) +
                      " of the whole body. Take sdpose_wholebody_fp16.safetensors.");
    words = settings.get<std::int64_t>("context_width", 0);
    task = settings.field("task_numbers");
    const vae::Autoencoder autoencoder(vae);
    channels = settings.get<std::int64_t>("latent_channels", 0);
    if (autoencoder.channels != channels || autoencoder.downscale != kSeen.height / kCells.height)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "vae: its latents have " + std::to_string(autoencoder.channels) +
                      " channels for every " + std::to_string(autoencoder.downscale) +
                      " pixels of a side, SDPose reads " + std::to_string(channels) +
                      " for every " + std::to_string(kSeen.height / kCells.height) +
                      ". Link the VAE of SDPose's checkpoint.");
  }
  Value encoder, part, config, task;
  std::int64_t words, channels;
};

void check_seen(const Shape& shape) {
  if (shape.size() != 4 || shape[1] < 1 || shape[2] < 1 || shape[3] < 3)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "image: SDPose sees pictures (batch, height, width, channels) of three channels or "
                "more");
}

// A part of a picture, in pixels: [left, right), [top, bottom).
struct PoseCut {
  std::int64_t left, top, right, bottom;
  GridSize size() const { return {bottom - top, right - left}; }
};

std::int64_t box_number(const Value& box, const char* key, double more = 0) {
  constexpr double kFar = 1e9;
  const Value value = box.field(key);
  const bool is_number =
      value.is(HEDDLE_KIND_INT) || value.is(HEDDLE_KIND_UINT) || value.is(HEDDLE_KIND_FLOAT);
  const double number = is_number ? value.as<double>() : NAN;
  if (std::isfinite(number)) return std::int64_t(std::clamp(number + more, -kFar, kFar));
  throw Error(HEDDLE_INVALID_ARGUMENT, std::string("bboxes: a box has no finite number '") + key +
                                           "'. Link a BOUNDING_BOX, such as RTDETR_detect's.");
}

// Where a picture is looked at. boxes: of all pictures; empty: nobody gave any.
std::vector<PoseCut> cuts_of(const Value& boxes, std::int64_t picture, const GridSize& size) {
  const std::vector<PoseCut> whole{{0, 0, size.width, size.height}};
  if (!boxes) return whole;
  Value list = boxes.is(HEDDLE_KIND_LIST) ? boxes : list_of({boxes});
  if (list.count() == 0) return whole;
  if (list.item(0).is(HEDDLE_KIND_LIST))
    list = list.item(std::uint32_t(std::min(picture, std::int64_t(list.count()) - 1)));
  if (list.count() == 0) return whole;
  std::vector<PoseCut> cuts;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value box = list.item(i);
    const double x = box.is(HEDDLE_KIND_RECORD) ? box.get<double>("x", 0) : 0,
                 y = box.is(HEDDLE_KIND_RECORD) ? box.get<double>("y", 0) : 0;
    const PoseCut cut{std::max<std::int64_t>(0, box_number(box, "x")),
                      std::max<std::int64_t>(0, box_number(box, "y")),
                      std::min(size.width, box_number(box, "width", x)),
                      std::min(size.height, box_number(box, "height", y))};
    if (cut.right > cut.left && cut.bottom > cut.top) cuts.push_back(cut);
  }
  return cuts;
}

// Looks at parts of pictures.
class PoseLooker {
 public:
  PoseLooker(Context& ctx, const SdPose& pose, const Tensor& pictures)
      : ctx_(ctx),
        pose_(pose),
        pictures_(pictures),
        autoencoder_(ctx[SdPoseKeypointExtractor::vae]),
        size_{pictures.size(1), pictures.size(2)},
        memory_(ctx),
        pixels_(std::size_t(checked_product({size_.height, size_.width, 3}, "the picture")),
                &memory_) {
    part_ = rebuilt_model(ctx, ctx[SdPoseKeypointExtractor::model], pose.config);
    const Tensor text = lotus_text(ctx);
    if (text.size(2) != pose.words)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  std::string(LotusConditioning::kFile) + ": its text has states of width " +
                      std::to_string(text.size(2)) + ", SDPose reads " +
                      std::to_string(pose.words) +
                      ". Encode an empty text with the encoder of Stable Diffusion 2.1.");
    std::vector<float> task;
    for (std::uint32_t i = 0; i < pose.task.count(); ++i)
      task.push_back(float(pose.task.item(i).as<double>()));
    constants_ =
        Record()
            .set("context", value_of(text))
            .set("y", value_of(ctx.upload({1, std::int64_t(task.size())}, HEDDLE_F32, task.data())))
            .value();
  }

  // The people of one picture's parts after another, all seen at once.
  std::vector<Value> look(const std::vector<std::pair<std::int64_t, PoseCut>>& cuts) {
    const auto count = std::int64_t(cuts.size());
    const Tensor latents =
        ctx_.make({count, pose_.channels, kCells.height, kCells.width}, HEDDLE_F32);
    for (std::int64_t i = 0; i < count; ++i)
      ops::copy_into(ctx_, encoded(cuts[std::size_t(i)].first, cuts[std::size_t(i)].second),
                     latents.slice(0, i, i + 1));
    Session session(
        ctx_, part_, {constants_},
        Record().set("timestep", value_of(ctx_.upload({1}, HEDDLE_F32, &kHighestLevel))).value(),
        1);
    const Tensor maps = session.step(0, {Record().set("x", value_of(latents)).value()})
                            .front()
                            .field("heatmaps")
                            .as<Tensor>();
    std::vector<Value> people;
    for (std::int64_t i = 0; i < count; ++i)
      people.push_back(person(maps.slice(0, i, i + 1), cuts[std::size_t(i)].second));
    return people;
  }

 private:
  Tensor encoded(std::int64_t picture, const PoseCut& cut) {
    read_to<float>(ctx_, pictures_.slice(0, picture, picture + 1).slice(3, 0, 3), pixels_);
    std::pmr::vector<float> seen(std::size_t(kSeen.height * kSeen.width * 3), &memory_);
    const GridSize size = cut.size();
    const bool shrinks = kSeen.height <= size.height && kSeen.width <= size.width;
    const blocks::Source from{pixels_.data() + (cut.top * size_.width + cut.left) * 3,
                              {1, size, 3},
                              size_.width * 3,
                              size_.width * size_.height * 3};
    blocks::resample(from, kSeen, shrinks ? blocks::Resampling::area : blocks::Resampling::bilinear,
                     seen.data(), memory_, [&] {
                       if (ctx_.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
                     });
    const Tensor input = ctx_.upload({1, kSeen.height, kSeen.width, 3}, HEDDLE_F32, seen.data());
    return vae::latent_of(ctx_, vae::mean_of(ctx_, pose_.encoder, input), autoencoder_)
        .value()
        .field("samples")
        .as<Tensor>();
  }

  // maps: (1, H, W, K).
  Value person(const Tensor& maps, const PoseCut& cut) {
    const std::int64_t cells = kMap.height * kMap.width;
    if (maps.shape() != Shape{1, kMap.height, kMap.width, kPosePoints})
      throw Error(HEDDLE_INTERNAL, "SDPose made heatmaps of another size than it should");
    std::pmr::vector<float> all(std::size_t(cells * kPosePoints), &memory_),
        one(std::size_t(cells), &memory_);
    read_to<float>(ctx_, maps, all);
    const auto step = [](std::int64_t pixels, std::int64_t across) {
      return float(double(pixels - 1) / double(across - 1));
    };
    const float right = step(kSeen.width, kMap.width), down = step(kSeen.height, kMap.height),
                across = float(double(kSeen.width) / double(cut.size().width)),
                along = float(double(kSeen.height) / double(cut.size().height));
    std::vector<PoseKeypoint> points;
    for (std::int64_t k = 0; k < kPosePoints; ++k) {
      if (ctx_.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
      for (std::int64_t i = 0; i < cells; ++i)
        one[std::size_t(i)] = all[std::size_t(i * kPosePoints + k)];
      PoseKeypoint point = peak_of(one, kMap.height, kMap.width);
      if (point.x < 0)  // nowhere, or beyond the edge
        point.x = point.y = -1;
      else
        point = {point.x * right / across + float(cut.left),
                 point.y * down / along + float(cut.top), point.score};
      // Maps that are not finite, or flat at their largest number, have no place that can be drawn.
      constexpr float kFar = 1e6f;
      if (!(std::abs(point.x) <= kFar && std::abs(point.y) <= kFar && std::isfinite(point.score)))
        point = {-1, -1, 0};
      points.push_back(point);
    }
    return person_of_points(points);
  }

  Context& ctx_;
  const SdPose& pose_;
  const Tensor pictures_;
  const vae::Autoencoder autoencoder_;
  const GridSize size_;
  HostMemory memory_;
  std::pmr::vector<float> pixels_;
  Value part_, constants_;
};

}  // namespace

void SdPoseKeypointExtractor::execute(Context& ctx) {
  const SdPose pose(ctx[model], ctx[vae]);
  const Tensor pictures = ctx[image];
  check_seen(pictures.shape());
  const std::int64_t count = pictures.size(0);
  const GridSize size{pictures.size(1), pictures.size(2)};
  const Value boxes = ctx.has(bboxes) ? ctx[bboxes] : Value();
  const std::int64_t at_once = ctx[batch_size];
  PoseLooker looker(ctx, pose, pictures);
  std::vector<std::vector<Value>> people{std::size_t(count)};
  std::vector<std::pair<std::int64_t, PoseCut>> waiting;
  const auto look = [&] {
    const std::vector<Value> seen = looker.look(waiting);
    for (std::size_t i = 0; i < seen.size(); ++i)
      people[std::size_t(waiting[i].first)].push_back(seen[i]);
    waiting.clear();
  };
  for (std::int64_t i = 0; i < count; ++i) {
    for (const PoseCut& cut : cuts_of(boxes, i, size)) {
      waiting.emplace_back(i, cut);
      // Boxes are looked at one by one, as a plan tells.
      if (boxes || std::int64_t(waiting.size()) == at_once) look();
    }
    ctx.progress(double(i + 1) / double(count), "pictures");
  }
  if (!waiting.empty()) look();
  std::vector<Value> lists;
  for (const std::vector<Value>& of_picture : people)
    lists.push_back(Record()
                        .set("canvas_width", value_of(size.width))
                        .set("canvas_height", value_of(size.height))
                        .set("people", list_of(of_picture))
                        .value());
  ctx[keypoints] = list_of(lists);
}

void SdPoseKeypointExtractor::infer(Infer& question) {
  const auto shape = question.shape(image);
  const auto given = question[model], autoencoder = question[vae];
  if (!shape || !given || !autoencoder) return;
  const SdPose pose(*given, *autoencoder);  // before anything runs
  check_seen(*shape);
  // Of each picture one box, where there are some.
  const std::int64_t count = (*shape)[0], batch = question[batch_size].value_or(1);
  if (batch < 1) return;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string at = std::to_string(i) + ".canvas_";
    question.known(keypoints, at + "width", value_of((*shape)[2]));
    question.known(keypoints, at + "height", value_of((*shape)[1]));
  }
  const Infer::Named timestep{"timestep", HEDDLE_F32, {1}};
  for (std::int64_t i = 0; i < count; i += batch) {
    const std::int64_t items = std::min(batch, count - i);
    for (std::int64_t item = 0; item < items; ++item)
      question.call(pose.encoder,
                    {{{{"image", HEDDLE_F32, {1, kSeen.height, kSeen.width, 3}}}, {}}});
    const Infer::Named x{"x", HEDDLE_F32, {items, pose.channels, kCells.height, kCells.width}};
    question.call(pose.part,
                  {{{{"context", HEDDLE_F32, {1, kLotusWords, pose.words}},
                     {"y", HEDDLE_F32, {1, std::int64_t(pose.task.count())}}},
                    {x}}},
                  {timestep}, 1);
  }
  const double seen = 3.0 * double(kSeen.height) * double(kSeen.width),
               maps = double(kMap.height) * double(kMap.width) * double(kPosePoints),
               pixels = 3 * double(checked_product({(*shape)[1], (*shape)[2]}, "the picture"));
  constexpr double kTaps = 2 * 17;  // of both passes of a Gaussian
  question.cost(double(count) * (8 * seen + 2 * kTaps * maps),
                double(count) * sizeof(float) * (seen + pixels + 4 * maps));
  question.host_scratch(std::uint64_t(sizeof(float) * (2 * seen + pixels + 2 * maps)));
}

std::uint64_t SdPoseKeypointExtractor::fingerprint(Context& ctx) {
  return fingerprint_of_lotus_text(ctx);
}

}  // namespace heddle::loaders
