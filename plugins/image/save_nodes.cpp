#include "plugins/image/save_nodes.h"

#include <cmath>
#include <heddle/host_memory.hpp>
#include <random>

#include "plugins/blocks/json_text.h"
#include "plugins/blocks/saved_files.h"
#include "plugins/image/apng.h"
#include "plugins/image/picture_batch.h"
#include "plugins/image/png.h"
#ifdef HEDDLE_WITH_WEBP
#include "plugins/image/exif_text.h"
#include "plugins/image/webp.h"
#endif

namespace heddle::image {
namespace {

using blocks::json_string;
using blocks::SavedFiles;
using blocks::workflow_parts;
using blocks::workflow_text;
using blocks::WorkflowPart;
using blocks::WorkflowText;

constexpr int kSavedLevel = 4, kPreviewLevel = 1;  // of compression, as ComfyUI's

struct SavePlan {
  const char* kind;  // "output", "temp"
  std::string prefix;
  int level;
};

// One chunk of text for each part of the workflow that PNG has a place for.
std::vector<TextChunk> text_chunks(Context& ctx, const WorkflowText& workflow) {
  std::vector<TextChunk> chunks;
  for (WorkflowPart& part : workflow_parts(workflow)) {
    if (is_png_key(part.key))
      chunks.push_back({part.key, std::move(part.json)});
    else
      ctx.warn("extra_pnginfo: PNG has no place for the key " + json_string(part.key) +
               "; left out");
  }
  return chunks;
}

void save(Context& ctx, const Tensor& images, const SavePlan& plan, const WorkflowText& workflow) {
  check_images(images);
  SavedFiles files(ctx, plan.kind, plan.prefix, size_of(images), workflow.prompt);
  const std::vector<TextChunk> chunks = text_chunks(ctx, workflow);
  const auto cancelled = [&] { return ctx.cancelled(); };
  const std::int64_t count = images.size(0);
  HostMemory memory(ctx);
  for (std::int64_t i = 0; i < count; ++i) {
    const Bytes file = write_png(picture_of(ctx, images, i, memory), chunks, plan.level, cancelled);
    files.write({reinterpret_cast<const char*>(file.data()), file.size()}, ".png",
                static_cast<std::size_t>(i));
    ctx.progress(static_cast<double>(i + 1) / static_cast<double>(count));
  }
}

// Picture i of a batch, told as progress, for writers of animations.
std::function<Picture(std::size_t)> pictures_of(Context& ctx, const Tensor& images,
                                                std::pmr::memory_resource& memory) {
  return [&ctx, &images, &memory](std::size_t i) {
    ctx.progress(static_cast<double>(i) / static_cast<double>(images.size(0)));
    return picture_of(ctx, images, static_cast<std::int64_t>(i), memory);
  };
}

int duration_of(double fps) { return static_cast<int>(1000.0 / fps); }

const char* is_moving(const Tensor& images) { return images.size(0) == 1 ? "false" : "true"; }

// The samples of one picture; how large its file will be nobody knows.
void infer_samples(Infer& question, const std::optional<Shape>& images) {
  if (!images || images->size() != 4) return;
  question.cost(0, 0, std::uint64_t((*images)[1] * (*images)[2] * (*images)[3]));
}

// The pictures are handed on as they came.
template <class Node>
void infer_saved(Infer& question) {
  const auto shape = question.shape(Node::images);
  infer_samples(question, shape);
  if (!shape) return;
  question.out(Node::out, "", HEDDLE_F32, *shape);
  question.shares(Node::out);
}

// Five letters, so that previews of different runs do not mix.
std::string random_letters() {
  std::random_device random;
  std::uniform_int_distribution<int> letter('a', 'z');
  std::string text(5, ' ');
  for (char& c : text) c = static_cast<char>(letter(random));
  return text;
}

}  // namespace

void SaveImage::execute(Context& ctx) {
  const Tensor all = ctx[images];
  save(ctx, all, {"output", ctx[filename_prefix], kSavedLevel}, workflow_text<SaveImage>(ctx));
  ctx[out] = all;
}
void SaveImage::infer(Infer& question) { infer_saved<SaveImage>(question); }

void PreviewImage::execute(Context& ctx) {
  const Tensor all = ctx[images];
  save(ctx, all, {"temp", "ComfyUI_temp_" + random_letters(), kPreviewLevel},
       workflow_text<PreviewImage>(ctx));
  ctx[out] = all;
}
void PreviewImage::infer(Infer& question) { infer_saved<PreviewImage>(question); }

void MaskPreview::execute(Context& ctx) {
  const Tensor masks = ctx[mask];
  const Shape shape = masks.shape();
  if (shape.size() != 2 && shape.size() != 3)
    throw Error(HEDDLE_INVALID_ARGUMENT, "mask: a MASK is (batch, height, width), this has " +
                                             std::to_string(shape.size()) + " axes. Link a MASK.");
  const Tensor grey =
      masks.reshape({shape.size() == 3 ? shape[0] : 1, shape[shape.size() - 2], shape.back(), 1});
  save(ctx, grey, {"temp", "ComfyUI_temp_" + random_letters(), kSavedLevel},
       workflow_text<MaskPreview>(ctx));
  ctx[out] = masks;
}
void MaskPreview::infer(Infer& question) {
  if (const auto shape = question.shape(mask)) {
    question.out(out, "", HEDDLE_F32, *shape);
    question.shares(out);
  }
}

void SaveAnimatedPNG::execute(Context& ctx) {
  const Tensor all = ctx[images];
  check_images(all);
  const WorkflowText workflow = workflow_text<SaveAnimatedPNG>(ctx);
  SavedFiles files(ctx, "output", ctx[filename_prefix], size_of(all), workflow.prompt);
  ApngSettings settings{static_cast<int>(ctx[compress_level]), duration_of(ctx[fps]), {}};
  for (const WorkflowPart& part : workflow_parts(workflow))
    settings.notes.push_back(part.key + std::string(1, '\0') + part.json);
  HostMemory memory(ctx);
  files.write(write_apng(static_cast<std::size_t>(all.size(0)), pictures_of(ctx, all, memory),
                         settings, [&] { return ctx.cancelled(); }),
              ".png", 0, {.animated = is_moving(all)});
  ctx[out] = all;
}
void SaveAnimatedPNG::infer(Infer& question) { infer_saved<SaveAnimatedPNG>(question); }

#ifdef HEDDLE_WITH_WEBP
void SaveAnimatedWEBP::execute(Context& ctx) {
  const Tensor all = ctx[images];
  check_images(all);
  if (all.size(3) < 3)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "images: WebP has pictures of 3 or 4 channels, these have " +
                    std::to_string(all.size(3)) + ". Save them as PNG.");
  const WorkflowText workflow = workflow_text<SaveAnimatedWEBP>(ctx);
  SavedFiles files(ctx, "output", ctx[filename_prefix], size_of(all), workflow.prompt);
  const std::string speed = ctx[method];
  const WebpSettings settings{ctx[lossless], static_cast<int>(ctx[quality]),
                              speed == "fastest"   ? 0
                              : speed == "slowest" ? 6
                                                   : 4,
                              duration_of(ctx[fps]), exif_of(workflow_parts(workflow))};
  HostMemory memory(ctx);
  files.write(write_webp(static_cast<std::size_t>(all.size(0)), pictures_of(ctx, all, memory),
                         settings, [&] { return ctx.cancelled(); }),
              ".webp", 0, {.animated = is_moving(all)});
  ctx[out] = all;
}
void SaveAnimatedWEBP::infer(Infer& question) { infer_saved<SaveAnimatedWEBP>(question); }
#else
void SaveAnimatedWEBP::execute(Context&) {
  throw Error(HEDDLE_UNSUPPORTED,
              "this build of heddle writes no WebP. Install libwebp-dev and build it again.");
}
void SaveAnimatedWEBP::infer(Infer& question) { infer_saved<SaveAnimatedWEBP>(question); }
#endif

}  // namespace heddle::image
