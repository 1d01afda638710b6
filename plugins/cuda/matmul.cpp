#include "matmul.h"

#include <dlfcn.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "heddle/device.hpp"
#include "library.h"

// cuBLAS 12.9 brought them.
#if CUBLAS_VER_MAJOR > 12 || (CUBLAS_VER_MAJOR == 12 && CUBLAS_VER_MINOR >= 9)
#define HEDDLE_CUBLAS_SCALES_BY_ROW
#endif

namespace heddle::cuda {

struct Matmul::Library {
  // Of the toolkit that this is built with: enums and structs go with it.
  static constexpr const char* kFile =
      CUBLAS_VER_MAJOR >= 13 ? "libcublasLt.so.13" : "libcublasLt.so.12";
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) propose = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  bool usable = false;

  Library() {
    void* library = open_library(kFile);
    if (library == nullptr) return;
    usable = true;
    const auto find = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      usable = usable && function != nullptr;
    };
    find(create, "cublasLtCreate");
    find(destroy, "cublasLtDestroy");
    find(matmul, "cublasLtMatmul");
    find(propose, "cublasLtMatmulAlgoGetHeuristic");
    find(desc_create, "cublasLtMatmulDescCreate");
    find(desc_destroy, "cublasLtMatmulDescDestroy");
    find(desc_set, "cublasLtMatmulDescSetAttribute");
    find(layout_create, "cublasLtMatrixLayoutCreate");
    find(layout_destroy, "cublasLtMatrixLayoutDestroy");
    find(layout_set, "cublasLtMatrixLayoutSetAttribute");
    find(preference_create, "cublasLtMatmulPreferenceCreate");
    find(preference_destroy, "cublasLtMatmulPreferenceDestroy");
    find(preference_set, "cublasLtMatmulPreferenceSetAttribute");
  }
};

namespace {

void check_blas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const heddle_code code =
      status == CUBLAS_STATUS_ALLOC_FAILED ? HEDDLE_OUT_OF_MEMORY
      : status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH
          ? HEDDLE_UNSUPPORTED
          : HEDDLE_INTERNAL;
  device::fail(code, call, ": status ", int(status));
}

cudaDataType_t type_of(heddle_dtype dtype) {
  switch (dtype) {
    case HEDDLE_F32:
      return CUDA_R_32F;
    case HEDDLE_BF16:
      return CUDA_R_16BF;
    case HEDDLE_F8_E4M3:
      return CUDA_R_8F_E4M3;
    case HEDDLE_I8:
      return CUDA_R_8I;
    case HEDDLE_I32:
      return CUDA_R_32I;
    default:
      return CUDA_R_16F;
  }
}

bool has_scales(const Gemm& gemm) { return gemm.operands == HEDDLE_F8_E4M3; }
bool is_whole(const Gemm& gemm) { return gemm.operands == HEDDLE_I8; }

}  // namespace

// Descriptors and the algorithm for one product. The library takes columns first, so that our
// row-major out (m, n) is its (n, m): its A is the weight, transposed, and its B is x.
struct Matmul::Chosen {
  explicit Chosen(const Library& library) : library(library) {}
  ~Chosen() {
    if (desc != nullptr) library.desc_destroy(desc);
    for (cublasLtMatrixLayout_t layout : {weight, x, residual, out})
      if (layout != nullptr) library.layout_destroy(layout);
  }
  const Library& library;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t weight = nullptr, x = nullptr, residual = nullptr, out = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  bool found = false;
};

const Matmul::Library& Matmul::library() {
  static const Library library;
  return library;
}

bool Matmul::is_there() noexcept {
  try {
    return library().usable;
  } catch (const std::exception&) {
    return false;  // whoever opens it next is told
  }
}

