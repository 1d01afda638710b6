// Pictures saved as PNG files with the workflow in them. One call's thread.
#pragma once

#include "plugins/blocks/saved_files.h"
#include "plugins/image/png.h"

namespace heddle::image {

inline constexpr int kSavedLevel = 4, kPreviewLevel = 1;  // of compression, as ComfyUI's

struct PngFiles {
  const char* kind;  // "output", "temp"
  std::string prefix;
  int level = kSavedLevel;
  const char* told_as = "images";  // to front ends
};

// One chunk of text for each part of the workflow that PNG has a place for; warns of the others.
std::vector<TextChunk> text_chunks(Context& ctx, const blocks::WorkflowText& workflow);

// One file for each picture; told as progress.
void save_pngs(Context& ctx, const Tensor& images, const PngFiles& files,
               const blocks::WorkflowText& workflow);

}  // namespace heddle::image
