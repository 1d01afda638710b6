// plugins/blocks/chunk_rounds.h - videos through the stages of an autoencoder, chunk by chunk: on
// one device, or, where the plan has stages or chunks on several, with some chunks under way, each
// device at another one (heddle/stages.hpp). The numbers are the same. One call's thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <heddle/node.hpp>

namespace heddle::vae {

// One side of an autoencoder at work on one video.
class ChunkSide {
 public:
  virtual ~ChunkSide() = default;
  // The next chunk, what the first stage takes -> what the last one makes.
  virtual Tensor next(Context& ctx, Tensor chunk) = 0;
};

struct ChunkRounds {
  std::int64_t videos = 1, chunks = 1;  // of each
  // Of chunk `chunk` of a video: what the first stage takes; empty where it takes nothing more, as
  // at the end of a video whose later stages have still to do. In order, some chunks ahead; where
  // there is no room, once more from the first chunk of the video under way on, or, where chunks
  // are independent, from the first that is not read.
  std::function<Tensor(std::int64_t video, std::int64_t chunk)> give = {};
  // What is read of what the last stage has made. Only enqueues; empty: that itself.
  std::function<Tensor(const Tensor& made)> finish = {};
  // Each chunk once, in order. Has to wait for the tensor where `waits`: the others are under way.
  // always_waits: it does so on one device, too, which is given the next chunk before.
  std::function<void(std::int64_t video, std::int64_t chunk, const Tensor& made, bool waits)> read =
      {};
  bool always_waits = false;
  // No chunk reads what another one left behind: what is begun again begins with the first chunk
  // that is not read.
  bool are_independent = false;
  // What stages are given besides, of the node's device.
  std::vector<Tensor> given = {};
};

// Begins a video, of this number.
using BeginSide = std::function<std::unique_ptr<ChunkSide>(std::int64_t video)>;

// Where memory lacks for several devices at a time, a warning says so, and one device goes on from
// the first chunk of the video under way, or the first that is not read; where it lacks for two
// chunks of one device, one by one. Throws what the models and the functions throw, and
// HEDDLE_CANCELLED.
void code_chunks(Context& ctx, const BeginSide& begin, const ChunkRounds& rounds);

}  // namespace heddle::vae
