// Patches of weights: what is added, to which rows and columns, and which weights a change makes
// anew.
#include "engine/files/weight_patches.h"

#include <boost/test/unit_test.hpp>
#include <cstring>

#include "engine/base/error.h"
#include "engine/memory/weights.h"
#include "engine/tensor/shape.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/refusal.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using engine::WeightPatch;
using engine::WeightPatches;
using engine::WeightSource;
using Patches = std::shared_ptr<const WeightPatches>;

namespace {

// Numbers that differ from place to place.
std::vector<float> numbers(std::int64_t count, std::uint32_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = float(seed >> 8) / float(1u << 24) - 0.5f;
  }
  return values;
}

test::FileTensor tensor(const std::string& name, std::vector<std::int64_t> shape,
                        std::uint32_t seed) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return {name, "F32", std::move(shape), test::bytes_of_floats(numbers(count, seed))};
}

// All of a weight as numbers, whatever parts it is in.
std::vector<float> values_of(const engine::HostWeight& weight) {
  std::vector<float> all;
  for (const heddle_view& part : weight.parts) {
    BOOST_TEST_REQUIRE(part.info.dtype == HEDDLE_F32);
    const auto* values = static_cast<const float*>(part.data);
    all.insert(all.end(), values, values + engine::element_count(part.info));
  }
  return all;
}

struct WeightPatchesFixture {
  test::TemporaryFolder folder;
  engine::Checkpoint model = engine::open_checkpoint(
      folder.write("model.safetensors",
                   test::safetensors_bytes({tensor("a", {96, 80}, 1), tensor("b", {96, 80}, 2),
                                            tensor("c", {32, 6, 3, 3}, 3)})));
  engine::Checkpoint lora = engine::open_checkpoint(folder.write(
      "lora.safetensors",
      test::safetensors_bytes({tensor("up", {96, 7}, 4), tensor("down", {7, 80}, 5),
                               tensor("third", {32, 7}, 6), tensor("whole", {96, 80}, 7),
                               tensor("filter.up", {32, 2, 1, 1}, 8),
                               tensor("filter.down", {2, 6, 3, 3}, 9)})));

  Patches patched(std::vector<WeightPatch> list, const WeightPatches* before = nullptr) const {
    return WeightPatches::extend(before, model, lora, list);
  }
  Patches patched(double scale) const { return patched({{"up", "down", scale, {{"a"}}}}); }
  WeightSource source(const std::string& name, Patches patches = {}) const {
    const engine::TensorView& t = model.at(name);
    return {
        .parts = {{&t, 0, t.shape[0]}}, .use = HEDDLE_USE_LINEAR, .patches = std::move(patches)};
  }
  static std::vector<float> floats(const engine::TensorView& t) {
    std::vector<float> values(t.data.size() / sizeof(float));
    std::memcpy(values.data(), t.data.data(), t.data.size());
    return values;
  }
  // W + scale * up * down, in double.
  std::vector<float> wanted(const std::string& name, const std::string& up, const std::string& down,
                            double scale, std::int64_t first_row, std::int64_t first_up,
                            std::int64_t rows) const {
    std::vector<float> w = floats(model.at(name));
    const std::vector<float> b = floats(lora.at(up)), a = floats(lora.at(down));
    const std::int64_t rank = lora.at(down).shape[0], width = std::int64_t(a.size()) / rank;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < width; ++j) {
        double sum = 0;
        for (std::int64_t r = 0; r < rank; ++r)
          sum += double(b[std::size_t((first_up + i) * rank + r)]) * a[std::size_t(r * width + j)];
        float& element = w[std::size_t((first_row + i) * width + j)];
        element = float(element + scale * sum);
      }
    return w;
  }
};

constexpr double kRounding = 2e-7;  // a few roundings of f32

}  // namespace

BOOST_FIXTURE_TEST_SUITE(weight_patches, WeightPatchesFixture)

BOOST_AUTO_TEST_CASE(products_are_added_to_every_element) {
  const engine::HostWeight host = host_weight(source("a", patched(0.75)));
  BOOST_TEST(test::relative_error(values_of(host), wanted("a", "up", "down", 0.75, 0, 0, 96)) <
             kRounding);
  BOOST_TEST(host.made_bytes == 96u * 80u * sizeof(float));
  // The file's own pages are as they were.
  BOOST_TEST(floats(model.at("a")) == numbers(96 * 80, 1));
}

