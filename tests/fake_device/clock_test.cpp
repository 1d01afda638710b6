// Simulated time: what ops and copies cost, what waits for what, and that nothing else matters.
#include <thread>

#include "heddle/abi/node.h"
#include "tests/fake_device/fake_fixture.h"

using namespace heddle;
using test::copy;
using test::DeviceBuffer;
using test::Fakes;
using test::fill;

namespace {

// Numbers that binary fractions hold exactly, so that times may be compared with ==. A copy of 25
// floats takes 0.5 + 1 seconds between fakes and 0.25 + 2 seconds to the host.
constexpr const char* kOptions = R"({"op_seconds": {"fill": 1, "*": 8},
    "links": {"peer": {"bandwidth": 100, "latency": 0.5}, "host": {"bandwidth": 50, "latency": 0.25}}})";

double elapsed(const engine::Event& begin, const engine::Event& end, const engine::Device& device) {
  double seconds = -1;
  engine::throw_status(device.extensions().timing->elapsed(begin.raw(), end.raw(), &seconds),
                       "elapsed");
  return seconds;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fake_clock)

BOOST_AUTO_TEST_CASE(a_diamond_over_two_devices_takes_its_longer_branch_and_its_transfers) {
  const Fakes fakes(kOptions, 2);
  const DeviceBuffer x(fakes.device(0), 25), near(fakes.device(0), 25), far(fakes.device(1), 25),
      back(fakes.device(0), 25);
  engine::Stream first(fakes.device(0)), second(fakes.device(1)), out(fakes.device(0)),
      in(fakes.device(1));
  const engine::Event begin(fakes.device(0)), made(fakes.device(0)), there(fakes.device(0)),
      computed(fakes.device(1)), returned(fakes.device(1)), end(fakes.device(0));
  first.record(begin);
  fill(fakes, first, x, 1);  // 1
  first.record(made);
  fill(fakes, first, near, 2);  // 2
  fill(fakes, first, near, 3);  // 3
  out.wait_for(made);
  copy(out, far, x);  // 2.5
  out.record(there);
  second.wait_for(there);
  fill(fakes, second, far, 4);  // 3.5
  second.record(computed);
  in.wait_for(computed);
  copy(in, back, far);  // 5
  in.record(returned);
  first.wait_for(returned);
  fill(fakes, first, x, 5);  // 6
  first.record(end);
  end.wait();
  BOOST_TEST(elapsed(begin, made, fakes.device(0)) == 1.0);
  BOOST_TEST(elapsed(begin, there, fakes.device(0)) == 2.5);
  BOOST_TEST(elapsed(begin, computed, fakes.device(0)) == 3.5);
  BOOST_TEST(elapsed(begin, end, fakes.device(0)) == 6.0);
  BOOST_TEST(fakes.control()->now(0) == 6.0);
  BOOST_TEST(fakes.control()->now(1) == 5.0);
  BOOST_TEST(back.read() == std::vector<float>(25, 4.0f));
}

BOOST_AUTO_TEST_CASE(copies_queue_for_a_link_in_one_direction_only) {
  const Fakes fakes(kOptions, 2);
  const DeviceBuffer a(fakes.device(0), 25), b(fakes.device(1), 25), c(fakes.device(0), 25),
      d(fakes.device(1), 25);
  const DeviceBuffer e(fakes.device(0), 25), f(fakes.device(1), 25);
  engine::Stream one(fakes.device(0)), two(fakes.device(0)), three(fakes.device(1));
  copy(one, b, a);
  copy(two, d, c);
  BOOST_TEST(fakes.control()->now(0) == 3.0);
  copy(three, e, f);  // the other way: at once
  BOOST_TEST(fakes.control()->now(1) == 1.5);
  BOOST_TEST(fakes.control()->link_busy(0, 1) == 3.0);
  BOOST_TEST(fakes.control()->link_busy(1, 0) == 1.5);
  BOOST_TEST(fakes.control()->bytes_copied(0, 1) == 200u);
  BOOST_TEST(fakes.control()->bytes_copied(1, 0) == 100u);
  BOOST_TEST(fakes.control()->copies(0) == 2u);
}

BOOST_AUTO_TEST_CASE(a_link_serves_who_is_ready_first_and_not_who_was_enqueued_first) {
  const Fakes fakes(kOptions, 2);
  const DeviceBuffer a(fakes.device(0), 25), b(fakes.device(1), 25), c(fakes.device(0), 25),
      d(fakes.device(1), 25);
  engine::Stream late(fakes.device(0)), early(fakes.device(0));
  const engine::Event begin(fakes.device(0)), late_done(fakes.device(0)),
      early_done(fakes.device(0));
  late.record(begin);
  fill(fakes, late, a, 1);
  fill(fakes, late, a, 2);
  copy(late, b, a);  // ready at 2
  late.record(late_done);
  copy(early, d, c);  // ready at 0
  early.record(early_done);
  late.synchronize();
  early.synchronize();
  BOOST_TEST(elapsed(begin, early_done, fakes.device(0)) == 1.5);
  BOOST_TEST(elapsed(begin, late_done, fakes.device(0)) == 3.5);
}

