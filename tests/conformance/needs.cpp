#include "needs.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "heddle/abi/device_sharing.h"
#include "heddle/device.hpp"
#include "settings.h"
#include "test_device.h"

namespace heddle::conformance {
namespace {

boost::unit_test::precondition needs(std::string what, std::function<bool(const Plugin&)> has) {
  return boost::unit_test::precondition(
      [what = std::move(what), has = std::move(has)](boost::unit_test::test_unit_id) {
        boost::test_tools::assertion_result result(has(Plugin(settings().plugin)));
        result.message() << "the plugin has no " << what;
        return result;
      });
}

boost::unit_test::precondition needs_extension(const char* name) {
  return needs(name, [name](const Plugin& plugin) { return plugin.extension(name) != nullptr; });
}

}  // namespace

bool opens_with(const Plugin& plugin, const OptionMap& options, std::uint32_t index) {
  const OptionRecord record(options);
  heddle_device* device = nullptr;
  heddle_status* const status = plugin.device().open(mini_host(), index, record.value(), &device);
  if (status == nullptr)
    plugin.device().close(device);
  else
    take(status);
  return status == nullptr;
}

boost::unit_test::precondition needs_link() { return needs_extension(HEDDLE_DEVICE_LINKS); }
boost::unit_test::precondition needs_elapsed() { return needs_extension(HEDDLE_DEVICE_TIMING); }
boost::unit_test::precondition needs_cancel() { return needs_extension(HEDDLE_DEVICE_CANCEL); }
boost::unit_test::precondition needs_identity() { return needs_extension(HEDDLE_DEVICE_IDENTITY); }
boost::unit_test::precondition needs_context() { return needs_extension(HEDDLE_DEVICE_CONTEXT); }
boost::unit_test::precondition needs_sharing() {
  return needs(HEDDLE_DEVICE_SHARING, [](const Plugin& plugin) {
    const auto* sharing =
        static_cast<const heddle_device_sharing*>(plugin.extension(HEDDLE_DEVICE_SHARING));
    if (sharing == nullptr) return false;
    const TestDevice device(plugin, settings().options);
    return sharing->is_possible(device.raw()) != 0;
  });
}
boost::unit_test::precondition needs_ops(std::vector<std::string> ops) {
  std::string names;
  for (const std::string& op : ops) names += (names.empty() ? "kernels of " : ", ") + op;
  return needs(names, [ops = std::move(ops)](const Plugin& plugin) {
    const TestDevice device(plugin, settings().options);
    return std::all_of(ops.begin(), ops.end(),
                       [&](const std::string& op) { return device.offers(op); });
  });
}
boost::unit_test::precondition needs_weights(heddle_use use) {
  return needs("weights of every type", [use](const Plugin& plugin) {
    const TestDevice device(plugin, settings().options);
    const heddle_tensor_info info = device::row_major(HEDDLE_Q4_K, {16, 256});
    return settings().complete || device.weight_layout(use, info).has_value();
  });
}
boost::unit_test::precondition needs_two_devices() {
  return needs("second device", [](const Plugin& plugin) {
    return settings().complete || opens_with(plugin, settings().options, 1);
  });
}
boost::unit_test::precondition needs_option(const char* option, OptionValue value) {
  return needs(std::string("option '") + option + "'", [=](const Plugin& plugin) {
    return settings().complete || opens_with(plugin, {{option, value}});
  });
}
boost::unit_test::precondition needs_threads() {
  return needs("threads",
               [](const Plugin& plugin) { return TestDevice(plugin, {}).info().threads != 0; });
}

}  // namespace heddle::conformance
