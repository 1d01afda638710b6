// Memory, order and faults of the fake devices.
#include <sys/syscall.h>
#include <unistd.h>

#include <cmath>

#include "engine/base/error.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/fake_device/memory.h"

using namespace heddle;
using test::copy;
using test::DeviceBuffer;
using test::Fakes;
using test::fill;

namespace {

// What the call throws, or "".
template <class F>
std::string failure_of(F&& call) {
  try {
    call();
  } catch (const engine::Error& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool all_nan(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float x) { return std::isnan(x); });
}

// Whether the host can read the byte: asked of the system, which answers without a fault.
bool host_can_read(const void* address) {
  int ends[2];
  BOOST_TEST_REQUIRE(pipe(ends) == 0);
  const bool readable = syscall(SYS_write, ends[1], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return readable;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fake_device)

BOOST_AUTO_TEST_CASE(the_host_cannot_read_an_address_of_the_device) {
  const Fakes fakes;
  const DeviceBuffer a(fakes.device(), 4);
  const int here = 5;
  BOOST_TEST(host_can_read(&here));
  BOOST_TEST(!host_can_read(a.data()));
  BOOST_TEST(!fakes.device().host_visible());
}

BOOST_AUTO_TEST_CASE(new_bytes_are_nan) {
  const Fakes fakes;
  const DeviceBuffer a(fakes.device(), 1000);
  BOOST_TEST(all_nan(a.read()));
}

BOOST_AUTO_TEST_CASE(freed_bytes_are_nan_for_work_that_comes_too_late) {
  fake::Memory memory("fake:9", 4096);
  void* const address = memory.allocate(64, 0);
  const fake::Span span = memory.at(address, 0, 64, "it");
  std::memset(span.data, 0, 64);
  BOOST_TEST(!memory.free(address));  // somebody still refers to it
  float first = 0;
  std::memcpy(&first, span.data, sizeof first);
  BOOST_TEST(std::isnan(first));
  BOOST_TEST(memory.use().used == 0u);
}

BOOST_AUTO_TEST_CASE(memory_beyond_the_capacity_is_refused_with_the_figures) {
  const Fakes fakes(R"({"memory": "1MiB"})");
  const DeviceBuffer a(fakes.device(), 1000);
  const std::string reason = failure_of([&] { fakes.device().allocate(1 << 20); });
  for (const char* part : {"fake:0", "1048576", "4000", "capacity"})
    BOOST_TEST(contains(reason, part), reason);
  BOOST_TEST(fakes.device().info().memory_free == (1u << 20) - 4000u);
  fakes.control()->set_foreign_bytes(0, 1 << 19);
  BOOST_TEST(fakes.device().info().memory_free == (1u << 19) - 4000u);
  BOOST_TEST(contains(failure_of([&] { fakes.device().allocate(600000); }), "524288"));
  BOOST_TEST(fakes.control()->peak_bytes(0) == 4000u);
}

BOOST_AUTO_TEST_CASE(each_device_has_its_own_capacity) {
  const Fakes fakes(R"({"memory": ["1MiB", 4096], "flops": [2e12, 1e12]})", 3);
  BOOST_TEST(fakes.device(0).opening_info().memory_total == 1u << 20);
  BOOST_TEST(fakes.device(1).opening_info().memory_total == 4096u);
  BOOST_TEST(fakes.device(2).opening_info().memory_total == 4096u);
  BOOST_TEST(fakes.device(0).model() != fakes.device(1).model());
  BOOST_TEST(fakes.device(1).model() == fakes.device(2).model());
}

BOOST_AUTO_TEST_CASE(memory_of_another_device_or_of_the_host_is_refused) {
  const Fakes fakes("{}", 2);
  const DeviceBuffer here(fakes.device(0), 8), there(fakes.device(1), 8);
  engine::Stream stream(fakes.device(0));
  float host[8] = {};
  BOOST_TEST(contains(failure_of([&] {
                        fakes.device(0).copy(stream, &fakes.device(0), there.data(), nullptr, host,
                                             32);
                      }),
                      "fake:0"));
  BOOST_TEST(contains(
      failure_of([&] { fakes.device(0).copy(stream, &fakes.device(0), host, nullptr, host, 32); }),
      "host memory"));
  BOOST_TEST(contains(
      failure_of([&] { fakes.device(0).copy(stream, nullptr, here.data(), nullptr, host, 32); }),
      "host memory"));
  BOOST_TEST(contains(failure_of([&] {
                        fakes.device(0).copy(stream, &fakes.device(0), here.data() + 4, nullptr,
                                             host, 32);
                      }),
                      "4 to 36"));
}

BOOST_AUTO_TEST_CASE(an_event_of_one_device_orders_a_stream_of_another) {
  const Fakes fakes("{}", 2);
  const DeviceBuffer a(fakes.device(0), 1000), b(fakes.device(1), 1000);
  engine::Stream one(fakes.device(0)), two(fakes.device(1));
  const engine::Event made(fakes.device(0));
  for (int i = 0; i < 20; ++i) {
    fill(fakes, one, a, i);
    one.record(made);
    two.wait_for(made);
    copy(two, b, a);
    const engine::Event read(fakes.device(1));
    two.record(read);
    one.wait_for(read);
    two.synchronize();
    BOOST_TEST(b.read() == std::vector<float>(1000, float(i)));
  }
}

BOOST_AUTO_TEST_CASE(devices_without_peer_copies_go_through_the_host) {
  const Fakes fakes(R"({"peer": false})", 2);
  const DeviceBuffer a(fakes.device(0), 8), b(fakes.device(1), 8);
  engine::Stream stream(fakes.device(0));
  BOOST_TEST(fakes.device(0).desc().can_copy(fakes.device(0).raw(), fakes.device(1).raw()) == 0);
  BOOST_TEST(fakes.device(0).link(&fakes.device(1)).kind == HEDDLE_LINK_NONE);
  BOOST_TEST(contains(failure_of([&] { copy(stream, b, a); }), "no direct way"));
}

// ---- shuffling ----

namespace {

// A reader beside a writer, with or without the event that would order them: what the reader saw.
std::vector<float> seen(std::uint64_t seed, bool with_event) {
  const Fakes fakes(R"({"shuffle": )" + std::to_string(seed) + "}");
  const DeviceBuffer a(fakes.device(), 4), b(fakes.device(), 4);
  engine::Stream writer(fakes.device()), reader(fakes.device());
  const engine::Event made(fakes.device());
  for (int i = 1; i <= 3; ++i) fill(fakes, writer, a, i);
  writer.record(made);
  if (with_event) reader.wait_for(made);
  copy(reader, b, a);
  reader.synchronize();
  return b.read();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_wait_that_is_missing_is_found_by_shuffling) {
  std::set<std::vector<float>> unordered;
  int nothing_written = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    BOOST_TEST(seen(seed, true) == std::vector<float>(4, 3.0f));
    const std::vector<float> found = seen(seed, false);
    if (all_nan(found))
      ++nothing_written;
    else
      unordered.insert(found);
    const std::vector<float> again = seen(seed, false);
    BOOST_TEST(std::memcmp(found.data(), again.data(), 16) == 0);
  }
  BOOST_TEST(nothing_written > 0);
  BOOST_TEST(unordered.size() >= 2u);
}

BOOST_AUTO_TEST_CASE(a_shuffled_event_that_is_only_asked_for_comes_to_pass) {
  const Fakes fakes(R"({"shuffle": 1})");
  const DeviceBuffer a(fakes.device(), 4);
  engine::Stream stream(fakes.device());
  const engine::Event made(fakes.device());
  fill(fakes, stream, a, 1);
  stream.record(made);
  int asked = 0;
  while (!made.done()) ++asked;
  BOOST_TEST(asked == 2);
}

// ---- faults ----

BOOST_AUTO_TEST_CASE(the_nth_allocation_fails_and_the_next_one_does_not) {
  const Fakes fakes("{}", 2);
  fakes.control()->fail_alloc(0, 2);
  const DeviceBuffer first(fakes.device(0), 4), other(fakes.device(1), 4);
  const std::string reason = failure_of([&] { DeviceBuffer(fakes.device(0), 4); });
  BOOST_TEST(contains(reason, "a test asked for it"), reason);
  const DeviceBuffer third(fakes.device(0), 4);
  BOOST_TEST(fakes.control()->allocations(0) == 2u);
}

BOOST_AUTO_TEST_CASE(a_failing_copy_fails_what_comes_behind_it_until_it_is_reported) {
  const Fakes fakes;
  const DeviceBuffer a(fakes.device(), 4), b(fakes.device(), 4);
  engine::Stream stream(fakes.device());
  fill(fakes, stream, a, 1);
  fill(fakes, stream, b, 2);
  fakes.control()->fail_copy(0, 1);
  copy(stream, b, a);
  fill(fakes, stream, a, 3);
  const std::string reason = failure_of([&] { stream.synchronize(); });
  for (const char* part : {"fake:0", "copy of 16 bytes", "a test asked for it"})
    BOOST_TEST(contains(reason, part), reason);
  BOOST_TEST(b.read() == std::vector<float>(4, 2.0f));
  BOOST_TEST(a.read() == std::vector<float>(4, 1.0f));
  copy(stream, b, a);
  stream.synchronize();
  BOOST_TEST(b.read() == std::vector<float>(4, 1.0f));
}

BOOST_AUTO_TEST_CASE(a_failing_launch_names_its_op) {
  const Fakes fakes;
  const DeviceBuffer a(fakes.device(), 4);
  engine::Stream stream(fakes.device());
  fakes.control()->fail_launch(0, 2);
  fill(fakes, stream, a, 1);
  fill(fakes, stream, a, 2);
  const std::string reason = failure_of([&] { stream.synchronize(); });
  BOOST_TEST(contains(reason, "fill/1 (reference)"), reason);
  BOOST_TEST(a.read() == std::vector<float>(4, 1.0f));
  BOOST_TEST(fakes.control()->launches(0, HEDDLE_OP_FILL) == 2u);
  BOOST_TEST(fakes.control()->launches(0, HEDDLE_OP_ADD) == 0u);
}

BOOST_AUTO_TEST_CASE(a_dead_device_fails_every_call_others_go_on_and_it_may_come_back) {
  const Fakes fakes(R"({"shuffle": 3})", 2);  // nothing runs before it is waited for
  const DeviceBuffer a(fakes.device(0), 4), b(fakes.device(1), 4), c(fakes.device(1), 4);
  engine::Stream dying(fakes.device(0)), living(fakes.device(1)), waiting(fakes.device(1));
  const engine::Event lost(fakes.device(0));
  fill(fakes, dying, a, 5);
  dying.synchronize();
  fill(fakes, dying, a, 1);
  dying.record(lost);
  waiting.wait_for(lost);
  fill(fakes, waiting, c, 1);
  fakes.control()->kill(0);

  BOOST_TEST(contains(failure_of([&] { lost.wait(); }), "fake:0: the device has died"));
  BOOST_TEST(contains(failure_of([&] { fakes.device(0).allocate(4); }), "died"));
  BOOST_TEST(contains(failure_of([&] { fakes.device(0).info(); }), "died"));
  BOOST_TEST(contains(failure_of([&] { fill(fakes, dying, a, 1); }), "died"));
  BOOST_TEST(contains(failure_of([&] { copy(living, b, a); }), "died"));
  BOOST_TEST(contains(failure_of([&] { dying.synchronize(); }), "died"));
  BOOST_TEST(contains(failure_of([&] { waiting.synchronize(); }),
                      "fake:0"));  // its input was never written
  BOOST_TEST(all_nan(c.read()));
  fill(fakes, living, b, 7);
  living.synchronize();
  BOOST_TEST(b.read() == std::vector<float>(4, 7.0f));

  fakes.control()->revive(0);
  BOOST_TEST(all_nan(a.read()));
  fill(fakes, dying, a, 2);
  dying.synchronize();
  BOOST_TEST(a.read() == std::vector<float>(4, 2.0f));
}

BOOST_AUTO_TEST_SUITE_END()
