// Reads the golden files of the sampler tests. HEDDLE_TESTS_DIR names the folder `tests`.
#pragma once

#include <rapidjson/document.h>

#include <boost/crc.hpp>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <iomanip>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace heddle::samplers::testing {

inline rapidjson::Document load(const std::string& name) {
  std::ifstream file(std::string(HEDDLE_TESTS_DIR) + "/plugins/samplers/" + name);
  std::stringstream text;
  text << file.rdbuf();
  rapidjson::Document document;
  document.Parse<rapidjson::kParseFullPrecisionFlag>(text.str().c_str());
  BOOST_REQUIRE_MESSAGE(!document.HasParseError(), "cannot read " << name);
  return document;
}

inline std::string crc_of(std::span<const float> values) {
  boost::crc_32_type crc;
  crc.process_bytes(values.data(), values.size_bytes());
  std::ostringstream hex;
  hex << std::hex << std::setw(8) << std::setfill('0') << crc.checksum();
  return hex.str();
}

template <typename Number>
std::vector<Number> numbers(const rapidjson::Value& array) {
  std::vector<Number> values;
  for (const auto& value : array.GetArray())
    values.push_back(static_cast<Number>(value.GetDouble()));
  return values;
}

}  // namespace heddle::samplers::testing
