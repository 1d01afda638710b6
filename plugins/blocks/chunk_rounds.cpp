#include "plugins/blocks/chunk_rounds.h"

#include <deque>
#include <memory>

#include <heddle/stages.hpp>

#include "plugins/blocks/no_room.h"

namespace heddle::vae {
namespace {

// All chunks from the first one of the video that is not all read; where they are independent, from
// the first one that is not.
class Pass {
 public:
  // behind: chunks made before the first of them is read. read: chunks of all videos that have been
  // read.
  Pass(Context& ctx, const ChunkRounds& rounds, Stages& stages, std::int64_t behind,
       std::int64_t& read)
      : ctx_(ctx),
        rounds_(rounds),
        stages_(stages),
        ahead_(stages.ahead()),
        behind_(behind),
        read_(read),
        next_given_(rounds.are_independent ? read : read / rounds.chunks * rounds.chunks),
        next_read_(next_given_) {}

  void run(const BeginSide& begin) {
    const std::int64_t count = rounds_.videos * rounds_.chunks;
    if (ahead_ > 0)
      for (const Tensor& one : rounds_.given) stages_.written(one);
    std::unique_ptr<ChunkSide> side;
    for (std::int64_t i = next_given_; i < count; ++i) {
      if (side == nullptr || i % rounds_.chunks == 0) side = begin(i / rounds_.chunks);
      stop_if_cancelled();
      // Before what the last stage has still to do stands in the way.
      while (next_given_ < count && next_given_ <= i + ahead_) give();
      Tensor chunk = std::move(given_.front());
      given_.pop_front();
      Tensor made = side->next(ctx_, std::move(chunk));
      if (rounds_.finish) made = rounds_.finish(made);
      if (made && behind_ > 0) stages_.written(made);
      made_.push_back(std::move(made));
      if (std::int64_t(made_.size()) > behind_) read_next();
    }
    while (!made_.empty()) read_next();
  }

 private:
  void give() {
    given_.push_back(rounds_.give(next_given_ / rounds_.chunks, next_given_ % rounds_.chunks));
    if (ahead_ > 0 && given_.back()) stages_.written(given_.back());
    ++next_given_;
  }
  void read_next() {
    stop_if_cancelled();
    const Tensor made = std::move(made_.front());
    made_.pop_front();
    const std::int64_t i = next_read_++;
    if (i < read_) return;  // of a video that was begun again
    rounds_.read(i / rounds_.chunks, i % rounds_.chunks, made, ahead_ > 0);
    read_ = i + 1;
  }
  void stop_if_cancelled() const {
    if (ctx_.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
  }

  Context& ctx_;
  const ChunkRounds& rounds_;
  Stages& stages_;
  const std::int64_t ahead_, behind_;
  std::int64_t& read_;
  std::int64_t next_given_, next_read_;
  std::deque<Tensor> given_, made_;
};

}  // namespace

void code_chunks(Context& ctx, const BeginSide& begin, const ChunkRounds& rounds) {
  std::int64_t read = 0;
  Stages stages(ctx);
  // Empty: done.
  const auto lacks_room = [&](std::int64_t behind) {
    Tensor nothing;
    return blocks::no_room(
        [&] {
          Pass(ctx, rounds, stages, behind, read).run(begin);
          return Tensor();
        },
        nothing);
  };
  if (stages.ahead() > 0) {
    const std::string why = lacks_room(stages.ahead());
    if (why.empty()) return stages.join();
    stages.give_up();  // what has failed on a device is no lack of room
    ctx.warn("there is no room for chunks on several devices at a time, so one device goes on. " +
             why);
  }
  // While a chunk is read, one device has the next one to do.
  if (rounds.always_waits && lacks_room(1).empty()) return;
  Pass(ctx, rounds, stages, 0, read).run(begin);
}

}  // namespace heddle::vae
