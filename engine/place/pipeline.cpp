#include "engine/place/pipeline.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace heddle::engine {

namespace {

constexpr double kNoWay = std::numeric_limits<double>::infinity();

double copy_seconds(const CopyRate& rate, double bytes) {
  if (bytes <= 0 || rate.is_free()) return 0;
  return rate.is_there() ? rate.latency_seconds + bytes / rate.bytes_per_second : kNoWay;
}

// Dynamic programming: the best way to run the groups before a cut with a set of stages, of which
// one comes last. What extends it is a minimum over the beginnings of the last range that its
// memory allows, which only move forwards as its end does, so a queue finds it.
class PipelineTable {
 public:
  explicit PipelineTable(const PipelineCase& pipeline)
      : case_(pipeline),
        stages_(std::uint32_t(pipeline.stages.size())),
        cuts_(pipeline.weights.size()),
        ways_((std::size_t(1) << stages_) * stages_ * cuts_) {}

  std::vector<std::optional<Pipeline>> run() {
    std::vector<std::optional<Pipeline>> best(stages_);
    const std::uint32_t sets = 1u << stages_;
    for (std::uint32_t set = 1; set < sets; ++set)
      for (std::uint32_t last = 0; last < stages_; ++last) {
        if ((set >> last & 1) == 0) continue;
        find_beginnings(set & ~(1u << last), last);
        extend(set, last);
        if ((set & case_.needed) != case_.needed) continue;
        const double seconds =
            way(set, last, cuts_ - 1).seconds +
            case_.times * copy_seconds(case_.stages[last].to_home, case_.last_bytes);
        std::optional<Pipeline>& known = best[std::size_t(std::popcount(set)) - 1];
        if (seconds < (known ? known->seconds : kNoWay)) known = read(set, last, seconds);
      }
    return best;
  }

 private:
  struct Way {
    double seconds = kNoWay;
    std::uint32_t begin = 0;   // of the last range
    std::uint32_t before = 0;  // the stage before it
  };
  struct Beginning {
    double seconds = kNoWay;  // less what the stage takes for the groups before
    std::uint32_t before = 0;
  };
  Way& way(std::uint32_t set, std::uint32_t last, std::size_t cut) {
    return ways_[(std::size_t(set) * stages_ + last) * cuts_ + cut];
  }

  // Of a range of `last` behind those of `set`, by cut.
  void find_beginnings(std::uint32_t set, std::uint32_t last) {
    const PipelineCase::Stage& stage = case_.stages[last];
    beginnings_.assign(cuts_, {});
    if (set == 0)
      beginnings_[0].seconds = case_.times * copy_seconds(stage.from_home, case_.first_bytes);
    for (std::uint32_t before = 0; before < stages_; ++before) {
      if ((set >> before & 1) == 0) continue;
      const CopyRate& link = case_.links[before * stages_ + last];
      for (std::size_t cut = 1; cut + 1 < cuts_; ++cut) {
        const double reached = way(set, before, cut).seconds;
        if (reached == kNoWay) continue;
        const double seconds =
            reached + case_.times * copy_seconds(link, case_.crossing[cut]) - stage.seconds[cut];
        if (seconds < beginnings_[cut].seconds) beginnings_[cut] = {seconds, before};
      }
    }
  }

  void extend(std::uint32_t set, std::uint32_t last) {
    const PipelineCase::Stage& stage = case_.stages[last];
    queue_.clear();
    std::size_t front = 0, first = 0;
    for (std::size_t end = 1; end < cuts_; ++end) {
      const Beginning& added = beginnings_[end - 1];
      while (queue_.size() > front && beginnings_[queue_.back()].seconds > added.seconds)
        queue_.pop_back();
      queue_.push_back(std::uint32_t(end - 1));
      while (first < end && case_.weights[end] - case_.weights[first] > stage.bytes) ++first;
      while (front < queue_.size() && queue_[front] < first) ++front;
      if (front == queue_.size()) continue;
      const Beginning& best = beginnings_[queue_[front]];
      if (best.seconds == kNoWay) continue;
      way(set, last, end) = {best.seconds + stage.seconds[end], queue_[front], best.before};
    }
  }

  Pipeline read(std::uint32_t set, std::uint32_t last, double seconds) {
    Pipeline pipeline{seconds, {}, {}};
    auto cut = std::uint32_t(cuts_ - 1);
    while (true) {
      const Way& here = way(set, last, cut);
      pipeline.stages.push_back(last);
      pipeline.ends.push_back(cut);
      if (here.begin == 0) break;
      set &= ~(1u << last);
      last = here.before;
      cut = here.begin;
    }
    std::ranges::reverse(pipeline.stages);
    std::ranges::reverse(pipeline.ends);
    return pipeline;
  }

  const PipelineCase& case_;
  const std::uint32_t stages_;
  const std::size_t cuts_;
  std::vector<Way> ways_;  // by set, last stage and cut
  std::vector<Beginning> beginnings_;
  std::vector<std::uint32_t> queue_;  // cuts, of beginnings that get slower
};

}  // namespace

std::vector<std::optional<Pipeline>> fastest_pipelines(const PipelineCase& pipeline) {
  return PipelineTable(pipeline).run();
}

}  // namespace heddle::engine
