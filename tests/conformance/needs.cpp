#include "needs.h"

#include <functional>
#include <string>

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

boost::unit_test::precondition needs_link() { return needs_extension(HEDDLE_DEVICE_LINKS); }
boost::unit_test::precondition needs_elapsed() { return needs_extension(HEDDLE_DEVICE_TIMING); }
boost::unit_test::precondition needs_cancel() { return needs_extension(HEDDLE_DEVICE_CANCEL); }
boost::unit_test::precondition needs_identity() { return needs_extension(HEDDLE_DEVICE_IDENTITY); }
boost::unit_test::precondition needs_context() { return needs_extension(HEDDLE_DEVICE_CONTEXT); }
boost::unit_test::precondition needs_threads() {
  return needs("threads",
               [](const Plugin& plugin) { return TestDevice(plugin, {}).info().threads != 0; });
}

}  // namespace heddle::conformance
