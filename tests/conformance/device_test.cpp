// The device itself: order, events, failures, memory and refusals. For any device plugin.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "heddle/device.hpp"
#include "needs.h"
#include "op_cases.h"
#include "settings.h"

namespace heddle::conformance {

BOOST_AUTO_TEST_SUITE(devices)

namespace {

// A device with some helpers to enqueue by hand.
struct Bench : TestDevice {
  explicit Bench(const Plugin& plugin) : TestDevice(plugin, settings().options) {}

  const heddle_kernel& kernel(const std::string& op) const {
    for (const heddle_kernel* k : kernels())
      if (op == k->op) return *k;
    throw std::runtime_error("no kernel of " + op);
  }

  heddle_status* launch(heddle_stream* on, const std::string& op,
                        std::vector<const heddle_view*> in, std::vector<const heddle_view*> out,
                        const void* attrs = nullptr, std::uint32_t attrs_size = 0) const {
    const heddle_op_call call{.size = sizeof(heddle_op_call),
                              .op = op.c_str(),
                              .in_count = static_cast<std::uint32_t>(in.size()),
                              .out_count = static_cast<std::uint32_t>(out.size()),
                              .in = in.data(),
                              .out = out.data(),
                              .attrs = attrs,
                              .attrs_size = attrs_size};
    return kernel(op).launch(raw(), on, &call, nullptr);
  }

  // x = x * factor + shift, in place
  void scale(heddle_stream* on, const heddle_view& x, double factor, double shift) const {
    const heddle_scale_clamp_attrs attrs{factor, shift, -1e30, 1e30};
    check(launch(on, HEDDLE_OP_SCALE_CLAMP, {&x}, {&x}, &attrs, sizeof attrs));
  }

