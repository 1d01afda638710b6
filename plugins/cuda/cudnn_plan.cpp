#include "cudnn_plan.h"

#include <dlfcn.h>

#include <algorithm>
#include <type_traits>

#include "heddle/device.hpp"
#include "library.h"

namespace heddle::cuda {

namespace {

constexpr std::size_t kMostWorkspace = std::size_t{256} << 20;  // bytes

cudnnDataType_t type_of(heddle_dtype dtype) {
  return dtype == HEDDLE_F32    ? CUDNN_DATA_FLOAT
         : dtype == HEDDLE_BF16 ? CUDNN_DATA_BFLOAT16
                                : CUDNN_DATA_HALF;
}

}  // namespace

// ---- the library ----

CudnnLibrary::CudnnLibrary() {
  // What cuDNN opens itself, by these names: they are found when they are open already, wherever
  // they lie.
  for (const char* needed : {"libnvrtc.so.13", "libcublasLt.so.13"}) open_library(needed);
  void* library = open_library("libcudnn.so.9");
  if (library == nullptr) return;
  usable = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    usable = usable && function != nullptr;
  };
  find(create, "cudnnCreate");
  find(destroy, "cudnnDestroy");
  find(set_stream, "cudnnSetStream");
  find(version, "cudnnGetVersion");
  find(error_string, "cudnnGetErrorString");
  find(make, "cudnnBackendCreateDescriptor");
  find(free, "cudnnBackendDestroyDescriptor");
  find(finish, "cudnnBackendFinalize");
  find(set, "cudnnBackendSetAttribute");
  find(get, "cudnnBackendGetAttribute");
  find(execute, "cudnnBackendExecute");
}

// ---- graphs ----

namespace {

void check(const CudnnLibrary& library, cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS)
    device::fail(HEDDLE_UNSUPPORTED, call, ": ", library.error_string(status), " (", int(status),
                 ")");
}

}  // namespace

CudnnGraph::~CudnnGraph() {
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) library_.free(*part);
}

CudnnGraph::Part CudnnGraph::make(cudnnBackendDescriptorType_t type) {
  Part part = nullptr;
  check(library_, library_.make(type, &part), "cudnnBackendCreateDescriptor");
  parts_.push_back(part);
  return part;
}

void CudnnGraph::set(Part part, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     std::int64_t count, const void* values) {
  check(library_, library_.set(part, name, type, count, values), "cudnnBackendSetAttribute");
}

void CudnnGraph::finish(Part part) {
  check(library_, library_.finish(part), "cudnnBackendFinalize");
}

