// Replies of a Redis server (RESP2) that arrive in pieces, and what is read out of them: tables of
// slots, redirections, arrays of texts. The first two bytes of the input are the size of a piece.

#include <cstddef>
#include <string>
#include <vector>

#include "backends/redis/reply.hpp"
#include "backends/redis/slots.hpp"
#include "fuzz/input.hpp"

namespace tenure::fuzz {
namespace {

using namespace backends::redis;

constexpr std::size_t elements_most = 256;
constexpr std::size_t depth_max = 16;

/// A reply as a text, to compare it with another. Counts its elements.
void describe(const Reply& reply, std::string& out, std::size_t& elements, std::size_t depth) {
  require(depth < depth_max && ++elements <= elements_most + 1, "a reply within its limits");
  out += std::to_string(static_cast<int>(reply.kind)) + ':' + std::to_string(reply.number) + ':' +
         std::to_string(reply.text.size()) + ':' + reply.text + '[';
  for (const auto* element : reply.elements) {
    describe(*element, out, elements, depth + 1);
  }
  out += ']';
}

void use(const Reply& reply) {
  if (const auto table = table_from(reply, "127.0.0.1")) {
    for (const auto owner : table->owner_of) {
      require(owner == SlotTable::unassigned || owner < table->owners.size(),
              "an owner that is there");
    }
  }
  static_cast<void>(reply.number_at(0));
  static_cast<void>(reply.text_at(1));
  static_cast<void>(redirection_from(reply.text, "127.0.0.1"));
  static_cast<void>(epoch_from(reply.text));
  static_cast<void>(first_key_of(reply.text));
  static_cast<void>(slot_of(reply.text));
}

std::vector<std::string> replies_in(std::string_view bytes, std::size_t piece) {
  std::vector<std::string> found;
  ReplyReader reader(elements_most);
  for (std::size_t at = 0; at < bytes.size() && !reader.protocol_error(); at += piece) {
    const auto part = bytes.substr(at, piece);
    reader.feed({reinterpret_cast<const std::uint8_t*>(part.data()), part.size()});
    while (const auto* reply = reader.next()) {
      std::size_t elements = 0;
      describe(*reply, found.emplace_back(), elements, 0);
      use(*reply);
    }
  }
  return found;
}

}  // namespace
}  // namespace tenure::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenure::fuzz;
  Input input(data, size);
  const auto piece = 1 + input.number() % 64;
  const auto bytes = input.rest();
  const auto in_pieces = replies_in(bytes, piece);
  const auto at_once = replies_in(bytes, bytes.size() + 1);
  require(in_pieces == at_once, "the same replies however the bytes are cut");
  return 0;
}
