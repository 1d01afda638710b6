#include "engine/run/session_pages.h"

#include <optional>

#include "engine/base/error.h"

namespace heddle::core {

SessionPages::Page::Page(DeviceState& on, WeightSource from, std::byte* at)
    : state(on),
      source(std::move(from)),
      form(on.device().weight_form(source.use, source.info())),
      to(at),
      ready(on.device()),
      arrived(on.device()) {}

void SessionPages::add(DeviceState& state, WeightSource source, std::byte* to) {
  pages_.push_back(std::make_unique<Page>(state, std::move(source), to));
}

void SessionPages::page_in(std::uint32_t index, const WorkWatch& watch) {
  Page& page = *pages_[index];
  HostWeight& host = page.hosts[page.next_host++ % kUnderWay];
  host = host_weight(page.source, page.state);
  page.state.record(page.ready);
  std::optional<Event> begin, end;
  if (watch) begin.emplace(page.state.device()), end.emplace(page.state.device());
  try {
    page.state.with_copy_stream(CopyStream::in, [&](Stream& stream) {
      stream.wait_for(page.ready);
      if (begin) stream.record(*begin);
      page.is_under_way = true;
      make_device_weight(stream, host, page.form, page.to);
      if (end) stream.record(*end);
      stream.record(page.arrived);
    });
  } catch (const Error&) {
    page.state.settle();  // nobody can wait for what was taken of it
    throw;
  }
  if (watch)
    watch(page.state, StreamRow::copy_in, std::move(*begin), std::move(*end), page.form.bytes);
}

void SessionPages::await(std::uint32_t index) {
  Page& page = *pages_[index];
  page.is_under_way = false;
  page.state.with_stream([&](Stream& stream) { stream.wait_for(page.arrived); });
}

void SessionPages::leave() {
  for (std::uint32_t i = 0; i < pages_.size(); ++i)
    if (pages_[i]->is_under_way) await(i);
  for (auto& page : pages_) {
    DeviceState& state = page->state;
    state.keep(std::shared_ptr<const void>(std::move(page)));
  }
  pages_.clear();
}

}  // namespace heddle::core
