#include "engine/serve/compression.h"

#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

constexpr std::size_t kLeastBytes = 1024;              // less fits into one packet anyway
constexpr std::size_t kPieceBytes = 1 << 16;           // that zlib gives at once
constexpr std::size_t kMostInput = 1 << 30;            // that zlib is given at once
constexpr int kGzip = 15 + 16, kGzipOrZlib = 15 + 32;  // zlib's windowBits

Bytef* bytes_of(const char* text) { return reinterpret_cast<Bytef*>(const_cast<char*>(text)); }

class Inflater {
 public:
  Inflater() {
    if (inflateInit2(&stream, kGzipOrZlib) != Z_OK)
      throw Error(Code::out_of_memory, "no memory to inflate a body");
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  z_stream stream{};
};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = char(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Text and JSON; pictures, videos and archives are compressed already.
bool is_compressible(std::string_view type) {
  const std::string name = lower_case(trimmed(type.substr(0, type.find(';'))));
  return name.starts_with("text/") || name == "application/json" ||
         name == "application/javascript" || name == "image/svg+xml";
}

const std::string* header_of(const HttpResponse& response, std::string_view name) {
  for (const auto& [key, value] : response.headers)
    if (lower_case(key) == lower_case(name)) return &value;
  return nullptr;
}

// At the quickest level: a server's time is for its jobs. `last`: how zlib ends it.
std::string deflated_by(std::string_view content, int window_bits, int memory, int last) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, window_bits, memory, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    throw Error(Code::out_of_memory, "no memory to compress with");
  std::string result;
  try {
    std::string piece(kPieceBytes, '\0');
    bool has_ended = false;
    while (!has_ended) {
      if (stream.avail_in == 0) {
        const std::size_t given = std::min(content.size(), kMostInput);
        stream.next_in = bytes_of(content.data());
        stream.avail_in = uInt(given);
        content.remove_prefix(given);
      }
      stream.next_out = bytes_of(piece.data());
      stream.avail_out = uInt(piece.size());
      const int code = ::deflate(&stream, content.empty() ? last : Z_NO_FLUSH);
      result.append(piece, 0, piece.size() - stream.avail_out);
      // A flush is whole when zlib leaves room.
      has_ended = last == Z_FINISH
                      ? code == Z_STREAM_END
                      : content.empty() && stream.avail_in == 0 && stream.avail_out > 0;
    }
  } catch (...) {
    deflateEnd(&stream);
    throw;
  }
  deflateEnd(&stream);
  return result;
}

}  // namespace

Inflated inflated(std::string_view compressed, std::uint64_t limit,
                  const std::function<bool(std::uint64_t)>& claim) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  std::string piece(kPieceBytes, '\0');
  Inflated result;
  bool has_ended = false;
  while (!has_ended || !compressed.empty()) {
    // What follows the end of a gzip member is the next one.
    if (has_ended && inflateReset(&stream) != Z_OK) return result;
    has_ended = false;
    const std::size_t given = std::min(compressed.size(), kMostInput);
    stream.next_in = bytes_of(compressed.data());
    stream.avail_in = uInt(given);
    stream.next_out = bytes_of(piece.data());
    stream.avail_out = uInt(piece.size());
    const int code = ::inflate(&stream, Z_NO_FLUSH);
    const std::size_t got = piece.size() - stream.avail_out;
    if (result.content.size() + got > limit) return {Inflated::Outcome::too_large, ""};
    if (claim && !claim(got)) return {Inflated::Outcome::busy, ""};
    result.content.append(piece, 0, got);
    compressed.remove_prefix(given - stream.avail_in);
    has_ended = code == Z_STREAM_END;
    // Z_BUF_ERROR: it is cut off.
    if (!has_ended && code != Z_OK) return {};
  }
  result.outcome = Inflated::Outcome::done;
  return result;
}

std::string gzipped(std::string_view content) { return deflated_by(content, kGzip, 8, Z_FINISH); }

std::string deflated_message(std::string_view content, int window_bits) {
  constexpr std::size_t kTail = 4;  // 00 00 FF FF
  std::string result = deflated_by(content, -window_bits, 4, Z_SYNC_FLUSH);
  result.resize(result.size() - kTail);
  return result;
}

bool accepts_gzip(std::string_view accept_encoding) {
  std::optional<double> named, any;
  while (!accept_encoding.empty()) {
    const std::size_t comma = accept_encoding.find(',');
    const std::string_view one = accept_encoding.substr(0, comma);
    accept_encoding.remove_prefix(comma == one.npos ? accept_encoding.size() : comma + 1);
    const std::size_t semicolon = one.find(';');
    const std::string name = lower_case(trimmed(one.substr(0, semicolon)));
    double share = 1;
    if (semicolon != one.npos) {
      const std::string weight = lower_case(trimmed(one.substr(semicolon + 1)));
      if (weight.starts_with("q=")) share = std::strtod(weight.c_str() + 2, nullptr);
    }
    if (name == "gzip" || name == "x-gzip") named = share;
    if (name == "*") any = share;
  }
  return named.value_or(any.value_or(0)) > 0;
}

std::optional<HttpResponse> inflate_body(HttpRequest& request, std::uint64_t limit) {
  const std::string* encoding = request.header("Content-Encoding");
  if (encoding == nullptr) return {};
  const std::string name = lower_case(trimmed(*encoding));
  if (name == "identity" || name.empty()) return {};
  if (name != "gzip" && name != "x-gzip" && name != "deflate")
    return text_response(cat("415: the server does not know the Content-Encoding ",
                             quote(clip(*encoding, 40)), ". Send gzip, deflate, or none.\n"),
                         415)
        .set("Accept-Encoding", "gzip, deflate");
  Inflated body = inflated(request.body, limit, request.claim);
  if (body.outcome == Inflated::Outcome::too_large)
    return text_response(
        cat("413: the body is too large; ", limit, " bytes are allowed when it is inflated\n"),
        413);
  if (body.outcome == Inflated::Outcome::busy)
    return text_response("503: too much is being sent at once\n", 503).set("Retry-After", "5");
  if (body.outcome == Inflated::Outcome::broken)
    return text_response(cat("400: the body is no whole ", name, "\n"), 400);
  request.body = std::move(body.content);
  std::erase_if(request.headers, [](const auto& header) {
    const std::string name = lower_case(header.first);
    return name == "content-encoding" || name == "content-length";
  });
  return {};
}

void compress_body(const HttpRequest& request, HttpResponse& response) {
  const std::string* type = header_of(response, "Content-Type");
  if (response.file || response.body.size() < kLeastBytes || response.status == 206 ||
      type == nullptr || !is_compressible(*type) ||
      header_of(response, "Content-Encoding") != nullptr)
    return;
  response.set("Vary", "Accept-Encoding");
  const std::string* accepted = request.header("Accept-Encoding");
  if (accepted == nullptr || !accepts_gzip(*accepted)) return;
  std::string smaller = gzipped(response.body);
  if (smaller.size() >= response.body.size()) return;
  response.body = std::move(smaller);
  response.set("Content-Encoding", "gzip");
}

}  // namespace heddle::engine
