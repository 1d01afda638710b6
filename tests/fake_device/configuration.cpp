#include "configuration.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "engine/base/text.h"
#include "heddle/device.hpp"
#include "heddle/testing/fake_control.h"

namespace heddle::fake {

namespace {

// A value of the options, with the name by which messages call it.
class Option {
 public:
  Option(const heddle_host* host, const heddle_value* value, std::string name)
      : host_(host),
        values_(
            static_cast<const heddle_value_service*>(host->service(host, HEDDLE_SERVICE_VALUE))),
        value_(value),
        name_(std::move(name)) {
    if (values_ == nullptr)
      device::fail(HEDDLE_UNSUPPORTED, "this engine has no ", HEDDLE_SERVICE_VALUE);
  }

  heddle_kind kind() const { return values_->kind(value_); }
  [[noreturn]] void refuse(const std::string& wanted) const {
    device::fail(HEDDLE_INVALID_ARGUMENT, "option '", name_, "' has to be ", wanted);
  }

  double number() const {
    double result = 0;
    check(values_->get_float(value_, &result), "a number");
    return result;
  }
  double positive() const {
    const double result = number();
    if (!(result > 0)) refuse("greater than 0");
    return result;
  }
  double duration() const {
    const double result = number();
    if (!(result >= 0)) refuse("0 seconds or more");
    return result;
  }
  std::int64_t integer() const {
    std::int64_t result = 0;
    check(values_->get_int(value_, &result), "a whole number");
    return result;
  }
  bool flag() const {
    std::int32_t result = 0;
    check(values_->get_bool(value_, &result), "true or false");
    return result != 0;
  }
  std::string text() const {
    heddle_str result{};
    check(values_->get_str(value_, &result), "a text");
    return {result.data, result.size};
  }
  std::uint64_t bytes() const {
    if (kind() != HEDDLE_KIND_STR) return static_cast<std::uint64_t>(positive());
    const auto parsed = engine::parse_bytes(text());
    if (!parsed) refuse("a size like 16GiB");
    return *parsed;
  }

  // Of a list the element of this device.
  Option of_device(std::uint32_t index) const {
    if (kind() != HEDDLE_KIND_LIST) return *this;
    const std::uint32_t count = values_->count(value_);
    if (count == 0) refuse("more than an empty list");
    return {host_, values_->item(value_, std::min(index, count - 1)), name_};
  }

  // visit(key, value) for every field; the record's own name is left out of theirs when it is
  // empty.
  void each(const std::function<void(const std::string&, const Option&)>& visit) const {
    if (kind() == HEDDLE_KIND_NONE) return;
    if (kind() != HEDDLE_KIND_RECORD) refuse("a record");
    for (std::uint32_t i = 0; i < values_->count(value_); ++i) {
      const std::string key = values_->key(value_, i);
      visit(key, {host_, values_->item(value_, i), name_.empty() ? key : name_ + "." + key});
    }
  }

 private:
  void check(heddle_status* status, const char* wanted) const {
    if (status == nullptr) return;
    host_->status_free(status);
    refuse(wanted);
  }

