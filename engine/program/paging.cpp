#include "engine/program/paging.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

namespace heddle::engine {

namespace {

constexpr double kEqualTime = 1.001;  // step times closer than this are the same
constexpr std::size_t kMostLeastTries =
    256;  // sizes of the smallest staging ring that are tried one by one
constexpr std::size_t kLongestRun = 32;  // weights in a row whose sum may be such a size

using Weights = std::vector<PagedWeight>;

// Positions of weights, in the order in which they are first read.
std::vector<std::uint32_t> by_first_read(const Weights& weights) {
  std::vector<std::uint32_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t w) { return weights[w].first; });
  return order;
}

// Finds who has to be done before a page may be written: walks back over what was copied before,
// until every byte of its place was found in somebody's.
class Blockers {
 public:
  Blockers(std::uint64_t begin, std::uint64_t end) : open_{{begin, end}} {}
  bool is_done() const { return open_.empty(); }
  // Whether [begin, end) has some of the bytes; they count as found.
  bool take(std::uint64_t begin, std::uint64_t end) {
    bool any = false;
    for (std::size_t i = 0; i < open_.size();) {
      const auto [b, e] = open_[i];
      if (end <= b || e <= begin) {
        ++i;
        continue;
      }
      any = true;
      open_.erase(open_.begin() + std::ptrdiff_t(i));
      if (b < begin) open_.insert(open_.begin() + std::ptrdiff_t(i++), {b, begin});
      if (end < e) open_.insert(open_.begin() + std::ptrdiff_t(i++), {end, e});
    }
    return any;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> open_;
};

// Streamed weights in a staging ring of this size; nothing where a weight would have to come in
// before there is room for it. `ops`: of a step, or 0 where there is no step before.
std::optional<std::vector<StreamedWeight>> pass(const Weights& weights,
                                                const std::vector<std::uint32_t>& streamed,
                                                std::uint64_t staging_ring, std::int64_t ops) {
  const auto count = std::int64_t(streamed.size());
  std::vector<StreamedWeight> pages;
  std::uint64_t head = 0;
  for (const std::uint32_t w : streamed) {
    const std::uint64_t bytes = padded_page_bytes(weights[w].bytes);
    if (bytes > staging_ring) return {};
    if (head + bytes > staging_ring) head = 0;
    pages.push_back({w, head, -1});
    head += bytes;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    StreamedWeight& page = pages[std::size_t(i)];
    const PagedWeight& weight = weights[page.weight];
    Blockers blockers(page.offset, page.offset + padded_page_bytes(weight.bytes));
    std::int64_t behind = ops == 0 ? -1 : -ops;
    for (std::int64_t back = 1; back <= (ops == 0 ? i : count) && !blockers.is_done(); ++back) {
      const bool earlier_step = back > i;
      const StreamedWeight& other = pages[std::size_t(earlier_step ? i - back + count : i - back)];
      if (!blockers.take(other.offset,
                         other.offset + padded_page_bytes(weights[other.weight].bytes)))
        continue;
      behind =
          std::max(behind, std::int64_t(weights[other.weight].last) - (earlier_step ? ops : 0));
    }
    if (behind >= std::int64_t(weight.first)) return {};
    page.behind = behind;
  }
  // Copies run in order: none starts before the one before it, the last one of a step included.
  std::int64_t latest = ops == 0 || count == 0 ? -1 : -ops;
  for (int round = 0; round < (ops == 0 ? 1 : 2); ++round) {
    for (StreamedWeight& page : pages) page.behind = latest = std::max(latest, page.behind);
    latest -= ops;
  }
  for (const StreamedWeight& page : pages)
    if (page.behind >= std::int64_t(weights[page.weight].first)) return {};
  return pages;
}

std::uint64_t staging_ring_of(const Weights& weights, const std::vector<StreamedWeight>& pages) {
  std::uint64_t end = 0;
  for (const StreamedWeight& page : pages)
    end = std::max(end, page.offset + padded_page_bytes(weights[page.weight].bytes));
  return end;
}

// Splits weights into small ones and others, and knows the smallest staging ring for all the
// others.
class Pager {
 public:
  explicit Pager(const PagingCase& paging, std::optional<MinWeightMemory> least = {})
      : paging_(paging), ops_(std::int64_t(paging.op_seconds.size())) {
    for (const std::uint32_t w : by_first_read(paging.once)) sort(paging.once[w], w, once_);
    for (const std::uint32_t w : by_first_read(paging.loop)) sort(paging.loop[w], w, loop_);
    least_ = least ? *least : MinWeightMemory{small_bytes_, min_staging_ring()};
  }