std::unique_ptr<Matmul> Matmul::open(Device& device) {
  const Library& library = Matmul::library();
  if (!library.usable) {
    device.host()->log(device.host(), HEDDLE_WARN,
                       device::cat("cuda: ", Library::kFile,
                                   " is not found; linear layers run on slow kernels. Name its "
                                   "folder in HEDDLE_CUDA_LIBRARIES")
                           .c_str());
    return nullptr;
  }
  return std::unique_ptr<Matmul>(new Matmul(device, library));
}

Matmul::Matmul(Device& device, const Library& library) : device_(device), library_(library) {
  device.use();
  check_blas(library.create(&handle_), "cublasLtCreate");
}

Matmul::~Matmul() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  chosen_.clear();
  library_.destroy(handle_);
}

std::size_t Matmul::workspace_bytes(const Gemm& gemm) {
  constexpr std::size_t kLeast = std::size_t{1} << 20, kMost = std::size_t{32} << 20;
  const auto sums = static_cast<std::size_t>(gemm.batch * gemm.m * gemm.n) * sizeof(float);
  return std::clamp(sums / 256 * 256 * 4, kLeast, kMost);
}

heddle_dtype Matmul::bias_dtype(const Gemm& gemm) {
  return has_scales(gemm) && gemm.result == HEDDLE_F32 ? HEDDLE_BF16 : gemm.result;
}

bool Matmul::takes(const Gemm& gemm) noexcept {
#if !defined(HEDDLE_CUBLAS_SCALES_BY_ROW)
  if (has_scales(gemm)) return false;
#endif
  try {
    device_.use();
    return choose(gemm).found;
  } catch (...) {  // what is wrong is told by whoever launches something
    return false;
  }
}

void Matmul::expect(const Gemm& gemm) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (chosen_.contains(gemm.key())) return;
    expected_.push_back(gemm);
    if (!thread_.joinable()) thread_ = std::thread([this] { choose_expected(); });
  } catch (const std::exception&) {
    // It is asked when it is multiplied.
  }
  changed_.notify_all();
}

void Matmul::choose_expected() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stops_ || !expected_.empty(); });
    if (stops_) return;
    const Gemm gemm = expected_.front();
    expected_.pop_front();
    lock.unlock();
    takes(gemm);
    lock.lock();
  }
}

const Matmul::Chosen& Matmul::choose(const Gemm& gemm) {
  const Key key = gemm.key();
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto [at, is_ours] = chosen_.try_emplace(key);
    if (is_ours) break;
    if (at->second != nullptr) return *at->second;
    changed_.wait(lock);
  }
  lock.unlock();
  std::unique_ptr<Chosen> made;
  try {
    made = ask(gemm);
  } catch (...) {
    lock.lock();
    chosen_.erase(key);
    changed_.notify_all();
    throw;
  }
  lock.lock();
  std::unique_ptr<Chosen>& chosen = chosen_.at(key);
  chosen = std::move(made);
  changed_.notify_all();
  return *chosen;
}

