#include "conditioning_file_nodes.h"

#include "conditioning_file.h"
#include "model_files.h"
#include "plugins/blocks/input_file.h"
#include "plugins/blocks/saved_files.h"

namespace heddle::loaders {
namespace {

constexpr std::uint64_t kMostOfConditioning = 4ull << 30;  // bytes
constexpr std::int64_t kLotusTokens = 2;                   // where a text begins and ends

Value conditioning_at(Context& ctx, const std::string& path) {
  const Value file = read_file(path, kMostOfConditioning, "a conditioning");
  return read_conditioning_file(ctx, blocks::bytes_of(file), path);
}

}  // namespace

void SaveConditioning::execute(Context& ctx) {
  const std::string file = conditioning_file(ctx, ctx[conditioning]);
  blocks::SavedFiles(ctx, "output", ctx[filename_prefix], {}, "")
      .make([&](const std::string& path) { return create_file(path, file); }, ".safetensors");
}

void ConditioningLoader::execute(Context& ctx) {
  const std::string name = ctx[conditioning_name];
  ctx[out] = conditioning_at(ctx, find_file(ctx, "embeddings", name).string());
}
std::uint64_t ConditioningLoader::fingerprint(Context& ctx) {
  return fingerprint_of_file(ctx, conditioning_name);
}

Tensor lotus_text(Context& ctx) {
  constexpr const char* kFile = LotusConditioning::kFile;
  const auto path = try_find(ctx, "embeddings", kFile);
  if (!path)
    throw Error(HEDDLE_NOT_FOUND,
                std::string("Lotus reads an empty text, and there is no file of it in "
                            "models/embeddings. Encode an empty text with the encoder of Stable "
                            "Diffusion 2.1 (CLIPTextEncode), keep it (SaveConditioning), and move "
                            "the file to models/embeddings/") +
                    kFile + ".");
  const Value entry = conditioning_at(ctx, path->string()).item(0);
  const Tensor text = entry.field("cross_attn").as<Tensor>();
  if (text.rank() != 3 || text.size(0) != 1 || text.size(1) < kLotusTokens)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                path->string() +
                    ": this is not one text of two or more tokens. Write it by "
                    "SaveConditioning, of an empty CLIPTextEncode.");
  return text.slice(1, 0, kLotusTokens);
}
std::uint64_t fingerprint_of_lotus_text(Context& ctx) {
  const auto path = try_find(ctx, "embeddings", LotusConditioning::kFile);
  return path ? fingerprint_of(ctx, {*path}) : 0;
}

void LotusConditioning::execute(Context& ctx) {
  ctx[out] = list_of({Record().set("cross_attn", value_of(lotus_text(ctx))).value()});
}
std::uint64_t LotusConditioning::fingerprint(Context& ctx) {
  return fingerprint_of_lotus_text(ctx);
}

}  // namespace heddle::loaders
