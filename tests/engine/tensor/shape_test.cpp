// Shapes of tensors whose elements stand in blocks.
#include "engine/tensor/shape.h"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>

#include "engine/tensor/gather.h"
#include "engine/tensor/tensor.h"
#include "tests/support/refusal.h"

using namespace heddle::engine;
using heddle::test::refusal_of;

BOOST_AUTO_TEST_SUITE(shape)

namespace {

heddle_tensor_info blocks(std::vector<std::int64_t> shape, heddle_dtype dtype = HEDDLE_Q8_0) {
  return make_info(dtype, shape);
}

std::string refusal(const heddle_tensor_info& info) {
  return refusal_of([&] { checked_info(info, "weight"); }).what();
}

}  // namespace

BOOST_AUTO_TEST_CASE(bytes_of_a_tensor_in_blocks_are_those_of_its_blocks) {
  BOOST_TEST(dense_bytes(blocks({3, 64})) == 3u * 2 * 34);
  BOOST_TEST(dense_bytes(blocks({2, 512}, HEDDLE_Q6_K)) == 2u * 2 * 210);
  BOOST_TEST(dense_bytes(blocks({0, 32})) == 0u);
  heddle_tensor_info part = blocks({4, 64});
  part.shape[0] = 2;
  part.shape[1] = 32;  // the left half of two rows
  BOOST_TEST(span_bytes(part) == std::uint64_t(34 * 3));
  BOOST_TEST(!is_contiguous(part));
  BOOST_TEST(describe(blocks({3, 64})) == "q8_0 (3, 64)");
}

BOOST_AUTO_TEST_CASE(sizes_and_strides_are_held_to_what_sums_of_them_can_hold) {
  heddle_tensor_info info = make_info(HEDDLE_F32, std::vector<std::int64_t>{1 << 16, 1, 1 << 30});
  info.shape[1] = 2;
  BOOST_TEST(refusal(info) ==
             "weight: a tensor (65536, 2, 1073741824) takes more than 256.0 TiB. Ask for less.");
  info = make_info(HEDDLE_F32, std::vector<std::int64_t>{4, 6});
  for (const std::int64_t stride :
       {std::int64_t{1} << 62, std::int64_t{-1} << 62, std::int64_t{1} << 45}) {
    info.stride[0] = stride;
    BOOST_TEST(refusal(info).find("takes more than 256.0 TiB") != std::string::npos, stride);
  }
  info.stride[0] = -6;  // from the last row to the first
  BOOST_TEST(refusal(info) == "nothing was thrown");
}

BOOST_AUTO_TEST_CASE(a_shape_that_cuts_blocks_is_refused) {
  const std::string cut = refusal_of([&] { blocks({64, 3}); }).what();
  BOOST_TEST(cut == "tensor: q8_0 (64, 3) has no whole blocks of 32 elements along its last axis");
  BOOST_TEST(refusal_of([&] { blocks({}); }).what() != std::string("nothing was thrown"));
  BOOST_TEST(refusal_of([&] {
               blocks({1, 128}, HEDDLE_Q4_K);
             }).what() != std::string("nothing was thrown"));
  heddle_tensor_info info = blocks({4, 64});
  info.stride[0] = 80;
  BOOST_TEST(refusal(info) ==
             "weight: q8_0 (4, 64) has the stride 80 along axis 0, which cuts a block of 32");
  info = blocks({32, 64});
  std::swap(info.stride[0], info.stride[1]);
  BOOST_TEST(refusal(info).find("the stride 64 along its last axis") != std::string::npos);
  info.layout = 7;  // a device's own: it says nothing about blocks
  BOOST_TEST(refusal(info) == "nothing was thrown");
}

BOOST_AUTO_TEST_CASE(blocks_are_copied_whole_or_not_at_all) {
  const heddle_tensor_info info = blocks({2, 32});
  std::string from(68, 'x'), to(68, ' ');
  from[67] = 'y';
  gather(info, reinterpret_cast<const std::byte*>(from.data()),
         reinterpret_cast<std::byte*>(to.data()));
  BOOST_TEST(to == from);
  const Tensor tensor = make_host_tensor(info);
  BOOST_TEST(tensor->storage->bytes() == 68u);
  BOOST_TEST(
      std::string(refusal_of([&] { view(tensor, info, 0); }).what()).find("no size of its own") !=
      std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