  const MinWeightMemory& least() const { return least_; }

  PagingPlan run() const {
    const std::uint64_t all = small_bytes_ + sum(paging_.once, once_) + sum(paging_.loop, loop_);
    if (all <= paging_.available) {
      PagingPlan plan;
      plan.resident_bytes = all;
      plan.step_seconds = simulate_paging(paging_, plan);
      return plan;
    }
    std::vector<PagingPlan> plans;
    // The first is for when only what is read before the loop has to pass.
    std::set<std::uint64_t> staging_rings{0};
    for (const std::uint32_t w : once_)
      staging_rings = {std::max(*staging_rings.begin(), padded_page_bytes(paging_.once[w].bytes))};
    for (const double times : {1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0})
      staging_rings.insert(
          padded_page_bytes(std::uint64_t(double(least().staging_ring_bytes) * times)));
    for (const std::uint64_t staging_ring : staging_rings)
      for (const Spread spread : {Spread::bytes, Spread::seconds})
        if (staging_ring + small_bytes_ <= paging_.available)
          if (auto plan = with(staging_ring,
                               choose(paging_.available - staging_ring - small_bytes_, spread)))
            plans.push_back(std::move(*plan));
    // That is what the smallest staging ring was made for.
    if (plans.empty()) plans.push_back(*with(least().staging_ring_bytes, loop_));
    const auto fastest = std::ranges::min_element(plans, {}, &PagingPlan::step_seconds);
    const double limit = fastest->step_seconds * kEqualTime;
    const PagingPlan* best = nullptr;
    for (const PagingPlan& plan : plans) {
      if (plan.step_seconds > limit) continue;
      const auto cost = [](const PagingPlan& p) {
        return std::pair(p.step_bytes, p.staging_ring_bytes + p.resident_bytes);
      };
      if (best == nullptr || cost(plan) < cost(*best)) best = &plan;
    }
    return *best;
  }

 private:
  enum class Spread { bytes, seconds };

  void sort(const PagedWeight& weight, std::uint32_t w, std::vector<std::uint32_t>& large) {
    if (weight.bytes > kSmallWeight)
      large.push_back(w);
    else
      small_bytes_ += padded_page_bytes(weight.bytes);
  }

  static std::uint64_t sum(const Weights& weights, const std::vector<std::uint32_t>& of) {
    std::uint64_t bytes = 0;
    for (const std::uint32_t w : of) bytes += padded_page_bytes(weights[w].bytes);
    return bytes;
  }

  bool passes(std::uint64_t staging_ring) const {
    return pass(paging_.once, once_, staging_ring, 0) &&
           pass(paging_.loop, loop_, staging_ring, ops_);
  }

  // What is read at one time lies side by side, so sums of neighbours are the sizes to try. A
  // larger staging ring is not always one that will do: where it wraps around is another place.
  std::uint64_t min_staging_ring() const {
    std::uint64_t largest = 0;
    std::set<std::uint64_t> sizes;
    const auto add = [&](const Weights& weights, const std::vector<std::uint32_t>& order) {
      // Where weights are alike, the sums of one are those of the one before.
      std::array<std::uint64_t, kLongestRun> found{};
      for (std::size_t i = 0; i < order.size(); ++i) {
        largest = std::max(largest, padded_page_bytes(weights[order[i]].bytes));
        std::uint64_t bytes = 0;
        for (std::size_t j = i; j < std::min(order.size(), i + kLongestRun); ++j) {
          bytes += padded_page_bytes(weights[order[j]].bytes);
          if (found[j - i] != bytes) sizes.insert(found[j - i] = bytes);
        }
      }
    };
    add(paging_.once, once_);
    add(paging_.loop, loop_);
    std::size_t tries = 0;
    for (auto size = sizes.lower_bound(largest); size != sizes.end(); ++size) {
      if (++tries > kMostLeastTries) break;
      if (passes(*size)) return *size;
    }
    const std::uint64_t all =
        std::max(sum(paging_.once, once_), sum(paging_.loop, loop_));  // nothing is overwritten
    for (std::uint64_t size = largest; size < all; size += padded_page_bytes(size / 4 + 1))
      if (passes(size)) return size;
    return all;
  }

