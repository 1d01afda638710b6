// What a session tells the host's memory of the weights that it will ask for, in which order.
#include <algorithm>
#include <iterator>

#include "engine/session/session.h"

namespace heddle::core {

void Session::add_expectation(std::vector<Expectation>& to, std::uint32_t place,
                              const std::vector<FilePart>& parts, UseOrder order) const {
  HostWeights* const host = state(place).host_weights();
  if (host == nullptr || parts.empty()) return;
  to.push_back(host->expect(parts, order, state(place).share_device(),
                            timeline_ == nullptr ? ReadWatch() : timeline_->read_watch()));
}

std::vector<Expectation> Session::expect_weights() const {
  std::vector<std::vector<FilePart>> wanted(places_.places.size());
  for (const SessionStorage& storage : plan_->storages) {
    if (storage.kind != SessionStorage::Kind::weight) continue;
    const WeightSource source = weight_source(storage);
    const WeightStore& store = *places_.places[storage.place].weights;
    if (!store.has(source, model_->checkpoint->identity()))
      std::ranges::move(file_parts(source), std::back_inserter(wanted[storage.place]));
  }
  std::vector<Expectation> expectations;
  for (std::uint32_t p = 0; p < places_.places.size(); ++p)
    add_expectation(expectations, p, wanted[p], UseOrder::once);
  return expectations;
}

std::vector<Expectation> Session::expect_pages(std::initializer_list<Rate> phases,
                                               UseOrder order) const {
  std::vector<Expectation> expectations;
  if (pages_ == nullptr) return expectations;
  std::vector<std::vector<FilePart>> wanted(places_.places.size());
  // Those that a step brings for the next one come first, because something has brought them before
  // the first step, too; nobody brings them in the last.
  for (const bool for_next_step : {true, false}) {
    if (for_next_step && order == UseOrder::once) continue;
    for (const Rate phase : phases)
      for (const SessionAction& action : plan_->phases[int(phase)]) {
        if (action.kind != SessionAction::Kind::page_in || action.for_next_step != for_next_step)
          continue;
        if (!pages_->is_from_file(action.index)) continue;
        const PlannedPage& page = plan_->pages[action.index];
        std::ranges::move(file_parts(weight_source(plan_->storages[page.weight])),
                          std::back_inserter(wanted[page.place]));
      }
  }
  for (std::uint32_t p = 0; p < places_.places.size(); ++p)
    add_expectation(expectations, p, wanted[p], order);
  return expectations;
}

}  // namespace heddle::core
