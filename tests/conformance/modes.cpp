#include "modes.h"

#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "op_cases.h"
#include "settings.h"
#include "test_device.h"

namespace heddle::conformance {

int bench() {
  constexpr double kSecondsPerCase = 0.01;
  const Plugin plugin(settings().plugin);
  const TestDevice device(plugin, settings().options);
  std::printf("%-12s %12s  %s\n", "kernel", "microseconds", "case");
  for (OpCase& op_case : make_op_cases(settings().seed))
    for (const heddle_kernel* kernel : device.fitting(op_case))
      std::printf("%-12s %12.2f  %s\n", kernel->name,
                  1e6 * device.measure(op_case, kernel, kSecondsPerCase, wall_seconds),
                  op_case.name.c_str());
  return 0;
}

int support() {
  const Plugin plugin(settings().plugin);
  const TestDevice device(plugin, settings().options);
  std::map<std::string, std::map<std::string, int>> fits;  // op, kernel, cases
  std::map<std::string, int> cases;
  std::map<std::string, std::string> refusals;  // of a case that could not even be asked about
  for (const heddle_kernel* kernel : plugin.kernels()) fits[kernel->op][kernel->name] = 0;
  int offered = 0, all = 0;
  for (const OpCase& op_case : make_op_cases(settings().seed)) {
    ++cases[op_case.op];
    ++all;
    try {
      const auto kernels = device.fitting(op_case);
      offered += kernels.empty() ? 0 : 1;
      for (const heddle_kernel* kernel : kernels) ++fits[op_case.op][kernel->name];
    } catch (const std::exception& error) {
      refusals.emplace(op_case.op, op_case.name + ": " + error.what());
    }
  }
  std::printf("%-22s %6s  %s\n", "op", "cases", "kernels, and how many of the cases each fits");
  for (const auto& [op, kernels] : fits) {
    std::string text;
    for (const auto& [name, count] : kernels) text += name + " " + std::to_string(count) + "  ";
    std::printf("%-22s %6d  %s\n", op.c_str(), cases[op], text.c_str());
  }
  for (const auto& [op, why] : refusals) std::printf("%-22s refuses %s\n", op.c_str(), why.c_str());
  std::printf("%d of %d cases, %zu of %zu ops are offered\n", offered, all, fits.size(),
              cases.size());
  return refusals.empty() ? 0 : 1;
}

}  // namespace heddle::conformance
