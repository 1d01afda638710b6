// The vocabularies of plugins/encoders/vocabularies, which are part of the plugin's own file: they
// are found wherever the plugin is. Constant data; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tokenizer/tokenizer_config.h"

namespace heddle::encoders {

struct ShippedVocabulary {
  std::string_view name;    // "clip", for errors
  std::string_view rules;   // a tokenizer.json without its vocabulary
  std::string_view packed;  // that, as tokenizer/packed_model.h reads it; empty: the rules have it
  std::span<const std::string_view> encoders;  // that were published with it: "clip_l"
  // Rows of the token tables of these; another table belongs to another vocabulary.
  std::int64_t least_rows, most_rows;
  std::string_view padding;  // a token
  std::uint32_t model_max_length;

  text::TokenizerConfig config() const;
};

std::span<const ShippedVocabulary> shipped_vocabularies();

// Of an encoder by its name and the rows of its token table; nullptr when there is none.
const ShippedVocabulary* find_shipped(std::string_view encoder, std::int64_t rows);

}  // namespace heddle::encoders