  const heddle_host* host_;
  const heddle_value_service* values_;
  const heddle_value* value_;
  std::string name_;
};

std::uint32_t read_side(const std::string& text, const Option& option) {
  if (text == "host") return kHost;
  std::uint32_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size() || index >= HEDDLE_FAKE_MOST)
    option.refuse("named like 0-1, 0>1 or host-1");
  return index;
}

LinkSpeed read_link(const Option& option, LinkSpeed speed) {
  option.each([&](const std::string& key, const Option& value) {
    if (key == "bandwidth")
      speed.bytes_per_second = value.positive();
    else if (key == "latency")
      speed.latency_seconds = value.duration();
    else
      value.refuse("bandwidth or latency");
  });
  return speed;
}

void read_pairs(const Option& option, Configuration& result) {
  option.each([&](const std::string& key, const Option& value) {
    const std::size_t sign = key.find_first_of("->");
    if (sign == std::string::npos) value.refuse("named like 0-1, 0>1 or host-1");
    const std::uint32_t from = read_side(key.substr(0, sign), value),
                        to = read_side(key.substr(sign + 1), value);
    const LinkSpeed speed =
        read_link(value, from == kHost || to == kHost ? result.host : result.peer);
    result.pairs[{from, to}] = speed;
    if (key[sign] == '-') result.pairs[{to, from}] = speed;
  });
}

void read_links(const Option& option, Configuration& result) {
  // What a pair does not say it takes from "host" and "peer", wherever they stand.
  option.each([&](const std::string& key, const Option& value) {
    if (key == "host")
      result.host = read_link(value, result.host);
    else if (key == "peer")
      result.peer = read_link(value, result.peer);
    else if (key != "pairs" && key != "pageable")
      value.refuse("host, peer, pageable or pairs");
  });
  option.each([&](const std::string& key, const Option& value) {
    if (key == "pairs") read_pairs(value, result);
    if (key == "pageable") result.pageable = read_link(value, result.host);
  });
}

// REQUIRES: count is 0 when none was given.
void read_into(Configuration& result, std::int64_t& count, std::uint32_t index,
               const Option& options) {
  bool speeds_differ = false, is_named = false;
  options.each([&](const std::string& key, const Option& value) {
    if (key == "count") {
      count = value.integer();
      if (count < 1 || count > HEDDLE_FAKE_MOST)
        value.refuse(device::cat("from 1 to ", HEDDLE_FAKE_MOST));
    } else if (key == "memory") {
      result.memory = value.of_device(index).bytes();
    } else if (key == "flops") {
      result.flops = value.of_device(index).positive();
      speeds_differ = speeds_differ || value.kind() == HEDDLE_KIND_LIST;
    } else if (key == "bandwidth") {
      result.bandwidth = value.of_device(index).positive();
      speeds_differ = speeds_differ || value.kind() == HEDDLE_KIND_LIST;
    } else if (key == "launch_seconds") {
      result.launch_seconds = value.of_device(index).duration();
    } else if (key == "pace") {
      result.pace = value.duration();
    } else if (key == "name") {
      result.name = value.of_device(index).text();
      is_named = true;
    } else if (key == "op_seconds") {
      value.each([&](const std::string& op, const Option& seconds) {
        result.op_seconds[op] = seconds.duration();
      });
    } else if (key == "links") {
      read_links(value, result);
    } else if (key == "peer") {
      result.peer_copies = value.flag();
    } else if (key == "peer_reads") {
      result.peer_reads = value.flag();
    } else if (key == "shares") {
      result.shares = value.flag();
    } else if (key == "shared_piece") {
      result.shared_piece = std::max<std::uint64_t>(value.bytes(), 1);
    } else if (key == "integrated") {
      result.integrated = value.of_device(index).flag();
    } else if (key == "kernels") {
      result.kernels = value.text();
    } else if (key == "compute") {
      result.compute = value.text();
    } else if (key == "threads") {
      result.threads = value.integer();
    } else if (key == "share_index" || key == "share_count") {
      // What is divided among devices that are opened together: nothing here.
    } else if (key == "shuffle") {
      result.shuffle = static_cast<std::uint64_t>(value.integer());
    } else {
      device::fail(HEDDLE_INVALID_ARGUMENT, "unknown option '", key,
                   "'. Known options: bandwidth, compute, count, flops, integrated, kernels, "
                   "launch_seconds, links, memory, name, op_seconds, "
                   "pace, peer, peer_reads, shared_piece, shares, shuffle, threads");
    }
  });
  if (speeds_differ && !is_named)
    result.name =
        engine::cat("fake ", result.flops / 1e9, " GFLOP/s ", result.bandwidth / 1e9, " GB/s");
}

// HEDDLE_FAKE, parsed; empty when it is not set.
class EnvironmentOptions {
 public:
  explicit EnvironmentOptions(const heddle_host* host) : host_(host) {
    const char* text = std::getenv("HEDDLE_FAKE");
    if (text == nullptr || *text == '\0') return;
    const auto* json =
        static_cast<const heddle_json_service*>(host->service(host, HEDDLE_SERVICE_JSON));
    if (json == nullptr)
      device::fail(HEDDLE_UNSUPPORTED, "this engine has no ", HEDDLE_SERVICE_JSON,
                   " to read HEDDLE_FAKE with");
    heddle_status* status =
        json->parse(host, {text, std::string_view(text).size()}, "HEDDLE_FAKE", &value_);
    if (status == nullptr) return;
    const std::string reason = host->status_message(status);
    host->status_free(status);
    device::fail(HEDDLE_INVALID_ARGUMENT, reason);
  }
  ~EnvironmentOptions() {
    if (value_ != nullptr)
      static_cast<const heddle_value_service*>(host_->service(host_, HEDDLE_SERVICE_VALUE))
          ->release(value_);
  }
  EnvironmentOptions(const EnvironmentOptions&) = delete;
  const heddle_value* value() const { return value_; }

 private:
  const heddle_host* host_;
  heddle_value* value_ = nullptr;
};

}  // namespace

LinkSpeed Configuration::link(std::uint32_t from, std::uint32_t to) const {
  if (const auto found = pairs.find({from, to}); found != pairs.end()) return found->second;
  return from == kHost || to == kHost ? host : peer;
}

std::optional<double> Configuration::fixed_seconds(const std::string& op) const {
  for (const std::string& name : {op, op.substr(0, op.find('/')), std::string("*")})
    if (const auto found = op_seconds.find(name); found != op_seconds.end()) return found->second;
  return std::nullopt;
}

Configuration read_configuration(const heddle_host* host, std::uint32_t index,
                                 const heddle_value* options) {
  Configuration result;
  std::int64_t count = 0;
  const EnvironmentOptions environment(host);
  if (environment.value() != nullptr)
    read_into(result, count, index, Option(host, environment.value(), ""));
  if (options != nullptr) read_into(result, count, index, Option(host, options, ""));
  const std::uint32_t limit = count == 0 ? std::max(environment_count(host), kDefaultCount)
                                         : static_cast<std::uint32_t>(count);
  if (index >= limit)
    device::fail(HEDDLE_NOT_FOUND, "there are ", limit,
                 " fake devices, from fake:0 to fake:", limit - 1);
  return result;
}

std::string uuid_of(std::uint32_t index) {
  char text[64];
  std::snprintf(text, sizeof text, "FAKE-00000000-0000-0000-0000-%012x", index);
  return text;
}

std::string pci_address_of(std::uint32_t index) {
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%02x:00.0", index / 256, index % 256);
  return text;
}

std::uint32_t environment_count(const heddle_host* host) {
  if (const char* text = std::getenv("HEDDLE_FAKE_COUNT")) {
    const std::string_view digits = text;
    std::uint32_t count = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (error == std::errc() && end == digits.data() + digits.size() && count <= HEDDLE_FAKE_MOST)
      return count;
    device::fail(HEDDLE_INVALID_ARGUMENT, "HEDDLE_FAKE_COUNT is '", digits,
                 "', has to be a number up to ", HEDDLE_FAKE_MOST);
  }
  const EnvironmentOptions environment(host);
  Configuration ignored;
  std::int64_t count = 0;
  if (environment.value() != nullptr)
    read_into(ignored, count, 0, Option(host, environment.value(), ""));
  return count == 0 ? kDefaultCount : static_cast<std::uint32_t>(count);
}

}  // namespace heddle::fake
