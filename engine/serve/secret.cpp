#include "engine/serve/secret.h"

#include <sys/random.h>

#include <cerrno>

#include "engine/base/error.h"

#ifdef HEDDLE_WITH_OPENSSL
#include <openssl/evp.h>
#endif

namespace heddle::engine {
namespace {

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes)
    for (const int shift : {4, 0}) text += "0123456789abcdef"[(byte >> shift) & 15];
  return text;
}

}  // namespace

std::string random_hex(std::size_t characters) {
  std::string bytes(characters / 2, '\0');
  for (std::size_t filled = 0; filled < bytes.size();) {
    const ssize_t got = ::getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (got > 0) filled += std::size_t(got);
    if (got < 0 && errno != EINTR) throw system_error("getrandom", errno);
  }
  return hex_of(bytes);
}

bool is_equal_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= unsigned(a[i]) ^ unsigned(b.empty() ? 0 : b[i % b.size()]);
  return difference == 0;
}

#ifdef HEDDLE_WITH_OPENSSL
bool has_sha256() { return true; }

std::string sha256_hex(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned bytes = 0;
  if (EVP_Digest(text.data(), text.size(), digest, &bytes, EVP_sha256(), nullptr) != 1)
    throw Error(Code::internal, "OpenSSL computes no SHA-256");
  return hex_of({reinterpret_cast<const char*>(digest), bytes});
}
#else
bool has_sha256() { return false; }

std::string sha256_hex(std::string_view) {
  throw Error(Code::unsupported,
              "this heddle was built without OpenSSL, so it keeps no API keys. Install libssl-dev "
              "and build again.");
}
#endif

}  // namespace heddle::engine