  std::optional<PagingPlan> with(std::uint64_t staging_ring,
                                 const std::vector<std::uint32_t>& streamed) const {
    auto once = pass(paging_.once, once_, staging_ring, 0);
    auto loop = pass(paging_.loop, streamed, staging_ring, ops_);
    if (!once || !loop) return {};
    PagingPlan plan;
    plan.once = std::move(*once);
    plan.loop = std::move(*loop);
    plan.staging_ring_bytes = std::max(staging_ring_of(paging_.once, plan.once),
                                       staging_ring_of(paging_.loop, plan.loop));
    plan.resident_bytes = small_bytes_ + sum(paging_.loop, loop_) - sum(paging_.loop, streamed);
    for (const std::uint32_t w : streamed) plan.step_bytes += paging_.loop[w].bytes;
    plan.step_seconds = simulate_paging(paging_, plan);
    return plan;
  }

  // What passes, in order: as evenly as can be over the bytes or the seconds of a step, at least so
  // much that the rest fits.
  std::vector<std::uint32_t> choose(std::uint64_t capacity, Spread spread) const {
    const std::uint64_t all = sum(paging_.loop, loop_);
    if (all <= capacity) return {};
    const std::vector<double> fractions = fractions_of(spread);
    const double whole = std::accumulate(fractions.begin(), fractions.end(), 0.0);
    std::vector<bool> passes(loop_.size(), false);
    std::uint64_t staying = all;
    double owed = 0;
    for (std::size_t i = 0; i < loop_.size(); ++i) {
      const std::uint64_t bytes = padded_bytes_of(i);
      owed +=
          double(all - capacity) * (whole > 0 ? fractions[i] / whole : 1.0 / double(loop_.size()));
      if (owed < double(bytes) / 2) continue;
      owed -= double(bytes);
      passes[i] = true;
      staying -= bytes;
    }
    while (staying > capacity) {  // the smallest that is enough, else the largest
      const std::uint64_t over = staying - capacity;
      std::size_t best = loop_.size();
      for (std::size_t i = 0; i < loop_.size(); ++i) {
        if (passes[i]) continue;
        const std::uint64_t bytes = padded_bytes_of(i);
        const std::uint64_t held = best == loop_.size() ? 0 : padded_bytes_of(best);
        if (best == loop_.size() || (held < over ? bytes > held : bytes >= over && bytes < held))
          best = i;
      }
      passes[best] = true;
      staying -= padded_bytes_of(best);
    }
    for (;;) {  // the largest that still fits
      std::size_t best = loop_.size();
      for (std::size_t i = 0; i < loop_.size(); ++i)
        if (passes[i] && staying + padded_bytes_of(i) <= capacity &&
            (best == loop_.size() || padded_bytes_of(i) > padded_bytes_of(best)))
          best = i;
      if (best == loop_.size()) break;
      passes[best] = false;
      staying += padded_bytes_of(best);
    }
    std::vector<std::uint32_t> streamed;
    for (std::size_t i = 0; i < loop_.size(); ++i)
      if (passes[i]) streamed.push_back(loop_[i]);
    return streamed;
  }

  std::uint64_t padded_bytes_of(std::size_t i) const {
    return padded_page_bytes(paging_.loop[loop_[i]].bytes);
  }

  // Of each large weight: its bytes, or the seconds until the next one is read.
  std::vector<double> fractions_of(Spread spread) const {
    std::vector<double> fractions;
    std::vector<double> at(paging_.op_seconds.size() + 1, 0);
    for (std::size_t o = 0; o < paging_.op_seconds.size(); ++o)
      at[o + 1] = at[o] + paging_.op_seconds[o];
    for (std::size_t i = 0; i < loop_.size(); ++i) {
      const std::size_t next =
          i + 1 < loop_.size() ? paging_.loop[loop_[i + 1]].first : paging_.op_seconds.size();
      fractions.push_back(spread == Spread::bytes ? double(padded_bytes_of(i))
                                                  : at[next] - at[paging_.loop[loop_[i]].first]);
    }
    return fractions;
  }

  const PagingCase& paging_;
  const std::int64_t ops_;
  std::vector<std::uint32_t> once_, loop_;  // of the large ones, in the order of reading
  std::uint64_t small_bytes_ = 0;
  MinWeightMemory least_;
};

}  // namespace

MinWeightMemory min_weight_memory(const PagingCase& paging) { return Pager(paging).least(); }

PagingPlan plan_paging(const PagingCase& paging) { return Pager(paging).run(); }

