// Noise that equals `torch.randn` on the CPU, bit for bit, so that a seed gives the picture people
// know from other tools. The bits depend on the seed, the number of values and the Arithmetic
// alone: all Arithmetic::kContracted implementations (AVX2 or plain C++) agree on every processor,
// so the processor only decides the speed. Plain functions on spans; a Generator belongs to one
// caller and one thread at a time, everything else may be called from any thread.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace heddle::samplers {

// Which of PyTorch's two builds of the bulk transform is reproduced.
enum class Arithmetic {
  // The build for x86 processors with AVX2: polynomial logarithm, sine and cosine with fused
  // multiply-adds. What nearly everybody's pictures were made with, and the default everywhere.
  kContracted,
  // The portable build: logf, sinf and cosf of the C library, so its last bits are the C library's.
  kLibrary,
};

// Who computes Arithmetic::kContracted. The results are the same bits.
enum class NormalPath {
  kAuto,    // kAvx2 where the processor has it
  kAvx2,    // throws std::invalid_argument where the processor lacks AVX2 or FMA
  kScalar,  // plain C++ with std::fma
};

// True if NormalPath::kAvx2 can run here.
bool has_avx2_normals();

// MT19937 with PyTorch's seeding (`torch.Generator().manual_seed(seed)`): the low 32 bits of the
// seed count, so that s and s + 2^32 give the same noise. One thread at a time.
class Generator {
 public:
  explicit Generator(std::uint64_t seed, Arithmetic arithmetic = Arithmetic::kContracted,
                     NormalPath path = NormalPath::kAuto);

  // Fills `out` as one call of `torch.randn(out.size())` with this generator does. Calls do not add
  // up: two calls of 24 differ from one of 48, as they do in PyTorch.
  void normal(std::span<float> out);

  // Where it is between two calls, as text, and back. Throws std::invalid_argument for another
  // text.
  std::string state() const;
  void set_state(const std::string& state);

 private:
  void fill_uniform(std::span<float> out);
  void transform(std::span<float> groups) const;
  double next_small();

  std::mt19937 engine_;
  Arithmetic arithmetic_;
  NormalPath path_;
  // The second value of the last Box-Muller pair of a call with fewer than 16 values.
  std::optional<double> cached_;
};

// `count` values of `torch.randn(count)` from a fresh generator: the initial noise of one batch in
// C order. Element values depend on `count` (its last 16 when it is no multiple of 16).
std::pmr::vector<float> initial_noise(
    std::uint64_t seed, std::size_t count,
    std::pmr::memory_resource& memory = *std::pmr::get_default_resource());

// The initial noise of a batch whose items carry a `batch_index` (`noise_inds`): item k of the
// result is the noise that index batch_index[k] would get, each index drawn by its own call of
// `item_count` values from one generator. Returns batch_index.size() * item_count values, items in
// the order of `batch_index`, which may repeat and need not be sorted. Draws max(batch_index) + 1
// items. Throws std::invalid_argument on a negative index.
std::pmr::vector<float> initial_noise(
    std::uint64_t seed, std::size_t item_count, std::span<const std::int64_t> batch_index,
    std::pmr::memory_resource& memory = *std::pmr::get_default_resource());

// Every value times `factor`; nothing where that is 1.
void scale_noise(std::span<float> noise, float factor);

}  // namespace heddle::samplers
