#include "plugins/blocks/input_file.h"

#include <string_view>
#include <utility>

namespace heddle::blocks {

FileName annotated(std::string name) {
  for (const std::string_view folder : {"output", "input", "temp"}) {
    const std::string tag = "[" + std::string(folder) + "]";
    if (!name.ends_with(tag)) continue;
    const std::size_t cut = std::min(name.size(), tag.size() + 1);
    return {std::string(folder), name.substr(0, name.size() - cut)};
  }
  return {"input", std::move(name)};
}

std::string find_input(Context& ctx, const std::string& name) {
  const FileName file = annotated(name);
  heddle_value* path = nullptr;
  check(service<heddle_folders_service>().find(ctx.raw(), file.folder.c_str(), file.name.c_str(),
                                               &path));
  return Value::adopt(path).as<std::string>();
}

std::span<const std::uint8_t> bytes_of(const Value& file) {
  const std::string_view content = file.text();
  return {reinterpret_cast<const std::uint8_t*>(content.data()), content.size()};
}

std::uint64_t content_hash(std::span<const std::uint8_t> content) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint8_t byte : content) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

}  // namespace heddle::blocks
