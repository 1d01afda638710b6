// Card: what is known of a GPU before anything is made on it, and what follows from that: how fast
// it should be, what it lacks. The cards are found once for the process, by NVML where that leaves
// no doubt about CUDA's ordinals, else by the driver; neither makes a context. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "heddle/abi/base.h"
#include "heddle/abi/value.h"

namespace heddle::cuda {

struct Card {
  std::string name;          // "NVIDIA H200"
  std::string uuid;          // "GPU-00112233-4455-6677-8899-aabbccddeeff"
  std::string pci_address;   // "0000:1b:00.0"
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  double clock = 0, memory_clock = 0;  // Hz, the highest; 0: unknown
  int memory_bits = 0;                 // of the memory's bus; 0: unknown
  std::uint64_t memory_bytes = 0;      // that programs can have
  bool integrated = false;             // its memory is the host's
};

struct PeerWay {
  bool is_direct = false;  // copies, and reading from kernels
  bool is_nvlink = false;
};

// Of this process, in the order of "cuda:0", "cuda:1", ...; empty where no GPU can be used:
// no_cards_reason().
const std::vector<Card>& cards();
const std::string& no_cards_reason();

// At the debug level: why there are none, and why they are from the driver, which takes some memory
// of each card and tenths of a second for that.
void report_cards(const heddle_host& host);

PeerWay peer_way(const Card& from, const Card& to);

// Bytes of shared memory that a block may ask for.
std::size_t most_shared_bytes(const Card& card);

// From clocks and widths, until somebody has measured; 0: unknown. Of a large product in the type
// to compute with, and of a copy (read and written together).
double flops_per_second(const Card& card, heddle_dtype compute);
double bytes_per_second(const Card& card);

// "compute capability 9.0"
std::string architecture_of(const Card& card);

// Whether kernels for Hopper alone run on it: attention_fp8.cu, conv_hopper.cu; what to say where
// the first does not.
bool has_hopper_kernels(const Card& card);
std::string no_fp8_attention(const Card& card);

// What the card, or this build for it, lacks and what is done instead: a sentence a line.
std::string fallbacks_of(const Card& card);

}  // namespace heddle::cuda