BOOST_AUTO_TEST_CASE(times_are_the_same_whichever_thread_is_faster) {
  const Fakes fakes(kOptions, 3);
  for (int repeat = 0; repeat < 20; ++repeat) {
    fakes.control()->reset();
    std::vector<std::unique_ptr<DeviceBuffer>> sources, targets;
    for (int i = 0; i < 3; ++i) {
      sources.push_back(std::make_unique<DeviceBuffer>(fakes.device(0), 25));
      targets.push_back(std::make_unique<DeviceBuffer>(fakes.device(2), 25));
    }
    std::vector<std::unique_ptr<engine::Stream>> streams;
    std::vector<std::unique_ptr<engine::Event>> events;
    for (int i = 0; i < 3; ++i) {
      streams.push_back(std::make_unique<engine::Stream>(fakes.device(0)));
      events.push_back(std::make_unique<engine::Event>(fakes.device(0)));
    }
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < 3; ++i)
        threads.emplace_back([&, i] {
          for (std::size_t n = 0; n <= i; ++n)
            fill(fakes, *streams[i], *sources[i], 1);  // ready at 1, 2, 3
          copy(*streams[i], *targets[i], *sources[i]);
          streams[i]->record(*events[i]);
        });
    }
    const engine::Event zero(fakes.device(0));
    engine::Stream idle(fakes.device(0));
    idle.record(zero);
    idle.synchronize();
    std::vector<double> ends;
    for (std::size_t i = 0; i < 3; ++i) {
      events[i]->wait();
      ends.push_back(elapsed(zero, *events[i], fakes.device(0)));
    }
    BOOST_TEST(ends == (std::vector<double>{2.5, 4.0, 5.5}), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_thread_that_waited_enqueues_later) {
  const Fakes fakes(kOptions, 2);
  const DeviceBuffer a(fakes.device(0), 4), b(fakes.device(1), 4);
  engine::Stream busy(fakes.device(0)), idle(fakes.device(1));
  fill(fakes, busy, a, 1);
  fill(fakes, busy, a, 1);
  busy.synchronize();
  BOOST_TEST(fakes.control()->thread_now() == 2.0);
  fill(fakes, idle, b, 1);
  BOOST_TEST(fakes.control()->now(1) == 3.0);
  std::jthread([&] { fill(fakes, idle, b, 1); }).join();
  BOOST_TEST(fakes.control()->now(1) == 4.0);  // behind the stream's own work
}

BOOST_AUTO_TEST_CASE(an_op_takes_what_its_flops_or_bytes_say) {
  const Fakes fakes(R"({"flops": 1024, "bandwidth": 64, "launch_seconds": 0.5})");
  const DeviceBuffer a(fakes.device(), 32);
  engine::Stream stream(fakes.device());
  fill(fakes, stream, a, 1);  // 128 bytes written
  BOOST_TEST(fakes.control()->now(0) == 2.5);
  engine::DeviceState& state = fakes.state();
  const std::int64_t x_shape[] = {8, 16}, w_shape[] = {4, 16}, out_shape[] = {8, 4};
  const engine::Tensor x = state.make(engine::make_info(HEDDLE_F32, x_shape)),
                       w = state.make(engine::make_info(HEDDLE_F32, w_shape)),
                       out = state.make(engine::make_info(HEDDLE_F32, out_shape));
  fakes.control()->reset();
  heddle_tensor* const in[] = {x.get(), w.get()};
  heddle_tensor* const to[] = {out.get()};
  const heddle_activation_attrs attrs{HEDDLE_ACT_NONE};
  state.op(engine::op_id(HEDDLE_OP_LINEAR), in, to, std::as_bytes(std::span(&attrs, 1)));
  // 1024 flops in 1 s; 512 + 256 + 128 bytes in 14 s
  BOOST_TEST(fakes.control()->now(0) == 14.5);
}

BOOST_AUTO_TEST_CASE(a_weight_costs_its_bytes_on_the_way_from_the_host) {
  const Fakes fakes(kOptions);
  const std::vector<float> values(25, 0.5f);
  const std::int64_t shape[] = {25};
  const heddle_weight_layout layout =
      fakes.device().weight_layout(HEDDLE_USE_VECTOR, engine::make_info(HEDDLE_F32, shape));
  const DeviceBuffer weight(fakes.device(), 25);
  engine::Stream stream(fakes.device());
  const heddle_view part{engine::make_info(HEDDLE_F32, shape), const_cast<float*>(values.data())};
  fakes.device().make_weight(stream, HEDDLE_USE_VECTOR, layout, {part}, weight.data());
  stream.synchronize();
  BOOST_TEST(fakes.control()->now(0) == 2.25);
  BOOST_TEST(fakes.control()->bytes_copied(HEDDLE_FAKE_HOST, 0) == 100u);
  BOOST_TEST(fakes.control()->weights(0) == 1u);
  BOOST_TEST(weight.read() == values);
}

BOOST_AUTO_TEST_CASE(links_are_as_configured_and_may_change) {
  const Fakes fakes(R"({"links": {"peer": {"bandwidth": 100}, "host": {"bandwidth": 10},
      "pairs": {"0-1": {"bandwidth": 200, "latency": 3}, "2>0": {"bandwidth": 7}}}})",
                    3);
  const auto link = [&](std::size_t from, std::size_t to) {
    return fakes.device(from).link(&fakes.device(to));
  };
  BOOST_TEST(link(0, 1).bytes_per_second == 200.0);
  BOOST_TEST(link(1, 0).latency_seconds == 3.0);
  BOOST_TEST(link(2, 0).bytes_per_second == 7.0);
  BOOST_TEST(link(0, 2).bytes_per_second == 100.0);
  BOOST_TEST(link(1, 1).kind == HEDDLE_LINK_SAME);
  BOOST_TEST(fakes.device(1).link(nullptr).bytes_per_second == 10.0);
  fakes.control()->set_link(0, 0, 1, 400, 0);
  BOOST_TEST(link(0, 1).bytes_per_second == 400.0);
}

BOOST_AUTO_TEST_SUITE_END()
