// A path of a Brownian motion that depends on a seed alone, not on where it is looked at: what SDE
// samplers of ComfyUI take their noise from. Bit for bit that of torchsde's BrownianTree on the CPU
// in single precision (tolerance 1e-6, pool of 24), as k-diffusion's BrownianTreeNoiseSampler uses
// it, but for its square root, which is rounded correctly here. (PyTorch's is good to one unit in
// the last place, differently on different processors.)
//
// The interval is halved until both ends of a question lie on ends of parts; each part has a seed
// of its own, by which its increment is shared out to its halves (a Brownian bridge). Times are
// rounded to six decimals. Immutable; any thread.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>

namespace heddle::samplers {

class BrownianTree {
 public:
  // Between two different finite levels, in any order.
  BrownianTree(std::uint64_t seed, float level_a, float level_b);

  // (W(to) - W(from)) / sqrt|to - from|: a standard normal draw for a step between two levels of
  // the interval (others are moved to its ends). `out` is one tensor in C order; its values depend
  // on its size. Zeros where the levels are equal in six decimals. Takes little memory from
  // `memory`, whatever the size.
  void noise(float from, float to, std::span<float> out,
             std::pmr::memory_resource& memory = *std::pmr::get_default_resource()) const;

  // The most that noise() takes for a tensor of `count` values.
  static std::size_t scratch_bytes(std::size_t count);

 private:
  std::uint64_t seed_;
  double start_, end_;  // rounded
  float spread_;        // sqrt(end - start) before rounding
};

}  // namespace heddle::samplers
