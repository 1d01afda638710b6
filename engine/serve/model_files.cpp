#include "engine/serve/model_files.h"

#include <boost/archive/iterators/binary_from_base64.hpp>
#include <boost/archive/iterators/dataflow_exception.hpp>
#include <boost/archive/iterators/transform_width.hpp>
#include <fstream>

#include "engine/base/error.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostCoverBytes = 16 << 20;  // of a header with pictures
constexpr FileKind kPreviewFile{"a preview of a model", 64 << 20};
constexpr const char* kPictureEndings[] = {".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp"};

// Nothing for what is no base64.
std::optional<std::string> base64_decoded(std::string text) {
  namespace it = boost::archive::iterators;
  using Bytes = it::transform_width<it::binary_from_base64<std::string::const_iterator>, 8, 6>;
  while (text.ends_with('=')) text.pop_back();
  if (text.size() % 4 == 1) return {};
  const std::size_t bytes = text.size() * 6 / 8;
  text.append((4 - text.size() % 4) % 4, 'A');  // a whole number of bytes, of which some are left
  try {
    std::string decoded(Bytes(text.cbegin()), Bytes(text.cend()));
    decoded.resize(bytes);
    return decoded;
  } catch (const it::dataflow_exception&) {
    return {};
  }
}

// "ssmd_cover_images": a list of them, as text or as it is.
std::optional<std::string> cover_of(const fs::path& model) {
  const std::optional<Json> metadata = model_metadata(model, kMostCoverBytes);
  const Json* covers = metadata ? metadata->find("ssmd_cover_images") : nullptr;
  if (covers == nullptr) return {};
  try {
    const Json list = covers->is_string() ? parse_json(covers->as_string(), "covers") : *covers;
    if (list.size() == 0) return {};
    return base64_decoded(list.at(std::size_t{0}).as_string());
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::optional<Json> model_metadata(const fs::path& file, std::uint64_t most_bytes) {
  std::ifstream in(file, std::ios::binary);
  unsigned char length[8] = {};
  if (!in.read(reinterpret_cast<char*>(length), sizeof length)) return {};
  std::uint64_t bytes = 0;
  for (int i = 7; i >= 0; --i) bytes = bytes << 8 | length[i];
  std::error_code error;
  if (bytes > most_bytes || bytes > fs::file_size(file, error) || error) return {};
  std::string text(bytes, ' ');
  if (!in.read(text.data(), std::streamsize(bytes))) return {};
  try {
    const Json header = parse_json(text, file.string());
    const Json* metadata = header.find("__metadata__");
    return metadata == nullptr ? std::nullopt : std::optional(*metadata);
  } catch (const Error&) {
    return {};
  }
}

std::optional<std::string> model_preview(const fs::path& model) {
  fs::path base = model;
  base.replace_extension();
  for (const char* middle : {"", ".preview"})
    for (const char* ending : kPictureEndings) {
      const fs::path file = cat(base.string(), middle, ending);
      std::error_code ignored;
      if (fs::is_regular_file(file, ignored)) return read_file(file, kPreviewFile);
    }
  if (model.extension() != ".safetensors") return {};
  return cover_of(model);
}

}  // namespace heddle::engine
