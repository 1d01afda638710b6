// plugins/denoisers/unet_filler.h - fills the slots of a UNet's block. Used while a graph is built.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "plugins/blocks/slots.h"
#include "unet_names.h"

namespace heddle::denoisers {

// Modules of a part, or, without one, of those outside the stages.
struct UnetFiller {
  const UnetNames& names;
  const UnetPart* part;
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
