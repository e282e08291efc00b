#include "server/rpc/top.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/rpc/explain.hpp"
#include "server/rpc/membership.hpp"
#include "wire/answers.hpp"
#include "wire/items.hpp"

namespace tenure::server {
namespace {

// Rows per list of the reply.
constexpr std::uint32_t rows_default = 50;
constexpr std::uint32_t rows_max = 200;
/// Maximum number of items visited per list and reply. 2,000 lookups take well below a millisecond,
/// and `tenure top` polls every 2 s.
constexpr std::size_t looked_at_max = 2000;

/// Lock with waiters, and the age of its oldest wait.
struct Queue {
  core::Resource resource;
  const core::Lock* lock;
  core::ClusterTime longest;
};

/// Builder of one reply. Lives during the visit of the view.
class Overview {
 public:
  Overview(const v1::TopRequest& request, const View& view, const auth::Access& access,
           v1::TopResponse& out)
      : prefix_(request.prefix()),
        access_(access),
        rows_(std::min(request.limit() == 0 ? rows_default : request.limit(), rows_max)),
        view_(view),
        table_(view.state.locks),
        out_(out) {}

  void write() {
    write_numbers();
    write_waits();
    write_holds();
    write_leases();
  }

 private:
  /// Totals; they count everything, whatever the client may read.
  void write_numbers() {
    out_.set_leader_id(view_.log.leader);
    out_.set_leader_address(view_.log.leader_address);
    write_members(view_, *out_.mutable_members());
    out_.set_locks(table_.locks().size());
    out_.set_holds(table_.holds().size());
    out_.set_waits(table_.waits().size());
    out_.set_leases(view_.state.leases.all().size());
    out_.set_log_bytes(view_.log.log_bytes);
    out_.set_has_space(view_.log.has_space);
  }

  [[nodiscard]] bool is_wanted(const core::Item& item) const {
    const auto name = item.resource_view().name;
    return name.starts_with(prefix_) && access_.may(auth::Verb::read, name);
  }

  /// Waits are sorted by arrival, so the first are the longest.
  void write_waits() {
    std::vector<Queue> queues;
    std::set<core::Resource> seen;
    std::size_t looked_at = 0;
    out_.set_is_complete(true);
    for (auto it = table_.waits().begin(); it != table_.waits().end(); ++it) {
      const auto& wait = *it->second;
      // The oldest waits were visited, and those are the ones that `tenure top` shows.
      if (looked_at >= looked_at_max) {
        out_.set_is_complete(false);
        break;
      }
      looked_at += wait.items.size();
      const auto waited = view_.now - wait.since;
      bool is_written = false;
      for (const auto& item : wait.items) {
        if (!is_wanted(item)) {
          continue;
        }
        if (!is_written) {
          // A request for several names is one row, with its first wanted name.
          is_written = true;
          write_wait(wait, item);
        }
        if (auto resource = item.resource(); seen.insert(resource).second) {
          queues.push_back(
              {.resource = resource, .lock = table_.find(resource), .longest = waited});
        }
      }
    }
    // stable: queues of equal length stay sorted by their longest wait.
    std::ranges::stable_sort(queues, [](const Queue& a, const Queue& b) {
      return a.lock->queue().size() > b.lock->queue().size();
    });
    queues.resize(std::min<std::size_t>(queues.size(), rows_));
    for (const auto& queue : queues) {
      auto& row = *out_.add_queues();
      write_lock(queue.resource, *queue.lock, row);
      row.set_longest_wait_ms(wire::milliseconds(queue.longest));
    }
  }

  void write_wait(const core::Wait& wait, const core::Item& item) {
    if (static_cast<std::uint32_t>(out_.long_waits_size()) >= rows_) {
      return;
    }
    auto& row = *out_.add_long_waits();
    row.set_name(std::string(item.resource_view().name));
    row.set_is_space(item.kind() == core::ResourceKind::space);
    row.set_lease_id(wait.lease.get());
    row.set_owner(std::string(wait.owner));
    row.set_metadata(std::string(wait.metadata));
    row.set_waited_ms(wire::milliseconds(view_.now - wait.since));
    wire::write(item, *row.mutable_item());
    leases_.insert(wait.lease);
  }

  /// Holds are sorted by grant, so the first are the longest.
  void write_holds() {
    std::set<core::Resource> seen;
    std::size_t looked_at = 0;
    for (auto it = table_.holds().begin(); it != table_.holds().end(); ++it) {
      if (looked_at >= looked_at_max) {
        return;
      }
      looked_at += it->second->items.size();
      for (const auto& item : it->second->items) {
        if (static_cast<std::uint32_t>(out_.long_holds_size()) >= rows_) {
          return;
        }
        if (auto resource = item.resource(); is_wanted(item) && seen.insert(resource).second) {
          write_lock(resource, *table_.find(resource), *out_.add_long_holds());
        }
      }
    }
  }

  void write_lock(const core::Resource& resource, const core::Lock& lock, v1::BusyLock& row) {
    row.set_name(resource.name);
    row.set_is_space(resource.kind == core::ResourceKind::space);
    row.set_holder_count(lock.holds().size());
    row.set_waiter_count(lock.queue().size());
    row.set_version(lock.version());
    if (lock.holds().empty()) {
      return;
    }
    const auto& hold = *table_.find(lock.holds().front());
    leases_.insert(hold.lease);
    for (const auto& item : hold.items) {
      if (item.is_at(resource)) {
        write_holder(hold, item, view_, *row.mutable_first_holder());
        return;
      }
    }
  }

  /// Leases of the written rows only: visiting all leases would cost too much.
  void write_leases() {
    // A lease can hold locks of any name, so it is visible only with the right to read all names.
    if (!access_.may_globally(auth::Verb::read)) {
      return;
    }
    std::vector<const core::Lease*> leases;
    for (const auto id : leases_) {
      if (const auto* lease = view_.state.leases.find(id)) {
        leases.push_back(lease);
      }
    }
    // Leases that expire first come first: an operator looks for those that are not renewed.
    std::ranges::sort(leases, {}, &core::Lease::deadline);
    leases.resize(std::min<std::size_t>(leases.size(), rows_));
    for (const auto* lease : leases) {
      const auto& owned = table_.owned(lease->id);
      auto& row = *out_.add_lease_ends();
      row.set_id(lease->id.get());
      row.set_client(std::string(lease->client));
      row.set_ttl_ms(wire::milliseconds(lease->ttl));
      row.set_left_ms(wire::milliseconds(std::max(lease->deadline - view_.now, {})));
      row.set_hold_count(owned.holds.size());
      row.set_wait_count(owned.waits.size());
    }
  }

  std::string_view prefix_;
  const auth::Access& access_;
  std::uint32_t rows_;
  const View& view_;
  const core::LockTable& table_;
  v1::TopResponse& out_;
  std::set<core::LeaseId> leases_;  ///< Leases of all written rows.
};

}  // namespace

void write_top(const v1::TopRequest& request, const View& view, const auth::Access& access,
               v1::TopResponse& out) {
  Overview(request, view, access, out).write();
}

}  // namespace tenure::server
