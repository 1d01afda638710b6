// A diffusers folder of the FLUX kind saved as single files under the models' first names, and all
// four parts as one checkpoint: the inverse of what the model families read, written independently
// of them. to_single_files.py does the same with PyTorch.
#pragma once

#include <filesystem>

#include "tests/e2e/flux_files.h"

namespace heddle::test {

// The parts of the folder, renamed, fused and reordered; the bytes of every number are kept.
FluxParts original_parts(const std::filesystem::path& folder);

// The scale and shift of the folder's latents, as single files carry them.
FileMetadata latent_metadata(const std::filesystem::path& folder);

}  // namespace heddle::test
