#include "engine/place/device_groups.h"

#include <boost/test/unit_test.hpp>

#include "engine/base/text.h"
#include "tests/support/shape_models.h"

using namespace heddle;
using namespace heddle::engine;

BOOST_AUTO_TEST_SUITE(device_groups)

namespace {

std::string text_of(const std::vector<GroupSizes>& sizes) {
  std::vector<std::string> texts;
  for (const GroupSizes& s : sizes)
    texts.push_back(cat(s.set_shares, "x", s.item_shares, "x", s.ranks));
  return join(texts, " ");
}

constexpr ParallelMode kCfgLayers = ParallelMode::cfg | ParallelMode::layers;

Topology cards(const std::vector<std::uint64_t>& gigabytes) {
  Topology topology;
  for (std::size_t d = 0; d < gigabytes.size(); ++d) {
    DeviceFacts device;
    device.name = cat("gpu:", d);
    device.kind = "gpu";
    device.model = cat("Card ", gigabytes[d]);
    device.memory_total = device.memory_free = gigabytes[d] << 30;
    topology.devices.push_back(std::move(device));
  }
  const std::size_t ends = topology.devices.size() + 1;
  topology.links.assign(ends * ends, {LinkFacts::Kind::direct, 1e9, 1e-5});
  return topology;
}

void link(Topology& topology, std::size_t a, std::size_t b, double bytes_per_second) {
  const std::size_t ends = topology.devices.size() + 1;
  for (const std::size_t at : {a * ends + b, b * ends + a})
    topology.links[at].bytes_per_second = bytes_per_second;
}

}  // namespace

BOOST_AUTO_TEST_CASE(numbers_of_devices_are_shared_out_in_every_way) {
  BOOST_TEST(text_of(group_sizes(kCfgLayers, 4, false, {2, 1})) == "2x1x2");
  BOOST_TEST(text_of(group_sizes(kCfgLayers, 8, false, {2, 1})) == "2x1x2 2x1x3 2x1x4");
  BOOST_TEST(text_of(group_sizes(kCfgLayers, 3, false, {2, 1})) == "");
  BOOST_TEST(text_of(group_sizes(ParallelMode::cfg | ParallelMode::data, 8, false, {2, 3})) ==
             "2x2x1 2x3x1");
  BOOST_TEST(text_of(group_sizes(kCfgLayers, 8, true, {2, 1})) == "2x1x4");
  BOOST_TEST(text_of(group_sizes(kCfgLayers, 5, true, {2, 1})) == "");
  // As many shares as there are branches, too.
  BOOST_TEST(text_of(group_sizes(kCfgLayers, 6, false, {3, 1})) == "2x1x2 2x1x3 3x1x2");
}

BOOST_AUTO_TEST_CASE(groups_keep_to_their_fast_links) {
  Topology topology = cards({16, 16, 16, 16});
  link(topology, 0, 2, 1e11);
  link(topology, 1, 3, 1e11);
  const Prices prices(topology, {});
  BOOST_TEST(
      grouped_devices({0, 1, 2, 3}, {2, 1, 2}, prices) == (std::vector<std::uint32_t>{0, 2, 1, 3}),
      boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(groups_are_alike_rank_by_rank) {
  const Topology topology = cards({24, 24, 12, 12});
  const Prices prices(topology, {});
  BOOST_TEST(
      grouped_devices({0, 1, 2, 3}, {2, 1, 2}, prices) == (std::vector<std::uint32_t>{0, 2, 1, 3}),
      boost::test_tools::per_element());
  const Topology odd = cards({24, 16, 12, 8});
  BOOST_TEST(grouped_devices({0, 1, 2, 3}, {2, 1, 2}, Prices(odd, {})).empty());
}

BOOST_AUTO_TEST_SUITE_END()
