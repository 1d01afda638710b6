// The tensors of a small SDPose of plugins/goldens/sdpose.
#pragma once

#include "tests/support/unet_models.h"

namespace heddle::test {

// Of its UNet by the original names, or by diffusers', and of its head.
inline std::vector<FileTensor> sdpose_tensors(bool original = true) {
  std::vector<FileTensor> tensors = seeded_model("unet", false, "sdpose");
  if (original) name_unet_as_original(tensors, 1);
  for (const FileTensor& tensor : seeded_model("head", false, "sdpose")) tensors.push_back(tensor);
  return tensors;
}

}  // namespace heddle::test
