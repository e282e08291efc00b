#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "core/snapshot.hpp"
#include "server/raft/node.hpp"
#include "support/raft/folder.hpp"

namespace tenure::test {

using server::Decided;

/// Calls a store and waits for its answers, as a client thread does.
class RaftClient {
 public:
  explicit RaftClient(server::Store& store) : store_(store) {}

  Result<Decided> propose(core::Command command) {
    std::promise<Result<Decided>> promise;
    auto answer = promise.get_future();
    store_.propose(std::move(command),
                   [&promise](Result<Decided> decided) { promise.set_value(std::move(decided)); });
    return answer.get();
  }
  Result<Decided> grant_lease(core::LeaseId id,
                              std::chrono::milliseconds ttl = std::chrono::minutes(10)) {
    return propose(core::GrantLease{.id = id, .ttl = ttl});
  }
  /// A lease with an id of the store's choice; 0 if there is none.
  core::LeaseId fresh_lease() {
    const auto decided = grant_lease({});
    const auto* granted = decided ? std::get_if<core::LeaseGranted>(&decided->outcome) : nullptr;
    return granted == nullptr ? core::LeaseId{} : granted->id;
  }
  Result<Decided> acquire(core::LeaseId lease, std::string name) {
    return propose(core::Acquire{.lease = lease,
                                 .request = core::RequestId{++last_request_},
                                 .items = {{.name = std::move(name), .claim = core::Whole{}}}});
  }
  /// The token of a grant; 0 if it was none.
  std::uint64_t token(core::LeaseId lease, std::string name) {
    const auto decided = acquire(lease, std::move(name));
    const auto* granted = decided ? std::get_if<core::Granted>(&decided->outcome) : nullptr;
    return granted == nullptr ? 0 : granted->token.get();
  }
  Result<std::uint64_t> take_snapshot() {
    std::promise<Result<std::uint64_t>> promise;
    store_.take_snapshot([&promise](Result<std::uint64_t> index) { promise.set_value(index); });
    return promise.get_future().get();
  }
  /// Result of `question` on the state, through a linearizable read.
  template <class Question>
  auto ask(Question question) {
    std::promise<decltype(question(std::declval<const server::View&>()))> promise;
    store_.read([&](Result<server::View> view) { promise.set_value(question(view.value())); });
    return promise.get_future().get();
  }
  std::string state_bytes() {
    return ask([](const server::View& view) { return core::encode(view.state); });
  }
  server::LogPosition position() {
    return ask([](const server::View& view) { return view.log; });
  }

  void use_requests_after(std::uint64_t last) { last_request_ = last; }

 private:
  server::Store& store_;
  std::uint64_t last_request_ = 0;
};

/// A node in a folder, with everything small.
[[nodiscard]] inline server::raft::NodeOptions small_node(const std::filesystem::path& folder,
                                                          Reports& reports) {
  server::raft::NodeOptions options;
  options.folder = folder;
  options.segment_bytes = 64 << 10;
  options.report = reports.report();
  return options;
}

[[nodiscard]] inline std::unique_ptr<server::raft::Node> started(
    const server::raft::NodeOptions& options) {
  auto node = server::raft::Node::open(options);
  if (!node) {
    ADD_FAILURE() << node.error().detail;
    return nullptr;
  }
  (*node)->start();
  return std::move(*node);
}

}  // namespace tenure::test
