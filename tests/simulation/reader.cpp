#include "simulation/reader.hpp"

#include "simulation/host.hpp"

namespace tenure::simulation {

using namespace std::chrono_literals;

namespace {

// Interval of reads: short enough to reach a new leader between its election and its first commit,
// which is one disk write later.
constexpr VirtualTime read_interval = 3ms;
// Time after an election in which its leader is read from.
constexpr VirtualTime fresh = 60ms;
// Share of reads from other members, for comparison.
constexpr std::uint64_t others_one_in = 100;
// Bound on reads in flight: a paused host processes all of them afterwards.
constexpr std::uint64_t paused_one_in = 20;
// Time after which an unanswered read is dropped.
constexpr std::size_t asked_max = 1000;

}  // namespace

void Reader::poll_later() {
  world_.after(world_.random().between(read_interval / 2, read_interval * 3 / 2), [this] {
    if (world_.is_healed()) {
      return;
    }
    poll();
    poll_later();
  });
}

void Reader::poll() {
  for (const auto* host : directory_.hosts) {
    if (host->believes_to_lead() && host->store().replica().term().get() > newest_term_) {
      newest_term_ = host->store().replica().term().get();
      elected_ = world_.now();
    }
  }
  auto& random = world_.random();
  for (Endpoint i = 0; i < directory_.hosts.size(); ++i) {
    const auto& host = *directory_.hosts[i];
    const bool is_news = world_.now() - elected_ < fresh;
    const bool is_doubtful =
        host.believes_to_lead() && (is_news || host.store().replica().term().get() < newest_term_);
    if (is_doubtful ? !host.is_paused() || random.one_in(paused_one_in)
                    : random.one_in(others_one_in)) {
      ask(i);
    }
  }
}

void Reader::ask(Endpoint host) {
  asked_[++last_number_] = checker_.acknowledged();
  if (asked_.size() > asked_max) {
    asked_.erase(asked_.begin());
  }
  const Request ask{.client = endpoint_, .number = last_number_, .what = ReadRequest{"leader"}};
  network_.send(endpoint_, host,
                [this, ask, host] { directory_.hosts[host]->handle_request(ask); });
}

void Reader::handle_reply(const Reply& answer) {
  const auto known = asked_.extract(answer.number);
  if (const auto* sight = std::get_if<ReadResult>(&answer.what);
      sight != nullptr && !known.empty()) {
    checker_.check_read(known.mapped(), sight->revision);
  }
}

}  // namespace tenure::simulation
