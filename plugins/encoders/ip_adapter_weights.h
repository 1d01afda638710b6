// How much an IP-Adapter counts in each transformer of a UNet, by the names and the table of
// ComfyUI_IPAdapter_plus. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::encoders {

inline constexpr const char* kWeightTypes[] = {"linear",
                                               "ease in",
                                               "ease out",
                                               "ease in-out",
                                               "reverse in-out",
                                               "weak input",
                                               "weak output",
                                               "weak middle",
                                               "strong middle",
                                               "style transfer",
                                               "composition",
                                               "strong style transfer",
                                               "style and composition",
                                               "style transfer precise",
                                               "composition precise",
                                               nullptr};

struct AdapterWeights {
  std::vector<double> weights;        // of each transformer; 0: the adapter is not there
  std::vector<std::int64_t> sources;  // 1: it reads the other tokens
};

// `places`: where the transformers stand, in the order of evaluation: 'i', 'm', 'o'. `composition`:
// the weight where a picture is composed, of types that tell it from style. `has_other`: there is
// another picture for that. Types besides those above: "strong style and composition". Throws at
// others.
AdapterWeights adapter_weights(const std::string& type, const std::string& places, bool is_sdxl,
                               double weight, double composition, bool has_other);

}  // namespace heddle::encoders
