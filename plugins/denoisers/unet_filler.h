// Fills the slots of one block of a UNet with tensors by the original names of its modules. Used
// while a model is built; one call's thread.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include <heddle/model.hpp>

#include "plugins/blocks/slots.h"
#include "unet_names.h"

namespace heddle::denoisers {

struct UnetFiller {
  const UnetNames& names;
  const UnetPart* part;  // that the modules are in, or, without one, outside the stages
  blocks::Slots slots;

  std::string tensor(const std::string& module, const char* kind) const {
    return part == nullptr ? names.top(module, kind) : names.in_part(*part, module, kind);
  }
  void both(const Weight& weight, const Weight& bias, const std::string& module,
            const Shape& shape) {
    slots.fill(weight, tensor(module, "weight"), shape);
    slots.fill(bias, tensor(module, "bias"), {shape.front()});
  }
  void matrix(const Weight& weight, std::initializer_list<std::string> modules,
              const Shape& shape) {
    std::vector<Part> parts;
    for (const std::string& module : modules) parts.push_back({tensor(module, "weight")});
    slots.fill(weight, parts, shape);
  }
};

}  // namespace heddle::denoisers
