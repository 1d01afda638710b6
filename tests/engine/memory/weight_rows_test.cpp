// Large matrices that pass to a device in groups of rows.
#include "engine/memory/weight_rows.h"

#include <boost/test/unit_test.hpp>
#include <future>
#include <map>

#include "engine/memory/weights.h"
#include "tests/engine/memory/host_fixture.h"

using namespace heddle;

namespace {

constexpr std::uint64_t kGroup = 16 << 10;  // a quarter of a tensor: 4 of its rows

struct RowGroups : test::HostFixture {
  RowGroups() { write(kCount, 300); }
  ~RowGroups() {
    stores.clear();
    for (const engine::RunDevice& device : devices) device.state->use_host_weights(nullptr);
  }

  void hold(unsigned readers, unsigned copiers, std::uint64_t staging = 3 * kGroup) {
    stores.clear();
    make(engine::HostBudget::kUnlimited, staging, staging, readers, copiers, 1, kGroup);
    for (const engine::RunDevice& device : devices) device.state->use_host_weights(&*host);
  }
  engine::DeviceState& state(std::size_t fake = 0) { return *devices[1 + fake].state; }
  engine::WeightStore& store(std::size_t fake = 0) {
    if (!stores.contains(fake)) stores.try_emplace(fake, state(fake), 64 << 20);
    return stores.at(fake);
  }
  // Some rows of each of two tensors, which lie one after another on the device.
  engine::WeightSource joined(std::size_t first) const {
    return {.parts = {{&checkpoint->at(std::to_string(first)), 1, 16},
                      {&checkpoint->at(std::to_string(first + 1)), 0, 10}}};
  }
  std::shared_ptr<const engine::DeviceWeight> load(const engine::WeightSource& source,
                                                   std::size_t fake = 0) {
    auto weight = store(fake).get(source, checkpoint->identity());
    store(fake).finish({&weight, 1});
    return weight;
  }
  bool is_right(const engine::DeviceWeight& weight, const engine::WeightSource& source) {
    std::string wanted;
    for (const engine::FilePart& part : engine::file_parts(source))
      wanted += content.substr(part.offset, part.bytes);
    const engine::Device& device = weight.memory->state().device();
    std::string got(weight.layout.bytes, ' ');
    engine::Stream stream(device);
    device.copy(stream, nullptr, got.data(), &device, weight.memory->data(), got.size());
    stream.synchronize();
    return got == wanted;
  }

  static constexpr std::size_t kCount = 8;
  std::map<std::size_t, engine::WeightStore> stores;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(weight_rows, RowGroups)

BOOST_AUTO_TEST_CASE(groups_are_all_rows_in_order_and_of_about_one_size) {
  hold(0, 0);
  const engine::WeightSource source = joined(0);
  std::vector<engine::WeightSource::Part> seen;
  for (const engine::WeightSource& group : engine::row_groups(source, state())) {
    BOOST_TEST(group.parts.size() == 1u);
    const engine::WeightSource::Part& part = group.parts.at(0);
    const std::int64_t rows = part.end - part.begin;
    BOOST_TEST((rows == 3 || rows == 4));
    if (!seen.empty() && seen.back().tensor == part.tensor)
      BOOST_TEST(seen.back().end == part.begin);
    seen.push_back(part);
  }
  BOOST_REQUIRE(seen.size() == 7u);
  BOOST_TEST(seen.front().begin == 1);
  BOOST_TEST(seen[3].end == 16);
  BOOST_TEST(seen[4].begin == 0);
  BOOST_TEST(seen.back().end == 10);
  // Rows larger than a group go one by one.
  write(1, 0, 32 * kGroup);
  const engine::WeightSource wide{.parts = {{&checkpoint->at("0"), 0, 16}}};
  BOOST_TEST(engine::row_groups(wide, state()).size() == 16u);
}

BOOST_AUTO_TEST_CASE(what_is_small_or_made_or_for_the_host_stays_whole) {
  hold(0, 0);
  const engine::WeightSource small{.parts = {{&checkpoint->at("0"), 0, 4}}};
  BOOST_TEST(engine::row_groups(small, state()).size() == 1u);
  BOOST_TEST(engine::row_groups(joined(0), *devices[0].state).size() == 1u);
  engine::WeightSource columns = joined(0);
  columns.columns = {{0, 8}};
  BOOST_TEST(engine::row_groups(columns, state()).size() == 1u);
  engine::WeightSource fp8 = joined(0);
  fp8.use = HEDDLE_USE_LINEAR_FP8;
  BOOST_TEST(engine::row_groups(fp8, state()).size() == 1u);
  write(1, 0, 16 * 4100);  // groups would begin where no memory does
  const engine::WeightSource odd{.parts = {{&checkpoint->at("0"), 0, 16}}};
  BOOST_TEST(engine::row_groups(odd, state()).size() == 1u);
  BOOST_TEST(is_right(*load(odd), odd));
}

// Twice as large as all buffers.
BOOST_AUTO_TEST_CASE(a_matrix_larger_than_the_buffers_passes_through_them) {
  for (const auto& [readers, copiers] : {std::pair{0u, 0u}, {0u, 3u}, {2u, 0u}, {2u, 3u}}) {
    hold(readers, copiers);
    std::vector<engine::FilePart> wanted;
    for (std::size_t i = 0; i < kCount; i += 2)
      std::ranges::copy(engine::loaded_parts(joined(i), state()), std::back_inserter(wanted));
    {
      const engine::Expectation expected = host->expect(wanted, engine::UseOrder::once, fake());
      for (std::size_t i = 0; i < kCount; i += 2) BOOST_TEST(is_right(*load(joined(i)), joined(i)));
    }
    BOOST_TEST(control->pinned_peak_bytes(0) <= 3 * kGroup);
    BOOST_TEST(control->pinned_peak_bytes(0) > 0u);
    std::uint64_t bytes = 0;
    for (const engine::FilePart& part : wanted) bytes += part.bytes;
    BOOST_TEST(host->report().read_first == bytes);
    BOOST_TEST(host->report().read_again == 0u);
  }
}

// Whichever copy fails, the weight is not there, and comes when it is asked for again.
BOOST_AUTO_TEST_CASE(a_group_that_fails_fails_the_weight) {
  std::size_t failed = 0;
  for (std::uint64_t nth = 1; nth <= 7; ++nth) {
    hold(2, 2);
    control->reset();
    control->fail_weight(0, nth);
    const engine::Error error = test::error_of([&] { load(joined(0)); });
    failed += error.code() == engine::Code::io ? 1 : 0;
    control->fail_weight(0, 0);
    BOOST_TEST(!store().has(joined(0), checkpoint->identity()));
    BOOST_TEST(is_right(*load(joined(0)), joined(0)));
  }
  BOOST_TEST(failed == 7u);
}

// Both load the same at once, and each takes what it needs.
BOOST_AUTO_TEST_CASE(two_threads_that_want_others_get_theirs) {
  hold(2, 2, 6 * kGroup);
  std::vector<std::future<bool>> all;
  for (std::size_t i = 0; i < kCount; i += 2)
    for (std::size_t fake = 0; fake < 2; ++fake) {
      store(fake);
      all.push_back(std::async(std::launch::async, [this, i, fake] {
        return is_right(*load(joined(i), fake), joined(i));
      }));
    }
  for (std::future<bool>& one : all) BOOST_TEST(one.get());
}

BOOST_AUTO_TEST_SUITE_END()
