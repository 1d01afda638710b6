// plugins/encoders/language_states.h - which states of a language model come out, and how they come
// side by side. Functions of a graph that is being built; any thread.
#pragma once

#include <heddle/model.hpp>

#include <string>
#include <vector>

namespace heddle::encoders {

// The numbers of layers whose states a config's list "hidden_layers" asks for; empty: the last,
// under the final norm. Throws HEDDLE_INVALID_ARGUMENT for a layer that there is not, and for more
// than twelve.
std::vector<int> wanted_layers(const Checkpoint& file, const Value& list, int layers);

// Outputs (B, S, any) side by side, (B, S, the sum of their widths); in parts, where they are more
// than a block takes. path: of its blocks. REQUIRES: one or more.
Source join_states(Blocks& graph, const std::vector<Source>& states, const std::string& path);

}  // namespace heddle::encoders
