#include "engine/cli/served_file.h"

#include <algorithm>
#include <cstdio>
#include <regex>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"

namespace heddle::cli {
namespace {

using engine::cat;
namespace fs = std::filesystem;

// A server names files; it is not to write anywhere else.
bool stays_inside(const fs::path& path) {
  return path.is_relative() &&
         std::ranges::none_of(path, [](const fs::path& part) { return part == ".."; });
}

}  // namespace

std::string numbered_name(const std::string& name, unsigned number) {
  if (number == 0) return name;
  const fs::path path(name);
  std::string stem = path.stem().string();
  unsigned first = 0;
  static const std::regex counted("(.*)_([0-9]{5})_");
  if (std::smatch parts; std::regex_match(stem, parts, counted)) {
    first = unsigned(std::stoul(parts[2]));
    stem = std::string(parts[1]);
  }
  char digits[16];
  std::snprintf(digits, sizeof digits, "_%05u_", first + number);
  return cat(stem, digits, path.extension().string());
}

fs::path download_file(const ServerClient& server, const std::string& path, const fs::path& folder,
                       const std::string& subfolder, const std::string& name) {
  if (name.empty() || name == "." || fs::path(name).has_parent_path() || !stays_inside(name) ||
      !stays_inside(subfolder))
    throw engine::Error(engine::Code::invalid_argument,
                        cat("the server names a file ", engine::quote(name), " in ",
                            engine::quote(subfolder), ", which leads out of the output folder"));
  const fs::path into = folder / subfolder;
  std::error_code failure;
  fs::create_directories(into, failure);
  if (failure) throw engine::system_error(into.string(), failure.value());
  const auto write = [&](const engine::Append& append) { server.download(path, append); };
  for (unsigned number = 0;; ++number) {
    const fs::path file = into / numbered_name(name, number);
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(file, ignored)) && engine::create_file(file, write))
      return file;
  }
}

}  // namespace heddle::cli
