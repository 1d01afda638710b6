#include "engine/device/op_catalog.h"

#include <boost/test/unit_test.hpp>
#include <deque>
#include <optional>

#include "engine/base/error.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/frame_ops.h"
#include "heddle/abi/ops.h"

using namespace heddle::engine;

namespace {

using Shape = std::vector<std::int64_t>;

// A call on shapes alone; nullopt is an absent operand.
struct Call {
  std::deque<heddle_view> views;
  std::vector<const heddle_view*> in, out;
  heddle_op_call raw{};

  template <class Attrs>
  Call(const char* op, std::vector<std::optional<Shape>> inputs, std::vector<Shape> outputs,
       const Attrs& attrs, heddle_dtype out_type = HEDDLE_F32) {
    for (const auto& shape : inputs) {
      if (shape) views.push_back({make_info(HEDDLE_F32, *shape), nullptr});
      in.push_back(shape ? &views.back() : nullptr);
    }
    for (const auto& shape : outputs) {
      views.push_back({make_info(out_type, shape), nullptr});
      out.push_back(&views.back());
    }
    raw = {sizeof raw,
           op,
           std::uint32_t(in.size()),
           std::uint32_t(out.size()),
           in.data(),
           out.data(),
           &attrs,
           sizeof attrs};
  }
};

template <class... T>
std::string refusal(const T&... arguments) {
  try {
    const Call call(arguments...);
    check_op(call.raw);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const heddle_activation_attrs kNone{HEDDLE_ACT_NONE};
using Optional = std::vector<std::optional<Shape>>;
using Shapes = std::vector<Shape>;

}  // namespace

BOOST_AUTO_TEST_SUITE(op_catalog)

BOOST_AUTO_TEST_CASE(a_linear_layer_is_checked_and_counted) {
  BOOST_TEST(refusal(HEDDLE_OP_LINEAR, Optional{Shape{2, 5, 8}, Shape{3, 8}, Shape{3}},
                     Shapes{{2, 5, 3}}, kNone) == "");
  BOOST_TEST(
      refusal(HEDDLE_OP_LINEAR, Optional{Shape{2, 5, 8}, Shape{3, 7}}, Shapes{{2, 5, 3}}, kNone)
          .find("inner size: 8 and 7 differ") != std::string::npos);
  BOOST_TEST(
      refusal(HEDDLE_OP_LINEAR, Optional{Shape{2, 5, 8}, std::nullopt}, Shapes{{2, 5, 3}}, kNone)
          .find("input 1 is absent") != std::string::npos);
  BOOST_TEST(refusal(HEDDLE_OP_LINEAR, Optional{Shape{2, 5, 8}, Shape{3, 8}, Shape{4}},
                     Shapes{{2, 5, 3}}, kNone)
                 .find("bias's length") != std::string::npos);
  BOOST_TEST(
      refusal(HEDDLE_OP_LINEAR, Optional{Shape{5, 8}, Shape{3, 8}}, Shapes{{5, 3}}, char('x'))
          .find("bytes of attributes") != std::string::npos);
  const Call call(HEDDLE_OP_LINEAR, Optional{Shape{2, 5, 8}, Shape{3, 8}}, Shapes{{2, 5, 3}},
                  kNone);
  BOOST_TEST(op_cost(call.raw).flops == 2.0 * 10 * 3 * 8);
}

BOOST_AUTO_TEST_CASE(attention_is_checked_and_counted) {
  const heddle_attention_attrs attrs{1.0, 0, 0};
  const Call call(
      HEDDLE_OP_ATTENTION,
      Optional{Shape{1, 7, 2, 4}, Shape{1, 9, 2, 4}, Shape{1, 9, 2, 6}, Shape{1, 1, 7, 9}},
      Shapes{{1, 7, 2, 6}}, attrs);
  check_op(call.raw);
  BOOST_TEST(op_cost(call.raw).flops == 2.0 * 2 * 7 * 9 * 10);
  BOOST_TEST(refusal(HEDDLE_OP_ATTENTION,
                     Optional{Shape{1, 7, 2, 4}, Shape{1, 9, 3, 4}, Shape{1, 9, 2, 4}},
                     Shapes{{1, 7, 2, 4}}, attrs)
                 .find("numbers of heads differ") != std::string::npos);
  BOOST_TEST(refusal(HEDDLE_OP_ATTENTION,
                     Optional{Shape{1, 7, 2, 4}, Shape{1, 0, 2, 4}, Shape{1, 0, 2, 4}},
                     Shapes{{1, 7, 2, 4}}, attrs)
                 .find("no keys") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_convolution_knows_its_output_size) {
  const heddle_conv2d_attrs attrs{{2, 2}, {0, 0, 1, 1}};
  BOOST_TEST(refusal(HEDDLE_OP_CONV2D, Optional{Shape{1, 8, 8, 3}, Shape{16, 3, 3, 3}, Shape{16}},
                     Shapes{{1, 4, 4, 16}}, attrs) == "");
  BOOST_TEST(refusal(HEDDLE_OP_CONV2D, Optional{Shape{1, 8, 8, 3}, Shape{16, 3, 3, 3}},
                     Shapes{{1, 5, 4, 16}}, attrs)
                 .find("height: 5 and 4 differ") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_convolution_over_frames_knows_its_output_size) {
  const heddle_conv3d_attrs attrs{{2, 1, 1}, {0, 1, 1, 0, 1, 1}};
  const Optional operands{Shape{1, 5, 8, 6, 4}, Shape{16, 4, 3, 3, 3}, Shape{16}};
  BOOST_TEST(refusal(HEDDLE_OP_CONV3D, operands, Shapes{{1, 2, 8, 6, 16}}, attrs) == "");
  BOOST_TEST(refusal(HEDDLE_OP_CONV3D, operands, Shapes{{1, 3, 8, 6, 16}}, attrs)
                 .find("number of frames: 3 and 2 differ") != std::string::npos);
  BOOST_TEST(refusal(HEDDLE_OP_CONV3D, Optional{Shape{1, 5, 8, 6, 3}, Shape{16, 4, 3, 3, 3}},
                     Shapes{{1, 2, 8, 6, 16}}, attrs)
                 .find("channels: 3 and 4 differ") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(rows_of_a_modulation_broadcast_over_the_batch) {
  const heddle_norm_attrs attrs{1e-6};
  BOOST_TEST(refusal(HEDDLE_OP_MODULATED_NORM,
                     Optional{Shape{4, 7, 8}, Shape{1, 1, 8}, Shape{4, 1, 8}}, Shapes{{4, 7, 8}},
                     attrs) == "");
  BOOST_TEST(refusal(HEDDLE_OP_MODULATED_NORM,
                     Optional{Shape{4, 7, 8}, Shape{2, 1, 8}, Shape{1, 1, 8}}, Shapes{{4, 7, 8}},
                     attrs)
                 .find("shift is not") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_op_that_a_plugin_brings_is_let_through) {
  BOOST_TEST(refusal("example.anything/1", Optional{Shape{1}}, Shapes{{5}}, kNone) == "");
}

BOOST_AUTO_TEST_SUITE_END()
