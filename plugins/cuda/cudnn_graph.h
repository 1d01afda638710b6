// cuDNN's library and its descriptors: operation graphs are described part by part.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <vector>

#include "heddle/abi/value.h"

namespace heddle::cuda {

// The functions of the library, opened once for the process. Only the small library that leads to
// cuDNN's others is opened, which is enough to ask for the version.
struct CudnnLibrary {
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnGetVersion) version = nullptr;
  decltype(&cudnnGetErrorString) error_string = nullptr;
  decltype(&cudnnBackendCreateDescriptor) make = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) free = nullptr;
  decltype(&cudnnBackendFinalize) finish = nullptr;
  decltype(&cudnnBackendSetAttribute) set = nullptr;
  decltype(&cudnnBackendGetAttribute) get = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;
  bool usable = false;

  CudnnLibrary();

  // What cuDNN opens itself, by name: it is found when it is open already, wherever it lies. Before
  // the first create(); takes its time on a machine that has not read these files yet.
  static void open_needed();
};

// An operand of a graph. Numbers are f32 and handed over with the call from host memory; between
// two operations stands what is never written.
struct CudnnTensor {
  enum class Kind { kMemory, kNumber, kBetween };
  std::int64_t id;  // unique in its graph; what a call binds memory to
  heddle_dtype dtype;
  std::vector<std::int64_t> shape, stride;
  Kind kind = Kind::kMemory;
};

// A graph while it is described. Throws device::Error with HEDDLE_UNSUPPORTED when the library
// refuses a part of it.
class CudnnGraph {
 public:
  explicit CudnnGraph(const CudnnLibrary& library) : library_(library) {}
  ~CudnnGraph();
  CudnnGraph(const CudnnGraph&) = delete;
  CudnnGraph& operator=(const CudnnGraph&) = delete;

  using Part = cudnnBackendDescriptor_t;  // owned by the graph

  Part tensor(const CudnnTensor& tensor);
  // y = a MODE b
  void pointwise(cudnnPointwiseMode_t mode, Part a, Part b, Part y);
  // Of tensors with axes N, C, H, W, or N, C, T, H, W, in any order in memory. pre: (front,) top,
  // left; post: (back,) bottom, right.
  struct Convolution {
    std::vector<std::int64_t> stride, pre, post;
  };
  void convolution(const Convolution& how, Part x, Part filter, Part y);
  // softmax(q k^T * scale) v, of tensors with axes B, H, S, D in any order in memory.
  void attention(Part q, Part k, Part v, Part scale, Part out);

  // For those that build on this class.
  Part make(cudnnBackendDescriptorType_t type);
  void set(Part part, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           std::int64_t count, const void* values);
  void set(Part part, cudnnBackendAttributeName_t name, Part other) {
    set(part, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
  }
  void finish(Part part);
  const std::vector<Part>& operations() const { return operations_; }
  const CudnnLibrary& library() const { return library_; }

 private:
  const CudnnLibrary& library_;
  std::vector<Part> parts_, operations_;
};

}  // namespace heddle::cuda
