#include "plugins/video/save_nodes.h"

#include "plugins/blocks/saved_files.h"
#include "plugins/video/extra_inputs.h"
#include "plugins/video/write_video.h"

namespace heddle::video {
namespace {

// The codec and its quality, as they stand below an input's name.
void take_codec(Context& ctx, const std::string& name, const Value& codec, VideoFormat& format) {
  format.codec = codec.as<std::string>();
  const Value crf = extra_input(ctx, name + ".encoding.crf");
  const Value encoding = extra_input(ctx, name + ".encoding");
  const bool anew = encoding.is(HEDDLE_KIND_STR) && encoding.as<std::string>() == "re-encode";
  if (crf && anew) format.crf = crf.as<double>();
  if (!crf && anew) format.crf = format.codec == "av1" ? 30 : 23;
}

VideoFormat chosen_format(Context& ctx) {
  const Value given = ctx[SaveVideo::format];
  if (!given.is(HEDDLE_KIND_STR))
    throw Error(HEDDLE_INVALID_ARGUMENT, "format: give auto, mp4, mkv or webm.");
  VideoFormat format{given.as<std::string>()};
  if (const Value codec = extra_input(ctx, "format.codec"); codec.is(HEDDLE_KIND_STR))
    take_codec(ctx, "format.codec", codec, format);
  else if (ctx.has(SaveVideo::codec) && ctx[SaveVideo::codec].is(HEDDLE_KIND_STR))
    take_codec(ctx, "codec", ctx[SaveVideo::codec], format);
  if (format.container == "auto") format.container = format.codec == "av1" ? "webm" : "mp4";
  check_format(format);
  return format;
}

}  // namespace

Tags workflow_tags(const blocks::WorkflowText& workflow) {
  Tags tags;
  for (blocks::WorkflowPart& part : blocks::workflow_parts(workflow))
    tags.emplace_back(std::move(part.key), std::move(part.json));
  return tags;
}

void SaveVideo::execute(Context& ctx) {
  const Value whole = ctx[video];
  const VideoFormat chosen = chosen_format(ctx);
  const auto workflow = blocks::workflow_text<SaveVideo>(ctx);
  const auto [width, height] = dimensions(whole);
  blocks::SavedFiles files(ctx, "output", ctx[filename_prefix], {width, height}, workflow.prompt);
  files.write(write_video(ctx, whole, chosen, workflow_tags(workflow)),
              ("." + chosen.container).c_str(), 0, {.animated = "true"});
  ctx[out] = whole;
}

void SaveWEBM::execute(Context& ctx) {
  const Tensor all = ctx[images];
  if (all.rank() != 4 || all.size(0) < 1 || all.size(1) < 1 || all.size(2) < 1 || all.size(3) < 3 ||
      all.size(3) > 4 || all.dtype() != HEDDLE_F32)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "images: WebM has pictures (batch, height, width, 3 or 4 channels) of f32. Link an "
                "IMAGE of such.");
  const auto workflow = blocks::workflow_text<SaveWEBM>(ctx);
  blocks::SavedFiles files(ctx, "output", ctx[filename_prefix], {all.size(2), all.size(1)},
                           workflow.prompt);
  files.write(
      write_webm(ctx, all, exact_rate(ctx[fps]), ctx[codec], ctx[crf], workflow_tags(workflow)),
      ".webm", 0, {.animated = "true"});
  ctx[out] = all;
}

void SaveWEBM::infer(Infer& question) {
  const auto shape = question.shape(images);
  if (!shape) return;
  question.out(out, "", HEDDLE_F32, *shape);
  question.shares(out);
}

}  // namespace heddle::video
