// How many runs of one call are under way at the same time: as many as keep every device busy, and
// no more, because each keeps memory. On one device they come one after another. Used by one thread
// at a time.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace heddle::cli {

class SideBySide {
 public:
  // `devices`: ids of all that runs may use.
  explicit SideBySide(std::vector<std::string> devices) : devices_(std::move(devices)) {}

  // Whether to start one more: a device is idle, and the last start did reach one that was.
  bool may_start() const;

  // `devices`: that its plan keeps busy.
  void begins(std::size_t run, std::vector<std::string> devices);
  // It has computed everything, and waits for its turn to write: its devices are free. May be said
  // before begins().
  void waits(std::size_t run);
  void ends(std::size_t run);

  std::size_t computing() const;  // runs that keep devices busy

 private:
  struct UnderWay {
    std::vector<std::string> devices;
    bool waits = false;
  };
  bool is_busy(const std::string& device) const;

  std::vector<std::string> devices_;
  std::map<std::size_t, UnderWay> runs_;
  bool was_in_vain_ = false;  // the last start found no idle device, and none has become idle since
};

}  // namespace heddle::cli
