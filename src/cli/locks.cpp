#include "cli/locks.hpp"

#include <algorithm>

#include "sys/json_writer.hpp"
namespace tenure::cli {
namespace {

/// Abbreviation of a mode as in the literature on hierarchical locks.
std::string mode_name(v1::Mode mode) {
  switch (mode) {
    case v1::MODE_INTENTION_SHARED: return "IS";
    case v1::MODE_INTENTION_EXCLUSIVE: return "IX";
    case v1::MODE_SHARED: return "S";
    case v1::MODE_UPDATE: return "U";
    case v1::MODE_SHARED_INTENTION_EXCLUSIVE: return "SIX";
    // Unspecified means exclusive (item.proto).
    default: return "X";
  }
}

}  // namespace

std::string mode_text(const v1::Item& item) {
  if (item.has_permits()) {
    // A field that is 0 is not sent by protobuf, and means one permit.
    const auto wanted = item.permits().wanted() == 0 ? 1 : item.permits().wanted();
    return std::to_string(wanted) + " of " + std::to_string(item.permits().capacity());
  }
  if (item.has_keys()) {
    // Half-open, as in the API: without an end it reaches to the end of the space.
    const auto& range = item.keys().range();
    return mode_name(item.keys().mode()) + " on [" + plain(range.start()) + ", " +
           (range.has_end() ? plain(range.end()) : "") + ")";
  }
  return mode_name(item.mode());
}

void write_mode(sys::JsonWriter& json, const v1::Item& item) {
  if (item.has_permits()) {
    json.field("permits", std::uint64_t{std::max(item.permits().wanted(), 1U)});
    return;
  }
  json.field("mode",
             std::string_view(mode_name(item.has_keys() ? item.keys().mode() : item.mode())));
  if (item.has_keys()) {
    const auto& range = item.keys().range();
    json.key("range").begin_object().field("start", std::string_view(range.start()));
    if (range.has_end()) {
      json.field("end", std::string_view(range.end()));
    }
    json.end_object();
  }
}

void write(sys::JsonWriter& json, const v1::Holder& holder) {
  json.begin_object()
      .field("owner", std::string_view(holder.owner()))
      .field("user", std::string_view(holder.user()));
  write_mode(json, holder.item());
  json.id("token", holder.fencing_token())
      .id("lease", holder.lease_id())
      .field("held_for_ms", std::uint64_t{holder.held_for_ms()})
      .field("metadata", std::string_view(holder.metadata()))
      .end_object();
}

void write(sys::JsonWriter& json, const v1::Waiter& waiter) {
  json.begin_object()
      .field("position", std::uint64_t{waiter.position()})
      .field("owner", std::string_view(waiter.owner()))
      .field("user", std::string_view(waiter.user()));
  write_mode(json, waiter.item());
  json.id("lease", waiter.lease_id())
      .field("waited_ms", std::uint64_t{waiter.waited_ms()})
      .field("metadata", std::string_view(waiter.metadata()))
      .key("waits_for")
      .begin_array();
  for (const auto& blocker : waiter.blockers()) {
    json.begin_object()
        .field("owner", std::string_view(blocker.owner()))
        .id("lease", blocker.lease_id())
        .id("token", blocker.fencing_token())
        .end_object();
  }
  json.end_array().end_object();
}

void write_fields(sys::JsonWriter& json, const v1::LockStatus& lock, const Service& service) {
  json.field("name", std::string_view(service.without_prefix(lock.name())))
      .field("kind", std::string_view(lock.is_space() ? "space" : "lock"))
      // The counts are exact; the server returns at most 100 holders and 100 waiters.
      .field("holder_count", std::uint64_t{lock.holder_count()})
      .field("waiter_count", std::uint64_t{lock.waiter_count()})
      .key("holders")
      .begin_array();
  for (const auto& holder : lock.holders()) {
    write(json, holder);
  }
  json.end_array();
}

Result<v1::ExplainResponse> explained(Service& service, const std::string& full_name,
                                      bool is_space) {
  v1::ExplainRequest request;
  request.set_name(full_name);
  // A space and a lock with the same name are independent.
  request.set_is_space(is_space);
  return service.ask<v1::ExplainResponse>("Admin/Explain", request);
}

}  // namespace tenure::cli
