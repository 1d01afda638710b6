// What CUDA's driver knows of GPUs without a context on any of them, through libcuda.so.1, which is
// opened when first asked for. cuInit takes a tenth of a second for each GPU, and no memory of
// them. Thread-safe.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "card.h"

namespace heddle::cuda::driver {

// In the order of CUDA's ordinals. Empty: `why` says the reason.
std::vector<Card> cards(std::string& why);

// The ordinal of the card with this UUID, by which the runtime knows it; -1: there is none now.
int ordinal_of(const std::string& uuid);

// Whether copies go from one to the other, and whether kernels of one may work atomically in the
// other's memory, as over NVLink.
PeerWay peer_way(const Card& from, const Card& to);

// Whether this driver makes descriptions of tensors that cards from Hopper on copy boxes by, and
// one of them; throws device::Error with what the driver says. Without a context. Sizes, and steps
// of all axes but the innermost in bytes, the innermost axis first.
bool can_encode();
void encode(CUtensorMap& map, CUtensorMapDataType type, unsigned rank, void* data,
            const cuuint64_t* sizes, const cuuint64_t* steps, const cuuint32_t* box,
            const cuuint32_t* element_steps, CUtensorMapSwizzle swizzle);

// Whether the card has a primary context now, made by anybody in this process.
bool has_primary_context(int ordinal);

}  // namespace heddle::cuda::driver
