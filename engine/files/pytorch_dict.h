// Which dict of a pickle of torch.save is the model's, and what it says beside its tensors. Pure
// functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/files/pickle.h"
#include "engine/files/tensor_file.h"

namespace heddle::engine {

// An integer whose value is known: of larger ones the number is 0.
inline bool is_whole(const PickleValue& value) {
  return value.kind == PickleKind::integer && value.text.empty();
}

// The model's dict, an index into the pickle's values: under a well-known name of the file's dict,
// or the one dict that it holds, or itself. Throws Error(unsupported) where the file holds no dict.
std::uint32_t pytorch_model_dict(const Pickle& pickle, std::string_view file_name);

// Texts and booleans ("true", "false") of a dict under texts, such as a hypernetwork's function; of
// equal keys the last. Long ones are left out, and what is beyond the first 64.
Metadata pytorch_facts(const Pickle& pickle, std::uint32_t dict);

}  // namespace heddle::engine
