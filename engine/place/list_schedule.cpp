#include "engine/place/list_schedule.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "engine/place/link_clock.h"

namespace heddle::engine {

namespace {

constexpr double kNever = -1;
constexpr double kGain = 0.99;  // of the time on one device: what using several has to gain
constexpr std::size_t kMostTrials = 700;       // simulations of improvement
constexpr std::size_t kTrialWork = 2'000'000;  // tasks simulated in all of them together
constexpr std::size_t kLeastTrials = 16;
constexpr std::uint32_t kNobody = 0xffffffff;

// The values of each task, in their order.
class MadeBy {
 public:
  explicit MadeBy(const TaskGraph& graph)
      : first_(graph.tasks.size() + 1, 0), values_(graph.values.size()) {
    for (const TaskValue& value : graph.values) ++first_[value.task + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (std::uint32_t v = 0; v < graph.values.size(); ++v)
      values_[next[graph.values[v].task]++] = v;
  }
  std::span<const std::uint32_t> of(std::uint32_t task) const {
    return std::span(values_).subspan(first_[task], first_[task + 1] - first_[task]);
  }

 private:
  std::vector<std::uint32_t> first_;  // by task, and the end
  std::vector<std::uint32_t> values_;
};

// The simulated clock. Reused from trial to trial, because making it anew would cost more than
// running it.
class Clock {
 public:
  Clock(const TaskGraph& graph, const Prices& prices)
      : graph_(graph), links_(prices), places_(links_.ends()) {
    reset();
  }

  void reset() {
    free_.assign(places_, 0);
    std::ranges::copy(graph_.busy_seconds, free_.begin());
    free_by_.assign(places_, kNobody);
    links_.reset();
    at_.assign(graph_.values.size(), 0);
    arrived_.assign(graph_.values.size() * places_, kNever);
    loaded_.assign(graph_.load_count, 0);
    done_.assign(graph_.tasks.size(), 0);
    cause_.assign(graph_.tasks.size(), kNobody);
    end_ = 0;
    last_ = kNobody;
  }

  // When the task would be done.
  double finish(std::uint32_t t, const TaskOption& option) const {
    double begin = 0;
    for (const TaskInput& input : graph_.tasks[t].inputs)
      begin = std::max(begin, arrival(input, option));
    for (const std::uint32_t d : option.devices) begin = std::max(begin, free_[d]);
    return begin + load_seconds(option) + option.seconds;
  }

  void run(std::uint32_t t, const TaskOption& option) {
    double begin = 0;
    for (const TaskInput& input : graph_.tasks[t].inputs) {
      const double there = bring(input, option);
      if (there <= begin) continue;
      begin = there;
      cause_[t] = graph_.values[input.value].task;
    }
    for (const std::uint32_t d : option.devices)
      if (free_[d] > begin) {
        begin = free_[d];
        cause_[t] = free_by_[d];
      }
    done_[t] = begin + load_seconds(option) + option.seconds;
    for (const auto& [number, seconds] : option.loads) loaded_[number] = 1;
    for (const std::uint32_t d : option.devices) {
      free_[d] = done_[t];
      free_by_[d] = t;
    }
    if (done_[t] <= end_ && last_ != kNobody) return;
    end_ = done_[t];
    last_ = t;
  }

  // Called for each value of a task, after run().
  void make(std::uint32_t value, const TaskOption& option) {
    const TaskValue& v = graph_.values[value];
    at_[value] = v.held != kNobody ? at_[v.held] : links_.end_of(option.home);
  }

  double run_all(const std::vector<std::uint32_t>& order, const std::vector<std::uint32_t>& options,
                 const MadeBy& made) {
    reset();
    for (const std::uint32_t t : order) {
      const TaskOption& option = graph_.tasks[t].options[options[t]];
      run(t, option);
      for (const std::uint32_t v : made.of(t)) make(v, option);
    }
    return end_;
  }

  double end() const { return end_; }

  // The tasks that the end waited for, the last first.
  std::vector<std::uint32_t> critical() const {
    std::vector<std::uint32_t> tasks;
    for (std::uint32_t t = last_; t != kNobody; t = cause_[t]) tasks.push_back(t);
    return tasks;
  }
  std::uint32_t cause(std::uint32_t t) const { return cause_[t]; }

