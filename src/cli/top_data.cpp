#include "cli/top_data.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <set>

#include "cli/latencies.hpp"
#include "cli/locks.hpp"
#include "sys/json_writer.hpp"
#include "sys/quantile.hpp"

namespace tenure::cli {
namespace {

using std::chrono::milliseconds;

/// Bucket of a cumulative histogram, in the form of sys::quantile_between().
struct Bucket {
  double bound = 0;
  std::uint64_t count = 0;
};
std::vector<Bucket> buckets_of(const google::protobuf::RepeatedPtrField<v1::Bucket>& reply) {
  std::vector<Bucket> buckets;
  for (const auto& bucket : reply) {
    buckets.push_back({.bound = bucket.bound(), .count = bucket.count()});
  }
  return buckets;
}

/// The same lock in an earlier reply.
const v1::BusyLock* find_lock(const v1::TopResponse& reply, const v1::BusyLock& like) {
  for (const auto* list : {&reply.queues(), &reply.long_holds()}) {
    const auto it = std::ranges::find_if(*list, [&](const v1::BusyLock& lock) {
      return lock.name() == like.name() && lock.is_space() == like.is_space();
    });
    if (it != list->end()) {
      return &*it;
    }
  }
  return nullptr;
}

/// Name and value of each rate, in display order.
std::vector<std::pair<std::string_view, double>> named(const TopRates& rates) {
  return {{"granted", rates.granted},  {"released", rates.released},   {"expired", rates.expired},
          {"forced", rates.forced},    {"deadlocks", rates.deadlocks}, {"renewed", rates.renewed},
          {"commands", rates.commands}};
}
/// Name and value of each latency, in seconds; no value without observations in the interval.
std::vector<std::pair<std::string_view, std::optional<double>>> latencies(const TopRates& rates) {
  return {{"acquire_p50", rates.acquire_p50},
          {"acquire_p99", rates.acquire_p99},
          {"commit_p50", rates.commit_p50},
          {"commit_p99", rates.commit_p99}};
}

/// Name and value of each total.
std::vector<std::pair<std::string_view, std::uint64_t>> numbers(const v1::TopResponse& reply) {
  return {{"locks", reply.locks()},
          {"holds", reply.holds()},
          {"waits", reply.waits()},
          {"leases", reply.leases()}};
}

}  // namespace

Result<TopSample> TopSampler::ask() {
  v1::TopRequest request;
  request.set_prefix(service_.with_prefix(prefix_));
  // The maximum of the service: more rows than a screen has, so that filters find something.
  request.set_limit(200);
  auto reply = service_.ask<v1::TopResponse>("Admin/Top", request);
  if (!reply) {
    return std::unexpected(std::move(reply).error());
  }
  // The time of the reply, so that rates refer to the interval between two replies.
  const auto now = Clock::now();
  // Counters are per member, so a reply of another member cannot be compared.
  if (before_ && before_->header().member_id() != reply->header().member_id()) {
    before_.reset();
  }
  const auto seconds = std::chrono::duration<double>(now - when_before_).count();
  TopSample sample;
  if (before_ && seconds > 0) {
    sample.rates = rates(reply->counters(), seconds);
  }
  // A lock may be in both lists: with the longest queues, and held for longest.
  std::set<std::pair<std::string, bool>> seen;
  for (const auto* list : {&reply->queues(), &reply->long_holds()}) {
    for (const auto& lock : *list) {
      if (seen.emplace(lock.name(), lock.is_space()).second) {
        sample.locks.push_back(hot(lock, seconds));
      }
    }
  }
  // Before the reply is changed for display below.
  before_ = *reply;
  when_before_ = now;
  for (auto& wait : *reply->mutable_long_waits()) {
    wait.set_name(service_.without_prefix(wait.name()));
  }
  if (reply->leader_address().empty() && reply->leader_id() == reply->header().member_id()) {
    // A single node does not know its address.
    reply->set_leader_address(service_.server());
  }
  sample.reply = *std::move(reply);
  return sample;
}

TopRates TopSampler::rates(const v1::Counters& now, double seconds) const {
  const auto& before = before_->counters();
  const auto rate = [&](double earlier, double later) {
    // Counters start at zero when a member restarts; a negative rate would make no sense.
    return std::max(0.0, later - earlier) / seconds;
  };
  // The histograms are cumulative; their difference is the histogram of the interval.
  const auto part = [](const auto& earlier, const auto& later, double quantile) {
    return sys::quantile_between(buckets_of(earlier), buckets_of(later), quantile);
  };
  return {.granted = rate(before.granted(), now.granted()),
          .released = rate(before.released(), now.released()),
          .expired = rate(before.expired(), now.expired()),
          .forced = rate(before.forced(), now.forced()),
          .deadlocks = rate(before.deadlocks(), now.deadlocks()),
          .renewed = rate(before.renewed(), now.renewed()),
          .commands = rate(before.commands(), now.commands()),
          .acquire_p50 = part(before.acquire_seconds(), now.acquire_seconds(), 0.5),
          .acquire_p99 = part(before.acquire_seconds(), now.acquire_seconds(), 0.99),
          .commit_p50 = part(before.commit_seconds(), now.commit_seconds(), 0.5),
          .commit_p99 = part(before.commit_seconds(), now.commit_seconds(), 0.99)};
}

HotLock TopSampler::hot(const v1::BusyLock& lock, double seconds) const {
  const auto& holder = lock.first_holder();
  HotLock made{.name = service_.without_prefix(lock.name()),
               .is_space = lock.is_space(),
               .owner = holder.owner(),
               .mode = lock.has_first_holder() ? mode_text(holder.item()) : "",
               .item = holder.item(),
               .metadata = holder.metadata(),
               .token = holder.fencing_token(),
               .holders = lock.holder_count(),
               .waiters = lock.waiter_count(),
               .held = milliseconds(holder.held_for_ms()),
               .longest_wait = milliseconds(lock.longest_wait_ms())};
  // The server returns the top of its lists only, so a lock may be missing in one reply.
  const auto* before = before_ ? find_lock(*before_, lock) : nullptr;
  // The counter restarts when the lock was free in between.
  if (before != nullptr && before->version() <= lock.version() && seconds > 0) {
    // A grant and a release: two changes per grant.
    made.grants = static_cast<double>(lock.version() - before->version()) / 2 / seconds;
  }
  return made;
}

bool contains(std::string_view text, std::string_view filter) {
  return text.find(filter) != std::string_view::npos;
}

std::vector<HotLock> sorted(std::vector<HotLock> locks, TopOrder order, std::string_view filter) {
  // Also by owner, to show what one host holds.
  std::erase_if(locks, [&](const HotLock& lock) {
    return !contains(lock.name, filter) && !contains(lock.owner, filter);
  });
  // Stable: rows with equal keys do not change places from one sample to the next.
  const auto by = [&](auto member) { std::ranges::stable_sort(locks, std::greater(), member); };
  switch (order) {
    case TopOrder::waiters: by(&HotLock::waiters); break;
    case TopOrder::longest_wait: by(&HotLock::longest_wait); break;
    case TopOrder::held: by(&HotLock::held); break;
    case TopOrder::grants: by(&HotLock::grants); break;
    case TopOrder::name: std::ranges::stable_sort(locks, {}, &HotLock::name); break;
  }
  return locks;
}

std::string brief(double number) {
  std::array<char, 48> text{};
  // One decimal below 10, where rounding to an integer would change the value much.
  std::snprintf(text.data(), text.size(), number > 0 && number < 10 ? "%.1f" : "%.0f", number);
  return text.data();
}

// The first column is the kind of the line, so that grep(1) and awk(1) can select one list.
std::string text_of(const TopSample& sample, TopOrder order) {
  const auto& reply = sample.reply;
  std::string text = "leader\t" + std::to_string(reply.leader_id()) + "\t" +
                     plain(reply.leader_address()) + "\tof " +
                     std::to_string(reply.members_size()) + " members\n";
  for (const auto& [name, number] : numbers(reply)) {
    text += "number\t" + std::string(name) + "\t" + std::to_string(number) + "\n";
  }
  if (sample.rates) {
    for (const auto& [name, rate] : named(*sample.rates)) {
      text += "rate\t" + std::string(name) + "\t" + brief(rate) + "/s\n";
    }
    for (const auto& [name, seconds] : latencies(*sample.rates)) {
      const auto time = std::chrono::duration<double>(seconds.value_or(0));
      text += "latency\t" + std::string(name) + "\t" +
              (seconds ? format_short(std::chrono::duration_cast<std::chrono::nanoseconds>(time))
                       : "-") +
              "\n";
    }
  }
  for (const auto& lock : sorted(sample.locks, order, "")) {
    text += "lock\t" + plain(lock.name) + "\t" + plain(lock.owner) + "\t" + plain(lock.mode) +
            "\t" + std::to_string(lock.waiters) + "\t" + duration_cell(lock.longest_wait) + "\t" +
            duration_cell(lock.held) + "\t" + (lock.grants ? brief(*lock.grants) + "/s" : "-") +
            "\t" + plain(lock.metadata) + "\n";
  }
  for (const auto& wait : reply.long_waits()) {
    text += "wait\t" + plain(wait.name()) + "\t" + plain(wait.owner()) + "\t" +
            mode_text(wait.item()) + "\t" + duration_cell(milliseconds(wait.waited_ms())) + "\t" +
            plain(wait.metadata()) + "\n";
  }
  for (const auto& lease : reply.lease_ends()) {
    text += "lease\t" + std::to_string(lease.id()) + "\t" + plain(lease.client()) + "\t" +
            duration_cell(milliseconds(lease.left_ms())) + "\t" +
            duration_cell(milliseconds(lease.ttl_ms())) + "\t" +
            std::to_string(lease.hold_count()) + "\t" + std::to_string(lease.wait_count()) + "\n";
  }
  return text;
}

namespace {

/// Writes a lock. Unknown values are left out instead of being zero.
void write(sys::JsonWriter& json, const HotLock& lock) {
  json.begin_object()
      .field("name", std::string_view(lock.name))
      .field("kind", std::string_view(lock.is_space ? "space" : "lock"))
      .field("owner", std::string_view(lock.owner));
  if (lock.token != 0) {
    write_mode(json, lock.item);
  }
  json.id("token", lock.token)
      .field("holder_count", lock.holders)
      .field("waiter_count", lock.waiters)
      .field("longest_wait_ms", static_cast<std::uint64_t>(lock.longest_wait.count()))
      .field("held_for_ms", static_cast<std::uint64_t>(lock.held.count()))
      .field("metadata", std::string_view(lock.metadata));
  if (lock.grants) {
    json.field("grants_per_second", *lock.grants);
  }
  json.end_object();
}

/// Writes the longest waits and the leases that expire next.
void write_lists(sys::JsonWriter& json, const v1::TopResponse& reply) {
  json.key("long_waits").begin_array();
  for (const auto& wait : reply.long_waits()) {
    json.begin_object()
        .field("name", std::string_view(wait.name()))
        .field("owner", std::string_view(wait.owner()));
    write_mode(json, wait.item());
    json.id("lease", wait.lease_id())
        .field("waited_ms", std::uint64_t{wait.waited_ms()})
        .field("metadata", std::string_view(wait.metadata()))
        .end_object();
  }
  json.end_array().key("lease_ends").begin_array();
  for (const auto& lease : reply.lease_ends()) {
    json.begin_object()
        .id("lease", lease.id())
        .field("client", std::string_view(lease.client()))
        .field("left_ms", std::uint64_t{lease.left_ms()})
        .field("ttl_ms", std::uint64_t{lease.ttl_ms()})
        .field("hold_count", std::uint64_t{lease.hold_count()})
        .field("wait_count", std::uint64_t{lease.wait_count()})
        .end_object();
  }
  json.end_array();
}

}  // namespace

// Rates are missing in a first sample, and latencies in an interval without observations.
std::string json_of(const TopSample& sample, TopOrder order) {
  const auto& reply = sample.reply;
  sys::JsonWriter json;
  json.begin_object()
      .field("version", std::string_view(reply.version()))
      .id("revision", reply.header().revision())
      .id("leader", reply.leader_id())
      .field("leader_address", std::string_view(reply.leader_address()))
      .field("members", static_cast<std::uint64_t>(reply.members_size()))
      .field("has_space", reply.has_space())
      .field("is_complete", reply.is_complete());
  for (const auto& [name, number] : numbers(reply)) {
    json.field(std::string(name) + "_count", number);
  }
  json.key("rates").begin_object();
  if (sample.rates) {
    for (const auto& [name, rate] : named(*sample.rates)) {
      json.field(name, rate);
    }
    for (const auto& [name, seconds] : latencies(*sample.rates)) {
      if (seconds) {
        json.field(std::string(name) + "_seconds", *seconds);
      }
    }
  }
  json.end_object().key("locks").begin_array();
  for (const auto& lock : sorted(sample.locks, order, "")) {
    write(json, lock);
  }
  json.end_array();
  write_lists(json, reply);
  return json.end_object().text() + "\n";
}

}  // namespace tenure::cli
