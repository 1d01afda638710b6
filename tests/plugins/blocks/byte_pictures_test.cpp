// Pictures as bytes in another size, against torchvision
// (plugins/goldens/make_gemma4_picture_goldens.py), and sizes in tokens.
#include "plugins/blocks/byte_pictures.h"

#include <boost/test/unit_test.hpp>

#include "plugins/encoders/token_sizes.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/tensor_file.h"

namespace heddle::blocks {
namespace {

using heddle::test::FileTensor;
using heddle::test::seeded_tensor;
using heddle::test::TensorFile;
using heddle::test::tests_folder;

// As the generator draws them: from 0 to 1.
std::vector<float> picture(const std::string& name, const GridSize& size) {
  const FileTensor tensor = seeded_tensor(name + ".picture", {size.height * size.width * 3});
  std::vector<float> numbers(tensor.bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), tensor.bytes.data(), tensor.bytes.size());
  for (float& number : numbers) number = (number + 1) / 2;
  return numbers;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(byte_pictures)

BOOST_AUTO_TEST_CASE(bytes_in_another_size_are_those_of_torchvision) {
  const TensorFile expected(tests_folder() /
                            "plugins/goldens/gemma4_pictures/expected.safetensors");
  struct Case {
    const char* name;
    GridSize from;
    std::int64_t tokens;
  };
  for (const auto& [name, from, tokens] :
       {Case{"seen.up", {37, 91}, 4}, {"seen.down", {150, 131}, 2}, {"seen.even", {96, 48}, 2}}) {
    const TensorFile::Entry& wanted = expected.at(std::string(name) + ".bytes");
    const GridSize to = encoders::size_in_tokens(from, tokens, 48);
    BOOST_TEST_REQUIRE((wanted.shape == std::vector<std::int64_t>{to.height, to.width, 3}), name);
    std::vector<float> numbers = picture(name, from), made(wanted.bytes.size());
    resample_cubic_bytes(numbers.data(), {1, from, 3}, to, made.data(),
                         *std::pmr::get_default_resource());
    std::string bytes;
    for (const float number : made) bytes += char(std::uint8_t(std::lround(255 * number)));
    BOOST_TEST((bytes == wanted.bytes), name);
    BOOST_TEST(made[0] == float(std::uint8_t(wanted.bytes[0])) * float(1.0 / 255.0));
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_number_is_black_and_what_is_beyond_is_clipped) {
  float numbers[] = {-1, 2, std::nanf(""), 0.999f}, made[4];
  resample_cubic_bytes(numbers, {1, {2, 2}, 1}, {2, 2}, made, *std::pmr::get_default_resource());
  BOOST_TEST(made[0] == 0.0f);
  BOOST_TEST(std::abs(made[1] - 1) < 1e-6f);
  BOOST_TEST(made[2] == 0.0f);
  BOOST_TEST(std::lround(255 * made[3]) == 254);  // of 254.7
}

// Of transformers' get_aspect_ratio_preserving_size(), which ComfyUI has, too.
BOOST_AUTO_TEST_CASE(sizes_in_tokens_keep_within_the_budget) {
  const auto sized = [](std::int64_t height, std::int64_t width, std::int64_t tokens) {
    const GridSize to = encoders::size_in_tokens({height, width}, tokens, 48);
    return std::pair{to.height, to.width};
  };
  BOOST_TEST((sized(1080, 1920, 280) == std::pair<std::int64_t, std::int64_t>{576, 1056}));
  BOOST_TEST((sized(720, 1280, 70) == std::pair<std::int64_t, std::int64_t>{288, 528}));
  BOOST_TEST((sized(64, 64, 280) == std::pair<std::int64_t, std::int64_t>{768, 768}));
  BOOST_TEST((sized(1, 1000, 280) == std::pair<std::int64_t, std::int64_t>{48, 13440}));
  BOOST_TEST((sized(900, 2, 280) == std::pair<std::int64_t, std::int64_t>{13440, 48}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::blocks
