#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/outcome.hpp"
#include "server/http/deadlock_log.hpp"
#include "server/http/records.hpp"
#include "server/http/request_rights.hpp"
#include "sys/json_writer.hpp"

/// JSON of the HTTP API, from the records copied out of the state.
namespace tenure::server::http {

/// Truncates: a remaining TTL is never reported longer than it is.
[[nodiscard]] inline std::int64_t in_ms(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

/// Fields of a claim: `mode`, `permits`, or `mode` and `range`.
void write_claim(sys::JsonWriter& json, const core::Claim& claim);

// Each function returns one JSON document that ends with a line break, except for an event:
// server-sent events end at a line break. The field names are a public interface, documented in
// docs/reference/http.md and docs/reference/openapi.json.
[[nodiscard]] std::string write(const LockPage& page);
[[nodiscard]] std::string write(const LockRecord& lock);
[[nodiscard]] std::string write(const LeasePage& page);
[[nodiscard]] std::string write(const LeaseRecord& lease);

/// Facts about this server that are not part of the state.
struct ServerFacts {
  Identity identity{};
  std::string version{};
  std::string name{};
  std::string labels{};
  std::chrono::steady_clock::time_point started{};
};
[[nodiscard]] std::string write(const StatusRecord& status, const ServerFacts& facts);
[[nodiscard]] std::string write(const ClusterRecord& cluster, const ServerFacts& facts);
[[nodiscard]] std::string write(const core::Event& event);
[[nodiscard]] std::string write(const GraphRecord& graph);

/// Latest deadlocks, with the cluster time of the copy.
struct DeadlockPage {
  core::ClusterTime now{};
  std::vector<DeadlockRecord> records{};
};
[[nodiscard]] std::string write(const DeadlockPage& page);
[[nodiscard]] std::string write(const TokenRecord& token);
/// Rights of the client.
[[nodiscard]] std::string write(const RequestRights& rights);

/// Position in a listing as a URL-safe string, and back.
/// Hexadecimal, because lock names may contain any bytes. The first character is the kind: `n`
/// (name) or `s` (space).
[[nodiscard]] std::string print_position(const core::Resource& resource);
/// `invalid_argument`: not a result of print_position().
[[nodiscard]] Result<core::Resource> parse_position(std::string_view text);

/// Plain-text overview of the API, served at `/`.
[[nodiscard]] std::string_view front_page();

/// Name of the type in JSON and in the `event` field of an event stream.
[[nodiscard]] std::string_view to_string(core::EventType type) noexcept;

}  // namespace tenure::server::http
