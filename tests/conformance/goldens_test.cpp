// The reference against PyTorch.
#include <boost/test/unit_test.hpp>

#include "compare.h"
#include "goldens.h"
#include "settings.h"
#include "test_device.h"

namespace heddle::conformance {

namespace {

void check_goldens(const TestDevice& device) {
  int tried = 0;
  for (OpCase& golden : read_goldens(settings().goldens)) {
    const std::vector<HostTensor> expected = golden.out;
    for (const heddle_kernel* kernel : device.fitting(golden)) {
      ++tried;
      BOOST_TEST_CONTEXT(golden.name << " with " << kernel->name) {
        device.run(golden, kernel);
        for (std::size_t i = 0; i < expected.size(); ++i)
          BOOST_TEST(difference(golden.out[i], expected[i],
                                tolerance(expected[i].info().dtype, device.info().compute)) == "");
      }
    }
  }
  BOOST_TEST((tried > 0 || !settings().complete));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(goldens)

BOOST_AUTO_TEST_CASE(the_reference_gives_what_pytorch_gives) {
  const Plugin plugin(settings().oracle);
  check_goldens(TestDevice(plugin, {{"kernels", "reference"}, {"compute", "f32"}, {"threads", 2}}));
}

BOOST_AUTO_TEST_CASE(every_kernel_gives_what_pytorch_gives) {
  const Plugin plugin(settings().plugin);
  check_goldens(TestDevice(plugin, settings().options));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::conformance
