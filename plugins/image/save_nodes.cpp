#include "plugins/image/save_nodes.h"

#include <cmath>
#include <heddle/host_memory.hpp>
#include <heddle/parts.hpp>

#include "plugins/blocks/saved_files.h"
#include "plugins/image/apng.h"
#include "plugins/image/picture_batch.h"
#include "plugins/image/png_files.h"
#ifdef HEDDLE_WITH_WEBP
#include "plugins/image/exif_text.h"
#include "plugins/image/webp.h"
#endif

namespace heddle::image {
namespace {

using blocks::SavedFiles;
using blocks::workflow_parts;
using blocks::workflow_text;
using blocks::WorkflowPart;
using blocks::WorkflowText;

// Picture i of a batch, as soon as it is there, told as progress, for writers of animations.
std::function<Picture(std::size_t)> pictures_of(Context& ctx, const Tensor& images,
                                                std::pmr::memory_resource& memory) {
  return [&ctx, &images, &memory](std::size_t i) {
    await_rows(ctx, images, static_cast<std::int64_t>(i) + 1);
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

}  // namespace

void SaveImage::execute(Context& ctx) {
  const Tensor all = ctx[images];
  save_pngs(ctx, all, {"output", ctx[filename_prefix]}, workflow_text<SaveImage>(ctx));
  ctx[out] = all;
}
void SaveImage::infer(Infer& question) { infer_saved<SaveImage>(question); }

void PreviewImage::execute(Context& ctx) {
  const Tensor all = ctx[images];
  save_pngs(ctx, all, {"temp", blocks::preview_prefix(), kPreviewLevel},
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
  save_pngs(ctx, grey, {"temp", blocks::preview_prefix()}, workflow_text<MaskPreview>(ctx));
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
