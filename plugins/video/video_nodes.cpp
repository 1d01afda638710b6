#include "plugins/video/video_nodes.h"

#include "plugins/blocks/input_file.h"
#include "plugins/video/components.h"
#include "plugins/video/preview.h"
#include "plugins/video/video_edit.h"
#include "plugins/video/write_video.h"

namespace heddle::video {
namespace {

std::int64_t depth_of(Context& ctx, bool is_hdr) {
  if (!ctx.has(CreateVideo::bit_depth)) return is_hdr ? 10 : 8;
  const Value given = ctx[CreateVideo::bit_depth];
  const std::string text = given.is(HEDDLE_KIND_STR)   ? given.as<std::string>()
                           : given.is(HEDDLE_KIND_INT) ? std::to_string(given.as<std::int64_t>())
                                                       : "?";
  if (text == "auto") return is_hdr ? 10 : 8;
  if (text != "8" && text != "10")
    throw Error(HEDDLE_INVALID_ARGUMENT, "bit_depth: give auto, 8 or 10.");
  return text == "8" ? 8 : 10;
}

void check_frames(const Tensor& images) {
  const Shape shape = images.shape();
  const bool fits = shape.size() == 4 && shape[1] > 0 && shape[2] > 0 && shape[3] >= 3 &&
                    shape[3] <= 4 && images.dtype() == HEDDLE_F32;
  if (!fits)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "images: a video has pictures (frames, height, width, 3 or 4 channels) of f32. "
                "Link an IMAGE.");
}

}  // namespace

Refusal LoadVideo::validate(Validation& question) {
  if (!question[file] || question.has_file(file, "input")) return {};
  return "Invalid video file: " + *question[file];
}

void LoadVideo::execute(Context& ctx) {
  const std::string name = ctx[file];
  const Value whole = to_value(FileVideo{blocks::find_input(ctx, name), {}, 0, 0, {}});
  const Value part = ctx.has(edit) ? edited(ctx, whole, ctx[edit]) : whole;
  if (part.raw() == whole.raw())
    show_input(ctx, name);
  else
    show_preview(ctx, part);
  ctx[video] = part;
}

std::uint64_t LoadVideo::fingerprint(Context& ctx) {
  std::uint64_t hash = 0;
  check(service<heddle_folders_service>().identify(
      ctx.raw(), blocks::find_input(ctx, ctx[file]).c_str(), &hash));
  return hash;
}

void CreateVideo::execute(Context& ctx) {
  const Tensor frames = ctx[images];
  check_frames(frames);
  const std::string space = ctx.has(color_space) ? ctx[color_space] : Choice("sRGB");
  const Pictures pictures{frames,
                          ctx.has(audio) ? sound_or_none(ctx[audio], "audio") : std::nullopt,
                          exact_rate(ctx[fps]), depth_of(ctx, space != "sRGB"), space};
  const std::string encoding = ctx.has(codec) ? ctx[codec] : Choice("none");
  const Value whole = to_value(pictures);
  if (encoding == "none") {
    ctx[video] = whole;
    return;
  }
  const std::string bytes = write_video(ctx, whole, {"mkv", encoding}, {});
  ctx[video] = to_value(FileVideo{"", value_of(bytes), 0, 0, {}});
}

void CreateVideo::infer(Infer& question) {
  const auto coding = question[codec];
  if (coding && *coding != "none") return;
  if (const auto frames = question.shape(images)) {
    question.out(video, "images", HEDDLE_F32, *frames);
    if (const auto sound = question.shape(audio, "waveform"))
      question.out(video, "audio.waveform", HEDDLE_F32, *sound);
    question.shares(video);
  }
}

void GetVideoComponents::execute(Context& ctx) {
  const Pictures pictures = components(ctx, ctx[video], "video");
  ctx[images] = pictures.images;
  ctx[audio] = to_value(pictures.sound);
  ctx[fps] = pictures.rate.value();
  ctx[bit_depth] = value_of(pictures.bit_depth);
  ctx[color_space] = pictures.color_space;
}

void GetVideoComponents::infer(Infer& question) {
  if (const auto frames = question.shape(video, "images"))
    question.out(images, "", HEDDLE_F32, *frames);
  if (const auto sound = question.shape(video, "audio.waveform"))
    question.out(audio, "waveform", HEDDLE_F32, *sound);
}

void VideoSlice::execute(Context& ctx) {
  ctx[out] = trimmed(ctx, ctx[video], ctx[start_time], ctx[duration], ctx[strict_duration]);
}

}  // namespace heddle::video
