// A planned session carried out on memory that knows who touched it last.
#include <algorithm>
#include <set>
#include <tuple>

#include "engine/base/text.h"
#include "engine/program/shadow_memory.h"
#include "engine/program/verify_session.h"
#include "engine/tensor/call.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace heddle::engine {

namespace {

using StorageKind = SessionStorage::Kind;
using ActionKind = SessionAction::Kind;

// A number for a sequence of numbers and texts.
class Number {
 public:
  Number& add(std::uint64_t x) {
    x += value_ + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    value_ = x ^ (x >> 31);
    return *this;
  }
  Number& add(std::string_view text) {
    for (const char c : text) add(std::uint64_t(static_cast<unsigned char>(c)));
    return add(text.size());
  }
  std::uint64_t get() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

// What an operand holds, however it is cut into pieces.
class Contents {
 public:
  void add(std::uint64_t content, std::uint64_t from, std::uint64_t bytes) {
    if (content != content_ || from != end_) number_.add(content).add(from);
    content_ = content;
    end_ = from + bytes;
  }
  std::uint64_t get(const heddle_tensor_info& info) {
    number_.add(end_).add(std::uint64_t(info.dtype));
    for (std::uint32_t i = 0; i < info.rank; ++i) number_.add(std::uint64_t(info.shape[i]));
    return number_.get();
  }

 private:
  Number number_;
  std::uint64_t content_ = 0, end_ = 0;
};

class SessionSimulation {
 public:
  SessionSimulation(const Graph& graph, const SessionSpec& spec, const SessionPlan& plan)
      : graph_(graph),
        spec_(spec),
        plan_(plan),
        memory_(3 * spec.device_slots.size()),
        clocks_(spec.device_slots.size(), nothing_known()),
        transfers_to_(plan.transfers.size()),
        copies_(plan.transfers.size(), 0),
        page_clocks_(spec.device_slots.size(), nothing_known()),
        page_arrivals_(plan.pages.size()),
        page_copies_(plan.pages.size(), 0) {}

  SessionFindings run() {
    join();
    run_phase(0);
    run_phase(1);
    for (const std::uint32_t page : plan_.first_pages) page_in(page);
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      join();
      is_last_ = step + 1 == kSteps;
      step_ = std::min(step, spec_.step_count - 1);
      write_step_inputs();
      for (const SliceCopy& slice : plan_.slices) {
        PlannedOp copy = slice.copy;
        if (copy.op.in.at(0).storage != slice.from.storage) fault("a slice is of another value");
        copy.op.in[0].offset_bytes +=
            step_ * std::uint64_t(slice.from.info.stride[0]) * Items(slice.from.info).bytes;
        launch(copy);
      }
      sent_.clear();
      run_phase(2);
      read_outputs();
    }
    return std::move(found_);
  }

 private:
  static constexpr std::uint32_t kSteps = 3;

  VectorClock nothing_known() const {
    return VectorClock(spec_.device_slots.size() + plan_.transfers.size() + plan_.pages.size(), 0);
  }
  template <class... Parts>
  void fault(const Parts&... parts) {
    if (found_.faults.size() < 20) found_.faults.push_back(cat(parts...));
  }
  std::size_t device_slots() const { return spec_.device_slots.size(); }
  const SessionStorage& storage(const Operand& o) const { return plan_.storages[o.storage]; }
  bool shares_memory(std::uint32_t a, std::uint32_t b) const {
    return spec_.device_slots[a].memory == spec_.device_slots[b].memory;
  }
  bool are_peers(std::uint32_t a, std::uint32_t b) const {
    return spec_.device_slots[a].peers != 0 &&
           spec_.device_slots[a].peers == spec_.device_slots[b].peers;
  }
  static bool is_given(StorageKind kind) {
    return kind == StorageKind::weight || kind == StorageKind::loop_invariant ||
           kind == StorageKind::precomputed;
  }
  std::string block_name(NodeIndex n, std::uint32_t branch) const {
    return cat(graph_.nodes[n].id, " branch ", branch);
  }

  void run_phase(int phase) {
    for (const SessionAction& action : plan_.phases[phase]) {
      if (action.kind == ActionKind::launch) launch(plan_.ops[action.index]);
      if (action.kind == ActionKind::transfer) start(action.index);
      if (action.kind == ActionKind::await) await(action.index);
      if (action.kind == ActionKind::page_in && !(action.for_next_step && is_last_))
        page_in(action.index);
      if (action.kind == ActionKind::await_page) await_page(action.index);
    }
  }

