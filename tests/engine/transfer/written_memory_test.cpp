// Memory that says when it is written: who copies it waits for that, and not for what its device
// has still to do.
#include <boost/test/unit_test.hpp>

#include "engine/transfer/transfer.h"
#include "tests/fake_device/fake_fixture.h"

using namespace heddle;

BOOST_AUTO_TEST_SUITE(written_memory)

namespace {

constexpr double kOp = 1;  // second

struct Written {
  test::Fakes fakes{R"({"op_seconds": {"*": 1}, "links": {"host": {"bandwidth": 1e15, "latency": 0},
                        "peer": {"bandwidth": 1e15, "latency": 0}}})",
                    2};

  engine::Tensor filled(double value) {
    const std::int64_t shape[] = {8};
    engine::Tensor tensor = fakes.state(0).make(engine::make_info(HEDDLE_F32, shape));
    heddle_tensor* const out[] = {tensor.get()};
    const heddle_fill_attrs attrs{value};
    fakes.state(0).op(engine::op_id(HEDDLE_OP_FILL), {}, out,
                      {reinterpret_cast<const std::byte*>(&attrs), sizeof attrs});
    return tensor;
  }
  static void say_written(const engine::Tensor& tensor) {
    dynamic_cast<engine::DeviceMemory&>(*tensor->storage).set_written();
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_device_takes_it_over_while_its_maker_goes_on, Written) {
  for (const bool says : {false, true}) {
    fakes.control()->reset();
    const engine::Tensor first = filled(3);
    if (says) say_written(first);
    const engine::Tensor second = filled(4);
    engine::Transfer transfer(first, &fakes.state(1));
    const engine::Tensor there = transfer.await();
    fakes.state(1).synchronize();
    BOOST_TEST(fakes.control()->thread_now() == (says ? 1 : 2) * kOp,
               boost::test_tools::tolerance(1e-6));
    std::vector<float> numbers(8);
    fakes.state(1).read(there, numbers.data(), 32);
    BOOST_TEST(numbers == std::vector<float>(8, 3.0f), boost::test_tools::per_element());
  }
}

BOOST_FIXTURE_TEST_CASE(the_host_reads_it_while_its_maker_goes_on, Written) {
  for (const bool says : {false, true}) {
    fakes.control()->reset();
    const engine::Tensor first = filled(3);
    if (says) say_written(first);
    const engine::Tensor second = filled(4);
    std::vector<float> numbers(8);
    fakes.state(0).read(first, numbers.data(), 32);
    BOOST_TEST(fakes.control()->thread_now() == (says ? 1 : 2) * kOp,
               boost::test_tools::tolerance(1e-6));
    BOOST_TEST(numbers == std::vector<float>(8, 3.0f), boost::test_tools::per_element());
  }
}

// The first who says so counts: later work does not write it.
BOOST_FIXTURE_TEST_CASE(it_is_said_once, Written) {
  fakes.control()->reset();
  const engine::Tensor first = filled(3);
  say_written(first);
  const engine::Tensor second = filled(4);
  say_written(first);
  std::vector<float> numbers(8);
  fakes.state(0).read(first, numbers.data(), 32);
  BOOST_TEST(fakes.control()->thread_now() == kOp, boost::test_tools::tolerance(1e-6));
}

BOOST_FIXTURE_TEST_CASE(what_failed_before_it_is_told_to_who_reads_it, Written) {
  fakes.control()->reset();
  fakes.control()->fail_launch(0, 1);
  const engine::Tensor first = filled(3);
  say_written(first);
  std::vector<float> numbers(8);
  BOOST_CHECK_THROW(fakes.state(0).read(first, numbers.data(), 32), engine::Error);
}

BOOST_AUTO_TEST_SUITE_END()
