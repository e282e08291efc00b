#include "server/raft/proposal_queue.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

namespace tenure::server::raft {
namespace {

// Upper bound for the integer fields of a command or an item.
constexpr std::size_t fixed_bytes = 64;

// Initial capacity of the queue.
constexpr std::size_t reserved_max = 1024;

struct Weight {
  std::size_t operator()(const core::Acquire& command) const {
    std::size_t bytes = command.owner.size() + command.metadata.size();
    for (const auto& item : command.items) {
      bytes += fixed_bytes + item.name.size();
      if (const auto* keys = std::get_if<core::Keys>(&item.claim)) {
        bytes += keys_bytes(keys->range);
      }
    }
    return bytes;
  }
  std::size_t operator()(const core::Release& command) const {
    const auto* target = std::get_if<core::Target>(&command.what);
    if (target == nullptr) {
      return 0;
    }
    return target->name.size() + (target->range.has_value() ? keys_bytes(*target->range) : 0);
  }
  std::size_t operator()(const core::GrantLease& command) const {
    return command.client.size() + command.address.size() + command.user.size();
  }
  std::size_t operator()(const core::RenewLeases& command) const {
    return command.leases.size() * 10;
  }
  std::size_t operator()(const core::ForceRelease& command) const {
    return command.resource.name.size() + command.operator_name.size() + command.reason.size();
  }
  std::size_t operator()(const core::SetLimits& /*command*/) const { return 4 * fixed_bytes; }
  std::size_t operator()(const core::ConfirmHolds& command) const {
    return command.tokens.size() * 10;
  }
  std::size_t operator()(const auto& /*command*/) const { return 0; }

  static std::size_t keys_bytes(const BytesRange& range) {
    return fixed_bytes + range.start().size() + (range.end().has_value() ? range.end()->size() : 0);
  }
};

}  // namespace

std::size_t encoded_size(const core::Command& command) {
  return fixed_bytes + std::visit(Weight{}, command);
}

bool may_grow(const core::Command& command) {
  return std::holds_alternative<core::Acquire>(command) ||
         std::holds_alternative<core::GrantLease>(command);
}

ProposalQueue::PushResult ProposalQueue::push(Proposal& proposal) {
  const sys::MutexGuard guard(mutex_);
  if (is_closed_) {
    return PushResult::closed;
  }
  if (commands_ >= limits_.commands || bytes_ + proposal.bytes > limits_.bytes) {
    return PushResult::full;
  }
  ++commands_;
  bytes_ += proposal.bytes;
  waiting_.push_back(std::move(proposal));
  return std::exchange(is_awake_, true) ? PushResult::queued : PushResult::queued_first;
}

std::vector<Proposal> ProposalQueue::take(std::size_t commands_max, std::size_t bytes_max) {
  const sys::MutexGuard guard(mutex_);
  std::size_t bytes = 0;
  auto end = gone_;
  for (; end < waiting_.size() && end - gone_ < commands_max; ++end) {
    bytes += waiting_[end].bytes;
    // A single command may exceed the limit, or it would never be taken.
    if (end > gone_ && bytes > bytes_max) {
      break;
    }
  }
  // Common case: hands over the whole array without moving each proposal.
  if (gone_ == 0 && end == waiting_.size()) {
    // The next burst is usually as long as this one.
    auto all = std::exchange(waiting_, {});
    waiting_.reserve(std::min(all.size(), reserved_max));
    return all;
  }
  std::vector<Proposal> taken(std::make_move_iterator(at(gone_)), std::make_move_iterator(at(end)));
  gone_ = end;
  if (gone_ == waiting_.size()) {
    waiting_.clear();
    gone_ = 0;
  }
  return taken;
}

std::vector<Proposal>::iterator ProposalQueue::at(std::size_t index) {
  return waiting_.begin() + static_cast<std::ptrdiff_t>(index);
}

bool ProposalQueue::go_idle() {
  const sys::MutexGuard guard(mutex_);
  const bool is_empty = gone_ == waiting_.size();
  if (is_empty) {
    is_awake_ = false;
  }
  return is_empty;
}

void ProposalQueue::finished(std::size_t commands, std::size_t bytes) {
  const sys::MutexGuard guard(mutex_);
  commands_ -= commands;
  bytes_ -= bytes;
}

std::vector<Proposal> ProposalQueue::close() {
  const sys::MutexGuard guard(mutex_);
  is_closed_ = true;
  std::vector<Proposal> rest(std::make_move_iterator(at(gone_)),
                             std::make_move_iterator(waiting_.end()));
  waiting_.clear();
  gone_ = 0;
  return rest;
}

}  // namespace tenure::server::raft
