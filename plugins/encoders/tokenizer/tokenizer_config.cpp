#include "tokenizer_config.h"

#include "json_at.h"

namespace heddle::text {
namespace {

constexpr double kVeryLong = 1e9;  // files without a limit say 1e30

// "<pad>" or {"content": "<pad>", ...}
std::optional<std::string> read_token(const JsonAt& json, std::string_view key) {
  const auto found = json.find(key);
  if (!found) return std::nullopt;
  if (found->kind() == JsonKind::kObject) return std::string(found->get("content").string());
  return std::string(found->string());
}

}  // namespace

ClipTokens TokenizerConfig::clip_tokens() const {
  ClipTokens tokens;
  tokens.begin = begin.value_or(tokens.begin);
  tokens.end = end.value_or(tokens.end);
  tokens.padding = padding.value_or(tokens.padding);
  tokens.unknown = unknown.value_or(tokens.unknown);
  return tokens;
}

TokenizerConfig read_tokenizer_config(JsonView root, const std::string& name) {
  const JsonAt json(root, name);
  TokenizerConfig config{.model_max_length = std::nullopt,
                         .begin = read_token(json, "bos_token"),
                         .end = read_token(json, "eos_token"),
                         .padding = read_token(json, "pad_token"),
                         .unknown = read_token(json, "unk_token")};
  if (const auto length = json.find("model_max_length")) {
    const double value = length->number();
    if (!(value >= 1)) {
      length->fail("expects a number of tokens from 1, got " + std::to_string(value) +
                   ". Correct the field.");
    }
    if (value < kVeryLong) config.model_max_length = static_cast<std::size_t>(value);
  }
  return config;
}

}  // namespace heddle::text
