// How long jobs of a kind have taken, learnt from those that ran: of the same kind, else of the
// same model, else of all. Within one transaction, or one read, of the caller's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/queue/database.h"

namespace heddle::engine {

struct RunTime {
  double seconds = 0;          // from its beginning to its end, beside others as usual here
  std::int64_t device_ms = 0;  // that devices were busy with it
  std::int64_t runs = 0;       // that say so
};

class RunTimes {
 public:
  explicit RunTimes(Database& database) : database_(database) {}

  // `kind`, `model`: as of a NewJob, "" for none.
  std::optional<RunTime> find(const std::string& kind, const std::string& model) const;
  // What a job counts as before it has run: that of such jobs, or a second where none has.
  std::int64_t charge_of(const std::string& kind, const std::string& model) const;
  // The youngest runs count most: what is measured changes with the machine's load.
  void learn(const std::string& kind, const std::string& model, double seconds,
             std::int64_t device_ms);

 private:
  std::optional<RunTime> of_key(const std::string& key) const;

  Database& database_;
};

}  // namespace heddle::engine
