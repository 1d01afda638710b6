#include "engine/serve/served_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "engine/base/text.h"

namespace heddle::engine {
namespace {

namespace fs = std::filesystem;

struct Range {
  std::uint64_t first = 0, bytes = 0;
};

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size()) return {};
  return number;
}

// Of one range; several, and other units, are answered with the whole file, as is allowed.
bool is_single_range(std::string_view header) {
  return header.starts_with("bytes=") && header.find(',') == header.npos;
}

std::optional<Range> range_of(std::string_view header, std::uint64_t size) {
  header.remove_prefix(6);
  const std::size_t dash = header.find('-');
  if (dash == header.npos) return {};
  const auto first = number_in(header.substr(0, dash)), last = number_in(header.substr(dash + 1));
  if (!first) {
    if (dash != 0 || !last || *last == 0 || size == 0) return {};
    const std::uint64_t bytes = std::min(*last, size);
    return Range{size - bytes, bytes};
  }
  if (*first >= size || (last && *last < *first)) return {};
  if (!last && dash + 1 < header.size()) return {};
  return Range{*first, std::min(last.value_or(size - 1), size - 1) - *first + 1};
}

}  // namespace

TaggedName tagged_name(std::string_view name) {
  for (const std::string_view folder : {"output", "input", "temp"})
    if (const std::string tag = cat("[", folder, "]"); name.ends_with(tag)) {
      name.remove_suffix(std::min(name.size(), tag.size() + 1));
      return {std::string(name), std::string(folder)};
    }
  return {std::string(name), ""};
}

bool is_safe_name(std::string_view name) {
  if (name.empty() || name.size() > 1024 || name.starts_with('/')) return false;
  const bool is_plain = std::ranges::none_of(
      name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\'; });
  if (!is_plain || find_invalid_utf8(name)) return false;
  return std::ranges::none_of(fs::path(name), [](const fs::path& part) { return part == ".."; });
}

std::optional<fs::path> inside(const fs::path& root, const fs::path& name) {
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(fs::absolute(root, error), error);
  if (error) return {};
  const fs::path path = fs::weakly_canonical(folder / name, error);
  if (error) return {};
  const auto [end, ignored] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end() ? std::optional(path) : std::nullopt;
}

std::string_view content_type(const fs::path& file) {
  static const std::map<std::string, std::string_view> types{
      {".html", "text/html"},        {".js", "text/javascript"},
      {".mjs", "text/javascript"},   {".css", "text/css"},
      {".json", "application/json"}, {".map", "application/json"},
      {".svg", "image/svg+xml"},     {".png", "image/png"},
      {".jpg", "image/jpeg"},        {".jpeg", "image/jpeg"},
      {".webp", "image/webp"},       {".gif", "image/gif"},
      {".avif", "image/avif"},       {".bmp", "image/bmp"},
      {".tif", "image/tiff"},        {".tiff", "image/tiff"},
      {".ico", "image/x-icon"},      {".mp4", "video/mp4"},
      {".webm", "video/webm"},       {".mkv", "video/x-matroska"},
      {".mov", "video/quicktime"},   {".wav", "audio/x-wav"},
      {".flac", "audio/flac"},       {".mp3", "audio/mpeg"},
      {".ogg", "audio/ogg"},         {".opus", "audio/ogg"},
      {".glb", "model/gltf-binary"}, {".txt", "text/plain"},
      {".md", "text/markdown"},      {".woff", "font/woff"},
      {".woff2", "font/woff2"},      {".ttf", "font/ttf"},
      {".wasm", "application/wasm"}, {".xhtml", "application/xhtml+xml"}};
  std::string ending = file.extension().string();
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  const auto found = types.find(ending);
  return found == types.end() ? "application/octet-stream" : found->second;
}

std::optional<HttpResponse> file_response(const HttpRequest& request, const fs::path& file) {
  // What is no file is not waited for.
  auto opened = std::make_shared<FileDescriptor>(
      ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat found {};
  if (opened->number() < 0 || ::fstat(opened->number(), &found) != 0 || !S_ISREG(found.st_mode))
    return {};
  const auto size = std::uint64_t(found.st_size);
  HttpResponse response;
  response.set("Accept-Ranges", "bytes");
  Range range{0, size};
  const std::string* header = request.header("Range");
  if (header != nullptr && is_single_range(*header)) {
    const std::optional<Range> asked = range_of(*header, size);
    if (!asked) {
      HttpResponse refused = text_response("416: Range Not Satisfiable", 416);
      return std::move(refused.set("Content-Range", cat("bytes */", size)));
    }
    range = *asked;
    response.status = 206;
    response.set("Content-Range",
                 cat("bytes ", range.first, "-", range.first + range.bytes - 1, "/", size));
  }
  response.file = FileSlice{std::move(opened), range.first, range.bytes};
  return response;
}

}  // namespace heddle::engine
