#include <algorithm>
#include <set>

#include <zookeeper/zookeeper.h>

#include "backends/zookeeper/faults.hpp"
#include "backends/zookeeper/locks.hpp"
#include "backends/zookeeper/paths.hpp"
#include "backends/zookeeper/values.hpp"

// Who holds a name at the moment.

namespace tenure::backends::zookeeper {
namespace {

constexpr std::size_t holders_max = 1000;

/// Those at the front that hold together.
std::vector<std::string_view> front_of(const std::vector<std::string_view>& names) {
  std::vector<std::pair<Ticket, std::string_view>> queue;
  for (const auto name : names) {
    if (const auto ticket = ticket_of(name); ticket && ticket->kind != Kind::lease) {
      queue.emplace_back(*ticket, name);
    }
  }
  const auto origin = queue.empty() ? Sequence{} : queue.front().first.sequence;
  std::ranges::sort(queue, {}, [&](const auto& one) {
    return std::pair(distance(origin, one.first.sequence), one.second);
  });
  std::vector<std::string_view> front;
  for (const auto& [ticket, name] : queue) {
    if (front.empty() || !is_exclusive(ticket.kind)) {
      front.push_back(name);
    }
    if (is_exclusive(ticket.kind)) {
      break;
    }
  }
  return front;
}

}  // namespace

struct Locks::Inquiry {
  std::string folder{};
  Backend::Done<std::vector<Holder>> done{};
  std::vector<Holder> found{};
  std::set<RequestKey> seen{};
  std::vector<std::string> paths{};
  std::size_t parts = 0;
};

void Locks::inquire_ended(Inquiry& inquiry) {
  around_.outbox.tell<std::vector<Holder>>(
      std::move(inquiry.done), fail(Errc::unavailable, "the session at ZooKeeper ended"));
}

void Locks::holders(const std::string& name, Backend::Done<std::vector<Holder>> done) {
  if (main_seat_ == 0) {
    around_.outbox.tell<std::vector<Holder>>(
        std::move(done), fail(Errc::unavailable, "no session at ZooKeeper; ask again"));
    return;
  }
  const Number number = ++last_number_;
  const auto inquiry = std::make_shared<Inquiry>();
  inquiry->folder = folder_of(around_.address.chroot, name);
  inquiry->done = std::move(done);
  inquiries_.emplace(number, inquiry);
  auto& session = *seats_.at(main_seat_).session;
  if (session.is_connected()) {
    // What was acknowledged anywhere before is in the answer.
    session.link().sync([](const Reply&) {});
  }
  session.list(inquiry->folder, Link::Watch::no, [this, number](const Reply& reply) {
    const auto it = inquiries_.find(number);
    if (it == inquiries_.end()) {
      return;
    }
    if (reply.code != ZOK && reply.code != ZNONODE) {
      auto asked = inquiries_.extract(it).mapped();
      around_.outbox.tell<std::vector<Holder>>(
          std::move(asked->done), std::unexpected(error_from(reply.code, asked->folder)));
      return;
    }
    for (const auto one : front_of(reply.names)) {
      it->second->paths.push_back(it->second->folder + '/' + std::string(one));
    }
    inquire_permits(number);
  });
}

void Locks::inquire_permits(Number number) {
  const auto leases = leases_of(inquiries_.at(number)->folder);
  seats_.at(main_seat_)
      .session->list(leases, Link::Watch::no, [this, number, leases](const Reply& reply) {
        const auto it = inquiries_.find(number);
        if (it == inquiries_.end()) {
          return;
        }
        for (const auto name : reply.names) {
          const auto ticket = ticket_of(name);
          if (ticket && ticket->kind == Kind::lease) {
            it->second->paths.push_back(leases + '/' + std::string(name));
          }
        }
        inquire_each(number);
      });
}

void Locks::inquire_each(Number number) {
  const auto inquiry = inquiries_.at(number);
  inquiry->paths.resize(std::min(inquiry->paths.size(), holders_max));
  inquiry->parts = inquiry->paths.size() + 1;
  const auto part_done = [this, number] {
    const auto it = inquiries_.find(number);
    if (it == inquiries_.end() || --it->second->parts > 0) {
      return;
    }
    const auto ended = inquiries_.extract(it).mapped();
    around_.outbox.tell<std::vector<Holder>>(std::move(ended->done), std::move(ended->found));
  };
  for (const auto& path : inquiry->paths) {
    seats_.at(main_seat_).session->get(path, [inquiry, part_done](const Reply& reply) {
      auto value = read_value(reply.value);
      const bool is_ours = value.lease != LeaseId{};
      // Several permits of one request are one holder.
      if (reply.code == ZOK &&
          (!is_ours ||
           inquiry->seen.insert({.lease = value.lease, .request = value.request}).second)) {
        inquiry->found.push_back({.owner = std::move(value.owner),
                                  .token = FencingToken{static_cast<std::uint64_t>(reply.czxid)},
                                  .lease = value.lease,
                                  .metadata = std::move(value.metadata)});
      }
      part_done();
    });
  }
  part_done();
}

}  // namespace tenure::backends::zookeeper
