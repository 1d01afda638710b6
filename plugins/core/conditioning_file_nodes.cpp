#include "conditioning_file_nodes.h"

#include "conditioning_file.h"
#include "model_files.h"
#include "plugins/blocks/input_file.h"
#include "plugins/blocks/saved_files.h"

namespace heddle::loaders {
namespace {

constexpr std::uint64_t kMostOfConditioning = 4ull << 30;  // bytes

}  // namespace

void SaveConditioning::execute(Context& ctx) {
  const std::string file = conditioning_file(ctx, ctx[conditioning]);
  blocks::SavedFiles(ctx, "output", ctx[filename_prefix], {}, "")
      .make([&](const std::string& path) { return create_file(path, file); }, ".safetensors");
}

void ConditioningLoader::execute(Context& ctx) {
  const std::string name = ctx[conditioning_name];
  const std::string path = find_file(ctx, "embeddings", name).string();
  const Value file = read_file(path, kMostOfConditioning, "a conditioning");
  ctx[out] = read_conditioning_file(ctx, blocks::bytes_of(file), path);
}
std::uint64_t ConditioningLoader::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, conditioning_name);
}

}  // namespace heddle::loaders
