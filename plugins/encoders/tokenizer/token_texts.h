// Token ids become a text again: the pieces of a tokenizer by id. Immutable, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tokenizer.h"

namespace heddle::text {

class TokenTexts {
 public:
  explicit TokenTexts(const Tokenizer& tokenizer);

  // Valid UTF-8: what is none becomes U+FFFD. Special tokens and ids that stand for nothing are
  // left out.
  std::string text(std::span<const std::int32_t> ids) const;

 private:
  std::vector<std::string> bytes_;  // by id
};

}  // namespace heddle::text
