// Who of the jobs under way goes on, and what may begin beside them: interactive jobs have the
// devices, background ones go on as far as there are others. A value; one thread at a time.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/queue/job.h"

namespace heddle::engine {

class Seats {
 public:
  // So many jobs go on at a time, on so many devices; each at least one.
  Seats(std::size_t jobs, std::size_t devices);

  // `gives_way`: a background job that interactive ones still come before.
  void take(const JobClaim& claim, bool gives_way);
  void set_gives_way(const JobClaim& claim, bool gives_way);  // of one that has a seat
  void leave(const JobClaim& claim);

  // What may begin now: anything, interactive jobs alone, which others then give way to, or
  // nothing.
  enum class Open { all, interactive, none };
  Open open() const;
  // Those that are to pause now: of those that give way the ones that came last.
  std::set<JobClaim> giving_way() const;

 private:
  std::size_t background_places() const;  // where they need not give way

  std::size_t jobs_, devices_;
  std::vector<JobClaim> interactive_, background_;  // as they came
};

// Models that are on devices, by what ran there last.
class WarmModels {
 public:
  explicit WarmModels(std::vector<std::string> devices = {}) : devices_(std::move(devices)) {}

  const std::vector<std::string>& devices() const { return devices_; }
  void ran_on(const std::vector<std::string>& devices, const std::string& model);
  // Those of the devices that have the fewest of the runs; `busy`: devices of each run.
  std::set<std::string> idlest(const std::vector<std::vector<std::string>>& busy) const;
  // On those.
  std::set<std::string> waiting(const std::vector<std::vector<std::string>>& busy) const;

 private:
  std::vector<std::string> devices_;
  std::map<std::string, std::string> last_;  // by device
};

}  // namespace heddle::engine