std::unique_ptr<Matmul::Chosen> Matmul::ask(const Gemm& p) {
  auto made = std::make_unique<Chosen>(library_);
  check_blas(
      library_.desc_create(&made->desc, is_whole(p) ? CUBLAS_COMPUTE_32I : CUBLAS_COMPUTE_32F,
                           is_whole(p) ? CUDA_R_32I : CUDA_R_32F),
      "cublasLtMatmulDescCreate");
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check_blas(library_.desc_set(made->desc, attribute, &value, sizeof value),
               "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, p.is_weight_flipped ? CUBLAS_OP_N : CUBLAS_OP_T);
  set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue);
  if (p.epilogue & CUBLASLT_EPILOGUE_BIAS)
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(type_of(bias_dtype(p))));
  if (has_scales(p)) {
    // What is summed with fewer bits is far below what rounding the operands to 8 bits does.
    set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
#if defined(HEDDLE_CUBLAS_SCALES_BY_ROW)
    set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
#endif
    // That there are scales decides what is proposed. Where they are, the call tells.
    const auto* const anywhere = reinterpret_cast<const void*>(std::uintptr_t{256});
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, anywhere);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, anywhere);
  }
  const auto layout = [&](cublasLtMatrixLayout_t& to, heddle_dtype dtype, std::int64_t rows,
                          std::int64_t columns, std::int64_t step, std::int64_t jump) {
    check_blas(library_.layout_create(&to, type_of(dtype), static_cast<std::uint64_t>(rows),
                                      static_cast<std::uint64_t>(columns), step),
               "cublasLtMatrixLayoutCreate");
    const auto count = static_cast<std::int32_t>(p.batch);
    check_blas(library_.layout_set(to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
               "cublasLtMatrixLayoutSetAttribute");
    check_blas(
        library_.layout_set(to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &jump, sizeof jump),
        "cublasLtMatrixLayoutSetAttribute");
  };
  const auto [rows, columns] = p.is_weight_flipped ? std::pair(p.n, p.k) : std::pair(p.k, p.n);
  layout(made->weight, p.operands, rows, columns, p.weight_step, 0);
  layout(made->x, p.operands, p.k, p.m, p.x_step, p.x_jump);
  layout(made->out, p.result, p.n, p.m, p.out_step, p.out_jump);
  layout(made->residual, p.result, p.n, p.m, p.residual ? p.residual_step : p.out_step,
         p.residual ? p.residual_jump : p.out_jump);

  cublasLtMatmulPreference_t preference = nullptr;
  check_blas(library_.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
  const std::size_t workspace = workspace_bytes(p);
  // Sums split over blocks are added up by a second pass in a fixed order, never where they happen
  // to meet.
  const std::uint32_t schemes =
      CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  library_.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                          sizeof workspace);
  library_.preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                          sizeof schemes);
  const std::uint32_t alignment = 16;
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    library_.preference_set(preference, attribute, &alignment, sizeof alignment);
  cublasLtMatmulHeuristicResult_t proposal{};
  int count = 0;
  const cublasStatus_t status =
      library_.propose(handle_, made->desc, made->weight, made->x, made->residual, made->out,
                       preference, 1, &proposal, &count);
  library_.preference_destroy(preference);
  made->found =
      status == CUBLAS_STATUS_SUCCESS && count > 0 && proposal.state == CUBLAS_STATUS_SUCCESS;
  made->algorithm = proposal.algo;
  return made;
}

bool Matmul::multiply(cudaStream_t stream, const Gemm& gemm, const Matrices& m) {
  const Chosen& chosen = choose(gemm);
  if (!chosen.found) return false;
  // Addresses belong to the call, so the call has a description of its own.
  cublasLtMatmulDescOpaque_t own = *chosen.desc;
  const auto point = [&](cublasLtMatmulDescAttributes_t attribute, const void* at) {
    check_blas(library_.desc_set(&own, attribute, &at, sizeof at),
               "cublasLtMatmulDescSetAttribute");
  };
  if (gemm.epilogue & CUBLASLT_EPILOGUE_BIAS) point(CUBLASLT_MATMUL_DESC_BIAS_POINTER, m.bias);
  if (has_scales(gemm)) {
    point(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, m.weight_scales);
    point(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, m.x_scales);
  }
  const float one = 1, added = gemm.residual ? 1.0f : 0.0f;
  const std::int32_t whole_one = 1, whole_added = gemm.residual ? 1 : 0;
  const void* const alpha = is_whole(gemm) ? static_cast<const void*>(&whole_one) : &one;
  const void* const beta = is_whole(gemm) ? static_cast<const void*>(&whole_added) : &added;
  check_blas(library_.matmul(handle_, &own, alpha, m.weight, chosen.weight, m.x, chosen.x, beta,
                             gemm.residual ? m.residual : m.out, chosen.residual, m.out, chosen.out,
                             &chosen.algorithm, m.workspace, workspace_bytes(gemm), stream),
             "cublasLtMatmul");
  return true;
}

}  // namespace heddle::cuda