PagingPlan plan_paging(const PagingCase& paging, const MinWeightMemory& least) {
  return Pager(paging, least).run();
}

std::vector<std::int32_t> borrow(PagingCase& paging, const PagingPlan& plan,
                                 std::vector<Donor>& donors, std::uint32_t device_slot) {
  const CopyRate& from_host = paging.pinned_available > 0 ? paging.from_pinned : paging.from_host;
  const auto is_faster = [&](const Donor& donor) {
    return device_slot < donor.copies.size() &&
           donor.copies[device_slot].bytes_per_second > from_host.bytes_per_second;
  };
  std::uint64_t available = 0;
  for (const Donor& donor : donors)
    if (is_faster(donor)) available += donor.available;
  const double fraction =
      std::min(1.0, double(available) / double(std::max<std::uint64_t>(plan.step_bytes, 1)));
  std::vector<std::int32_t> lent(plan.loop.size(), -1);
  double owed = 0;
  for (std::size_t page = 0; page < plan.loop.size(); ++page) {
    PagedWeight& weight = paging.loop[plan.loop[page].weight];
    const std::uint64_t bytes = padded_page_bytes(weight.bytes);
    owed += double(bytes) * fraction;
    const auto donor = std::ranges::find_if(
        donors, [&](const Donor& d) { return is_faster(d) && d.available >= bytes; });
    if (donor == donors.end() || owed < double(bytes) / 2) continue;
    owed -= double(bytes);
    donor->available -= bytes;
    lent[page] = std::int32_t(donor - donors.begin());
    weight.copy_seconds = donor->copies[device_slot].seconds(weight.bytes);
  }
  return lent;
}

std::vector<bool> pinned_streamed(const PagingCase& paging, const PagingPlan& plan) {
  std::vector<bool> pinned(plan.loop.size(), false);
  std::uint64_t left = paging.pinned_available;
  for (std::size_t page = 0; page < plan.loop.size(); ++page) {
    const PagedWeight& weight = paging.loop[plan.loop[page].weight];
    if (weight.copy_seconds >= 0) continue;
    const bool takes_room =
        !weight.is_pinned && weight.pinned_bytes > 0 && weight.pinned_bytes <= left;
    if (takes_room) left -= weight.pinned_bytes;
    pinned[page] = weight.is_pinned || takes_room;
  }
  return pinned;
}

double simulate_paging(const PagingCase& paging, const PagingPlan& plan) {
  constexpr int kSettling = 3, kMeasured = 4;  // steps
  const auto ops = std::int64_t(paging.op_seconds.size());
  double compute = 0, copy = 0, settled = 0;
  std::vector<double> arrived(plan.loop.size(), 0), next_arrived(plan.loop.size(), 0);
  const std::vector<bool> pinned = pinned_streamed(paging, plan);
  const auto seconds = [&](std::size_t page) {
    const PagedWeight& weight = paging.loop[plan.loop[page].weight];
    if (weight.copy_seconds >= 0) return weight.copy_seconds;
    return (pinned[page] ? paging.from_pinned : paging.from_host).seconds(weight.bytes);
  };
  const auto come = [&](std::size_t page) {
    copy = std::max(copy, compute) + seconds(page);
    return copy;
  };
  std::size_t ahead = 0;  // pages that come in before their step begins
  while (ahead < plan.loop.size() && plan.loop[ahead].behind < 0) ++ahead;
  for (std::size_t page = 0; page < ahead; ++page) arrived[page] = come(page);
  for (int step = 0; step < kSettling + kMeasured; ++step) {
    std::size_t wanted = 0, coming = ahead, early = 0;
    for (std::int64_t op = 0; op < ops; ++op) {
      for (; wanted < plan.loop.size() && paging.loop[plan.loop[wanted].weight].first <= op;
           ++wanted)
        compute = std::max(compute, arrived[wanted]);
      compute += paging.op_seconds[std::size_t(op)];
      for (; coming < plan.loop.size() && plan.loop[coming].behind <= op; ++coming)
        arrived[coming] = come(coming);
      for (; early < ahead && coming == plan.loop.size() && plan.loop[early].behind + ops <= op;
           ++early)
        next_arrived[early] = come(early);
    }
    compute += paging.idle_seconds;
    std::copy_n(next_arrived.begin(), ahead, arrived.begin());
    if (step + 1 == kSettling) settled = compute;
  }
  return (compute - settled) / kMeasured;
}

}  // namespace heddle::engine
