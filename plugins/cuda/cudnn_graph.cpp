#include "cudnn_graph.h"

#include <dlfcn.h>

#include <array>
#include <type_traits>

#include "heddle/device.hpp"
#include "library.h"

namespace heddle::cuda {

namespace {

cudnnDataType_t type_of(heddle_dtype dtype) {
  return dtype == HEDDLE_F32    ? CUDNN_DATA_FLOAT
         : dtype == HEDDLE_BF16 ? CUDNN_DATA_BFLOAT16
                                : CUDNN_DATA_HALF;
}

}  // namespace

// ---- the library ----

void CudnnLibrary::open_needed() {
  for (const char* needed : CUDART_VERSION >= 13000
                                ? std::array{"libnvrtc.so.13", "libcublasLt.so.13"}
                                : std::array{"libnvrtc.so.12", "libcublasLt.so.12"})
    open_library(needed);
}

CudnnLibrary::CudnnLibrary() {
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
  const auto axes = static_cast<std::int64_t>(c.stride.size());
  const std::vector<std::int64_t> dilation(c.stride.size(), 1);
  const float alpha = 1, beta = 0;
  const Part how = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  set(how, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision);
  set(how, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  set(how, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes);
  set(how, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, axes, dilation.data());
  set(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, axes, c.stride.data());
  set(how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, axes, c.pre.data());
  set(how, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, axes, c.post.data());
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

}  // namespace heddle::cuda