  // Fails when it runs: an id outside its table.
  void enqueue_failure(heddle_stream* on, const heddle_view& table, const heddle_view& ids,
                       const heddle_view& out) const {
    check(launch(on, HEDDLE_OP_EMBEDDING, {&table, &ids}, {&out}));
  }
};

struct Event {
  explicit Event(const TestDevice& device) : desc(device.desc()) {
    check(desc.event_make(device.raw(), &raw));
  }
  ~Event() { desc.event_free(raw); }
  const heddle_device_desc& desc;
  heddle_event* raw = nullptr;
};

struct OwnStream {
  explicit OwnStream(const TestDevice& device) : desc(device.desc()) {
    check(desc.stream_make(device.raw(), &raw));
  }
  ~OwnStream() { desc.stream_free(raw); }
  const heddle_device_desc& desc;
  heddle_stream* raw = nullptr;
};

heddle_view view_of(const TestDevice::Buffer& buffer, heddle_tensor_info info) {
  return {info, buffer.memory};
}

// A table of 4 rows of 8, one id that is out of range, a place for the row.
struct BadLookup {
  explicit BadLookup(const Bench& bench)
      : table_memory(bench, 128), id_memory(bench, 4), out_memory(bench, 32) {
    const std::int32_t id = 4;
    check(
        bench.desc().copy(bench.stream(), bench.raw(), id_memory.memory, nullptr, &id, sizeof id));
    bench.wait();
  }
  TestDevice::Buffer table_memory, id_memory, out_memory;
  heddle_view table = view_of(table_memory, device::row_major(HEDDLE_F32, {4, 8}));
  heddle_view ids = view_of(id_memory, device::row_major(HEDDLE_I32, {1}));
  heddle_view out = view_of(out_memory, device::row_major(HEDDLE_F32, {1, 8}));
};

float first_float(const Bench& bench, const TestDevice::Buffer& buffer, heddle_stream* on) {
  float value = 0;
  Event event(bench);
  check(bench.desc().copy(on, nullptr, &value, bench.raw(), buffer.memory, sizeof value));
  check(bench.desc().record(on, event.raw));
  check(bench.desc().wait(event.raw));
  return value;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(work_that_is_not_wanted_any_more_is_left_out_and_is_no_failure,
                     *needs_cancel() * needs_ops({HEDDLE_OP_FILL, HEDDLE_OP_SCALE_CLAMP})) {
  const Plugin plugin(settings().plugin);
  const Bench bench(plugin);
  const auto* cancel = bench.extension<heddle_device_cancel>(HEDDLE_DEVICE_CANCEL);
  static std::atomic<int> owners;
  owners = 0;
  heddle_cancel flag{sizeof(heddle_cancel),           0, 0, 0, [](heddle_cancel*) { ++owners; },
                     [](heddle_cancel*) { --owners; }};
  const TestDevice::Buffer memory(bench, 4);
  const heddle_view x = view_of(memory, device::row_major(HEDDLE_F32, {1}));
  const heddle_fill_attrs one{1};
  check(bench.launch(bench.stream(), HEDDLE_OP_FILL, {}, {&x}, &one, sizeof one));
  cancel->set(bench.stream(), &flag);
  bench.scale(bench.stream(), x, 1, 2);
  BOOST_TEST(first_float(bench, memory, bench.stream()) == 3);  // it is wanted as yet
  BOOST_TEST(__atomic_load_n(&flag.passed_over, __ATOMIC_ACQUIRE) == 0);
  __atomic_store_n(&flag.value, 1, __ATOMIC_RELEASE);
  for (int i = 0; i < 100; ++i) bench.scale(bench.stream(), x, 2, 0);
  cancel->set(bench.stream(), nullptr);
  bench.scale(bench.stream(), x, 1, 4);
  BOOST_TEST(first_float(bench, memory, bench.stream()) == 7);
  BOOST_TEST(__atomic_load_n(&flag.passed_over, __ATOMIC_ACQUIRE) == 1);
  BOOST_TEST(owners == 0);
}

BOOST_AUTO_TEST_CASE(info_tells_what_the_device_is) {
  const Plugin plugin(settings().plugin);
  const heddle_device_info info = Bench(plugin).info();
  BOOST_TEST(std::strlen(info.name) > 0u);
  BOOST_TEST(info.memory_total >= info.memory_free);
  BOOST_TEST(info.memory_free > 0u);
  BOOST_TEST(info.alignment >= 16u);
  BOOST_TEST(
      (info.compute == HEDDLE_F32 || info.compute == HEDDLE_BF16 || info.compute == HEDDLE_F16));
}

BOOST_AUTO_TEST_CASE(memory_is_aligned_and_comes_in_every_size) {
  const Plugin plugin(settings().plugin);
  const Bench bench(plugin);
  const std::uint32_t alignment = bench.info().alignment;
  for (std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{4097}, std::size_t{9} << 20}) {
    const TestDevice::Buffer buffer(bench, bytes);
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(buffer.memory) % alignment == 0u);
  }
}

BOOST_AUTO_TEST_CASE(too_much_memory_is_refused_with_its_reason) {
  const Plugin plugin(settings().plugin);
  const Bench bench(plugin);
  for (std::size_t bytes :
       {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() / 2}) {
    void* memory = nullptr;
    heddle_status* status = bench.desc().alloc(bench.raw(), bytes, &memory);
    BOOST_REQUIRE(status != nullptr);
    BOOST_TEST(take(status).code == HEDDLE_OUT_OF_MEMORY);
  }
}

BOOST_AUTO_TEST_CASE(a_stream_runs_its_work_in_order, *needs_ops({HEDDLE_OP_SCALE_CLAMP})) {
  const Plugin plugin(settings().plugin);
  const Bench bench(plugin);
  const TestDevice::Buffer memory(bench, 4);
  const heddle_view x = view_of(memory, device::row_major(HEDDLE_F32, {1}));
  const float zero = 0;
  check(bench.desc().copy(bench.stream(), bench.raw(), memory.memory, nullptr, &zero, sizeof zero));
  float expected = 0;
  for (int i = 0; i < 300; ++i) {  // more than any queue holds before it grows
    bench.scale(bench.stream(), x, i % 2 == 0 ? 2 : 0.5, i);
    expected = expected * (i % 2 == 0 ? 2.0f : 0.5f) + static_cast<float>(i);
  }
  BOOST_TEST(first_float(bench, memory, bench.stream()) == expected);
}

BOOST_AUTO_TEST_CASE(a_stream_waits_for_an_event_of_another,
                     *needs_ops({HEDDLE_OP_FILL, HEDDLE_OP_SCALE_CLAMP})) {
  const Plugin plugin(settings().plugin);
  const Bench bench(plugin);
  const OwnStream other(bench);
  const TestDevice::Buffer memory(bench, std::size_t{1} << 20);
  const heddle_view x = view_of(memory, device::row_major(HEDDLE_F32, {1 << 18}));
  const heddle_fill_attrs three{3};
  Event there(bench), back(bench);
  for (int round = 0; round < 20; ++round) {
    check(bench.launch(bench.stream(), HEDDLE_OP_FILL, {}, {&x}, &three, sizeof three));
    check(bench.desc().record(bench.stream(), there.raw));
    check(bench.desc().wait_on_stream(other.raw, there.raw));
    bench.scale(other.raw, x, 2, 1);
    check(bench.desc().record(other.raw, back.raw));
    check(bench.desc().wait_on_stream(bench.stream(), back.raw));
    bench.scale(bench.stream(), x, 2, 1);
    BOOST_TEST(first_float(bench, memory, bench.stream()) == 15.0f);
  }
}

BOOST_AUTO_TEST_CASE(an_event_that_was_never_recorded_is_done) {
  const Plugin plugin(settings().plugin);
  const Bench bench(plugin);
  Event event(bench);
  BOOST_TEST(bench.desc().done(event.raw) == 1);
  check(bench.desc().wait(event.raw));
  check(bench.desc().record(bench.stream(), event.raw));
  check(bench.desc().wait(event.raw));
  BOOST_TEST(bench.desc().done(event.raw) == 1);
}

BOOST_AUTO_TEST_CASE(an_event_may_be_freed_while_its_stream_is_still_running,
                     *needs_ops({HEDDLE_OP_FILL})) {
  const Plugin plugin(settings().plugin);
  const Bench bench(plugin);
  const OwnStream other(bench);
  const TestDevice::Buffer memory(bench, std::size_t{4} << 20);
  const heddle_view x = view_of(memory, device::row_major(HEDDLE_F32, {1 << 20}));
  for (int i = 0; i < 20; ++i) {
    Event event(bench);
    const heddle_fill_attrs attrs{double(i)};  // not x * 0: what is there first may be no number
    check(bench.launch(bench.stream(), HEDDLE_OP_FILL, {}, {&x}, &attrs, sizeof attrs));
    check(bench.desc().record(bench.stream(), event.raw));
    check(bench.desc().wait_on_stream(other.raw, event.raw));
  }
  BOOST_TEST(first_float(bench, memory, bench.stream()) == 19.0f);
}

BOOST_AUTO_TEST_CASE(a_failure_comes_out_of_wait_with_the_name_of_the_op_and_later_work_is_skipped,
                     *needs_ops({HEDDLE_OP_FILL, HEDDLE_OP_EMBEDDING})) {
  const Plugin plugin(settings().plugin);
  const Bench bench(plugin);
  const BadLookup bad(bench);
  const TestDevice::Buffer memory(bench, 4);
  const heddle_view x = view_of(memory, device::row_major(HEDDLE_F32, {1}));
  const heddle_fill_attrs one{1}, two{2};
  Event before(bench), after(bench);
  check(bench.launch(bench.stream(), HEDDLE_OP_FILL, {}, {&x}, &one, sizeof one));
  check(bench.desc().record(bench.stream(), before.raw));
  bench.enqueue_failure(bench.stream(), bad.table, bad.ids, bad.out);
  check(bench.launch(bench.stream(), HEDDLE_OP_FILL, {}, {&x}, &two, sizeof two));
  check(bench.desc().record(bench.stream(), after.raw));

  check(bench.desc().wait(before.raw));
  heddle_status* status = bench.desc().wait(after.raw);
  BOOST_REQUIRE(status != nullptr);
  const Reason reason = take(status);
  BOOST_TEST(reason.code == HEDDLE_INVALID_ARGUMENT);
  BOOST_TEST(contains(reason.message, HEDDLE_OP_EMBEDDING));
  BOOST_TEST(contains(reason.message, "4"));
  // Reported: what comes now runs again, and finds what the skipped work left alone.
  BOOST_TEST(first_float(bench, memory, bench.stream()) == 1.0f);
}

BOOST_AUTO_TEST_CASE(a_stream_that_waits_for_a_failed_one_fails_too,
                     *needs_ops({HEDDLE_OP_EMBEDDING})) {
  const Plugin plugin(settings().plugin);
  const Bench bench(plugin);
  const OwnStream other(bench);
  const BadLookup bad(bench);
  Event failed(bench), behind(bench);
  bench.enqueue_failure(bench.stream(), bad.table, bad.ids, bad.out);
  check(bench.desc().record(bench.stream(), failed.raw));
  check(bench.desc().wait_on_stream(other.raw, failed.raw));
  check(bench.desc().record(other.raw, behind.raw));
  for (const Event* event : {&behind, &failed}) {
    heddle_status* status = bench.desc().wait(event->raw);
    BOOST_REQUIRE(status != nullptr);
    BOOST_TEST(contains(take(status).message, HEDDLE_OP_EMBEDDING));
  }
  bench.wait();
}

BOOST_AUTO_TEST_CASE(several_streams_share_one_device,
                     *needs_ops({HEDDLE_OP_FILL, HEDDLE_OP_SCALE_CLAMP})) {
  const Plugin plugin(settings().plugin);
  const Bench bench(plugin);
  constexpr int kStreams = 4;
  constexpr std::int64_t elements = 100000;
  std::vector<std::thread> threads;
  std::vector<float> results(kStreams);
  for (int s = 0; s < kStreams; ++s) {
    threads.emplace_back([&bench, &results, s] {
      const OwnStream stream(bench);
      const TestDevice::Buffer memory(bench, static_cast<std::size_t>(elements) * 4);
      const heddle_view x = view_of(memory, device::row_major(HEDDLE_F32, {elements}));
      const heddle_fill_attrs start{static_cast<double>(s)};
      check(bench.launch(stream.raw, HEDDLE_OP_FILL, {}, {&x}, &start, sizeof start));
      for (int i = 0; i < 10; ++i) bench.scale(stream.raw, x, 1, 1);
      results[static_cast<std::size_t>(s)] = first_float(bench, memory, stream.raw);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int s = 0; s < kStreams; ++s)
    BOOST_TEST(results[static_cast<std::size_t>(s)] == static_cast<float>(s + 10));
}

BOOST_AUTO_TEST_CASE(a_call_that_does_not_fit_is_refused_with_its_sizes_before_it_is_enqueued,
                     *needs_ops({HEDDLE_OP_ADD, HEDDLE_OP_RMS_NORM, HEDDLE_OP_ACTIVATION,
                                 HEDDLE_OP_LINEAR})) {
  const Plugin plugin(settings().plugin);
  const Bench bench(plugin);
  const TestDevice::Buffer memory(bench, 4096);
  const auto f32 = [&](std::initializer_list<std::int64_t> shape) {
    return view_of(memory, device::row_major(HEDDLE_F32, shape));
  };
  const heddle_view x = f32({2, 8}), wrong = f32({2, 9}), vector = f32({8}), filter = f32({4, 9}),
                    four = f32({2, 4}),
                    ids = view_of(memory, device::row_major(HEDDLE_I32, {2, 8}));
  heddle_view backwards = x, nowhere = x;
  backwards.info.stride[1] = 2;
  nowhere.data = nullptr;
  const heddle_norm_attrs norm{1e-6};
  const heddle_activation_attrs none{HEDDLE_ACT_NONE}, unknown{77};
  const auto refuses = [&](const char* op, std::vector<const heddle_view*> in,
                           std::vector<const heddle_view*> out, const void* attrs,
                           std::uint32_t size, const char* part) {
    heddle_status* status =
        bench.launch(bench.stream(), op, std::move(in), std::move(out), attrs, size);
    BOOST_TEST_REQUIRE((status != nullptr), op << " should be refused: " << part);
    const Reason reason = take(status);
    BOOST_TEST(reason.code == HEDDLE_INVALID_ARGUMENT);
    BOOST_TEST(contains(reason.message, op), reason.message);
    BOOST_TEST(contains(reason.message, part), reason.message);
  };
  refuses(HEDDLE_OP_ADD, {&x, &wrong}, {&x}, nullptr, 0, "(2, 9)");
  refuses(HEDDLE_OP_ADD, {&x, nullptr}, {&x}, nullptr, 0, "missing");
  refuses(HEDDLE_OP_ADD, {&x, &ids}, {&x}, nullptr, 0, "i32");
  refuses(HEDDLE_OP_ADD, {&x, &backwards}, {&x}, nullptr, 0, "stride 2");
  refuses(HEDDLE_OP_ADD, {&x, &nowhere}, {&x}, nullptr, 0, "no memory");
  refuses(HEDDLE_OP_ADD, {&x, &x}, {}, nullptr, 0, "missing");
  refuses(HEDDLE_OP_RMS_NORM, {&wrong, &vector}, {&wrong}, &norm, sizeof norm, "(8)");
  refuses(HEDDLE_OP_RMS_NORM, {&x, &vector}, {&x}, nullptr, 0, "attributes");
  refuses(HEDDLE_OP_ACTIVATION, {&x}, {&x}, &unknown, sizeof unknown, "77");
  refuses(HEDDLE_OP_LINEAR, {&x, &filter}, {&four}, &none, sizeof none, "(4, 9)");
  bench.wait();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::conformance