CudnnGraph::Part CudnnGraph::tensor(const CudnnTensor& tensor) {
  const Part part = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const cudnnDataType_t type = type_of(tensor.dtype);
  const auto rank = static_cast<std::int64_t>(tensor.shape.size());
  const std::int64_t alignment = tensor.kind == CudnnTensor::Kind::kMemory ? 16 : 4;
  const bool between = tensor.kind == CudnnTensor::Kind::kBetween,
             number = tensor.kind == CudnnTensor::Kind::kNumber;
  set(part, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &tensor.id);
  set(part, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  set(part, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, tensor.shape.data());
  set(part, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, tensor.stride.data());
  set(part, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
  set(part, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &between);
  set(part, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &number);
  finish(part);
  return part;
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, Part a, Part b, Part y) {
  const cudnnDataType_t precision = CUDNN_DATA_FLOAT;
  const Part how = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  set(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  set(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision);
  finish(how);
  const Part operation = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  set(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  set(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, a);
  set(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  set(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  finish(operation);
  operations_.push_back(operation);
}

void CudnnGraph::convolution(const Convolution& c, Part x, Part filter, Part y) {
  const cudnnDataType_t precision = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const std::int64_t axes = 2, dilation[2] = {1, 1};
  const float alpha = 1, beta = 0;
  const Part how = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  set(how, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision);
  set(how, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  set(how, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes);
  set(how, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation);
  set(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, c.stride);
  set(how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, c.pre);
  set(how, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, c.post);
  finish(how);
  const Part operation = make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, how);
  set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
  set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, filter);
  set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
  set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &alpha);
  set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &beta);
  finish(operation);
  operations_.push_back(operation);
}

void CudnnGraph::attention(Part q, Part k, Part v, Part scale, Part out) {
  const Part operation = make(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
  set(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, q);
  set(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, k);
  set(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, v);
  set(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, out);
  set(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, scale);
  finish(operation);
  operations_.push_back(operation);
}

// ---- plans ----

Cudnn::~Cudnn() {
  plans_.clear();
  if (handle_ != nullptr) library_->destroy(handle_);
}

bool Cudnn::ready() {
  if (tried_) return handle_ != nullptr;
  tried_ = true;
  static const CudnnLibrary opened;
  if (!opened.usable) {
    device_.host()->log(device_.host(), HEDDLE_WARN,
                        "cuda: libcudnn.so.9 is not found; attention and convolutions run on slow "
                        "kernels. Name its folder in "
                        "HEDDLE_CUDA_LIBRARIES");
    return false;
  }
  library_ = &opened;
  device_.use();
  if (const cudnnStatus_t status = opened.create(&handle_); status != CUDNN_STATUS_SUCCESS) {
    handle_ = nullptr;
    device_.host()->log(device_.host(), HEDDLE_WARN,
                        device::cat("cuda: cudnnCreate: ", opened.error_string(status),
                                    "; attention and convolutions run on slow kernels")
                            .c_str());
  }
  return handle_ != nullptr;
}

const CudnnPlan* Cudnn::plan(const Key& key, Describe describe) {
  const std::lock_guard lock(mutex_);
  const auto known = plans_.find(key);
  if (known != plans_.end()) return known->second.get();
  if (!ready()) return nullptr;
  std::unique_ptr<CudnnPlan> made;
  try {
    device_.use();
    made = make_plan(key, describe);
  } catch (const device::Error& error) {
    if (error.code() != HEDDLE_UNSUPPORTED) throw;
  }
  return (plans_[key] = std::move(made)).get();
}

namespace {

// Sums that are added up where they meet give other bytes on every run; the others are less exact
// than the op's rule says.
bool keeps_the_rules(const CudnnLibrary& library, cudnnBackendDescriptor_t engine) {
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  std::int64_t count = 0;
  if (library.get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                  CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes) != CUDNN_STATUS_SUCCESS)
    return false;
  return std::none_of(notes, notes + count, [](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS || note == CUDNN_NUMERICAL_NOTE_FFT ||
           note == CUDNN_NUMERICAL_NOTE_WINOGRAD ||
           note == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 ||
           note == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 ||
           note == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13;
  });
}

}  // namespace

std::unique_ptr<CudnnPlan> Cudnn::make_plan(const Key& key, Describe describe) {
  std::unique_ptr<CudnnPlan> made(new CudnnPlan(*library_));
  CudnnGraph& graph = made->graph_;
  describe(graph, key);
  const CudnnGraph::Part whole = graph.make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(whole, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_);
  graph.set(whole, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<std::int64_t>(graph.operations().size()), graph.operations().data());
  graph.finish(whole);
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    const CudnnGraph::Part proposals = graph.make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    graph.set(proposals, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, whole);
    graph.set(proposals, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (library_->finish(proposals) != CUDNN_STATUS_SUCCESS) continue;
    std::int64_t count = 0;
    if (library_->get(proposals, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                      &count, nullptr) != CUDNN_STATUS_SUCCESS)
      continue;
    std::vector<CudnnGraph::Part> configurations;
    for (std::int64_t i = 0; i < count; ++i)
      configurations.push_back(graph.make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    if (count == 0 ||
        library_->get(proposals, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                      count, &count, configurations.data()) != CUDNN_STATUS_SUCCESS)
      continue;
    configurations.resize(static_cast<std::size_t>(count));
    for (const CudnnGraph::Part configuration : configurations) {
      CudnnGraph::Part engine = graph.make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
      std::int64_t one = 0;
      if (library_->get(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                        1, &one, &engine) != CUDNN_STATUS_SUCCESS ||
          !keeps_the_rules(*library_, engine))
        continue;
      const CudnnGraph::Part plan = graph.make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      graph.set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_);
      graph.set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
      if (library_->finish(plan) != CUDNN_STATUS_SUCCESS) continue;
      std::int64_t bytes = 0;
      if (library_->get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &one,
                        &bytes) != CUDNN_STATUS_SUCCESS ||
          static_cast<std::size_t>(bytes) > kMostWorkspace)
        continue;
      made->plan_ = plan;
      made->workspace_bytes_ = static_cast<std::size_t>(bytes);
      return made;
    }
  }
  return nullptr;
}

void Cudnn::execute(cudaStream_t stream, const CudnnPlan& plan, std::span<const Binding> bindings,
                    void* workspace) {
  constexpr std::size_t kMost = 8;
  std::int64_t ids[kMost];
  const void* pointers[kMost];
  const std::size_t count = std::min(bindings.size(), kMost);
  for (std::size_t i = 0; i < count; ++i) ids[i] = bindings[i].id, pointers[i] = bindings[i].data;
  const std::lock_guard lock(mutex_);  // the handle has one stream
  CudnnGraph pack(*library_);
  const CudnnGraph::Part part = pack.make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(part, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
           static_cast<std::int64_t>(count), ids);
  pack.set(part, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           static_cast<std::int64_t>(count), pointers);
  pack.set(part, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finish(part);
  const auto checked = [&](cudnnStatus_t status, const char* call) {
    if (status != CUDNN_STATUS_SUCCESS)
      device::fail(HEDDLE_INTERNAL, call, ": ", library_->error_string(status), " (", int(status),
                   ")");
  };
  checked(library_->set_stream(handle_, stream), "cudnnSetStream");
  checked(library_->execute(handle_, plan.plan_, part), "cudnnBackendExecute");
}

}  // namespace heddle::cuda