  Moment next_moment(std::uint32_t device_slot) {
    return {device_slot, ++clocks_[device_slot][device_slot]};
  }
  void learn(VectorClock& clock, const VectorClock& other) {
    for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
  }
  void join() {
    for (VectorClock& clock : clocks_) learn(clocks_[spec_.home], clock);
    for (VectorClock& clock : clocks_) learn(clock, clocks_[spec_.home]);
  }

  ShadowMemory& memory_of(const SessionStorage& storage) {
    return memory_[3 * storage.device_slot + (storage.kind == StorageKind::scratch ? 1
                                              : storage.kind == StorageKind::page  ? 2
                                                                                   : 0)];
  }

  // What an input or a weight holds.
  std::uint64_t given(const SessionStorage& s) const {
    Number number;
    const bool is_weight = s.kind == StorageKind::weight || s.kind == StorageKind::page;
    number.add(std::uint64_t(is_weight ? StorageKind::weight : s.kind)).add(s.input);
    if (is_weight) return number.add(s.node).add(s.slot).add(s.rank).get();
    if (s.kind == StorageKind::precomputed) return number.get();
    const SessionBranch& branch = plan_.branches[s.branch];
    number.add(branch.set).add(std::uint64_t(branch.begin)).add(std::uint64_t(branch.count));
    return s.kind == StorageKind::loop_invariant ? number.get() : number.add(step_).get();
  }

  // Whether an operand can be there at all, for work on a device slot.
  bool is_sound(const Operand& o, std::uint32_t device_slot, const std::string& who) {
    if (o.storage < 0 || std::size_t(o.storage) >= plan_.storages.size()) {
      fault(who, " names a storage that there is not");
      return false;
    }
    const SessionStorage& s = storage(o);
    const Items items(o.info);
    const Extent span = extent(items.info);
    const auto item = std::int64_t(items.bytes);
    if (!shares_memory(device_slot, s.device_slot) && !are_peers(device_slot, s.device_slot))
      fault(who, " is on ", spec_.device_slots[device_slot].name, ", its storage ", o.storage,
            " on ", spec_.device_slots[s.device_slot].name);
    else if (s.kind != StorageKind::weight &&
             (std::int64_t(o.offset_bytes) + span.begin * item < 0 ||
              o.offset_bytes + std::uint64_t(span.end * item) > s.bytes))
      fault(who, " reaches out of storage ", o.storage);
    else
      return true;
    return false;
  }

  // `found`: for each run of the operand, what it holds.
  std::uint64_t read(const Operand& o, const Access& by, std::uint32_t device_slot,
                     const std::string& who, std::vector<std::vector<Piece>>* found = nullptr) {
    if (!is_sound(o, device_slot, who)) return 0;
    const SessionStorage& s = storage(o);
    Contents contents;
    if (s.kind == StorageKind::page && o.info.layout != 0) {
      const std::string wrong = memory_of(s).read(s.offset, s.offset + s.bytes, by, nullptr);
      if (!wrong.empty()) fault(who, " reads page ", o.storage, ": ", wrong);
    }
    if (is_given(s.kind) && o.info.layout != 0) {  // packed: its strides say nothing
      contents.add(given(s), o.offset_bytes, 1);
      return contents.get(o.info);
    }
    const Items items(o.info);
    for_each_run(items.info, items.bytes, [&](std::int64_t at, std::uint64_t bytes) {
      std::vector<Piece> pieces;
      const auto inside = std::uint64_t(std::int64_t(o.offset_bytes) + at);
      if (is_given(s.kind)) {
        pieces.push_back({inside, inside + bytes, given(s), inside});
      } else {
        const std::uint64_t begin = s.offset + inside;
        const std::string wrong = memory_of(s).read(begin, begin + bytes, by, &pieces);
        if (!wrong.empty()) fault(who, " reads storage ", o.storage, ": ", wrong);
      }
      for (const Piece& p : pieces) contents.add(p.content, p.from, p.end - p.begin);
      if (found != nullptr) found->push_back(std::move(pieces));
    });
    return contents.get(o.info);
  }

