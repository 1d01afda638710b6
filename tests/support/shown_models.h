// Small UNets that are shown a picture (plugins/goldens/shown): Lotus and the x4 upscaler.
#pragma once

#include "tests/support/unet_models.h"

namespace heddle::test {

inline std::vector<FileTensor> shown_model(const std::string& name) {
  return seeded_model(name, false, "shown");
}

// The x4 upscaler's label is one table.
inline void name_shown_as_original(std::vector<FileTensor>& tensors,
                                   const std::string& prefix = "") {
  name_unet_as_original(tensors, 1, prefix);
  for (FileTensor& tensor : tensors)
    if (tensor.name == prefix + "class_embedding.weight") tensor.name = prefix + "label_emb.weight";
}

}  // namespace heddle::test
