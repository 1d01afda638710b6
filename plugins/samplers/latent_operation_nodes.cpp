#include "latent_operation_nodes.h"

#include <algorithm>

#include "guide.h"
#include "host_latent.h"
#include "latent_operation.h"
#include "user_error.h"

namespace heddle::samplers {
namespace {

Value operation_record(const std::string& name, const PatchNumbers& given) {
  Record numbers;
  for (const auto& [key, value] : given.numbers) numbers.set(key, value_of(value));
  Record record;
  record.set("name", value_of(name)).set("numbers", numbers.value());
  if (given.reference) record.set("reference", value_of(given.reference));
  return record.value();
}

PatchNumbers operation_of(const Value& record) {
  PatchNumbers operation{{}, record.get<std::string>("name", "")};
  const Value numbers = record.field("numbers");
  for (std::uint32_t i = 0; i < numbers.count(); ++i)
    operation.numbers.emplace_back(numbers.key(i), numbers.item(i).as<double>());
  if (record.has("reference")) operation.reference = record.field("reference").as<Tensor>();
  return operation;
}

}  // namespace

void LatentOperationTonemapReinhard::execute(Context& ctx) {
  ctx[operation] = operation_record("tonemap_reinhard", {{{"multiplier", ctx[multiplier]}}, {}});
}

void LatentOperationSharpen::execute(Context& ctx) {
  ctx[operation] = operation_record("sharpen", {{{"sharpen_radius", double(ctx[sharpen_radius])},
                                                 {"sigma", ctx[sigma]},
                                                 {"alpha", ctx[alpha]}},
                                                {}});
}

void LatentOperationBlend::execute(Context& ctx) {
  const LatentCells cells = LatentCells::of(ctx, ctx[reference], "reference");
  const Tensor kept = ctx.make_host(cells.shape(), HEDDLE_F32);
  std::copy_n(cells.item(0), cells.count(), kept.data<float>());
  ctx[operation] = operation_record("blend", {{{"strength", ctx[strength]}}, {}, kept});
}

void LatentApplyOperation::execute(Context& ctx) {
  const Value latent = ctx[samples];
  const LatentCells cells = LatentCells::of(ctx, latent, "samples");
  const Tensor made = ctx.make_host(cells.shape(), HEDDLE_F32);
  const std::span<float> values(made.data<float>(), std::size_t(cells.count()));
  std::copy_n(cells.item(0), cells.count(), values.data());
  HostMemory memory(ctx);
  with_user_errors(
      [&] { apply_latent_operation(values, cells.shape(), operation_of(ctx[operation]), memory); });
  ctx[out] = with_new_samples(latent, made);
}

void LatentApplyOperation::infer(Infer& question) {
  if (const auto shape = question.shape(samples, "samples"))
    question.out(out, "samples", HEDDLE_F32, *shape);
}

void LatentApplyOperationCFG::execute(Context& ctx) {
  PatchNumbers numbers = operation_of(ctx[operation]);
  numbers.numbers.emplace_back("start_percent", ctx.has(start_percent) ? ctx[start_percent] : 0.0);
  numbers.numbers.emplace_back("end_percent", ctx.has(end_percent) ? ctx[end_percent] : 1.0);
  ctx[out] = with_patch(ctx[model], "latent_operation_cfg", numbers);
}

}  // namespace heddle::samplers
