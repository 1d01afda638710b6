#include "language_states.h"

#include <algorithm>
#include <iterator>

#include "language_blocks.h"

namespace heddle::encoders {

std::vector<int> wanted_layers(const Checkpoint& file, const Value& list, int layers) {
  constexpr auto kMost = std::uint32_t(std::size(LanguageJoin::states));
  std::vector<int> wanted;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const auto number = list.item(i).as<std::int64_t>();
    if (number < 1 || number > layers || list.count() > kMost)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() + ": hidden_layers asks for " + std::to_string(list.count()) +
                      " layers, one of them " + std::to_string(number) + "; up to " +
                      std::to_string(kMost) + " can be asked for, of " + std::to_string(layers) +
                      ".");
    wanted.push_back(int(number));
  }
  return wanted;
}

Source join_states(Blocks& graph, const std::vector<Source>& states, const std::string& path) {
  using B = LanguageJoin;
  constexpr std::size_t kMost = std::size(B::states);
  if (states.size() == 1) return states.front();
  if (states.size() > kMost) {
    std::vector<Source> parts;
    for (std::size_t begin = 0; begin < states.size(); begin += kMost) {
      const auto first = states.begin() + std::ptrdiff_t(begin);
      const auto count = std::ptrdiff_t(std::min(kMost, states.size() - begin));
      parts.push_back(
          join_states(graph, {first, first + count}, path + "." + std::to_string(parts.size())));
    }
    return join_states(graph, parts, path);
  }
  Block block = graph.add<B>(path);
  for (std::size_t i = 0; i < states.size(); ++i) block.link(B::states[i], states[i]);
  return block[B::out];
}

}  // namespace heddle::encoders
