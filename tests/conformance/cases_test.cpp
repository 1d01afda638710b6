// Every kernel of the device under test on every case: right values, nothing written outside, and
// the rule of bytes: what a call gives does not depend on the number of threads, on its neighbours
// in a batch, or on when it runs.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <regex>
#include <set>

#include "compare.h"
#include "needs.h"
#include "op_cases.h"
#include "settings.h"

namespace heddle::conformance {

namespace {

// Sanitizers make every call slow, and find in one division of the work what they find in three.
#if defined(HEDDLE_ADDRESS_SANITIZER) || defined(HEDDLE_THREAD_SANITIZER)
constexpr std::int64_t kThreads[] = {1, 3};
#else
constexpr std::int64_t kThreads[] = {1, 2, 3, 4};
#endif

OptionMap with_threads(std::int64_t threads) {
  OptionMap options = settings().options;
  options["threads"] = threads;
  return options;
}

std::vector<std::vector<std::byte>> elements(const OpCase& op_case) {
  std::vector<std::vector<std::byte>> result;
  for (const HostTensor& out : op_case.out) result.push_back(out.elements());
  return result;
}

// The item of a batch as a case of its own.
OpCase item_of(const OpCase& batch, std::int64_t item) {
  OpCase alone = batch;
  for (const std::uint32_t input : batch.item_inputs)
    alone.in[input] = batch.in[input]->items(item, 1);
  for (HostTensor& out : alone.out) out = out.items(item, 1);
  return alone;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cases)

BOOST_AUTO_TEST_CASE(every_kernel_agrees_with_the_reference_and_writes_nothing_else) {
  const Plugin plugin(settings().plugin), oracle_plugin(settings().oracle);
  const TestDevice device(plugin, settings().options);
  const TestDevice oracle(oracle_plugin, {{"kernels", "reference"}, {"compute", "f32"}});
  const heddle_dtype compute = device.info().compute;
  const std::regex only(settings().only);
  int tried = 0, cases = 0, lacking = 0;
  for (OpCase& op_case : make_op_cases(settings().seed)) {
    auto kernels = device.fitting(op_case);
    ++cases;
    lacking += kernels.empty() ? 1 : 0;
    if (settings().complete) BOOST_TEST(!kernels.empty(), op_case.name << ": no kernel fits");
    std::erase_if(kernels, [&](const heddle_kernel* kernel) {
      return !std::regex_search(op_case.name + " with " + kernel->name, only);
    });
    if (kernels.empty()) continue;
    oracle.run(op_case);
    const std::vector<HostTensor> expected = op_case.out;
    for (const heddle_kernel* kernel : kernels) {
      ++tried;
      BOOST_TEST_CONTEXT(op_case.name << " with " << kernel->name) {
        device.run(op_case, kernel);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          BOOST_TEST(difference(op_case.out[i], expected[i],
                                tolerance(expected[i].info().dtype, compute)) == "");
          BOOST_TEST(op_case.out[i].untouched_outside());
        }
        if (op_case.in_place) {
          const auto apart = elements(op_case);
          device.run_in_place(op_case, kernel);
          BOOST_TEST((elements(op_case) == apart), "in place gives other bytes");
        }
      }
    }
  }
  std::printf("%d of %d cases are offered, %d are not\n", cases - lacking, cases, lacking);
  BOOST_TEST(tried > 0);
}

BOOST_AUTO_TEST_CASE(bytes_do_not_depend_on_the_number_of_threads,
                     *needs_option("threads", std::int64_t{2})) {
  const Plugin plugin(settings().plugin);
  std::vector<std::unique_ptr<TestDevice>> devices;
  for (const std::int64_t threads : kThreads)
    devices.push_back(std::make_unique<TestDevice>(plugin, with_threads(threads)));
  for (OpCase& op_case : make_op_cases(settings().seed)) {
    for (const heddle_kernel* kernel : devices[0]->fitting(op_case)) {
      devices[0]->run(op_case, kernel);
      const auto expected = elements(op_case);
      for (std::size_t i = 1; i < devices.size(); ++i) {
        devices[i]->run(op_case, kernel);
        BOOST_TEST((elements(op_case) == expected),
                   op_case.name << " with " << kernel->name << ": other bytes with " << kThreads[i]
                                << " threads than with 1");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(bytes_of_an_item_do_not_depend_on_its_neighbours_in_a_batch) {
  const Plugin plugin(settings().plugin);
  // Several, where the device knows of threads.
  const OptionMap options = with_threads(2);
  const TestDevice device(plugin, opens_with(plugin, options) ? options : settings().options);
  int batches = 0;
  for (OpCase& op_case : make_op_cases(settings().seed)) {
    if (op_case.item_inputs.empty() || device.fitting(op_case).empty()) continue;
    ++batches;
    device.run(op_case);
    for (std::int64_t item = 0; item < op_case.out[0].info().shape[0]; ++item) {
      OpCase alone = item_of(op_case, item);
      device.run(alone);
      for (std::size_t i = 0; i < alone.out.size(); ++i)
        BOOST_TEST((alone.out[i].elements() == op_case.out[i].items(item, 1).elements()),
                   op_case.name << ": item " << item << " alone has other bytes than in the batch");
    }
  }
  BOOST_TEST((batches > 0 || !settings().complete));
}

BOOST_AUTO_TEST_CASE(every_op_of_the_catalogue_has_a_case_and_a_kernel) {
  const Plugin plugin(settings().plugin);
  std::set<std::string> with_case, with_kernel;
  for (const OpCase& op_case : make_op_cases(settings().seed)) with_case.insert(op_case.op);
  for (const heddle_kernel* kernel : plugin.kernels()) with_kernel.insert(kernel->op);
  for (const std::string& op : with_kernel)
    BOOST_TEST(with_case.count(op) == 1u, op << " has no case");
  for (const std::string& op : with_case)
    if (settings().complete) BOOST_TEST(with_kernel.count(op) == 1u, op << " has no kernel");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::conformance
