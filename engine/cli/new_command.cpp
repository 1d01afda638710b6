// new: the folder of a plugin that builds, tests itself and runs, from the templates in the
// program.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"
#include "engine/cli/commands.h"
#include "engine/cli/templates.h"

namespace heddle::cli {
namespace {

namespace fs = std::filesystem;

using engine::cat;
using engine::Code;
using engine::Error;

[[noreturn]] void refuse_new(const std::string& what) {
  throw Error(Code::invalid_argument, cat("heddle new: ", what));
}

std::string_view kind_of(const engine::EmbeddedFile& file) {
  return file.name.substr(0, file.name.find('/'));
}

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const engine::EmbeddedFile& file : engine::template_files())
    if (std::ranges::count(names, kind_of(file)) == 0) names.emplace_back(kind_of(file));
  return names;
}

// It becomes an identifier of C++, a target of CMake, a file, and a part of names in workflows.
void check_name(const std::string& name) {
  constexpr std::size_t kMost = 64;
  const auto is_part = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  const bool is_identifier = !name.empty() && name.size() <= kMost &&
                             std::isalpha(static_cast<unsigned char>(name.front())) != 0 &&
                             std::ranges::all_of(name, is_part);
  if (!is_identifier)
    refuse_new(cat(engine::quote(engine::printable(name)),
                   " is no name of a plugin: a letter, then "
                   "letters, digits and '_', ",
                   kMost, " at most."));
  // Targets of CMake's own, and kinds of devices that there are.
  constexpr std::array kTaken{"all",  "clean",  "help",     "install",     "package",
                              "test", "cpu",    "cuda",     "fake",        "host",
                              "auto", "heddle", "workflow", "run_workflow"};
  if (std::ranges::count(kTaken, name) != 0)
    refuse_new(cat(engine::quote(name), " has a meaning already. Take another name."));
}

// "film_grain": "FilmGrain".
std::string camel_case(const std::string& name) {
  std::string made;
  bool begins = true;
  for (const char c : name) {
    if (c != '_')
      made += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = c == '_';
  }
  return made;
}

std::string with_name(std::string_view text, const std::string& name) {
  const std::string camel = camel_case(name);
  std::string made;
  while (!text.empty()) {
    constexpr std::string_view kSmall = "my_plugin", kCamel = "MyPlugin";
    if (text.starts_with(kSmall)) {
      made += name;
      text.remove_prefix(kSmall.size());
    } else if (text.starts_with(kCamel)) {
      made += camel;
      text.remove_prefix(kCamel.size());
    } else {
      made += text.front();
      text.remove_prefix(1);
    }
  }
  return made;
}

// As one types it.
std::string shell_line(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& part : command) {
    const bool is_plain = part.find_first_of(" ;") == std::string::npos;
    line += cat(line.empty() ? "" : " ", is_plain ? part : cat("'", part, "'"));
  }
  return line;
}

}  // namespace

int make_plugin(const Request& request, Output& output) {
  const std::string all = engine::join(kinds(), ", ");
  if (request.operands.size() != 2)
    refuse_new(
        cat("it takes a kind and a name, as in `heddle new node blur`. The kinds are ", all, "."));
  const std::string &kind = request.operands[0], &name = request.operands[1];
  if (std::ranges::count(kinds(), kind) == 0)
    refuse_new(cat("there is no kind ", engine::quote(engine::printable(kind)), ".",
                   engine::did_you_mean(kind, kinds()), " The kinds are ", all, "."));
  check_name(name);
  // Whoever makes the folder first has it.
  std::error_code error;
  if (!fs::create_directory(name, error)) {
    if (error) throw engine::system_error(name, error.value());
    refuse_new(cat("there is something named ", engine::quote(name),
                   " already. Take another name, "
                   "or another folder to work in."));
  }
  for (const engine::EmbeddedFile& file : engine::template_files())
    if (kind_of(file) == kind) {
      const std::string_view below = file.name.substr(kind.size() + 1);
      engine::write_file(fs::path(name) / with_name(below, name), with_name(file.content, name),
                         engine::Lasting::yes);
    }
  output.write(cat("made ", name, "/. Now:\n  cd ", name, "\n  ",
                   shell_line(configure_command(".", "build")),
                   "\n  cmake --build build\n  ctest --test-dir build\n"
                   "or all of it, again with every change: heddle dev ",
                   name, "\n"));
  return kExitDone;
}

}  // namespace heddle::cli
