#include "language_sizes.h"

#include <algorithm>

namespace heddle::encoders {
namespace {

[[noreturn]] void refuse_sizes(const Checkpoint& file, const std::string& what) {
  throw Error(HEDDLE_INVALID_ARGUMENT,
              file.path() + ": " + what + ". Give the config.json that belongs to this file.");
}

std::string size_text(std::int64_t value) { return std::to_string(value); }

}  // namespace

bool pairs_are_neighbours(const Checkpoint& file, const LanguageNames& names) {
  return names.is_gguf() && file.meta("general.architecture").value_or("") == "llama";
}

LanguageSizes read_language_sizes(const Checkpoint& file, const LanguageNames& names,
                                  const LanguageKind& kind, const Value& config) {
  const int layer = names.attention_layer();
  LanguageSizes s{file.size(names.tokens(), 0),
                  file.size(names.tokens(), 1),
                  kind.head,
                  0,
                  0,
                  0,
                  names.layers()};
  if (s.head == 0) s.head = file.size(names.in_layer(layer, "q_norm") + ".weight", 0);
  s.head = config.get<std::int64_t>("head_dim", s.head);
  const double share =
      config.field("rope_parameters")
          .get<double>("partial_rotary_factor",
                       config.get<double>("partial_rotary_factor", kind.turned_share));
  s.turned = std::int64_t(double(s.head) * share);
  const std::int64_t rows = file.size(names.in_layer(layer, "q") + ".weight", 0),
                     keys = file.size(names.in_layer(layer, "k") + ".weight", 0),
                     queries = kind.gates_results ? rows / 2 : rows;
  const bool divides = s.head > 0 && s.head % 2 == 0 && queries % s.head == 0 &&
                       (!kind.gates_results || rows % 2 == 0) && keys % s.head == 0 && keys > 0 &&
                       queries % keys == 0;
  if (!divides)
    refuse_sizes(file, "queries of width " + size_text(rows) +
                           (kind.gates_results ? ", with gates," : "") + " and keys of width " +
                           size_text(keys) + " do not divide into heads of " + size_text(s.head));
  if (s.turned < 2 || s.turned > s.head || s.turned % 2 != 0)
    refuse_sizes(file, size_text(s.turned) + " elements of a head of " + size_text(s.head) +
                           " turn with the position, which has to be an even number of them");
  s.heads = queries / s.head, s.kv_heads = keys / s.head;
  return s;
}

DeltaSizes read_delta_sizes(const Checkpoint& file, const LanguageNames& names, int layer,
                            const Value& config) {
  const auto size = [&](const char* module, int axis) {
    return file.size(names.in_layer(layer, module) + ".weight", axis);
  };
  const std::int64_t rows = size("delta_qkv", 0), values = size("delta_z", 0);
  DeltaSizes s{};
  s.width = size("delta_norm", 0);
  s.depth = config.get<std::int64_t>("linear_key_head_dim", s.width);
  s.taps = size("delta_conv", 2);
  const std::int64_t keys = (rows - values) / 2;
  const bool divides = s.width > 0 && s.depth > 0 && s.taps > 1 && values > 0 && keys > 0 &&
                       (rows - values) % 2 == 0 && values % s.width == 0 && keys % s.depth == 0 &&
                       (values / s.width) % (keys / s.depth) == 0;
  if (!divides)
    refuse_sizes(file, "linear attention of queries, keys and values of width " + size_text(rows) +
                           ", values being " + size_text(values) + " of it, and a convolution of " +
                           size_text(s.taps) + " tokens do not divide into heads of " +
                           size_text(s.depth) + " and " + size_text(s.width));
  s.pairs = keys / s.depth, s.heads = values / s.width;
  return s;
}

std::array<std::int64_t, 3> read_sections(const Checkpoint& file, const LanguageKind& kind,
                                          const Value& config, std::int64_t turned) {
  std::array<std::int64_t, 3> found = kind.sections;
  if (found[0] == 0) return found;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Value listed = config.field(key).field("mrope_section");
    if (listed.count() != found.size()) continue;
    for (std::uint32_t i = 0; i < found.size(); ++i) found[i] = listed.item(i).as<std::int64_t>();
  }
  bool fits = std::ranges::min(found) >= 0 && found[0] + found[1] + found[2] == turned / 2;
  // Where they take turns, the last turn of each is within the head.
  for (const int axis : {1, 2})
    if (kind.interleaved && found[std::size_t(axis)] > 0)
      fits = fits && 3 * (found[std::size_t(axis)] - 1) + axis < turned / 2;
  // A text alone needs none of this, so that a file without them can still encode it.
  if (!fits && found == kind.sections) return {};
  if (!fits)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": mrope_section lists " + std::to_string(found[0]) + ", " +
                    std::to_string(found[1]) + " and " + std::to_string(found[2]) +
                    " pairs, of a head turn " + std::to_string(turned / 2) +
                    (kind.interleaved ? ", one axis after the other" : "") +
                    ". Give the config.json that belongs to this file.");
  return found;
}

// transformers' names of three generations.
LanguageRotation read_rotation(const LanguageKind& kind, const Value& config) {
  const Value both = config.field("rope_parameters"), full = both.field("full_attention");
  LanguageRotation r{both.get<double>("rope_theta", config.get<double>("rope_theta", kind.theta)),
                     1, 0};
  if (kind.windows.near_theta == 0) return r;
  const bool is_told = config.has("rope_scaling");
  r.factor =
      config.field("rope_scaling").get<double>("factor", is_told ? 1 : kind.windows.rope_factor);
  r.near_theta = config.get<double>("rope_local_base_freq", kind.windows.near_theta);
  if (!full.is(HEDDLE_KIND_RECORD)) return r;
  return {full.get<double>("rope_theta", r.theta), full.get<double>("factor", 1),
          both.field("sliding_attention").get<double>("rope_theta", r.near_theta)};
}

}  // namespace heddle::encoders
