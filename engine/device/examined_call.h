// An op's call under examination, with the words that the catalogue's checks are written in. Each
// throws invalid_argument, naming the op, what is wrong and all operands. Borrows the call.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/device/kernel_table.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/ops.h"

namespace heddle::engine {

class Examined {
 public:
  explicit Examined(const heddle_op_call& call) : call_(call) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Code::invalid_argument, cat(call_.op, ": ", what, " (", describe(call_), ")"));
  }
  void require(bool holds, std::string_view what) const {
    if (!holds) fail(std::string(what));
  }
  // in: how many operands at least and at most; those from `least` on may be absent.
  void operands(std::uint32_t least, std::uint32_t most, std::uint32_t out) const {
    if (call_.in_count < least || call_.in_count > most || call_.out_count != out)
      fail(cat("takes ", least, least == most ? "" : cat(" to ", most), " inputs and ", out,
               " outputs"));
    for (std::uint32_t i = 0; i < least; ++i)
      if (call_.in[i] == nullptr) fail(cat("input ", i, " is absent"));
    for (std::uint32_t i = 0; i < out; ++i)
      if (call_.out[i] == nullptr) fail(cat("output ", i, " is absent"));
  }
  template <class Attrs>
  const Attrs& attrs() const {
    if (call_.attrs == nullptr || call_.attrs_size != sizeof(Attrs))
      fail(cat("wants ", sizeof(Attrs), " bytes of attributes, got ", call_.attrs_size));
    return *static_cast<const Attrs*>(call_.attrs);
  }
  const heddle_tensor_info* in(std::uint32_t i) const {
    return i < call_.in_count && call_.in[i] != nullptr ? &call_.in[i]->info : nullptr;
  }
  const heddle_tensor_info& out(std::uint32_t i = 0) const { return call_.out[i]->info; }
  void rank(const heddle_tensor_info& t, std::uint32_t rank, std::string_view name) const {
    if (t.rank != rank) fail(cat("the ", name, " has ", t.rank, " axes, not ", rank));
  }
  // Size of an axis; negative ones count from the end.
  std::int64_t size(const heddle_tensor_info& t, int axis) const {
    const int a = axis < 0 ? int(t.rank) + axis : axis;
    if (a < 0 || a >= int(t.rank)) fail("an operand has too few axes");
    return t.shape[a];
  }
  void equal(std::int64_t a, std::int64_t b, std::string_view what) const {
    if (a != b) fail(cat(what, ": ", a, " and ", b, " differ"));
  }
  void vector(std::uint32_t i, std::int64_t length, std::string_view name) const {
    if (const auto* t = in(i)) {
      rank(*t, 1, name);
      equal(t->shape[0], length, cat("the ", name, "'s length"));
    }
  }
  void same(const heddle_tensor_info& a, const heddle_tensor_info& b, std::string_view what) const {
    if (!same_shape(a, b)) fail(cat(what, " differ"));
  }

 private:
  const heddle_op_call& call_;
};

}  // namespace heddle::engine
