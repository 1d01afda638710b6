// plugins/detection/sam3_follow.h - SAM 3.1's tracker (sam3.h) as a node calls it, frame by frame,
// with what it remembers: the frame of its first masks and the last ones. Things share a call, as
// many as the tracker has slots; more of them have one more call each. One call's thread.
#pragma once

#include <deque>
#include <functional>

#include "sam3_calls.h"
#include "sam3_mask_math.h"

namespace heddle::detection {

// How many pointers are read at most, and how many things are followed where nobody says.
inline constexpr std::int64_t kSam3Pointers = 16, kSam3Things = 64;

class Sam3Follower {
 public:
  // frames: of the whole video.
  Sam3Follower(Context& ctx, const Sam3Parts& parts, Sam3Calls& calls, std::int64_t frames);

  // How many things are followed, and from now on.
  std::size_t things() const { return things_; }
  void add(std::size_t more) { things_ += more; }

  // Begins with the masks of all things at a frame, 0 or 1 in the trunk's size.
  void begin(std::int64_t frame, const Tensor& hidden, const std::vector<Floats>& masks);
  // The masks at a later frame, logits of the decoder's size (mask_side).
  std::vector<Floats> follow(std::int64_t frame, const Tensor& hidden);
  // What is remembered of the frame that was followed last; may be told again. given: of each thing
  // whether its mask is one that was found.
  void remember(const Tensor& hidden, const std::vector<Floats>& masks,
                const std::vector<bool>& given);

 private:
  // What is remembered of a frame: of each call's things.
  struct Frame {
    std::int64_t number;
    Tensor cells;
    std::vector<Tensor> memories;
    std::vector<std::vector<float>> pointers;
  };
  // A frame's memory or pointer, and its row of the table of times or its age.
  struct Seen {
    const Frame* frame;
    std::int64_t row;
    float age;
  };
  // A thing's mask as the memory's encoder has it, from -1 to 1, four times as wide as those of the
  // decoder. Things that are not there have one, too.
  struct Shown {
    Floats mask;
    bool is_there;
  };
  using Show = std::function<Shown(std::size_t thing)>;

  std::size_t slots() const { return std::size_t(parts_.tracker.slots); }
  std::size_t calls_of_frame() const { return (things_ + slots() - 1) / slots(); }
  std::vector<Seen> memories_at(std::int64_t frame) const;
  std::vector<Seen> pointers_at(std::int64_t frame) const;
  Record remembered(std::int64_t frame, std::size_t call) const;
  void memorise(Frame& frame, const Tensor& hidden, const Show& show,
                const std::vector<bool>& given);
  std::vector<float> pointer_of(const Tensor& hidden, const Floats& mask);

  Context& ctx_;
  const Sam3Parts& parts_;
  Sam3Calls& calls_;
  const std::int64_t frames_;
  std::size_t things_ = 0;
  std::vector<Frame> first_;  // one, or none yet
  std::deque<Frame> later_;
};

}  // namespace heddle::detection
