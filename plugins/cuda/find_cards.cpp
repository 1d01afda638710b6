#include "card.h"
#include "driver.h"
#include "nvml.h"

namespace heddle::cuda {

namespace {

struct Found {
  std::string why;         // there are none
  std::string why_driver;  // it was asked
  std::vector<Card> cards;

  Found() : cards(nvml::cards(why_driver)) {
    if (cards.empty()) cards = driver::cards(why);
  }
};

const Found& found() {
  static const Found all;
  return all;
}

}  // namespace

const std::vector<Card>& cards() { return found().cards; }
const std::string& no_cards_reason() { return found().why; }

void report_cards(const heddle_host& host) {
  const auto debug = [&](const char* what, const std::string& why) {
    if (!why.empty()) host.log(&host, HEDDLE_DEBUG, ("cuda: " + (what + why)).c_str());
  };
  debug("the driver is asked what cards there are, not NVML: ", found().why_driver);
  debug("no GPU can be used here: ", found().why);
}

PeerWay peer_way(const Card& from, const Card& to) {
  if (const auto way = nvml::peer_way(from.uuid, to.uuid)) return *way;
  return driver::peer_way(from, to);
}

}  // namespace heddle::cuda