  void put(std::int32_t index, const Piece& piece, const Access& by, const std::string& who) {
    const SessionStorage& s = plan_.storages[index];
    const std::string wrong = memory_of(s).write(
        {s.offset + piece.begin, s.offset + piece.end, piece.content, piece.from}, by);
    if (!wrong.empty()) fault(who, " writes storage ", index, ": ", wrong);
  }

  void write(const Operand& o, const Access& by, std::uint32_t device_slot, const std::string& who,
             std::uint64_t content) {
    if (!is_sound(o, device_slot, who)) return;
    if (is_given(storage(o).kind)) return fault(who, " writes to what it is given");
    if (!shares_memory(device_slot, storage(o).device_slot))
      return fault(who, " writes to a peer's memory");
    std::uint64_t from = 0;
    const Items items(o.info);
    for_each_run(items.info, items.bytes, [&](std::int64_t at, std::uint64_t bytes) {
      const auto begin = std::uint64_t(std::int64_t(o.offset_bytes) + at);
      put(o.storage, {begin, begin + bytes, content, from}, by, who);
      from += bytes;
    });
  }

  void launch(const PlannedOp& op) {
    const std::string who =
        cat("step ", step_, ", ", op_name(op.op.op), " of ", block_name(op.node, op.branch));
    if (std::string_view(op_name(op.op.op)).starts_with("all_"))
      return fault(who, " is a collective, which no device launches");
    if (op.device_slot >= device_slots())
      return fault(who, " is on a device slot that there is not");
    Access by{next_moment(op.device_slot), clocks_[op.device_slot], -1};
    Number number;
    number.add(op_name(op.op.op));
    for (const std::byte b : op.op.attrs) number.add(std::uint64_t(b));
    for (const Operand& o : op.op.in) {
      by.storage = o.storage;
      number.add(o.storage < 0 ? 0 : read(o, by, op.device_slot, who));
    }
    if (op.workspace >= 0) {
      const SessionStorage& space = plan_.storages[op.workspace];
      if (space.device_slot != op.device_slot) fault(who, " has its workspace elsewhere");
      by.storage = -1;
      put(op.workspace, {0, space.bytes, 0, 0}, by, who);
    }
    std::uint64_t out = 0;
    for (const Operand& o : op.op.out) {
      by.storage = o.storage;
      if (o.storage >= 0) write(o, by, op.device_slot, who, Number(number).add(out).get());
      ++out;
    }
  }

  void write_step_inputs() {
    for (std::int32_t s = 0; s < std::int32_t(plan_.storages.size()); ++s) {
      const SessionStorage& storage = plan_.storages[s];
      if (storage.kind != StorageKind::step_input) continue;
      if (storage.device_slot != spec_.home) fault("a step's input is not at home");
      const Access by{next_moment(spec_.home), clocks_[spec_.home], s};
      put(s, {0, storage.bytes, given(storage), 0}, by, cat("step ", step_, ", its input"));
    }
  }

  void read_outputs() {
    std::set<std::pair<std::uint32_t, std::string>> missing;
    for (std::uint32_t branch = 0; branch < plan_.branches.size(); ++branch)
      for (const GraphOutput& output : graph_.outputs) missing.insert({branch, output.name});
    for (const SessionPlan::Output& output : plan_.outputs) {
      const Access by{next_moment(spec_.home), clocks_[spec_.home], output.value.storage};
      found_.outputs[{plan_.branches[output.branch].set, output.name}] =
          read(output.value, by, spec_.home, cat("step ", step_, ", output ", output.name));
      missing.erase({output.branch, output.name});
    }
    for (const auto& [branch, name] : missing) fault("branch ", branch, " has no output ", name);
  }

