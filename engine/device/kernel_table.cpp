#include "engine/device/kernel_table.h"

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

namespace {

// Of the first revision: a smaller desc was built against nothing that was ever released.
constexpr std::size_t kFirstKernel = 56;
static_assert(sizeof(heddle_kernel) == kFirstKernel);

}  // namespace

void KernelTable::check(const heddle_kernel* kernel, std::string_view plugin) {
  const auto fail = [&](const std::string& fault) {
    throw Error(Code::invalid_argument, cat("plugin ", quote(plugin), ": ", fault,
                                            ". Build the plugin again with this engine's SDK"));
  };
  if (kernel == nullptr) fail("it lists a kernel that is NULL");
  if (kernel->size < kFirstKernel)
    fail(cat("the desc of a kernel has ", kernel->size, " bytes, the first revision has ",
             kFirstKernel));
  const auto text = [](const char* given) { return quote(given == nullptr ? "?" : given); };
  const std::string which = cat("the kernel ", text(kernel->name), " of ", text(kernel->op),
                                " for ", text(kernel->device_kind), " lacks ");
  if (kernel->op == nullptr) fail(which + "the name of its op");
  if (kernel->device_kind == nullptr) fail(which + "its device kind");
  if (kernel->name == nullptr) fail(which + "its name");
  if (kernel->fits == nullptr) fail(which + "the function 'fits'");
  if (kernel->launch == nullptr) fail(which + "the function 'launch'");
}

void KernelTable::add(const heddle_kernel* kernel, std::string plugin,
                      std::shared_ptr<const void> owner) {
  check(kernel, plugin);
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
    throw Error(Code::unsupported,
                cat("no kernel of ", device.name(), " fits ", describe(call),
                    ". A plugin that provides one, or another device for this node, would help"));
  if (log_level() <= Level::debug)
    log(Level::debug,
        cat(device.name(), " runs ", describe(call), ", by its kernel ", quote(best->name)));
  return *best;
}

std::string describe(const heddle_op_call& call) {
  const auto operands = [](std::uint32_t count, const heddle_view* const* views) {
    std::vector<std::string> texts;
    for (std::uint32_t i = 0; i < count; ++i)
      texts.push_back(views[i] == nullptr ? "absent" : describe(views[i]->info));
    return join(texts, ", ");
  };
  return cat(call.op, ": ", operands(call.in_count, call.in), " -> ",
             operands(call.out_count, call.out));
}

}  // namespace heddle::engine
