#include "engine/session/session_pages.h"

#include <optional>
#include <utility>

#include "engine/base/error.h"
#include "engine/tensor/shape.h"
#include "engine/transfer/route.h"

namespace heddle::engine {

namespace {

bool is_same(const heddle_weight_layout& a, const heddle_weight_layout& b) {
  return a.bytes == b.bytes && a.info.dtype == b.info.dtype && a.info.layout == b.info.layout &&
         same_shape(a.info, b.info);
}

}  // namespace

SessionPages::Page::Page(DeviceState& on, WeightSource from, std::byte* at,
                         std::shared_ptr<const DeviceWeight> of_another)
    : state(on),
      source(std::move(from)),
      key(source.key({})),
      layout(device_layout(on.device(), source)),
      lent(std::move(of_another)),
      to(at),
      ready(on.device()),
      arrived(on.device()) {
  if (lent == nullptr) return;
  const bool direct = find_route(&lent->memory->state().device(), &on.device()) == Route::direct;
  if (!direct || !is_same(lent->layout, layout)) lent = nullptr;
}

void SessionPages::Page::enqueue(Stream& stream) {
  const Device& here = state.device();
  if (lent == nullptr)
    return make_device_weight(stream, source, hosts[next_host++ % kUnderWay], layout, to);
  here.copy(stream, &here, to, &lent->memory->state().device(), lent->memory->data(), layout.bytes);
}

void SessionPages::add(DeviceState& state, WeightSource source, std::byte* to,
                       std::shared_ptr<const DeviceWeight> lent) {
  pages_.push_back(std::make_unique<Page>(state, std::move(source), to, std::move(lent)));
}

void SessionPages::page_in(std::uint32_t index, const WorkWatch& watch) {
  Page& page = *pages_[index];
  if (page.lent == nullptr)
    page.hosts[page.next_host % kUnderWay] =
        merged_.get(page.key, [&] { return host_weight(page.source, page.state); });
  page.state.record(page.ready);
  std::optional<Event> begin, end;
  if (watch) begin.emplace(page.state.device()), end.emplace(page.state.device());
  try {
    page.state.with_copy_stream(CopyStream::in, [&](Stream& stream) {
      stream.wait_for(page.ready);
      if (begin) stream.record(*begin);
      page.is_under_way = true;
      page.enqueue(stream);
      if (end) stream.record(*end);
      stream.record(page.arrived);
    });
  } catch (const Error&) {
    page.state.settle();  // nobody can wait for what was taken of it
    throw;
  }
  if (watch)
    watch(page.state, StreamRow::copy_in, std::move(*begin), std::move(*end), page.layout.bytes);
}

void SessionPages::await(std::uint32_t index) {
  Page& page = *pages_[index];
  page.is_under_way = false;
  page.state.with_stream([&](Stream& stream) { stream.wait_for(page.arrived); });
  // What was made for the copy alone, a patched weight for one, must not pile up.
  for (HostWeight& host : page.hosts)
    if (host.made_bytes > 0)
      page.state.retain(std::make_shared<const HostWeight>(std::exchange(host, HostWeight())));
}

void SessionPages::leave() {
  for (std::uint32_t i = 0; i < pages_.size(); ++i)
    if (pages_[i]->is_under_way) await(i);
  std::vector<std::shared_ptr<const Page>> left;
  try {
    left.reserve(pages_.size());
    for (auto& page : pages_) left.emplace_back(std::move(page));
    for (const auto& page : left) page->state.retain(page);
  } catch (const std::exception&) {
    for (const auto& page : pages_)  // before what copies read goes
      if (page != nullptr) page->state.settle();
    for (const auto& page : left) page->state.settle();
    throw;
  }
  pages_.clear();
}

}  // namespace heddle::engine
