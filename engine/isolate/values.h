// Values as bytes. What has no bytes of its own (tensors, models, objects) is left to whoever knows
// both ends. One thread at a time.
#pragma once

#include "engine/isolate/bytes.h"
#include "engine/tensor/value.h"

namespace heddle::engine {

// Writes and reads what values refer to.
class ValueEnd {
 public:
  virtual ~ValueEnd() = default;
  virtual void write_tensor(BytesWriter& to, const Tensor& tensor) = 0;
  virtual Tensor read_tensor(BytesReader& from) = 0;
  virtual void write_handle(BytesWriter& to, const heddle_value& model_or_object) = 0;
  virtual Value read_handle(BytesReader& from) = 0;
};

// nullptr is written, too, and read as an empty Value, but never inside a list or record. Throws
// what the end throws; unsupported for lists within lists that are too deep; internal for bytes
// that are no value.
void write_value(BytesWriter& to, const heddle_value* value, ValueEnd& end);
Value read_value(BytesReader& from, ValueEnd& end);

// Shape, type and strides. Reading throws what checked_info() throws.
void write_info(BytesWriter& to, const heddle_tensor_info& info);
heddle_tensor_info read_info(BytesReader& from);

// A tensor whose elements stand in the message, row-major.
void write_elements(BytesWriter& to, const heddle_tensor_info& info, const std::byte* data);

}  // namespace heddle::engine
