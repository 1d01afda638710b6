// plugins/denoisers/wan_sound.h - what a graph of Wan has more where the file is of Wan 2.2 S2V
// (sound to video): tokens of a picture and of earlier frames behind the video's, and layers that
// look at a sound. Used while a graph is built; any thread.
#pragma once

#include <optional>
#include <utility>

#include <heddle/model.hpp>

#include "wan_names.h"
#include "wan_sizes.h"

namespace heddle::denoisers {

class WanSound {
 public:
  // All outlive it. x: the latent.
  WanSound(const Checkpoint& file, const WanNames& names, const WanSizes& sizes, double eps,
           Blocks& graph, const Source& x);

  // cos and sin of all tokens.
  std::pair<Source, Source> rope();
  // hidden with all tokens; the sound is heard, too.
  Source begin(const Source& hidden);
  // hidden behind layer i, with what the video sees of the sound where the model has it look there.
  Source behind(int layer, const Source& hidden);

 private:
  Source add_tokens(const std::string& path, const Source& latent, const std::string& module,
                    std::int64_t kind);
  Source add_motion();
  void add_heard();
  Source add_sound_keys(int injector, const std::string& at);

  const Checkpoint& file_;
  const WanNames& names_;
  const WanSizes& s_;
  const double eps_;
  Blocks& graph_;
  const Source x_;
  Source reference_, motion_, heard_, whole_;
};

// Of the file: 0 injectors where it is of another model. Throws where sizes contradict each other.
WanSoundSizes read_wan_sound_sizes(const Checkpoint& file, const WanNames& names, int layers);

}  // namespace heddle::denoisers