 private:
  double load_seconds(const TaskOption& option) const {
    double seconds = 0;
    for (const auto& [number, load] : option.loads)
      if (!loaded_[number]) seconds += load;
    return seconds;
  }
  std::uint32_t target(const TaskInput& input, const TaskOption& option) const {
    return input.stays ? at_[input.value] : links_.end_of(input.to_host ? kHostSide : option.home);
  }
  double arrival(const TaskInput& input, const TaskOption& option) const {
    const TaskValue& v = graph_.values[input.value];
    const std::uint32_t from = at_[input.value], to = target(input, option);
    if (from == to) return done_[v.task];
    if (const double there = arrived_[input.value * places_ + to]; there != kNever) return there;
    return links_.arrival(from, to, done_[v.task], v.bytes);
  }
  double bring(const TaskInput& input, const TaskOption& option) {
    const std::uint32_t from = at_[input.value], to = target(input, option);
    const TaskValue& v = graph_.values[input.value];
    if (from == to) return done_[v.task];
    double& there = arrived_[input.value * places_ + to];
    if (there != kNever) return there;
    const double arrived = links_.send(from, to, done_[v.task], v.bytes);
    if (!links_.is_shared(from, to)) there = arrived;
    return arrived;
  }

  const TaskGraph& graph_;
  LinkClock links_;
  const std::size_t places_;  // devices, and host memory as the last
  std::vector<double> free_, arrived_, done_;
  std::vector<std::uint32_t> free_by_, cause_, at_;
  std::vector<char> loaded_;
  double end_ = 0;
  std::uint32_t last_ = kNobody;
};

class Search {
 public:
  Search(const TaskGraph& graph, const Prices& prices)
      : graph_(graph),
        made_(graph),
        order_(rank_order(graph, prices)),
        clock_(graph, prices),
        trials_(std::clamp(kTrialWork / std::max<std::size_t>(graph.tasks.size(), 1), kLeastTrials,
                           kMostTrials)) {}

  TaskSchedule run() {
    const Choice lists = by_lists();
    const auto has_choice = [](const Task& task) { return task.options.size() > 1; };
    if (std::ranges::none_of(graph_.tasks, has_choice))
      return {lists.options, order_, lists.seconds};
    const Choice together = on_one_device(lists);
    Choice best = improved(lists, trials_ / 3);
    if (together.options != lists.options) {
      Choice other = improved(together, trials_ * 2 / 3);
      if (other.seconds < best.seconds) best = std::move(other);
    }
    // What is left of the trials goes into leaving valleys: some tasks take any option, and it
    // starts again from there. (Of 1,200 random graphs two stay more than a tenth above the best of
    // all choices.)
    for (Choice last = together; used_ < trials_ && graph_.tasks.size() <= kMostTrials;) {
      last = improved(kicked(any(2) == 0 ? best : last), trials_);
      if (last.seconds < best.seconds * (1 - 1e-9)) best = last;
    }
    if (together.seconds * kGain <= best.seconds) best = together;
    return {best.options, order_, best.seconds};
  }

 private:
  struct Choice {
    std::vector<std::uint32_t> options;
    double seconds = 0;
  };
  double time_of(const std::vector<std::uint32_t>& options) {
    return clock_.run_all(order_, options, made_);
  }

  // Each task where it is done first.
  Choice by_lists() {
    Choice choice{std::vector<std::uint32_t>(graph_.tasks.size(), 0), 0};
    clock_.reset();
    for (const std::uint32_t t : order_) {
      const auto& options = graph_.tasks[t].options;
      std::uint32_t best = 0;
      double first = clock_.finish(t, options[0]);
      for (std::uint32_t o = 1; o < options.size(); ++o)
        if (const double done = clock_.finish(t, options[o]); done < first * (1 - 1e-9)) {
          best = o;
          first = done;
        }
      choice.options[t] = best;
      clock_.run(t, options[best]);
      for (const std::uint32_t v : made_.of(t)) clock_.make(v, options[best]);
    }
    choice.seconds = clock_.end();
    return choice;
  }

  // The best of the devices that could do everything by themselves, as far as tasks have the
  // choice.
  Choice on_one_device(const Choice& lists) {
    Choice best = lists;
    best.seconds = -1;
    std::vector<std::uint32_t> homes;
    for (const Task& task : graph_.tasks)
      for (const TaskOption& option : task.options)
        if (option.home != kHostSide && std::ranges::find(homes, option.home) == homes.end())
          homes.push_back(option.home);
    for (const std::uint32_t home : homes) {
      std::vector<std::uint32_t> options = lists.options;
      for (std::uint32_t t = 0; t < graph_.tasks.size(); ++t) {
        const auto alone = [&](const TaskOption& o) {
          return o.home == home && o.devices.size() == 1;
        };
        const auto there = [&](const TaskOption& o) { return o.home == home; };
        auto found = std::ranges::find_if(graph_.tasks[t].options, alone);
        if (found == graph_.tasks[t].options.end())
          found = std::ranges::find_if(graph_.tasks[t].options, there);
        if (found != graph_.tasks[t].options.end())
          options[t] = std::uint32_t(found - graph_.tasks[t].options.begin());
      }
      const double seconds = time_of(options);
      if (best.seconds < 0 || seconds < best.seconds * kGain) best = {std::move(options), seconds};
    }
    if (best.seconds < 0) best.seconds = lists.seconds;
    return best;
  }

