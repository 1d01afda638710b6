// plugins/denoisers/wan_dancer.h - what a graph of Wan has more where the file is of WanDancer: a
// music that is added behind some layers, a second picture that is seen, and filters and a head of
// their own for frames that lie apart. Used while a graph is built; any thread.
//
// Inputs   music (1|B, S, N)  loop-invariant, optional  N numbers, the setting music_numbers, of
//                                       each of S moments of a music
//          music_strength (1) loop-invariant, optional  how much it counts; absent: 1
//          reference_vision   loop-invariant, optional  as vision, of the picture that is kept to
//          frame_places (F)   loop-invariant, optional  the frames lie apart, here
// Blocks   embed.music, embed.music_layer.<i>, embed.music_spread, embed.reference_vision,
//          embed.vision_join, music.<k>.told, music.<k>.add, final_apart.modulation
#pragma once

#include <utility>

#include <heddle/model.hpp>

#include "plugins/blocks/slots.h"
#include "wan_names.h"
#include "wan_sizes.h"

namespace heddle::denoisers {

class WanDancer {
 public:
  // All outlive it. x: the latent.
  WanDancer(const Checkpoint& file, const WanNames& names, const WanSizes& sizes, double eps,
            Blocks& graph, const Source& x);

  // cos and sin of all tokens.
  std::pair<Source, Source> rope() const;
  Source embed_latent(const Source& concat) const;
  // What was seen of the kept picture, reference, before what was of the first frame.
  Source join_vision(const Source& reference, const Source& own) const;
  // hidden behind layer i, with the music where the model adds it there.
  Source behind(int layer, const Source& hidden) const;
  // mod: of frames of a film, apart_mod: of those that lie apart.
  Source final_block(const Source& hidden, const Source& mod, const Source& apart_mod) const;

 private:
  void linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
              const std::string& module, std::int64_t out, std::int64_t in) const;
  Source add_music();
  Source add_music_layer(int layer, const Source& hidden) const;

  const Checkpoint& file_;
  const WanNames& names_;
  const WanSizes& s_;
  const double eps_;
  Blocks& graph_;
  const Source x_, frame_places_, strength_;
  Source moments_;
};

// Of the file: 0 numbers where it is of another model. Throws where sizes contradict each other.
MusicSizes read_music_sizes(const Checkpoint& file, const WanNames& names, const WanSizes& sizes);

}  // namespace heddle::denoisers
