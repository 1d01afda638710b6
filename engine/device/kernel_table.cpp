#include "engine/device/kernel_table.h"

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/tensor/call.h"

namespace heddle::core {

void KernelTable::add(const heddle_kernel* kernel, std::string plugin, std::shared_ptr<const void> owner) {
  if (kernel == nullptr || kernel->size < sizeof(heddle_kernel) || kernel->op == nullptr || kernel->device_kind == nullptr ||
      kernel->fits == nullptr || kernel->launch == nullptr)
    throw Error(Code::invalid_argument, cat("plugin ", quote(plugin), ": a kernel lacks its op, device kind, fits or launch"));
  const std::uint32_t id = op_id(kernel->op);
  if (by_op_.size() <= id) by_op_.resize(id + 1);
  by_op_[id].push_back(kernel);
  all_.push_back({kernel, std::move(plugin), std::move(owner)});
}

const heddle_kernel& KernelTable::choose(const Device& device, const heddle_op_call& call) const {
  const heddle_kernel* best = nullptr;
  std::int32_t best_answer = 0;
  const std::uint32_t id = op_id(call.op);
  if (id < by_op_.size())
    for (const heddle_kernel* kernel : by_op_[id]) {
      if (device.kind() != kernel->device_kind) continue;
      const std::int32_t answer = kernel->fits(device.raw(), &call);
      if (answer > best_answer) {
        best = kernel;
        best_answer = answer;
      }
    }
  if (best == nullptr)
    throw Error(Code::unsupported, cat("no kernel of ", device.name(), " fits ", describe(call),
                                       ". A plugin that provides one, or another device for this node, would help"));
  return *best;
}

std::string describe(const heddle_op_call& call) {
  const auto operands = [](std::uint32_t count, const heddle_view* const* views) {
    std::vector<std::string> texts;
    for (std::uint32_t i = 0; i < count; ++i) texts.push_back(views[i] == nullptr ? "absent" : describe(views[i]->info));
    return join(texts, ", ");
  };
  return cat(call.op, ": ", operands(call.in_count, call.in), " -> ", operands(call.out_count, call.out));
}

}  // namespace heddle::core
