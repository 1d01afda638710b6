// cuDNN by its backend API: operation graphs are described by descriptors, and the library makes
// plans of them, which takes it from milliseconds to a second each, so that they are kept by shape.
// Opened at first use: the libraries are large. Thread-safe; one for each device.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device.h"

namespace heddle::cuda {

// The functions of the library, opened once for the process.
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
  // Two-dimensional, of tensors with axes N, C, H, W in any order in memory. pre: top, left; post:
  // bottom, right.
  struct Convolution {
    std::int64_t stride[2], pre[2], post[2];
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

 private:
  const CudnnLibrary& library_;
  std::vector<Part> parts_, operations_;
};

class CudnnPlan {
 public:
  std::size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  friend class Cudnn;
  explicit CudnnPlan(const CudnnLibrary& library) : graph_(library) {}
  CudnnGraph graph_;  // the plan's parts live as long as it does
  CudnnGraph::Part plan_ = nullptr;
  std::size_t workspace_bytes_ = 0;
};

class Cudnn {
 public:
  explicit Cudnn(Device& device) : device_(device) {}
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  // What a graph follows from: op, shapes, strides, types, attributes.
  using Key = std::vector<std::int64_t>;
  using Describe = void (*)(CudnnGraph& graph, const Key& key);

  // The plan of this key, which is made when it is first asked for; nullptr: the library is not
  // there or has none that is exact, gives equal bytes on every run and asks for a bounded
  // workspace.
  const CudnnPlan* plan(const Key& key, Describe describe);

  // Enqueues. Of numbers, the data is their address in host memory, read during the call.
  struct Binding {
    std::int64_t id;
    const void* data;
  };
  void execute(cudaStream_t stream, const CudnnPlan& plan, std::span<const Binding> bindings,
               void* workspace);

 private:
  bool ready();  // REQUIRES: mutex_ held
  std::unique_ptr<CudnnPlan> make_plan(const Key& key, Describe describe);

  Device& device_;
  const CudnnLibrary* library_ = nullptr;
  std::mutex mutex_;
  cudnnHandle_t handle_ = nullptr;                   // mutex_
  bool tried_ = false;                               // mutex_
  std::map<Key, std::unique_ptr<CudnnPlan>> plans_;  // mutex_; nullptr: there is none
};

}  // namespace heddle::cuda