  void start(std::uint32_t index) {
    const PlannedTransfer& t = plan_.transfers[index];
    const std::string who = cat("step ", step_, ", transfer ", index);
    if (t.from >= device_slots() || t.to >= device_slots() || t.from == t.to)
      return fault(who, " goes from device slot ", t.from, " to device slot ", t.to);
    const Moment moment{std::uint32_t(device_slots() + index), ++copies_[index]};
    VectorClock& clock = transfers_to_[index] = clocks_[t.from];
    clock[moment.actor] = moment.time;
    if (!is_sound(t.source, t.from, who) || !is_sound(t.dest, t.to, who)) return;
    if (storage(t.source).device_slot != t.from) fault(who, " leaves from where its value is not");
    if (t.way != PlannedTransfer::Way::copy) {
      const bool in_place = t.way == PlannedTransfer::Way::read;
      if (!are_peers(t.from, t.to) || (t.dest.storage == t.source.storage) != in_place)
        fault(who, " lets read what cannot be");
      if (in_place) return;
      const std::uint64_t content = read(t.source, {moment, clock, t.source.storage}, t.to, who);
      return write(t.dest, {moment, clock, t.dest.storage}, t.to, who, Number().add(content).get());
    }
    if (shares_memory(t.from, t.to)) {
      if (t.bytes != 0 || t.dest.storage != t.source.storage) fault(who, " copies what is shared");
      return;
    }
    std::vector<std::vector<Piece>> found;
    const std::uint64_t content =
        read(t.source, {moment, clock, t.source.storage}, t.from, who, &found);
    if (!sent_.insert({t.to, t.source.storage, t.source.offset_bytes, content}).second)
      fault(who, " sends the same bytes to the same place again");
    copy(t, {moment, clock, t.dest.storage}, who, found);
  }

  // As it is carried out: all bytes from the first element to the last, gaps and all.
  void copy(const PlannedTransfer& t, Access by, const std::string& who,
            const std::vector<std::vector<Piece>>& found) {
    const Items items(t.source.info);
    const Extent span = extent(items.info);
    const std::uint64_t item = items.bytes;
    if (t.bytes != std::uint64_t(span.end - span.begin) * item)
      fault(who, " carries ", t.bytes, " bytes");
    const auto begin = [&](std::int64_t at) {
      return std::uint64_t(std::int64_t(t.dest.offset_bytes) + at);
    };
    const Access gaps{by.moment, by.known, -1};
    put(t.dest.storage,
        {begin(span.begin * std::int64_t(item)), begin(span.end * std::int64_t(item)), 0, 0}, gaps,
        who);
    std::size_t run = 0;
    for_each_run(Items(t.dest.info).info, item, [&](std::int64_t at, std::uint64_t bytes) {
      std::uint64_t to = begin(at), end = begin(at) + bytes;
      if (run < found.size())
        for (const Piece& p : found[run]) {
          put(t.dest.storage, {to, to + p.end - p.begin, p.content, p.from}, by, who);
          to += p.end - p.begin;
        }
      if (to != end) fault(who, " arrives in another form than it left");
      ++run;
    });
  }

  // Copies of one device slot run in order, each when all that its device slot was given before is
  // done.
  void page_in(std::uint32_t index) {
    const PlannedPage& page = plan_.pages[index];
    const Moment moment{std::uint32_t(device_slots() + plan_.transfers.size() + index),
                        ++page_copies_[index]};
    VectorClock& clock = page_clocks_[page.device_slot];
    learn(clock, clocks_[page.device_slot]);
    clock[moment.actor] = moment.time;
    put(page.weight, {0, page.bytes, given(plan_.storages[page.weight]), 0},
        {moment, clock, page.weight}, cat("step ", step_, ", page-in ", index));
    page_arrivals_[index] = clock;
  }
  void await_page(std::uint32_t index) {
    if (!page_arrivals_[index].empty())
      learn(clocks_[plan_.pages[index].device_slot], page_arrivals_[index]);
  }

  void await(std::uint32_t index) {
    if (!transfers_to_[index].empty())
      learn(clocks_[plan_.transfers[index].to], transfers_to_[index]);
  }

  const Graph& graph_;
  const SessionSpec& spec_;
  const SessionPlan& plan_;
  SessionFindings found_;
  std::vector<ShadowMemory>
      memory_;  // by device slot: what persists, then scratch, then the staging ring
  std::vector<VectorClock> clocks_;         // by device slot
  std::vector<VectorClock> transfers_to_;   // by transfer: what is known where it arrives
  std::vector<std::uint32_t> copies_;       // by transfer: how often it was started
  std::vector<VectorClock> page_clocks_;    // by device slot: what is known where pages come in
  std::vector<VectorClock> page_arrivals_;  // by page
  std::vector<std::uint32_t> page_copies_;  // by page: how often it was started
  std::set<std::tuple<std::uint32_t, std::int32_t, std::uint64_t, std::uint64_t>> sent_;
  std::uint32_t step_ = 0;
  bool is_last_ = false;
};

}  // namespace

SessionFindings simulate_session(const Graph& graph, const SessionSpec& spec,
                                 const SessionPlan& plan) {
  return SessionSimulation(graph, spec, plan).run();
}

}  // namespace heddle::engine
