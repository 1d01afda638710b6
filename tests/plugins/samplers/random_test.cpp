// Noise against what PyTorch wrote: every vector of rng_golden.json (CRC-32 of all bytes, first and
// last values) for each arithmetic and path, and the rules for batches and repeated calls.
#include "plugins/samplers/random.h"

#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>
#include <string>

#include "golden.h"

namespace {

using heddle::samplers::Arithmetic;
using heddle::samplers::Generator;
using heddle::samplers::initial_noise;
using heddle::samplers::NormalPath;
using heddle::samplers::testing::crc_of;
using heddle::samplers::testing::load;

std::vector<float> draw(Generator generator, std::size_t count) {
  std::vector<float> values(count);
  generator.normal(values);
  return values;
}

// Compares with every vector that has `form`; vectors of fewer than 16 values have one form only.
void check_vectors(const char* form, Arithmetic arithmetic, NormalPath path,
                   std::size_t expected_vectors) {
  const rapidjson::Document golden = load("rng_golden.json");
  std::size_t checked = 0;
  for (const auto& vector : golden["vectors"].GetArray()) {
    const std::uint64_t seed = vector["seed"].GetUint64();
    const std::size_t count = vector["n"].GetUint64();
    const char* key = count < 16 ? "scalar" : form;
    BOOST_REQUIRE(vector.HasMember(key));
    const auto& expected = vector[key];
    const std::vector<float> values = draw(Generator(seed, arithmetic, path), count);
    BOOST_TEST_CONTEXT("seed " << seed << " n " << count) {
      BOOST_TEST(crc_of(values) == expected["crc32"].GetString());
      const auto& first = expected["first"].GetArray();
      for (rapidjson::SizeType k = 0; k < first.Size(); ++k) {
        BOOST_TEST(values[k] == static_cast<float>(first[k].GetDouble()));
      }
      BOOST_TEST(values.back() == static_cast<float>(expected["last"].GetDouble()));
    }
    ++checked;
  }
  BOOST_TEST(checked == expected_vectors);
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(scalar_path_equals_every_vector_of_the_avx2_build) {
  check_vectors("avx2", Arithmetic::kContracted, NormalPath::kScalar, 66);
}

BOOST_AUTO_TEST_CASE(automatic_path_equals_every_vector_of_the_avx2_build) {
  check_vectors("avx2", Arithmetic::kContracted, NormalPath::kAuto, 66);
}

BOOST_AUTO_TEST_CASE(avx2_path_equals_every_vector_or_is_refused_where_it_cannot_run) {
  if (heddle::samplers::has_avx2_normals()) {
    check_vectors("avx2", Arithmetic::kContracted, NormalPath::kAvx2, 66);
  } else {
    BOOST_CHECK_THROW(Generator(0, Arithmetic::kContracted, NormalPath::kAvx2),
                      std::invalid_argument);
  }
}

BOOST_AUTO_TEST_CASE(library_arithmetic_equals_every_vector_of_the_portable_build) {
  check_vectors("scalar", Arithmetic::kLibrary, NormalPath::kAuto, 66);
}

BOOST_AUTO_TEST_CASE(both_paths_give_the_same_bits_for_every_size_around_the_groups) {
  for (std::size_t count = 0; count < 200; ++count) {
    const auto automatic = draw(Generator(count * 77 + 5), count);
    const auto scalar =
        draw(Generator(count * 77 + 5, Arithmetic::kContracted, NormalPath::kScalar), count);
    BOOST_TEST(same_bits(automatic, scalar), "count " << count);
  }
}

BOOST_AUTO_TEST_CASE(only_the_low_half_of_the_seed_counts) {
  BOOST_TEST(same_bits(initial_noise(42, 100), initial_noise((1ull << 32) + 42, 100)));
  BOOST_TEST(!same_bits(initial_noise(42, 100), initial_noise(43, 100)));
}

// Golden sequences of calls on one generator: small calls keep the second value of a pair, large
// calls between them leave it alone.
BOOST_AUTO_TEST_CASE(calls_on_one_generator_follow_each_other_as_in_pytorch) {
  const rapidjson::Document golden = load("sequence_golden.json");
  for (const auto& sequence : golden["sequences"].GetArray()) {
    Generator generator(sequence["seed"].GetUint64());
    for (const auto& call : sequence["calls"].GetArray()) {
      std::vector<float> values(call["n"].GetUint64());
      generator.normal(values);
      BOOST_TEST(crc_of(values) == call["crc32"].GetString());
    }
  }
}

BOOST_AUTO_TEST_CASE(batch_index_takes_items_drawn_one_by_one) {
  const rapidjson::Document golden = load("sequence_golden.json");
  for (const auto& batch : golden["batches"].GetArray()) {
    std::vector<std::int64_t> index;
    for (const auto& item : batch["index"].GetArray()) index.push_back(item.GetInt64());
    const auto noise = initial_noise(batch["seed"].GetUint64(), batch["item"].GetUint64(), index);
    BOOST_TEST(crc_of(noise) == batch["crc32"].GetString());
  }
}

BOOST_AUTO_TEST_CASE(negative_batch_index_is_refused_with_its_place_and_value) {
  const std::vector<std::int64_t> index = {0, -3};
  BOOST_CHECK_EXCEPTION(initial_noise(1, 16, index), std::invalid_argument, [](const auto& error) {
    const std::string text = error.what();
    return text.find("batch_index[1] is -3") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(an_empty_batch_index_gives_no_noise) {
  BOOST_TEST(initial_noise(1, 16, std::span<const std::int64_t>()).empty());
  BOOST_TEST(initial_noise(1, 0).empty());
}
