// plugins/detection/sam3_decoder.h - the graph of a mask decoder of SAM 3 (Kirillov et al. 2023,
// Segment Anything): tokens and cells see each other, and cells become pixels. One call's thread.
#pragma once

#include <string>

#include "sam3_build.h"

namespace heddle::detection {

class Sam3Decoder {
 public:
  // path: before the names of its blocks; names: before those of its tensors, with a dot. tokens
  // (1, N, C), cells (1, H W, C), places of the cells.
  struct Seen {
    Source tokens, cells, places;
  };
  Sam3Decoder(const Sam3Maker& maker, std::string path, std::string names, const Seen& seen)
      : maker_(maker), path_(std::move(path)), names_(std::move(names)), seen_(seen) {}

  // Adds all layers. Returns the tokens, in which masks and scores are; then pixels() may be asked.
  Source tokens();
  // (1, 4 H, 4 W, C / 8), of cells and grids of twice and four times as many lines.
  Source pixels(const Source& middle, const Source& fine) const;

 private:
  std::string first_of(const std::vector<std::string>& modules) const;
  Source to_cells(const std::string& path, const std::string& at, const std::string& norm) const;
  void two_ways(int index, const std::string& layers);

  const Sam3Maker& maker_;
  const std::string path_, names_;
  const Seen seen_;
  Source tokens_ = {}, cells_ = {};
};

}  // namespace heddle::detection
