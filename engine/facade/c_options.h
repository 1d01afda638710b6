// What a program in C gives, read into what the C++ face takes: null pointers and sizes are found
// here. Behind c_api.cpp alone.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "heddle/engine.h"
#include "heddle/engine.hpp"

namespace heddle {

template <class T>
T& given(T* pointer, const char* what) {
  if (pointer == nullptr)
    throw engine::Error(engine::Code::invalid_argument, engine::cat(what, " is a null pointer"));
  return *pointer;
}

inline const char* text_or(const char* text, const char* otherwise) {
  return text == nullptr ? otherwise : text;
}

inline std::string_view view_of(const char* text, const char* what) { return &given(text, what); }

// What the caller knows of a struct; the rest is zero.
template <class T>
T known_part(const T* options, const char* what) {
  T known{};
  if (options == nullptr) return known;
  if (options->size < sizeof(std::uint32_t) || options->size > 4096)
    throw engine::Error(engine::Code::invalid_argument,
                        engine::cat(what, ".size is ", options->size, ": set it to sizeof ", what));
  std::memcpy(&known, options, std::min<std::size_t>(options->size, sizeof known));
  return known;
}

std::vector<std::string> list_of(const char* const* items, std::size_t count, const char* what);

// The inputs of a run; owns tensors until the engine does.
class InputsFromC {
 public:
  explicit InputsFromC(const heddle_start_options& options);
  ~InputsFromC();
  InputsFromC(const InputsFromC&) = delete;
  Inputs release();

 private:
  std::vector<heddle_run_input> all_;
};

// Nothing: the default. Throws engine::Error for what is none.
std::optional<Fidelity> fidelity_of(heddle_fidelity fidelity);
// Throws invalid_argument at a number that is none.
PreviewMethod preview_method_of(std::int32_t previews);

// Throws engine::Error that names the option.
EngineOptions options_of(const heddle_engine_options* from);

}  // namespace heddle
