#include "plugins/video/edit_nodes.h"

#include <algorithm>
#include <cmath>
#include <heddle/host_memory.hpp>

#include "plugins/video/components.h"
#include "plugins/video/numpy_random.h"
#include "plugins/video/preview.h"
#include "plugins/video/read_video.h"
#include "plugins/video/video_edit.h"

namespace heddle::video {
namespace {

// How many pictures a video has, and how many in a second.
struct FrameFacts {
  std::int64_t count = 0;
  double rate = 1;
};
FrameFacts frame_facts(Context& ctx, const Value& value) {
  const Video video = video_of(value, "video");
  FrameFacts facts;
  if (const auto* const file = std::get_if<FileVideo>(&video)) {
    const auto opened = open_video(*file);
    facts = {count_pictures(*opened, window_of(*file, *opened)),
             facts_of(*opened, std::nullopt).rate.value()};
  } else {
    const Pictures pictures = components(ctx, value, "video");
    facts = {pictures.images.size(0), pictures.rate.value()};
  }
  if (facts.count < 1 || facts.count > 1 << 30)
    throw Error(HEDDLE_INVALID_ARGUMENT, "video: it has " + std::to_string(facts.count) +
                                             " pictures. Give one that has some.");
  return facts;
}

Value run_of_frames(Context& ctx, const Value& video, const FrameFacts& facts, std::int64_t first,
                    std::int64_t count) {
  return trimmed(ctx, video, static_cast<double>(first) / facts.rate,
                 static_cast<double>(count) / facts.rate, false);
}

std::vector<std::int64_t> evenly(std::int64_t total, std::int64_t count) {
  if (count == 1) return {total / 2};
  std::vector<std::int64_t> frames;
  for (std::int64_t i = 0; i < count; ++i)
    frames.push_back(static_cast<std::int64_t>(
        std::nearbyint(static_cast<double>(i * (total - 1)) / static_cast<double>(count - 1))));
  return frames;
}

std::vector<std::int64_t> any_frames(std::int64_t total, std::int64_t count, std::uint64_t seed) {
  const auto order = NumpyRandom(seed).permutation(static_cast<std::uint32_t>(total));
  std::vector<std::int64_t> frames(order.begin(), order.begin() + count);
  std::ranges::sort(frames);
  return frames;
}

// These pictures alone, without sound.
Value picked(Context& ctx, const Value& video, const std::vector<std::int64_t>& frames) {
  Pictures all = components(ctx, video, "video");
  const HostFloats from(ctx, all.images);
  Shape shape = all.images.shape();
  const std::int64_t size = shape[1] * shape[2] * shape[3], last = shape[0] - 1;
  shape[0] = static_cast<std::int64_t>(frames.size());
  const Tensor some = ctx.make_host(shape, HEDDLE_F32);
  float* to = some.data<float>();
  for (const std::int64_t frame : frames)
    to = std::copy_n(from.data() + std::min(frame, last) * size, size, to);
  all.images = some;
  all.sound.reset();
  return to_value(all);
}

}  // namespace

void VideoTrim::execute(Context& ctx) {
  const Value part =
      edited_in_time(ctx, ctx[video], Value(ctx[trim]).field("trim"), ctx[strict_duration]);
  show_preview(ctx, part);
  ctx[out] = part;
}

void VideoCrop::execute(Context& ctx) {
  const Value part = edited_in_space(ctx, ctx[video], Value(ctx[crop]).field("crop"));
  show_preview(ctx, part);
  ctx[out] = part;
}

void VideoTemporalCrop::execute(Context& ctx) {
  const FrameFacts facts = frame_facts(ctx, ctx[video]);
  const std::int64_t first = std::min(ctx[start_frame], facts.count - 1);
  ctx[out] =
      run_of_frames(ctx, ctx[video], facts, first, std::min(ctx[length], facts.count - first));
}

void VideoRandomTemporalCrop::execute(Context& ctx) {
  const FrameFacts facts = frame_facts(ctx, ctx[video]);
  const std::int64_t count = std::min(ctx[length], facts.count);
  const auto first = NumpyRandom(ctx[seed]).up_to(static_cast<std::uint32_t>(facts.count - count));
  ctx[out] = run_of_frames(ctx, ctx[video], facts, first, count);
}

void VideoFrameSample::execute(Context& ctx) {
  const FrameFacts facts = frame_facts(ctx, ctx[video]);
  const std::int64_t count = std::min(ctx[num_frames], facts.count);
  const std::string way = ctx[strategy];
  if (way == "head")
    ctx[out] = run_of_frames(ctx, ctx[video], facts, 0, count);
  else if (way == "tail")
    ctx[out] = run_of_frames(ctx, ctx[video], facts, facts.count - count, count);
  else
    ctx[out] = picked(
        ctx, ctx[video],
        way == "uniform" ? evenly(facts.count, count) : any_frames(facts.count, count, ctx[seed]));
}

}  // namespace heddle::video
