#include "plugins/image/png_files.h"

#include <heddle/host_memory.hpp>

#include "plugins/blocks/json_text.h"
#include "plugins/image/picture_batch.h"

namespace heddle::image {
std::vector<TextChunk> text_chunks(Context& ctx, const blocks::WorkflowText& workflow) {
  std::vector<TextChunk> chunks;
  for (blocks::WorkflowPart& part : blocks::workflow_parts(workflow)) {
    if (is_png_key(part.key))
      chunks.push_back({part.key, std::move(part.json)});
    else
      ctx.warn("extra_pnginfo: PNG has no place for the key " + blocks::json_string(part.key) +
               "; left out");
  }
  return chunks;
}

void save_pngs(Context& ctx, const Tensor& images, const PngFiles& plan,
               const blocks::WorkflowText& workflow) {
  check_images(images);
  blocks::SavedFiles files(ctx, plan.kind, plan.prefix, size_of(images), workflow.prompt);
  const std::vector<TextChunk> chunks = text_chunks(ctx, workflow);
  const auto cancelled = [&] { return ctx.cancelled(); };
  const std::int64_t count = images.size(0);
  HostMemory memory(ctx);
  for (std::int64_t i = 0; i < count; ++i) {
    const Bytes file = write_png(picture_of(ctx, images, i, memory), chunks, plan.level, cancelled);
    files.write({reinterpret_cast<const char*>(file.data()), file.size()}, ".png",
                static_cast<std::size_t>(i), {.list = plan.told_as});
    ctx.progress(static_cast<double>(i + 1) / static_cast<double>(count));
  }
}

}  // namespace heddle::image
