#include "engine/run/transfers.h"

#include <boost/test/unit_test.hpp>

#include "tests/engine/run/run_fixture.h"

using namespace heddle;
using namespace heddle::test;

namespace {

// The cpu plugin's device, which says that the host cannot see its memory, and counts copies.
std::atomic<int> copies{0};
const heddle_device_desc* real_desc = nullptr;

heddle_status* hidden_info(heddle_device* device, heddle_device_info* info) {
  heddle_status* const status = real_desc->info(device, info);
  info->host_visible = 0;
  return status;
}

heddle_status* counted_copy(heddle_stream* stream, heddle_device* to, void* dst,
                            heddle_device* from, const void* src, std::size_t bytes) {
  ++copies;
  return real_desc->copy(stream, to, dst, from, src, bytes);
}

struct HiddenDevices : TwoDevices {
  HiddenDevices() {
    real_desc = plugins.devices.front().desc;
    heddle_device_desc desc = *real_desc;
    desc.info = &hidden_info;
    desc.copy = &counted_copy;
    environment.devices.clear();
    for (std::uint32_t i = 0; i < 2; ++i) {
      heddle_device* raw = nullptr;
      const engine::Value options =
          engine::make_record({{"threads", engine::make_value(std::int64_t{1})}});
      engine::throw_status(desc.open(engine::plugin_host(), i, options.get(), &raw), "open");
      auto device = std::make_shared<const engine::Device>(
          engine::DeviceIdentity{{"hidden:" + std::to_string(i), desc.kind}}, desc, raw,
          plugins.devices.front().plugin);
      engine::RunDevice& opened = environment.devices.emplace_back();
      opened.state = std::make_unique<engine::DeviceState>(device, plugins.kernels);
      opened.weights = std::make_unique<engine::WeightStore>(*opened.state, 1 << 20);
    }
    environment.topology = engine::topology_of(environment.devices);
    copies = 0;
  }
};

void give_tensor(heddle_ctx& ctx) {
  const std::vector<float> values{1, 2, 3, 4};
  const heddle_tensor_info info{sizeof(heddle_tensor_info), HEDDLE_F32, 1, 0, {4}};
  ctx.set_output(0, engine::make_value(ctx.upload(info, values.data())));
}

float last_element(heddle_ctx& ctx, std::uint32_t input) {
  float values[4];
  ctx.read(engine::get_tensor(*ctx.input(input)).get(), values, sizeof values);
  return values[3];
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(transfers, HiddenDevices)

BOOST_AUTO_TEST_CASE(a_tensor_is_brought_once_for_all_readers_of_a_device) {
  const auto copies_for = [&](int readers) {
    Flow flow;
    const auto source = flow.add("source", Place::first, {}, give_tensor);
    std::vector<const heddle_value*> seen;
    for (int i = 0; i < readers; ++i)
      flow.add(
          std::to_string(i), Place::second, {{{source, 0}}},
          [&](heddle_ctx& ctx) {
            seen.push_back(ctx.input(0));
            if (std::string_view(engine::get_tensor(*ctx.input(0))->storage->place()) != "hidden:1")
              throw engine::Error(engine::Code::internal, "it lies elsewhere");
            give_number(ctx, 0);
          },
          HEDDLE_NODE_SINK | HEDDLE_NODE_IMPURE);
    copies = 0;
    run(flow);
    BOOST_TEST(seen.size() == std::size_t(readers));
    for (const heddle_value* value : seen) BOOST_TEST(value == seen.front());
    return copies.load();
  };
  const int for_none = copies_for(0), for_one = copies_for(1);
  BOOST_TEST(for_one > for_none);
  BOOST_TEST(copies_for(5) == for_one);
}

BOOST_AUTO_TEST_CASE(host_readers_of_two_queues_share_one_copy_in_host_memory) {
  Flow flow;
  const auto source = flow.add("source", Place::first, {}, give_tensor);
  std::mutex mutex;
  std::vector<const heddle_value*> seen;
  for (const Place place : {Place::first, Place::second, Place::host})
    flow.add(
        std::to_string(int(place)), place, {{{source, 0}, HEDDLE_PORT_HOST}},
        [&](heddle_ctx& ctx) {
          const engine::Tensor& tensor = engine::get_tensor(*ctx.input(0));
          if (std::string_view(tensor->storage->place()) != "host" || last_element(ctx, 0) != 4.0f)
            throw engine::Error(engine::Code::internal, "it is not the host's");
          const std::lock_guard lock(mutex);
          seen.push_back(ctx.input(0));
          give_number(ctx, 0);
        },
        HEDDLE_NODE_SINK | HEDDLE_NODE_IMPURE);
  run(flow);
  BOOST_TEST_REQUIRE(seen.size() == 3u);
  BOOST_TEST(seen[0] == seen[1]);
  BOOST_TEST(seen[0] == seen[2]);
}

BOOST_AUTO_TEST_CASE(a_copy_goes_after_its_last_reader) {
  Flow flow;
  const auto source = flow.add("source", Place::first, {}, give_tensor);
  const auto read = flow.add("read", Place::second, {{{source, 0}}},
                             [&](heddle_ctx& ctx) { give_number(ctx, 0); });
  std::uint64_t used_later = 1;
  const auto look = flow.add("look", Place::second, {{{read, 0}}}, [&](heddle_ctx& ctx) {
    used_later = environment.devices[1].state->pool().use().used;
    give_number(ctx, 0);
  });
  // It still reads what lies on the first device.
  flow.add(
      "last", Place::first, {{{source, 0}}, {{look, 0}}},
      [&](heddle_ctx& ctx) { give_number(ctx, std::int64_t(last_element(ctx, 0))); },
      HEDDLE_NODE_SINK | HEDDLE_NODE_IMPURE);
  run(flow);
  BOOST_TEST(used_later == 0u);
  BOOST_TEST(bytes_used() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
