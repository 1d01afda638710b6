// Prints the token ids of strings, for comparing with other programs: one line of ids for every
// string.
//
//   tokenizer_harness FOLDER json|spiece|vocab STRINGS.json
//
// STRINGS.json is a JSON array of strings.
#include <cstdio>
#include <exception>
#include <iostream>
#include <span>
#include <string>

#include "tokenizer_folder.h"

namespace {

void print_ids(const heddle::text::Tokenizer& tokenizer, const std::string& text) {
  std::string line;
  for (const std::int32_t id : tokenizer.encode(text)) {
    if (!line.empty()) line.push_back(' ');
    line += std::to_string(id);
  }
  line.push_back('\n');
  std::fwrite(line.data(), 1, line.size(), stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> args(argv, static_cast<std::size_t>(argc));
  if (args.size() != 3 && args.size() != 4) {
    std::cerr << "usage: tokenizer_harness FOLDER [json|spiece|vocab] STRINGS\n";
    return 2;
  }
  try {
    const std::string folder = args[1];
    const auto route =
        args.size() == 4 ? heddle::text::route_of(args[2]) : heddle::text::only_route(folder);
    const auto tokenizer = heddle::text::load_folder(folder, route);
    for (const std::string& text : heddle::text::read_strings(args.back()))
      print_ids(tokenizer, text);
  } catch (const std::exception& error) {
    std::cerr << "tokenizer_harness: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
