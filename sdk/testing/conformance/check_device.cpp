#include <exception>

#include "compare.h"
#include "heddle/device.hpp"
#include "heddle/testing/conformance.hpp"
#include "op_cases.h"

namespace heddle::testing {
namespace {

using conformance::HostTensor;
using conformance::OpCase;
using conformance::TestDevice;

using Elements = std::vector<std::vector<std::byte>>;

Elements elements_of(const OpCase& op_case) {
  Elements all;
  for (const HostTensor& out : op_case.out) all.push_back(out.elements());
  return all;
}

// An item of the batch by itself; empty when it has the same bytes as in the batch.
std::string differing_item(const TestDevice& device, const OpCase& batch,
                           const heddle_kernel* kernel) {
  if (batch.item_inputs.empty()) return "";
  for (std::int64_t item = 0; item < batch.out[0].info().shape[0]; ++item) {
    OpCase alone = batch;
    for (const std::uint32_t input : batch.item_inputs)
      alone.in[input] = batch.in[input]->items(item, 1);
    for (HostTensor& out : alone.out) out = out.items(item, 1);
    // A kernel may leave fewer rows to another one, whose sums are in another order.
    bool fits = false;
    for (const heddle_kernel* other : device.fitting(alone)) fits = fits || other == kernel;
    if (!fits) continue;
    device.run(alone, kernel);
    for (std::size_t i = 0; i < alone.out.size(); ++i)
      if (alone.out[i].elements() != batch.out[i].items(item, 1).elements())
        return device::cat("item ", item, " alone has other bytes than in its batch");
  }
  return "";
}

// What is wrong with one kernel on one case; empty: nothing.
std::string fault_of(const TestDevice& device, OpCase& op_case, const heddle_kernel* kernel,
                     const std::vector<HostTensor>& expected) {
  device.run(op_case, kernel);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto allowed = conformance::tolerance(expected[i].info().dtype, device.info().compute);
    const std::string found = conformance::difference(op_case.out[i], expected[i], allowed);
    if (!found.empty()) return found;
    if (!op_case.out[i].untouched_outside()) return "it writes beside its output";
  }
  const Elements apart = elements_of(op_case);
  if (const std::string found = differing_item(device, op_case, kernel); !found.empty())
    return found;
  if (!op_case.in_place) return "";
  device.run_in_place(op_case, kernel);
  return elements_of(op_case) == apart ? "" : "an output on its input has other bytes";
}

void check_case(const TestDevice& device, const TestDevice& reference, OpCase& op_case,
                DeviceReport& report) {
  OpReport& op = report.ops[op_case.op];
  const auto fail = [&](const std::string& with, const std::string& what) {
    report.failures.push_back(op_case.name + with + ": " + what);
    ++op.failed;
  };
  std::vector<const heddle_kernel*> kernels;
  try {
    kernels = device.fitting(op_case);
  } catch (const std::exception& error) {
    return fail("", error.what());
  }
  if (kernels.empty()) {
    ++op.not_offered;
    return;
  }
  ++op.offered;
  reference.run(op_case);
  const std::vector<HostTensor> expected = op_case.out;
  for (const heddle_kernel* kernel : kernels) {
    std::string fault;
    try {
      fault = fault_of(device, op_case, kernel, expected);
    } catch (const std::exception& error) {
      fault = error.what();
    }
    if (!fault.empty()) return fail(std::string(" with ") + kernel->name, fault);
  }
}

}  // namespace

bool DeviceReport::passed() const {
  for (const auto& [name, op] : ops)
    if (op.offered > 0 && failures.empty()) return true;
  return false;
}

std::string DeviceReport::text() const {
  std::string text;
  int missing = 0, cases = 0, offered = 0;
  for (const auto& [name, op] : ops) {
    cases += op.offered + op.not_offered;
    offered += op.offered;
    missing += op.offered == 0 ? 1 : 0;
    if (op.offered > 0)
      text += device::cat(name, ": ", op.offered, " cases, ", op.failed, " failed, ",
                          op.not_offered, " not offered\n");
  }
  text += device::cat(kind, ": ", offered, " of ", cases, " cases and ", ops.size() - missing,
                      " of ", ops.size(), " ops are offered\n");
  for (const std::string& failure : failures) text += device::cat("FAILED: ", failure, "\n");
  return text;
}

DeviceReport check_device(const DeviceCheck& check) {
  const conformance::Plugin oracle(check.cpu.string());
  const TestDevice reference(oracle, {{"kernels", "reference"}, {"compute", "f32"}});
  const conformance::Plugin plugin(check.plugin.string());
  const TestDevice device(plugin, check.options);
  DeviceReport report;
  report.kind = device.desc().kind;
  for (OpCase& op_case : conformance::make_op_cases(check.seed))
    check_case(device, reference, op_case, report);
  return report;
}

}  // namespace heddle::testing