BOOST_AUTO_TEST_CASE(a_file_of_patches_that_is_cut_short_is_an_error_that_names_it) {
  const WeightSource patched_whole = source("a", patched({{"whole", "", 1.0, {{"a"}}}}));
  const std::filesystem::path path = lora.path();
  std::filesystem::resize_file(path, 4096);
  const engine::Error error = test::refusal_of([&] { host_weight(patched_whole); });
  BOOST_TEST((error.code() == engine::Code::io));
  BOOST_TEST(
      std::string(error.what()).find(path.string() + ": the bytes 4096 to") != std::string::npos,
      error.what());
}

BOOST_AUTO_TEST_CASE(merged_weights_equal_pytorch_in_every_type) {
  const auto path = test::tests_folder() / "plugins/goldens/loras/expected.safetensors";
  const engine::Checkpoint goldens = engine::open_checkpoint(path);
  const test::TensorFile expected(path);
  // One file for each factor, as two LoRAs have them.
  const auto half = [&](const std::string& name, std::size_t which) {
    const test::TensorFile::Entry& entry = expected.at("merge." + name);
    const std::size_t size = entry.bytes.size() / 2;
    return test::FileTensor{
        name, "F32", {entry.shape[1], entry.shape[2]}, entry.bytes.substr(which * size, size)};
  };
  std::vector<engine::Checkpoint> loras;
  for (const std::size_t which : {0u, 1u})
    loras.push_back(engine::open_checkpoint(
        folder.write(std::to_string(which) + ".safetensors",
                     test::safetensors_bytes({half("down", which), half("up", which)}))));
  for (const std::string type : {"f32", "bf16", "f16"}) {
    const engine::TensorView& weight = goldens.at("merge." + type);
    Patches patches;
    for (const std::size_t which : {0u, 1u})
      patches = WeightPatches::extend(
          patches.get(), goldens, loras[which],
          std::vector<WeightPatch>{{"up", "down", which == 0 ? 0.8 : -1.25, {{weight.name}}}});
    const engine::HostWeight host = engine::host_weight(
        {.parts = {{&weight, 0, weight.shape[0]}}, .use = HEDDLE_USE_LINEAR, .patches = patches});
    const double error = test::relative_error(values_of(host), expected.floats("merged." + type));
    BOOST_TEST(error < kRounding, type << ": relative error " << error);
  }
}

BOOST_AUTO_TEST_CASE(only_the_rows_that_a_patch_names_are_changed) {
  // Rows 40 to 72 of "a" get the third; the rest lies in the file as it did.
  const engine::HostWeight host =
      host_weight(source("a", patched({{"third", "down", 2, {{"a", 40, 72}}}})));
  BOOST_TEST_REQUIRE(host.parts.size() == 3u);
  BOOST_TEST(test::relative_error(values_of(host), wanted("a", "third", "down", 2, 40, 0, 32)) <
             kRounding);
  BOOST_TEST((host.parts[0].data == model.at("a").data.data()));
  BOOST_TEST(host.made_bytes == 32u * 80u * sizeof(float));
}

BOOST_AUTO_TEST_CASE(a_patch_may_be_spread_over_several_tensors) {
  const Patches patches = patched({{"up", "down", 1, {{"a", 64, 96}, {"b", 0, 64}}}});
  BOOST_TEST(test::relative_error(values_of(host_weight(source("a", patches))),
                                  wanted("a", "up", "down", 1, 64, 0, 32)) < kRounding);
  BOOST_TEST(test::relative_error(values_of(host_weight(source("b", patches))),
                                  wanted("b", "up", "down", 1, 0, 32, 64)) < kRounding);
}

BOOST_AUTO_TEST_CASE(the_bytes_do_not_depend_on_which_rows_and_columns_are_asked_for) {
  Patches patches = patched({{"up", "down", 0.5, {{"a"}}},
                             {"third", "down", -3, {{"a", 20, 52}}},
                             {"whole", "", 0.25, {{"a"}}}});
  const std::vector<float> all = values_of(host_weight(source("a", patches)));
  for (const auto& [begin, end] :
       {std::pair<std::int64_t, std::int64_t>{0, 1}, {19, 21}, {3, 90}, {51, 96}})
    for (const std::vector<WeightSource::Range>& columns :
         {std::vector<WeightSource::Range>{}, {{0, 1}}, {{79, 80}, {5, 38}}, {{10, 70}}}) {
      WeightSource part = source("a", patches);
      part.parts[0].begin = begin;
      part.parts[0].end = end;
      part.columns = columns;
      std::vector<float> same;
      const std::vector<WeightSource::Range> taken =
          columns.empty() ? std::vector<WeightSource::Range>{{0, 80}} : columns;
      for (std::int64_t row = begin; row < end; ++row)
        for (const WeightSource::Range& c : taken)
          same.insert(same.end(), all.begin() + row * 80 + c.begin, all.begin() + row * 80 + c.end);
      const std::vector<float> got = values_of(host_weight(part));
      BOOST_TEST_REQUIRE(got.size() == same.size());
      BOOST_TEST(std::memcmp(got.data(), same.data(), got.size() * sizeof(float)) == 0);
    }
}

