// gzip of bodies, in both directions.
#include "engine/serve/compression.h"

#include "tests/engine/serve/service_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::accepts_gzip;
using engine::gzipped;
using engine::inflated;
using Outcome = engine::Inflated::Outcome;

namespace {

std::string headers(const std::string& more) { return "Host: 127.0.0.1\r\n" + more + "\r\n"; }

// What no compressor makes smaller.
std::string noise(std::size_t bytes) {
  std::string text;
  for (std::uint32_t number = 1; text.size() < bytes;) {
    number = number * 1664525 + 1013904223;
    text += char(number >> 24);
  }
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(compression)

BOOST_AUTO_TEST_CASE(what_is_compressed_is_inflated_again) {
  for (const std::string& text :
       {std::string(), std::string("a"), std::string(1 << 20, 'x'), noise(300'000)}) {
    const engine::Inflated back = inflated(gzipped(text), text.size());
    BOOST_TEST((back.outcome == Outcome::done));
    BOOST_TEST((back.content == text));
  }
  const engine::Inflated two = inflated(gzipped("one ") + gzipped("two"), 100);
  BOOST_TEST(two.content == "one two");
  // RFC 1950: "a" by zlib.
  const std::string zlib("\x78\x9c\x4b\x04\x00\x00\x62\x00\x62", 9);
  BOOST_TEST(inflated(zlib, 100).content == "a");
}

BOOST_AUTO_TEST_CASE(what_is_inflated_is_counted) {
  std::uint64_t claimed = 0;
  const auto claim = [&](std::uint64_t bytes) { return (claimed += bytes) <= 500'000; };
  BOOST_TEST(
      (inflated(gzipped(std::string(400'000, 'x')), 1 << 20, claim).outcome == Outcome::done));
  BOOST_TEST(claimed == 400'000u);
  BOOST_TEST(
      (inflated(gzipped(std::string(200'000, 'x')), 1 << 20, claim).outcome == Outcome::busy));
  BOOST_TEST(claimed < 600'000u);  // it has stopped there
}

// A little that becomes much counts as much, and does so no longer when it is answered.
BOOST_AUTO_TEST_CASE(inflated_bodies_count_in_the_limit_of_all) {
  const Serving serving(
      [](engine::ServiceOptions& options) { options.server.limits.all_body_bytes = 150'000; });
  const std::string small = gzipped("{\"x\": \"" + std::string(100'000, 'x') + "\"}"),
                    large = gzipped("{\"x\": \"" + std::string(200'000, 'x') + "\"}");
  const auto status = [&](const std::string& body) {
    return ask(serving.port(), "POST", "/history", body, headers("Content-Encoding: gzip")).status;
  };
  for (int i = 0; i < 5; ++i) {
    BOOST_TEST(status(small) == 200);
    BOOST_TEST(status(large) == 503);
  }
}

BOOST_AUTO_TEST_CASE(a_bomb_is_not_inflated) {
  const std::string bomb = gzipped(std::string(64 << 20, '\0'));
  BOOST_TEST(bomb.size() < 1u << 20);
  const engine::Inflated result = inflated(bomb, 1 << 20);
  BOOST_TEST((result.outcome == Outcome::too_large));
  BOOST_TEST(result.content.empty());
  BOOST_TEST((inflated(gzipped("12345"), 5).outcome == Outcome::done));
  BOOST_TEST((inflated(gzipped("12345"), 4).outcome == Outcome::too_large));
}

BOOST_AUTO_TEST_CASE(what_is_torn_is_told_from_what_is_whole) {
  const std::string whole = gzipped(noise(5000));
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 97)
    BOOST_TEST((inflated(whole.substr(0, bytes), 1 << 20).outcome == Outcome::broken));
  std::string changed = whole;
  changed[changed.size() - 6] ^= 1;  // of the checksum
  BOOST_TEST((inflated(changed, 1 << 20).outcome == Outcome::broken));
  BOOST_TEST((inflated(whole + "x", 1 << 20).outcome == Outcome::broken));
}

BOOST_AUTO_TEST_CASE(who_accepts_gzip_says_so) {
  for (const char* yes :
       {"gzip", "GZIP", "br, gzip;q=0.5", "*", "deflate, *;q=0.1", "x-gzip", " gzip ; q=1.0 "})
    BOOST_TEST(accepts_gzip(yes), yes);
  for (const char* no : {"", "br", "gzip;q=0", "identity", "*, gzip;q=0", "*;q=0", "gzippy"})
    BOOST_TEST(!accepts_gzip(no), no);
}

BOOST_FIXTURE_TEST_CASE(answers_are_compressed_for_who_accepts_it, Serving) {
  const Reply plain = get("/object_info");
  BOOST_TEST(plain.header("content-encoding") == "");
  BOOST_TEST(plain.header("vary") == "Accept-Encoding");
  const Reply small =
      ask(port(), "GET", "/object_info", "", headers("Accept-Encoding: gzip, deflate"));
  BOOST_TEST(small.header("content-encoding") == "gzip");
  BOOST_TEST(small.body.size() * 3 < plain.body.size());
  BOOST_TEST((inflated(small.body, 64 << 20).content == plain.body));
  // Short ones, and those who do not want it.
  BOOST_TEST(ask(port(), "GET", "/queue", "", headers("Accept-Encoding: gzip"))
                 .header("content-encoding") == "");
  BOOST_TEST(ask(port(), "GET", "/object_info", "", headers("Accept-Encoding: gzip;q=0"))
                 .header("content-encoding") == "");
}

BOOST_FIXTURE_TEST_CASE(files_and_their_parts_are_sent_as_they_are, Serving) {
  folder.write("output/a.txt", std::string(10'000, 'x'));
  for (const char* more :
       {"Accept-Encoding: gzip", "Accept-Encoding: gzip\r\nRange: bytes=0-4999"}) {
    const Reply reply = ask(port(), "GET", "/view?filename=a.txt", "", headers(more));
    BOOST_TEST(reply.header("content-encoding") == "");
    BOOST_TEST(reply.body == std::string(reply.status == 206 ? 5000 : 10'000, 'x'));
  }
}

BOOST_FIXTURE_TEST_CASE(compressed_requests_are_read, Serving) {
  const std::string body = "{\"prompt\": " + showing(5) + "}";
  for (const char* name : {"gzip", "x-gzip", "GZIP", "deflate"}) {
    const Reply reply = ask(port(), "POST", "/prompt", gzipped(body),
                            headers(std::string("Content-Encoding: ") + name));
    BOOST_TEST(reply.status == 200, reply.body);
  }
  BOOST_TEST(ask(port(), "POST", "/prompt", body, headers("Content-Encoding: identity")).status ==
             200);
  BOOST_TEST(ask(port(), "POST", "/prompt", body, headers("Content-Encoding: gzip")).status == 400);
  const Reply unknown = ask(port(), "POST", "/prompt", body, headers("Content-Encoding: br"));
  BOOST_TEST(unknown.status == 415);
  BOOST_TEST(unknown.header("accept-encoding") == "gzip, deflate");
}

BOOST_AUTO_TEST_CASE(a_request_may_not_grow_beyond_the_limit_of_bodies) {
  const Serving serving(
      [](engine::ServiceOptions& options) { options.server.limits.body_bytes = 100'000; });
  const Reply reply = ask(serving.port(), "POST", "/prompt", gzipped(std::string(1 << 20, ' ')),
                          headers("Content-Encoding: gzip"));
  BOOST_TEST(reply.status == 413);
  BOOST_TEST(reply.body.find("100000 bytes") != std::string::npos, reply.body);
}

BOOST_AUTO_TEST_SUITE_END()
