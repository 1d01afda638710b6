#include "model_files.h"

#include <algorithm>

namespace heddle::loaders {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostJson = 16 << 20;  // bytes

heddle_status* ask(Context& ctx, const char* folder, const std::string& name, heddle_value** path) {
  return service<heddle_folders_service>().find(ctx.raw(), folder, name.c_str(), path);
}

// FNV-1a, 64 bits: enough to notice a change, stable over runs.
class Fingerprint {
 public:
  void add(const std::string& text) {
    for (const char c : text) mix(static_cast<unsigned char>(c));
    mix(0);
  }
  void add(std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) mix(std::uint8_t(number >> shift));
  }
  std::uint64_t value() const { return value_; }

 private:
  void mix(std::uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3ULL; }
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

std::uint64_t identity_of(Context& ctx, const fs::path& path) {
  std::uint64_t hash = 0;
  check(service<heddle_folders_service>().identify(ctx.raw(), path.c_str(), &hash));
  return hash;
}

}  // namespace

Value places_of(Context& ctx, const char* folder) {
  heddle_value* list = nullptr;
  check(service<heddle_folders_service>().places(ctx.raw(), folder, &list));
  return Value::adopt(list);
}

fs::path find_file(Context& ctx, const char* folder, const std::string& name) {
  heddle_value* path = nullptr;
  check(ask(ctx, folder, name, &path));
  return Value::adopt(path).as<std::string>();
}

std::optional<fs::path> try_find(Context& ctx, const char* folder, const std::string& name) {
  heddle_value* path = nullptr;
  heddle_status* const status = ask(ctx, folder, name, &path);
  if (status == nullptr) return fs::path(Value::adopt(path).as<std::string>());
  const heddle_code code = services.host->status_code(status);
  if (code != HEDDLE_NOT_FOUND) throw Failed{status};
  services.host->status_free(status);
  return std::nullopt;
}

Value read_json(const fs::path& path) {
  const Value content = read_file(path.string(), kMostJson, "a model's configuration");
  const std::string_view text = content.text();
  heddle_value* out = nullptr;
  check(service<heddle_json_service>().parse(services.host, {text.data(), text.size()},
                                             path.c_str(), &out));
  return Value::adopt(out);
}

Value read_json_if_there(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) ? read_json(path) : Value();
}

std::uint64_t fingerprint_of(Context& ctx, const std::vector<fs::path>& paths) {
  Fingerprint fingerprint;
  for (const fs::path& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      fingerprint.add(path.filename().string());
      fingerprint.add(identity_of(ctx, path));
      continue;
    }
    std::vector<fs::path> files;
    for (fs::recursive_directory_iterator it(path, error), end; !error && it != end;
         it.increment(error))
      if (it->is_regular_file(error)) files.push_back(it->path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      fingerprint.add(file.lexically_relative(path).string());
      fingerprint.add(identity_of(ctx, file));
    }
  }
  return fingerprint.value();
}

std::uint64_t fingerprint_of_file(Context& ctx, const Input<std::string>& name) {
  if (!ctx.has(name)) return 0;
  return fingerprint_of(ctx, {find_file(ctx, name.widget.source, ctx[name])});
}

}  // namespace heddle::loaders
