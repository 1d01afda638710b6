#include "captured_graph.h"

#include <algorithm>
#include <utility>

#include "device.h"
#include "heddle/device.hpp"
#include "stream.h"

namespace heddle::fake {

void CapturedGraph::add(std::size_t lane, const heddle_op_call& call, void* workspace) {
  Call kept{.op = call.op, .in = {}, .out = {}, .attrs = {}, .workspace = workspace};
  const auto keep = [](std::uint32_t count, const heddle_view* const* views,
                       std::vector<std::optional<heddle_view>>& to) {
    for (std::uint32_t i = 0; i < count; ++i)
      to.push_back(views[i] == nullptr ? std::nullopt : std::optional(*views[i]));
  };
  keep(call.in_count, call.in, kept.in);
  keep(call.out_count, call.out, kept.out);
  const auto* attrs = static_cast<const std::byte*>(call.attrs);
  if (attrs != nullptr) kept.attrs.assign(attrs, attrs + call.attrs_size);
  lanes_[lane].push_back({Item::Kind::call, std::move(kept), 0});
}

std::size_t CapturedGraph::join(Stream& stream) {
  joined_.push_back(&stream);
  lanes_.emplace_back();
  return lanes_.size() - 1;
}

std::size_t CapturedGraph::mark(std::size_t lane) {
  lanes_[lane].push_back({Item::Kind::mark, std::nullopt, marks_});
  return marks_++;
}

void CapturedGraph::wait(std::size_t lane, std::size_t mark) {
  lanes_[lane].push_back({Item::Kind::wait, std::nullopt, mark});
}

void CapturedGraph::finish() {
  is_recording_ = false;
  for (Stream* stream : std::exchange(joined_, {})) stream->leave_capture();
  for (std::size_t lane = 1; lane < lanes_.size(); ++lane) {
    const Item& last = lanes_[lane].back();
    const bool is_waited_for =
        last.kind == Item::Kind::mark && std::ranges::any_of(lanes_[0], [&](const Item& item) {
          return item.kind == Item::Kind::wait && item.mark == last.mark;
        });
    if (!is_waited_for)
      device::fail(HEDDLE_UNSUPPORTED, "what another stream recorded is not waited for");
  }
}

std::uint64_t CapturedGraph::bytes() const {
  std::uint64_t calls = 0;
  for (const std::vector<Item>& lane : lanes_)
    calls += static_cast<std::uint64_t>(std::ranges::count(lane, Item::Kind::call, &Item::kind));
  return kCallBytes * calls;
}

void CapturedGraph::replay(Stream& stream) const {
  std::vector<std::size_t> next(lanes_.size(), 0);
  std::vector<bool> reached(marks_, false);
  // The last lane that can go on does so, until none can.
  for (std::size_t lane = lanes_.size(); lane-- > 0;) {
    if (next[lane] == lanes_[lane].size()) continue;
    const Item& item = lanes_[lane][next[lane]];
    if (item.kind == Item::Kind::wait && !reached[item.mark]) continue;
    ++next[lane];
    if (item.kind == Item::Kind::mark) reached[item.mark] = true;
    if (item.call) launch(stream, *item.call);
    lane = lanes_.size();
  }
}

void CapturedGraph::launch(Stream& stream, const Call& call) const {
  std::vector<const heddle_view*> in, out;
  for (const auto& view : call.in) in.push_back(view ? &*view : nullptr);
  for (const auto& view : call.out) out.push_back(view ? &*view : nullptr);
  const heddle_op_call again{.size = sizeof(heddle_op_call),
                             .op = call.op.c_str(),
                             .in_count = static_cast<std::uint32_t>(in.size()),
                             .out_count = static_cast<std::uint32_t>(out.size()),
                             .in = in.data(),
                             .out = out.data(),
                             .attrs = call.attrs.data(),
                             .attrs_size = static_cast<std::uint32_t>(call.attrs.size())};
  device_.launch(stream, again, call.workspace);
}

}  // namespace heddle::fake
