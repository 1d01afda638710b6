// A tokenizer as an object of interface HEDDLE_TOKENIZER. What it is made of may be big, so it is
// read when the first text is encoded. Any thread.
#pragma once

#include <functional>
#include <utility>

#include <heddle/diffusion/tokenizer.h>
#include <heddle/value.hpp>

#include "tokenizer/text_error.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_config.h"

namespace heddle::encoders {

// What the tokenizer library complains about is a file or a text of the user's.
template <class F>
auto with_user_errors(F&& body) {
  try {
    return std::forward<F>(body)();
  } catch (const text::TextError& error) {
    throw Error(HEDDLE_INVALID_ARGUMENT, error.what());
  } catch (const text::Cancelled& cancelled) {
    throw Error(HEDDLE_CANCELLED, cancelled.what());
  }
}

// The object; yours. `read` is called once, by any thread, and may throw.
heddle_value* make_tokenizer(std::function<text::Tokenizer()> read, text::TokenizerConfig config);

}  // namespace heddle::encoders
