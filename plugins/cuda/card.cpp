#include "card.h"

#include <algorithm>
#include <array>

#include "heddle/device.hpp"

namespace heddle::cuda {

namespace {

int capability(const Card& card) { return 10 * card.major + card.minor; }

// Operations of a dense product that one multiprocessor does in a clock, with sums in f32: from
// NVIDIA's architecture papers. GeForce cards of a generation do half of what its others do.
double operations_per_clock(const Card& card, heddle_dtype compute) {
  const bool is_geforce = card.name.find("GeForce") != std::string::npos;
  if (compute == HEDDLE_F32) return capability(card) == 80 ? 128 : 256;
  switch (card.major) {
    case 8:
      return card.minor == 0 ? 2048 : is_geforce ? 512 : 1024;
    case 9:
      return 4096;
    case 10:
    case 11:
      return 8192;
    case 12:
      return is_geforce ? 512 : 1024;
    default:
      return card.major < 8 ? 1024 : 4096;
  }
}

// Capabilities that this build has machine code for; the build names them: 0, which is none,
// 80, 90.
constexpr std::array kBuiltFor = {HEDDLE_CUDA_CODE};

// Machine code runs on cards of the same generation that are not older.
bool has_machine_code(const Card& card) {
  return std::ranges::any_of(
      kBuiltFor, [&](int built) { return built / 10 == card.major && built % 10 <= card.minor; });
}

}  // namespace

std::size_t most_shared_bytes(const Card& card) {
  const int kib = capability(card) == 80 || capability(card) == 87 ? 163
                  : card.major == 8 || card.major == 12            ? 99
                  : card.major >= 9                                ? 227
                                                                   : 48;
  return static_cast<std::size_t>(kib) << 10;
}

// Large products reach three quarters of the peak, copies nine tenths.
double flops_per_second(const Card& card, heddle_dtype compute) {
  return 0.75 * operations_per_clock(card, compute) * card.multiprocessors * card.clock;
}

double bytes_per_second(const Card& card) {
  return 0.9 * 2 * card.memory_clock * card.memory_bits / 8;
}

std::string architecture_of(const Card& card) {
  return device::cat("compute capability ", card.major, ".", card.minor);
}

bool has_hopper_kernels(const Card& card) {
  return capability(card) == 90 && std::ranges::find(kBuiltFor, 90) != kBuiltFor.end();
}

std::string no_fp8_attention(const Card& card) {
  return device::cat("no attention in 8 bits (attention_dtype fp8_e4m3fn) ",
                     capability(card) == 90 ? "in this build, which has no machine code for 9.0"
                                            : device::cat("for capability ", card.major, ".",
                                                          card.minor, ", only for 9.0"),
                     ": it is done in the compute type");
}

std::string fallbacks_of(const Card& card) {
  const std::string who = device::cat("capability ", card.major, ".", card.minor);
  if (capability(card) < 80)
    return device::cat("not supported: this build has no code for ", who,
                       ", the least is 8.0. Leave the card out (--devices cpu)\n");
  std::string lines;
  if (!has_machine_code(card))
    lines += device::cat("no machine code for ", who,
                         " in this build: the driver compiles the kernels from PTX of 8.0 at first "
                         "use and keeps them\n");
  if (card.major < 9)
    lines +=
        "no fp8 products (scales by row need 9.0): fp8_e4m3fn_fast keeps weights in 8 bits and "
        "widens them before each product (kernel \"cublaslt widened\")\n";
  else if (card.major > 9)
    lines +=
        "fp8 products (kernel \"cublaslt f8\") only where cuBLASLt has them with scales by row; "
        "else weights are widened (\"cublaslt widened\")\n";
  if (!has_hopper_kernels(card)) lines += no_fp8_attention(card) + "\n";
  if (card.major < 9)
    lines +=
        "attention and convolutions for which cuDNN has no kernel here run on two products "
        "(\"cublaslt\") and on kernels of our own (\"few\", \"plain\")\n";
  return lines;
}

}  // namespace heddle::cuda
