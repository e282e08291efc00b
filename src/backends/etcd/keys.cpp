#include "backends/etcd/keys.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "sys/parse_number.hpp"
#include "sys/take_until.hpp"
#include "sys/to_hex.hpp"

namespace tenure::backends::etcd {
namespace {

constexpr std::string_view mark = "tenure1 ";

/// "exclusive", "shared", or "permits 2 of 5".
std::optional<Claim> claim_from(std::string_view line) {
  if (line == "exclusive") {
    return LockMode::exclusive;
  }
  if (line == "shared") {
    return LockMode::shared;
  }
  constexpr std::string_view permits = "permits ";
  constexpr std::string_view of = " of ";
  const auto middle = line.find(of);
  if (!line.starts_with(permits) || middle == std::string_view::npos) {
    return std::nullopt;
  }
  const auto wanted =
      sys::parse_number<std::uint32_t>(line.substr(permits.size(), middle - permits.size()));
  const auto capacity = sys::parse_number<std::uint32_t>(line.substr(middle + of.size()));
  if (!wanted || !capacity || *wanted == 0 || *wanted > *capacity) {
    return std::nullopt;
  }
  return Permits{.capacity = *capacity, .wanted = *wanted};
}

std::string text_of(const Claim& claim) {
  if (const auto* mode = std::get_if<LockMode>(&claim)) {
    return *mode == LockMode::shared ? "shared" : "exclusive";
  }
  const auto& permits = std::get<Permits>(claim);
  return "permits " + std::to_string(permits.wanted) + " of " + std::to_string(permits.capacity);
}

}  // namespace

std::int64_t number_of(LeaseId lease) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(lease.get() & most));
}

std::string folder_of(std::string_view root, std::string_view name) {
  std::string folder;
  folder.reserve(root.size() + name.size() + 1);
  folder.append(root).append(name).push_back('/');
  return folder;
}

std::string end_of(std::string folder) {
  folder.back() = '/' + 1;
  return folder;
}

std::string key_of(const std::string& folder, LeaseId lease, RequestId request) {
  return folder + sys::to_hex(static_cast<std::uint64_t>(number_of(lease))) + '-' +
         sys::to_hex(request.get());
}

bool is_queue_key(std::string_view folder, std::string_view key) {
  return key.size() > folder.size() && key.starts_with(folder) &&
         key.find('/', folder.size()) == std::string_view::npos;
}

std::string text_of(const Record& record) {
  return std::string(mark) + text_of(record.claim) + '\n' + record.owner + '\n' + record.metadata;
}

Record record_from(std::string_view text) {
  if (!text.starts_with(mark)) {
    return {};
  }
  text.remove_prefix(mark.size());
  const auto claim = claim_from(sys::take_until(text, '\n'));
  if (!claim) {
    // A record of a later version: treat it as exclusive, which is always safe.
    return {};
  }
  const auto owner = sys::take_until(text, '\n');
  return {.claim = *claim, .owner = std::string(owner), .metadata = std::string(text)};
}

}  // namespace tenure::backends::etcd
