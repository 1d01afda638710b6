#include "engine/run/keys.h"

#include <array>
#include <bit>
#include <concepts>

namespace heddle::engine {

namespace {

static_assert(std::endian::native == std::endian::little, "keys are the same on every machine");

// Collects words and hashes them in one call, as most nodes need few. When there are too many for
// its place, their hash takes it.
class KeyText {
 public:
  void clear() { count_ = 0; }
  // One after another; whether there is room for them is asked once.
  template <std::same_as<std::uint64_t>... Words>
  void add(Words... words) {
    if (count_ + sizeof...(words) > words_.size()) [[unlikely]]
      return (add_one(words), ...);
    ((words_[count_++] = words), ...);
  }
  void add(const Hash128& hash) { add(hash.lo, hash.hi); }
  Hash128 finish() const { return hash_bytes(std::as_bytes(std::span(words_.data(), count_))); }

 private:
  [[gnu::cold]] void add_one(std::uint64_t word) {
    if (count_ == words_.size()) {
      const Hash128 hash = finish();
      words_[0] = hash.lo;
      words_[1] = hash.hi;
      count_ = 2;
    }
    words_[count_++] = word;
  }
  std::array<std::uint64_t, 48> words_;
  std::size_t count_ = 0;
};

// What stands in front of each input: nothing, a link, or a literal of a kind.
enum : std::uint64_t { kAbsent = 1, kLink = 2, kLiteral = 16 };

Hash128 hash_text(std::string_view text) {
  return hash_bytes(std::as_bytes(std::span(text.data(), text.size())));
}

// False: the value cannot be told from others by its content.
bool add_other_literal(const heddle_value& value, KeyText& text) {
  const heddle_kind kind = kind_of(value);
  text.add(kLiteral + static_cast<std::uint64_t>(kind));
  switch (kind) {
    case HEDDLE_KIND_BOOL:
      text.add(std::uint64_t{std::get<bool>(value.content)});
      return true;
    case HEDDLE_KIND_FLOAT:
      text.add(std::bit_cast<std::uint64_t>(std::get<double>(value.content)));
      return true;
    case HEDDLE_KIND_STR:
      text.add(hash_text(std::get<std::string>(value.content)));
      return true;
    default: {
      Hasher hasher;
      const bool known = hash_value(value, hasher);
      text.add(hasher.finish());
      return known;
    }
  }
}

inline bool add_literal(const heddle_value& value, KeyText& text) {
  const auto* number = std::get_if<std::int64_t>(&value.content);  // what most of them are
  if (number == nullptr) return add_other_literal(value, text);
  text.add(kLiteral + std::uint64_t{HEDDLE_KIND_INT}, static_cast<std::uint64_t>(*number));
  return true;
}

// A MODEL holds the hints of its loader.
void add_hints(const Hints& hints, KeyText& text) {
  for (const std::string* hint : {&hints.device, &hints.prefer, &hints.parallel})
    text.add(hash_text(*hint));
  for (const BlockHint& block : hints.blocks) {
    text.add(hash_text(block.match));
    text.add(hash_text(block.device));
  }
}

// Ways that change how sums are rounded give other bytes, by how the ranks divide the work.
void add_rounding(const Assignment& place, KeyText& text) {
  for (const PlacedCall& call : place.calls) {
    if (!has(call.placement.parallel, kRanksExchange)) continue;
    text.add(std::uint64_t(call.placement.parallel & kRanksExchange));
    for (const double fraction : call.placement.rank_fractions)
      text.add(std::bit_cast<std::uint64_t>(fraction));
  }
}

// `key_of(node)`: of what it reads.
template <class KeyOf, class Fingerprint>
Hash128 make_key(const Node& node, const Assignment& place, const Hash128& device_class,
                 const KnownKey& known_key, KeyOf&& key_of, Fingerprint&& fingerprint,
                 KeyText& text) {
  const NodeType& type = *node.type;
  if (known_key.is_of_outputs) return known_key.key;
  if (type.has(HEDDLE_NODE_IMPURE)) return {};
  text.clear();
  text.add(type.identity());
  text.add(device_class);
  if (known_key.key != Hash128()) {
    text.add(known_key.key);
    return text.finish();
  }
  const Hints& hints = node.hints;
  if (type.has(HEDDLE_NODE_DESCRIBES))
    add_hints(hints, text);
  else if (hints.parallel.find("sequence") != std::string::npos ||
           hints.parallel.find("tensor") != std::string::npos)
    text.add(hash_text(hints.parallel));  // of calls that are placed when they are made
  if (!place.calls.empty()) add_rounding(place, text);
  const auto add = [&](const Binding& binding) {
    if (const auto* link = std::get_if<Source>(&binding)) {
      const Hash128& key = key_of(link->node);
      text.add(kLink | std::uint64_t{link->port} << 32, key.lo, key.hi);
      return key != Hash128();
    }
    if (const auto* literal = std::get_if<Value>(&binding)) return add_literal(**literal, text);
    text.add(std::uint64_t{kAbsent});
    return true;
  };
  bool known = true;
  for (std::size_t i = 0; known && i < node.inputs.size(); ++i) known = add(node.inputs[i]);
  for (std::size_t i = 0; known && i < node.extra.size(); ++i) {
    text.add(hash_text(node.extra[i].first));
    known = add(node.extra[i].second);
  }
  if (type.knows_id()) text.add(hash_text(node.id));
  if (known && type.desc().fingerprint != nullptr) {
    const std::uint64_t state = fingerprint();
    known = state != HEDDLE_FINGERPRINT_NEVER;
    text.add(state);
  }
  return known ? text.finish() : Hash128();
}

const Hash128& class_of(const Assignment& place, std::span<const Hash128> device_classes) {
  static constexpr Hash128 kHost{};
  return place.on_host ? kHost : device_classes[place.device];
}

}  // namespace

std::vector<Hash128> output_keys(const Graph& graph, std::span<const Assignment> assignments,
                                 std::span<const Hash128> device_classes,
                                 const std::function<std::uint64_t(NodeIndex)>& fingerprint,
                                 const KnownKeys& known_keys) {
  std::vector<Hash128> keys(graph.nodes.size());
  KeyText text;
  KnownKey known;  // of most runs nothing is
  for (const NodeIndex n : graph.order) {
    if (known_keys) known = known_keys(n);
    keys[n] = make_key(
        graph.nodes[n], assignments[n], class_of(assignments[n], device_classes), known,
        [&](NodeIndex m) -> const Hash128& { return keys[m]; }, [&] { return fingerprint(n); },
        text);
  }
  return keys;
}

Hash128 node_key(const Node& node, const Assignment& place, std::span<const Hash128> device_classes,
                 const std::function<Hash128(NodeIndex)>& key_of,
                 const std::function<std::uint64_t()>& fingerprint) {
  KeyText text;
  return make_key(node, place, class_of(place, device_classes), KnownKey(), key_of, fingerprint,
                  text);
}

}  // namespace heddle::engine