BOOST_AUTO_TEST_CASE(filters_are_patched_by_filters_of_their_rank) {
  const Patches patches = patched({{"filter.up", "filter.down", 0.5, {{"c"}}}});
  BOOST_TEST(test::relative_error(values_of(host_weight(source("c", patches))),
                                  wanted("c", "filter.up", "filter.down", 0.5, 0, 0, 32)) <
             kRounding);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  const auto refusal = [&](const WeightPatch& patch) {
    try {
      patched({patch});
    } catch (const engine::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  BOOST_TEST(refusal({"third", "down", 1, {{"a"}}})
                 .find("'third' (32, 7) times 'down' (7, 80) cannot be added to 'a' (96, 80)") !=
             std::string::npos);
  BOOST_TEST(refusal({"up", "down", 1, {{"c"}}}).find("'c' (32, 6, 3, 3)") != std::string::npos);
  BOOST_TEST(refusal({"up", "filter.down", 1, {{"a"}}}).find("ranks 7 and 2") != std::string::npos);
  BOOST_TEST(refusal({"up", "down", 1, {{"a", 10, 200}}}).find("rows 10 to 200") !=
             std::string::npos);
  BOOST_TEST(refusal({"up", "down", 1, {{"d"}}}).find("'d'") != std::string::npos);
  BOOST_TEST(refusal({"up", "down", 1, {}}) != "");
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

struct StoreFixture : WeightPatchesFixture {
  test::Fakes fakes{"{}", 1};
  engine::WeightStore store{fakes.state(), 1 << 20};

  // How many weights a load of this model makes.
  std::uint64_t made_by(const Patches& patches) {
    const std::uint64_t before = fakes.control()->weights(0);
    std::vector<std::shared_ptr<const engine::DeviceWeight>> weights;
    for (const char* name : {"a", "b"})
      weights.push_back(store.get(source(name, patches), model.identity()));
    store.finish(weights);
    return fakes.control()->weights(0) - before;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(patched_weights, StoreFixture)

BOOST_AUTO_TEST_CASE(a_change_of_strength_makes_only_what_it_touches) {
  BOOST_TEST(made_by({}) == 2u);
  BOOST_TEST(made_by(patched(1)) == 1u);  // "b" is the plain model's
  BOOST_TEST(made_by(patched(0.5)) == 1u);
  BOOST_TEST(made_by(patched(1)) == 0u);  // another value, equal in all
  BOOST_TEST(made_by({}) == 0u);
  // A second LoRA on top is another weight; in another order, too, because the sum is taken in
  // order.
  const WeightPatch one{"up", "down", 1, {{"a"}}}, two{"whole", "", 2, {{"a"}}};
  BOOST_TEST(made_by(patched({two}, patched({one}).get())) == 1u);
  BOOST_TEST(made_by(patched({one}, patched({two}).get())) == 1u);
  // Rows that no patch touches are those of the plain model.
  WeightSource upper = source("a"),
               patched_upper = source("a", patched({{"third", "down", 1, {{"a", 64, 96}}}}));
  upper.parts[0].end = patched_upper.parts[0].end = 64;
  BOOST_TEST((upper.key(model.identity()) == patched_upper.key(model.identity())));
}

BOOST_AUTO_TEST_CASE(a_patched_weight_has_the_form_of_the_plain_one) {
  const heddle_weight_layout plain = store.layout(source("a")),
                             changed = store.layout(source("a", patched(1)));
  BOOST_TEST(plain.bytes == changed.bytes);
  BOOST_TEST(plain.info.dtype == changed.info.dtype);
  BOOST_TEST(plain.info.layout == changed.info.layout);
}

BOOST_AUTO_TEST_CASE(the_device_gets_the_merged_numbers) {
  const auto weight = store.get(source("a", patched(0.75)), model.identity());
  store.finish(std::vector{weight});
  std::vector<float> values(96 * 80);
  BOOST_TEST_REQUIRE(weight->layout.bytes == values.size() * sizeof(float));
  engine::Stream stream(fakes.device());
  fakes.device().copy(stream, nullptr, values.data(), &fakes.device(), weight->memory->data(),
                      weight->layout.bytes);
  stream.synchronize();
  BOOST_TEST(test::relative_error(values, wanted("a", "up", "down", 0.75, 0, 0, 96)) < kRounding);
}

BOOST_AUTO_TEST_SUITE_END()
