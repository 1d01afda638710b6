#include "plugins/image/latent_file_nodes.h"

#include <algorithm>
#include <heddle/host_memory.hpp>

#include "plugins/blocks/input_file.h"
#include "plugins/blocks/saved_files.h"
#include "plugins/image/latent_file.h"

namespace heddle::image {
namespace {

using blocks::WorkflowPart;
using blocks::WorkflowText;

constexpr std::uint64_t kMostOfLatent = 8ull << 30;  // bytes

Value latent_bytes(Context& ctx, const std::string& name) {
  return read_file(blocks::find_input(ctx, name), kMostOfLatent, "a latent");
}

}  // namespace

void SaveLatent::execute(Context& ctx) {
  const Value latent = ctx[samples];
  const Tensor tensor = latent.field("samples").as<Tensor>();
  const HostFloats values(ctx, tensor);
  const WorkflowText workflow = blocks::workflow_text<SaveLatent>(ctx);
  std::vector<std::pair<std::string, std::string>> notes;
  for (const WorkflowPart& part : blocks::workflow_parts(workflow))
    notes.emplace_back(part.key, part.json);
  blocks::SavedFiles files(ctx, "output", ctx[filename_prefix], {}, workflow.prompt);
  files.write(latent_file(tensor.shape(), values.elements(), notes), ".latent", 0,
              {.list = "latents"});
  ctx[out] = latent;
}

Refusal LoadLatent::validate(Validation& question) {
  if (!question[latent] || question.has_file(latent, "input")) return {};
  return "Invalid latent file: " + *question[latent];
}

void LoadLatent::execute(Context& ctx) {
  const std::string name = ctx[latent];
  const Value file = latent_bytes(ctx, name);
  const LatentInFile found = read_latent_file(blocks::bytes_of(file), name);
  const Tensor tensor = ctx.make_host(found.shape, HEDDLE_F32);
  std::ranges::copy(found.values, tensor.data<float>());
  ctx[out] = Record().set("samples", value_of(tensor)).value();
}
std::uint64_t LoadLatent::fingerprint(Context& ctx) {
  return blocks::content_hash(blocks::bytes_of(latent_bytes(ctx, ctx[latent])));
}

}  // namespace heddle::image
