#include "plugins/image/pose_nodes.h"

#include <heddle/checked.hpp>

#include <algorithm>
#include <cmath>

#include "plugins/image/pose_draw.h"

namespace heddle::image {
namespace {

[[noreturn]] void refuse_pose(const std::string& what) {
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "keypoints: " + what + " Link a POSE_KEYPOINT, such as SDPoseKeypointExtractor's.");
}

float pose_number(const Value& value, const char* key) {
  constexpr double kMost = 1e6;
  const bool is_number =
      value.is(HEDDLE_KIND_INT) || value.is(HEDDLE_KIND_UINT) || value.is(HEDDLE_KIND_FLOAT);
  const double number = is_number ? value.as<double>() : NAN;
  if (!(std::abs(number) <= kMost))
    refuse_pose(std::string("'") + key +
                "' has a number beyond a million, or one that is not finite.");
  return float(number);
}

// The first points of a list that has to hold `count`.
template <std::size_t N>
void read_points(const Value& person, const char* key, std::size_t count,
                 std::array<PosePoint, N>& to) {
  const Value list = person.field(key);
  if (!list.is(HEDDLE_KIND_LIST) || list.count() != 3 * count)
    refuse_pose(std::string("a person has no '") + key + "' of " + std::to_string(count) +
                " points, three numbers each.");
  for (std::size_t i = 0; i < N; ++i) {
    const auto number = [&](std::size_t at) {
      return pose_number(list.item(std::uint32_t(3 * i + at)), key);
    };
    to[i] = {number(0), number(1), number(2)};
  }
}

PosePerson person_of(const Value& person) {
  constexpr std::size_t kFace = 70;
  PosePerson made;
  read_points(person, "pose_keypoints_2d", made.body.size(), made.body);
  if (person.field("foot_keypoints_2d").count() > 0)
    read_points(person, "foot_keypoints_2d", made.feet.size(), made.feet);
  read_points(person, "face_keypoints_2d", kFace, made.face);
  read_points(person, "hand_right_keypoints_2d", made.right_hand.size(), made.right_hand);
  read_points(person, "hand_left_keypoints_2d", made.left_hand.size(), made.left_hand);
  return made;
}

std::int64_t canvas_side(const Value& picture, const char* key) {
  constexpr std::int64_t kMost = 16384;
  const Value side = picture.field(key);
  const bool is_number = side.is(HEDDLE_KIND_INT) || side.is(HEDDLE_KIND_UINT);
  const std::int64_t pixels = is_number ? side.as<std::int64_t>() : 0;
  if (pixels < 1 || pixels > kMost)
    refuse_pose(std::string("its first picture has no '") + key + "' from 1 to " +
                std::to_string(kMost) + ".");
  return pixels;
}

}  // namespace

void SdPoseDrawKeypoints::execute(Context& ctx) {
  constexpr std::int64_t kNothing = 64;  // pixels of a side, where there are no pictures
  const Value pictures = ctx[keypoints];
  if (pictures && !pictures.is(HEDDLE_KIND_LIST)) refuse_pose("it is no list of pictures.");
  const auto count = std::int64_t(pictures.count());
  const PoseStyle style{ctx[draw_body],
                        ctx[draw_hands],
                        ctx[draw_face],
                        ctx[draw_feet],
                        ctx[draw_head],
                        int(ctx[stick_width]),
                        int(ctx[face_point_size]),
                        float(ctx[score_threshold])};
  const std::int64_t height = count > 0 ? canvas_side(pictures.item(0), "canvas_height") : kNothing,
                     width = count > 0 ? canvas_side(pictures.item(0), "canvas_width") : kNothing;
  const Tensor all =
      ctx.make_host({std::max<std::int64_t>(count, 1), height, width, 3}, HEDDLE_F32);
  float* to = all.data<float>();
  std::fill_n(to, std::size_t(checked_product({all.size(0), height, width, 3}, "the pictures")),
              0.0f);
  for (std::int64_t i = 0; i < count; ++i) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    PoseCanvas canvas(height, width);
    const Value people = pictures.item(std::uint32_t(i)).field("people");
    for (std::uint32_t person = 0; person < people.count(); ++person)
      draw_person(canvas, person_of(people.item(person)), style);
    to = std::ranges::transform(canvas.pixels, to, [](std::uint8_t byte) {
           return float(byte) / 255.0f;
         }).out;
  }
  ctx[out] = all;
}

void SdPoseDrawKeypoints::infer(Infer& question) {
  std::int64_t count = 0;
  while (question.part(keypoints, std::to_string(count) + ".canvas_width")) ++count;
  const Value width = question.part(keypoints, "0.canvas_width"),
              height = question.part(keypoints, "0.canvas_height");
  if (!width.is(HEDDLE_KIND_INT) || !height.is(HEDDLE_KIND_INT)) return;
  const Shape shape{count, height.as<std::int64_t>(), width.as<std::int64_t>(), 3};
  question.out(out, "", HEDDLE_F32, shape);
  const auto numbers = double(checked_product({shape[0], shape[1], shape[2], 3}, "the pictures"));
  question.cost(2 * numbers, 5 * numbers);
  question.host_scratch(std::uint64_t(numbers / double(count)));
}

}  // namespace heddle::image
