// Reads the vocabulary of a model out of the compact form that the shipped ones have;
// vocabularies/make_vocabularies.py writes it and says what stands where. Pure, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "byte_level_bpe.h"
#include "unigram.h"

namespace heddle::text {

// `packed` is the whole of it; `name` is how errors call it. Both throw TextError where it is
// damaged.

// Fills vocabulary and merges. REQUIRES: the suffix of words' ends is set.
void read_packed_merges(std::string_view packed, const std::string& name, BpeOptions& options);

std::vector<UnigramPiece> read_packed_pieces(std::string_view packed, const std::string& name);

}  // namespace heddle::text
