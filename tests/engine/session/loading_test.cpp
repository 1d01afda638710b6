// A session computes with its first weights while others are on their way, and gives nothing that
// it made of one that never came.
#include <boost/test/unit_test.hpp>

#include "engine/base/error.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/layers_model.h"

using namespace heddle;
using test::LayersModel;

BOOST_AUTO_TEST_SUITE(loading)

namespace {

engine::CallPlacement alone(const engine::Model&) {
  return {engine::ParallelMode::none, {0}, {}, {}, {}};
}

std::vector<std::byte> first_step(LayersModel& layers) {
  auto opened = layers.open(1, 1, alone);
  opened.step(0);
  const engine::Tensor& x =
      engine::get_tensor(**std::get<engine::Record>(opened.x[0]->content).find("x"));
  std::vector<std::byte> bytes(engine::dense_bytes(x->info));
  layers.state(0).read(x, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_step_begins_before_all_weights_are_there) {
  const test::FakeControl control;
  LayersModel layers({"fake:0"});
  const std::vector<std::byte> good = first_step(layers);
  layers.state(0).release_all();
  layers.runs.environment().devices[0].weights->drop_all();
  control->reset();
  control->fail_weight(0, LayersModel::kLayers);  // the last one
  BOOST_CHECK_THROW(first_step(layers), engine::Error);
  BOOST_TEST(control->faults(0) == 1u);
  BOOST_TEST(control->launches(0, "linear/1") >= LayersModel::kLayers - 1u);
  control->reset();
  BOOST_TEST((first_step(layers) == good));
}

BOOST_AUTO_TEST_SUITE_END()
