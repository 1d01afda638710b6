#include "plugins/image/advanced_save_nodes.h"

#include <algorithm>
#include <cmath>

#include "plugins/blocks/dynamic_inputs.h"
#include "plugins/image/host_pixels.h"
#include "plugins/image/picture_batch.h"
#include "plugins/image/png.h"
#include "plugins/image/png_files.h"
#ifdef HEDDLE_WITH_AVIF
#include "plugins/image/avif.h"
#include "plugins/image/exif_text.h"
#endif
#ifdef HEDDLE_WITH_EXR
#include "plugins/image/exr.h"
#endif

namespace heddle::image {
namespace {

using blocks::ChosenVariant;
using blocks::SavedFiles;
using blocks::workflow_parts;
using blocks::WorkflowPart;
using blocks::WorkflowText;

std::uint16_t sample_of_16_bits(float value) {
  const float scaled = value * 65535.0f;
  return scaled > 0 ? std::uint16_t(std::min(scaled, 65535.0f)) : std::uint16_t{0};
}

// What is being saved.
struct Saving {
  Context& ctx;
  const Tensor& images;
  const ChosenVariant& format;
  const WorkflowText& workflow;
  SavedFiles& files;

  Extent extent() const { return image_extent(images.shape(), "images"); }
  Pixels pixels(std::int64_t i) const {
    return Pixels::image(ctx, images.slice(0, i, i + 1), "images");
  }
  [[maybe_unused]] std::function<bool()> cancelled() const {
    return [&call = ctx] { return call.cancelled(); };
  }
};

void require_saved_channels(const Saving& s, bool takes_alpha, const char* format) {
  const std::int64_t channels = s.extent().channels;
  if (channels == 1 || channels == 3 || (takes_alpha && channels == 4)) return;
  throw Error(HEDDLE_INVALID_ARGUMENT, "images: " + std::string(format) + " takes pictures of 1" +
                                           (takes_alpha ? ", 3 or 4" : " or 3") +
                                           " channels, these have " + std::to_string(channels) +
                                           ". Change them, or take another format.");
}

void save_png(const Saving& s) {
  require_saved_channels(s, true, "png");
  const bool is_wide = s.format.text("bit_depth") == "16-bit";
  const std::vector<TextChunk> chunks = text_chunks(s.ctx, s.workflow);
  HostMemory memory(s.ctx);
  for (std::int64_t i = 0; i < s.extent().count; ++i) {
    Picture picture = picture_of(s.ctx, s.images, i, memory);
    if (is_wide) {
      const Pixels pixels = s.pixels(i);
      picture.pixels.clear();
      for (std::int64_t n = 0; n < pixels.extent().picture(); ++n) {
        const std::uint16_t sample = sample_of_16_bits(pixels.row(0, 0)[n]);
        picture.pixels.push_back(std::uint8_t(sample >> 8));
        picture.pixels.push_back(std::uint8_t(sample & 0xFF));
      }
    }
    const Bytes file = write_png(picture, chunks, kSavedLevel, s.cancelled(), is_wide ? 16 : 8);
    s.files.write({reinterpret_cast<const char*>(file.data()), file.size()}, ".png",
                  std::size_t(i));
  }
}

#ifdef HEDDLE_WITH_EXR
// IEC 61966-2-1, backwards.
float light_of_srgb(float x) {
  return x <= 0.04045f ? x / 12.92f : std::pow((x + 0.055f) / 1.055f, 2.4f);
}
// The opto-electronic transfer function of BT.2100 HLG, backwards: scene light.
float light_of_hlg(float x) {
  constexpr float kA = 0.17883277f, kB = 0.28466892f, kC = 0.55991072928f;
  return x <= 0.5f ? x * x / 3.0f : (std::exp((x - kC) / kA) + kB) / 12.0f;
}

void save_exr(const Saving& s) {
  require_saved_channels(s, true, "exr");
  const std::string space = s.format.text("input_color_space");
  ExrSettings settings{space == "HDR", {}};
  for (const WorkflowPart& part : workflow_parts(s.workflow))
    settings.notes.emplace_back(part.key, part.json);
  const auto light = space == "sRGB"  ? light_of_srgb
                     : space == "HDR" ? light_of_hlg
                                      : +[](float x) { return x; };
  for (std::int64_t i = 0; i < s.extent().count; ++i) {
    check_cancelled(s.ctx);
    const Pixels pixels = s.pixels(i);
    const Extent& e = pixels.extent();
    const Canvas linear = Canvas::image(s.ctx, e);
    for (std::int64_t n = 0; n < linear.size(); ++n) {
      const float x = pixels.row(0, 0)[n];
      linear.data()[n] = n % e.channels == 3 ? x : light(x);
    }
    s.files.write(
        write_exr(std::uint32_t(e.width), std::uint32_t(e.height), std::uint32_t(e.channels),
                  {linear.data(), std::size_t(linear.size())}, settings),
        ".exr", std::size_t(i));
  }
}
#else
void save_exr(const Saving&) {
  throw Error(HEDDLE_UNSUPPORTED,
              "this build of heddle writes no EXR. Install libopenexr-dev and build it again.");
}
#endif

#ifdef HEDDLE_WITH_AVIF
WidePicture wide_picture(const Saving& s, std::int64_t i) {
  const Pixels pixels = s.pixels(i);
  const Extent& e = pixels.extent();
  WidePicture picture{std::uint32_t(e.width), std::uint32_t(e.height), {}};
  for (std::int64_t n = 0; n < e.height * e.width; ++n)
    for (std::int64_t c = 0; c < 3; ++c)
      picture.rgb.push_back(
          sample_of_16_bits(pixels.row(0, 0)[n * e.channels + (e.channels < 3 ? 0 : c)]));
  return picture;
}

void save_avif(const Saving& s) {
  require_saved_channels(s, false, "avif");
  const std::string depth = s.format.text("bit_depth"), space = s.format.text("input_color_space");
  const ChosenVariant mode = s.format.nested("save_mode");
  const bool moves = mode.key() == "animated";
  AvifSettings settings;
  settings.light = space == "sRGB"  ? AvifLight::srgb
                   : space == "HDR" ? AvifLight::hlg
                                    : AvifLight::pq;
  settings.depth = depth.starts_with("10") || (depth == "auto" && space != "sRGB") ? 10 : 8;
  settings.quality = int(s.format.whole("crf"));
  settings.exif = exif_of(workflow_parts(s.workflow));
  const std::int64_t count = s.extent().count;
  if (moves) {
    settings.rate = std::uint64_t(std::llround(mode.real("fps") * 1000));
    if (mode.whole("loop_count") != 0)
      s.ctx.warn("format.save_mode.loop_count: AVIF files are written to be shown again and again");
    s.files.write(
        write_avif(
            std::size_t(count), [&](std::size_t i) { return wide_picture(s, std::int64_t(i)); },
            settings, s.cancelled()),
        ".avif", 0, {.animated = count == 1 ? "false" : "true"});
    return;
  }
  for (std::int64_t i = 0; i < count; ++i)
    s.files.write(write_avif(
                      1, [&](std::size_t) { return wide_picture(s, i); }, settings, s.cancelled()),
                  ".avif", std::size_t(i));
}
#else
void save_avif(const Saving&) {
  throw Error(HEDDLE_UNSUPPORTED,
              "this build of heddle writes no AVIF. Install libavif-dev and build it again.");
}
#endif

}  // namespace

void SaveImageAdvanced::execute(Context& ctx) {
  const Tensor all = ctx[images];
  check_images(all);
  const ChosenVariant chosen(ctx, format);
  const WorkflowText workflow = blocks::workflow_text<SaveImageAdvanced>(ctx);
  SavedFiles files(ctx, "output", ctx[filename_prefix], size_of(all), workflow.prompt);
  files.end_with_number();
  const Saving saving{ctx, all, chosen, workflow, files};
  if (chosen.key() == "png") save_png(saving);
  if (chosen.key() == "exr") save_exr(saving);
  if (chosen.key() == "avif") save_avif(saving);
  ctx[out] = all;
}
void SaveImageAdvanced::infer(Infer& question) {
  if (const auto shape = question.shape(images)) {
    question.out(out, "", HEDDLE_F32, *shape);
    question.shares(out);
  }
}

}  // namespace heddle::image
