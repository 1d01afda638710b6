// How fast patches are merged into the matrices of a big model.
//
//   patch_merge [RANK...]     one line for each rank: milliseconds, GFLOP/s, GB/s of merged f32
//
// One matrix of FLUX.1 (12288 x 3072, bf16) and a product, both of zeros: arithmetic does not care.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/memory/patch_merge.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace engine = heddle::engine;

int main(int count, char** arguments) {
  constexpr std::int64_t kRows = 12288, kColumns = 3072;
  heddle::test::TemporaryFolder folder;
  std::vector<std::int64_t> ranks;
  for (int i = 1; i < count; ++i) ranks.push_back(std::atoi(arguments[i]));
  if (ranks.empty()) ranks = {4, 16, 64, 128};
  for (const std::int64_t rank : ranks) {
    const auto path = folder / ("rank" + std::to_string(rank) + ".safetensors");
    heddle::test::write_header_only(path, {{"down", "BF16", {rank, kColumns}},
                                           {"up", "BF16", {kRows, rank}},
                                           {"weight", "BF16", {kRows, kColumns}}});
    const engine::Checkpoint file = engine::open_checkpoint(path);
    const auto patches = engine::WeightPatches::extend(
        nullptr, file, file, std::vector<engine::WeightPatch>{{"up", "down", 0.5, {{"weight"}}}});
    std::vector<float> out(std::size_t(kRows * kColumns));
    double best = 1e9;
    for (int run = 0; run < 4; ++run) {
      const auto begin = std::chrono::steady_clock::now();
      engine::merge_patches(
          {&file.at("weight"), 0, kRows, {{0, kColumns}}, {&patches->of("weight")[0]}}, out.data());
      best = std::min(
          best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    std::printf("rank %3d: %7.1f ms, %6.1f GFLOP/s, %5.2f GB/s\n", int(rank), best * 1e3,
                2e-9 * double(rank) * double(kRows * kColumns) / best,
                4e-9 * double(kRows * kColumns) / best);
  }
}
