// Tensors of other frameworks in, tensors of ours out, as DLPack hands them over: host memory,
// row-major.
#pragma once

#include <memory>

#include "engine/tensor/tensor.h"
#include "heddle/dlpack.h"

namespace heddle::engine {

// A tensor that somebody else made; its deleter is called when the last reference goes.
using ManagedTensor = std::shared_ptr<DLManagedTensor>;
ManagedTensor take_managed(DLManagedTensor* tensor);

// The same memory, not a copy: it keeps what `given` owns until the tensor goes. Throws for a
// tensor on a device, of an element type that is not ours, with gaps between elements, or at an
// address that its elements cannot have.
Tensor from_dlpack(const ManagedTensor& given);

// A tensor in host memory, row-major, as DLPack says it; it holds `tensor` until its deleter is
// called, on any thread.
DLManagedTensor* to_dlpack(const Tensor& tensor);

}  // namespace heddle::engine
