#include "server/raft/disk.hpp"

#include <string>
#include <utility>

#include "core/snapshot.hpp"

namespace tenure::server::raft {

Disk::Disk(DiskMode mode, Parts parts) : mode_(mode), parts_(std::move(parts)) {
  if (mode_ == DiskMode::thread) {
    thread_ = std::jthread([this] { run(); });
  }
}

Disk::~Disk() {
  const sys::MutexGuard guard(mutex_);
  is_stopping_ = true;
  changed_.notify_one();
}

void Disk::append(Index first, const std::vector<Entry>& entries) {
  push(Append{.first = first, .entries = entries});
}

void Disk::install(const Snapshot& snapshot) {
  push(snapshot);
}

void Disk::cut(Index last) {
  push(Cut{.last = last});
}

void Disk::push(Operation operation) {
  {
    const sys::MutexGuard guard(mutex_);
    waiting_.push_back(std::move(operation));
  }
  // Notifies without the mutex: the woken thread locks it first and would block again.
  if (mode_ == DiskMode::thread) {
    changed_.notify_one();
  }
}

Disk::Done Disk::take_done() {
  std::vector<Operation> operations;
  {
    const sys::MutexGuard guard(mutex_);
    if (mode_ == DiskMode::thread) {
      return std::exchange(done_, {});
    }
    operations = std::exchange(waiting_, {});
  }
  return perform(std::move(operations));
}

void Disk::run() {
  mutex_.lock();
  // The queued operations are performed before the thread ends.
  while (!is_stopping_ || !waiting_.empty()) {
    if (waiting_.empty()) {
      changed_.wait(mutex_);
      continue;
    }
    auto operations = std::exchange(waiting_, {});
    mutex_.unlock();
    auto done = perform(std::move(operations));
    mutex_.lock();
    done_.operations += done.operations;
    done_.syncs.insert(done_.syncs.end(), done.syncs.begin(), done.syncs.end());
    mutex_.unlock();
    parts_.wake();
    mutex_.lock();
  }
  mutex_.unlock();
}

Disk::Done Disk::perform(std::vector<Operation> operations) {
  Done done;
  bool is_dirty = false;
  // One fdatasync for all appends before it, only if there are any.
  const auto sync = [&] {
    if (std::exchange(is_dirty, false)) {
      done.syncs.push_back(parts_.journal.sync());
    }
  };
  for (const auto& operation : operations) {
    if (const auto* append = std::get_if<Append>(&operation)) {
      parts_.journal.append(append->first, append->entries);
      is_dirty = true;
      ++done.operations;
    } else if (const auto* snapshot = std::get_if<Snapshot>(&operation)) {
      // Operations complete in order, so the appends before the snapshot are made durable first.
      sync();
      perform_install(*snapshot);
      ++done.operations;
    } else {
      // A cut takes effect after the operations before it.
      sync();
      parts_.journal.cut(std::get<Cut>(operation).last);
    }
  }
  sync();
  // Operations after a given-up write are not durable and must not be acknowledged.
  return parts_.journal.has_given_up() ? Done{} : done;
}

// Decodes the snapshot before it replaces the own one: an unreadable snapshot must not become the
// only copy of the state.
void Disk::perform_install(const Snapshot& snapshot) {
  auto state = core::decode(*snapshot.body);
  if (!state) {
    stop_process(parts_.report,
                 "cannot restore the snapshot of the leader: " + state.error().detail);
  }
  if (auto written = parts_.snapshot.write(snapshot.mark, *snapshot.body); !written) {
    stop_process(parts_.report,
                 "cannot store the snapshot of the leader: " + written.error().detail);
  }
  parts_.journal.restart();
  core::StateMachine machine(std::move(*state));
  const sys::MutexGuard guard(mutex_);
  installed_ = std::move(machine);
}

core::StateMachine Disk::take_installed() {
  const sys::MutexGuard guard(mutex_);
  return *std::exchange(installed_, std::nullopt);
}

}  // namespace tenure::server::raft
