#include "engine/serve/seats.h"

#include <algorithm>

namespace heddle::engine {

Seats::Seats(std::size_t jobs, std::size_t devices)
    : jobs_(std::max<std::size_t>(jobs, 1)), devices_(std::max<std::size_t>(devices, 1)) {}

void Seats::take(const JobClaim& claim, bool gives_way) {
  (gives_way ? background_ : interactive_).push_back(claim);
}

void Seats::set_gives_way(const JobClaim& claim, bool gives_way) {
  std::vector<JobClaim>& others = gives_way ? interactive_ : background_;
  if (std::erase(others, claim) > 0) take(claim, gives_way);
}

void Seats::leave(const JobClaim& claim) {
  std::erase(interactive_, claim);
  std::erase(background_, claim);
}

std::size_t Seats::background_places() const {
  if (interactive_.empty()) return jobs_;
  const std::size_t places = std::min(jobs_, devices_);
  return places - std::min(places, interactive_.size());
}

Seats::Open Seats::open() const {
  if (interactive_.size() >= jobs_) return Open::none;
  const bool is_full = interactive_.size() + background_.size() >= jobs_;
  if (is_full) return background_.empty() ? Open::none : Open::interactive;
  return background_.size() < background_places() ? Open::all : Open::interactive;
}

std::set<JobClaim> Seats::giving_way() const {
  const std::size_t stay = std::min(background_places(), background_.size());
  return {background_.begin() + std::ptrdiff_t(stay), background_.end()};
}

void WarmModels::ran_on(const std::vector<std::string>& devices, const std::string& model) {
  if (model.empty()) return;  // what was there before is there still
  for (const std::string& device : devices) last_[device] = model;
}

std::set<std::string> WarmModels::idlest(const std::vector<std::vector<std::string>>& busy) const {
  std::map<std::string, std::size_t> runs;
  for (const std::string& device : devices_) runs[device] = 0;
  for (const std::vector<std::string>& of_run : busy)
    for (const std::string& device : of_run)
      if (const auto found = runs.find(device); found != runs.end()) ++found->second;
  std::set<std::string> devices;
  if (runs.empty()) return devices;
  const std::size_t fewest =
      std::ranges::min_element(runs, {}, [](const auto& one) { return one.second; })->second;
  for (const auto& [device, count] : runs)
    if (count == fewest) devices.insert(device);
  return devices;
}

std::set<std::string> WarmModels::waiting(const std::vector<std::vector<std::string>>& busy) const {
  std::set<std::string> models;
  for (const std::string& device : idlest(busy))
    if (const auto model = last_.find(device); model != last_.end()) models.insert(model->second);
  return models;
}

}  // namespace heddle::engine
