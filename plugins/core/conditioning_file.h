// A CONDITIONING of one entry as a file of safetensors, as ComfyUI's SaveConditioning writes it:
// the text's numbers as "conditioning", other tensors under their names (those of a list with a
// number behind a point), and the rest as JSON in the metadata. One call's thread.
#pragma once

#include <heddle/node.hpp>
#include <span>
#include <string>

namespace heddle::loaders {

// Throws HEDDLE_INVALID_ARGUMENT for a list of several entries, and HEDDLE_UNSUPPORTED for what
// such a file cannot hold (hooks, areas).
std::string conditioning_file(Context& ctx, const Value& conditioning);

// bytes: those of a file, hostile. name: begins every message.
Value read_conditioning_file(Context& ctx, std::span<const std::uint8_t> bytes,
                             const std::string& name);

}  // namespace heddle::loaders
