#include "plugins/image/loaded_picture.h"

#include "plugins/blocks/input_file.h"
#include "plugins/blocks/pixel_limit.h"
#include "plugins/image/read_picture.h"

namespace heddle::image {
namespace {

constexpr std::uint64_t kMostBytes = 2ull << 30;  // above any file of the pictures that are read

}  // namespace

std::vector<Frame> read_frames(const std::string& path, std::pmr::memory_resource& memory) {
  const Value file = read_file(path, kMostBytes, "a picture");
  return read_pictures({blocks::bytes_of(file), path, blocks::most_pixels(), &memory});
}

std::vector<Frame> load_frames(Context& ctx, const std::string& name,
                               std::pmr::memory_resource& memory) {
  return read_frames(blocks::find_input(ctx, name), memory);
}

std::uint64_t picture_hash(const std::string& path) {
  return blocks::content_hash(blocks::bytes_of(read_file(path, kMostBytes, "a picture")));
}
std::uint64_t picture_hash(Context& ctx, const std::string& name) {
  return picture_hash(blocks::find_input(ctx, name));
}

}  // namespace heddle::image
