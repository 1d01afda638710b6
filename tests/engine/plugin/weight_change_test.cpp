// Changes of weights that plugins compute: who drops them where the model cannot have them.
#include <array>
#include <boost/test/unit_test.hpp>

#include "engine/base/error.h"
#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/tensor/value.h"
#include "tests/support/refusal.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace {

using namespace heddle::engine;
using heddle::test::refusal_of;

// Three changes, each counted when it is dropped.
struct Changes {
  heddle::test::TemporaryFolder folder;
  heddle_checkpoint file{open_checkpoint(folder.write(
      "file.safetensors",
      heddle::test::safetensors_bytes({{"w", "F32", {1}, heddle::test::bytes_of_floats({1})}})))};
  std::array<heddle_part, 3> parts;
  std::array<heddle_weight_change, 3> changes;
  std::array<int, 3> drops{};

  Changes() {
    for (std::size_t i = 0; i < changes.size(); ++i) {
      parts[i] = {sizeof(heddle_part), "w", 0, HEDDLE_ALL_ROWS, 0};
      changes[i] = {
          sizeof(heddle_weight_change),
          &parts[i],
          "a change",
          [](void*, std::int64_t, std::int64_t, float*) -> heddle_status* { return nullptr; },
          &drops[i],
          [](void* self) { ++*static_cast<int*>(self); }};
    }
  }
  std::string refusal() const {
    std::vector<const heddle_weight_change*> all;
    for (const heddle_weight_change& change : changes) all.push_back(&change);
    const Value no_model = make_value("no model");
    return refusal_of([&] {
             heddle_value* out = nullptr;
             throw_status(weight_change_service()->with_changes(
                              no_model.get(), &file, std::uint32_t(all.size()), all.data(), &out),
                          "with_changes");
           })
        .what();
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(weight_change, Changes)

BOOST_AUTO_TEST_CASE(every_change_is_dropped_once_where_one_is_wrong) {
  parts[1].tensor = nullptr;
  BOOST_TEST(refusal().find("the change 1 of a model's weights names no tensor") !=
             std::string::npos);
  BOOST_TEST(drops == (std::array{1, 1, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(every_change_is_dropped_once_where_there_is_no_model) {
  BOOST_TEST(!refusal().empty());
  BOOST_TEST(drops == (std::array{1, 1, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
