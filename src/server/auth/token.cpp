#include "server/auth/token.hpp"

#include <algorithm>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "sys/random.hpp"

namespace tenure::server::auth {
namespace {

constexpr std::string_view mark = "sha256:";
constexpr std::string_view digits = "0123456789abcdef";

std::string hexadecimal(const Digest& bytes) {
  std::string text;
  for (const auto byte : bytes) {
    text += digits[byte >> 4U];
    text += digits[byte & 0xFU];
  }
  return text;
}

}  // namespace

Digest digest_of(std::string_view token) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return digest;
}

std::string print(const Digest& digest) {
  return std::string(mark) + hexadecimal(digest);
}

std::optional<Digest> digest_from(std::string_view text) {
  Digest digest{};
  if (!text.starts_with(mark) || text.size() != mark.size() + 2 * digest.size()) {
    return std::nullopt;
  }
  text.remove_prefix(mark.size());
  for (std::size_t index = 0; index < digest.size(); ++index) {
    const auto high = digits.find(text[2 * index]);
    const auto low = digits.find(text[2 * index + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) {
      return std::nullopt;
    }
    digest[index] = static_cast<std::uint8_t>((high << 4U) | low);
  }
  return digest;
}

std::string make_token() {
  Digest bytes{};
  sys::fill_random(bytes);
  // The prefix lets secret scanners recognise a leaked token.
  return "tenure_" + hexadecimal(bytes);
}

bool DigestEqual::operator()(const Digest& left, const Digest& right) const noexcept {
  return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

std::optional<std::string_view> bearer_token(std::string_view field) {
  constexpr std::string_view scheme = "bearer ";
  const auto is_same = [](char given, char wanted) {
    return (given >= 'A' && given <= 'Z' ? static_cast<char>(given - 'A' + 'a') : given) == wanted;
  };
  if (!std::ranges::equal(field.substr(0, scheme.size()), scheme, is_same)) {
    return std::nullopt;
  }
  field.remove_prefix(scheme.size());
  while (field.starts_with(' ')) {
    field.remove_prefix(1);
  }
  return field;
}

}  // namespace tenure::server::auth