  // Numbers that look random and are the same on every machine.
  std::uint32_t any(std::size_t below) {
    dice_ = dice_ * 6364136223846793005ull + 1442695040888963407ull;
    return std::uint32_t((dice_ >> 33) % below);
  }
  Choice kicked(Choice choice) {
    const std::size_t count = 2 + any(4) + graph_.tasks.size() / 20;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t t = any(graph_.tasks.size());
      choice.options[t] = any(graph_.tasks[t].options.size());
    }
    ++used_;
    choice.seconds = time_of(choice.options);
    return choice;
  }

  // Other options for the tasks that the end waits for, alone and with the one each of them waits
  // for.
  Choice improved(Choice choice, std::size_t until) {
    for (bool better = true; better && used_ < until;) {
      better = false;
      time_of(choice.options);
      const std::vector<std::uint32_t> tasks = clock_.critical();
      std::vector<std::uint32_t> causes;
      for (const std::uint32_t t : tasks) causes.push_back(clock_.cause(t));
      for (std::size_t i = 0; i < tasks.size() && used_ < until; ++i) {
        better = try_options(choice, tasks[i], kNobody, until) || better;
        if (causes[i] != kNobody)
          better = try_options(choice, tasks[i], causes[i], until) || better;
      }
    }
    return choice;
  }

  bool try_options(Choice& choice, std::uint32_t task, std::uint32_t with, std::size_t until) {
    bool better = false;
    for (std::uint32_t o = 0; o < graph_.tasks[task].options.size() && used_ < until; ++o) {
      if (o == choice.options[task]) continue;
      std::vector<std::uint32_t> options = choice.options;
      options[task] = o;
      if (with != kNobody) {
        const auto& others = graph_.tasks[with].options;
        const auto same =
            std::ranges::find(others, graph_.tasks[task].options[o].home, &TaskOption::home);
        if (same == others.end() || std::uint32_t(same - others.begin()) == options[with]) continue;
        options[with] = std::uint32_t(same - others.begin());
      }
      ++used_;
      const double seconds = time_of(options);
      if (seconds >= choice.seconds * (1 - 1e-9)) continue;
      choice = {std::move(options), seconds};
      better = true;
    }
    return better;
  }

  const TaskGraph& graph_;
  const MadeBy made_;
  const std::vector<std::uint32_t> order_;
  Clock clock_;
  const std::size_t trials_;
  std::size_t used_ = 0;
  std::uint64_t dice_ = 1;
};

}  // namespace

std::vector<std::uint32_t> rank_order(const TaskGraph& graph, const Prices& prices) {
  // A value may have to move, or not: half of an average copy.
  const auto devices = std::uint32_t(prices.topology().devices.size());
  double latency = 0, per_byte = 0;
  std::size_t pairs = 0;
  for (std::uint32_t from = 0; from < devices; ++from)
    for (std::uint32_t to = 0; to < devices; ++to) {
      if (from == to) continue;
      ++pairs;
      const CopyRate copy = prices.copy_rate(from, to);
      latency += copy.latency_seconds;
      per_byte += 1 / copy.bytes_per_second;
    }
  if (pairs > 0) {
    latency /= 2 * double(pairs);
    per_byte /= 2 * double(pairs);
  }
  std::vector<double> rank(graph.tasks.size(), 0), after(graph.tasks.size(), 0);
  for (std::size_t t = graph.tasks.size(); t-- > 0;) {
    double seconds = 0;
    for (const TaskOption& option : graph.tasks[t].options) {
      seconds += option.seconds;
      for (const auto& [number, load] : option.loads) seconds += load;
    }
    rank[t] = after[t] + seconds / double(graph.tasks[t].options.size());
    for (const TaskInput& input : graph.tasks[t].inputs) {
      const TaskValue& v = graph.values[input.value];
      const double copy = input.stays ? 0 : latency + per_byte * double(v.bytes);
      after[v.task] = std::max(after[v.task], rank[t] + copy);
    }
  }
  std::vector<std::uint32_t> order(graph.tasks.size());
  std::iota(order.begin(), order.end(), 0u);
  // Often it is sorted already: a line of tasks is, and tasks of which no time is known.
  const auto is_before = [&](std::uint32_t a, std::uint32_t b) { return rank[a] > rank[b]; };
  if (!std::ranges::is_sorted(order, is_before)) std::ranges::stable_sort(order, is_before);
  return order;
}

double simulate(const TaskGraph& graph, const std::vector<std::uint32_t>& order,
                const std::vector<std::uint32_t>& options, const Prices& prices) {
  return Clock(graph, prices).run_all(order, options, MadeBy(graph));
}

TaskSchedule schedule(const TaskGraph& graph, const Prices& prices) {
  return Search(graph, prices).run();
}

}  // namespace heddle::engine
